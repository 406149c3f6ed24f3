"""A source that was lost for a while is compared with how it was left, once it has told what it tells first."""

from __future__ import annotations

from console.fleet.facts import ContactFact
from console.hub.away import Away
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import NOTHING
from watchfloor.words import Contact


def contact(host: ScriptedHost, contact: Contact) -> None:
    host.fleet.apply([ContactFact(host.name, contact, host.now, NOTHING)], host.now)


def test_an_absence_of_a_minute_is_told_and_a_blink_is_not() -> None:
    for gone_s, told in ((20, False), (90, True)):
        host = ScriptedHost()
        host.session("s1")
        contact(host, Contact.LIVE)
        source = host.fleet.sources[host.name]
        source.listed = True
        away = Away(host.fleet, None, frozenset())
        host.now += 10_000
        away.tick(host.now)
        assert away.digests == ()
        contact(host, Contact.LOST)
        away.tick(host.now)
        host.now += gone_s * 1000
        contact(host, Contact.LIVE)
        away.tick(host.now)
        assert away.headline(host.now) == "", "what it tells first is still on its way"
        host.summary("s1", lifecycle="failed", head=9)
        source.pos = source.head
        host.now += 3_000
        away.tick(host.now)
        assert bool(away.headline(host.now)) is told
        if told:
            assert "1 failed" in away.headline(host.now)
