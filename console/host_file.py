"""The file of `watchfloor host`: which agents a host runs, where it serves, and who is let in.

Every error names file, line and key, and says what to do; all errors of a file are told at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from console.files import expanded
from console.places import text_of
from console.toml_reader import TomlReader, toml
from themes.lines import Key
from watchfloor.errors import ConfigError

AgentKind: TypeAlias = Literal["program", "acp", "function", "pydantic_ai", "harness"]
RoleWord: TypeAlias = Literal["operator", "observer", "agent"]

_TOLD: Final = 20
_KEYS: Final = ("name", "serve", "insecure", "hosts", "log", "tls_cert", "tls_key", "token", "agent")
_TOKEN_KEYS: Final = ("name", "role", "file")
_AGENT_KEYS: Final = (
    "name", "kind", "command", "object", "cwd", "env", "text", "stdin", "observe", "pty", "start", "grace_s"
)  # fmt: skip
_KINDS: Final = ("program", "acp", "function", "pydantic_ai", "harness")
_ROLES: Final = ("operator", "observer", "agent")
_COMMANDED: Final = ("program", "acp")
_OF_PROGRAMS: Final = ("stdin", "observe", "pty")


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """One `[[token]]`: whoever has what is in the file comes in by this name, in this role."""

    name: str
    file: Path
    role: RoleWord = "operator"


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One `[[agent]]`. `command` for programs and agents of the Agent Client Protocol, `object` ("module:name") for
    Python ones. `env` is added to the host's own. `text` is sent when it begins; `start`: begin with the host."""

    name: str
    kind: AgentKind = "program"
    command: tuple[str, ...] = ()
    object: str = ""
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    stdin: bool = False
    observe: bool = False
    pty: bool = False
    start: bool = True
    grace_s: float = 5.0


@dataclass(frozen=True, slots=True)
class HostFile:
    """What the file says. Paths in it are relative to its folder."""

    path: Path
    name: str
    serve: str = "127.0.0.1:0"
    insecure: bool = False
    hosts: tuple[str, ...] = ()
    log: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tokens: tuple[TokenEntry, ...] = ()
    agents: tuple[AgentEntry, ...] = ()


def load(path: Path) -> HostFile:
    """Read a file. Raises ConfigError, a line for each fault."""
    where = path.absolute()
    try:
        text = text_of(where, must_exist=True)
    except ConfigError as fault:
        raise ConfigError(str(fault).replace("; `watchfloor config init` writes one", "")) from None
    reader = _Reader(text, where, _TOLD)
    tree = toml(text, where)
    reader.unknown_keys(tree, _KEYS)
    file = HostFile(
        path=where,
        name=reader.text_at(tree, (), "name") or where.stem,
        serve=reader.text_at(tree, (), "serve") or "127.0.0.1:0",
        insecure=reader.flag(tree, "insecure", False),
        hosts=reader.texts(tree, (), "hosts"),
        log=reader.path_at(tree, (), "log"),
        tls_cert=reader.path_at(tree, (), "tls_cert"),
        tls_key=reader.path_at(tree, (), "tls_key"),
        tokens=tuple(reader.token(table, at) for table, at in reader.tables(tree, "token")),
        agents=tuple(reader.agent(table, at) for table, at in reader.tables(tree, "agent")),
    )
    if (file.tls_cert is None) != (file.tls_key is None):
        reader.fault(("tls_cert" if file.tls_key is None else "tls_key",), "tls_cert and tls_key come together")
    if not file.agents and "agent" not in tree:
        reader.fault((), "it names no agent: write one as [[agent]], with name and command")
    reader.distinct("agent", [agent.name for agent in file.agents])
    reader.distinct("token", [token.name for token in file.tokens])
    if reader.told:
        raise ConfigError("\n".join(reader.told))
    return file


