"""Another process whose agents belong to this host: it dialled in and speaks the host's side of the protocol.

Without I/O: what arrives from it goes in, effects on this host come out. Its sessions are mirrored under their own ids,
its events as they are, and commands on them are forwarded. When it is lost nothing of it can be decided any more at
once, and what it had asked is withdrawn when it has not come back within the time of grace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from watchfloor.errors import ContractError
from watchfloor.host.core import HostCore
from watchfloor.host.effects import Handled, HostEffect, Publish, SessionEffect
from watchfloor.host.sessions.mirror import KEYS, SETTABLE
from watchfloor.logs import logger
from watchfloor.protocol.events import Delta, Event, Intervention, UnknownEvent
from watchfloor.protocol.frames import (
    Command,
    Events,
    Gone,
    HostFrame,
    Outcome,
    Profiles,
    RequestFrame,
    Sessions,
    UnknownFrame,
)
from watchfloor.protocol.model import Capabilities, Profile, RequestModel, Summary
from watchfloor.words import Lifecycle, OutcomeKind, RequestState

LOST: Final = "its process is lost"
GONE: Final = "its process is gone: nobody could be told of the decision"
_ASKED: Final = (RequestState.OPEN, RequestState.UNCONFIRMED, RequestState.UNREAD)
_log = logger(__name__)


class Joined:
    """One process that has joined, across its connections. `now` is in milliseconds since 1970 UTC."""

    def __init__(self, core: HostCore, name: str, grace_ms: int) -> None:
        self.name = name
        self.sessions: set[str] = set()
        self.connected = False
        self._core = core
        self._grace_ms = grace_ms
        self._profiles: dict[str, Profile] = {}
        self._listed: set[str] | None = None
        self._lost_at: int | None = None
        self._forwarded: set[str] = set()

    # --- what it says

    def begin(self) -> None:
        """It is connected, and lists everything that it has."""
        self.connected = True
        self._lost_at = None
        self._listed = set()

    def take(self, frame: HostFrame | UnknownFrame, now: int) -> list[HostEffect]:
        """A frame of it."""
        match frame:
            case Profiles():
                self._profiles |= frame.profiles
            case Sessions():
                effects = [effect for summary in frame.sessions for effect in self._summary(summary, now)]
                return effects + (self._all_listed(now) if frame.listed else [])
            case RequestFrame() if frame.session in self.sessions:
                return self._core.apply(self._request(frame.session, frame.request, now))
            case Events() if frame.session in self.sessions:
                return self._core.apply(self._events(frame, now))
            case Outcome():
                self._forwarded.discard(frame.id)
                return self._core.answered(frame.id, handled(frame), now)
            case Gone():
                return self._gone(frame.sessions)
            case _:
                pass
        return []

    def _summary(self, summary: Summary, now: int) -> list[HostEffect]:
        id = summary.id
        fields = {name: getattr(summary, name) for name in summary.model_fields_set & SETTABLE}
        profile = self._profiles.get(summary.profile or "")
        effects: list[HostEffect] = []
        if id not in self.sessions:
            if id in self._core.roster:
                _log.warning("%s has a session %r, and so have we: it is not shown", self.name, id)
                return []
            profile = profile or Profile()
            mirrored = self._core.mirror(id, capabilities=profile.capabilities, traits=profile.traits, now=now)
            for event in self._core.log.read(id, limit=KEYS):
                # We were started anew, and know this part of its past already.
                if event.key is not None:
                    mirrored.has(event.key)
            self.sessions.add(id)
        elif profile is not None:
            effects += self._core.profile(id, profile.capabilities, profile.traits, now)
        if self._listed is not None:
            self._listed.add(id)
        return effects + self._core.apply(_silent(self._core.mirrored(id).update(now, **fields)))

    def _all_listed(self, now: int) -> list[HostEffect]:
        """What it did not list is there no more."""
        listed, self._listed = self._listed or set(), None
        return self._gone(self.sessions - listed)

    def _gone(self, sessions: Iterable[str]) -> list[HostEffect]:
        for id in self.sessions & set(sessions):
            self.sessions.discard(id)
            self._core.remove(id)
        return []

    def _events(self, frame: Events, now: int) -> list[SessionEffect]:
        mirrored = self._core.mirrored(frame.session)
        effects: list[SessionEffect] = []
        for event in frame.events:
            match event:
                case Delta():
                    effects += mirrored.stream(event.item, event.of, event.text, now, event.call)
                case Intervention() if event.command in self._forwarded:
                    # Our own record of it says the same.
                    continue
                case UnknownEvent():
                    continue
                case Event():
                    key = f"{frame.epoch}:{event.seq}"
                    effects += mirrored.emit(event.model_copy(update={"key": key, "seq": None, "pos": None}), now)
        return effects

    def _request(self, session: str, request: RequestModel, now: int) -> list[SessionEffect]:
        mirrored = self._core.mirrored(session)
        id = str(request.subject.get("id"))
        if request.state not in _ASKED:
            return _silent(mirrored.end_request(id, now, request.state, decision=request.decision))
        if mirrored.requests.ended(id) is not None:
            # It was withdrawn here while its process could not be heard.
            mirrored.requests.reopen(id)
        try:
            return _silent(mirrored.ask(request, now))
        except ContractError as fault:
            _log.warning("%s asks what cannot be shown: %s", self.name, fault)
            return []

    # --- when it is not there

    def lost(self, now: int) -> list[HostEffect]:
        """Its connection has ended: nothing of it can be decided or told until it is back."""
        self.connected = False
        self._lost_at = now
        effects: list[HostEffect] = []
        for id in self.sessions:
            mirrored = self._core.mirrored(id)
            if not mirrored.alive:
                continue
            words = {primitive.value: LOST for primitive in mirrored.capabilities.advertised()}
            effects += self._core.apply(mirrored.update(now, blocked=words, native_state="lost", why=LOST))
        for command in self._forwarded:
            reason = f"{LOST}: whether it was told is not known"
            effects += self._core.answered(command, Handled(OutcomeKind.UNKNOWN, reason=reason), now)
        self._forwarded.clear()
        return effects + self.tick(now)

    def next_due(self) -> int | None:
        return None if self._lost_at is None else self._lost_at + self._grace_ms

    def tick(self, now: int) -> list[HostEffect]:
        """After the time of grace it counts as gone: what it asked is withdrawn."""
        due = self.next_due()
        if due is None or due > now:
            return []
        self._lost_at = None
        effects: list[HostEffect] = []
        for id in self.sessions:
            mirrored = self._core.mirrored(id)
            for request in mirrored.requests.open():
                withdrawn = mirrored.end_request(str(request.subject["id"]), now, RequestState.WITHDRAWN, why=GONE)
                effects += self._core.apply(withdrawn)
            if mirrored.alive:
                effects += self._core.profile(id, Capabilities(), self._core.traits(id), now)
                gone = mirrored.update(now, lifecycle=Lifecycle.UNKNOWN, blocked={}, in_flight=(), why=GONE)
                effects += self._core.apply([*mirrored.cut_streams(now), *gone])
        return effects

    # --- commands

    def forwards(self, command: Command) -> None:
        """The command is on its way to it."""
        self._forwarded.add(command.id)


def handled(outcome: Outcome) -> Handled:
    """What an outcome of the other process says."""
    return Handled(
        outcome.outcome,
        reason=outcome.reason,
        info=outcome.info,
        decided=outcome.decided,
        retry_after_s=outcome.retry_after_s,
    )


def _silent(effects: Iterable[SessionEffect]) -> list[SessionEffect]:
    """Without the events that we would make of it: its own events say so."""
    return [effect for effect in effects if not isinstance(effect, Publish)]
