"""The operator's configuration: one TOML file, read with the standard library.

Every error names file, line and key, and says what to do; all errors of a file are told at once.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from console import looks
from console.actions import ACTIONS
from console.files import expanded, read
from console.keymap import key_faults, key_names
from themes.lines import Key, line_of
from watchfloor.errors import ConfigError

RecordWord: TypeAlias = Literal["all", "watched", "none"]
AuditWord: TypeAlias = Literal["on", "required"]

STILL: Final = "WATCHFLOOR_REDUCED_MOTION"
"""The environment variable that asks for reduced motion, whatever the file says."""

TEMPLATE: Final = """\
# Watchfloor reads this file when it starts. `watchfloor config check` says what is wrong with it.

# theme = "watchfloor-dark"
# read_only = false       # true: watch only, whatever the sources allow
# audit = "on"            # "required": no intervention unless it can be written down
# mouse = true
# ascii = false           # true: glyphs in plain ASCII
# reduced_motion = false  # true: nothing blinks, slides or counts down; so does WATCHFLOOR_REDUCED_MOTION=1

# Themes of your own lie beside this file, in themes/NAME.toml; NO_COLOR wins over every theme.

# Other keys, by the names of actions (the help lists both); several are parted by commas, "" means none.
#
# [keys]
# approve = "f2"
# next = "w,i"

# A source is a host that the console connects to. Hosts of yours on this machine are found without an entry.
#
# [[source]]
# name = "build-farm"
# url = "ws://127.0.0.1:7340"
# token_file = "~/.config/watchfloor/build-farm.token"   # or: token_env = "BUILD_FARM_TOKEN"
# record = "all"          # which sessions are followed by themselves: "all", "watched" or "none"
"""


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """One `[[source]]`. At most one of `token_env` (a variable's name) and `token_file` is set."""

    name: str
    url: str
    token_env: str | None = None
    token_file: Path | None = None
    record: RecordWord = "all"

    def token(self) -> str | None:
        """The token, None where none is configured. Raises ConfigError when it cannot be had."""
        if self.token_env is not None:
            return env_token(self.token_env, f"source {self.name!r}")
        return None if self.token_file is None else read_token(self.token_file)


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says; a missing file is the same as an empty one. `theme` None: the default theme.

    `keys` holds the keys of those actions that were given others, by their ids. `reduced_motion` is true as well where
    the environment asks for it.
    """

    path: Path
    sources: tuple[SourceConfig, ...] = ()
    theme: str | None = None
    read_only: bool = False
    audit: AuditWord = "on"
    mouse: bool = True
    ascii: bool = False
    reduced_motion: bool = False
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def config_path() -> Path:
    """Where the configuration is: `WATCHFLOOR_CONFIG`, else below the user's configuration folder.

    Raises ConfigError where that is not known.
    """
    if named := os.environ.get("WATCHFLOOR_CONFIG"):
        return expanded(named)
    return _base("XDG_CONFIG_HOME", "~/.config") / "watchfloor" / "config.toml"


def state_folder() -> Path:
    """Where this console keeps what it writes: audit files and its log. Raises ConfigError where that is not known."""
    return _base("XDG_STATE_HOME", "~/.local/state") / "watchfloor"


def load(path: Path | None = None) -> Config:
    """Read the configuration; without `path`, from where `config_path` says.

    Raises:
        ConfigError: it cannot be used; the message has one line for each fault. A file that was named (by `path` or by
            `WATCHFLOOR_CONFIG`) must exist.
    """
    named = path is not None or bool(os.environ.get("WATCHFLOOR_CONFIG"))
    where = path or config_path()
    try:
        text = read(where).decode("utf-8")
    except FileNotFoundError:
        if named:
            raise ConfigError(f"{where}: there is no such file; `watchfloor config init` writes one") from None
        return parse("", where)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: it is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{where}: it cannot be read: {error.strerror or error}") from None
    return parse(text, where)


def parse(text: str, where: Path) -> Config:
    """The configuration from TOML; `where` names it in errors. Raises ConfigError as `load` does."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{where}: its values are nested too deeply") from None
    except ValueError as error:
        why = error if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"
        raise ConfigError(f"{where}: it is not TOML: {why}") from None
    reader = _Reader(text, where)
    config = _config(reader, data, where)
    if reader.faults:
        told = [fault.text for fault in sorted(reader.faults, key=lambda fault: fault.line)]
        more = [f"{where}: and {reader.untold} more"] if reader.untold else []
        raise ConfigError("\n".join([*told, *more]))
    return config


