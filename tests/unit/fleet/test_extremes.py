"""Whatever a source sends, as bytes or as facts: the console goes on, and every view can be painted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.apply import Fleet
from console.fleet.facts import (
    ActionFact,
    DecisionFact,
    EventFact,
    EventsFact,
    HoleFact,
    LastFact,
    PendingFact,
    ProfileFact,
    RequestFact,
    RequestKey,
    RequestRefFact,
    SessionKey,
    SummaryFact,
    UsageFact,
    WatchingFact,
    WelcomeFact,
)
from console.fleet.needs import next_request, open_requests
from console.fleet.views.card import card
from console.fleet.views.facts import fact_rows
from console.fleet.views.log import SessionLog
from console.fleet.views.roster import RosterView
from console.fleet.views.wording import ago, clock_time, elapsed, short_count
from console.intake import Intake
from tests.unit.fleet.viewing import GLYPHS, KEYS, status
from watchfloor.connector import Received, Unreadable
from watchfloor.errors import ProtocolError
from watchfloor.protocol.codec import KEEP_RAW, Bad, decode_host
from watchfloor.text import Clean, numeral, since
from watchfloor.words import Lifecycle, OptionKind, Overlay, Primitive, RequestKind, RequestState, Role

NOW = 1_700_000_000_000
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine that tests may be busy with other things."""
NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([0, -1, 10**17, -(10**17), 2**53, 2**63, 10**300, -(10**300), 10**5_000, -(10**5_000)]),
)


def painted(fleet: Fleet, now: int = NOW) -> list[str]:
    """Everything that the views say."""
    bar = status(fleet, now, GLYPHS, UTC)
    texts: list[str] = [text for text, _ in (*bar.left, *bar.right)]
    rows = RosterView(fleet, GLYPHS)
    rows.refresh(None, now)
    for i in range(len(rows)):
        key = rows.key(i)
        assert isinstance(key, SessionKey)
        row = rows.row(i)
        rows.version(key)
        texts += [row.name, row.state, row.attempt, row.needs, row.wait, row.last, row.usage, row.rate]
        texts += [f"{label} {value}" for label, value, *_ in fact_rows(fleet, key, now)]
        log = SessionLog(fleet, key, GLYPHS, UTC)
        log.now = now
        for at in range(len(log)):
            line = log.line(at)
            texts += [line.time, line.kind, line.text, line.tail, log.whole(at)]
    for request in fleet.requests.values():
        made = card(fleet, request.key, now, keys=KEYS, tz=UTC)
        assert made is not None
        texts += [*made.title, made.deadline, made.ending, *(text for text, _ in made.flags)]
    next_request(fleet)
    return texts


# --- words ---------------------------------------------------------------------------------


@PATIENT
@given(NUMBERS, NUMBERS)
def test_every_number_has_words(n: int, m: int) -> None:
    for text in (short_count(n), clock_time(n, UTC), ago(n, m), elapsed(n, m), since(n), numeral(n)):
        assert 0 < len(text) <= 25


