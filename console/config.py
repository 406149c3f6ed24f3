"""The operator's configuration: one TOML file, read with the standard library.

Every error names file, line and key, and says what to do; all errors of a file are told at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from console import looks
from console.actions import ACTIONS
from console.files import expanded, read
from console.keymap import key_faults, key_names
from console.places import config_path, text_of
from console.toml_reader import TomlReader, short, toml
from themes.lines import Key, line_of
from watchfloor.errors import ConfigError

if TYPE_CHECKING:
    from console.notifying.rules import Rules

RecordWord: TypeAlias = Literal["all", "watched", "none"]
AuditWord: TypeAlias = Literal["on", "required"]

STILL: Final = "WATCHFLOOR_REDUCED_MOTION"
"""The environment variable that asks for reduced motion, whatever the file says."""

KEEP_DAYS: Final = 30
KEEP_MB: Final = 2048
"""How long, and how much of, what sources sent is kept unless the file says otherwise."""

TEMPLATE: Final = """\
# Watchfloor reads this file when it starts. `watchfloor config check` says what is wrong with it.

# theme = "watchfloor-dark"
# read_only = false       # true: watch only, whatever the sources allow
# audit = "on"            # "required": no intervention unless it can be written down
# mouse = true
# bell = true             # false: no bell for what waits for you
# ascii = false           # true: glyphs in plain ASCII
# journal_days = 30       # how long what sources sent is kept on this disk; 0: nothing is kept
# journal_mb = 2048       # and how much of it at most
# reduced_motion = false  # true: nothing blinks, slides or counts down; so does WATCHFLOOR_REDUCED_MOTION=1

# Themes of your own lie beside this file, in themes/NAME.toml; NO_COLOR wins over every theme.

# How you are told that agents wait while you do not look; docs/notifications.md says more.
#
# [notify]
# terminal = "none"       # or "osc9" or "osc777": by the terminal, where it knows one of these
# desktop = false         # true: by notify-send
# command = ["/usr/local/bin/page-me"]       # a program of yours: the alert is in its environment and input
# webhook = "https://hooks.example/agents"   # posted as JSON
# webhook_secret_file = "~/.config/watchfloor/webhook.secret"   # signed with this
# details = false         # true: what agents ask is told as well, not only that they do
# quiet = "22:00-07:00"   # hours in which nothing is told
# quiet_for = ["bell", "terminal", "desktop", "command", "webhook"]   # or not by these
# escalate_after_s = 300  # what nobody has answered for so long is told once more; 0: it is not
# away_after_s = 60       # you count as away when no key was pressed for so long; 0: always

