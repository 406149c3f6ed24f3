"""The door: whatever a source sends, nothing harmful passes, nothing is hidden, and a digest binds what is shown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.fleet.facts import (
    BeatFact,
    ContactFact,
    EventFact,
    EventsFact,
    Fact,
    FaultFact,
    ListedFact,
    OutcomeFact,
    ProfileFact,
    RequestFact,
    RequestKey,
    SessionKey,
    SummaryFact,
    WelcomeFact,
)
from console.fleet.log import Log
from console.intake import Intake
from console.intake.bounds import KEEP_EVENT, Reading
from console.intake.events import event_fact, event_facts
from watchfloor.canonical import subject_digest
from watchfloor.connector import Received, Unreadable
from watchfloor.protocol import events as e
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.protocol.codec import Bad, decode_host
from watchfloor.text import clean, clean_prose
from watchfloor.words import Contact, Delivery, Lifecycle, OptionKind, Primitive, RequestKind

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""The machine that tests may be busy with other things."""

NOW = 1_700_000_000_000

HOSTILE = [
    "\x1b[31mred",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b]0;title\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x1b_Gpayload",
    "\x9b2J\x85",
    "safe\u202egnp.exe\u202c",
    "\u2066hidden\u2069",
    "a\u200bb\u200cc\ufeffd",
    "tag\U000e0041\U000e0042",
    "line\u2028break\u2029",
    "over\rwritten\b\b\b",
    "bell\x07null\x00",
    "\u00adsoft",
]

RAW = {
    "source", "session", "request", "id", "turn", "item", "key", "call", "epoch", "instance", "parent", "profile",
    "option", "digest", "value", "ref", "command", "child", "reply_to", "owner",
}  # fmt: skip
"""Ids and keys: exact by design, cleaned where they are shown."""


def intake() -> Intake:
    return Intake("here", lambda: NOW)


