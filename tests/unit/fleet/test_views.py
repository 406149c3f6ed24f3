"""The other views, and what all of them promise to the widgets and to the terminal."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from console.fleet.facts import ContactFact, Refusal, RequestKey
from console.fleet.gate import gate
from console.fleet.needs import next_request
from console.fleet.views.card import card
from console.fleet.views.facts import fact_rows
from console.fleet.views.log import SessionLog
from console.fleet.views.trail import trail_brief, trail_segment
from console.fleet.views.wording import clock_time, short_count
from tests.unit.fleet.scripted import ALLOW, ScriptedHost
from tests.unit.fleet.viewing import GLYPHS, KEYS, card_of, roster, status
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.text import Clean, clean_line, is_plain
from watchfloor.words import Contact, OptionKind, OutcomeKind, Primitive, RequestKind
from widgets.card_view import CardView
from widgets.event_log import LogLines
from widgets.facts import FactRows
from widgets.roster_view import RosterRows
from widgets.status_bar import StatusView


def test_the_views_are_what_the_widgets_read(host: ScriptedHost) -> None:
    """mypy holds this; running it shows that the protocols are met by real objects."""
    host.session("s1")
    asked = host.ask()
    rows: RosterRows = roster(host)
    lines: LogLines = SessionLog(host.fleet, host.at().key, GLYPHS, UTC)
    facts: FactRows = fact_rows(host.fleet, host.at().key, host.now)
    bar: StatusView = status(host.fleet, host.now, GLYPHS, UTC)
    one: CardView | None = card(host.fleet, asked, host.now, keys=KEYS, tz=UTC)
    assert (len(rows), len(lines), bool(facts), bool(bar.left), one is not None) == (1, 0, True, True, True)


# --- the log


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
        {
            "kind": "tool_result",
            "call": "c2",
            "status": "error",
            "exit_code": 2,
            "text": "\n\nno rule\nto make\n\nit\n",
        },
        {"kind": "tool_output", "call": "c2", "text": "one\ntwo\n"},
        {"kind": "tool_call", "call": "c3", "name": "write", "arguments": {"path": "a b", "text": "x\ny", "n": [1]}},
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
        ("done", "no rule", "failed", "+2 lines  ✗ exit 2"),
        ("out", "one␊two", "quiet", ""),
        ("tool", "write  path: a b, text: x␊y, n: [1]", "plain", ""),
        ("ask", "rm -rf build", "attention", "waits for you 0:14"),
        ("state", "failed  quota", "failed", ""),
        ("notice", "warning  retrying", "attention", ""),
        ("by hand", "pause  by ann: applied", "plain", ""),
        ("say", "stream", "plain", "…"),
        ("say", "", "plain", "a part is missing"),
    ]
    assert view.line(0).time == "22:13:20"
    host.decide("r1")
    assert (log(host).line(7).tone, log(host).line(7).tail) == ("plain", "")
    # The whole is a key away, with every line break.
    assert view.whole(4) == "error\n\n\nno rule\nto make\n\nit"


def test_what_a_policy_decided_was_not_done_by_hand(host: ScriptedHost) -> None:
    host.session("s1")
    trail = host.go(host.intent(Primitive.PAUSE, "s1", policy=Clean("no-force")))
    taken = {"kind": "intervention", "primitive": "pause", "by": "root", "outcome": "applied"}
    host.events("s1", {**taken, "command": trail.id}, {**taken, "command": "other"})
    view = log(host)
    assert [view.line(at).kind for at in range(2)] == ["policy", "by hand"]
    # Whose host tells it to everybody, other consoles know it as well.
    host.events("s1", {**taken, "command": "third", "automatic": True})
    assert log(host).line(2).kind == "policy"
    assert trail_brief(trail)[0].startswith("pause by policy no-force: ")


def test_who_decided_what_is_told_by_its_kind(host: ScriptedHost) -> None:
    host.session("s1")
    ended = {"kind": "request_resolved", "request": "r1", "state": "resolved", "by": "root"}
    taken = {"kind": "intervention", "command": "c", "by": "root", "outcome": "applied"}
    host.events(
        "s1",
        {**ended, "option": "no", "option_kind": "deny", "note": "too risky"},
        {**taken, "primitive": "approve", "option": "no", "option_kind": "deny"},
        {**taken, "primitive": "approve", "option": "yes", "option_kind": "allow"},
        {**taken, "primitive": "approve"},
        {**ended, "option_kind": "answer", "note": "rollback"},
        {**taken, "primitive": "answer", "option_kind": "answer"},
        {"kind": "lifecycle", "lifecycle": "running", "pending": "pausing"},
        {"kind": "lifecycle", "lifecycle": "paused", "why": "by root"},
    )
    view = log(host)
    assert [(line.kind, line.text) for line in map(view.line, range(len(view)))] == [
        ("decided", "denied by root: too risky"),
        ("by hand", "deny  by root: applied"),
        ("by hand", "approve  by root: applied"),
        ("by hand", "approve  by root: applied"),
        ("decided", 'answered "rollback" by root'),
        ("by hand", "answer  by root: applied"),
        ("state", "pausing (running)"),
        ("state", "paused  by root"),
    ]


def test_what_is_asked_by_arguments_alone_is_named_on_every_line(host: ScriptedHost) -> None:
    host.session("s1", last={"at": 1, "kind": "message", "text": "before"})
    action = m.Action(tool="shell", arguments={"command": "touch a", "deep": True})
    subject = m.Subject(
        session="s1", attempt=1, id="r1", kind=RequestKind.APPROVAL, actions=(action,), options=(ALLOW,)
    )
    host.open(m.RequestModel.ask(subject, asked_at=host.there))
    host.events("s1", {"kind": "request_opened", "request": "r1", "request_kind": "approval", "digest": "d"})
    line = "shell  command: touch a, deep: true"
    assert log(host).line(0).text == line
    assert roster(host).row(0).last == line
    assert facts(host)["waits"] == f"0:00  {line}"


def test_the_log_of_a_gone_session_is_empty(host: ScriptedHost) -> None:
    host.session("s1")
    view = log(host)
    host.tell(f.Gone(sessions=("s1",)))
    assert (len(view), view.first) == (0, 0)


def test_a_time_that_no_calendar_holds() -> None:
    assert clock_time(10**20, UTC) == "--:--:--"
    assert clock_time(-(10**20), UTC) == "--:--:--"


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


# --- the facts


def facts(host: ScriptedHost, session: str = "s1", **options: Any) -> dict[str, str]:
    rows = fact_rows(host.fleet, host.at(session).key, host.now, **options)
    merged: dict[str, str] = {}
    label = ""
    for name, value, *_ in rows:
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
    assert now["waits"] == "0:00  rm -rf build"
    assert "pause: between steps, or at once" in now["can"]
    assert "resume: Retry (attempt 2)" in now["can"]
    assert now["can"].endswith("\ninterrupt, fork, approve, answer, notify, delete")
    assert now["not now"] == "clear, compact: a turn is running"
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
    now = facts(host, read_only=True)
    assert "can" not in now
    assert now["not now"].startswith("send, pause, resume, interrupt, stop, clear, compact, ")
    assert ", answer, notify, delete, act: this console only watches" in now["not now"]
    host.session("s2", capabilities={})
    assert facts(host, "s2")["can"] == "nothing: observe only"


def test_lost_contact_stands_by_the_state(host: ScriptedHost) -> None:
    host.session("s1")
    host.contact(Contact.LOST)
    host.now += 42_000
    assert facts(host)["state"].endswith("last known: contact lost 0:42 ago")


def test_silence_counts_from_the_last_frame(host: ScriptedHost) -> None:
    host.session("s1")
    host.noticed(Contact.SILENT, 40_000)
    host.now += 2_000
    assert bar(host)[0][0] == "here silent 0:42"
    assert facts(host)["state"].endswith("last known: not heard for 0:42")
    assert facts(host)["source"] == "here, silent 0:42"
    refused = gate(host.fleet, host.intent(Primitive.PAUSE), host.now)
    assert refused == Refusal(OutcomeKind.UNDELIVERED, "here has been silent for 0:42")
    host.noticed(Contact.LOST, 60_000, "nothing was heard for 60 s", tries=1)
    assert bar(host)[0][0] == "here lost 1:00: nothing was heard for 60 s"


def test_a_host_that_ended_says_so_and_what_is_known_of_it_stays(host: ScriptedHost) -> None:
    host.session("s1", name="deploy")
    host.contact(Contact.LOST, "the host has ended")
    host.now += 42_000
    assert bar(host)[0] == ["here lost 0:42: the host has ended", "1 session", "1 last known"]
    assert facts(host)["source"] == "here, lost: the host has ended"
    assert facts(host)["state"].startswith("running")


def test_hosts_that_ended_are_one_number(host: ScriptedHost) -> None:
    for name in ("here", "there", "yonder"):
        host.fleet.apply([ContactFact(name, Contact.LOST, host.now, clean_line("the host has ended"))], host.now)
    host.fleet.apply([ContactFact("else", Contact.LOST, host.now, clean_line("refused"), 3, host.now + 1)], host.now)
    assert bar(host)[0] == ["else not reached for 0:00: refused, try 3", "3 sources lost: the host has ended"]


def test_commands_show_how_far_they_came(host: ScriptedHost) -> None:
    host.session("s1")
    trail = host.send(Primitive.PAUSE)
    assert "no word yet" in facts(host)["commands"]
    host.outcome(trail.id)
    assert facts(host)["commands"] == "pause: under way"
    assert trail_segment(trail, UTC)[0].endswith("effect not seen yet")
    host.summary("s1", lifecycle="paused")
    assert facts(host)["commands"] == "pause: effect seen"
    text, tone = trail_segment(trail, UTC)
    assert (text[-19:], tone) == ("effect seen: paused", "running")
    refused = host.send(Primitive.STOP)
    host.outcome(refused.id, OutcomeKind.REFUSED, reason="busy")
    assert trail_segment(refused, UTC) == (f"stop: sent {clock_time(host.now, UTC)}, refused: busy", "failed")
    # The newest first, and no more than say what just happened.
    host.send(Primitive.RESUME)
    assert facts(host)["commands"] == "resume: no word yet\nstop: refused: busy"


def test_facts_stand_in_the_order_in_which_they_are_needed(host: ScriptedHost) -> None:
    host.session(
        "s1", lifecycle="failed", error="no quota", why="no quota", cwd="/srv/app", blocked={"pause": "it failed"}
    )
    host.send(Primitive.RESUME)
    for number in range(5):
        host.ask(f"r{number}")
    labels: list[str] = [row[0] for row in fact_rows(host.fleet, host.at().key, host.now) if row[0]]
    assert labels[:7] == ["state", "attempt", "waits", "error", "can", "not now", "commands"]
    assert labels.index("cwd") < labels.index("source")
    waits = [row for row in fact_rows(host.fleet, host.at().key, host.now) if row[2] == "attention"]
    assert [len(row) for row in waits] == [4, 4, 4, 3, 3]
    assert waits[3][1] == "and 2 more"


def test_nothing_is_known_of_an_unknown_session(host: ScriptedHost) -> None:
    assert fact_rows(host.fleet, RequestKey("here", "x", "y").owner, host.now) == []


# --- the inbox and the bar


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
    assert bar(host)[0] == ["here lost 0:42, try 7"]
    assert bar(ScriptedHost(live=False))[0] == ["no sources"]


def test_what_waits_and_what_runs_is_counted_apart_where_contact_is_lost(host: ScriptedHost) -> None:
    host.session("s1")
    host.ask("r1")
    far = ScriptedHost(name="far", live=False)
    far.fleet = host.fleet
    far.contact(Contact.LIVE)
    far.welcome()
    far.session("s2")
    far.session("s3", lifecycle="waiting")
    far.ask("r2", "s3")
    far.contact(Contact.LOST)
    host.now += 60_000
    left, right = bar(host)
    assert left[-3:] == ["3 sessions", "1 running", "2 last known"]
    assert right[:2] == ["▴ 1 needs you, oldest 1:00", "1 asked before contact was lost"]
    host.contact(Contact.LOST)
    left, right = bar(host)
    assert left[-2:] == ["3 sessions", "3 last known"]
    assert right[0] == "2 asked before contact was lost"


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


# --- hostile text


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
    everything += [text for name, value, *_ in fact_rows(host.fleet, key, host.now) for text in (name, value)]
    everything += [text for text, _ in (*made.flags, *status(host.fleet, host.now, GLYPHS).left)]
    everything += [line for action in made.actions for line in action.lines]
    assert all(is_plain(text) for text in everything)
    assert any("␛" in text for text in everything)
