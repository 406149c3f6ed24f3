"""From the table of actions to keys: which key does what, after the operator's own changes.

Keys are named as the toolkit does ("question_mark", "ctrl+l"); an operator may write a character for itself ("?").
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from console.actions import Action, bound
from watchfloor.errors import ConfigError
from watchfloor.text import Clean, clean_line

_RENAMED: Final[Mapping[str, str]] = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}


def _name_of(character: str) -> str:
    name = unicodedata.name(character).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


_PUNCTUATION: Final[Mapping[str, str]] = {_name_of(character): character for character in string.punctuation}
_FUNCTION: Final = frozenset(f"f{number}" for number in range(1, 13))
_MOVING: Final = frozenset({"up", "down", "left", "right", "home", "end", "pageup", "pagedown"})
_EDITING: Final = frozenset({"insert", "delete"})
_BARE: Final = frozenset({"enter", "escape", "tab", "shift+tab", "space", "backspace", *_MOVING, *_EDITING, *_FUNCTION})
_MODIFIED: Final = frozenset(
    f"{modifier}+{key}" for modifier in ("ctrl", "shift", "alt") for key in (*_MOVING, *_EDITING, *_FUNCTION)
)
_SENT_AS: Final[Mapping[str, str]] = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "ctrl+[": "escape"}
"""Keys that a terminal does not tell from others."""
_CONTROLS: Final = frozenset(f"ctrl+{letter}" for letter in string.ascii_lowercase) - frozenset(_SENT_AS)

_SHOWN: Final[Mapping[str, str]] = {
    **_PUNCTUATION,
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}
_WRITES: Final = frozenset({"enter", "escape", "tab", "shift+tab", "space", "backspace", *_MOVING, *_EDITING})
"""Keys without which no text can be written, besides those of characters."""
_NEEDED: Final = frozenset({"leave", "back"})
"""Actions without which somebody may be stuck."""


class Keymap(NamedTuple):
    """Actions with their keys. `keys` maps an action's id to toolkit key names, most usual first; `changed` are those
    that are not the usual ones."""

    keys: Mapping[str, tuple[str, ...]]
    changed: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def shown(self, id: str) -> Clean:
        """The key to name in footer, card and help; "" for an action without a key."""
        names = self.keys.get(id, ())
        return shown_key(names[0]) if names else Clean("")

    def all_shown(self, id: str) -> Clean:
        """Every key of the action, for the help."""
        return Clean(" ".join(shown_key(name) for name in self.keys.get(id, ())))

    def bindings(self) -> dict[str, str]:
        """What the toolkit is told: ids with comma-separated keys, of those that have others than usual.

        It goes through all that it is told with each key that is pressed, before anything is done about it.
        """
        return {id: bound(id, names) for id, names in self.changed.items()}


class KeyFault(NamedTuple):
    """What is wrong with the keys of one action."""

    id: str
    says: str


def shown_key(name: str) -> Clean:
    """A key as operators call it: `question_mark` is "?", `ctrl+l` is "^L"."""
    if name.startswith("ctrl+") and len(name) == len("ctrl+x"):
        return Clean(f"^{name[-1].upper()}")
    return clean_line(_SHOWN.get(name, name))


def key_names(value: str) -> tuple[str, ...]:
    """The names of comma-separated keys. A comma itself is written "comma"; an empty text names none."""
    return tuple(_named(key.strip()) for key in value.split(",") if key.strip())


def keymap(actions: Iterable[Action], changed: Mapping[str, tuple[str, ...]] | None = None) -> Keymap:
    """The keys of these actions; `changed` maps action ids to key names that replace the usual ones.

    Raises:
        ConfigError: one of `key_faults`.
    """
    table = tuple(actions)
    faults = key_faults(changed or {}, table)
    if faults:
        raise ConfigError("\n".join(f"keys.{fault.id}: {fault.says}" for fault in faults))
    keys = {action.id: (changed or {}).get(action.id, action.keys) for action in table}
    return Keymap(keys, {action.id: keys[action.id] for action in table if keys[action.id] != action.keys})


def key_faults(changed: Mapping[str, tuple[str, ...]], actions: Iterable[Action]) -> list[KeyFault]:
    """What is wrong with these changes: an id that is not in the table, a key that no terminal sends, one key for two
    actions of one screen, an action that must keep a key."""
    table = {action.id: action for action in actions}
    faults: list[KeyFault] = []
    for id, names in changed.items():
        if id not in table:
            faults.append(KeyFault(id, f"there is no such action; {_near(id, table)}"))
            continue
        if not names and id in _NEEDED:
            faults.append(KeyFault(id, "it needs a key: without one there may be no way out"))
        faults += [KeyFault(id, why) for name in names if (why := _impossible(name, table[id]))]
    known = {id: changed.get(id, action.keys) for id, action in table.items()}
    return faults + _clashes(table, known, changed)


def _clashes(
    table: Mapping[str, Action], keys: Mapping[str, tuple[str, ...]], changed: Mapping[str, tuple[str, ...]]
) -> list[KeyFault]:
    faults: list[KeyFault] = []
    ids = list(table)
    for at, one in enumerate(ids):
        for other in ids[at + 1 :]:
            both = [key for key in keys[one] if key in keys[other]]
            if both and _meet(table[one], table[other]):
                blamed, first = (other, one) if other in changed else (one, other)
                shown = shown_key(both[0])
                faults.append(KeyFault(blamed, f"the key {shown} is taken by {first}; give one of them another"))
    return faults


def _meet(one: Action, other: Action) -> bool:
    return one.everywhere or other.everywhere or bool(one.where & other.where)


def _impossible(name: str, action: Action) -> str:
    """Why the key cannot be this action's; "" where it can."""
    shown = clean_line(name[:20])
    if name in _SENT_AS:
        return f"a terminal sends {shown} as {_SENT_AS[name]}: take another key"
    character = name in _PUNCTUATION or (len(name) == 1 and name.isalnum())
    if not (character or name in _BARE or name in _MODIFIED or name in _CONTROLS):
        return f"no terminal sends {shown!r}; write a character, or a name such as enter, f5, ctrl+l or shift+up"
    if action.everywhere and (character or name in _WRITES):
        return f"it works even where a text is written, which needs {shown_key(name)}: take ctrl+letter or f1 to f12"
    return ""


def _named(key: str) -> str:
    """The toolkit's name for what an operator wrote."""
    if len(key) == 1:
        return _name_of(key) if key in string.punctuation else key
    return key.lower()


def _near(id: str, table: Mapping[str, Action]) -> str:
    from difflib import get_close_matches  # only a mistake pays for it

    near = next(iter(get_close_matches(id, table, 1, 0.6)), None)
    return f"did you mean {near}?" if near else f"there are: {', '.join(table)}"
