"""However a stream arrives, the fleet ends as if it had arrived clean, or continuity says what is missing."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.apply import Fleet
from console.fleet.facts import EventsFact, Fact, SessionKey
from console.fleet.state import Session
from tests.unit.fleet.schedules import LATE, History, fingerprint, histories, run
from watchfloor.words import ANSWERABLE, Continuity

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine that tests may be busy with other things."""


def is_event(fact: Fact) -> bool:
    return isinstance(fact, EventsFact)


def is_delta(fact: Fact) -> bool:
    return isinstance(fact, EventsFact) and fact.events[0].seq is None


@PATIENT
@given(histories(), st.data())
def test_duplicates_change_nothing(history: History, data: st.DataObject) -> None:
    facts: list[Fact] = []
    for fact in history.facts:
        facts.append(fact)
        earlier = [f for f in facts if is_event(f)] + [fact]
        facts += data.draw(st.lists(st.sampled_from(earlier), max_size=2))
    assert fingerprint(run(facts)) == fingerprint(run(history.facts))


@PATIENT
@given(histories(epochs=False), st.data())
def test_events_may_arrive_in_any_order_among_the_rest(history: History, data: st.DataObject) -> None:
    """Summaries and requests keep their order, as on any connection; events go anywhere between them."""
    order = data.draw(st.permutations([i for i, fact in enumerate(history.facts) if is_event(fact)]))
    states = [fact for fact in history.facts if not is_event(fact)]
    facts: list[Fact] = list(states)
    # Sessions must be known before their events, or a late summary would be their first.
    for i in order:
        facts.insert(data.draw(st.integers(0, len(facts))), history.facts[i])
    assert fingerprint(run(facts)) == fingerprint(run(history.facts))


@PATIENT
@given(histories(epochs=False), st.data())
def test_pages_of_the_history_fill_in_and_double_nothing(history: History, data: st.DataObject) -> None:
    log = history.greetings[-1][1]
    pages: list[Fact] = [EventsFact(f.key, f.epoch, f.events, stored=True) for f in log]
    facts: list[Fact] = []
    for fact in history.facts:
        facts.append(fact)
        facts += data.draw(st.lists(st.sampled_from(pages), max_size=2)) if pages else []
    assert fingerprint(run(facts)) == fingerprint(run(history.facts))


@PATIENT
@given(histories(), st.data())
def test_a_connection_may_be_cut_anywhere(history: History, data: st.DataObject) -> None:
    """What was on its way is lost; the next connection greets anew and goes on behind what was received."""
    fleet, clean, at = Fleet(), history.facts, 0
    for cut in sorted(data.draw(st.lists(st.integers(0, len(clean) - 1), max_size=4))):
        if cut < at:
            continue
        lost = data.draw(st.integers(0, cut - at))
        run(clean[at : cut + 1 - lost], fleet)
        greeting, log = history.greetings[cut]
        cursor = fleet.sources["here"].pos if "here" in fleet.sources else 0
        run([*greeting, *(f for f in log if (f.events[0].pos or 0) > cursor)], fleet)
        at = cut + 1
    run(clean[at:], fleet)
    expected, got = fingerprint(run(clean)), fingerprint(fleet)
    for key, session in expected["sessions"].items():
        lost_pieces = [e for e in got["sessions"][key]["log"] if e[2]]
        # A stream whose last piece was lost with a connection is closed by its whole, never left behind.
        assert not lost_pieces
        assert got["sessions"][key] == session
    for request, (state, delisted, *_) in got["requests"].items():
        ended, never, *_ = expected["requests"][request]
        # How a request ended may be lost together with the log; that it ended is not.
        assert state is ended or delisted
        assert fleet.requests[request].open == (ended in ANSWERABLE and not never)


@PATIENT
@given(histories(epochs=False), st.data())
def test_what_never_arrives_is_named(history: History, data: st.DataObject) -> None:
    numbered = [i for i, f in enumerate(history.facts) if is_event(f) and not is_delta(f)]
    lost = set(data.draw(st.lists(st.sampled_from(numbered)))) if numbered else set()
    fleet = run([fact for i, fact in enumerate(history.facts) if i not in lost])
    missing: dict[SessionKey, set[int]] = {}
    for i in lost:
        fact = history.facts[i]
        assert isinstance(fact, EventsFact)
        missing.setdefault(fact.key, set()).add(fact.events[0].seq or 0)
    for key, session in fleet.sessions.items():
        state = session.track.state(LATE)
        named = {n for first, last in state.missing for n in range(first, last + 1)}
        assert named == missing.get(key, set())
        assert (state.word is Continuity.GAP) == bool(named)
        assert [s for s in shown(session) if s in named] == []
        assert shown(session) == sorted(set(range(1, session.head + 1)) - named)


def shown(session: Session) -> list[int]:
    return [entry.fact.seq for entry in session.log.entries() if entry.fact.seq is not None]


@PATIENT
@given(histories(), st.data())
def test_with_epochs_too_nothing_is_missing_in_silence(history: History, data: st.DataObject) -> None:
    """Events that stray over the end of their epoch may be lost to it; then there is a gap to be seen."""
    facts = list(history.facts)
    for i in data.draw(st.lists(st.integers(0, len(facts) - 1), max_size=6)):
        if is_event(facts[i]) and not is_delta(facts[i]):
            facts.insert(data.draw(st.integers(0, len(facts) - 1)), facts.pop(i))
    fleet, clean = run(facts), run(history.facts)
    for key, session in fleet.sessions.items():
        assert session.epoch == clean.sessions[key].epoch
        want = set(shown(clean.sessions[key]))
        state = session.track.state(LATE)
        named = {n for first, last in state.missing for n in range(first, last + 1)}
        assert set(shown(session)) | named == want
