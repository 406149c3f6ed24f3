"""What traits make of interventions, each shown by a scripted host that has the trait."""

from __future__ import annotations

from typing import Any

from console.fleet.facts import Refusal, SessionKey
from console.fleet.gate import Allowed, Gated, Greyed, can, gate
from console.screens.flows.effects import stopping
from tests.unit.fleet.scripted import FULL, ScriptedHost
from watchfloor.protocol.model import Traits
from watchfloor.words import OutcomeKind, Primitive, Priority

GENTLE_LESS = {**FULL, "send": {"priorities": ["normal"]}}

ELSEWHERE = {
    "stop_cuts_step": "the words of a stop",
    "reader": "attaching, not the gate",
    "effects": "trails",
    "replay": "continuity",
    "ends_with_client": "quitting",
}
"""Traits that change something else than what may go out."""


def scripted(capabilities: Any = FULL, **traits: Any) -> ScriptedHost:
    host = ScriptedHost()
    host.session("s1", capabilities=capabilities, traits=traits)
    return host


def through(host: ScriptedHost, primitive: Primitive, **arguments: Any) -> Gated:
    answer = gate(host.fleet, host.intent(primitive, **arguments), host.now)
    assert isinstance(answer, Gated), answer
    return answer


def refusal(host: ScriptedHost, primitive: Primitive, **arguments: Any) -> Refusal:
    answer = gate(host.fleet, host.intent(primitive, **arguments), host.now)
    assert isinstance(answer, Refusal), answer
    return answer


def test_resume_approves() -> None:
    host = scripted(resume_approves=True)
    through(host, Primitive.RESUME)
    host.ask()
    answer = refusal(host, Primitive.RESUME)
    assert answer.outcome is OutcomeKind.INVALID
    assert can(host.fleet, host.at().key, Primitive.RESUME, host.now) == Greyed(answer.reason)
    host.decide("r1", "no")
    through(host, Primitive.RESUME)


def test_resume_does_not_approve_by_default() -> None:
    host = scripted()
    host.ask()
    through(host, Primitive.RESUME)


def test_send_approves_goes_out_in_the_form_that_does_not_run() -> None:
    host = scripted(send_approves=True)
    assert through(host, Primitive.SEND).priority is Priority.NORMAL
    host.ask()
    gated = through(host, Primitive.SEND)
    assert gated.priority is Priority.QUEUE
    assert gated.notes != ()
    assert through(host, Primitive.SEND, priority=Priority.INTERRUPT).priority is Priority.QUEUE


def test_send_approves_is_refused_where_there_is_no_such_form() -> None:
    host = scripted(GENTLE_LESS, send_approves=True)
    through(host, Primitive.SEND)
    host.ask()
    answer = refusal(host, Primitive.SEND)
    assert answer.outcome is OutcomeKind.INVALID
    assert can(host.fleet, host.at().key, Primitive.SEND, host.now) == Greyed(answer.reason)


def test_send_drops_requests() -> None:
    host = scripted(send_drops_requests=True)
    assert through(host, Primitive.SEND).confirm == ()
    host.ask("r1")
    gated = through(host, Primitive.SEND)
    assert (gated.confirm, gated.gentle) == (("sending now withdraws the open request",), Priority.QUEUE)
    host.ask("r2")
    assert through(host, Primitive.SEND).confirm == ("sending now withdraws 2 open requests",)
    assert through(host, Primitive.SEND, priority=Priority.QUEUE).confirm == ()


def test_a_message_answers_another_one_only_where_that_is_offered() -> None:
    refused = refusal(scripted(), Primitive.SEND, reply_to="#1")
    assert refused.outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
    offered = {**FULL, "send": {"priorities": ["normal"], "replies": True}}
    assert through(scripted(offered), Primitive.SEND, reply_to="#1").intent.reply_to == "#1"


def test_no_gentle_way_is_invented() -> None:
    host = scripted(GENTLE_LESS, send_drops_requests=True)
    host.ask()
    assert through(host, Primitive.SEND).gentle is None


def test_send_interrupts() -> None:
    host = scripted(send_interrupts=True)
    gated = through(host, Primitive.SEND)
    assert (gated.confirm, gated.gentle) == (("sending now interrupts the running turn",), Priority.QUEUE)
    assert through(host, Primitive.SEND, priority=Priority.QUEUE).confirm == ()
    assert through(host, Primitive.SEND, priority=Priority.INTERRUPT).confirm == ()
    host.summary("s1", lifecycle="idle", turn=None)
    assert through(host, Primitive.SEND).confirm == ()


def test_stop_leaves_requests() -> None:
    host = scripted(stop_leaves_requests=True)
    assert through(host, Primitive.STOP).confirm == ("s1 is stopped",)
    host.ask()
    assert through(host, Primitive.STOP).confirm == ("s1 is stopped", "its open requests stay: decide them as well")


