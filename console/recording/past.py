"""The past of a session as a recording holds it: pages of what has been played up to now.

A recording is looked through once for each session of which somebody asks: lines that are not of it are not read.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from console.recording.tape import Mark, Tape
from watchfloor.errors import ProtocolError
from watchfloor.protocol.codec import decode_host
from watchfloor.protocol.frames import Events, History, Page

if TYPE_CHECKING:
    from watchfloor.protocol.events import Event

KEEP: Final = 16
"""Sessions whose lines are remembered."""


class RecordedPast:
    """Answers for one tape. For one thread at a time; it reads by a file of its own, as the tape is played meanwhile.

    Raises OSError and ConfigError where the tape cannot be read any more.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = Tape(tape.path, tape.marks)
        self._lines: dict[str, list[tuple[int, Mark]]] = {}

    def close(self) -> None:
        """Let go of the file."""
        self._tape.close()

    def page(self, asked: History, place: int, epoch: str) -> Page:
        """What the lines before number `place` hold of what is asked for. `epoch`: what it was when it was recorded."""
        events: dict[int, Event] = {}
        for number, mark in self._of(asked.session):
            if number >= place:
                break
            for event in self._events(mark, asked.session, epoch):
                if event.seq is not None:
                    events.setdefault(event.seq, event)
        seqs = sorted(events)
        if asked.after is not None:
            wanted = [seq for seq in seqs if seq > asked.after]
            some, more = wanted[: asked.limit], len(wanted) > asked.limit
        else:
            wanted = [seq for seq in seqs if asked.before is None or seq < asked.before]
            some, more = wanted[-asked.limit :], len(wanted) > asked.limit
        first, last = (some[0], some[-1]) if some else (0, 0)
        told: list[Any] = [events[seq] for seq in some]
        return Page(
            id=asked.id, session=asked.session, epoch=asked.epoch, events=told, first=first, last=last, more=more
        )  # fmt: skip

    def _of(self, session: str) -> list[tuple[int, Mark]]:
        """The lines that may hold events of a session, with their numbers."""
        if (known := self._lines.get(session)) is not None:
            return known
        named = (json.dumps(session).encode(), json.dumps(session, ensure_ascii=False).encode("utf-8", "replace"))
        found: list[tuple[int, Mark]] = []
        for number, mark in enumerate(self._tape.marks):
            raw, _ = self._tape.line(mark)
            if raw is not None and b'"events"' in raw and any(name in raw for name in named):
                found.append((number, mark))
        if len(self._lines) >= KEEP:
            del self._lines[next(iter(self._lines))]
        self._lines[session] = found
        return found

    def _events(self, mark: Mark, session: str, epoch: str) -> list[Event]:
        raw, _ = self._tape.line(mark)
        try:
            frame = decode_host(raw or b"").frame
        except ProtocolError:
            return []
        if not isinstance(frame, Events | Page) or frame.session != session or frame.epoch != epoch:
            return []
        return list(frame.events)
