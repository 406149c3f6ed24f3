"""What cannot be taken up costs itself only: it is counted among the faults of its source, and the rest is taken up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from console.fleet.apply import Fleet
from console.fleet.facts import FaultFact, OutcomeFact
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import Clean, clean_line
from watchfloor.words import Contact, EffectState, OutcomeKind, Primitive


class Poison(Mapping[str, Any]):
    """Fails whoever looks into it."""

    def __getitem__(self, key: str) -> Any:
        raise OverflowError(f"no {key} for anybody")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1


def unfit(source: str, fault: Exception) -> FaultFact:
    return FaultFact(source, clean_line(str(fault)), Clean(""))


@pytest.fixture
def host() -> ScriptedHost:
    made = ScriptedHost()
    made.fleet = Fleet(unfit)
    made.contact(Contact.LIVE)
    made.welcome()
    made.session("s1")
    made.session("s2")
    return made


def applied(id: str, info: Mapping[str, Any]) -> OutcomeFact:
    return OutcomeFact("here", id, OutcomeKind.APPLIED, None, info, 0, None)


def poisoned(id: str) -> OutcomeFact:
    return applied(id, Poison())


def test_what_cannot_be_taken_up_costs_itself_only(host: ScriptedHost) -> None:
    stop, pause = host.send(Primitive.STOP), host.send(Primitive.PAUSE, "s2")
    changes = host.fleet.apply([poisoned(stop.id), applied(pause.id, {})], host.now)
    assert (pause.outcome, pause.effect) == (OutcomeKind.APPLIED, EffectState.PENDING)
    assert pause.id in changes.trails
    source = host.fleet.sources["here"]
    assert (source.fault_count, [fault.reason for fault in source.faults]) == (1, ["no noop for anybody"])


def test_a_command_that_cannot_be_judged_is_given_up_once(host: ScriptedHost) -> None:
    stop, pause = host.send(Primitive.STOP), host.send(Primitive.PAUSE, "s2")
    for trail in (stop, pause):
        host.fleet.apply([applied(trail.id, {})], host.now)
    stop.due_at = "never"  # type: ignore[assignment]
    host.now += 20_000
    changes = host.fleet.tick(host.now)
    assert stop.id in changes.trails
    assert (stop.effect, stop.active) == (EffectState.UNOBSERVABLE, False)
    assert pause.effect is EffectState.OVERDUE
    host.fleet.tick(host.now + 1)
    assert host.fleet.sources["here"].fault_count == 1


def test_where_nobody_counts_it_raises() -> None:
    host = ScriptedHost()
    host.session("s1")
    stop = host.send(Primitive.STOP)
    with pytest.raises(OverflowError):
        host.fleet.apply([poisoned(stop.id)], host.now)
