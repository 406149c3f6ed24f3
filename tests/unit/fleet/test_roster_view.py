"""The roster: who needs somebody stands first, and the same version means the same row."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.changes import Changes
from console.fleet.needs import Needs, open_requests
from console.fleet.views.log import SessionLog
from console.fleet.views.roster import RosterView
from console.fleet.views.row import Row
from tests.unit.fleet.scripted import ScriptedHost
from tests.unit.fleet.viewing import GLYPHS, glyphs, roster, row, shown
from watchfloor.protocol import frames as f
from watchfloor.words import Contact, Lifecycle, Primitive
from widgets.columns import columns_for

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine that tests may be busy with other things."""


def test_attention_first_then_names(host: ScriptedHost) -> None:
    for name, state in [
        ("busy", "running"), ("done", "completed"), ("Broken", "failed"), ("asks", "running"), ("rest", "idle"),
        ("held", "paused"), ("also-busy", "running"),
    ]:  # fmt: skip
        host.session(name, lifecycle=state)
    host.ask("r1", "asks")
    assert shown(roster(host)) == ["asks", "Broken", "held", "also-busy", "busy", "rest", "done"]


def test_waiting_alone_needs_nobody(host: ScriptedHost) -> None:
    host.session("s1", lifecycle="waiting")
    host.session("s2", lifecycle="running")
    host.ask("r1", "s2")
    assert shown(roster(host)) == ["s2", "s1"]
    assert (row(host, "s1").needs, row(host, "s1").tone) == ("", "running")
    assert (row(host, "s2").needs, row(host, "s2").tone) == ("1", "attention")


def test_children_stand_under_their_parents(host: ScriptedHost) -> None:
    host.session("boss")
    host.session("alone", lifecycle="failed")
    host.session("kid-b", parent="boss", lifecycle="idle")
    host.session("kid-a", parent="boss", lifecycle="idle")
    host.session("grandkid", parent="kid-a", lifecycle="idle")
    assert shown(roster(host)) == ["alone", "boss", "├ kid-a", "│ └ grandkid", "└ kid-b"]
    # What waits below lifts the whole tree, and the branch in which it waits.
    host.ask("r1", "kid-b")
    assert shown(roster(host)) == ["boss", "├ kid-b", "└ kid-a", "  └ grandkid", "alone"]


def test_needs_are_own_and_descendants(host: ScriptedHost) -> None:
    host.session("boss")
    host.session("kid", parent="boss")
    host.ask("r1", "kid")
    host.now += 134_000
    host.ask("r2", "boss")
    view = roster(host)
    assert view.needs == {
        host.at("boss").key: Needs(2, 1_000_000),
        host.at("kid").key: Needs(1, 1_000_000),
    }
    assert (row(host, "boss").needs, row(host, "boss").wait) == ("2", "2:14")
    host.decide("r1")
    assert (row(host, "kid").needs, row(host, "kid").wait) == ("", "")


def test_waits_are_told_by_the_clock_of_the_source() -> None:
    host = ScriptedHost(ahead=3_600_000)
    host.session("s1")
    host.ask("r1")
    host.now += 31_000
    assert row(host).wait == "0:31"


def test_letters_have_their_places(host: ScriptedHost) -> None:
    host.session("all")
    host.session("some", capabilities={"pause": {}, "resume": {}, "approve": {}})
    host.session("none", capabilities={})
    host.summary("unsaid", name="unsaid")
    assert row(host, "all").can == "spxrXaoR"
    assert row(host, "some").can == "·p·r·a··"
    assert row(host, "none").can == "observe"
    assert row(host, "unsaid").can == ""
    view = RosterView(host.fleet, glyphs("ascii"))
    view.refresh(None, host.now)
    assert {view.row(i).can for i in range(4)} == {"spxrXaoR", ".p.r.a..", "observe", ""}


def test_a_row_in_full(host: ScriptedHost) -> None:
    host.session(
        "s1", name="deploy", attempt=3, demo=True, usage={"input_tokens": 12_000, "output_tokens": 345},
        last={"at": 1, "kind": "message", "text": "fetched 41 pages"},
    )  # fmt: skip
    host.events("s1", *[{"kind": "message", "text": "x"}] * 5)
    assert row(host)._asdict() == {
        "glyph": GLYPHS["running"],
        "state": "running",
        "tone": "running",
        "name": "deploy",
        "tree": "",
        "source": "here",
        "attempt": "3",
        "needs": "",
        "wait": "",
        "last": "fetched 41 pages",
        "rate": "▁▁▁▁▁▁▁▁▁▁▁▄",
        "usage": "12.3k",
        "can": "spxrXaoR",
        "demo": True,
        "marked": False,
        "more": "",
    }
    host.now += 60_000
    assert row(host).rate == ""


