"""Any agent that speaks the Agent Client Protocol, as a session: a program on whose input and output it is spoken.

Needs the package `agent-client-protocol` (`pip install 'watchfloor[acp]'`). The agent is given no files and no
terminal of ours: what it does it does by itself, and asks for permission where it wants to.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from acp import PROTOCOL_VERSION, RequestError
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
)
from pydantic import ValidationError

from watchfloor.errors import HarnessFailure, ProtocolError, TransportError, one_line
from watchfloor.harness.acp_session import AcpSession, error_words
from watchfloor.harness.base import AttemptSpec, SessionPort
from watchfloor.harness.process import Process
from watchfloor.protocol.model import Capabilities, NoOptions, SendOptions, StopOptions, Traits
from watchfloor.words import Priority

CAPABILITIES: Final = Capabilities(
    send=SendOptions(priorities=tuple(Priority)),
    resume=NoOptions(),
    interrupt=NoOptions(),
    stop=StopOptions(kill=True),
    approve=NoOptions(),
    notify=NoOptions(),
    delete=NoOptions(),
)
"""What the protocol has means for. It knows no pause, and no way to change what an agent remembers."""

NOTE: Final = "acp_session"
_AUTH_REQUIRED = -32000


class AcpHarness:
    """Runs an agent of the Agent Client Protocol for each attempt.

    `argv`: the program and its arguments. `cwd`: the folder that it works in (else that of the session, else ours).
    `env`: its whole environment (None: ours, without operators' tokens). `grace_s`: seconds that it has to end its
    turn after an interrupt, and to end itself when it is stopped. `patience_s`: seconds that it has to begin a session.
    `ended` gets the return code (negative: the signal) once a process that had begun a session is over.

    One prompt runs at a time: a message that comes meanwhile waits in the mailbox and is the next prompt. A new attempt
    is a new process; where the agent says that it can, it takes up the session of the one before.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        grace_s: float = 5.0,
        patience_s: float = 60.0,
        ended: Callable[[int], None] | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._cwd = cwd
        self._env = None if env is None else dict(env)
        self._grace_s = grace_s
        self._patience_s = patience_s
        self._ended = ended

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def traits(self) -> Traits:
        return Traits(stop_cuts_step=True)

    @property
    def starts_itself(self) -> bool:
        return False

    @property
    def grace_s(self) -> float:
        return self._grace_s

    async def start(self, spec: AttemptSpec, port: SessionPort) -> AcpSession:
        """Start the agent and begin a session with it.

        Raises HarnessFailure, TransportError or ProtocolError, with one line that says why it cannot be started, or
        would not begin.
        """
        folder = os.path.abspath(self._cwd or spec.cwd or os.getcwd())  # noqa: ASYNC240 - touches no disk
        process = Process.spawn(self._argv, cwd=folder, env=self._env, stdin=True)
        session = AcpSession(process, port, CAPABILITIES, self._grace_s, self._ended)
        begun = False
        try:
            async with asyncio.timeout(self._patience_s):
                line = f"{shlex.join(self._argv)}  (process {process.pid})"
                session.begin(line, await self._shake(session, port, folder))
            begun = True
        except TimeoutError:
            raise TransportError(f"the agent began no session within {self._patience_s:g} s") from None
        except ConnectionError:
            raise HarnessFailure(f"the agent ended before a session began: {await session.words()}") from None
        except RequestError as error:
            raise HarnessFailure(f"the agent would not begin a session: {error_words(error)}") from error
        except ValidationError as error:
            raise ProtocolError("the agent does not answer as the Agent Client Protocol has it") from error
        finally:
            if not begun:
                await session.abandon()
        return session

    async def _shake(self, session: AcpSession, port: SessionPort, folder: str) -> str:
        """Agree on the protocol, and begin or take up a session; returns the agent's id of it."""
        connection = session.connection
        answer = await connection.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=False, write_text_file=False), terminal=False
            ),
            client_info=Implementation(name="watchfloor", version="1"),
        )
        if answer.protocol_version != PROTOCOL_VERSION:
            raise ProtocolError(
                f"the agent speaks version {answer.protocol_version} of the Agent Client Protocol, and only version "
                f"{PROTOCOL_VERSION} is spoken here"
            )
        # The agent's id of what we call a session: it outlives attempts, and the host.
        notes = port.conversation.notes
        known = notes.get(NOTE)
        if known is not None and await self._take_up(session, connection, answer, known, folder):
            return known
        try:
            new = await connection.new_session(cwd=folder, mcp_servers=[])
        except RequestError as error:
            if error.code != _AUTH_REQUIRED:
                raise
            raise HarnessFailure(f"the agent wants its user to log in first{_ways(answer)}") from None
        notes[NOTE] = new.session_id
        return new.session_id

    async def _take_up(
        self,
        session: AcpSession,
        connection: ClientSideConnection,
        answer: InitializeResponse,
        known: str,
        folder: str,
    ) -> bool:
        can = answer.agent_capabilities or AgentCapabilities()
        try:
            if can.session_capabilities is not None and can.session_capabilities.resume is not None:
                await connection.resume_session(session_id=known, cwd=folder, mcp_servers=[])
            elif can.load_session:
                # It tells all that was said before; that stands in our events already.
                await connection.load_session(session_id=known, cwd=folder, mcp_servers=[])
            else:
                session.notice("the agent cannot take up a session: it begins a new one, and remembers nothing")
                return False
        except (RequestError, ValidationError) as error:
            why = error_words(error) if isinstance(error, RequestError) else one_line(error)
            session.notice(f"the agent did not take up its session ({why}): it begins a new one, and remembers nothing")
            return False
        return True


def _ways(answer: InitializeResponse) -> str:
    names = [method.name for method in answer.auth_methods or () if method.name]
    return f" ({', '.join(names)})" if names else ""