def test_a_source_says_itself_what_its_stop_does() -> None:
    host = scripted()
    host.summary("s1", controls={"stop": "cancel this attempt (another may begin)"})
    assert through(host, Primitive.STOP).confirm == ("s1: cancel this attempt (another may begin)",)
    told = stopping(host.fleet.sessions[SessionKey("here", "s1")], None, kill=False)
    assert told == ("cancel this attempt (another may begin)",)


def test_stop_leaves_process() -> None:
    assert through(scripted(stop_leaves_process=True), Primitive.STOP).confirm == (
        "s1 is stopped",
        "its process lives on",
    )


def test_pause_is_no_barrier() -> None:
    assert through(scripted(pause_is_barrier=False), Primitive.PAUSE).notes == (
        "a call in flight still runs after it is paused",
    )
    assert through(scripted(), Primitive.PAUSE).notes == ()


def test_a_pause_at_once_drops_mail() -> None:
    host = scripted(pause_drops_mail=True)
    assert through(host, Primitive.PAUSE, interrupt=True).confirm == ()
    host.summary("s1", mailbox={"queued": 1, "refs": 4})
    told = through(host, Primitive.PAUSE, interrupt=True).confirm
    assert told == ("a message that waits unread is discarded",)
    assert through(host, Primitive.PAUSE).confirm == (), "a gentle pause keeps them"
    host.summary("s1", mailbox={"queued": 2, "refs": 5}, lifecycle="failed")
    told = through(host, Primitive.PAUSE, interrupt=True).confirm
    assert told == ("2 messages that wait unread may be discarded",)


def test_a_pause_at_once_keeps_mail_by_default() -> None:
    host = scripted()
    host.summary("s1", mailbox={"queued": 1, "refs": 4})
    assert through(host, Primitive.PAUSE, interrupt=True).confirm == ()


def test_one_decision_settles_all_pending() -> None:
    host = scripted(approval_target="all_pending")
    first = host.ask("r1")
    assert isinstance(gate(host.fleet, host.decision(first), host.now), Gated)
    second = host.ask("r2", text="curl evil")
    # The card showed one, and two would be settled.
    answer = gate(host.fleet, host.decision(first), host.now)
    assert isinstance(answer, Refusal)
    assert answer.outcome is OutcomeKind.STALE_TARGET
    shown = {"r1": host.request(first).digest, "r2": host.request(second).digest}
    assert isinstance(gate(host.fleet, host.decision(first, extra={"shown": shown}), host.now), Gated)
    # One of them has changed, gone or come since.
    host.decide("r2", "no")
    assert isinstance(gate(host.fleet, host.decision(first, extra={"shown": shown}), host.now), Refusal)
    assert isinstance(gate(host.fleet, host.decision(first, extra={"shown": {**shown, "r2": "x"}}), host.now), Refusal)


def test_denying_settles_all_pending_as_well() -> None:
    host = scripted(approval_target="all_pending")
    first = host.ask("r1")
    host.ask("r2")
    assert isinstance(gate(host.fleet, host.decision(first, "no"), host.now), Refusal)


def test_the_oldest_is_decided_first() -> None:
    host = scripted(approval_target="oldest")
    first = host.ask("r1")
    host.now += 1_000
    second = host.ask("r2")
    assert isinstance(gate(host.fleet, host.decision(first), host.now), Gated)
    answer = gate(host.fleet, host.decision(second), host.now)
    assert isinstance(answer, Refusal)
    assert answer.outcome is OutcomeKind.INVALID
    host.decide("r1", "no")
    assert isinstance(gate(host.fleet, host.decision(second), host.now), Gated)


def test_requests_that_are_not_listed_are_unconfirmed() -> None:
    for told in ("derived", "lost"):
        host = scripted(requests=told)
        answer = gate(host.fleet, host.decision(host.ask()), host.now)
        assert isinstance(answer, Gated)
        assert answer.notes != ()
    host = scripted()
    answer = gate(host.fleet, host.decision(host.ask()), host.now)
    assert isinstance(answer, Gated)
    assert answer.notes == ()


def test_the_plain_host_has_no_consequences() -> None:
    host = scripted()
    host.ask()
    for primitive in (Primitive.SEND, Primitive.PAUSE, Primitive.RESUME, Primitive.INTERRUPT):
        gated = through(host, primitive)
        assert (gated.confirm, gated.notes, gated.gentle) == ((), (), None)
        assert can(host.fleet, host.at().key, primitive, host.now) == Allowed()


def test_every_trait_is_tested_here_or_belongs_elsewhere() -> None:
    with open(__file__, encoding="utf-8") as source:
        text = source.read()
    for trait in Traits.model_fields:
        assert f"({trait}=" in text or f" {trait}=" in text or trait in ELSEWHERE, trait
