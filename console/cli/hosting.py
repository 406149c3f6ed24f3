"""The verb `host`: serves the agents that a file names, until Ctrl-C."""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
import ssl
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console import host_file
from console.cli import logs, out, values
from console.cli.ends import Ends
from console.cli.exits import Fail, Usage
from console.cli.targets import operator
from console.config import read_token
from console.host_file import AgentEntry, HostFile
from watchfloor.errors import AddressInUse, ConfigError, WatchfloorError
from watchfloor.harness.base import AgentHarness
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.process import WITHHELD
from watchfloor.harness.program import ProgramHarness
from watchfloor.harness.streamed import Streamed
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.principals import Principal
from watchfloor.host.serving.handshake import is_loopback
from watchfloor.host.serving.server import Host
from watchfloor.protocol.frames import DoResume
from watchfloor.words import Lifecycle, Role

_UNREACHABLE = 8
_TERMINAL = (120, 40)


def host(args: Namespace) -> int:
    """Serve what a file names until Ctrl-C. Raises AddressInUse, ConfigError, StorageError, Usage, Fail."""
    logs.keep()
    file = host_file.load(Path(args.file))
    sys.path.insert(0, str(file.path.parent))
    harnesses = [(agent, harness_of(agent, file)) for agent in file.agents]
    return asyncio.run(_host(file, harnesses))


async def _host(file: HostFile, harnesses: list[tuple[AgentEntry, AgentHarness]]) -> int:
    address, tokens = _address(file), _tokens(file)
    tls = tls_context(file.tls_cert, file.tls_key) if file.tls_cert and file.tls_key else None
    log = SqliteLog(file.log) if file.log is not None else None
    ends = Ends()
    with ends.by_signals():
        async with Host(name=file.name, tokens=tokens, log=log, hosts=file.hosts) as serving:
            url = await serve(serving, address, tls=tls, insecure=file.insecure, stands=True)
            for agent, harness in harnesses:
                _add(serving, agent, harness)
            await serving.list_stored()
            out.note(f"listening on {url}")
            if serving.announce_fault is not None:
                out.note(f"consoles will not find this host by themselves: {serving.announce_fault}")
            await ends.asked.wait()
    return ends.status


def _add(serving: Host, agent: AgentEntry, harness: AgentHarness) -> None:
    """Under its name as its id, so that the log knows it again."""
    cwd = str(agent.cwd) if agent.cwd is not None else str(Path.cwd())
    known = agent.name in serving.core.log.sessions()
    text = agent.text if agent.start else None
    serving.add(harness, name=agent.name, id=agent.name, cwd=cwd, text=text, start=agent.start)
    core = serving.core.session(agent.name)
    if agent.kind == "acp" and agent.start and not known and core.lifecycle is Lifecycle.IDLE and text is None:
        # One that cannot be started says so now, and not at the first message.
        serving.command(agent.name, DoResume(), by=operator())


def _tokens(file: HostFile) -> dict[str, Principal]:
    if not file.tokens:
        return {secrets.token_urlsafe(24): Principal(operator())}
    tokens: dict[str, Principal] = {}
    for entry in file.tokens:
        token = read_token(entry.file)
        if token in tokens:
            raise ConfigError(f"{entry.file}: this token is that of {tokens[token].name!r} too: give each its own")
        tokens[token] = Principal(entry.name, Role(entry.role))
    return tokens


def _address(file: HostFile) -> tuple[str, int]:
    try:
        address: tuple[str, int] = values.address(file.serve)
    except ArgumentTypeError as fault:
        raise ConfigError(f"{file.path}: serve: {fault}") from None
    return address


