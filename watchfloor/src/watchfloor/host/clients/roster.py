"""The sessions of a host as its clients see them: summaries, whole at first, then what changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from watchfloor.harness.base import ConversationMessage
from watchfloor.host.log.events import EventLog
from watchfloor.host.sessions.hosted import HostedSession
from watchfloor.host.sessions.operations import SUPPORTED
from watchfloor.host.wire import sound
from watchfloor.protocol.events import Delta, Event, Intervention, LifecycleChanged, Mail, RequestResolved
from watchfloor.protocol.lines import event_line
from watchfloor.protocol.model import (
    Capabilities,
    Last,
    Profile,
    RequestModel,
    Summary,
    Traits,
)

SLOW_MS: Final = 1000
"""Least milliseconds between two patches of the fields that change with every event."""
_DEFAULTS: Final = {name: field.default for name, field in Summary.model_fields.items() if not field.is_required()}
SLOW: Final = frozenset({"head", "usage", "last"})


class NoSuchSession(KeyError):
    """The host has no session of this id, or another process runs it and it is asked for as the host's own."""

    def __str__(self) -> str:
        return f"this host runs no session {self.args[0]!r}"


@dataclass(slots=True)
class Entry:
    """A session and what its clients have not been told yet."""

    core: HostedSession
    fixed: dict[str, object]
    """Summary fields that never change."""
    traits: Traits
    profile: str
    fresh: bool = True
    """No client has heard of it."""
    dirty: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    slow_at: int = 0
    last: Last | None = None
    said: bool = False
    """`last` is of something that was said or done, not of the machinery."""
    events: list[Event] = field(default_factory=list)
    requests: list[RequestModel] = field(default_factory=list)
    kept: list[ConversationMessage] = field(default_factory=list)
    """The conversation as the log has it."""

    @property
    def id(self) -> str:
        return self.core.id

    def saw(self, events: list[Event]) -> None:
        """Events were logged: what of them shows in the summary."""
        self.slow |= {"head", "last"}
        named = False
        if any(isinstance(event, RequestResolved) for event in events):
            self.slow_at = 0  # what it asked for is not the last word any more
        for event in reversed(events):
            aside = _is_aside(event)
            if isinstance(event, Delta) or (aside and (self.said or named)):
                continue
            line = event_line(event)
            if line:
                self.last = Last(at=event.at, kind=str(getattr(event, "kind", "")), text=sound(line))
                named, self.said = True, not aside
                if self.said:
                    return


def _is_aside(event: Event) -> bool:
    """Does the state of the session, or of its mailbox, tell the same? Then it is the last word only where nothing
    else was said."""
    return isinstance(event, LifecycleChanged | Intervention) or (isinstance(event, Mail) and not event.text)


class Roster:
    """All sessions, and the profiles that they refer to."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._entries: dict[str, Entry] = {}
        self.profiles: dict[str, Profile] = {}
        self.new_profiles: dict[str, Profile] = {}
        self._ids: dict[bytes, str] = {}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, session: str) -> bool:
        return session in self._entries

    def get(self, session: str) -> Entry | None:
        return self._entries.get(session)

    def entry(self, session: str) -> Entry:
        """Raises NoSuchSession, a KeyError."""
        entry = self._entries.get(session)
        if entry is None:
            raise NoSuchSession(session)
        return entry

    def add(self, core: HostedSession, traits: Traits, fixed: Mapping[str, object]) -> Entry:
        profile = self.profile(core.capabilities, traits)
        entry = self._entries[core.id] = Entry(core, dict(fixed), traits, profile)
        return entry

    def remove(self, session: str) -> None:
        del self._entries[session]

    def fixed(self, session: str) -> dict[str, object]:
        """The summary fields of a session that never change; none where it is not there."""
        entry = self._entries.get(session)
        return entry.fixed if entry is not None else {}

    def free_id(self, name: str, *, fresh: bool = False) -> str:
        """An id that no session has, made of the name; a `fresh` one the log knows nothing of, either."""
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "session"
        number, id = 1, stem
        known = frozenset(self._log.sessions() if fresh else ())
        while id in self._entries or id in known:
            number += 1
            id = f"{stem}-{number}"
        return id

    def profile(self, capabilities: Capabilities, traits: Traits) -> str:
        """The id of the profile with these, which clients are told of before it is referred to."""
        profile = Profile(capabilities=capabilities, traits=traits)
        key = profile.model_dump_json().encode()
        id = self._ids.get(key)
        if id is None:
            id = self._ids[key] = f"p{len(self._ids) + 1}"
            self.profiles[id] = self.new_profiles[id] = profile
        return id

    def whole(self, entry: Entry) -> Summary:
        """The session's summary, every field set."""
        return Summary.model_validate({"id": entry.id, **_DEFAULTS, **entry.fixed, **self._fields(entry)})

    def patch(self, entry: Entry, now: int) -> Summary | None:
        """What changed since the last patch, None for nothing that may be told yet."""
        names, entry.dirty = entry.dirty - SLOW, set()
        if entry.slow and now - entry.slow_at >= SLOW_MS:
            names |= entry.slow
            entry.slow = set()
            entry.slow_at = now
        if not names:
            return None
        fields = self._fields(entry)
        return Summary.model_validate({"id": entry.id, **{name: fields[name] for name in names}})

    def _fields(self, entry: Entry) -> dict[str, object]:
        return {
            **entry.core.summary(),
            "profile": entry.profile,
            "epoch": self._log.epoch(entry.id),
            "head": self._log.head(entry.id),
            "last": entry.last,
        }


def supported(capabilities: Capabilities) -> Capabilities:
    """Of what a harness offers, that which this host can carry out: nothing else may be advertised."""
    kept = {p.value: getattr(capabilities, p.value) for p in SUPPORTED if capabilities.advertises(p)}
    if capabilities.reseed is not None and not capabilities.reseed.modes:
        del kept["reseed"]
    return Capabilities(**kept)
