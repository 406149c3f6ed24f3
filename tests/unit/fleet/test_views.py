"""The views: what the operator reads is what the fleet knows, and it fits what the widgets ask for."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.card_view import Card, card
from console.fleet.facts import RequestKey, Seen
from console.fleet.facts_view import fact_rows
from console.fleet.log_view import SessionLog
from console.fleet.needs import Needs, next_request, open_requests
from console.fleet.roster_view import RosterView, Row
from console.fleet.status_view import status
from console.fleet.trail_view import trail_segment
from console.fleet.wording import clock_time, short_count
from tests.unit.fleet.scripted import ALLOW, ALWAYS, DENY, ScriptedHost
from themes.loader import load_glyphs
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.text import is_plain
from watchfloor.words import Contact, OptionKind, OutcomeKind, Primitive
from widgets.card_view import CardView
from widgets.event_log import LogLines
from widgets.facts import FactRows
from widgets.roster_view import RosterRows
from widgets.status_bar import StatusView

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine that tests may be busy with other things."""

KEYS = {"approve": "a", "options": "A", "deny": "d", "deny_reason": "D", "answer": "o"}


def glyphs(name: str = "unicode") -> dict[str, str]:
    loaded = load_glyphs(name)
    return {**loaded.states, **loaded.overlays, **loaded.tree, **loaded.marks, "levels": loaded.levels}


GLYPHS = glyphs()


@pytest.fixture
def host() -> ScriptedHost:
    return ScriptedHost()


def roster(host: ScriptedHost) -> RosterView:
    view = RosterView(host.fleet, GLYPHS)
    view.refresh(None, host.now)
    return view


def shown(view: RosterView) -> list[str]:
    return [f"{row.tree}{row.name}" for row in map(view.row, range(len(view)))]


def row(host: ScriptedHost, session: str = "s1") -> Row:
    view = roster(host)
    at = view.index(host.at(session).key)
    assert at is not None
    return view.row(at)


def test_the_views_are_what_the_widgets_read(host: ScriptedHost) -> None:
    """mypy holds this; running it shows that the protocols are met by real objects."""
    host.session("s1")
    asked = host.ask()
    rows: RosterRows = roster(host)
    lines: LogLines = SessionLog(host.fleet, host.at().key, GLYPHS, UTC)
    facts: FactRows = fact_rows(host.fleet, host.at().key, host.now, tz=UTC)
    bar: StatusView = status(host.fleet, host.now, GLYPHS, UTC)
    one: CardView | None = card(host.fleet, asked, host.now, keys=KEYS, tz=UTC)
    assert (len(rows), len(lines), bool(facts), bool(bar.left), one is not None) == (1, 0, True, True, True)


# --- the roster ----------------------------------------------------------------------------


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
    assert asdict(row(host)) == {
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
        "rate": "▁▁▁▄",
        "usage": "12.3k",
        "can": "spxrXaoR",
        "demo": True,
        "marked": False,
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
    assert (row(host).state, row(host).tone) == ("running", "lost")


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
        case "gone":
            return host.tell(f.Gone(sessions=(name,)))
    return merged


# --- the log -------------------------------------------------------------------------------


def log(host: ScriptedHost, session: str = "s1") -> SessionLog:
    view = SessionLog(host.fleet, host.at(session).key, GLYPHS, UTC)
    view.now = host.now
    return view


def test_lines(host: ScriptedHost) -> None:
    host.session("s1")
    host.ask("r1")
    at = 1_700_000_000_000
    host.events(
        "s1",
        {"kind": "message", "text": "I will\nrebuild", "at": at},
        {"kind": "message", "role": "operator", "text": "do it"},
        {"kind": "tool_call", "call": "c1", "name": "shell", "text": "make\nbuild"},
        {"kind": "tool_result", "call": "c1", "status": "ok", "duration_ms": 3_240},
        {"kind": "tool_result", "call": "c2", "status": "error", "exit_code": 2, "text": "no rule"},
        {"kind": "request_opened", "request": "r1", "request_kind": "approval", "digest": "d", "text": "rm -rf build"},
        {"kind": "lifecycle", "lifecycle": "failed", "why": "quota"},
        {"kind": "notice", "level": "warning", "text": "retrying"},
        {"kind": "intervention", "primitive": "pause", "command": "c", "by": "ann", "outcome": "applied"},
        {"kind": "delta", "item": "i", "offset": 0, "text": "stream"},
        {"kind": "delta", "item": "j", "offset": 3, "text": "later"},
    )
    host.now += 14_000
    view = log(host)
    lines = [(line.kind, line.text, line.tone, line.tail) for line in map(view.line, range(len(view)))]
    assert lines == [
        ("say", "I will rebuild", "plain", ""),
        ("told", "do it", "plain", ""),
        ("tool", "shell  make␊build", "plain", ""),
        ("done", "ok", "plain", "✓ 3.2 s"),
        ("done", "no rule", "failed", "✗ exit 2"),
        ("ask", "rm -rf build", "attention", "waits for you 0:14"),
        ("state", "failed  quota", "failed", ""),
        ("notice", "warning  retrying", "attention", ""),
        ("by hand", "pause  by ann: applied", "plain", ""),
        ("say", "stream", "plain", "…"),
        ("say", "", "plain", "a part is missing"),
    ]
    assert view.line(0).time == "22:13:20"
    host.decide("r1")
    assert (log(host).line(5).tone, log(host).line(5).tail) == ("plain", "")


def test_the_log_of_a_gone_session_is_empty(host: ScriptedHost) -> None:
    host.session("s1")
    view = log(host)
    host.tell(f.Gone(sessions=("s1",)))
    assert (len(view), view.first) == (0, 0)


def test_a_time_that_no_calendar_holds() -> None:
    assert clock_time(10**20, UTC) == ""
    assert clock_time(-(10**20), UTC) == ""


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1.0k"),
        (12_345, "12.3k"),
        (118_400, "118k"),
        (999_600, "1.0M"),
        (10**30, "1000T"),
    ],
)
def test_short_counts(n: int, text: str) -> None:
    assert short_count(n) == text


