"""The verbs that serve: `run` makes a program a session, `demo --serve` brings up the demo fleet, `bridge` serves a
foreign system natively."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import ssl
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from console.cli import logs, out
from console.cli.echo import Echo
from console.cli.ends import Ends
from console.cli.exits import OK, USAGE, Fail, Usage
from console.cli.hosting import serve, tls_context
from console.cli.naming import session_name
from console.cli.targets import named, operator
from console.config import load, read_token
from console.connectors.registry import connector_for
from console.demo.workspace import workspace
from watchfloor import runtime
from watchfloor.connector import Connector, Target
from watchfloor.errors import AgentError, ProtocolError
from watchfloor.harness.base import AgentHarness, AgentSession, AttemptSpec, SessionPort
from watchfloor.harness.process import exit_words
from watchfloor.harness.program import ProgramHarness
from watchfloor.harness.wrapped import WrappedHarness
from watchfloor.host.principals import Principal
from watchfloor.host.serving.handshake import is_loopback
from watchfloor.host.serving.joining import invited
from watchfloor.host.serving.server import Host
from watchfloor.protocol.frames import DoResume
from watchfloor.text import clean_line
from watchfloor.words import TERMINAL, Lifecycle

NO_PROGRAM: Final = 127
NOT_STARTED: Final = 126
AGENTS: Final = 8
RATE: Final = 20.0
SEED: Final = 1
_LOOPBACK: Final = ("127.0.0.1", 0)
_LEAVES_IN_S: Final = 5.0
"""Seconds that a reader who does not read may keep us once we were asked to end."""
_LONGEST_TOKEN: Final = 4096
_OPEN_TO_ALL: Final = "may operate it: --token-file F lets in only those who have the token"


# --- demo ----------------------------------------------------------------------------------


def demo(args: Namespace) -> int:
    """Serve the demo fleet until Ctrl-C. Raises AddressInUse, ConfigError, Usage, Fail."""
    logs.keep()
    # Agents of the demo fail on purpose: the console shows that, and our own log is not the place for it.
    logging.getLogger("watchfloor.harness").setLevel(logging.CRITICAL)
    token: str | None = None
    if args.until_stdin_ends:
        token = _first_line()
        if not token:
            return OK  # whoever started us is gone already
    elif args.token_file is not None:
        token = read_token(Path(args.token_file))
    return asyncio.run(_demo(args, token))


def _first_line() -> str:
    """The first line of standard input, empty where there is none. Raises Usage for one that is no token."""
    line = b""
    while len(line) <= _LONGEST_TOKEN and not line.endswith(b"\n"):
        # Byte by byte: what follows is for the event loop, which only waits for its end.
        if not (byte := os.read(sys.stdin.fileno(), 1)):
            return ""
        line += byte
    token = line.decode("ascii", "replace").removesuffix("\n")
    if not token or len(line) > _LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise Usage("the first line of standard input must be the token: printable ASCII without blanks")
    return token


async def _demo(args: Namespace, token: str | None) -> int:
    from console.demo.fleet import build

    ends = Ends()
    # Whatever asks us to end, from before the folder is made until after it is gone, ends us in order.
    with ends.by_signals(), _lifeline(ends, follow=args.until_stdin_ends), workspace() as folder:
        async with Host(name="demo", tokens=None if token is None else _tokens(token)) as host:
            # The console's own demo is nobody else's to find.
            url = await serve(
                host,
                args.serve,
                tls=_tls(args),
                insecure=args.insecure,
                announce=not args.until_stdin_ends,
            )
            await build(
                host,
                workspace=folder,
                agents=AGENTS if args.agents is None else args.agents,
                rate=RATE if args.rate is None else args.rate,
                seed=SEED if args.seed is None else args.seed,
            )
            if not ends.asked.is_set():
                out.line(clean_line(f"listening on {url}"))
                if token is None:
                    whoever = "anybody on this machine" if is_loopback(args.serve[0]) else "anybody who reaches it"
                    out.note(f"{whoever} {_OPEN_TO_ALL}")
                _note_if_hidden(host)
            await ends.asked.wait()
        # What an agent does in a thread would go on writing while the folder is removed.
        await asyncio.get_running_loop().shutdown_default_executor()
    return ends.status


@contextmanager
def _lifeline(ends: Ends, *, follow: bool) -> Iterator[None]:
    """Ask to end when standard input ends, if that is to be followed."""
    if not follow:
        yield
        return
    loop, handle = asyncio.get_running_loop(), sys.stdin.fileno()

    def read() -> None:
        if not os.read(handle, 4096):
            loop.remove_reader(handle)
            ends.ask(OK)

    loop.add_reader(handle, read)
    try:
        yield
    finally:
        loop.remove_reader(handle)


# --- run -----------------------------------------------------------------------------------


def run(args: Namespace) -> int:
    """Run a program and serve it. Raises AddressInUse, Usage, Fail."""
    logs.keep()
    name = args.program[0]
    if shutil.which(name) is None:
        if os.sep in name and Path(name).exists():
            what = "it is a folder" if Path(name).is_dir() else "it is not executable; chmod +x makes it so"
            raise Fail(f"{name!r} cannot be run: {what}", NOT_STARTED)
        raise Fail(f"there is no program {name!r}", NO_PROGRAM)
    echo, ends = Echo(), Ends()
    patience: float | None = _LEAVES_IN_S
    try:
        status = asyncio.run(_run(args, echo, ends))
        # Nothing of what the program said is lost on a slow reader, unless somebody wants us to end: also one whose
        # Ctrl-C fell into the moments after the host had ended.
        if not ends.was_asked:
            patience = None
        return status
    finally:
        echo.close(patience)


async def _run(args: Namespace, echo: Echo, ends: Ends) -> int:
    token = secrets.token_urlsafe(24) if args.token_file is None else read_token(Path(args.token_file))
    whom, parent = _to_join(args)
    name = args.name or session_name(args.program)
    over = asyncio.Event()
    status = OK
    session = url = ""

    def told(end: str) -> None:
        if args.exit or ends.was_asked:
            return
        # Without a runtime file nobody has the token.
        again = "" if args.observe or host.announce_fault is not None else _again(whom or host, session)
        echo.say(f"{end}; {again}Ctrl-C leaves")

    def ended(code: int) -> None:
        nonlocal status
        status = code if code >= 0 else 128 - code
        over.set()
        core = host.core.session(session)
        told(f"stopped {core.why}" if core.lifecycle is Lifecycle.STOPPED else _end_words(code))

    def halted(stands: bool, by: str | None) -> None:
        echo.say(("paused" if stands else "resumed") + (f" by {by}" if by is not None else ""))

    def not_started(why: str) -> None:
        nonlocal status
        status = NOT_STARTED
        over.set()
        if args.exit:
            echo.say(why)
        told(why)

    harness = _Watched(
        _agent(args.program, ended)
        if args.acp
        else ProgramHarness(
            args.program,
            stdin=args.stdin,
            observe=args.observe,
            echo=echo,
            ended=ended,
            halted=halted,
            terminal=_size() if args.pty else None,
        ),
        again=lambda attempt: echo.say(f"started again (attempt {attempt})"),
        not_started=not_started,
    )
    # Whatever asks us to end also while the host says good-bye to its clients ends us in order.
    with ends.by_signals():
        async with Host(name=name, tokens=_tokens(token)) as host:
            tls = _tls(args)
            if whom is None:
                url = await serve(
                    host,
                    args.serve or _LOOPBACK,
                    tls=tls,
                    insecure=args.insecure,
                    token_known=args.token_file is not None,
                )
            else:
                # One that was found by itself is found again where it is started anew, with another port and token.
                # Where it is not reached nothing has begun.
                found = args.join is None and invited(os.environ) is None
                await host.join(whom, moved=partial(_standing, whom.name) if found else None)
            # Whoever reads that it listens must find it, and its session; the program itself starts a moment later.
            id = None if whom is None else f"{name}-{secrets.token_hex(4)}"
            session = host.add(harness, name=name, id=id, parent=parent, cwd=str(Path.cwd()))
            if args.acp:
                # An agent that waits for a message would otherwise say only then that it cannot be started.
                host.command(session, DoResume(), by=operator())
            if whom is None:
                out.note(f"listening on {url}")
                _note_if_hidden(host)
            else:
                out.note(clean_line(f"joined {whom.url} as {session}"))
            await (_first(over, ends.asked) if args.exit else ends.asked.wait())
            if ends.asked.is_set():
                await _wind_up(host, session, ends, over)
    return ends.status if ends.was_asked else status


def _size() -> tuple[int, int]:
    """Columns and rows of the terminal that we are on, or of a usual one."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines


