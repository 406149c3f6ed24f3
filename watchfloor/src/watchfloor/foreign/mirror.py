"""What a connector tells of a foreign system: its sessions, their events, requests and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from watchfloor.words import RequestState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from watchfloor.connector import Clock
    from watchfloor.host.core import HostCore
    from watchfloor.host.effects import HostEffect, SessionEffect
    from watchfloor.host.sessions.mirror import MirrorSession
    from watchfloor.protocol.events import Event
    from watchfloor.protocol.model import Capabilities, Decision, RequestModel, Traits

_BEATS_EVERY_MS: Final = 5000


class Mirror:
    """What a connector knows of a foreign system, told to whoever is connected to it.

    Everything may be told again: what is so already changes nothing. Unknown session ids raise KeyError.
    """

    def __init__(self, core: HostCore, perform: Callable[[list[HostEffect]], None], clock: Clock) -> None:
        self._core = core
        self._perform = perform
        self._clock = clock
        self._beat_at = 0

    def now(self) -> int:
        """Milliseconds since 1970 UTC by our clock."""
        return self._clock()

    def host(self, *, version: str) -> None:
        """The foreign system's version, as who connects from now on is told it."""
        self._core.set_version(version)

    def __contains__(self, session: str) -> bool:
        return session in self._core.roster

    def session(self, session: str) -> MirrorSession:
        return self._core.mirrored(session)

    def sessions(self) -> tuple[str, ...]:
        """The ids of all sessions."""
        return tuple(entry.id for entry in self._core.roster)

    def put(self, session: str, *, capabilities: Capabilities, traits: Traits, **fields: object) -> MirrorSession:
        """A session is there, advertises this, behaves like this, and has these summary fields."""
        now = self.now()
        if session not in self._core.roster:
            mirrored = self._core.mirror(session, capabilities=capabilities, traits=traits, now=now)
        else:
            mirrored = self._core.mirrored(session)
            self._perform(self._core.profile(session, capabilities, traits, now))
        self._take(mirrored.update(now, **fields))
        return mirrored

    def update(self, session: str, **fields: object) -> None:
        """These summary fields of the session are so now; see `MirrorSession.update`."""
        self._take(self.session(session).update(self.now(), **fields))

    def emit(self, session: str, *events: Event) -> None:
        """Events of the session, in order. One whose `key` was told before is dropped; an `at` of 0 becomes now."""
        mirrored = self.session(session)
        for event in events:
            self._take(mirrored.emit(event, self.now()))

    def stream(self, session: str, item: str, of: str, text: str, call: str | None = None) -> None:
        """The next piece of a streamed item (`of`: message, reasoning, tool_output, plan or diff)."""
        self._take(self.session(session).stream(item, of, text, self.now(), call))

    def cut_streams(self, session: str, *items: str) -> None:
        """What the session was streaming (all of it, or these items) has ended where it stands."""
        self._take(self.session(session).cut_streams(self.now(), *items))

    def ask(self, session: str, request: RequestModel) -> None:
        """A request is open there. Raises ContractError for an id that has ended before."""
        self._take(self.session(session).ask(request, self.now()))

    def end_request(
        self,
        session: str,
        request: str,
        state: RequestState = RequestState.RESOLVED,
        *,
        decision: Decision | None = None,
        why: str = "",
    ) -> None:
        """A request is no longer open there: decided, or gone for the reason in `why`."""
        self._take(self.session(session).end_request(request, self.now(), state, decision=decision, why=why))

    def keep_only(self, sessions: Iterable[str]) -> None:
        """These are all sessions that there are: the others are gone."""
        kept = set(sessions)
        self.gone(*(id for id in self.sessions() if id not in kept))

    def gone(self, *sessions: str) -> None:
        """These sessions are there no more."""
        for session in sessions:
            if session in self._core.roster:
                self._core.remove(session)
        self._perform([])

    def heard(self) -> None:
        """The foreign system gave a sign of life, although it may have said nothing new."""
        now = self.now()
        if now - self._beat_at >= _BEATS_EVERY_MS or now < self._beat_at:
            self._beat_at = now
            self._perform(self._core.beat(now))

    def _take(self, effects: Iterable[SessionEffect]) -> None:
        self._perform(self._core.apply(effects))
