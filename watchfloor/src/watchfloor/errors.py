"""The exception tree.

WatchfloorError
├── CanonicalError            a value has no canonical form, so nothing can be bound to it
├── ProtocolError             a frame that cannot be read or written
├── ConnectionFailed          a source cannot be reached or will not speak with us
│   ├── Unreachable           nobody answers there
│   ├── NotAHost              somebody answers, and it is not a Watchfloor host
│   ├── NoCommonProtocol      a WebSocket server without our subprotocol
│   ├── Denied                401, or a refused Origin or Host header
│   └── ConnectionLost        an established connection ended
├── AddressInUse              a host cannot listen where it was told to
├── ConfigError               a file that an operator wrote cannot be used as it stands
├── StorageError              a file in which something is kept cannot be used; nothing in it was changed
│   ├── StorageCorrupt        it is damaged
│   ├── StorageNewer          a newer version wrote it
│   ├── StorageForeign        it is not what it is taken for
│   ├── StorageReadOnly       it cannot be written
│   ├── StorageFull           there is no room for more
│   └── StorageInUse          another process has it
└── AgentError                raised to the author of an agent
    ├── Interrupted           the turn was ended by an operator
    ├── LimitReached          the session has used up its budget
    ├── Deadlock              sessions would wait for each other
    ├── NotDelivered          no answer comes to a message
    ├── Stopped               the session was stopped
    ├── CapabilityNotSupported  the session never advertised this
    ├── StaleTarget           the attempt, turn or request is not the one that runs
    ├── ContractError         a harness broke its contract; deterministic, never retried
    ├── TransportError        a harness cannot reach what runs the agent, or does not any more
    ├── HarnessFailure        what runs the agent reports that it failed
    ├── NothingToRun          no message waits for an answer
    ├── RunFailed             a run ended by an error of the agent
    ├── SessionNotFound       no session of this id is stored
    ├── SessionBusy           it runs already
    ├── NotSuspended          nothing of the session waits for an answer
    ├── NotAnswered           the session waits for an answer
    ├── InvalidResponse       the answer does not fit what was asked
    ├── NoSuchTool            the agent was not built with a tool of this name
    ├── NotPossible           the state of the session forbids it
    └── Unsupported           this storage, or this agent, cannot do that
"""

from __future__ import annotations

from typing import Final

_MOST: Final = 300
"""Characters of an error in one line."""


class WatchfloorError(Exception):
    """Base of everything that this project raises on purpose."""


class CanonicalError(WatchfloorError):
    """A value has no canonical form. The message names the path of the offending place."""


class ProtocolError(WatchfloorError):
    """A frame cannot be read or written.

    `raw` keeps at most the first 4 KiB of what was received, for inspection.
    """

    def __init__(self, reason: str, raw: bytes = b"") -> None:
        super().__init__(reason)
        self.reason = reason
        self.raw = raw[:4096]


class ConnectionFailed(WatchfloorError):
    """A source cannot be used. `exit_code` is the command line's status; `retry` says whether another try can help."""

    exit_code = 8
    retry = True


class Unreachable(ConnectionFailed):
    """Nobody answers at the address."""


class NotAHost(ConnectionFailed):
    """Something answers at the address, and it is not a Watchfloor host."""


class NoCommonProtocol(ConnectionFailed):
    """The server speaks WebSocket and does not offer `watchfloor.v1`."""


class Denied(ConnectionFailed):
    """The host refused the token (401), the Origin or the Host header (403). Trying again changes nothing."""

    exit_code = 7
    retry = False


class ConnectionLost(ConnectionFailed):
    """An established connection ended. `code` is the WebSocket close code, 1006 where none came."""

    def __init__(self, message: str, code: int = 1006) -> None:
        super().__init__(message)
        self.code = code


class AddressInUse(WatchfloorError):
    """A host cannot listen at the address."""

    exit_code = 8


class ConfigError(WatchfloorError):
    """A file cannot be used as it stands. The message names file, line and key, and what to do."""

    exit_code = 2


class StorageError(WatchfloorError):
    """A file in which something is kept cannot be used. The message names it and says what to do.

    Nothing that it holds was changed.
    """

    exit_code = 2


class StorageCorrupt(StorageError):
    """The file is damaged."""


class StorageNewer(StorageError):
    """A newer version of this library wrote the file."""


class StorageForeign(StorageError):
    """The file is something else: no database, or another program's."""


class StorageReadOnly(StorageError):
    """The file, or its folder, cannot be written."""


class StorageFull(StorageError):
    """There is no room: what was to be written is not in the file, and may be written again."""


class StorageInUse(StorageError):
    """Another process has the file open."""


class AgentError(WatchfloorError):
    """Base of what the author of an agent may meet."""


class Interrupted(AgentError):
    """An operator ended the turn. Escaping from the agent function it leaves the session idle."""


class LimitReached(AgentError):
    """The session has used up its budget. Escaping from the agent function it suspends the turn until it is raised."""


class Deadlock(AgentError):
    """Sessions would wait for each other for ever. The message names them in their order."""


class NotDelivered(AgentError):
    """No answer comes to the message `ref`: never where that is `permanent`, else not until the session is resumed."""

    def __init__(self, ref: str, reason: str, *, permanent: bool) -> None:
        super().__init__(f"{ref}: {reason}")
        self.ref = ref
        self.reason = reason
        self.permanent = permanent


class Stopped(AgentError):
    """The session was stopped while the agent waited for something."""


class CapabilityNotSupported(AgentError):
    """The session never advertised the primitive."""


class StaleTarget(AgentError):
    """The attempt, turn or request named is not the one that runs."""


class ContractError(AgentError):
    """A harness broke its contract. Deterministic: the attempt fails and is never retried."""


class TransportError(AgentError):
    """A harness cannot reach what runs the agent, or the connection to it has ended. Another attempt may help."""


class HarnessFailure(AgentError):
    """What runs the agent reports that it failed, or could not be started. Another attempt may help."""


class NothingToRun(AgentError):
    """No message of the conversation waits for an answer: send one with `run`."""


class RunFailed(AgentError):
    """The agent ended by an error. The session keeps what it did until then; `resume` tries the turn again."""


class SessionNotFound(AgentError):
    """No session of this id is stored."""

    def __init__(self, session: str) -> None:
        super().__init__(f"no session {session!r} is stored here")
        self.session = session


class SessionBusy(AgentError):
    """The session runs: wait for the end of its run, or cancel it."""


class NotSuspended(AgentError):
    """Nothing of the session waits for an answer: it was never asked, still runs, or was answered already."""


class NotAnswered(AgentError):
    """The session waits for an answer: give that first."""


class InvalidResponse(AgentError):
    """The answer does not fit what was asked. What was asked stays open; the message names the options."""


class NoSuchTool(AgentError):
    """The agent was not built with a tool of this name. The message names those it has."""


class NotPossible(AgentError):
    """The state of the session forbids it, or what was given does not fit. Nothing changed; the message says why."""


class Unsupported(AgentError):
    """The storage or the agent has no means for this."""


def innermost(error: BaseException) -> BaseException:
    """What went wrong, without groups of one around it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def one_line(error: BaseException) -> str:
    """The error as one line for operators: at most 300 characters, without a traceback, fit to be written as UTF-8."""
    error = innermost(error)
    text = " ".join(str(error).split())
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    line = line if len(line) <= _MOST else line[: _MOST - 3] + "..."
    return line.encode("utf-8", "replace").decode("utf-8")