@PATIENT
@given(st.data())
def test_every_view_paints_every_number(data: st.DataObject) -> None:
    def n() -> int:
        return data.draw(NUMBERS)

    key, ask = SessionKey("here", "s1"), RequestKey("here", "s1", "r1")
    fleet = Fleet()
    action = ActionFact(Clean("sh"), Clean("ls"), Clean("ls"), None, None, "c", True, 0)
    decision = DecisionFact("no", OptionKind.DENY, Clean("ann"), n(), None, False)
    state = data.draw(st.sampled_from([RequestState.OPEN, RequestState.RESOLVED]))
    fleet.apply(
        [
            WelcomeFact("here", Clean("h"), Clean("1"), "i", Clean("p"), Role.OPERATOR, n(), 15.0, n()),
            ProfileFact("here", "p", frozenset({Primitive.APPROVE}), {}, (), {}),
            SummaryFact(
                key,
                {
                    "lifecycle": Lifecycle.RUNNING,
                    "attempt": n(),
                    "since": n(),
                    "profile": "p",
                    "pending": PendingFact(Overlay.PAUSING, Clean("ann"), n()),
                    "in_flight": (("c", Clean("sh"), n()),),
                    "in_flight_more": abs(n()),
                    "labels_more": abs(n()),
                    "mail_queued": n(),
                    "mail_refs": n(),
                    "request_refs": (RequestRefFact("r2", RequestKind.APPROVAL, n(), n(), "d"),),
                    "usage": UsageFact(n(), n(), n(), n(), n()),
                    "last": LastFact(n(), Clean("m"), Clean("x")),
                    "head": n(),
                },
            ),
            RequestFact(
                ask, n(), RequestKind.APPROVAL, (action,), (), (), False, n(), n(), None, True, None,
                state, decision, "d", True,
            ),
            WatchingFact("here", "*", n(), n()),
            EventsFact(
                key,
                "",
                (
                    EventFact("tool_result", n(), abs(n()) + 1, n(), n(), None, None, None, None, Clean(""), Clean("x"),
                              {"status": "ok", "exit_code": n(), "duration_ms": n(), "call": "c"}),
                    EventFact("request_opened", n(), abs(n()) + 2, None, None, None, None, None, None, Clean(""),
                              Clean("x"), {"request": "r1"}),
                    EventFact("delta", n(), None, None, None, None, "i", abs(n()), None, Clean(""), Clean("x")),
                ),
            ),
            HoleFact(key, "", abs(n()), abs(n()), True, Clean("")),
        ],
        NOW,
    )  # fmt: skip
    painted(fleet)
    fleet.tick(NOW + 10_000)
    painted(fleet, NOW + 10_000)


# --- bytes ---------------------------------------------------------------------------------

SUBJECT = {
    "session": "s1",
    "attempt": 1,
    "id": "r1",
    "kind": "approval",
    "actions": [{"tool": "sh", "text": "ls", "arguments": {"a": 1}, "cwd": "/", "call": "c"}],
    "options": [{"id": "y", "label": "Yes", "kind": "allow"}, {"id": "n", "label": "No", "kind": "deny"}],
}
FRAMES: dict[str, dict[str, Any]] = {
    "welcome": {
        "type": "welcome", "protocol": "watchfloor.v1", "host": {"name": "h", "version": "1"}, "principal": "p",
        "role": "operator", "pos": 5, "heartbeat_s": 15.0, "now": NOW,
    },
    "profiles": {"type": "profiles", "profiles": {"p": {"capabilities": {"approve": {}, "stop": {"kill": True}}}}},
    "sessions": {
        "type": "sessions",
        "sessions": [
            {
                "id": "s1", "name": "n", "attempt": 1, "epoch": "e", "lifecycle": "running", "since": NOW,
                "profile": "p", "head": 3, "mailbox": {"queued": 1, "refs": 2}, "labels": {"a": "b"},
                "usage": {"input_tokens": 1, "output_tokens": 2, "turns": 3, "budget_tokens": 4, "budget_turns": 5},
                "last": {"at": NOW, "kind": "message", "text": "x"}, "blocked": {"stop": "no"}, "error": "e",
                "in_flight": [{"id": "c", "name": "sh", "since": NOW}], "pending": {"overlay": "pausing", "since": NOW},
                "requests": [{"id": "r1", "kind": "approval", "asked_at": NOW, "deadline": NOW, "digest": "d"}],
                "result": {"text": "t", "stop_reason": "end_turn", "session_id": "s"},
            }
        ],
    },
    "request": {
        "type": "request", "session": "s1",
        "request": {
            "subject": SUBJECT, "digest": "d", "asked_at": NOW, "deadline": NOW, "state": "open",
            "decision": {"option": "y", "kind": "allow", "by": "ann", "at": NOW},
        },
    },
    "beat": {"type": "beat", "now": NOW, "pos": 7},
    "watching": {"type": "watching", "session": "*", "from_pos": 0, "through": 9},
    "events": {
        "type": "events", "session": "s1", "epoch": "e",
        "events": [
            {"kind": "message", "seq": 1, "pos": 1, "attempt": 1, "at": NOW, "text": "x"},
            {"kind": "delta", "at": NOW, "item": "i", "offset": 0, "text": "x"},
            {"kind": "tool_call", "seq": 2, "at": NOW, "call": "c", "name": "sh", "arguments": {"a": 1}},
            {"kind": "tool_result", "seq": 3, "at": NOW, "call": "c", "status": "ok", "exit_code": 1,
             "duration_ms": 100},
            {"kind": "progress", "seq": 4, "at": NOW, "usage": {"input_tokens": 1, "output_tokens": 2}},
            {"kind": "notice", "seq": 5, "at": NOW, "text": "x", "next_at": NOW},
            {"kind": "raw", "seq": 6, "at": NOW, "data": {"a": 1}},
            {"kind": "weather", "seq": 7, "at": NOW, "a": 1},
        ],
    },
    "gap": {"type": "gap", "session": "s1", "epoch": "e", "from_seq": 10, "to_seq": 12},
    "lagged": {"type": "lagged", "session": "s1", "epoch": "e", "from_seq": 10, "to_seq": 12},
    "outcome": {
        "type": "outcome", "id": "cmd", "outcome": "applied", "at": NOW, "attempt": 1, "retry_after_s": 1.5,
        "info": {"grace_s": 2.0, "ref": "#1", "a": 1}, "decided": {"by": "ann", "at": NOW},
    },
    "presence": {"type": "presence", "session": "s1", "request": "r1", "looking": ["ann"]},
    "error": {"type": "error", "code": "other", "message": "m", "session": "s1", "fatal": False},
    "weather": {"type": "weather", "a": 1, "b": "c"},
}  # fmt: skip
"""One frame of each type, every field that may be absurd in it."""