def _to_join(args: Namespace) -> tuple[Target | None, str | None]:
    """The host to join, and whose child the program is there; None where it is to be served by itself.

    Joined is what `--join` names, what invited this process, or, unless `--serve` says otherwise, the host of this user
    that stands on this machine. Raises ConfigError, Usage.
    """
    invitation = invited(os.environ)
    if args.join is not None:
        (place,) = named(args, load(), [args.join])
        return place.target, invitation[1] if invitation is not None else None
    if args.serve is not None or args.token_file is not None:
        return None, None
    if invitation is not None:
        return invitation
    return _standing(), None


def _standing(name: str | None = None) -> Target | None:
    """The host of this user that was brought up to be joined and whose token is known, of this name if one is given."""
    hosts = (local for local in runtime.hosts() if local.stands and local.token is not None)
    found = next((local for local in hosts if name in (None, local.name)), None)
    return None if found is None else Target(found.name, found.url, found.token)


def _again(host: Host | Target, session: str) -> str:
    return f"r in a console (or watchfloor resume {host.url} {session}) starts it again; "


def _end_words(code: int) -> str:
    return exit_words(code) if code < 0 else f"ended with status {code}"


def _agent(argv: Sequence[str], ended: Callable[[int], None]) -> AgentHarness:
    """A harness for an agent of the Agent Client Protocol. Raises Fail where the package for it is not there."""
    try:
        from watchfloor.harness.acp import AcpHarness
    except ModuleNotFoundError as fault:
        if fault.name is None or fault.name.partition(".")[0] != "acp":
            raise
        raise Fail("run --acp needs an extra: pip install 'watchfloor-console[acp]'", USAGE) from None
    return AcpHarness(argv, ended=ended)