def read_token(path: Path) -> str:
    """The token in the file: its first line. Raises ConfigError when others may read it, or there is none."""
    where = expanded(path)
    try:
        line, _, _ = read(where, private=True).partition(b"\n")
        token = line.decode("ascii").strip()
    except FileNotFoundError:
        raise ConfigError(f"{where}: there is no such token file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: a token holds printable ASCII characters only") from None
    except OSError as error:
        raise ConfigError(f"{where}: the token file cannot be read: {error.strerror or error}") from None
    if not token or not token.isprintable() or " " in token or len(token) > 4096:
        raise ConfigError(f"{where}: its first line must be the token: printable ASCII without blanks")
    return token


def env_token(name: str, for_what: str) -> str:
    """The token in the environment variable. Raises ConfigError when it is not set."""
    token = os.environ.get(name, "").strip()
    if not token:
        raise ConfigError(f"{for_what}: the environment variable {name} with its token is not set")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{for_what}: {name} does not hold a token: printable ASCII without blanks")
    return token


def _base(variable: str, otherwise: str) -> Path:
    named = os.environ.get(variable)
    # Relative folders in these variables are to be ignored, by the convention that defines them.
    if named and Path(named).is_absolute():
        return Path(named)
    try:
        return Path(otherwise).expanduser()
    except RuntimeError:
        raise ConfigError(f"your home folder is not known: set HOME, or {variable}") from None


# --- checking ------------------------------------------------------------------------------

_TOLD: Final = 20
"""Faults of one file that are told; whoever has more has given another file."""
_LONGEST: Final = 80

_TOP_KEYS: Final = ("source", "theme", "read_only", "audit", "mouse", "ascii", "reduced_motion", "keys")
_SOURCE_KEYS: Final = ("name", "url", "token_env", "token_file", "record")
_TYPES: Final = {str: "a text in quotes", bool: "true or false", list: "a list of [[source]] tables"}


@dataclass(frozen=True, slots=True)
class _Fault:
    line: int
    text: str


@dataclass(slots=True)
class _Reader:
    """Takes typed values out of the parsed file and notes what is wrong with them."""

    text: str
    where: Path
    faults: list[_Fault] = field(default_factory=list)
    untold: int = 0

    def fault(self, key: Key, says: str) -> None:
        if len(self.faults) == _TOLD:
            self.untold += 1
            return
        line = line_of(self.text, key)
        self.faults.append(_Fault(line, f"{self.where}:{line}: {_shown(key)}: {says}"))

    def unknown_keys(self, table: Mapping[str, Any], known: Sequence[str], at: Key = ()) -> None:
        for name in table:
            if name not in known:
                near = _near(name, known)
                hint = f"did you mean {near}?" if near else f"there are: {', '.join(known)}"
                self.fault((*at, name), f"there is no such key; {hint}")

    def text_at(self, table: Mapping[str, Any], at: Key, name: str) -> str | None:
        value = table.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fault((*at, name), f"it must be {_TYPES[str]}")
            return None
        if not value.strip() or not value.isprintable():
            self.fault((*at, name), "it must not be empty or hold control characters")
            return None
        return value

    def flag(self, table: Mapping[str, Any], name: str, otherwise: bool) -> bool:
        value = table.get(name, otherwise)
        if isinstance(value, bool):
            return value
        self.fault((name,), f"it must be {_TYPES[bool]}, without quotes")
        return otherwise

    def word(self, table: Mapping[str, Any], at: Key, name: str, words: Sequence[str]) -> str | None:
        value = self.text_at(table, at, name)
        if value is None or value in words:
            return value
        near = _near(value, words)
        hint = f"did you mean {near!r}?" if near else f"it must be one of: {', '.join(words)}"
        self.fault((*at, name), f"{_cut(value)!r} is not known; {hint}")
        return None


def _config(reader: _Reader, data: Mapping[str, Any], where: Path) -> Config:
    reader.unknown_keys(data, _TOP_KEYS)
    audit = reader.word(data, (), "audit", get_args(AuditWord))
    return Config(
        path=where,
        sources=_sources(reader, data.get("source", [])),
        theme=reader.word(data, (), "theme", looks.names(looks.themes_folder(where))) if "theme" in data else None,
        read_only=reader.flag(data, "read_only", False),
        audit="required" if audit == "required" else "on",
        mouse=reader.flag(data, "mouse", True),
        ascii=reader.flag(data, "ascii", False),
        reduced_motion=reader.flag(data, "reduced_motion", False) or bool(os.environ.get(STILL)),
        keys=_keys(reader, data.get("keys", {})),
    )


