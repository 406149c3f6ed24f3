"""The bell: once for what is new, and once for however many come together."""

from __future__ import annotations

from console.fleet.decisions.bell import CALM_MS, IDLE, IDLE_MS, Bell
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.words import Contact


def test_it_rings_for_a_new_request_and_once_only(host: ScriptedHost) -> None:
    bell = Bell(host.fleet)
    host.session("s1")
    key = host.ask()
    assert bell.rings([key], 0, host.now)
    assert not bell.rings([key], 10_000, host.now)


def test_many_within_a_moment_are_one_bell_and_later_ones_another(host: ScriptedHost) -> None:
    bell = Bell(host.fleet)
    host.session("s1")
    keys = [host.ask(f"r{at}") for at in range(500)]
    assert [bell.rings([key], at // 5, host.now) for at, key in enumerate(keys)].count(True) == 1
    later = host.ask("later")
    assert bell.rings([later], CALM_MS, host.now)


def test_a_source_that_comes_back_with_what_it_had_is_nothing_new(host: ScriptedHost) -> None:
    bell = Bell(host.fleet)
    host.session("s1")
    key = host.ask()
    assert bell.rings([key], 0, host.now)
    host.contact(Contact.LOST)
    host.contact(Contact.LIVE)
    host.list_requests("s1")
    assert not bell.rings([key], 10_000, host.now)


def test_what_is_over_or_on_its_way_rings_for_nobody(host: ScriptedHost) -> None:
    bell = Bell(host.fleet)
    host.session("s1")
    ended, decided = host.ask("r1"), host.ask("r2")
    host.decide("r1")
    host.go(host.decision(decided))
    assert not bell.rings([ended, decided], 0, host.now)


def test_a_session_that_asks_and_takes_back_again_and_again_does_not_ring_each_time(host: ScriptedHost) -> None:
    bell = Bell(host.fleet)
    host.session("s1")
    host.session("s2")
    rung: list[int] = []
    for at in range(60):  # two minutes, a request every two seconds
        key = host.ask(f"r{at}")
        if bell.rings([key], at * 2_000, host.now):
            rung.append(at)
        host.decide(f"r{at}", state="withdrawn")
        bell.rings([key], at * 2_000, host.now)
    assert len(rung) <= IDLE + 120_000 // IDLE_MS + 1
    other = host.ask("other", "s2")
    assert bell.rings([other], 200_000, host.now), "for another session it rings as ever"
    # Once one of them was decided, the session is one like every other.
    last, next_one = host.ask("last"), host.ask("next")
    host.decide("last")
    bell.rings([last], 210_000, host.now)
    bell._known.add(last)
    bell.rings([last], 210_000, host.now)
    assert bell.rings([next_one], 220_000, host.now)
