"""How attempts end and begin anew, and what of a session is shown and streamed."""

from __future__ import annotations

import pytest

from tests.unit.host.puppet import BY, FULL, Puppet, approval
from tests.unit.host.rows import drive
from watchfloor.errors import StaleTarget
from watchfloor.harness.base import Boundary, Stop, Wake, Withdrawn
from watchfloor.host.effects import EndAttempt, Publish
from watchfloor.host.sessions.operations import KILL_MS
from watchfloor.host.sessions.session import RESULT_TEXT
from watchfloor.protocol.events import (
    Event,
    LifecycleChanged,
    Message,
    Notice,
    RequestOpened,
    ResultEvent,
)
from watchfloor.protocol.frames import DoFork, DoPause, DoReseed, DoSend, DoStop, UnknownDo
from watchfloor.protocol.model import Capabilities, NoOptions, PauseOptions, Result, SendOptions, StopOptions, Usage
from watchfloor.words import Lifecycle, Op, OutcomeKind, Overlay, Priority, ReseedMode, Row, StopReason


def wakes(puppet: Puppet) -> list[Wake]:
    return [signal for signal in puppet.told if isinstance(signal, Wake)]


# --- ends and new attempts


def test_a_retry_takes_up_the_mail_of_the_turn_that_failed() -> None:
    puppet = drive(Row.FAILED, pending=True)
    assert puppet.mail_error("#1") == "failed"
    assert puppet.core.controls() == {"resume": "Retry (attempt 2)"}
    puppet.operate(Op.RESUME)
    assert puppet.core.error is None
    puppet.react()
    assert puppet.core.attempt == 2
    assert [item.text for item in wakes(puppet)[-1].mail] == ["first", "left in the queue"]


def test_a_start_that_fails_keeps_its_mail_for_the_retry() -> None:
    puppet = Puppet()
    puppet.send("go")
    puppet.take(puppet.core.failed("no such program", puppet.now))
    puppet.no_more_signals()
    assert puppet.core.error == "no such program"
    assert puppet.mail("#1") == ["sent"]
    puppet.operate(Op.RESUME)
    puppet.react()
    assert [item.text for item in wakes(puppet)[-1].mail] == ["go"]


def test_stopping_what_failed_leaves_nothing_to_retry() -> None:
    puppet = drive(Row.FAILED, pending=True)
    puppet.operate(Op.STOP)
    assert puppet.mail_error("#2") == "stopped"
    assert puppet.core.controls() == {"resume": "Relaunch"}
    puppet.operate(Op.RESUME)
    puppet.react()
    assert puppet.state() is Lifecycle.IDLE


@pytest.mark.parametrize("report", ["completed", "failed", "turn_ended"])
def test_what_ends_by_itself_while_it_is_being_stopped_is_stopped(report: str) -> None:
    puppet = drive(Row.RUNNING, pending=True)
    puppet.operate(Op.STOP)
    core, now = puppet.core, puppet.now
    if report == "failed":
        puppet.take(core.failed("died of SIGTERM", now))
    elif report == "completed":
        puppet.take(core.completed(puppet.result(), now))
    else:
        puppet.take(core.turn_ended(puppet.result(), now))
        assert len(wakes(puppet)) == 1
        puppet.take(core.stopped(puppet.now))
    assert puppet.state() is Lifecycle.STOPPED
    assert puppet.mail_error("#2") == "stopped"


def test_patience_ends_with_a_kill_and_then_with_giving_up() -> None:
    puppet = Puppet(grace_s=2.0)
    puppet.send("go")
    puppet.react()
    puppet.operate(Op.STOP)
    due = puppet.core.next_due()
    assert due == puppet.now - 1_000 + 2_000
    puppet.take(puppet.core.tick(due - 1))
    assert puppet.told[-1] == Stop()
    puppet.take(puppet.core.tick(due))
    assert puppet.told[-1] == Stop(kill=True)
    puppet.take(puppet.core.tick(due + KILL_MS))
    assert puppet.state() is Lifecycle.STOPPED
    assert any("given up" in notice.text for notice in puppet.of(Notice))
    assert puppet.effects.count(EndAttempt("s1", 1)) == 1
    assert puppet.core.next_due() is None
    # It ends after all, and that changes nothing.
    assert puppet.core.stopped(puppet.now) == []


