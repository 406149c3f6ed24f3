"""What could not be read is shown: in the bar, in the facts, in the log of its session, and as a card."""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

import pytest

from console.fleet.facts import FaultFact, RequestKey, Seen
from console.fleet.gate import gate
from console.fleet.needs import needs_by_session
from console.fleet.views.card import card
from console.fleet.views.facts import fact_rows
from console.fleet.views.log import Line, SessionLog
from console.fleet.views.status import contact_segments
from tests.unit.fleet.scripted import ScriptedHost
from tests.unit.fleet.viewing import GLYPHS, KEYS, card_of, row, status
from watchfloor.connector import Received
from watchfloor.protocol import frames as f
from watchfloor.protocol.codec import decode_host
from watchfloor.text import Clean
from watchfloor.words import Contact, OutcomeKind, Primitive


def send(host: ScriptedHost, frame: dict[str, Any]) -> None:
    raw = json.dumps(frame).encode()
    decoded = decode_host(raw)
    host.fleet.apply(host.intake.arrival(Received(decoded.frame, raw, decoded.bad)), host.now)


def bar(host: ScriptedHost) -> list[str]:
    return [text for text, _ in status(host.fleet, host.now, GLYPHS, UTC).left]


def facts(host: ScriptedHost, session: str = "s1") -> dict[str, str]:
    return {str(label): str(value) for label, value, *_ in fact_rows(host.fleet, host.at(session).key, host.now)}


def lines(host: ScriptedHost, session: str = "s1") -> list[Line]:
    view = SessionLog(host.fleet, host.at(session).key, GLYPHS, UTC)
    view.now = host.now
    return [view.line(i) for i in range(len(view))]


def test_a_field_that_cannot_be_read_is_told_in_bar_facts_and_log(host: ScriptedHost) -> None:
    host.session("s1")
    send(
        host,
        {
            "type": "sessions",
            "sessions": [{"id": "s1", "lifecycle": "failed", "last": {"at": 1, "kind": "m", "text": "x" * 121}}],
        },
    )
    assert host.at().lifecycle == "failed"
    reason = "last.text: String should have at most 120 characters"
    assert bar(host)[-1] == "here: 1 unreadable, last: last.text: String should have at most 120 chara…"
    assert facts(host)["unread"] == f"1 unreadable, last: {reason}"
    [line] = lines(host)
    assert (line.kind, line.text, line.tone, line.tail) == ("unread", reason, "attention", "")


def test_nothing_is_said_of_a_source_that_could_be_read(host: ScriptedHost) -> None:
    host.session("s1")
    host.events("s1", {"kind": "message", "text": "x"})
    assert not any("unread" in text for text in bar(host))
    assert "unread" not in facts(host)
    assert [line.kind for line in lines(host)] == ["say"]


def test_a_flood_of_what_cannot_be_read_is_one_line(host: ScriptedHost) -> None:
    host.session("s1")
    host.events("s1", {"kind": "message", "text": "before"})
    for _ in range(500):
        send(host, {"type": "events", "session": "s1", "epoch": "e1", "events": [7]})
    host.events("s1", {"kind": "message", "text": "after"})
    assert [(line.kind, line.text) for line in lines(host)][::2] == [("say", "before"), ("say", "after")]
    assert lines(host)[1].tail == "the last of 500"
    assert host.fleet.sources["here"].fault_count == 500


def test_an_error_of_a_session_stands_in_its_log_and_is_not_unreadable(host: ScriptedHost) -> None:
    host.session("s1")
    host.tell(f.Error(code=f.ErrorCode.NOT_FOUND, message="no such mailbox", session="s1"))
    [line] = lines(host)
    assert (line.kind, line.text) == ("error", "not_found: no such mailbox")
    assert not any("unreadable" in text for text in bar(host))


def test_a_fatal_error_is_why_contact_was_lost(host: ScriptedHost) -> None:
    host.session("s1")
    host.tell(f.Error(code=f.ErrorCode.NOT_PERMITTED, message="your token has ended", fatal=True))
    host.contact(Contact.LOST, "closed: 1008")
    said = "not_permitted: your token has ended"
    assert facts(host)["source"] == f"here, lost: {said}"
    assert contact_segments(host.fleet, host.now)[0][0] == f"here lost 0:00: {said}"
    host.contact(Contact.CONNECTING)
    assert said in contact_segments(host.fleet, host.now)[0][0]
    host.contact(Contact.LIVE)
    host.welcome()
    host.contact(Contact.LOST, "closed: 1006")
    assert said not in contact_segments(host.fleet, host.now)[0][0]