ABSURD = [
    "9" * 300, "-" + "9" * 300, "9" * 4_400, "100000000000000000", "-1", "9007199254740992", "1e999", "-1e999", "1e300",
    "NaN", "null", '"x"', '"' + "9" * 5_000 + '"', "[]", "{}", "[" * 300 + "]" * 300, '{"a":' * 100 + "1" + "}" * 100,
    '"\\u0000\\ud800\\u202e"',
]  # fmt: skip
HERE = "@@here@@"


def mutants(frame: Any) -> Iterator[str]:
    """The frame as JSON with one value replaced, for each of its values."""

    def places(tree: Any, made: Any) -> Iterator[Any]:
        yield made(HERE)
        if isinstance(tree, dict):
            for name, value in tree.items():
                yield from places(value, lambda new, name=name: made({**tree, name: new}))
        elif isinstance(tree, list):
            for at, value in enumerate(tree):
                yield from places(value, lambda new, at=at: made([*tree[:at], new, *tree[at + 1 :]]))

    for tree in places(frame, lambda new: new):
        yield json.dumps(tree)


class Console:
    """The intake and the fleet of a source that has said one sensible thing of each sort."""

    def __init__(self) -> None:
        self.intake = Intake("here", lambda: NOW)
        self.fleet = Fleet()
        for name in ("welcome", "profiles", "sessions", "request"):
            self.takes(json.dumps(FRAMES[name]))

    def takes(self, frame: str) -> None:
        raw = frame.encode()
        try:
            decoded = decode_host(raw)
        except ProtocolError as error:
            bad = Bad(error.reason, error.raw[:KEEP_RAW].decode("utf-8", "replace"))
            self.fleet.apply(self.intake.arrival(Unreadable(bad)), NOW)
        else:
            self.fleet.apply(self.intake.arrival(Received(decoded.frame, raw, decoded.bad)), NOW)


@pytest.mark.parametrize("name", FRAMES)
def test_no_absurd_value_anywhere_in_a_frame_ends_the_console(name: str) -> None:
    for frame in mutants(FRAMES[name]):
        console = Console()
        for value in ABSURD:
            console.takes(frame.replace(f'"{HERE}"', value))
        for text in painted(console.fleet):
            assert len(text) < 20_000


def test_what_is_fed_to_that_test_is_read_where_it_is_sensible() -> None:
    console = Console()
    for frame in FRAMES.values():
        console.takes(json.dumps(frame))
    source = console.fleet.sources["here"]
    assert [fault.reason for fault in source.faults] == [
        "events of an unknown kind: weather",
        "other: m",
        "a frame of unknown type weather",
    ]
    assert (source.fault_count, source.error_count) == (2, 1)
    assert len(open_requests(console.fleet)) == 1