def test_a_kill_after_a_stop_is_passed_on_and_a_second_stop_is_not() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.operate(Op.STOP)
    assert puppet.operate(Op.STOP).info == {"noop": True}
    assert puppet.operate(Op.STOP_KILL).info == {}
    assert [s for s in puppet.told if isinstance(s, Stop)] == [Stop(), Stop(kill=True)]


@pytest.mark.parametrize("row", [Row.RUNNING, Row.WAITING, Row.IDLE, Row.PAUSED])
@pytest.mark.parametrize("op", [Op.PAUSE, Op.PAUSE_INTERRUPT, Op.INTERRUPT, Op.RESUME, Op.RESEED])
def test_an_attempt_that_was_told_to_end_is_told_nothing_else(row: Row, op: Op) -> None:
    puppet = drive(row, pending=True)
    puppet.operate(Op.STOP)
    before = puppet.told
    handled = puppet.operate(op)
    assert handled.outcome in (OutcomeKind.APPLIED, OutcomeKind.INVALID)
    assert handled.info == ({"noop": True} if handled.applied else {})
    assert puppet.send("too late", Priority.INTERRUPT).info["delivery"] == "queued"
    assert puppet.told == before
    puppet.react()
    assert puppet.state() is Lifecycle.STOPPED


def test_a_boundary_tells_of_the_stop() -> None:
    puppet = drive(Row.RUNNING, pending=True)
    puppet.operate(Op.STOP)
    assert puppet.checkpoint() == Boundary(stopped=True)


@pytest.mark.parametrize("row", [Row.COMPLETED, Row.FAILED, Row.STOPPED])
def test_reports_of_an_attempt_that_is_over_change_nothing(row: Row) -> None:
    puppet = drive(row, pending=True)
    core, now = puppet.core, puppet.now
    result = puppet.result()
    assert core.turn_ended(result, now) == []
    assert core.completed(result, now) == []
    assert core.failed("late", now) == []
    assert core.stopped(now) == []
    assert core.interrupted(now) == []
    assert core.suspended(now) == []
    assert core.begin("w", "late", now) == []
    assert core.started(now) == []
    assert puppet.checkpoint() == Boundary(stopped=True)
    assert core.row() is row
    with pytest.raises(StaleTarget):
        core.ask(approval(core, "late"), now)


def test_the_end_of_an_attempt_is_told_once() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.take(puppet.core.completed(puppet.result(), puppet.now))
    assert puppet.effects.count(EndAttempt("s1", 1)) == 1
    puppet.operate(Op.STOP)
    assert puppet.effects.count(EndAttempt("s1", 1)) == 1


def test_a_result_that_is_too_long_is_cut_and_says_so() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    long = Result(text="x" * (RESULT_TEXT + 1), stop_reason=StopReason.END_TURN, session_id="s1")
    puppet.take(puppet.core.turn_ended(long, puppet.now))
    result = puppet.of(ResultEvent)[0].result
    assert len(result.text) == RESULT_TEXT
    assert result.cut
    assert puppet.core.result == result


# --- reseed


def test_a_reseed_forgets_the_conversation_and_the_suspended_turn() -> None:
    puppet = drive(Row.PAUSED, pending=True)
    puppet.core.conversation.messages.append("anything")  # type: ignore[arg-type]
    puppet.send("kept")
    puppet.operate(Op.RESEED)
    overlay = puppet.core.overlay()
    assert overlay is not None
    assert overlay.overlay is Overlay.RESEEDING
    assert puppet.core.conversation.messages
    puppet.react()
    assert puppet.core.conversation.messages == []
    assert puppet.state() is Lifecycle.PAUSED
    assert puppet.mail_error("#1") == "rewound"
    assert puppet.mail("#2") == ["sent"]
    puppet.operate(Op.RESUME)
    assert [item.text for item in wakes(puppet)[-1].mail] == ["kept"]


# --- what is shown


def test_every_change_of_state_is_an_event_with_its_reason() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.forget()
    puppet.operate(Op.STOP)
    puppet.take(puppet.core.stopped(puppet.now))
    changes = [(e.lifecycle, e.pending, e.why) for e in puppet.of(LifecycleChanged)]
    assert changes == [
        (Lifecycle.RUNNING, Overlay.STOPPING, None),
        (Lifecycle.STOPPED, None, f"by {BY}"),
    ]


def test_since_moves_with_the_state_only() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    since = puppet.core.summary()["since"]
    puppet.operate(Op.PAUSE)
    assert puppet.core.summary()["since"] == since
    at = puppet.now
    puppet.checkpoint()
    assert puppet.core.summary()["since"] == at