@pytest.fixture
def unread(host: ScriptedHost) -> RequestKey:
    """A request whose subject is nested too deeply."""
    host.session("s1")
    deep = json.loads("[" * 300 + "]" * 300)
    subject = {"session": "s1", "id": "r1", "kind": "approval", "actions": [{"tool": "sh", "arguments": deep}]}
    request = {"subject": subject, "digest": "sha256:0", "asked_at": host.there}
    send(host, {"type": "request", "session": "s1", "request": request})
    return RequestKey("here", "s1", "r1")


def test_a_request_that_cannot_be_read_is_a_card_that_says_so(host: ScriptedHost, unread: RequestKey) -> None:
    made = card_of(host, unread)
    assert made.open
    assert made.options == ()
    [flag] = [text for text, _ in made.flags if "could not be read" in text]
    assert flag.startswith("this agent asks something that could not be read: subject.actions")


def test_a_request_that_cannot_be_read_needs_somebody(host: ScriptedHost, unread: RequestKey) -> None:
    assert needs_by_session(host.fleet)[unread.owner].count == 1
    assert row(host).needs == "1"
    assert row(host).last.startswith("asks something that could not be read: ")
    assert any("1 needs you" in text for text, _ in status(host.fleet, host.now, GLYPHS, UTC).right)


@pytest.mark.parametrize("option", ["yes", "no"])
def test_a_request_that_cannot_be_read_cannot_be_decided(host: ScriptedHost, unread: RequestKey, option: str) -> None:
    seen = Seen("sha256:0", host.now - 1_000, True)
    refusal = gate(
        host.fleet, host.intent(Primitive.APPROVE, request="r1", option=option, seen=seen), host.now + 10_000
    )
    assert getattr(refusal, "outcome", None) is OutcomeKind.INVALID


def test_a_request_that_is_read_after_all_can_be_decided(host: ScriptedHost, unread: RequestKey) -> None:
    host.ask("r1")
    made = card_of(host, unread)
    assert any(option.enabled for option in made.options)
    assert not any("could not be read" in text for text, _ in made.flags)


def test_an_action_cut_at_the_door_says_so_and_is_not_complete(host: ScriptedHost) -> None:
    host.session("s1")
    key = host.ask("r1", text="rm x\n" * 20_000)
    [action] = card_of(host, key).actions
    assert not action.complete
    assert action.lines[-1] == "… 50.0 kB more not shown"
    assert len(action.lines) <= 10_002
    assert host.request(key).fact is not None
    assert host.request(key).digest == host.asked["r1"].digest


def test_an_unknown_time_is_said_and_stands_last(host: ScriptedHost) -> None:
    host.session("s1")
    odd = host.ask("odd", asked_at=10**17)
    plain = host.ask("plain")
    waiting = [request.key for request in host.at().open_requests()]
    assert waiting == [plain, odd]
    title = card_of(host, odd).title
    assert title[0].startswith("2 of 2")
    assert "asked --:--:--, waiting unknown time" in title[1]
    assert row(host).wait == "0:00"
    assert all(len(text) < 60 for text, _ in status(host.fleet, host.now, GLYPHS, UTC).right)


def test_more_labels_and_more_in_flight_are_counted(host: ScriptedHost) -> None:
    flying = [{"id": f"c{i}", "name": "sh", "since": 1} for i in range(1_000)]
    host.session("s1", labels={f"k{i:05}": "v" for i in range(5_000)}, in_flight=flying)
    assert facts(host)["labels"].endswith("\nand 4,936 more")
    assert facts(host)["in flight"].endswith("\nand 994 more")


@pytest.mark.parametrize("mode", ["clear", "compact"])
def test_a_reseed_is_called_what_its_key_calls_it(host: ScriptedHost, mode: str) -> None:
    host.session("s1", lifecycle="idle")
    trail = host.send(Primitive.RESEED, mode=mode)
    assert trail.verb == mode
    host.outcome(trail.id)
    event = {"kind": "intervention", "primitive": "reseed", "command": trail.id, "by": "ann", "outcome": "applied"}
    host.events("s1", event, {"kind": "reseeded", "mode": mode, "by": "ann"})
    said = [f"{line.kind} {line.text}" for line in lines(host)]
    assert said == [f"by hand {mode}  by ann: applied", f"{mode} by ann"]
    told = [str(value) for _, value, *_ in fact_rows(host.fleet, host.at().key, host.now)]
    assert any("clear, compact" in text for text in told)
    assert not any("reseed" in text for text in (*told, *said))


def test_a_fault_of_an_unknown_session_makes_none(host: ScriptedHost) -> None:
    host.fleet.apply([FaultFact("here", Clean("odd"), Clean(""), session="nobody")], host.now)
    assert not host.fleet.sessions
    assert card(host.fleet, RequestKey("here", "nobody", "r"), host.now, keys=KEYS) is None
