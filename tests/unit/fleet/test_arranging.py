"""Sorting, grouping, filtering and putting away: what stands where, and that a change costs no walk over all."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.changes import Changes
from console.fleet.facts import SessionKey
from console.fleet.needs import needs_by_session
from console.fleet.roster.arrangement import Grouping
from console.fleet.roster.census import Census
from console.fleet.roster.filter import parse
from console.fleet.roster.order import GroupKey, Sort
from console.fleet.roster.places import BLOCK, Places
from console.fleet.roster.rate import SLOT_MS
from console.fleet.views.roster import RosterView
from console.fleet.views.status import count_segments, need_segments
from tests.unit.fleet.scripted import ScriptedHost
from tests.unit.fleet.viewing import GLYPHS, roster, shown
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.words import RequestKind

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
GROUPINGS = (Grouping(), Grouping("none"), Grouping("source"), Grouping("label", "team"))


def sorted_by(host: ScriptedHost, sort: Sort, *, reverse: bool = False) -> list[str]:
    view = RosterView(host.fleet, GLYPHS)
    view.sort_by(sort, reverse=reverse)
    view.refresh(None, host.now)
    return shown(view)


def ref(host: ScriptedHost, id: str, asked_at: int) -> m.RequestRef:
    return m.RequestRef(id=id, kind=RequestKind.APPROVAL, asked_at=asked_at, digest="d")


@pytest.fixture
def three(host: ScriptedHost) -> ScriptedHost:
    host.session("beta", lifecycle="running", usage={"input_tokens": 50}, labels={"team": "web"})
    host.session("Alpha", lifecycle="failed", usage={"input_tokens": 5}, labels={"team": "ops"})
    host.session("gamma", lifecycle="idle")
    host.summary("beta", requests=[ref(host, "r1", host.there - 5_000)])
    host.summary("gamma", requests=[ref(host, "r2", host.there - 60_000)])
    return host


@pytest.mark.parametrize(
    ("sort", "names", "reversed_names"),
    [
        (Sort.ATTENTION, ["beta", "gamma", "Alpha"], ["Alpha", "beta", "gamma"]),
        (Sort.NAME, ["Alpha", "beta", "gamma"], ["gamma", "beta", "Alpha"]),
        (Sort.STATE, ["gamma", "beta", "Alpha"], ["Alpha", "beta", "gamma"]),
        (Sort.WAITING, ["gamma", "beta", "Alpha"], ["beta", "gamma", "Alpha"]),
        (Sort.USAGE, ["beta", "Alpha", "gamma"], ["Alpha", "beta", "gamma"]),
    ],
)
def test_what_stands_first(three: ScriptedHost, sort: Sort, names: list[str], reversed_names: list[str]) -> None:
    assert sorted_by(three, sort) == names
    assert sorted_by(three, sort, reverse=True) == reversed_names


def test_the_busiest_first_in_steps_of_time(three: ScriptedHost) -> None:
    view = RosterView(three.fleet, GLYPHS)
    view.sort_by(Sort.RATE)
    view.refresh(None, three.now)
    changes = three.events("gamma", *[{"kind": "message", "text": "x"}] * 9)
    assert not view.refresh(changes, three.now)
    three.now += SLOT_MS
    assert view.refresh(Changes(), three.now)
    assert shown(view)[0] == "gamma"
    three.now += 20 * SLOT_MS
    assert view.refresh(Changes(), three.now)
    assert shown(view)[0] == "Alpha"


def test_a_child_lifts_its_parent_but_not_by_its_name(three: ScriptedHost) -> None:
    three.session("aaa", parent="gamma", lifecycle="completed", usage={"input_tokens": 500})
    assert sorted_by(three, Sort.NAME) == ["Alpha", "beta", "gamma", "└ aaa"]
    assert sorted_by(three, Sort.USAGE) == ["gamma", "└ aaa", "beta", "Alpha"]


def grouped(host: ScriptedHost, grouping: Grouping) -> RosterView:
    view = RosterView(host.fleet, GLYPHS)
    view.group_by(grouping)
    view.refresh(None, host.now)
    return view


def test_groups_by_source_have_headings_that_count(three: ScriptedHost) -> None:
    three.session("kid", parent="beta", lifecycle="idle")
    view = grouped(three, Grouping("source"))
    assert shown(view) == ["here", "beta", "└ kid", "gamma", "Alpha"]
    heading = view.row(0)
    assert (heading.last, heading.needs, heading.wait, heading.state) == ("4 sessions", "2", "1:00", "source")


def test_groups_by_label_take_children_along_unless_theirs_says_otherwise(three: ScriptedHost) -> None:
    three.session("kid", parent="beta", lifecycle="idle")
    three.session("stray", parent="beta", lifecycle="idle", labels={"team": "ops"})
    view = grouped(three, Grouping("label", "team"))
    assert shown(view) == ["team: web", "beta", "└ kid", "no team", "gamma", "team: ops", "Alpha", "stray"]
    assert [view.row(i).needs for i in (0, 3, 5)] == ["1", "1", ""]
    view.refresh(three.summary("beta", labels={"team": "ops"}), three.now)
    assert shown(view) == ["team: ops", "beta", "├ kid", "└ stray", "Alpha", "no team", "gamma"]
    assert view.row(0).needs == "1"


def test_without_groups_everything_stands_by_itself(three: ScriptedHost) -> None:
    three.session("kid", parent="gamma", lifecycle="idle")
    assert shown(grouped(three, Grouping("none"))) == ["beta", "gamma", "Alpha", "kid"]


def test_groupings_name_the_labels_that_there_are(three: ScriptedHost) -> None:
    assert roster(three).groupings() == [Grouping(), Grouping("source"), Grouping("label", "team"), Grouping("none")]


def test_what_is_put_away_is_counted_where_it_was(three: ScriptedHost) -> None:
    three.session("kid", parent="beta", lifecycle="idle")
    three.session("grandkid", parent="kid", lifecycle="idle")
    three.summary("grandkid", requests=[ref(three, "r9", three.there)])
    view = roster(three)
    key = three.at("beta").key
    view.close(key, closed=True)
    view.refresh(Changes(), three.now)
    assert shown(view) == ["beta", "gamma", "Alpha"]
    assert (view.row(0).more, view.row(0).needs) == ("+2", "2")
    view.reveal(three.at("grandkid").key)
    assert shown(view) == ["beta", "└ kid", "  └ grandkid", "gamma", "Alpha"]
    view.close_all(closed=True)
    view.refresh(Changes(), three.now)
    assert shown(view) == ["beta", "gamma", "Alpha"]
    view.close_all(closed=False)
    view.refresh(Changes(), three.now)
    assert len(view) == 5


def test_a_parent_that_nobody_has_described_has_a_place(three: ScriptedHost) -> None:
    three.session("kid", parent="far", lifecycle="idle")
    view = roster(three)
    assert "far" in shown(view)
    view.refresh(three.summary("kid", parent=None), three.now)
    assert "far" not in shown(view)
    assert "kid" in shown(view)


def test_requests_that_the_filter_hides_are_counted(three: ScriptedHost) -> None:
    view = RosterView(three.fleet, GLYPHS, keep=lambda session: parse("state:failed").accepts(three.fleet, session))
    view.refresh(None, three.now)
    assert (shown(view), view.hidden) == (["Alpha"], 2)
    view.pin(three.at("gamma").key)
    assert (shown(view), view.hidden) == (["gamma", "Alpha"], 1)
    view.pin(None)
    assert (shown(view), view.hidden) == (["Alpha"], 2)
    view.keep = None
    view.refresh(Changes(), three.now)
    assert (len(view), view.hidden) == (3, 0)


def test_what_a_parent_counts_is_not_hidden(three: ScriptedHost) -> None:
    three.session("kid", parent="Alpha", lifecycle="idle")
    three.summary("kid", requests=[ref(three, "r9", three.there)])
    view = RosterView(three.fleet, GLYPHS, keep=lambda session: parse("state:failed").accepts(three.fleet, session))
    view.refresh(None, three.now)
    assert (shown(view), view.row(0).needs, view.hidden) == (["Alpha"], "1", 2)


# --- taking up changes is as good as starting over -------------------------------------------

NAMES = ("s0", "s1", "s2", "s3", "s4")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["state", "ask", "unask", "parent", "label", "usage", "event", "gone", "new", "close", "wait"]),
        st.sampled_from(NAMES),
        st.integers(0, 6),
    ),
    max_size=30,
)
FILTERS = ("", "-state:idle", "label:team=a", "is:asking", "-is:child")


@PATIENT
@given(STEPS, st.sampled_from(Sort), st.booleans(), st.sampled_from(GROUPINGS), st.sampled_from(FILTERS))
def test_taking_up_changes_is_as_good_as_starting_over(
    steps: list[tuple[str, str, int]], sort: Sort, reverse: bool, grouping: Grouping, text: str
) -> None:
    host = ScriptedHost()
    filter = parse(text)

    def view() -> RosterView:
        made = RosterView(host.fleet, GLYPHS, keep=lambda session: filter.accepts(host.fleet, session))
        made.group_by(grouping)
        made.sort_by(sort, reverse=reverse)
        return made

    for name in NAMES[:3]:
        host.session(name)
    kept = view()
    put_away: set[Any] = set()
    kept.refresh(None, host.now)
    for count, (step, name, n) in enumerate(steps):
        changes = take(host, step, name, n, count)
        if step == "close":
            key: Any = SessionKey(host.name, name)
            if n > 4:
                key = GroupKey("source", "", host.name) if n == 5 else GroupKey("label", "team", "a")
            put_away ^= {key}
            kept.close(key, closed=key in put_away)
        kept.refresh(changes, host.now)
        fresh = view()
        for key in put_away:
            fresh.close(key, closed=True)
        fresh.refresh(None, host.now)
        assert shown(kept) == shown(fresh)
        assert kept.needs == fresh.needs == needs_by_session(host.fleet)
        assert kept.hidden == fresh.hidden
        for i in range(len(kept)):
            assert kept.row(i) == fresh.row(i)
            assert kept.index(kept.key(i)) == i
            assert kept.below(kept.key(i)) == fresh.below(fresh.key(i))


def take(host: ScriptedHost, step: str, name: str, n: int, count: int) -> Changes:
    known = host.fleet.sessions.get(SessionKey(host.name, name))
    there = known is not None and not known.placeholder
    match step:
        case "state" if there:
            return host.summary(name, lifecycle=["idle", "running", "failed", "paused", "completed", "waiting"][n % 6])
        case "ask" if there:
            refs = [ref(host, f"r{count}-{i}", host.there - n * 1_000) for i in range(1 + n % 2)]
            return host.summary(name, requests=refs)
        case "unask" if there:
            return host.summary(name, requests=[])
        case "parent" if there:
            return host.summary(name, parent=[None, "s0", "s1", "s2", "s3", "far", None][n])
        case "label" if there:
            return host.summary(name, labels=[{}, {"team": "a"}, {"team": "b"}, {"other": "a"}][n % 4])
        case "usage" if there:
            return host.summary(name, usage={"turns": n, "input_tokens": n}, name=f"{'zyxab'[n % 5]}{name}")
        case "event" if there:
            return host.events(name, *[{"kind": "message", "text": "x"}] * n)
        case "gone" if there:
            return host.tell(f.Gone(sessions=(name,)))
        case "new" if not there:
            return host.summary(name, name=name, parent=[None, "s0", "s4"][n % 3], epoch="e1")
        case "wait":
            return host.wait(n * 3_000)
        case _:
            return Changes()


# --- what a change costs ---------------------------------------------------------------------


def many(sessions: int) -> ScriptedHost:
    host = ScriptedHost()
    profile = host.profile()
    host.tell(
        f.Sessions(
            sessions=tuple(
                m.Summary.model_validate(
                    {
                        "id": f"s{i}",
                        "name": f"agent-{i * 7_919 % sessions}",
                        "lifecycle": ["running", "idle", "completed"][i % 3],
                        "profile": profile,
                        "parent": f"s{i - 1}" if i % 10 else None,
                        "labels": {"team": f"t{i % 7}"},
                    }
                )
                for i in range(sessions)
            )
        )
    )
    return host


def calls(sessions: int, sort: Sort, grouping: Grouping) -> int:
    """Functions that are called where one session fails and another asks."""
    host = many(sessions)
    view = RosterView(host.fleet, GLYPHS, keep=lambda session: session.lifecycle != "completed")
    view.sort_by(sort)
    view.group_by(grouping)
    view.refresh(None, host.now)
    changes = host.summary("s42", lifecycle="failed")
    changes.merge(host.summary("s57", requests=[ref(host, "r1", host.there)], lifecycle="waiting"))
    changes.merge(host.summary("s90", parent="s61"))
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        view.refresh(changes, host.now)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("grouping", GROUPINGS[:3])
@pytest.mark.parametrize("sort", [Sort.ATTENTION, Sort.NAME])
def test_a_change_costs_no_walk_over_all(sort: Sort, grouping: Grouping) -> None:
    # What is left grows with the number of blocks, of which there are a few.
    assert calls(5_000, sort, grouping) < calls(100, sort, grouping) + 800


# --- the list of places ----------------------------------------------------------------------


@PATIENT
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10_000), st.integers(1, 3 * BLOCK)), max_size=25))
def test_places_are_those_of_a_plain_list(steps: list[tuple[bool, int, int]]) -> None:
    plain = list(range(100))
    places = Places(plain)
    fresh = 100
    for adds, at, count in steps:
        if adds:
            at %= len(plain) + 1
            new = list(range(fresh, fresh + count))
            fresh += count
            plain[at:at] = new
            places.insert(at, new)
        elif plain:
            at %= len(plain)
            count = min(count, len(plain) - at)
            assert places.cut(at, count) == plain[at : at + count]
            del plain[at : at + count]
        assert list(places) == plain
        assert len(places) == len(plain)
        assert [places.index(key) for key in plain[:3]] == [0, 1, 2][: len(plain)]
        assert not plain or places[len(plain) - 1] == plain[-1]
    assert places.index(-1) is None
    assert -1 not in places


# --- what waits, and how many are in which state ---------------------------------------------


@PATIENT
@given(STEPS)
def test_queue_and_census_are_as_good_as_counting_anew(steps: list[tuple[str, str, int]]) -> None:
    host = ScriptedHost()
    census = Census(host.fleet)
    for count, (step, name, n) in enumerate(steps):
        census.take_up(take(host, step, name, n, count))
        fleet = host.fleet
        asked = [request for session in fleet.sessions.values() for request in session.open_requests()]
        asked.sort(key=lambda request: (fleet.asked_local(request), request.key))
        assert fleet.queue.requests == asked
        assert [fleet.queue.place(request.key) for request in asked] == list(range(len(asked)))
        assert fleet.queue.by_source == Counter(request.key.source for request in asked)
        described = [s for s in fleet.sessions.values() if not s.placeholder]
        heard = [s.lifecycle for s in described if fleet.sources[s.key.source].live]
        assert census.counts == Counter(heard)
        assert census.last_known == len(described) - len(heard)


def bar_calls(sessions: int) -> int:
    """Functions that are called where one request comes, and the bars are asked what to say."""
    host = many(sessions)
    census = Census(host.fleet)
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    asked = {"id": "s57", "lifecycle": "failed", "requests": [ref(host, "r1", host.there)]}
    facts = host.intake.frame(f.Sessions(sessions=(m.Summary.model_validate(asked),)))
    sys.setprofile(note)
    try:
        changes = host.fleet.apply(facts, host.now)
        census.take_up(changes)
        count_segments(census)
        need_segments(host.fleet, host.now, GLYPHS)
    finally:
        sys.setprofile(None)
    return count


def test_the_bars_walk_over_nothing() -> None:
    assert bar_calls(5_000) < bar_calls(100) + 50