# --- the facts -----------------------------------------------------------------------------


def facts(host: ScriptedHost, session: str = "s1", **options: Any) -> dict[str, str]:
    rows = fact_rows(host.fleet, host.at(session).key, host.now, tz=UTC, **options)
    merged: dict[str, str] = {}
    label = ""
    for name, value, _ in rows:
        label = name or label
        merged[label] = f"{merged[label]}\n{value}" if label in merged else value
    return merged


def test_facts_on_a_session(host: ScriptedHost) -> None:
    host.session(
        "s1", name="deploy", native_state="turn_active", since=host.now - 61_000, why="asked", cwd="/srv/app",
        labels={"team": "eu"}, mailbox={"queued": 1, "refs": 4}, in_flight=[{"id": "c1", "name": "shell", "since": 1}],
        usage={"input_tokens": 1_200, "output_tokens": 90, "turns": 1, "budget_turns": 5}, head=7,
        blocked={"reseed": "a turn is running"}, controls={"resume": "Retry (attempt 2)"},
    )  # fmt: skip
    host.session("kid", parent="s1", lifecycle="completed")
    host.ask("r1")
    now = facts(host)
    assert now["state"] == "running (turn_active), 1:01"
    assert now["attempt"] == "1"
    assert now["waits"] == "rm -rf build  0:00"
    assert "pause: between steps, or at once" in now["can"]
    assert "reseed: clear, compact\nnot now: a turn is running" in now["can"]
    assert "resume: Retry (attempt 2)" in now["can"]
    assert now["in flight"].startswith("shell")
    assert now["mailbox"] == "1 queued, 4 so far"
    assert now["usage"] == "1.2k tokens in, 90 out, 1 turn"
    assert now["budget"] == "5 turns"
    assert now["children"] == "1, 0 alive"
    assert now["labels"] == "team: eu"
    assert now["cwd"] == "/srv/app"
    assert now["source"] == "here, live"
    assert now["continuity"] == "not followed"
    assert now["id"] == "s1"


def test_an_observer_reads_why_nothing_works(host: ScriptedHost) -> None:
    host.session("s1")
    assert "not now: this console only watches" in facts(host, read_only=True)["can"]
    host.session("s2", capabilities={})
    assert facts(host, "s2")["can"] == "nothing: observe only"


def test_lost_contact_stands_by_the_state(host: ScriptedHost) -> None:
    host.session("s1")
    host.contact(Contact.LOST)
    host.now += 42_000
    assert facts(host)["state"].endswith("last known: contact lost 0:42 ago")


def test_commands_show_how_far_they_came(host: ScriptedHost) -> None:
    host.session("s1")
    trail = host.send(Primitive.PAUSE)
    assert "no word yet" in facts(host)["commands"]
    host.outcome(trail.id)
    assert facts(host)["commands"].endswith("effect not seen yet")
    host.summary("s1", lifecycle="paused")
    assert facts(host)["commands"].endswith("effect seen: paused")
    assert trail_segment(trail, UTC)[1] == "running"
    refused = host.send(Primitive.STOP)
    host.outcome(refused.id, OutcomeKind.REFUSED, reason="busy")
    assert trail_segment(refused, UTC) == (f"stop: sent {clock_time(host.now, UTC)}, refused: busy", "failed")


def test_nothing_is_known_of_an_unknown_session(host: ScriptedHost) -> None:
    assert fact_rows(host.fleet, RequestKey("here", "x", "y").owner, host.now) == []


# --- the card ------------------------------------------------------------------------------


