"""From the table of actions to keys: which key does what, after the operator's own changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from console.actions import Action
from watchfloor.errors import ConfigError
from watchfloor.text import Clean, clean_line

_SHOWN: Final[Mapping[str, str]] = {
    "question_mark": "?",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "ctrl+c": "^C",
    "ctrl+l": "^L",
}


@dataclass(frozen=True, slots=True)
class Keymap:
    """Actions with their keys. `keys` maps an action's id to toolkit key names, most usual first."""

    keys: Mapping[str, tuple[str, ...]]

    def shown(self, id: str) -> Clean:
        """The key to name in footer, card and help; "" for an action without a key."""
        names = self.keys.get(id, ())
        return shown_key(names[0]) if names else Clean("")

    def all_shown(self, id: str) -> Clean:
        """Every key of the action, for the help."""
        return Clean(" ".join(shown_key(name) for name in self.keys.get(id, ())))


def shown_key(name: str) -> Clean:
    """A key as operators call it: `question_mark` is "?"."""
    return clean_line(_SHOWN.get(name, name))


def keymap(actions: Iterable[Action], changed: Mapping[str, str] | None = None) -> Keymap:
    """The keys of these actions; `changed` maps action ids to comma-separated key names that replace the usual ones.

    Raises:
        ConfigError: an id that is not in the table, or one key for two actions.
    """
    usual = {action.id: action.keys for action in actions}
    for id, names in (changed or {}).items():
        if id not in usual:
            raise ConfigError(f"keys.{id}: there is no such action; there are: {', '.join(usual)}")
        usual[id] = tuple(name.strip() for name in names.split(",") if name.strip())
    taken: dict[str, str] = {}
    for id, keys in usual.items():
        for key in keys:
            if key in taken:
                raise ConfigError(f"keys.{id}: the key {key} is taken by {taken[key]}; give one of them another")
            taken[key] = id
    return Keymap(usual)