def _keys(reader: _Reader, table: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(table, dict):
        reader.fault(("keys",), "write the keys below a line [keys], each as ACTION = KEY")
        return {}
    changed: dict[str, tuple[str, ...]] = {}
    for id, value in table.items():
        if isinstance(value, list) and all(isinstance(key, str) for key in value):
            # In a list a comma is a key.
            changed[id] = tuple(name for key in value for name in (key_names(key) or key_names("comma")))
        elif isinstance(value, str):
            changed[id] = key_names(value)
        else:
            reader.fault(("keys", id), 'it must be a text such as "f2" or "n,i", or a list of them')
    for fault in key_faults(changed, ACTIONS):
        reader.fault(("keys", fault.id), fault.says)
    return changed


def _sources(reader: _Reader, tables: object) -> tuple[SourceConfig, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        reader.fault(("source",), "write each source as a table of its own, under the line [[source]]")
        return ()
    found: list[SourceConfig] = []
    names: dict[str, int] = {}
    for index, table in enumerate(tables):
        at: Key = ("source", index)
        reader.unknown_keys({name: value for name, value in table.items() if name != "token"}, _SOURCE_KEYS, at)
        source = _source(reader, table, at, index)
        if source is None:
            continue
        if source.name in names:
            first = line_of(reader.text, ("source", names[source.name], "name"))
            reader.fault((*at, "name"), f"{source.name!r} is the name of another source already (line {first})")
        names.setdefault(source.name, index)
        found.append(source)
    return tuple(found)


def _source(reader: _Reader, table: Mapping[str, Any], at: Key, index: int) -> SourceConfig | None:
    url = reader.text_at(table, at, "url")
    if "url" not in table:
        reader.fault(at, 'url is missing; add url = "ws://HOST:PORT"')
    elif url is not None and (reason := url_fault(url)):
        reader.fault((*at, "url"), reason)
    name = reader.text_at(table, at, "name")
    if "name" not in table:
        reader.fault(at, 'name is missing; add name = "..."')
    env = reader.text_at(table, at, "token_env")
    file = reader.text_at(table, at, "token_file")
    if "token" in table:
        reader.fault((*at, "token"), "a token does not belong into this file; use token_file or token_env")
    if env is not None and file is not None:
        reader.fault((*at, "token_file"), "token_env is set as well; keep one of the two")
    record = reader.word(table, at, "record", get_args(RecordWord))
    if url is None or name is None:
        return None
    return SourceConfig(
        name=name,
        url=url,
        token_env=env,
        token_file=None if file is None else _beside(reader, (*at, "token_file"), file),
        record="watched" if record == "watched" else "none" if record == "none" else "all",
    )


def url_fault(url: str) -> str | None:
    """Why the text cannot be the URL of a source; None when it can. Says nothing of whether somebody answers there."""
    scheme, mark, rest = url.partition("://")
    if not mark or not scheme or not rest:
        return f"{_cut(url)!r} is not a URL; write it as ws://HOST:PORT"
    if "@" in rest.partition("/")[0]:
        return "a URL must not hold a user or a password; use a token file"
    if not rest.partition("/")[0]:
        return f"{_cut(url)!r} names no host; write it as ws://HOST:PORT"
    return None


def _beside(reader: _Reader, key: Key, file: str) -> Path | None:
    """A relative token file lies beside the configuration that names it, wherever the console is started."""
    try:
        return reader.where.parent / expanded(file)
    except ConfigError as fault:
        reader.fault(key, str(fault))
        return None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _near(word: str, known: Sequence[str]) -> str | None:
    from difflib import get_close_matches  # only a mistake pays for it

    return next(iter(get_close_matches(word, known, 1, 0.6)), None)


def _shown(key: Key) -> str:
    """The key as an operator would say it: `source 2: url`."""
    match key:
        case ("source", int(index), *rest):
            return ": ".join([f"source {index + 1}", *(_cut(str(part)) for part in rest)])
        case _:
            return ".".join(_cut(str(part)) for part in key)