# Other keys, by the names of actions (the help lists both); several are parted by commas, "" means none.
#
# [keys]
# approve = "f2"
# next = "h,i"

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
    """One `[[source]]`. At most one of `token_env` (a variable's name) and `token_file` is set. `nth`: its place among
    them, from 0."""

    name: str
    url: str
    token_env: str | None = None
    token_file: Path | None = None
    record: RecordWord = "all"
    nth: int = field(default=0, compare=False)

    def token(self) -> str | None:
        """The token, None where none is configured. Raises ConfigError when it cannot be had."""
        if self.token_env is not None:
            return env_token(self.token_env, f"source {self.name!r}")
        return None if self.token_file is None else read_token(self.token_file)


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says; a missing file is the same as an empty one. `theme` None: the default theme.

    `keys` holds the keys of those actions that were given others, by their ids. `reduced_motion` is true as well where
    the environment asks for it. What sources sent is kept for `journal_days` (0: not at all), and at most `journal_mb`
    megabytes of it. `notify` None: the file has no such section.
    """

    path: Path
    sources: tuple[SourceConfig, ...] = ()
    theme: str | None = None
    read_only: bool = False
    audit: AuditWord = "on"
    mouse: bool = True
    bell: bool = True
    ascii: bool = False
    reduced_motion: bool = False
    journal_days: int = KEEP_DAYS
    journal_mb: int = KEEP_MB
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notify: Rules | None = None


def load(path: Path | None = None) -> Config:
    """Read the configuration; without `path`, from where `config_path` says.

    Raises:
        ConfigError: it cannot be used; the message has one line for each fault. A file that was named (by `path` or by
            `WATCHFLOOR_CONFIG`) must exist.
    """
    where = path or config_path()
    return parse(text_of(where, must_exist=path is not None or bool(os.environ.get("WATCHFLOOR_CONFIG"))), where)


def parse(text: str, where: Path) -> Config:
    """The configuration from TOML; `where` names it in errors. Raises ConfigError as `load` does."""
    reader = TomlReader(text, where, _TOLD)
    config = read_into(reader)
    if reader.faults:
        raise ConfigError("\n".join(reader.told))
    return config


def read_into(reader: TomlReader) -> Config:
    """As much of the configuration as can be read; what is wrong with it is left with the reader. Raises ConfigError
    for what is no TOML."""
    return _config(reader, toml(reader.text, reader.where), reader.where)


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


# --- checking ------------------------------------------------------------------------------

_TOLD: Final = 20
"""Faults of one file that are told at a start; `config check` tells more."""

_TOP_KEYS: Final = (
    "source",
    "theme",
    "read_only",
    "audit",
    "mouse",
    "bell",
    "ascii",
    "reduced_motion",
    "keys",
    "journal_days",
    "journal_mb",
    "notify",
)
_SOURCE_KEYS: Final = ("name", "url", "token_env", "token_file", "record")


def _config(reader: TomlReader, data: Mapping[str, Any], where: Path) -> Config:
    reader.unknown_keys(data, _TOP_KEYS)
    audit = reader.word(data, (), "audit", get_args(AuditWord))
    return Config(
        path=where,
        sources=_sources(reader, data.get("source", [])),
        theme=reader.word(data, (), "theme", looks.names(looks.themes_folder(where))) if "theme" in data else None,
        read_only=reader.flag(data, "read_only", False),
        audit="required" if audit == "required" else "on",
        mouse=reader.flag(data, "mouse", True),
        bell=reader.flag(data, "bell", True),
        ascii=reader.flag(data, "ascii", False),
        reduced_motion=reader.flag(data, "reduced_motion", False) or bool(os.environ.get(STILL)),
        journal_days=reader.whole(data, "journal_days", 0, KEEP_DAYS),
        journal_mb=reader.whole(data, "journal_mb", 1, KEEP_MB),
        keys=_keys(reader, data.get("keys", {})),
        notify=_notify(reader, data["notify"]) if "notify" in data else None,
    )


def _notify(reader: TomlReader, table: object) -> Rules:
    from console.notifying.rules import read_rules  # who has no such section does not wait for it

    return read_rules(reader, table)


def _keys(reader: TomlReader, table: object) -> dict[str, tuple[str, ...]]:
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


def _sources(reader: TomlReader, tables: object) -> tuple[SourceConfig, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        reader.fault(("source",), "write each source as a table of its own, under the line [[source]]")
        return ()
    found: list[SourceConfig] = []
    names: dict[str, int] = {}
    for index, table in enumerate(tables):
        at: Key = ("source", index)
        reader.unknown_keys({name: value for name, value in table.items() if name != "token"}, _SOURCE_KEYS, at)
        source = _source(reader, table, at, index)
        if source.name and source.name in names:
            first = line_of(reader.text, ("source", names[source.name], "name"))
            reader.fault((*at, "name"), f"{source.name!r} is the name of another source already (line {first})")
        names.setdefault(source.name, index)
        found.append(source)
    return tuple(found)


def _source(reader: TomlReader, table: Mapping[str, Any], at: Key, index: int) -> SourceConfig:
    """What of it can be read; a name or URL that cannot is empty."""
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
    return SourceConfig(
        name=name or "",
        url=url or "",
        token_env=env,
        token_file=None if file is None else _beside(reader, (*at, "token_file"), file),
        record="watched" if record == "watched" else "none" if record == "none" else "all",
        nth=index,
    )


def url_fault(url: str) -> str | None:
    """Why the text cannot be the URL of a source; None when it can. Says nothing of whether somebody answers there."""
    scheme, mark, rest = url.partition("://")
    if not mark or not scheme or not rest:
        return f"{short(url)!r} is not a URL; write it as ws://HOST:PORT"
    if "@" in rest.partition("/")[0]:
        return "a URL must not hold a user or a password; use a token file"
    if not rest.partition("/")[0]:
        return f"{short(url)!r} names no host; write it as ws://HOST:PORT"
    return None


def _beside(reader: TomlReader, key: Key, file: str) -> Path | None:
    """A relative token file lies beside the configuration that names it, wherever the console is started."""
    try:
        return reader.where.parent / expanded(file)
    except ConfigError as fault:
        reader.fault(key, str(fault))
        return None
