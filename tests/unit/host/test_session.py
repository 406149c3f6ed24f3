"""One session's lifecycle beyond the single cells of the table: turns, mail, pauses."""

from __future__ import annotations

import pytest

from tests.unit.host.puppet import BY, Puppet
from tests.unit.host.rows import drive
from watchfloor.harness.base import Boundary, Decided, Interrupt, MailArrived, Pause, Resume, Wake
from watchfloor.words import Lifecycle, Op, Overlay, Priority, Row


def wakes(puppet: Puppet) -> list[Wake]:
    return [signal for signal in puppet.told if isinstance(signal, Wake)]


def texts(boundary: Boundary) -> list[str]:
    return [item.text for item in boundary.mail]


# --- turns and mail


def test_a_turn_from_the_first_message_to_its_result() -> None:
    puppet = Puppet()
    assert puppet.send("go").info == {"ref": "#1", "delivery": "started"}
    assert puppet.state() is Lifecycle.STARTING
    puppet.react()
    assert wakes(puppet)[0].turn == "t1"
    assert [item.text for item in wakes(puppet)[0].mail] == ["go"]
    puppet.end_turn()
    assert puppet.state() is Lifecycle.IDLE
    assert puppet.core.turn is None
    assert puppet.core.result is not None
    assert puppet.mail("#1") == ["sent", "consumed"]


def test_mail_that_waits_at_the_end_of_a_turn_begins_the_next() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.send("one")
    puppet.send("two", Priority.QUEUE)
    puppet.end_turn()
    assert puppet.core.turn == "t2"
    assert [item.text for item in wakes(puppet)[-1].mail] == ["one", "two"]


def test_queue_priority_does_not_join_the_turn() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    assert puppet.send("later", Priority.QUEUE).info["delivery"] == "queued"
    assert not any(isinstance(signal, MailArrived) for signal in puppet.told)
    puppet.send("now")
    assert texts(puppet.checkpoint()) == ["now"]
    assert texts(puppet.checkpoint()) == []


def test_interrupt_priority_ends_the_turn_and_begins_one_with_the_message() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.send("queued before", Priority.QUEUE)
    assert puppet.send("now", Priority.INTERRUPT).info["delivery"] == "started"
    assert Interrupt() in puppet.told
    puppet.react()
    assert puppet.core.turn == "t2"
    assert [item.text for item in wakes(puppet)[-1].mail] == ["queued before", "now"]
    assert puppet.mail_error("#1") == "interrupted"


def test_interrupt_priority_when_idle_is_an_ordinary_start() -> None:
    puppet = drive(Row.IDLE, pending=False)
    assert puppet.send("now", Priority.INTERRUPT).info["delivery"] == "started"
    assert Interrupt() not in puppet.told
    assert puppet.state() is Lifecycle.RUNNING


def test_interrupt_keeps_queued_mail_for_the_next_send() -> None:
    puppet = drive(Row.RUNNING, pending=True)
    handled = puppet.operate(Op.INTERRUPT)
    assert handled.info == {"queued": 1}
    puppet.react()
    assert puppet.state() is Lifecycle.IDLE
    assert puppet.mail("#2") == ["sent"]
    puppet.send("go on")
    assert [item.ref for item in wakes(puppet)[-1].mail] == ["#2", "#3"]


def test_a_second_interrupt_changes_nothing() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.operate(Op.INTERRUPT)
    assert puppet.operate(Op.INTERRUPT).info == {"noop": True}
    assert puppet.told.count(Interrupt()) == 1


@pytest.mark.parametrize("op", [Op.PAUSE, Op.PAUSE_INTERRUPT, Op.INTERRUPT, Op.STOP])
def test_mail_for_a_turn_that_is_about_to_end_is_queued(op: Op) -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.operate(op)
    assert puppet.send("too late").info["delivery"] == "queued"


def test_an_interrupt_that_crosses_the_end_of_the_turn() -> None:
    puppet = drive(Row.RUNNING, pending=True)
    puppet.operate(Op.INTERRUPT)
    puppet.end_turn()
    assert puppet.state() is Lifecycle.IDLE
    assert puppet.core.overlay() is None
    puppet.send("next")
    turn = puppet.core.turn
    # The attempt finds nothing to interrupt any more, and says nothing of the next turn.
    assert turn == "t2"
    assert puppet.state() is Lifecycle.RUNNING


def test_mail_for_a_starting_session_that_is_interrupted() -> None:
    puppet = Puppet()
    puppet.send("start")
    puppet.send("more")
    puppet.operate(Op.INTERRUPT)
    puppet.react()
    assert puppet.state() is Lifecycle.IDLE
    assert puppet.mail_error("#1") == "interrupted"
    assert puppet.mail("#2") == ["sent"]


# --- pause


def test_a_pause_parks_at_the_boundary_and_goes_on_there() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.operate(Op.PAUSE)
    assert puppet.state() is Lifecycle.RUNNING
    assert puppet.checkpoint() == Boundary(paused=True)
    assert puppet.state() is Lifecycle.PAUSED
    assert puppet.core.why == f"by {BY}"
    puppet.send("while paused")
    puppet.operate(Op.RESUME)
    overlay = puppet.core.overlay()
    assert overlay is not None
    assert overlay.overlay is Overlay.RESUMING
    assert puppet.state() is Lifecycle.PAUSED
    puppet.take(puppet.core.resumed(puppet.now))
    assert puppet.state() is Lifecycle.RUNNING
    assert puppet.core.turn == "t1"
    assert puppet.told[-2:] == [Resume(), MailArrived()]
    assert texts(puppet.checkpoint()) == ["while paused"]