class _Watched(WrappedHarness):
    """A harness of which one also hears when an attempt was started again, and when one could not be started at all."""

    def __init__(
        self, harness: AgentHarness, *, again: Callable[[int], None], not_started: Callable[[str], None]
    ) -> None:
        super().__init__(harness)
        self._again = again
        self._not_started = not_started

    async def start(self, spec: AttemptSpec, port: SessionPort) -> AgentSession:
        try:
            session = await super().start(spec, port)
        except (AgentError, ProtocolError) as fault:
            self._not_started(str(fault))
            raise
        except asyncio.CancelledError:
            self._not_started("it was ended before it had begun")
            raise
        if spec.attempt > 1:
            self._again(spec.attempt)
        return session


async def _wind_up(host: Host, session: str, ends: Ends, over: asyncio.Event) -> None:
    """Stop the program as an operator would, so that consoles see it; asked again, kill it."""
    by = operator()
    for kill in (False, True):
        if host.core.session(session).lifecycle in TERMINAL:
            return
        over.clear()
        ends.asked.clear()
        host.stop(session, kill=kill, reason=ends.reason, by=by)
        await _first(over, ends.asked)
        if over.is_set():
            return


# --- bridge --------------------------------------------------------------------------------


def bridge(args: Namespace) -> int:
    """Serve a foreign system until Ctrl-C. Raises AddressInUse, ConfigError, ConnectionFailed, Usage, Fail."""
    logs.keep()
    (place,) = named(args, load(), [args.url])
    return asyncio.run(_bridge(args, connector_for(place.target)))


async def _bridge(args: Namespace, connector: Connector) -> int:
    from watchfloor.bridge import Bridge
    from watchfloor.foreign import ForeignConnector

    if not isinstance(connector, ForeignConnector):
        raise Usage(f"{clean_line(connector.target.url)} is served by a host already: connect to it as it is")
    ends, over = Ends(), asyncio.Event()
    known = args.serve_token_file is not None
    tokens = _tokens(read_token(Path(args.serve_token_file)) if known else secrets.token_urlsafe(24))
    tls = _tls(args)
    with ends.by_signals():
        async with Bridge(connector, told=lambda line: out.note(clean_line(line)), tokens=tokens) as host:
            url = await serve(
                host, args.serve, tls=tls, insecure=args.insecure, token_known=known, given_by="--serve-token-file"
            )
            out.note(f"listening on {url}")
            _note_if_hidden(host)
            running = asyncio.create_task(host.run())
            running.add_done_callback(lambda _: over.set())
            await _first(over, ends.asked)
            if ends.was_asked:
                running.cancel()
            # What ended it by itself is raised here.
            await asyncio.gather(running, return_exceptions=ends.was_asked)
    return ends.status


# --- all -----------------------------------------------------------------------------------


def _tls(args: Namespace) -> ssl.SSLContext | None:
    """What is served with TLS proves itself with. Raises ConfigError."""
    return tls_context(Path(args.tls_cert), Path(args.tls_key)) if args.tls_cert is not None else None


def _note_if_hidden(host: Host) -> None:
    if host.announce_fault is not None:
        out.note(f"consoles will not find this host by themselves: {host.announce_fault}")


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of them is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _tokens(token: str) -> dict[str, Principal]:
    return {token: Principal(operator())}