class _Reader(TomlReader):
    """With what stands in these files alone."""

    def tables(self, tree: Mapping[str, Any], name: str) -> list[tuple[Mapping[str, Any], Key]]:
        value = tree.get(name, [])
        if isinstance(value, list) and all(isinstance(table, dict) for table in value):
            return [(table, (name, at)) for at, table in enumerate(value)]
        self.fault((name,), f"write it as [[{name}]], once for each")
        return []

    def texts(self, table: Mapping[str, Any], at: Key, name: str) -> tuple[str, ...]:
        value = table.get(name, [])
        if isinstance(value, list) and all(isinstance(one, str) and "\0" not in one for one in value):
            return tuple(value)
        self.fault((*at, name), 'it must be a list of texts, as in ["make", "test"]')
        return ()

    def path_at(self, table: Mapping[str, Any], at: Key, name: str) -> Path | None:
        value = self.text_at(table, at, name)
        if value is None:
            return None
        try:
            return self.where.parent / expanded(value)
        except ConfigError as fault:
            self.fault((*at, name), str(fault))
            return None

    def flag_at(self, table: Mapping[str, Any], at: Key, name: str, otherwise: bool) -> bool:
        value = table.get(name, otherwise)
        if isinstance(value, bool):
            return value
        self.fault((*at, name), "it must be true or false, without quotes")
        return otherwise

    def token(self, table: Mapping[str, Any], at: Key) -> TokenEntry:
        self.unknown_keys(table, _TOKEN_KEYS, at)
        file = self.path_at(table, at, "file")
        if "file" not in table:
            self.fault(at, "it needs the file that holds the token: file = ...")
        name = self.text_at(table, at, "name")
        if "name" not in table:
            self.fault(at, "it needs the name of whoever has it: name = ...")
        role = self.word(table, at, "role", _ROLES) or "operator"
        return TokenEntry(name or "", file or Path(), cast(RoleWord, role))

    def agent(self, table: Mapping[str, Any], at: Key) -> AgentEntry:
        self.unknown_keys(table, _AGENT_KEYS, at)
        name = self.text_at(table, at, "name")
        if "name" not in table:
            self.fault(at, "it needs a name of its own: name = ...")
        kind = cast(AgentKind, self.word(table, at, "kind", _KINDS) or "program")
        self._runs(table, at, kind)
        env = table.get("env", {})
        if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
            self.fault((*at, "env"), 'it must be a table of texts, as in { LANG = "C" }')
            env = {}
        grace = table.get("grace_s", 5.0)
        if isinstance(grace, bool) or not isinstance(grace, int | float) or not 0 <= grace <= 3600:
            self.fault((*at, "grace_s"), "it must be a number of seconds, 0 to 3600")
            grace = 5.0
        flags = {flag: self.flag_at(table, at, flag, False) for flag in _OF_PROGRAMS}
        text = table.get("text")
        if text is not None and not isinstance(text, str):
            self.fault((*at, "text"), "it must be a text in quotes")
            text = None
        return AgentEntry(
            name=name or "",
            kind=kind,
            command=self.texts(table, at, "command"),
            object=self.text_at(table, at, "object") or "",
            cwd=self.path_at(table, at, "cwd"),
            env=env,
            text=text,
            start=self.flag_at(table, at, "start", True),
            grace_s=float(grace),
            **flags,
        )

    def _runs(self, table: Mapping[str, Any], at: Key, kind: AgentKind) -> None:
        """What runs it must be there, and what is of no use must not."""
        if kind in _COMMANDED:
            if not table.get("command"):
                self.fault(at, f'{kind} needs a command, as in command = ["make", "test"]')
            self._unfit(table, at, ("object",), f"{kind} is run by its command")
        else:
            value = table.get("object")
            if not isinstance(value, str) or not all(value.partition(":")[::2]):
                self.fault(at, f'{kind} needs an object of Python, as in object = "agents:deploy"')
            self._unfit(table, at, ("command", "env"), f"{kind} is run in the host itself")
        if kind != "program":
            self._unfit(table, at, _OF_PROGRAMS, "it is for programs only")

    def _unfit(self, table: Mapping[str, Any], at: Key, names: Sequence[str], why: str) -> None:
        for name in names:
            if name in table:
                self.fault((*at, name), why)

    def distinct(self, table: str, names: Sequence[str]) -> None:
        for at, name in enumerate(names):
            if name and name in names[:at]:
                self.fault((table, at, "name"), f"the name {name!r} is taken by another one")
