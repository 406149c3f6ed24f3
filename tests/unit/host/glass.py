"""A host core with clients at its other side: bytes go in, and what comes out is read back from its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final, TypeVar

from tests.unit.host.puppet import FULL
from watchfloor.host.clients.commands import Outcomes
from watchfloor.host.core import HostCore
from watchfloor.host.effects import Close, HostEffect, SendFrame, SessionEffect, StartAttempt
from watchfloor.host.log.events import EventLog, MemoryLog
from watchfloor.host.principals import Principal
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.codec import decode_host, encode
from watchfloor.protocol.events import Event, Message
from watchfloor.protocol.frames import (
    ClientFrame,
    Command,
    Events,
    Frame,
    Hello,
    HostInfo,
    Outcome,
    Watch,
)
from watchfloor.protocol.model import Capabilities, RequestModel, Traits
from watchfloor.words import Role

F = TypeVar("F", bound=Frame)
INFO: Final = HostInfo(name="test", version="1", instance="i1")
OBSERVER: Final = Principal("olga", Role.OBSERVER)


class Glass:
    """One host core. Effects that are not for a client are kept in `rest`."""

    def __init__(self, *, keep: int | None = None, remember: int | None = None, log: EventLog | None = None) -> None:
        numbers = count(1)
        outcomes = None if remember is None else Outcomes(INFO.instance, remember)
        self.core = HostCore(INFO, log or MemoryLog(lambda: f"e{next(numbers)}", keep), outcomes=outcomes)
        self.now = 1_000_000
        self.got: dict[str, list[Frame]] = {}
        self.closed: dict[str, int] = {}
        self.rest: list[HostEffect] = []
        self._ids = count(1)

    # --- sessions

    def add(
        self, id: str = "s1", *, capabilities: Capabilities = FULL, running: bool = True, **fixed: Any
    ) -> SessionCore:
        session = self.core.add(
            id, capabilities=capabilities, traits=Traits(), now=self.now, fixed={"name": id.upper(), **fixed}
        )
        if running:
            self.apply(session.send("go", "test", self.now).effects)
            self.apply(session.started(self.now))
        return session

    def apply(self, effects: Sequence[SessionEffect]) -> None:
        self.take(self.core.apply(effects))

    def say(self, session: str, text: str, **more: Any) -> None:
        self.apply(self.core.session(session).emit(Message(at=0, text=text, **more), self.now))

    def ask(self, session: str, request: RequestModel) -> RequestModel:
        self.apply(self.core.session(session).ask(request, self.now))
        return request

    # --- effects

    def take(self, effects: Sequence[HostEffect]) -> None:
        for effect in effects:
            match effect:
                case SendFrame():
                    decoded = decode_host(effect.wire)
                    assert decoded.bad == ()
                    self.got.setdefault(effect.conn, []).append(decoded.frame)
                case Close():
                    self.closed[effect.conn] = effect.code
                case _:
                    self.rest.append(effect)

    def flush(self) -> None:
        self.take(self.core.flush(self.now))

    def tick(self, milliseconds: int = 0) -> None:
        self.now += milliseconds
        self.take(self.core.tick(self.now))

    # --- clients

    def connect(self, conn: str, principal: Principal | None = None, *, hello: bool = True) -> None:
        self.core.connect(conn, principal or Principal(), self.now)
        self.got[conn] = []
        if hello:
            self.send(conn, Hello(client="test", version="1", name=conn))

    def send(self, conn: str, frame: ClientFrame) -> None:
        self.receive(conn, encode(frame))

    def receive(self, conn: str, raw: bytes) -> None:
        self.take(self.core.receive(conn, raw, self.now))

    def watch(self, conn: str, session: str = "*", **more: Any) -> None:
        self.send(conn, Watch(session=session, **more))

    def pull_all(self, conn: str) -> None:
        while self.core.behind(conn):
            self.take(self.core.pull(conn, self.now))

    def command(self, conn: str, session: str, do: dict[str, Any], **more: Any) -> Outcome:
        """Send a command and return its outcome."""
        id = more.pop("id", None) or f"cmd-{next(self._ids)}"
        self.send(conn, Command.model_validate({"id": id, "session": session, "do": do, **more}))
        return self.of(conn, Outcome)[-1]

    # --- what came

    def frames(self, conn: str) -> list[Frame]:
        """What came since the last look."""
        frames, self.got[conn] = self.got[conn], []
        return frames

    def of(self, conn: str, kind: type[F]) -> list[F]:
        return [frame for frame in self.got[conn] if isinstance(frame, kind)]

    def events(self, conn: str, session: str | None = None) -> list[Event]:
        return [event for frame in self.of(conn, Events) if session in (None, frame.session) for event in frame.events]

    def starts(self) -> list[StartAttempt]:
        return [effect for effect in self.rest if isinstance(effect, StartAttempt)]


def poss(events: Sequence[Event]) -> list[int]:
    return [event.pos for event in events if event.pos is not None]