def texts(value: Any, name: str = "", within: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a fact that is meant to be shown, with where it stands."""
    if isinstance(value, str):
        # The raw name of a field is what goes back in an answer; its label is shown.
        if name not in RAW and within + name not in ("FieldFact.name", "OptionFact.id"):
            yield within + name, str(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for part in dataclasses.fields(value):
            yield from texts(getattr(value, part.name), part.name, f"{type(value).__name__}.")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if name == "labels":
                yield from texts(key, "label")
            yield from texts(inner, str(key))
    elif isinstance(value, SessionKey | RequestKey):
        return
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        for part_name, part in value._asdict().items():
            yield from texts(part, part_name, f"{type(value).__name__}.")
    elif name == "in_flight" and isinstance(value, tuple):
        for _, shown, _ in value:
            yield from texts(shown, "in_flight")
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from texts(inner, name, within)


def frames_full_of(text: str) -> list[f.HostFrame | f.UnknownFrame]:
    """Every frame that a host may send, with the text in every place that takes one."""
    act = m.Act(id=text, label=text, effect=text, fields=(field_of(text),))
    capabilities = m.Capabilities.model_validate({"act": m.ActOptions(acts=(act,)), text: {}})
    decision = m.Decision(option=text, kind=OptionKind.ALLOW, by=text, at=1, note=text)
    summary = m.Summary(
        id="s1", name=text, parent=text, turn=text, epoch=text, native_state=text, why=text, profile=text,
        blocked={"pause": text, text: text}, controls={"resume": text}, cwd=text, error=text, labels={text: text},
        lifecycle=Lifecycle.RUNNING, pending=m.Pending.model_validate({"overlay": "pausing", "by": text, "since": 1}),
        in_flight=(m.InFlight(id=text, name=text, since=1),),
        last=m.Last(at=1, kind=text, text=text),
        result=m.Result(text=text, final_message=text, stop_reason=text, session_id=text),  # type: ignore[arg-type]
    )  # fmt: skip
    return [
        f.Welcome(protocol="watchfloor.v1", host=f.HostInfo(name=text, version=text, instance=text), principal=text,
                  role="operator", pos=0, heartbeat_s=1.0, now=NOW),  # type: ignore[arg-type]
        f.Profiles(profiles={text: m.Profile(capabilities=capabilities)}),
        f.Sessions(sessions=(summary,), listed=True),
        f.Gone(sessions=(text,)),
        f.RequestFrame(session="s1", request=request_of(text, decision=decision)),
        f.Beat(now=NOW, pos=1),
        f.Watching(session=text, from_pos=0, through=0),
        f.Events(session="s1", epoch=text, events=events_full_of(text)),
        f.Lagged(session=text, epoch=text, from_seq=1, to_seq=2),
        f.Gap(session=text, epoch=text, from_seq=1, to_seq=2, why=text),
        f.Page(id="h", session="s1", epoch=text, events=events_full_of(text), first=1, last=1, more=False),
        f.Outcome(id=text, outcome="applied", reason=text, at=1, decided=decision,  # type: ignore[arg-type]
                  info={"note": text, "ref": text, "delivery": text, text: text, "list": [text, {text: text}]}),
        f.Reply(id=text, data=text),
        f.Presence(session=text, request=text, looking=(text,), claimed_by=text),
        f.Error(code="other", message=text, about=text),  # type: ignore[arg-type]
        f.UnknownFrame.model_validate({"type": text, "more": text}),
    ]  # fmt: skip


def field_of(text: str) -> m.FormField:
    choice = m.Choice(value=text, label=text, note=text)
    return m.FormField.model_validate({"name": text, "type": "choice", "label": text, "choices": [choice]})


def request_of(text: str, *, decision: m.Decision | None = None, digest: str = "sha256:x") -> m.RequestModel:
    action = m.Action(tool=text, text=text, arguments={text: [text, 1, None]}, cwd=text, diff=text, call=text)
    option = m.Option(id=text, label=text, kind=OptionKind.ALLOW, grants=(text,), note=text)
    subject = m.Subject(
        session="s1", attempt=1, id="r1", kind=RequestKind.APPROVAL, actions=(action,), fields=(field_of(text),),
        options=(option,),
    )  # fmt: skip
    return m.RequestModel(
        subject=subject.raw(), digest=digest, asked_at=1, at_deadline=text, about=text, decision=decision
    )


def events_full_of(text: str) -> list[Any]:
    common: dict[str, Any] = {"at": 1, "turn": text, "item": text, "key": text, "author": text}
    by_kind: dict[type[e.Event], dict[str, Any]] = {
        e.Message: {"text": text},
        e.Reasoning: {"text": text},
        e.Delta: {"offset": 0, "text": text},
        e.ToolCall: {"call": text, "name": text, "text": text, "cwd": text},
        e.ToolOutput: {"call": text, "stream": text, "text": text},
        e.ToolResult: {"call": text, "status": text, "text": text},
        e.Diff: {"path": text, "text": text},
        e.Plan: {"steps": [{"text": text, "status": text}]},
        e.Progress: {"note": text, "usage": {}},
        e.Notice: {"code": text, "text": text},
        e.Mail: {"ref": text, "state": "error", "text": text, "by": text, "error": text, "reply_to": text},
        e.RequestOpened: {"request": text, "request_kind": "approval", "digest": text, "text": text},
        e.RequestResolved: {
            "request": text,
            "state": "resolved",
            "option": text,
            "by": text,
            "note": text,
            "why": text,
        },
        e.LifecycleChanged: {"lifecycle": text, "native_state": text, "why": text},
        e.Child: {"session": text, "name": text, "state": text},
        e.Intervention: {"primitive": text, "command": text, "by": text, "outcome": "applied", "reason": text},
        e.Reseeded: {"mode": "clear", "by": text, "note": text},
        e.ResultEvent: {"result": {"text": text, "final_message": text, "stop_reason": text, "session_id": text}},
        e.Raw: {"data": {text: text}, "note": text},
    }
    assert set(by_kind) == set(e.EVENT_TYPES)
    known = [kind.model_validate({**common, **fields}) for kind, fields in by_kind.items()]
    arguments = e.ToolCall.model_validate({**common, "call": text, "name": text, "arguments": {text: text}})
    unknown = e.UnknownEvent.model_validate({**common, "kind": "x" + text, "more": {text: text}})
    return [*known, arguments, unknown]


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text) for text in HOSTILE])
def test_nothing_harmful_passes_in_any_field_of_any_frame(text: str) -> None:
    seen: set[str] = set()
    for frame in frames_full_of(text):
        for fact in intake().frame(frame):
            for place, shown in texts(fact):
                seen.add(place)
                assert shown == clean_prose(shown), place
                assert text not in shown, place
    # The walk has really been everywhere.
    assert {"ActionFact.text", "ActionFact.tool", "OptionFact.label", "EventFact.text", "EventFact.head", "why"} <= seen
    assert {"DecisionFact.by", "FaultFact.reason", "WelcomeFact.principal", "label", "in_flight", "pause"} <= seen


@PATIENT
@given(st.text(min_size=1, max_size=100).filter(lambda text: text not in f.HOST_TYPES | f.CLIENT_TYPES))
def test_no_text_at_all_gets_past(text: str) -> None:
    for frame in frames_full_of(text):
        for fact in intake().frame(frame):
            for place, shown in texts(fact):
                assert shown == clean_prose(shown), place


STRICT = {
    "ActionFact.text", "ActionFact.line", "ActionFact.tool", "ActionFact.cwd", "ActionFact.diff", "OptionFact.label",
    "OptionFact.grants", "OptionFact.note", "FieldFact.label", "ChoiceFact.label", "DecisionFact.by", "name", "cwd",
    "WelcomeFact.host",
}  # fmt: skip


def test_what_names_or_acts_is_cleaned_strictly() -> None:
    family = "\U0001f468\u200d\U0001f469"  # prose may join these; a command may not
    places: set[str] = set()
    for frame in frames_full_of(family):
        for fact in intake().frame(frame):
            for place, shown in texts(fact):
                if place in STRICT:
                    places.add(place)
                    assert shown == clean(shown), place
                    assert "<U+200D>" in shown, place
    assert places == STRICT


def test_the_body_of_a_message_may_join_its_emoji() -> None:
    family = "\U0001f468\u200d\U0001f469"
    assert event_fact(e.Message(at=1, text=family)).text == family
    assert "<U+200D>" in event_fact(e.ToolOutput(at=1, text=family)).text


def test_ids_stay_exactly_as_received() -> None:
    id = "s\u200b1\x1b"
    [fact] = intake().frame(f.Sessions(sessions=(m.Summary.model_validate({"id": id, "parent": id, "turn": id}),)))
    assert isinstance(fact, SummaryFact)
    assert fact.key == ("here", id)
    assert (fact.fields["parent"], fact.fields["turn"]) == (id, id)


# --- requests ------------------------------------------------------------------------------


def subject(**fields: Any) -> dict[str, Any]:
    return {"session": "s1", "attempt": 1, "id": "r1", "kind": "approval", "actions": [], "options": [], **fields}


def request_fact(subject: dict[str, Any], digest: str | None = None, **fields: Any) -> RequestFact:
    given = digest if digest is not None else subject_digest(subject)
    request = m.RequestModel.model_validate({"subject": subject, "digest": given, "asked_at": 1, **fields})
    [fact] = intake().frame(f.RequestFrame(session="s1", request=request))
    assert isinstance(fact, RequestFact)
    return fact


def test_the_digest_is_recomputed_from_what_was_received() -> None:
    raw = subject(actions=[{"tool": "sh\x1b", "text": "rm \u202e-rf"}], newer={"field": [1, True, None]})
    fact = request_fact(raw)
    assert (fact.digest, fact.sound, fact.fault) == (subject_digest(raw), True, None)
    assert fact.actions[0].text == "rm <U+202E>-rf"


def test_another_digest_is_not_believed() -> None:
    fact = request_fact(subject(), digest="sha256:" + "0" * 64)
    assert not fact.sound
    assert fact.digest == subject_digest(subject())


def test_a_field_that_only_a_newer_version_knows_is_bound_as_well() -> None:
    assert not request_fact(subject(newer=1), digest=subject_digest(subject())).sound


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (subject(kind="riddle"), "kind"),
        (subject(actions=[{"text": "no tool"}]), "tool"),
        (subject(options=[{"id": "a", "label": "x", "kind": "shrug"}]), "options"),
        (subject(options="none"), "options"),
        (subject(session="s2"), "another session: s2"),
        (subject(session="s2\x1b"), "another session: s2␛"),
        (subject(options=[{"id": "a", "label": "Deny", "kind": "deny"}, {"id": "a", "label": "A", "kind": "allow"}]),
         "same id"),
        (subject(fields=[{"name": "a", "type": "text"}, {"name": "a", "type": "bool"}]), "same name"),
        (subject(price=1.5), "canonical"),
        (subject(big=2**60), "canonical"),
    ],
)  # fmt: skip
def test_what_cannot_be_trusted_is_never_decidable(broken: dict[str, Any], why: str) -> None:
    fact = request_fact(broken, digest="sha256:x")
    assert fact.fault is not None
    assert why in fact.fault


def test_a_request_without_an_id_is_a_fault() -> None:
    raw = subject()
    del raw["id"]
    request = m.RequestModel(subject=raw, digest="sha256:x", asked_at=1)
    [fact] = intake().frame(f.RequestFrame(session="s\x1b", request=request))
    assert isinstance(fact, FaultFact)
    assert "\x1b" not in fact.reason


def test_arguments_are_shown_in_the_order_in_which_they_came() -> None:
    arguments = {"zeta": 1, "alpha": {"y": [1, "two"], "x": None}, "mid": "a\u200bb"}
    [action] = request_fact(subject(actions=[{"tool": "t", "arguments": arguments}])).actions
    assert action.text == (
        '{\n  "zeta": 1,\n  "alpha": {\n    "y": [\n      1,\n      "two"\n    ],\n    "x": null\n  },\n'
        '  "mid": "a<U+200B>b"\n}'
    )
    assert action.line == 't  zeta: 1, alpha: {"y": [1, "two"], "x": null}, mid: a<U+200B>b'
    assert action.hidden == 1


def test_neither_text_nor_arguments_hide_behind_the_other() -> None:
    [action] = request_fact(subject(actions=[{"tool": "t", "text": "ls", "arguments": ["rm"]}])).actions
    assert action.text.startswith("ls\n")
    assert '"rm"' in action.text


def test_everything_that_was_made_visible_is_counted() -> None:
    raw = {"tool": "t\x07", "text": "a\u202eb\u200bc", "cwd": "/x\u200b", "diff": "+\x1b"}
    assert request_fact(subject(actions=[raw])).actions[0].hidden == 5


def test_an_action_is_never_cut() -> None:
    long = "x" * (KEEP_EVENT * 3)
    assert request_fact(subject(actions=[{"tool": "t", "text": long}])).actions[0].text == long


def test_the_deadline_names_the_option_that_it_takes() -> None:
    raw = subject(options=[{"id": "no", "label": "Deny it", "kind": "deny"}])
    assert request_fact(raw, at_deadline="no").at_deadline == "Deny it"
    assert request_fact(raw, at_deadline="denied by the source").at_deadline == "denied by the source"


# --- summaries, profiles, outcomes ---------------------------------------------------------


def test_a_change_holds_the_changed_fields_only() -> None:
    door = intake()
    [first] = door.frame(f.Sessions(sessions=(m.Summary.model_validate({"id": "s1", "name": "a"}),)))
    assert isinstance(first, SummaryFact)
    assert {"name", "lifecycle", "blocked", "request_refs", "mail_queued", "head"} <= first.fields.keys()
    change = m.Summary.model_validate({"id": "s1", "turn": None, "mailbox": {"queued": 2, "refs": 5}})
    [second] = door.frame(f.Sessions(sessions=(change,)))
    assert isinstance(second, SummaryFact)
    assert second.fields == {"turn": None, "mail_queued": 2, "mail_refs": 5}


def test_blocked_keeps_the_primitives_that_we_know() -> None:
    summary = m.Summary.model_validate({"id": "s1", "blocked": {"pause": "no\x07", "levitate": "never"}})
    [fact] = intake().frame(f.Sessions(sessions=(summary,)))
    assert isinstance(fact, SummaryFact)
    assert fact.fields["blocked"] == {Primitive.PAUSE: "no␇"}


def test_the_end_of_the_list_comes_after_its_sessions() -> None:
    summary = m.Summary.model_validate({"id": "s1"})
    facts = intake().frame(f.Sessions(sessions=(summary,), listed=True))
    assert [type(fact) for fact in facts] == [SummaryFact, ListedFact]


def test_a_profile_in_plain_data() -> None:
    capabilities = m.Capabilities.model_validate(
        {"send": {"priorities": ["normal", "queue"]}, "pause": {"interrupt": True}, "le\x1bvitate": {}}
    )
    [fact] = intake().frame(f.Profiles(profiles={"p1": m.Profile(capabilities=capabilities)}))
    assert isinstance(fact, ProfileFact)
    assert fact.primitives == {Primitive.SEND, Primitive.PAUSE}
    assert fact.options[Primitive.SEND] == {"priorities": ("normal", "queue"), "replies": False}
    assert fact.options[Primitive.PAUSE] == {"interrupt": True}
    assert list(fact.unknown) == ["le␛vitate"]
    assert fact.traits["approval_target"] == "by_id"


def test_what_an_outcome_tells() -> None:
    info: dict[str, Any] = {
        "ref": "#1",
        "delivery": "queued",
        "noop": True,
        "grace_s": 5,
        "session": "s\x1b",
        "n\x1b": "v\x1b",
    }
    [fact] = intake().frame(f.Outcome(id="c", outcome="applied", at=1, info=info, retry_after_s=2.0))  # type: ignore[arg-type]
    assert isinstance(fact, OutcomeFact)
    assert fact.info == {
        "ref": "#1", "delivery": Delivery.QUEUED, "noop": True, "grace_s": 5, "session": "s\x1b", "n␛": "v␛",
        "retry_after_s": 2.0,
    }  # fmt: skip


def test_a_delivery_that_nobody_knows_is_none() -> None:
    [fact] = intake().frame(f.Outcome(id="c", outcome="applied", at=1, info={"delivery": "by pigeon"}))  # type: ignore[arg-type]
    assert isinstance(fact, OutcomeFact)
    assert fact.info == {"delivery": None}


def test_clocks_are_compared() -> None:
    [beat] = intake().frame(f.Beat(now=NOW + 90_000, pos=7))
    assert beat == BeatFact("here", 7, 90_000)
    host = f.HostInfo(name="h", version="1")
    frame = f.Welcome(protocol="p", host=host, principal="o", role="operator", pos=0, heartbeat_s=1.0, now=NOW - 5)  # type: ignore[arg-type]
    [welcome] = intake().frame(frame)
    assert isinstance(welcome, WelcomeFact)
    assert welcome.ahead_ms == -5


# --- events --------------------------------------------------------------------------------


def fact_of(event: e.Event) -> EventFact:
    return event_fact(event)


def test_a_delta_counts_what_was_sent() -> None:
    fact = fact_of(e.Delta(at=1, item="i", offset=3, text="a\x1bb\u202e", of="tool_output", call="c"))
    assert (fact.seq, fact.offset, fact.item, fact.text) == (None, 3, "i", "a␛b<U+202E>")
    assert (fact.data["length"], fact.data["call"], fact.data["of"]) == (4, "c", "tool_output")


def test_what_the_fleet_reads_of_a_result() -> None:
    fact = fact_of(e.ToolResult(at=1, seq=4, call="c\x1b", status="declined", exit_code=3, duration_ms=9))  # type: ignore[arg-type]
    assert fact.data == {"call": "c\x1b", "status": "declined", "exit_code": 3, "duration_ms": 9}


def test_an_author_stands_before_what_they_say() -> None:
    assert fact_of(e.Message(at=1, author="planner\x1b", text="hi")).head == "planner␛: assistant"


def test_a_long_text_is_cut_and_says_so() -> None:
    fact = fact_of(e.ToolOutput(at=1, text="x" * (KEEP_EVENT + 5)))
    assert fact.text.endswith("… 5 bytes more not shown")
    assert len(fact.text) < KEEP_EVENT + 40


def test_an_event_of_an_unknown_kind_is_shown_as_such() -> None:
    event = e.UnknownEvent.model_validate({"kind": "we\x1bather", "at": 1, "seq": 2, "rain": True})
    fact = fact_of(event)
    assert (fact.kind, fact.head, fact.seq) == ("unknown", "we␛ather", 2)
    assert "rain" in fact.text


# --- arrivals ------------------------------------------------------------------------------


def test_a_bad_event_in_a_good_batch_costs_one_event() -> None:
    good = {"kind": "message", "at": 1, "seq": 1, "text": "hi \\ud800"}
    bad = {"kind": "message", "at": 1, "seq": 2, "text": 5}
    raw = json.dumps({"type": "events", "session": "s1", "epoch": "e", "events": [good, bad]}).replace(
        "\\\\ud8", "\\ud8"
    )
    decoded = decode_host(raw.encode())
    facts = intake().arrival(Received(decoded.frame, raw.encode(), decoded.bad))
    events, mended, fault = facts
    assert isinstance(events, EventsFact)
    assert isinstance(mended, FaultFact)
    assert isinstance(fault, FaultFact)
    assert (mended.reason, mended.in_log, fault.in_log) == ("lone surrogates: replaced", True, True)
    assert [event.kind for event in events.events] == ["message", "raw"]
    assert events.events[0].text == "hi \ufffd"
    assert "text" in fault.reason


def test_what_cannot_be_read_at_all_is_a_fault() -> None:
    facts = intake().arrivals([Unreadable(Bad("not JSON\x1b", "\x1b]52;c;\x07")), Received(f.Beat(now=NOW, pos=1))])
    assert facts[0] == FaultFact("here", "not JSON␛", "␛]52;c;␇")  # type: ignore[arg-type]
    assert isinstance(facts[1], BeatFact)


def test_an_error_of_the_source_says_what_it_is_about() -> None:
    error = f.Error(code="unsupported", message="no\x1b", about="query", fatal=True)  # type: ignore[arg-type]
    [fact] = intake().frame(error)
    assert fact == FaultFact("here", "unsupported: no␛ (about query)", "", fatal=True, told=True)  # type: ignore[arg-type]


def test_a_reply_tells_the_fleet_nothing() -> None:
    facts: list[Fact] = intake().frame(f.Reply(id="q", data=None))
    assert facts == []


@dataclass
class Change:
    contact: Contact = Contact.LOST
    why: str = "closed\x1b"
    tries: int = 3
    retry_at: int | None = NOW + 5
    at: int = NOW - 7


def test_contact() -> None:
    assert intake().contact(Change()) == ContactFact("here", Contact.LOST, NOW - 7, "closed␛", 3, NOW + 5)  # type: ignore[arg-type]


STREAMED = "the first words, \u202e and the others of it"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["piece", "next", "next", "whole"]),
            st.sampled_from("ab"),
            st.integers(0, len(STREAMED)),
            st.integers(0, 6),
        ),
        max_size=14,
    ),
    st.integers(1, 14),
)
def test_pieces_that_come_in_one_frame_end_in_the_same_log_as_one_by_one(
    steps: list[tuple[str, str, int, int]], size: int
) -> None:
    events: list[e.Event] = []
    reached = {"a": 0, "b": 0}
    for n, (kind, item, offset, length) in enumerate(steps, 1):
        if kind == "whole":
            events.append(e.Message(seq=n, at=1, item=item, text=STREAMED))
            continue
        at = reached[item] if kind == "next" else offset
        text = STREAMED[at : at + length]
        reached[item] = at + len(text)
        events.append(e.Delta(at=1, item=item, offset=at, text=text, of="tool_output"))
    alone, together = Log(), Log()
    for event in events:
        enter(alone, [event_fact(event)])
    for begin in range(0, len(events), size):
        enter(together, event_facts(events[begin : begin + size], Reading()))
    assert [(entry.text, entry.open, entry.holed) for entry in together.entries()] == [
        (entry.text, entry.open, entry.holed) for entry in alone.entries()
    ]


def enter(log: Log, facts: Iterable[EventFact]) -> None:
    for fact in facts:
        if fact.seq is None:
            log.stream(fact)
        else:
            log.add(fact, fact.seq)


def test_most_of_a_stream_in_one_frame_is_superseded_by_what_comes_behind_it() -> None:
    pieces: list[e.Event] = [e.Delta(at=1, item="i", offset=n, text="x") for n in range(30)]
    [one] = event_facts(pieces, Reading())
    assert (one.offset, one.text, one.data["length"]) == (0, "x" * 30, 30)
    whole = e.Message(seq=1, at=1, item="i", text="x" * 30)
    assert [fact.kind for fact in event_facts([*pieces, whole], Reading())] == ["message"]
