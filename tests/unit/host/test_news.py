"""A host whose log cannot be written for a while: nothing is told that is not logged, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from tests.unit.host.glass import Glass, poss
from watchfloor.errors import StorageFull
from watchfloor.host.log.events import Batch, MemoryLog, State
from watchfloor.protocol.events import Event, Message
from watchfloor.protocol.frames import Error, Events, Sessions
from watchfloor.words import OutcomeKind


class Disk(MemoryLog):
    """A log that is full when it is told so."""

    def __init__(self) -> None:
        numbers = count(1)
        super().__init__(lambda: f"e{next(numbers)}")
        self.full = False

    def write(self, batch: Sequence[Batch], states: Sequence[State] = ()) -> list[list[Event]]:
        if self.full:
            raise StorageFull("log.db cannot grow: make room on its disk")
        return super().write(batch, states)


def watched() -> tuple[Glass, Disk]:
    disk = Disk()
    glass = Glass(log=disk)
    glass.add("s1")
    glass.add("s2")
    glass.connect("c")
    glass.watch("c", start="start")
    glass.pull_all("c")
    glass.flush()
    glass.frames("c")
    return glass, disk


def test_what_cannot_be_logged_waits_and_is_told_when_it_can() -> None:
    glass, disk = watched()
    pos = disk.pos
    disk.full = True
    glass.say("s1", "one")
    glass.say("s2", "two")
    glass.flush()
    assert "make room" in str(glass.core.news.fault)
    (error,) = glass.frames("c")
    assert isinstance(error, Error)
    assert "make room" in error.message
    assert not error.fatal
    assert "make room" in str(glass.core.news.fault)
    glass.say("s1", "three")
    for _ in range(5):
        glass.tick(300)
    assert [type(frame) for frame in glass.frames("c") if isinstance(frame, Error | Events | Sessions)] == []
    assert glass.command("c", "s2", {"primitive": "pause"}).outcome is OutcomeKind.APPLIED
    disk.full = False
    assert (glass.core.next_due() or 0) <= glass.now + 1000
    glass.tick(1000)
    assert glass.core.news.fault is None
    events = glass.events("c")
    assert poss(events) == list(range(pos + 1, disk.pos + 1))
    assert [e.text for e in events if isinstance(e, Message)] == ["one", "three", "two"]
    assert [e.seq for e in glass.events("c", "s1")] == list(range(disk.head("s1") - 1, disk.head("s1") + 1))


def test_the_shell_is_not_asked_to_flush_again_and_again_meanwhile() -> None:
    glass, disk = watched()
    disk.full = True
    glass.say("s1", "one")
    assert glass.core.wants_flush
    glass.flush()
    assert not glass.core.wants_flush


def test_who_connects_meanwhile_gets_what_the_log_holds() -> None:
    glass, disk = watched()
    disk.full = True
    glass.say("s1", "one")
    glass.flush()
    glass.connect("d")
    glass.watch("d", start="start")
    glass.pull_all("d")
    assert poss(glass.events("d")) == list(range(1, disk.pos + 1))
    disk.full = False
    glass.tick(2000)
    assert poss(glass.events("d")) == list(range(1, disk.pos + 1))
    assert [e.text for e in glass.events("d") if isinstance(e, Message)] == ["one"]