def card_of(host: ScriptedHost, key: RequestKey, **options: Any) -> Card:
    made = card(host.fleet, key, host.now, keys=KEYS, tz=UTC, **options)
    assert made is not None
    return made


def choices(made: Card) -> list[tuple[str, str, bool]]:
    return [(option.key, option.label, option.enabled) for option in made.options]


def test_a_card(host: ScriptedHost) -> None:
    host.session("boss", name="deploy-eu")
    host.session("s1", name="migrate", parent="boss")
    asked = host.ask(
        text="rm -rf build\nmake migrate", about="clean rebuild, safe", deadline=host.now + 90_000, at_deadline="no"
    )
    host.now += 14_000
    made = card_of(host, asked)
    assert made.title[0] == "1 of 1  deploy-eu > migrate"
    assert made.title[1].endswith("waiting 0:14  attempt 1")
    assert (made.actions[0].lines, made.actions[0].size) == (("rm -rf build", "make migrate"), "2 lines, 25 chars")
    assert made.description == ("clean rebuild, safe",)
    assert made.deadline.endswith("(in 1:16): Deny")
    assert choices(made) == [
        ("a", "Approve once", True), ("A", "More", True), ("d", "Deny", True), ("D", "Deny with a reason", True),
    ]  # fmt: skip
    assert made.options[1].note == 'allow for this session: "Always"'
    assert (made.digest, made.digest_short) == (host.asked["r1"].digest, made.digest[7:11] + ".." + made.digest[-2:])


def test_keys_that_do_not_exist_are_not_drawn_as_if_they_did(host: ScriptedHost) -> None:
    host.session("s1")
    made = card_of(host, host.ask(options=(ALWAYS,)))
    assert choices(made) == [("a", "Approve once", False), ("A", "More", True), ("d", "Deny", False)]
    assert made.options[2].note == "it offers no option to deny"


def test_the_words_of_the_source_are_quoted(host: ScriptedHost) -> None:
    host.session("s1")
    tricky = m.Option(id="x", label="Deny (safe)", kind=OptionKind.ALLOW)
    made = card_of(host, host.ask(options=(tricky, DENY)))
    assert made.options[0].label == "Approve once"
    assert made.options[0].note.endswith('; the source calls it "Deny (safe)"')


def test_arming_is_said(host: ScriptedHost) -> None:
    host.session("s1")
    asked = host.ask()
    digest, since = host.request(asked).digest, host.now
    assert card_of(host, asked).armed == ""
    assert card_of(host, asked, seen=Seen(digest, since, False)).armed == "not before you have seen the end"
    assert card_of(host, asked, seen=Seen(digest, since, True)).armed == "armed in 0.3 s"
    host.now += 300
    assert card_of(host, asked, seen=Seen(digest, since, True)).armed == "armed"
    assert card_of(host, asked, seen=Seen("sha256:other", since, True)).armed == ""


def test_a_dead_card_says_who_ended_it(host: ScriptedHost) -> None:
    host.session("s1")
    asked = host.ask()
    host.decide("r1", "no", by="ann")
    host.now += 3_000
    made = card_of(host, asked)
    assert (made.open, made.options, made.armed, made.deadline) == (False, (), "", "")
    assert made.ending == "denied by ann 0:03 ago"


def test_doubts_stand_on_the_card(host: ScriptedHost) -> None:
    host.session("s1", traits={"approval_target": "all_pending", "requests": "lost"})
    host.ask("r2")
    asked = host.ask("r1", text="rm\u202e -rf\u200b")
    host.tell(f.Presence(session="s1", request="r1", looking=("ann",)))
    host.contact(Contact.SILENT)
    flags = [text for text, _ in card_of(host, asked).flags]
    assert flags == [
        "2 invisible or control characters were made visible",
        "contact with here is silent: last known state",
        "one decision settles this and 1 more at once",
        "unconfirmed: its source does not list what is open",
        "continuity: not followed",
        "also looking: ann",
    ]


def test_an_undecidable_card_has_no_live_button(host: ScriptedHost) -> None:
    host.session("s1")
    host.ask()
    asked = host.open(host.asked["r1"].model_copy(update={"digest": "sha256:0"}))
    made = card_of(host, asked)
    assert made.flags[0] == ("cannot be decided: its digest is not that of its text", "failed")
    assert not any(option.enabled for option in made.options)


def test_a_card_of_an_observer_has_no_live_button(host: ScriptedHost) -> None:
    host.session("s1")
    made = card_of(host, host.ask(), read_only=True)
    assert {option.note for option in made.options} == {"this console only watches (--read-only)"}


