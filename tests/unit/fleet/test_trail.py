"""Trails: nothing is reported done before its effect was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from console.fleet.facts import OutcomeFact
from console.fleet.state import Trail
from console.fleet.trail import GIVE_UP_MS, overlay
from console.fleet.views.trail import trail_brief, trail_segment
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.text import Clean
from watchfloor.words import EffectState, OutcomeKind, Overlay, Primitive, Priority, ReseedMode

SEEN, PENDING = EffectState.SEEN, EffectState.PENDING
OVERDUE, CONTRARY = EffectState.OVERDUE, EffectState.CONTRARY


@pytest.fixture
def host() -> ScriptedHost:
    made = ScriptedHost()
    made.session("s1")
    return made


def ack(host: ScriptedHost, trail: Trail, **info: Any) -> None:
    host.outcome(trail.id, info=info)


def test_requested_sent_acknowledged_effect(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    assert trail.sent_at == host.now
    assert (trail.outcome, trail.effect) == (None, None)
    host.now += 20
    ack(host, trail)
    assert (trail.outcome, trail.effect, trail.acked_at) == (OutcomeKind.APPLIED, PENDING, host.now)
    host.now += 30
    changes = host.summary("s1", lifecycle="paused")
    assert trail.id in changes.trails
    assert (trail.effect, trail.effect_text, trail.effect_at) == (SEEN, "paused", host.now)
    assert not trail.active
    assert host.fleet.active_trails(trail.target) == []


def test_the_effect_may_overtake_the_acknowledgement(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    host.summary("s1", lifecycle="paused")
    assert trail.effect is None
    ack(host, trail)
    assert trail.effect is SEEN


@pytest.mark.parametrize("grace_s", [float("inf"), float("nan"), -5.0, 1e300, 10**400, "soon", True])
def test_a_grace_time_that_nobody_waits_for_changes_nothing(host: ScriptedHost, grace_s: Any) -> None:
    trail = host.send(Primitive.STOP)
    fact = OutcomeFact("here", trail.id, OutcomeKind.APPLIED, None, {"grace_s": grace_s}, host.now, None)
    changes = host.fleet.apply([fact], host.now)
    assert trail.id in changes.trails
    assert trail.due_at == host.now + 1000 * (15 if grace_s is not True else 6)


def test_an_acknowledgement_counts_once(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    ack(host, trail)
    acked_at = trail.acked_at
    host.now += 50
    assert host.outcome(trail.id, OutcomeKind.REFUSED).trails == set()
    assert (trail.acked_at, trail.outcome) == (acked_at, OutcomeKind.APPLIED)


@pytest.mark.parametrize("outcome", [o for o in OutcomeKind if o not in (OutcomeKind.APPLIED, OutcomeKind.UNKNOWN)])
def test_no_effect_is_expected_of_what_was_not_applied(host: ScriptedHost, outcome: OutcomeKind) -> None:
    trail = host.send(Primitive.PAUSE)
    host.outcome(trail.id, outcome, reason="no")
    assert (trail.effect, trail.reason, trail.active) == (None, "no", False)
    host.summary("s1", lifecycle="paused")
    assert trail.effect is None


def test_a_no_op_has_nothing_to_wait_for(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    ack(host, trail, noop=True)
    assert (trail.effect, trail.effect_text) == (SEEN, "nothing to do, it was so already")


def test_overdue_is_not_the_end(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    ack(host, trail)
    host.wait(9_999)
    assert trail.effect is PENDING
    assert trail.id in host.wait(1).trails
    assert trail.effect is OVERDUE
    host.summary("s1", lifecycle="paused")
    assert trail.effect is SEEN


def test_what_stays_overdue_is_given_up(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    ack(host, trail)
    host.wait(10_000)
    host.wait(GIVE_UP_MS)
    assert (trail.effect, trail.active) == (OVERDUE, False)


def test_unknown_until_the_session_shows_it(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    host.fleet.settle(trail.id, OutcomeKind.UNKNOWN, Clean("no word came back"), host.now)
    assert (trail.outcome, trail.effect, trail.active) == (OutcomeKind.UNKNOWN, PENDING, True)
    host.summary("s1", lifecycle="paused")
    assert (trail.outcome, trail.effect) == (OutcomeKind.UNKNOWN, SEEN)


def test_a_recall_settles_what_was_unknown(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    host.fleet.settle(trail.id, OutcomeKind.UNKNOWN, Clean(""), host.now)
    host.outcome(trail.id, OutcomeKind.UNDELIVERED, reason="never arrived")
    assert (trail.outcome, trail.effect, trail.active) == (OutcomeKind.UNDELIVERED, None, False)


def test_the_console_does_not_overrule_the_source(host: ScriptedHost) -> None:
    trail = host.send(Primitive.PAUSE)
    ack(host, trail)
    assert not host.fleet.settle(trail.id, OutcomeKind.UNKNOWN, Clean(""), host.now)
    assert trail.outcome is OutcomeKind.APPLIED


# --- what counts, primitive by primitive ----------------------------------------------------

Step = Callable[[ScriptedHost], object]


def summary(**fields: Any) -> Step:
    return lambda host: host.summary("s1", **fields)


def event(kind: str, **fields: Any) -> Step:
    return lambda host: host.events("s1", {"kind": kind, **fields})


def mail(state: str, ref: str = "#1", **fields: Any) -> Step:
    return event("mail", ref=ref, state=state, **fields)


FLYING = {"id": "c1", "name": "shell", "since": 1}

CASES: list[tuple[str, Primitive, dict[str, Any], dict[str, Any], dict[str, Any], list[Step], EffectState]] = [
    # what, primitive, session before, arguments, info, what happens, effect
    ("consumed", Primitive.SEND, {}, {}, {"ref": "#1"}, [mail("consumed")], SEEN),
    ("another message", Primitive.SEND, {}, {}, {"ref": "#2"}, [mail("consumed")], PENDING),
    ("sent only", Primitive.SEND, {}, {}, {"ref": "#1"}, [mail("sent")], PENDING),
    ("ended with an error", Primitive.SEND, {}, {}, {"ref": "#1"}, [mail("error", error="stopped")], CONTRARY),
    ("no ref, consumed", Primitive.SEND, {}, {}, {}, [mail("consumed", "#7")], SEEN),
    ("queued, paused", Primitive.SEND, {"lifecycle": "paused"}, {}, {"ref": "#1", "delivery": "queued"}, [], SEEN),
    ("queued, failed", Primitive.SEND, {"lifecycle": "failed"}, {}, {"ref": "#1", "delivery": "queued"}, [], SEEN),
    ("queued, running", Primitive.SEND, {}, {}, {"ref": "#1", "delivery": "queued"}, [], PENDING),
    ("lands", Primitive.PAUSE, {}, {}, {}, [summary(lifecycle="paused")], SEEN),
    ("still in flight", Primitive.PAUSE, {}, {}, {}, [summary(lifecycle="paused", in_flight=[FLYING])], PENDING),
    (
        "landed at last",
        Primitive.PAUSE,
        {},
        {},
        {},
        [summary(lifecycle="paused", in_flight=[FLYING]), summary(in_flight=[])],
        SEEN,
    ),
    ("fails first", Primitive.PAUSE, {}, {}, {}, [summary(lifecycle="failed")], CONTRARY),
    ("goes on", Primitive.RESUME, {"lifecycle": "paused"}, {}, {}, [summary(lifecycle="running")], SEEN),
    ("stays", Primitive.RESUME, {"lifecycle": "paused"}, {}, {}, [summary(why="x")], PENDING),
    ("stopped", Primitive.RESUME, {"lifecycle": "paused"}, {}, {}, [summary(lifecycle="stopped")], CONTRARY),
    ("fails again", Primitive.RESUME, {"lifecycle": "failed"}, {}, {}, [summary(attempt=2, lifecycle="failed")], SEEN),
    ("turn ends", Primitive.INTERRUPT, {}, {}, {}, [summary(turn=None, lifecycle="idle")], SEEN),
    ("next turn already", Primitive.INTERRUPT, {}, {}, {}, [summary(turn="t2")], SEEN),
    ("turn goes on", Primitive.INTERRUPT, {}, {}, {}, [summary(why="x")], PENDING),
    ("no turns, idle", Primitive.INTERRUPT, {"turn": None}, {}, {}, [summary(lifecycle="idle")], SEEN),
    ("stops", Primitive.STOP, {}, {}, {}, [summary(lifecycle="stopped")], SEEN),
    ("winds down", Primitive.STOP, {}, {}, {}, [summary(lifecycle="idle")], PENDING),
    ("done first", Primitive.STOP, {}, {}, {}, [summary(lifecycle="completed")], SEEN),
    ("gone", Primitive.STOP, {}, {}, {}, [lambda host: host.tell(f.Gone(sessions=("s1",)))], SEEN),
    ("said so", Primitive.RESEED, {}, {"mode": ReseedMode.CLEAR}, {}, [event("reseeded", mode="clear")], SEEN),
    ("did not", Primitive.RESEED, {}, {"mode": ReseedMode.CLEAR}, {}, [event("message", text="hi")], PENDING),
    ("named", Primitive.FORK, {}, {}, {"session": "s9"}, [lambda host: host.session("s9")], SEEN),
    ("found by its parent", Primitive.FORK, {}, {}, {}, [lambda host: host.session("s9", parent="s1")], SEEN),
    ("another's child", Primitive.FORK, {}, {}, {}, [lambda host: host.session("s9", parent="s8")], PENDING),
    ("shown", Primitive.BUDGET, {}, {"extra": {"tokens": 9}}, {}, [summary(usage={"budget_tokens": 9})], SEEN),
    ("not shown", Primitive.BUDGET, {}, {"extra": {"tokens": 9}}, {}, [summary(usage={"budget_tokens": 8})], PENDING),
    ("gone", Primitive.DELETE, {}, {}, {}, [lambda host: host.tell(f.Gone(sessions=("s1",)))], SEEN),
    ("still there", Primitive.DELETE, {}, {}, {}, [summary(why="x")], PENDING),
    ("pause, gone", Primitive.PAUSE, {}, {}, {}, [lambda host: host.tell(f.Gone(sessions=("s1",)))], CONTRARY),
    ("no trace", Primitive.NOTIFY, {}, {}, {}, [], EffectState.UNOBSERVABLE),
    ("no trace", Primitive.ACT, {}, {"extra": {"act": "archive"}}, {}, [], EffectState.UNOBSERVABLE),
]


@pytest.mark.parametrize(
    ("primitive", "before", "arguments", "info", "steps", "effect"),
    [case[1:] for case in CASES],
    ids=[f"{case[1].value}-{case[0].replace(' ', '-')}" for case in CASES],
)
def test_evidence(
    host: ScriptedHost,
    primitive: Primitive,
    before: dict[str, Any],
    arguments: dict[str, Any],
    info: dict[str, Any],
    steps: list[Step],
    effect: EffectState,
) -> None:
    if before:
        host.summary("s1", **before)
    trail = host.send(primitive, **arguments)
    ack(host, trail, **info)
    for step in steps:
        step(host)
    assert trail.effect is effect, trail.effect_text


def test_what_was_there_before_is_no_evidence(host: ScriptedHost) -> None:
    host.summary("s1", head=1)
    trail = host.send(Primitive.RESEED, mode=ReseedMode.CLEAR)
    ack(host, trail)
    host.events("s1", {"kind": "reseeded", "mode": "clear"})  # the first event, which was only late
    assert trail.effect is PENDING
    host.events("s1", {"kind": "reseeded", "mode": "clear"})
    assert trail.effect is SEEN


def test_a_reseed_has_more_time(host: ScriptedHost) -> None:
    trail = host.send(Primitive.RESEED, mode=ReseedMode.CLEAR)
    ack(host, trail)
    host.wait(29_999)
    assert trail.effect is PENDING
    host.wait(1)
    assert trail.effect is OVERDUE


def test_stop_waits_for_its_grace_time_and_names_what_lives(host: ScriptedHost) -> None:
    host.session("kid", parent="s1", name="helper")
    host.session("old", parent="s1", name="done", lifecycle="completed")
    trail = host.send(Primitive.STOP)
    ack(host, trail, grace_s=20)
    host.wait(24_999)
    assert trail.effect is PENDING
    host.wait(1)
    assert trail.effect is OVERDUE
    host.summary("s1", lifecycle="stopped")
    assert (trail.effect, trail.effect_text) == (SEEN, "stopped; still alive: helper")


def test_stop_says_what_it_leaves() -> None:
    host = ScriptedHost()
    host.session("s1", traits={"stop_leaves_process": True, "stop_leaves_requests": True})
    host.ask("r1")
    trail = host.send(Primitive.STOP)
    ack(host, trail)
    host.summary("s1", lifecycle="stopped")
    assert trail.effect_text == "stopped; its process may live on; its open requests stay"


# --- decisions -----------------------------------------------------------------------------


def decided(host: ScriptedHost, option: str, call: str | None = "c1") -> Trail:
    asked = host.ask("r1", call=call)
    host.summary("s1", lifecycle="waiting")
    trail = host.go(host.decision(asked, option))
    ack(host, trail)
    return trail


def test_approving_is_done_when_the_call_has_moved(host: ScriptedHost) -> None:
    trail = decided(host, "yes")
    host.decide("r1", "yes", by="ops")
    assert trail.effect is PENDING
    host.events("s1", {"kind": "tool_output", "call": "c1", "text": "rm"})
    assert (trail.effect, trail.effect_text) == (SEEN, "the call is running")


def test_a_silent_call_in_flight_has_moved(host: ScriptedHost) -> None:
    trail = decided(host, "yes")
    host.decide("r1", "yes", by="ops")
    host.summary("s1", in_flight=[FLYING])
    assert trail.effect is SEEN


def test_another_call_is_no_evidence(host: ScriptedHost) -> None:
    trail = decided(host, "yes")
    host.decide("r1", "yes", by="ops")
    host.events("s1", {"kind": "tool_output", "call": "c2", "text": "other"})
    assert trail.effect is PENDING


def test_an_approved_call_that_is_declined_is_contrary(host: ScriptedHost) -> None:
    trail = decided(host, "yes")
    host.decide("r1", "yes", by="ops")
    host.events("s1", {"kind": "tool_result", "call": "c1", "status": "declined"})
    assert trail.effect is CONTRARY


def test_without_a_call_it_is_done_when_the_agent_went_on(host: ScriptedHost) -> None:
    trail = decided(host, "yes", call=None)
    host.decide("r1", "yes", by="ops")
    assert trail.effect is PENDING
    host.summary("s1", lifecycle="running")
    assert trail.effect is SEEN


def test_somebody_else_was_first(host: ScriptedHost) -> None:
    trail = decided(host, "yes")
    host.decide("r1", "no", by="ann")
    assert (trail.effect, trail.effect_text) == (CONTRARY, "decided otherwise by ann")


def test_withdrawn_meanwhile(host: ScriptedHost) -> None:
    trail = decided(host, "yes")
    host.decide("r1", None, state="withdrawn")
    assert (trail.effect, trail.effect_text) == (CONTRARY, "withdrawn")


def test_denying_is_done_when_the_call_was_declined(host: ScriptedHost) -> None:
    trail = decided(host, "no")
    host.decide("r1", "no", by="ops")
    assert trail.effect is PENDING
    host.events("s1", {"kind": "tool_result", "call": "c1", "status": "declined"})
    assert (trail.effect, trail.effect_text) == (SEEN, "the call was declined")


def test_a_denial_is_called_so(host: ScriptedHost) -> None:
    trail = decided(host, "no")
    assert (trail.primitive, trail.verb) == (Primitive.APPROVE, "deny")
    assert trail_segment(trail)[0].startswith("deny: sent")
    assert trail_brief(trail) == ("deny: under way", "plain")
    host.decide("r1", "yes", by="ann")
    assert trail_brief(trail) == ("deny: contrary: decided otherwise by ann", "failed")


@pytest.mark.parametrize(("option", "verb"), [("yes", "approve"), ("always", "approve"), ("no", "deny")])
def test_the_verb_of_a_decision_is_that_of_its_option(host: ScriptedHost, option: str, verb: str) -> None:
    assert decided(host, option).verb == verb


def test_a_denied_call_that_ran_is_contrary(host: ScriptedHost) -> None:
    trail = decided(host, "no")
    host.decide("r1", "no", by="ops")
    host.events("s1", {"kind": "tool_result", "call": "c1", "status": "ok"})
    assert (trail.effect, trail.effect_text) == (CONTRARY, "the call ran although it was denied")


def test_denying_is_done_when_the_turn_has_ended(host: ScriptedHost) -> None:
    trail = decided(host, "no")
    host.decide("r1", "no", by="ops")
    host.summary("s1", turn=None, lifecycle="idle")
    assert trail.effect is SEEN


def test_an_answer_is_done_when_the_agent_went_on(host: ScriptedHost) -> None:
    asked = host.question("q1", fields=[m.FormField.model_validate({"name": "branch", "type": "text"})])
    host.summary("s1", lifecycle="waiting")
    trail = host.go(host.decision(asked, None, text="main"))
    ack(host, trail)
    resolved = {"kind": "request_resolved", "request": "q1", "state": "resolved", "option_kind": "answer", "by": "ops"}
    host.events("s1", resolved)
    assert trail.effect is PENDING
    host.events("s1", {"kind": "message", "text": "I take main"})
    assert trail.effect is SEEN


# --- no false alarms -----------------------------------------------------------------------


def test_a_pause_waits_for_the_decision_without_alarm(host: ScriptedHost) -> None:
    host.ask("r1")
    trail = host.send(Primitive.PAUSE)
    ack(host, trail)
    host.wait(60_000)
    assert (trail.effect, trail.effect_text) == (PENDING, "after the open request is decided")
    host.decide("r1", "no")
    host.wait(1)
    assert trail.effect is OVERDUE


def test_a_queued_message_waits_for_the_turn_without_alarm(host: ScriptedHost) -> None:
    trail = host.send(Primitive.SEND, priority=Priority.QUEUE)
    ack(host, trail, ref="#1", delivery="queued")
    host.wait(60_000)
    assert (trail.effect, trail.effect_text) == (PENDING, "queued until the turn ends")


def test_a_source_that_shows_no_effects_raises_no_alarm() -> None:
    host = ScriptedHost()
    host.session("s1", traits={"effects": "none"})
    trail = host.send(Primitive.INTERRUPT)
    ack(host, trail)
    assert trail.effect is EffectState.UNOBSERVABLE


def test_a_source_that_shows_some_effects_raises_no_alarm() -> None:
    host = ScriptedHost()
    host.session("s1", traits={"effects": "partial"})
    trail = host.send(Primitive.INTERRUPT)
    ack(host, trail)
    assert trail.effect is PENDING
    host.wait(10_000)
    assert trail.effect is EffectState.UNOBSERVABLE


# --- overlays ------------------------------------------------------------------------------


def shown(host: ScriptedHost) -> tuple[Overlay, str] | None:
    return overlay(host.at(), host.fleet.active_trails(host.at().key))


def test_the_overlay_of_our_own_command_lasts_until_its_effect(host: ScriptedHost) -> None:
    assert shown(host) is None
    trail = host.send(Primitive.PAUSE)
    assert shown(host) == (Overlay.PAUSING, "")
    ack(host, trail)
    assert shown(host) == (Overlay.PAUSING, "")
    host.summary("s1", lifecycle="paused")
    assert shown(host) is None


def test_a_refused_command_has_no_overlay(host: ScriptedHost) -> None:
    trail = host.send(Primitive.STOP)
    host.outcome(trail.id, OutcomeKind.REFUSED)
    assert shown(host) is None


def test_another_operators_change_shows_with_their_name(host: ScriptedHost) -> None:
    host.summary("s1", pending={"overlay": "stopping", "by": "ann", "since": 1})
    assert shown(host) == (Overlay.STOPPING, "ann")
    host.summary("s1", pending=None)
    assert shown(host) is None


def test_a_resume_calls_off_a_pause_that_has_not_come_yet(host: ScriptedHost) -> None:
    host.ask("r1")
    pause = host.send(Primitive.PAUSE)
    ack(host, pause)
    assert shown(host) == (Overlay.PAUSING, "")
    host.wait(1)
    resume = host.send(Primitive.RESUME)
    assert shown(host) == (Overlay.PAUSING, ""), "nobody knows yet whether it counts"
    ack(host, resume)
    assert (resume.effect, pause.effect) == (SEEN, CONTRARY)
    assert trail_brief(pause)[0] == "pause: contrary: called off by a resume"
    assert shown(host) is None
    assert host.fleet.active_trails(host.at().key) == []


def test_a_resume_of_another_operator_calls_it_off_as_well(host: ScriptedHost) -> None:
    host.ask("r1")
    resumed = {"kind": "intervention", "primitive": "resume", "command": "other", "by": "ann", "outcome": "applied"}
    pause = host.send(Primitive.PAUSE)
    host.events("s1", resumed)
    ack(host, pause)
    assert pause.effect is PENDING, "that resume was there before it"
    host.events("s1", {**resumed, "primitive": "pause", "command": pause.id, "by": "me"})
    host.events("s1", {**resumed, "outcome": "refused", "command": "third"})
    assert shown(host) == (Overlay.PAUSING, "")
    host.events("s1", {**resumed, "command": "fourth"})
    assert (pause.effect, pause.effect_text) == (CONTRARY, "called off: resumed by ann")
    assert shown(host) is None
