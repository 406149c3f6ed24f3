"""`policies.toml`, beside the configuration. Every error names file, line and key; all errors are told at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

from console.fleet.decisions.risk.model import RULES, RiskKind
from console.places import config_path, text_of
from console.policies.rules import Does, Policy
from console.toml_reader import TomlReader, near, short, toml
from themes.lines import Key, line_of
from watchfloor.errors import ConfigError

NAME: Final = "policies.toml"
_TOLD: Final = 20
_KEYS: Final = ("name", "do", "command", "path", "tool", "agent", "source", "risks", "until")
_CONDITIONS: Final = ("command", "path", "tool", "agent", "source")
_DOES: Final = tuple(does.value for does in Does)
_RISKS: Final = (*(kind.value for kind in RiskKind), *RULES)


def policies_path() -> Path:
    """Where the policies are: beside the configuration. Raises ConfigError where that is not known."""
    return config_path().parent / NAME


def load(path: Path | None = None) -> tuple[Policy, ...]:
    """The policies in their order; none where there is no file.

    Raises ConfigError where the file cannot be used, with a line for each fault; a file that was named must exist.
    """
    where = path or policies_path()
    return parse(text_of(where, must_exist=path is not None), where)


def parse(text: str, where: Path) -> tuple[Policy, ...]:
    """The policies from TOML; `where` names it in errors. Raises ConfigError as `load` does."""
    reader = TomlReader(text, where, _TOLD)
    data = toml(text, where)
    reader.unknown_keys(data, ("policy",))
    tables = data.get("policy", [])
    found: list[Policy] = []
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        reader.fault(("policy",), "write each policy as a table of its own, under the line [[policy]]")
        tables = []
    names: dict[str, int] = {}
    for index, table in enumerate(tables):
        at: Key = ("policy", index)
        reader.unknown_keys(table, _KEYS, at)
        policy = _policy(reader, table, at)
        if policy is None:
            continue
        if policy.name in names:
            reader.fault((*at, "name"), f"{policy.name!r} is the name of another policy already")
        names.setdefault(policy.name, index)
        found.append(policy)
    if reader.faults:
        raise ConfigError("\n".join(reader.told))
    return tuple(found)


def _policy(reader: TomlReader, table: Mapping[str, Any], at: Key) -> Policy | None:
    name = reader.text_at(table, at, "name")
    if "name" not in table:
        reader.fault(at, 'name is missing; add name = "..."')
    word = reader.word(table, at, "do", _DOES)
    if "do" not in table:
        reader.fault(at, f"do is missing; add do = {' or '.join(map(repr, _DOES))}")
    command = _command(reader, table, at)
    given = {key: reader.text_at(table, at, key) for key in _CONDITIONS[1:]}
    risks = _risks(reader, table, at)
    until = _until(reader, table, at)
    if name is None or word is None:
        return None
    does = Does(word)
    if not any(key in table for key in _CONDITIONS):
        reader.fault(at, f"it would match everything; add one of: {', '.join(_CONDITIONS)}")
    elif does is Does.APPROVE:
        if "command" not in table and "tool" not in table:
            reader.fault(at, "what is approved has to be named: add command, or tool, or tool and path")
    elif "risks" in table:
        reader.fault((*at, "risks"), "only what approves names risks")
    return Policy(
        name=name,
        does=does,
        command=command,
        path=given["path"],
        tool=given["tool"],
        agent=given["agent"],
        source=given["source"],
        risks=risks,
        until=until,
        line=line_of(reader.text, at),
    )


def _command(reader: TomlReader, table: Mapping[str, Any], at: Key) -> str | None:
    """A command may have several lines, which no other text may."""
    value = table.get("command")
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        reader.fault((*at, "command"), "it must be the whole command, a text in quotes")
        return None
    return value


def _risks(reader: TomlReader, table: Mapping[str, Any], at: Key) -> frozenset[str]:
    value = table.get("risks", [])
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        reader.fault((*at, "risks"), 'it must be a list of risks, such as ["destructive"]')
        return frozenset()
    for word in value:
        if word not in _RISKS:
            meant = near(word, _RISKS)
            hint = f"did you mean {meant!r}?" if meant else f"there are: {', '.join(kind.value for kind in RiskKind)}"
            reader.fault((*at, "risks"), f"{short(word)!r} is not known; {hint}")
    return frozenset(value)


def _until(reader: TomlReader, table: Mapping[str, Any], at: Key) -> int | None:
    """A date counts to its end; a time without a zone is of UTC."""
    value = table.get("until")
    if value is None:
        return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    elif isinstance(value, date):
        moment = datetime.combine(value, time.max, UTC)
    else:
        reader.fault((*at, "until"), "it must be a date or a time without quotes, such as 2030-12-31")
        return None
    try:
        return int(moment.timestamp() * 1000)
    except (OverflowError, ValueError, OSError):
        reader.fault((*at, "until"), "it is no time that a calendar has")
        return None