def test_a_question(host: ScriptedHost) -> None:
    host.session("s1")
    fields = [
        m.FormField.model_validate(
            {
                "name": "b", "label": "Which branch?", "type": "choice", "free_text": True,
                "choices": [{"value": "m", "label": "main", "note": "stable"}],
            }
        ),
        m.FormField.model_validate({"name": "k", "type": "secret"}),
    ]  # fmt: skip
    made = card_of(host, host.question(fields=fields), entered={"b": "dev", "k": "hunter2"})
    assert made.fields[0].choices == ("main  stable", "or in your own words")
    assert [field.value for field in made.fields] == ["dev", "*******"]
    assert choices(made) == [("o", "Answer", True)]


def test_a_request_whose_text_has_not_come(host: ScriptedHost) -> None:
    host.session("s1")
    ref = {"id": "r1", "kind": "approval", "asked_at": host.now, "digest": "sha256:ab"}
    host.summary("s1", requests=[ref])
    made = card_of(host, RequestKey("here", "s1", "r1"))
    assert (made.options, made.actions) == ((), ())
    assert made.flags == (("cannot be decided: its text has not come yet", "attention"),)


def test_no_card_for_what_is_not_known(host: ScriptedHost) -> None:
    assert card(host.fleet, RequestKey("here", "s1", "r9"), host.now, keys=KEYS) is None


# --- the inbox and the bar -----------------------------------------------------------------


def test_the_next_request_is_the_one_that_waits_longest(host: ScriptedHost) -> None:
    assert next_request(host.fleet) is None
    host.session("s1")
    host.session("s2")
    first = host.ask("r1", "s2")
    host.now += 1_000
    second = host.ask("r2", "s1")
    assert next_request(host.fleet) == first
    assert next_request(host.fleet, first) == second
    assert next_request(host.fleet, second) == first
    host.decide("r1")
    assert next_request(host.fleet, first) == second


def bar(host: ScriptedHost) -> tuple[list[str], list[str]]:
    made = status(host.fleet, host.now, GLYPHS, UTC)
    return [text for text, _ in made.left], [text for text, _ in made.right]


def test_the_bar(host: ScriptedHost) -> None:
    host.session("s1")
    host.session("s2", lifecycle="failed")
    host.session("s3", lifecycle="paused")
    host.ask("r1")
    host.now += 134_000
    left, right = bar(host)
    assert left == ["here live", "3 sessions", "1 running", "1 failed", "1 paused"]
    assert right == ["▴ 1 needs you, oldest 2:14", clock_time(host.now, UTC)]


def test_lost_contact_in_the_bar(host: ScriptedHost) -> None:
    host.contact(Contact.LOST, tries=1)
    host.now += 42_000
    host.contact(Contact.CONNECTING, tries=7)
    assert bar(host)[0] == ["here lost 0:42, last known state shown, try 7"]
    assert bar(ScriptedHost(live=False))[0] == ["no sources"]


@pytest.mark.parametrize(
    ("contact", "says"),
    [
        (Contact.CONNECTING, "here connecting"),
        (Contact.REFUSED, "here refused"),
        (Contact.UNATTACHED, "here unattached"),
    ],
)
def test_contact_in_the_bar(contact: Contact, says: str) -> None:
    host = ScriptedHost(live=False)
    host.contact(contact)
    assert bar(host)[0] == [says]


def test_how_far_behind_in_the_bar(host: ScriptedHost) -> None:
    host.tell(f.Watching(session="*", from_pos=0, through=12_345))
    assert "here: 12,345 events behind" in bar(host)[0]


# --- hostile text --------------------------------------------------------------------------


def test_views_hold_nothing_harmful(host: ScriptedHost) -> None:
    evil = "\x1b]52;c;x\x07\u202e\u200b"
    host = ScriptedHost(name=f"src{evil}")
    host.session(f"s{evil}", name="", parent=f"p{evil}", turn=evil, why=evil, error=evil, lifecycle="failed")
    deny = m.Option(id=evil, label=evil, kind=OptionKind.DENY)
    asked = host.ask(f"r{evil}", f"s{evil}", text=evil, about=evil, options=(ALLOW, deny))
    host.events(f"s{evil}", {"kind": "message", "text": evil, "author": evil})
    key = asked.owner
    view = roster(host)
    made = card_of(host, asked)
    line = SessionLog(host.fleet, key, GLYPHS).line(0)
    everything: list[str] = []
    for i in range(len(view)):
        one = view.row(i)
        everything += [one.name, one.source, one.last, one.tree, one.state]
    everything += [line.text, *made.title, *made.description, *(f"{o.label}{o.note}" for o in made.options)]
    everything += [text for name, value, _ in fact_rows(host.fleet, key, host.now) for text in (name, value)]
    everything += [text for text, _ in (*made.flags, *status(host.fleet, host.now, GLYPHS).left)]
    everything += [line for action in made.actions for line in action.lines]
    assert all(is_plain(text) for text in everything)
    assert any("␛" in text for text in everything)