async def serve(
    serving: Host,
    address: tuple[str, int],
    *,
    tls: ssl.SSLContext | None = None,
    insecure: bool = False,
    announce: bool = True,
    stands: bool = False,
    token_known: bool = True,
    given_by: str = "--token-file",
) -> str:
    """Have a host listen. `token_known`: somebody else can have its token; by the flag `given_by` they could.

    Raises AddressInUse, Usage, Fail.
    """
    why = serving.unsafe(address[0], tls=tls is not None, insecure=insecure)
    if why is None and not token_known and not insecure and not is_loopback(address[0]):
        why = f"{address[0]} is reached from other machines, whose consoles must know the token: give it by {given_by}"
    if why is not None:
        raise Usage(f"{why}; or serve on 127.0.0.1, [::1] or localhost")
    try:
        return await serving.serve(*address, announce=announce, stands=stands, tls=tls, insecure=insecure)
    except AddressInUse:
        raise
    except WatchfloorError as fault:
        raise Fail(str(fault), _UNREACHABLE) from None


def tls_context(cert: Path, key: Path) -> ssl.SSLContext:
    """What a host proves itself with. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
    except FileNotFoundError:
        missing = cert if not cert.exists() else key
        raise ConfigError(f"{missing}: there is no such file") from None
    except (OSError, ssl.SSLError) as fault:
        why = fault.strerror or getattr(fault, "reason", None) or str(fault)
        raise ConfigError(
            f"{cert}, {key}: they cannot be used for TLS ({why}): give a certificate and its key"
        ) from None
    return context


# --- what runs an agent --------------------------------------------------------------------


def harness_of(agent: AgentEntry, file: HostFile) -> AgentHarness:
    """What runs the agent. Raises ConfigError."""
    env = {k: v for k, v in {**os.environ, **agent.env}.items() if k not in WITHHELD}
    cwd = str(agent.cwd) if agent.cwd is not None else None
    match agent.kind:
        case "program":
            return ProgramHarness(
                agent.command,
                cwd=cwd,
                env=env,
                stdin=agent.stdin,
                observe=agent.observe,
                grace_s=agent.grace_s,
                terminal=_TERMINAL if agent.pty else None,
            )
        case "acp":
            with _extra(agent, file, "acp", "acp"):
                from watchfloor.harness.acp import AcpHarness

                return AcpHarness(agent.command, cwd=cwd, env=env, grace_s=agent.grace_s)
        case "pydantic_ai":
            with _extra(agent, file, "pydantic-ai", "pydantic_ai"):
                from watchfloor.harness.pydantic_ai import PydanticAiHarness

                with _told(agent, file):
                    return PydanticAiHarness(_object(agent, file), grace_s=agent.grace_s)
        case "harness":
            found = _object(agent, file)
            with _told(agent, file):
                if isinstance(found, type) or not hasattr(found, "capabilities") or not hasattr(found, "start"):
                    raise TypeError("a harness is named, as in counter = Counter(), not what one is made of")
            # One that says whether it starts by itself is of the larger seam.
            given: AgentHarness = found if hasattr(found, "starts_itself") else Streamed(found, grace_s=agent.grace_s)
            return given
        case _:
            with _told(agent, file):
                return FunctionHarness(_object(agent, file), grace_s=agent.grace_s)


@contextmanager
def _told(agent: AgentEntry, file: HostFile) -> Iterator[None]:
    """An object that cannot be run is a fault of the file."""
    try:
        yield
    except TypeError as fault:
        raise ConfigError(f"{file.path}: {agent.name}: {agent.object}: {fault}") from None


class _extra:
    """Says which extra is missing."""

    def __init__(self, agent: AgentEntry, file: HostFile, extra: str, package: str) -> None:
        self._says = f"{file.path}: {agent.name}: it needs an extra: pip install 'watchfloor-console[{extra}]'"
        self._package = package

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == self._package:
            raise ConfigError(self._says) from None


def _object(agent: AgentEntry, file: HostFile) -> Any:
    module, _, name = agent.object.partition(":")
    try:
        found = importlib.import_module(module)
    except Exception as fault:
        why = f"{type(fault).__name__}: {fault}"
        raise ConfigError(f"{file.path}: {agent.name}: {module} cannot be imported ({why})") from None
    if not hasattr(found, name):
        raise ConfigError(f"{file.path}: {agent.name}: {module} has no {name!r}")
    return getattr(found, name)
