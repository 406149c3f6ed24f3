"""Takes typed values out of a TOML file, and keeps what is wrong with them: each fault with its line and key, and with
what to do."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from themes.lines import Key, line_of
from watchfloor.errors import ConfigError

_LONGEST: Final = 80
_TEXT: Final = "a text in quotes"
_FLAG: Final = "true or false"
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def toml(text: str, where: Path) -> dict[str, Any]:
    """The file as a tree; `where` names it in errors. Raises ConfigError, naming the line where the parser does."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{where}: its values are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        if place is None:
            raise ConfigError(f"{where}: it is not TOML: {error}") from None
        line = int(place[1]) if place[1] else max(len(text.splitlines()), 1)
        raise ConfigError(f"{where}:{line}: it is not TOML: {_PLACE.sub('', str(error))}") from None
    except ValueError:
        raise ConfigError(f"{where}: it is not TOML: a number has too many digits") from None


class _Fault(NamedTuple):
    line: int
    text: str


@dataclass(slots=True)
class TomlReader:
    """Reads the tree of one file. `most`: faults that are kept; of those beyond it is only told how many they are."""

    text: str
    where: Path
    most: int
    faults: list[_Fault] = field(default_factory=list)
    untold: int = 0

    @property
    def told(self) -> list[str]:
        """What is wrong, a line each, in the order of the file."""
        more = [f"{self.where}: and {self.untold} more"] if self.untold else []
        return [*(fault.text for fault in sorted(self.faults, key=lambda fault: fault.line)), *more]

    def fault(self, key: Key, says: str) -> None:
        """Keep a fault of what stands at the key; of the whole file, where that is empty."""
        if len(self.faults) == self.most:
            self.untold += 1
            return
        line = line_of(self.text, key)
        at = f"{_shown(key)}: " if key else ""
        self.faults.append(_Fault(line, f"{self.where}:{line}: {at}{says}"))

    def unknown_keys(self, table: Mapping[str, Any], known: Sequence[str], at: Key = ()) -> None:
        for name in table:
            if name not in known:
                meant = near(name, known)
                hint = f"did you mean {meant}?" if meant else f"there are: {', '.join(known)}"
                self.fault((*at, name), f"there is no such key; {hint}")

    def text_at(self, table: Mapping[str, Any], at: Key, name: str) -> str | None:
        value = table.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fault((*at, name), f"it must be {_TEXT}")
            return None
        if not value.strip() or not value.isprintable():
            self.fault((*at, name), "it must not be empty or hold control characters")
            return None
        return value

    def flag(self, table: Mapping[str, Any], name: str, otherwise: bool, at: Key = ()) -> bool:
        value = table.get(name, otherwise)
        if isinstance(value, bool):
            return value
        self.fault((*at, name), f"it must be {_FLAG}, without quotes")
        return otherwise

    def whole(self, table: Mapping[str, Any], name: str, least: int, otherwise: int, at: Key = ()) -> int:
        """A whole number of at least `least`."""
        value = table.get(name, otherwise)
        # Truth values are whole numbers to Python.
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fault((*at, name), f"it must be a whole number, {least} or more")
            return otherwise
        return value

    def word(self, table: Mapping[str, Any], at: Key, name: str, words: Sequence[str]) -> str | None:
        value = self.text_at(table, at, name)
        if value is None or value in words:
            return value
        meant = near(value, words)
        hint = f"did you mean {meant!r}?" if meant else f"it must be one of: {', '.join(words)}"
        self.fault((*at, name), f"{short(value)!r} is not known; {hint}")
        return None


def short(text: str) -> str:
    """The text, cut where it is too long to be quoted."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def near(word: str, known: Sequence[str]) -> str | None:
    """Which of the known words was probably meant."""
    from difflib import get_close_matches  # only a mistake pays for it

    return next(iter(get_close_matches(word, known, 1, 0.6)), None)


def _shown(key: Key) -> str:
    """The key as an operator would say it: `source 2: url`."""
    match key:
        case (str(table), int(index), *rest):
            inside = [".".join(short(str(part)) for part in rest)] if rest else []
            return ": ".join([f"{short(table)} {index + 1}", *inside])
        case _:
            return ".".join(short(str(part)) for part in key)