def test_what_waits_stands_in_the_row(host: ScriptedHost) -> None:
    host.session("s1")
    host.ask(text="rm -rf build\nmake")
    assert row(host).last == "rm -rf build␊make"


def test_a_failure_says_why(host: ScriptedHost) -> None:
    host.session("s1", lifecycle="failed", error="model refused:\nquota")
    assert (row(host).last, row(host).tone) == ("model refused: quota", "failed")


def test_secrets_are_masked_in_rows_and_lines(host: ScriptedHost) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    host.session("s1", last={"at": 1, "kind": "message", "text": f"token {secret}"})
    host.events("s1", {"kind": "message", "text": f"token {secret}"})
    assert secret not in row(host).last
    assert secret not in SessionLog(host.fleet, host.at().key, GLYPHS).line(0).text
    assert "masked" in row(host).last


def test_lost_contact_is_not_stopped(host: ScriptedHost) -> None:
    host.session("s1")
    host.contact(Contact.LOST)
    assert (row(host).glyph, row(host).state, row(host).tone) == ("?", "was running", "lost")
    host.contact(Contact.LIVE)
    assert (row(host).state, row(host).tone) == ("running", "running")


def test_no_last_known_state_is_wider_than_its_column(host: ScriptedHost) -> None:
    cells = next(column.width for column in columns_for(80) if column.name == "state")
    for state in Lifecycle:
        host.session("s1", lifecycle=state)
        host.contact(Contact.LOST)
        assert row(host).state.startswith("was ") or state is Lifecycle.UNKNOWN
        assert len(row(host).state) <= cells
        host.contact(Contact.LIVE)


def test_an_observed_session_has_its_own_glyph(host: ScriptedHost) -> None:
    host.session("s1", capabilities={})
    assert row(host).glyph == GLYPHS["observed"]


def test_an_overlay_stands_over_the_state(host: ScriptedHost) -> None:
    host.session("s1")
    view = roster(host)
    version = view.version(host.at().key)
    trail = host.send(Primitive.PAUSE)
    assert (row(host).state, row(host).glyph) == ("pausing", GLYPHS["pausing"])
    assert view.version(host.at().key) != version
    host.outcome(trail.id)
    host.summary("s1", lifecycle="paused")
    assert row(host).state == "paused"


def test_a_circle_of_parents_still_shows_every_session(host: ScriptedHost) -> None:
    host.summary("a", name="a", parent="b")
    host.summary("b", name="b", parent="a")
    host.summary("c", name="c", parent="c")
    host.summary("d", name="d", parent="a")
    assert sorted(row.name for row in map(roster(host).row, range(4))) == ["a", "b", "c", "d"]


def test_a_very_deep_tree(host: ScriptedHost) -> None:
    for i in range(3_000):
        host.summary(f"s{i}", name=f"s{i}", parent=f"s{i - 1}" if i else None)
    view = roster(host)
    assert len(view) == 3_000


def test_a_filter_keeps_children_whose_parents_it_hides(host: ScriptedHost) -> None:
    host.session("boss", lifecycle="completed")
    host.session("kid", parent="boss")
    view = RosterView(host.fleet, GLYPHS, keep=lambda session: session.lifecycle != "completed")
    view.refresh(None, host.now)
    assert shown(view) == ["kid"]
    changes = host.summary("boss", lifecycle="running")
    assert view.refresh(changes, host.now)
    assert shown(view) == ["boss", "└ kid"]


def test_a_key_that_is_not_shown_has_no_index(host: ScriptedHost) -> None:
    host.session("s1")
    view = roster(host)
    assert view.index(("here", "other")) is None
    assert [view.index(view.key(i)) for i in range(len(view))] == [0]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["state", "ask", "decide", "event", "contact", "wait", "pause", "mark", "parent", "new", "gone"]
        ),
        st.sampled_from(["s0", "s1", "s2"]),
        st.integers(0, 5),
    ),
    max_size=25,
)