def test_the_call_that_waits_for_its_approval_does_not_count_as_work() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.begin("call-1")
    puppet.ask(approval(puppet.core, call="call-1"))
    assert puppet.core.row() is Row.WAITING
    puppet.begin("call-2")
    assert puppet.core.row() is Row.RUNNING


def test_work_that_outlives_its_turn_stays_in_flight_until_it_ends() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.begin("thread")
    puppet.operate(Op.INTERRUPT)
    puppet.react()
    assert [work.id for work in puppet.core.in_flight.values()] == ["thread"]
    puppet.take(puppet.core.end("thread", puppet.now))
    assert not puppet.core.in_flight


def test_blocked_and_controls_speak_of_what_is_advertised_only() -> None:
    puppet = Puppet(capabilities=Capabilities(approve=NoOptions(), stop=StopOptions()))
    assert puppet.core.blocked() == {"approve": "no open request"}
    assert puppet.core.controls() == {}
    assert Puppet().core.controls() == {"resume": "Start"}
    waits = drive(Row.WAITING, pending=False).core
    assert "approve" not in waits.blocked()
    assert waits.blocked()["answer"] == "no open request"


def test_the_empty_set_is_observe_only() -> None:
    puppet = Puppet(capabilities=Capabilities(), starts_itself=True)
    assert puppet.core.blocked() == {}
    handled = puppet.core.command(DoPause(), BY, 1)
    assert handled.outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
    assert handled.effects == []


@pytest.mark.parametrize(
    "do",
    [
        DoSend(text="x", priority=Priority.INTERRUPT),
        DoPause(interrupt=True),
        DoStop(kill=True),
        DoReseed(mode=ReseedMode.CLEAR),
        DoFork(),
        UnknownDo(primitive="teleport"),
    ],
)
def test_an_option_that_is_not_advertised_is_refused(do: object) -> None:
    offered = Capabilities(send=SendOptions(), pause=PauseOptions(), stop=StopOptions())
    puppet = drive(Row.RUNNING, pending=False)
    puppet.take(puppet.core.set_capabilities(offered, puppet.now))
    handled = puppet.core.command(do, BY, puppet.now)  # type: ignore[arg-type]
    assert handled.outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
    assert "not advertised" in (handled.reason or "")
    assert puppet.core.row() is Row.RUNNING


def test_what_is_advertised_is_carried_out() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    assert puppet.core.command(DoPause(interrupt=True), BY, puppet.now).applied
    assert FULL.reseed is not None


# --- events


def test_events_get_time_attempt_and_turn() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.forget()
    puppet.take(puppet.core.emit(Message(at=0, text="hi"), 77))
    puppet.take(puppet.core.emit(Message(at=5, turn="t0", text="early"), 78))
    first, second = puppet.of(Message)
    assert (first.at, first.attempt, first.turn) == (77, 1, "t1")
    assert (second.at, second.turn) == (5, "t0")


def test_usage_is_an_event_and_a_field() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    effects = puppet.core.note_usage(Usage(input_tokens=7), 9)
    assert puppet.core.summary()["usage"] == Usage(input_tokens=7, turns=1)
    assert [type(e).__name__ for e in effects] == ["Changed", "Publish"]


# --- requests end with what they belong to


def test_a_blocking_request_does_not_outlive_its_turn() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.ask(approval(puppet.core, "blocks"))
    puppet.ask(approval(puppet.core, "lasts", blocks=False))
    puppet.end_turn()
    assert [str(r.subject["id"]) for r in puppet.core.requests.open()] == ["lasts"]
    puppet.take(puppet.core.completed(puppet.result(), puppet.now))
    assert not puppet.core.requests


def test_the_attempt_withdraws_its_own_request() -> None:
    puppet = drive(Row.WAITING, pending=False)
    puppet.take(puppet.core.withdraw("r1", "no longer needed", puppet.now))
    assert puppet.core.row() is Row.RUNNING
    assert not any(isinstance(signal, Withdrawn) for signal in puppet.told)


def test_what_is_asked_is_told_in_one_line() -> None:
    puppet = drive(Row.WAITING, pending=False)
    assert puppet.of(RequestOpened)[0].text == "shell  make migrate"


def test_effects_name_their_session() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    published = [e for e in puppet.effects if isinstance(e, Publish)]
    assert published
    assert {e.session for e in published} == {"s1"}
    assert all(isinstance(e.event, Event) for e in published)