def test_a_pause_at_once_wakes_the_same_turn_with_the_same_mail() -> None:
    puppet = drive(Row.RUNNING, pending=True)
    puppet.checkpoint()
    puppet.operate(Op.PAUSE_INTERRUPT)
    assert puppet.told[-1] == Pause(interrupt=True)
    assert puppet.checkpoint().paused
    assert puppet.state() is Lifecycle.RUNNING
    puppet.take(puppet.core.suspended(puppet.now))
    assert puppet.state() is Lifecycle.PAUSED
    puppet.send("meanwhile")
    puppet.operate(Op.RESUME)
    assert puppet.state() is Lifecycle.RUNNING
    wake = wakes(puppet)[-1]
    assert wake.turn == "t1"
    assert [item.text for item in wake.mail] == ["first", "joins", "meanwhile"]
    assert not any(isinstance(signal, Resume) for signal in puppet.told)


def test_a_pause_that_was_cancelled_while_the_step_is_being_cut_goes_on_at_once() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.operate(Op.PAUSE_INTERRUPT)
    puppet.operate(Op.RESUME)
    puppet.take(puppet.core.suspended(puppet.now))
    assert puppet.state() is Lifecycle.RUNNING
    assert wakes(puppet)[-1].turn == "t1"


def test_a_pause_after_a_resume_that_has_not_landed() -> None:
    puppet = drive(Row.PAUSED, pending=True)
    puppet.operate(Op.RESUME)
    assert puppet.operate(Op.PAUSE).info == {}
    puppet.react()
    assert puppet.state() is Lifecycle.PAUSED
    assert puppet.core.overlay() is None


def test_pause_and_interrupt_together_leave_a_paused_session_without_a_turn() -> None:
    puppet = drive(Row.WAITING, pending=False)
    puppet.operate(Op.PAUSE)
    puppet.operate(Op.INTERRUPT)
    puppet.react()
    assert puppet.state() is Lifecycle.PAUSED
    assert puppet.core.turn is None
    assert not puppet.core.requests


def test_a_turn_that_ends_while_a_pause_is_due() -> None:
    puppet = drive(Row.RUNNING, pending=True)
    puppet.operate(Op.PAUSE)
    puppet.end_turn()
    assert puppet.state() is Lifecycle.PAUSED
    assert puppet.core.mailbox.waits
    puppet.operate(Op.RESUME)
    assert puppet.core.turn == "t2"


def test_a_pause_of_something_that_starts_by_itself_is_told_when_it_has_started() -> None:
    puppet = Puppet(starts_itself=True)
    puppet.take(puppet.core.start(puppet.now))
    puppet.operate(Op.PAUSE)
    assert puppet.told == []
    puppet.take(puppet.core.started(puppet.now))
    assert puppet.told == [Wake("t1"), Pause()]
    assert puppet.state() is Lifecycle.RUNNING
    puppet.take(puppet.core.suspended(puppet.now))
    assert puppet.state() is Lifecycle.PAUSED


def test_somebody_else_stops_and_continues_the_program() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.take(puppet.core.suspended(puppet.now))
    assert puppet.state() is Lifecycle.PAUSED
    assert puppet.core.why is None
    puppet.take(puppet.core.resumed(puppet.now))
    assert puppet.state() is Lifecycle.RUNNING


def test_a_pause_due_after_a_decision_lands_at_a_boundary_once_other_work_runs() -> None:
    puppet = drive(Row.WAITING, pending=False)
    puppet.operate(Op.PAUSE)
    assert Pause() not in puppet.told
    puppet.begin("other")
    assert puppet.told[-1] == Pause()
    puppet.react()
    assert puppet.core.row() is Row.PAUSED_OPEN


def test_a_decision_while_paused_is_recorded_and_handed_over_on_resume() -> None:
    puppet = drive(Row.PAUSED_OPEN, pending=False)
    request = puppet.core.requests.open()[0]
    assert puppet.decide(request).applied
    assert puppet.core.row() is Row.PAUSED
    assert not any(isinstance(signal, Decided) for signal in puppet.told)
    puppet.operate(Op.RESUME)
    assert [type(signal) for signal in puppet.told[-2:]] == [Resume, Decided]


def test_an_interrupt_of_a_paused_session_drops_what_was_held_back() -> None:
    puppet = drive(Row.WAITING, pending=False)
    puppet.operate(Op.PAUSE)
    puppet.decide(puppet.core.requests.open()[0])
    puppet.operate(Op.INTERRUPT)
    puppet.react()
    assert puppet.state() is Lifecycle.PAUSED
    puppet.operate(Op.RESUME)
    assert not any(isinstance(signal, Decided) for signal in puppet.told)
    assert puppet.state() is Lifecycle.IDLE


def test_a_turn_whose_step_was_cut_is_abandoned_without_asking_the_attempt() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.operate(Op.PAUSE_INTERRUPT)
    puppet.react()
    puppet.operate(Op.INTERRUPT)
    assert Interrupt() not in puppet.told
    assert puppet.core.turn is None
    assert puppet.state() is Lifecycle.PAUSED


def test_a_resume_before_the_abandoned_turn_is_over() -> None:
    puppet = drive(Row.PAUSED, pending=True)
    puppet.operate(Op.INTERRUPT)
    puppet.operate(Op.RESUME)
    puppet.react()
    assert puppet.state() is Lifecycle.IDLE
    assert puppet.core.overlay() is None