@PATIENT
@given(STEPS)
def test_taking_up_changes_is_as_good_as_starting_over(steps: list[tuple[str, str, int]]) -> None:
    """The order, and what a version promises: the same version means the same row."""
    host = ScriptedHost()
    for name in ("s0", "s1"):
        host.session(name)
    view = roster(host)
    known: dict[Any, tuple[int, Row]] = {}
    for count, (step, name, n) in enumerate(steps):
        changes = _take(host, step, name, n, count, view)
        view.refresh(changes, host.now)
        fresh = RosterView(host.fleet, GLYPHS)
        fresh.marked = view.marked
        fresh.refresh(None, host.now)
        assert [view.key(i) for i in range(len(view))] == [fresh.key(i) for i in range(len(fresh))]
        for i in range(len(view)):
            key, now = view.key(i), view.row(i)
            assert now == fresh.row(i)
            assert view.index(key) == i
            version = view.version(key)
            if key in known and known[key][0] == version:
                assert known[key][1] == now
            known[key] = (version, now)


def _take(host: ScriptedHost, step: str, name: str, n: int, count: int, view: RosterView) -> Any:
    merged = host.fleet.apply([], host.now)
    exists = (host.name, name) in host.fleet.sessions and not host.at(name).placeholder
    match step:
        case "state" if exists:
            states = ["idle", "running", "failed", "paused", "completed", "waiting"]
            return host.summary(name, lifecycle=states[n], usage={"turns": n, "input_tokens": n})
        case "ask" if exists:
            before = set(host.fleet.requests)
            host.ask(f"r{count}", name)
            merged.requests |= set(host.fleet.requests) - before
            merged.sessions.add(host.at(name).key)
        case "decide":
            waiting = [id for id, r in host.asked.items() if r.state == "open"]
            if waiting:
                session = str(host.asked[waiting[0]].subject["session"])
                if (host.name, session) in host.fleet.sessions:
                    before_open = {r.key for r in open_requests(host.fleet)}
                    host.decide(waiting[0])
                    merged.requests |= before_open
                    merged.sessions.add(host.at(session).key)
        case "event" if exists:
            return host.events(name, *[{"kind": "message", "text": "x"}] * n)
        case "contact":
            return host.contact([Contact.LIVE, Contact.LOST, Contact.SILENT][n % 3])
        case "wait":
            return host.wait(n * 700)
        case "pause" if exists and host.fleet.sources[host.name].live:
            intent = host.intent(Primitive.PAUSE, name, id=f"c{count}")
            return host.fleet.requested(intent, host.now)
        case "mark":
            view.marked ^= {host.at(name).key} if exists else set()
        case "parent" if exists:
            return host.summary(name, parent=[None, "s0", "s1", "s2", "far", None][n])
        case "new" if not exists:
            host.session(name)
            merged.structure = True
            merged.sessions.add(host.at(name).key)
        case "gone":
            return host.tell(f.Gone(sessions=(name,)))
    return merged


def test_a_stall_is_told_by_its_evidence(host: ScriptedHost) -> None:
    host.session("s1", since=host.there, last={"at": host.there, "kind": "message", "text": "on it"})
    host.events("s1", {"kind": "message", "text": "on it"})
    host.now += 59_000
    assert row(host).last == "on it"
    view = roster(host)
    version = view.version(host.at().key)
    host.now += 75_000
    view.refresh(Changes(), host.now)
    assert view.version(host.at().key) != version
    assert row(host).last == "no event for 2:14, nothing in flight"
    host.summary("s1", in_flight=[{"id": "c1", "name": "shell", "since": host.there}])
    assert row(host).last == "on it"
    host.summary("s1", in_flight=[])
    host.events("s1", {"kind": "reasoning", "text": "hm"})
    assert row(host).last == "on it"


def test_who_waits_is_idle_has_children_or_is_not_heard_does_not_stall(host: ScriptedHost) -> None:
    said = {"at": host.there, "kind": "message", "text": "said"}
    for name, lifecycle in [("idle", "idle"), ("boss", "running"), ("mute", "running")]:
        host.session(name, lifecycle=lifecycle, last=said)
    host.summary("mute", last=None)
    host.session("kid", lifecycle="idle", parent="boss", last=said)
    host.now += 600_000
    assert [row(host, name).last for name in ("idle", "boss", "kid", "mute")] == ["said", "said", "said", ""]
    host.session("s1", last=said)
    assert "no event" in row(host).last
    host.ask("r1")
    assert row(host).last == "rm -rf build"
    host.decide("r1")
    host.contact(Contact.LOST)
    assert row(host).last == "said"
