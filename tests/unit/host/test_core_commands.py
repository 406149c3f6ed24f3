"""Commands at the host: who may, on what, once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.host.glass import OBSERVER, Glass
from tests.unit.host.puppet import approval
from watchfloor.host.effects import Tell
from watchfloor.host.sessions.mailbox import MOST_TEXT, MOST_WAITING, Mailbox
from watchfloor.protocol.events import Intervention
from watchfloor.protocol.frames import Error, ErrorCode, Outcome, Recall, RequestFrame
from watchfloor.protocol.model import Capabilities, NoOptions
from watchfloor.words import Delivery, OptionKind, OutcomeKind, Primitive

DOS: dict[str, dict[str, Any]] = {
    "send": {"text": "x"},
    "reseed": {"mode": "clear"},
    "approve": {"request": "r1", "option": "yes", "digest": "sha256:0"},
    "answer": {"request": "r1", "text": "x", "digest": "sha256:0"},
    "notify": {"subscriber": "s2"},
    "act": {"act": "x"},
}


def do(primitive: str, **more: Any) -> dict[str, Any]:
    return {"primitive": primitive, **DOS.get(primitive, {}), **more}


def interventions(glass: Glass, session: str = "s1") -> list[Intervention]:
    return [event for event in glass.core.log.read(session, limit=5000) if isinstance(event, Intervention)]


def told(glass: Glass) -> int:
    return sum(isinstance(effect, Tell) for effect in glass.rest)


def test_a_command_is_carried_out_recorded_and_answered() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    outcome = glass.command("c", "s1", do("send"), id="k1", attempt=1, turn="t1")
    assert (outcome.id, outcome.outcome, outcome.session, outcome.attempt) == ("k1", OutcomeKind.APPLIED, "s1", 1)
    assert outcome.info == {"ref": "#2", "delivery": "steered"}
    assert outcome.at == glass.now
    (event,) = interventions(glass)
    assert (event.primitive, event.command, event.by, event.outcome) == (
        "send",
        "k1",
        "c (unverified)",
        OutcomeKind.APPLIED,
    )
    assert event.info == outcome.info
    assert event.turn == "t1"


def test_what_a_command_did_is_told_before_its_outcome() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c")
    glass.frames("c")
    glass.command("c", "s1", do("pause"))
    assert [type(frame).__name__ for frame in glass.got["c"]] == ["Sessions", "Events", "Outcome"]


def test_a_known_id_is_never_executed_twice() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c1")
    glass.connect("c2")
    first = glass.command("c1", "s1", do("send"), id="k1")
    before = told(glass)
    assert glass.command("c1", "s1", do("send"), id="k1") == first
    assert glass.command("c2", "s1", do("send"), id="k1") == first
    assert told(glass) == before
    assert len(interventions(glass)) == 1


def test_an_id_that_stood_for_something_else_is_invalid() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.command("c", "s1", do("send", text="a"), id="k1")
    again = glass.command("c", "s1", do("send", text="b"), id="k1")
    assert again.outcome is OutcomeKind.INVALID
    assert len(interventions(glass)) == 1


def test_recall() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    done = glass.command("c", "s1", do("send"), id="k1")
    glass.frames("c")
    glass.send("c", Recall(ids=("k1", "k2")))
    known, unknown = glass.of("c", Outcome)
    assert known == done.model_copy(update={"instance": "i1"})
    assert (unknown.id, unknown.outcome, unknown.instance) == ("k2", OutcomeKind.UNDELIVERED, "i1")
    assert unknown.reason == "this host never received it"


def test_a_host_that_forgot_commands_does_not_claim_that_they_never_came() -> None:
    glass = Glass(remember=2)
    glass.add()
    glass.connect("c")
    for number in range(3):
        glass.command("c", "s1", do("send"), id=f"k{number}")
    glass.send("c", Recall(ids=("k0", "k2")))
    forgotten, known = glass.of("c", Outcome)[-2:]
    assert forgotten.outcome is OutcomeKind.UNKNOWN
    assert known.outcome is OutcomeKind.APPLIED


def test_a_command_that_was_said_to_have_never_come_does_not_run_when_it_comes_late() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    glass.connect("other")
    glass.send("c", Recall(ids=("k1",)))
    (never,) = glass.of("c", Outcome)
    assert never.outcome is OutcomeKind.UNDELIVERED
    before, head = told(glass), glass.core.log.head("s1")
    for conn in ("c", "other"):
        for _ in range(2):
            late = glass.command(conn, "s1", do("send"), id="k1")
            assert (late.id, late.outcome) == ("k1", OutcomeKind.UNDELIVERED)
            assert late.reason == "it came only after a recall was answered that it had not: it was not carried out"
    assert (told(glass), session.mailbox.view.refs, glass.core.log.head("s1")) == (before, 1, head)
    glass.frames("c")
    glass.send("c", Recall(ids=("k1",)))
    assert glass.of("c", Outcome) == [never]
    # Another try has an id of its own.
    assert glass.command("c", "s1", do("send"), id="k2").outcome is OutcomeKind.APPLIED


def test_what_was_said_to_be_unknown_does_not_run_either() -> None:
    glass = Glass(remember=1)
    session = glass.add()
    glass.connect("c")
    for id in ("k1", "k2"):
        glass.command("c", "s1", do("send"), id=id)
    glass.send("c", Recall(ids=("k1",)))
    assert glass.of("c", Outcome)[-1].outcome is OutcomeKind.UNKNOWN
    refs = session.mailbox.view.refs
    assert glass.command("c", "s1", do("send"), id="k1").outcome is OutcomeKind.UNKNOWN
    assert session.mailbox.view.refs == refs


def test_recalls_of_an_observer_settle_nothing() -> None:
    glass = Glass()
    glass.add()
    glass.connect("eye", OBSERVER)
    glass.connect("op")
    glass.send("eye", Recall(ids=("k1",)))
    assert glass.of("eye", Outcome)[0].outcome is OutcomeKind.UNDELIVERED
    assert glass.command("op", "s1", do("send"), id="k1").outcome is OutcomeKind.APPLIED


def test_what_never_came_is_remembered_as_far_as_memory_goes() -> None:
    glass = Glass(remember=100)
    glass.add()
    glass.connect("c")
    done = glass.command("c", "s1", do("send"), id="done")
    ids = [f"k{number}" for number in range(1000)]
    glass.send("c", Recall(ids=tuple(ids)))
    # However much is asked about, what was carried out is not forgotten over it.
    assert glass.command("c", "s1", do("send"), id="done") == done
    outcomes = {id: glass.command("c", "s1", do("resume"), id=id).outcome for id in (ids[-101], *ids[-100:])}
    assert outcomes.pop(ids[-101]) is OutcomeKind.APPLIED
    assert set(outcomes.values()) == {OutcomeKind.UNDELIVERED}


@pytest.mark.parametrize("ids", [["x" * 201], [""], [str(number) for number in range(1001)], [7], "k1"])
def test_a_recall_of_what_can_be_no_command_is_malformed(ids: object) -> None:
    glass = Glass()
    glass.connect("c")
    glass.receive("c", json.dumps({"type": "recall", "ids": ids}).encode())
    (error,) = glass.of("c", Error)
    assert (error.code, error.about) == (ErrorCode.MALFORMED, "recall")


def test_an_observer_may_watch_and_no_more() -> None:
    glass = Glass()
    session = glass.add()
    request = glass.ask("s1", approval(session))
    glass.connect("c", OBSERVER)
    glass.connect("op")
    before = told(glass)
    for primitive in Primitive:
        outcome = glass.command("c", "s1", do(primitive.value), id=primitive.value)
        assert outcome.outcome is OutcomeKind.NOT_PERMITTED
        assert outcome.reason == "olga may only watch"
    assert told(glass) == before
    assert interventions(glass) == []
    # It does not spoil the id for somebody who may.
    wanted = do("approve", digest=request.digest)
    assert glass.command("op", "s1", wanted, id="approve").outcome is OutcomeKind.APPLIED


@pytest.mark.parametrize("primitive", [p.value for p in Primitive])
def test_an_unknown_session_is_stale_for_every_verb(primitive: str) -> None:
    glass = Glass()
    glass.connect("c")
    outcome = glass.command("c", "nobody", do(primitive))
    assert outcome.outcome is OutcomeKind.STALE_TARGET
    assert outcome.attempt is None


@pytest.mark.parametrize("primitive", [*(p.value for p in Primitive), "teleport"])
def test_what_is_not_advertised_is_not_supported(primitive: str) -> None:
    glass = Glass()
    glass.add(capabilities=Capabilities())
    glass.connect("c")
    outcome = glass.command("c", "s1", do(primitive), attempt=99)
    assert outcome.outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
    assert interventions(glass)[0].outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED


@pytest.mark.parametrize("primitive", ["act", "reseed"])
def test_what_nobody_carries_out_yet_is_never_advertised(primitive: str) -> None:
    glass = Glass()
    offered = Capabilities.model_validate({primitive: {}})
    glass.add(capabilities=offered)
    glass.connect("c")
    assert glass.command("c", "s1", do(primitive)).outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED


def test_a_superseded_attempt_and_a_turn_that_is_over_are_stale() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    outcome = glass.command("c", "s1", do("pause"), attempt=2)
    assert (outcome.outcome, outcome.attempt) == (OutcomeKind.STALE_TARGET, 1)
    assert "attempt 2" in (outcome.reason or "")
    outcome = glass.command("c", "s1", do("interrupt"), turn="t0")
    assert outcome.reason == "turn t0 is over: t1 runs"
    glass.apply(session.interrupt("x", glass.now).effects)
    glass.apply(session.interrupted(glass.now))
    outcome = glass.command("c", "s1", do("send"), turn="t1")
    assert (outcome.outcome, outcome.reason) == (OutcomeKind.STALE_TARGET, "turn t1 is over: none runs")
    assert session.mailbox.view.refs == 1


def test_how_a_request_ended_is_told_even_if_its_attempt_is_over() -> None:
    glass = Glass()
    session = glass.add()
    request = glass.ask("s1", approval(session))
    glass.connect("c")
    wanted = do("approve", digest=request.digest)
    glass.command("c", "s1", wanted)
    glass.apply(session.failed("x", glass.now))
    glass.apply(session.resume("x", glass.now).effects)
    outcome = glass.command("c", "s1", wanted, attempt=1, turn="t1")
    assert outcome.outcome is OutcomeKind.ALREADY_DECIDED


def test_two_operators_and_one_request() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("ada")
    glass.connect("bob")
    request = glass.ask("s1", approval(session))
    glass.flush()
    for conn in ("ada", "bob"):
        assert glass.of(conn, RequestFrame)[0].request.digest == request.digest
    won = glass.command("ada", "s1", do("approve", digest=request.digest))
    assert (won.outcome, won.request) == (OutcomeKind.APPLIED, "r1")
    lost = glass.command("bob", "s1", do("approve", option="no", digest=request.digest))
    assert lost.outcome is OutcomeKind.ALREADY_DECIDED
    assert lost.decided is not None
    assert (lost.decided.by, lost.decided.option, lost.decided.at) == ("ada (unverified)", "yes", glass.now)
    assert "ada" in (lost.reason or "")
    trail = interventions(glass)
    assert [event.outcome for event in trail] == [OutcomeKind.APPLIED, OutcomeKind.ALREADY_DECIDED]
    assert [(e.option, e.option_kind) for e in trail] == [("yes", OptionKind.ALLOW), ("no", OptionKind.DENY)]


def test_stopping_a_parent_lists_the_children_that_go_on() -> None:
    glass = Glass()
    glass.add("parent")
    glass.add("lives", parent="parent")
    glass.add("rests", parent="parent", running=False)
    glass.connect("c")
    assert glass.command("c", "parent", do("stop")).info == {"living_children": ["lives"]}
    assert glass.command("c", "lives", do("stop")).info == {}


def test_the_text_of_an_answer_is_not_in_the_trail() -> None:
    glass = Glass()
    glass.add(capabilities=Capabilities(answer=NoOptions()))
    glass.connect("c")
    glass.command("c", "s1", do("answer", text="hunter2"))
    glass.command("c", "s1", do("answer", text=None, option="hunter2"))
    for event in interventions(glass):
        assert "hunter2" not in event.model_dump_json()
    assert [event.option_kind for event in interventions(glass)] == [OptionKind.ANSWER, None]


# --- frames that cannot be used


@pytest.mark.parametrize(
    ("most", "text"), [("MOST_WAITING", "x"), ("MOST_TEXT", "x" * (MOST_TEXT // 8))], ids=["many", "much"]
)
def test_a_mailbox_takes_no_more_from_outside_than_it_can_hold(most: str, text: str) -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    fits = MOST_WAITING if most == "MOST_WAITING" else MOST_TEXT // len(text)
    mailbox = glass.core.session("s1").mailbox
    for _ in range(fits - 1):
        mailbox.post(text, by="c", delivery=Delivery.QUEUED)
    assert glass.command("c", "s1", do("send", text=text)).outcome is OutcomeKind.APPLIED
    waiting = mailbox.waiting()
    outcome = glass.command("c", "s1", do("send", text=text))
    assert outcome.outcome is OutcomeKind.REFUSED
    assert "too many messages wait" in (outcome.reason or "")
    assert mailbox.waiting() == waiting
    mailbox.empty()
    assert glass.command("c", "s1", do("send", text=text)).outcome is OutcomeKind.APPLIED


def test_messages_that_have_ended_are_forgotten_before_their_texts_fill_the_memory() -> None:
    mailbox = Mailbox()
    for _ in range(20):
        mailbox.post("x" * (MOST_TEXT // 8), by="c", delivery=Delivery.QUEUED)
        mailbox.begin_turn()
        mailbox.end_turn()
    assert [letter.item.ref for letter in mailbox.letters()] == [f"#{number}" for number in range(13, 21)]
