"""What is too large, negative or unreadable at the door: bounded by one limit each, said, and counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from console.fleet.facts import (
    NO_TIME,
    EventsFact,
    Fact,
    FaultFact,
    OutcomeFact,
    ProfileFact,
    RequestFact,
    SummaryFact,
    WatchingFact,
    WelcomeFact,
)
from console.intake import Intake
from console.intake.bounds import (
    KEEP_ACTION,
    KEEP_ACTION_LINES,
    KEEP_EVENT,
    KEEP_ID,
    KEEP_LABELS,
    KEEP_LINE,
    KEEP_LIST,
    KEEP_PROSE,
    LAST_TIME,
    MOST_COUNT,
    MOST_S,
    shown_json,
    size,
)
from watchfloor.canonical import digest
from watchfloor.connector import Received, Unreadable
from watchfloor.errors import ProtocolError
from watchfloor.protocol.codec import KEEP_RAW, Bad, decode_host
from watchfloor.words import Primitive

NOW = 1_700_000_000_000
HUGE = "9" * 300


class Door:
    """One source that speaks bytes, as the network brings them."""

    def __init__(self) -> None:
        self.intake = Intake("here", lambda: NOW)

    def takes(self, frame: str | dict[str, Any]) -> list[Fact]:
        raw = (frame if isinstance(frame, str) else json.dumps(frame)).encode()
        try:
            decoded = decode_host(raw)
        except ProtocolError as error:
            return self.intake.arrival(
                Unreadable(Bad(error.reason, error.raw[:KEEP_RAW].decode("utf-8", "replace")))
            )  # fmt: skip
        return self.intake.arrival(Received(decoded.frame, raw, decoded.bad))

    def session(self, fields: str) -> dict[str, Any]:
        """The attributes that a summary with these fields (JSON) tells."""
        facts = self.takes(f'{{"type":"sessions","sessions":[{{"id":"s1",{fields}}}]}}')
        [summary] = [fact for fact in facts if isinstance(fact, SummaryFact)]
        return dict(summary.fields)


@pytest.fixture
def door() -> Door:
    return Door()


def faults(facts: list[Fact]) -> list[FaultFact]:
    return [fact for fact in facts if isinstance(fact, FaultFact)]


def request(door: Door, subject: dict[str, Any], **rest: Any) -> RequestFact:
    whole = {"session": "s1", "attempt": 1, "id": "r1", "kind": "approval", **subject}
    made = {"subject": whole, "digest": digest(whole), "asked_at": NOW, **rest}
    facts = door.takes({"type": "request", "session": "s1", "request": made})
    [fact] = [fact for fact in facts if isinstance(fact, RequestFact)]
    return fact


# --- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [HUGE, f"-{HUGE}", "-1", "9007199254740992"])
def test_no_number_of_a_summary_is_beyond_its_limit(door: Door, value: str) -> None:
    fields = door.session(
        f'"attempt":{value},"since":{value},"head":{value},"mailbox":{{"queued":{value},"refs":{value}}},'
        f'"usage":{{"input_tokens":{value},"turns":{value},"budget_tokens":{value}}},'
        f'"last":{{"at":{value},"kind":"message","text":""}},'
        f'"in_flight":[{{"id":"c","name":"n","since":{value}}}],'
        f'"pending":{{"overlay":"pausing","since":{value}}},'
        f'"requests":[{{"id":"r","kind":"approval","asked_at":{value},"deadline":{value},"digest":"d"}}]'
    )
    [ref] = fields["request_refs"]
    assert fields["attempt"] in (None, MOST_COUNT)
    assert fields["since"] is ref.deadline is None
    assert {fields["last"].at, fields["pending"].since, fields["in_flight"][0][2], ref.asked_at} == {NO_TIME}
    usage = fields["usage"]
    for count in (fields["head"], fields["mail_queued"], fields["mail_refs"], usage.input_tokens, usage.turns):
        assert count in (0, MOST_COUNT)
    assert usage.budget_tokens in (None, MOST_COUNT)


@pytest.mark.parametrize("value", [HUGE, "-1", str(LAST_TIME)])
def test_no_number_of_an_event_is_beyond_its_limit(door: Door, value: str) -> None:
    facts = door.takes(
        '{"type":"events","session":"s1","epoch":"e","events":['
        f'{{"kind":"tool_result","seq":1,"pos":{value.lstrip("-")},"attempt":{value},"at":{value},"call":"c",'
        f'"status":"ok","exit_code":{HUGE},"duration_ms":{value}}},'
        f'{{"kind":"delta","at":1,"item":"i","offset":{HUGE},"text":"x"}},'
        f'{{"kind":"notice","seq":2,"at":1,"text":"x","next_at":{value}}}]}}'
    )
    [events] = [fact for fact in facts if isinstance(fact, EventsFact)]
    result, delta, notice = events.events
    assert result.at == NO_TIME
    assert result.attempt is None or result.attempt <= MOST_COUNT
    assert result.pos is not None
    assert result.pos <= MOST_COUNT
    assert result.data["exit_code"] is result.data["duration_ms"] is notice.data["next_at"] is None
    assert delta.offset == MOST_COUNT
    [fault] = faults(facts)
    assert fault.session == "s1"
    assert fault.count >= 5


def test_an_event_that_no_number_can_place_is_a_fault_of_its_session(door: Door) -> None:
    facts = door.takes(
        f'{{"type":"events","session":"s1","epoch":"e","events":[{{"kind":"message","seq":{HUGE},"at":1,"text":"x"}}]}}'
    )
    assert [fact.events for fact in facts if isinstance(fact, EventsFact)] == [()]
    [fault] = faults(facts)
    assert (fault.session, fault.reason) == ("s1", "an event whose number is beyond 2^53 - 1")


def test_no_number_about_a_source_is_beyond_its_limit(door: Door) -> None:
    greeting, *_ = door.takes(
        '{"type":"welcome","protocol":"watchfloor.v1","host":{"name":"h","version":"1"},"principal":"p",'
        f'"role":"operator","pos":{HUGE},"heartbeat_s":1e300,"now":{HUGE}}}'
    )
    assert isinstance(greeting, WelcomeFact)
    assert (greeting.pos, greeting.heartbeat_s, greeting.ahead_ms) == (MOST_COUNT, MOST_S, 0)
    watching, *_ = door.takes(f'{{"type":"watching","session":"*","from_pos":-{HUGE},"through":{HUGE}}}')
    assert isinstance(watching, WatchingFact)
    assert (watching.from_pos, watching.through) == (0, MOST_COUNT)


@pytest.mark.parametrize(
    ("value", "taken"), [("1e999", MOST_S), ("NaN", 0), ("-5", 0), (HUGE, MOST_S), ("2.5", 2.5), ("1e300", MOST_S)]
)
def test_a_duration_of_an_outcome_can_be_added_to_a_time(door: Door, value: str, taken: float) -> None:
    outcome, *_ = door.takes(
        f'{{"type":"outcome","id":"c","outcome":"applied","at":1,"info":{{"grace_s":{value},"n":{value}}}}}'
    )
    assert isinstance(outcome, OutcomeFact)
    assert outcome.info["grace_s"] == taken
    assert outcome.info["n"] is None or abs(outcome.info["n"]) <= MOST_COUNT


# --- texts ---------------------------------------------------------------------------------


def test_a_text_of_megabytes_is_cut_and_says_by_how_much(door: Door) -> None:
    fields = door.session(f'"name":"{"n" * 12_000_000}","error":"{"é" * 5_000_000}","cwd":"/{"c" * 9_000}"')
    assert fields["name"] == "n" * KEEP_LINE + "… 12.0 MB more not shown"
    assert fields["error"] == "é" * KEEP_PROSE + "\n… 10.0 MB more not shown"
    assert fields["cwd"].endswith("… 4.9 kB more not shown")


def test_the_first_labels_are_kept_and_the_rest_counted(door: Door) -> None:
    labels = json.dumps({f"k{i}": "v" for i in range(20_000)})
    fields = door.session(f'"labels":{labels}')
    assert len(fields["labels"]) == KEEP_LABELS
    assert fields["labels_more"] == 20_000 - KEEP_LABELS


def test_a_long_list_of_work_in_flight_is_counted(door: Door) -> None:
    flying = json.dumps([{"id": f"c{i}", "name": "n", "since": 1} for i in range(5_000)])
    fields = door.session(f'"in_flight":{flying}')
    assert len(fields["in_flight"]) + fields["in_flight_more"] == 5_000
    assert len(fields["in_flight"]) == KEEP_LIST


@pytest.mark.parametrize(
    "action",
    [
        {"tool": "sh", "text": "x" * (KEEP_ACTION + 1)},
        {"tool": "sh", "text": "a\n" * (KEEP_ACTION_LINES + 1)},
        {"tool": "sh", "text": "ls", "diff": "+\n" * (KEEP_ACTION_LINES + 1)},
        {"tool": "sh", "arguments": {"body": ["x" * 1000] * 400}},
        {"tool": "s" * (KEEP_LINE + 1), "text": "ls"},
        {"tool": "sh", "text": "ls", "cwd": "/" * (KEEP_LINE + 1)},
    ],
)
def test_an_action_that_cannot_be_shown_whole_is_not_complete(door: Door, action: dict[str, Any]) -> None:
    fact = request(door, {"actions": [action]})
    [shown] = fact.actions
    assert not shown.complete
    assert fact.sound  # the digest is that of the whole
    assert any("more not shown" in text for text in (shown.text, shown.diff or "", shown.tool, shown.cwd or ""))
    assert len(shown.text) + len(shown.diff or "") <= KEEP_ACTION + 100
    assert shown.text.count("\n") + (shown.diff or "").count("\n") <= KEEP_ACTION_LINES + 2


def test_an_action_just_within_the_limit_is_whole(door: Door) -> None:
    texts = ["x" * KEEP_ACTION, "a\n" * (KEEP_ACTION_LINES - 1)]
    for text in texts:
        [shown] = request(door, {"actions": [{"tool": "sh", "text": text}]}).actions
        assert shown.complete
        assert shown.text == text


def test_the_actions_of_a_request_share_one_room(door: Door) -> None:
    actions = [{"tool": "sh", "text": "a\n" * (KEEP_ACTION_LINES - 10)} for _ in range(3)]
    shown = request(door, {"actions": actions}).actions
    assert [action.complete for action in shown] == [True, False, False]
    assert sum(action.text.count("\n") for action in shown) <= KEEP_ACTION_LINES + 3


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ({"actions": [{"tool": "sh", "text": "ls"}] * (KEEP_LIST + 1)}, "it has 201 actions"),
        ({"options": [{"id": f"o{i}", "label": "o", "kind": "allow"} for i in range(201)]}, "it has 201 options"),
        ({"fields": [{"name": f"f{i}", "type": "text"} for i in range(201)]}, "it has 201 fields"),
        ({"options": [{"id": "o" * (KEEP_ID + 1), "label": "o", "kind": "deny"}]}, "an id in it is longer"),
    ],
)
def test_a_request_with_more_parts_than_can_be_shown_is_undecidable(
    door: Door, subject: dict[str, Any], reason: str
) -> None:
    fact = request(door, subject)
    assert fact.fault is not None
    assert fact.fault.startswith(reason)


def test_indented_json_stops_and_counts_the_rest() -> None:
    text, more = shown_json(["x" * 100] * 10_000, 1_000)
    assert len(text) < 1_300
    assert 900_000 < more < 1_100_000
    assert shown_json({"a": 1}) == ('{\n  "a": 1\n}', 0)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=20,
    )
)
@example([1e-05, -0.00002, 1e-7, 1e16])
def test_indented_json_is_that_of_the_standard_library(value: Any) -> None:
    whole = json.dumps(value, indent=2, ensure_ascii=False)
    assert shown_json(value) == (whole, 0)
    most = len(whole) // 2
    text, more = shown_json(value, most)
    assert whole.startswith(text)
    assert len(text) > most
    assert more >= 0


@pytest.mark.parametrize("kind", ["message", "notice", "mail", "diff", "tool_output", "reasoning", "raw"])
def test_a_long_event_is_cut_and_says_by_how_much(door: Door, kind: str) -> None:
    body: dict[str, Any] = {"text": "x" * 1_000_000, "data": "x" * 1_000_000, "path": "p", "ref": "#1", "state": "sent"}
    facts = door.takes(
        {"type": "events", "session": "s1", "epoch": "e", "events": [{"kind": kind, "seq": 1, "at": 1, **body}]}
    )
    [events] = [fact for fact in facts if isinstance(fact, EventsFact)]
    [event] = events.events
    assert event.text == "x" * KEEP_EVENT + "\n… 934.5 kB more not shown"


def test_names_that_nobody_knows_are_few(door: Door) -> None:
    profile, *_ = door.takes(
        {"type": "profiles", "profiles": {"p": {"capabilities": {f"zap{i}": {} for i in range(1_000)}}}}
    )
    assert isinstance(profile, ProfileFact)
    assert profile.unknown[-1] == "984 more"


def test_a_session_with_an_endless_id_is_refused(door: Door) -> None:
    facts = door.takes({"type": "sessions", "sessions": [{"id": "s" * 1_000_000}, {"id": "s1"}]})
    assert [fact.key.session for fact in facts if isinstance(fact, SummaryFact)] == ["s1"]
    assert [fault.reason for fault in faults(facts)] == ["a session with an id of 1.0 MB"]


def test_sizes() -> None:
    assert [size(n) for n in (0, 999, 1_000, 999_949, 999_950, 11_900_000)] == [
        "0 bytes", "999 bytes", "1.0 kB", "999.9 kB", "1.0 MB", "11.9 MB",
    ]  # fmt: skip


# --- what cannot be read -------------------------------------------------------------------


def test_one_bad_field_of_a_summary_costs_itself_alone(door: Door) -> None:
    facts = door.takes(
        {
            "type": "sessions",
            "sessions": [{"id": "s1", "lifecycle": "failed", "last": {"at": 1, "kind": "m", "text": "x" * 121}}],
        }
    )
    [summary] = [fact for fact in facts if isinstance(fact, SummaryFact)]
    assert summary.fields["lifecycle"] == "failed"
    assert "last" not in summary.fields
    [fault] = faults(facts)
    assert fault.session == "s1"
    assert fault.reason.startswith("last.text: ")


def test_a_badly_listed_request_is_still_listed(door: Door) -> None:
    refs = [{"id": "r1", "kind": "approval", "asked_at": "soon"}, {"id": "r2", "kind": "question", "digest": "d"}, 7]
    fields = door.session(f'"requests":{json.dumps(refs)}')
    assert [(ref.id, ref.asked_at) for ref in fields["request_refs"]] == [("r1", NO_TIME), ("r2", NO_TIME)]


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [300, 100_000])
def test_a_request_that_is_nested_too_deeply_is_a_request_that_says_so(door: Door, levels: int) -> None:
    door.session('"name":"n"')
    facts = door.takes(
        '{"type":"request","session":"s1","request":{"subject":{"session":"s1","id":"r1","kind":"approval",'
        f'"actions":[{{"tool":"sh","arguments":{nested(levels)}}}]}},"digest":"sha256:0","asked_at":{NOW}}}}}'
    )
    [fact] = [fact for fact in facts if isinstance(fact, RequestFact)]
    assert fact.key == ("here", "s1", "r1")
    assert fact.unread
    assert not fact.sound
    assert [fault.session for fault in faults(facts)] == ["s1"]


def test_a_request_with_a_bad_field_beside_its_subject_is_a_request_that_says_so(door: Door) -> None:
    subject = {"session": "s1", "id": "r1", "kind": "approval", "actions": [{"tool": "sh", "text": "ls"}]}
    made = {"subject": subject, "digest": digest(subject), "asked_at": "now", "deadline": 5}
    [fact, fault] = door.takes({"type": "request", "session": "s1", "request": made})
    assert isinstance(fact, RequestFact)
    assert isinstance(fault, FaultFact)
    assert fact.actions[0].text == "ls"
    assert fact.deadline == 5
    assert fact.fault == fault.reason


def test_a_bad_event_that_stands_in_the_log_is_no_second_row(door: Door) -> None:
    placed, lost = '{"kind":"message","seq":1,"at":1}', "7"
    for event, in_log in ((placed, True), (lost, False)):
        facts = door.takes(f'{{"type":"events","session":"s1","epoch":"e","events":[{event}]}}')
        assert [(fault.session, fault.in_log) for fault in faults(facts)] == [("s1", in_log)]


def test_an_unreadable_frame_names_its_session_where_it_is_known(door: Door) -> None:
    door.session('"name":"n"')
    for session, named in (("s1", "s1"), ("elsewhere", None)):
        [fault] = door.takes(f'{{"type":"presence","session":"{session}","request":7}}')
        assert isinstance(fault, FaultFact)
        assert fault.session == named


def test_a_word_that_is_offered_twice_is_offered_once(door: Door) -> None:
    offered = {"send": {"priorities": ["normal", "queue"] * 10_000}}
    profile, *_ = door.takes({"type": "profiles", "profiles": {"p": {"capabilities": offered}}})
    assert isinstance(profile, ProfileFact)
    assert profile.options[Primitive.SEND]["priorities"] == ("normal", "queue")
