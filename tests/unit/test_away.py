"""What has happened since the operator last saw it is told, whoever or whatever was away."""

from __future__ import annotations

from console.fleet.absence import Digest
from console.fleet.facts import ContactFact, SessionKey
from console.hub.away import IDLE_MS, SEE_MS, Away
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import NOTHING
from watchfloor.words import Contact

MINUTE: int = 60_000


class Desk:
    """An operator at a console with one source, which is heard from the beginning."""

    def __init__(self) -> None:
        self.host = ScriptedHost()
        self.host.session("s1")
        self.host.session("s2")
        self.away = Away(self.host.fleet, None, frozenset())
        self.away.touch(self.host.now)
        self.hears(Contact.LIVE)
        self.host.fleet.sources[self.host.name].listed = True
        self.passes(10_000)
        assert self.told == ()

    def hears(self, contact: Contact) -> None:
        host = self.host
        host.fleet.apply([ContactFact(host.name, contact, host.now, NOTHING)], host.now)
        self.passes(0)

    def passes(self, ms: int) -> None:
        self.host.now += ms
        self.away.tick(self.host.now, self.host.now)

    def presses(self) -> None:
        self.away.touch(self.host.now)
        self.passes(500)

    def happens(self, session: str = "s1", **fields: object) -> None:
        self.host.summary(session, **fields)
        source = self.host.fleet.sources[self.host.name]
        source.pos = source.head

    @property
    def told(self) -> tuple[Digest, ...]:
        return self.away.told(self.host.now)

    @property
    def line(self) -> str:
        return self.away.headline(self.host.now)


def test_an_absence_of_a_minute_is_told_and_a_blink_is_not() -> None:
    for gone_s, told in ((20, False), (90, True)):
        desk = Desk()
        desk.hears(Contact.LOST)
        desk.passes(gone_s * 1000)
        desk.hears(Contact.LIVE)
        assert desk.line == "", "what it tells first is still on its way"
        desk.happens(lifecycle="failed", head=9)
        desk.passes(3_000)
        assert bool(desk.line) is told
        if told:
            assert "1 failed" in desk.line


def test_an_operator_who_was_away_is_told_though_the_source_was_heard_all_the_time() -> None:
    desk = Desk()
    desk.passes(SEE_MS)
    desk.happens(lifecycle="failed", head=9)
    desk.passes(IDLE_MS)
    assert desk.line == "", "nobody is there"
    desk.presses()
    assert "1 failed, 1 changed state" in desk.line
    desk.away.read(desk.host.now)
    assert desk.line == ""
    desk.passes(IDLE_MS)
    desk.presses()
    assert desk.line == "", "nothing has happened since"


def test_who_presses_keys_now_and_then_is_there() -> None:
    desk = Desk()
    desk.presses()
    for _ in range(20):
        desk.passes(IDLE_MS - 1_000)
        desk.happens(lifecycle="failed", head=9)
        desk.presses()
    assert desk.line == ""


def test_a_terminal_without_the_focus_is_not_looked_at() -> None:
    desk = Desk()
    desk.away.leave(desk.host.now)
    desk.happens(lifecycle="failed", head=9)
    desk.passes(2 * MINUTE)
    desk.presses()
    assert "1 failed" in desk.line


def test_what_was_not_read_is_told_with_what_came_later() -> None:
    desk = Desk()
    for session in ("s1", "s2"):
        desk.hears(Contact.LOST)
        desk.passes(2 * MINUTE)
        desk.hears(Contact.LIVE)
        desk.happens(session, lifecycle="failed", head=9)
        desk.passes(3_000)
    assert "2 failed" in desk.line
    [told] = desk.told
    assert {key.session for key in told.failed} == {"s1", "s2"}
    assert desk.host.now - told.at > 4 * MINUTE


def test_the_second_absence_does_not_hide_what_happened_while_nobody_was_there() -> None:
    """A source that flaps in the night is compared with the evening."""
    desk = Desk()
    desk.passes(SEE_MS)
    desk.happens(lifecycle="failed", head=9)
    desk.passes(IDLE_MS)
    desk.hears(Contact.LOST)
    desk.passes(2 * MINUTE)
    desk.hears(Contact.LIVE)
    desk.passes(3_000)
    desk.presses()
    assert "1 failed" in desk.line


def test_a_session_that_was_opened_meanwhile_is_told_no_more() -> None:
    desk = Desk()
    desk.passes(SEE_MS)
    for session in ("s1", "s2"):
        desk.happens(session, lifecycle="failed", head=9)
    desk.passes(IDLE_MS)
    s1 = SessionKey(desk.host.name, "s1")
    desk.away.saw(s1, desk.host.now, desk.host.now)
    desk.presses()
    assert len(desk.told[0].failed) == 2, "it was open, and nobody looked"
    desk.away.saw(s1, desk.host.now, desk.host.now)
    [told] = desk.told
    assert [key.session for key in told.failed] == ["s2"]
    assert desk.host.now - told.at >= IDLE_MS, "since when is still said"
    desk.away.saw(SessionKey(desk.host.name, "s2"), desk.host.now, desk.host.now)
    assert desk.told == ()
    assert desk.line == ""


def test_a_clock_that_is_set_is_no_absence() -> None:
    day = 24 * 60 * MINUTE
    for by_ms in (day, -day):
        desk = Desk()
        desk.passes(SEE_MS)
        desk.happens(lifecycle="failed", head=9)
        desk.host.now += by_ms
        desk.away.clock_set(by_ms)
        desk.host.fleet.clock_set(by_ms)
        desk.hears(Contact.LOST)
        desk.host.now += 5_000
        desk.hears(Contact.LIVE)
        desk.passes(3_000)
        assert desk.line == ""
