"""Budgets: counted at boundaries, reached they suspend the turn, raised it goes on."""

from __future__ import annotations

import pytest

from tests.unit.host.puppet import FULL, Puppet
from tests.unit.host.rows import drive
from watchfloor.harness.base import Wake
from watchfloor.host.effects import Handled
from watchfloor.protocol.events import ResultEvent
from watchfloor.protocol.frames import DoBudget
from watchfloor.protocol.model import BudgetOptions, Result, Usage
from watchfloor.words import Lifecycle, Op, OutcomeKind, Row, StopReason

WITH_BUDGET = FULL.model_copy(update={"budget": BudgetOptions(tokens=True, turns=True)})


def budget(puppet: Puppet, **limits: int) -> Handled:
    handled = puppet.core.set_budget(DoBudget.model_validate(limits), puppet.now)
    puppet.take(handled.effects)
    return handled


def use(puppet: Puppet, tokens: int) -> None:
    puppet.take(puppet.core.note_usage(Usage(input_tokens=tokens), puppet.now))


def usage(puppet: Puppet) -> Usage:
    found = puppet.core.usage
    assert found is not None
    return found


def limited(puppet: Puppet) -> None:
    result = Result(stop_reason=StopReason.LIMIT_REACHED, final_message="so far", session_id=puppet.core.id)
    puppet.take(puppet.core.limited(result, puppet.now))


def test_tokens_that_are_used_up_suspend_the_turn_and_more_let_it_go_on() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    core = puppet.core
    turn = core.turn
    assert budget(puppet, tokens=100).info == {"tokens": 100}
    use(puppet, 99)
    assert puppet.checkpoint().limit is None
    use(puppet, 100)
    boundary = puppet.checkpoint()
    assert boundary.limit == "the budget of 100 tokens is used up (100)"
    assert puppet.checkpoint().limit == boundary.limit  # an agent that swallows it gets it again
    limited(puppet)
    assert puppet.state() is Lifecycle.PAUSED
    assert core.why == boundary.limit
    assert puppet.of(ResultEvent)[-1].result.stop_reason is StopReason.LIMIT_REACHED
    assert puppet.mail("#1") == ["sent", "consumed"]

    refused = puppet.operate(Op.RESUME)
    assert refused.outcome is OutcomeKind.INVALID
    assert "raise it first" in str(refused.reason)
    assert core.blocked()["resume"] == refused.reason
    assert puppet.send("later").info["delivery"] == "queued"

    budget(puppet, tokens=250)
    assert "resume" not in core.blocked()
    puppet.forget()
    puppet.operate(Op.RESUME)
    assert core.turn == turn
    assert puppet.state() is Lifecycle.RUNNING
    (wake,) = [signal for signal in puppet.told if isinstance(signal, Wake)]
    assert [item.ref for item in wake.mail] == ["#1", "#2"]
    assert puppet.checkpoint().limit is None
    assert usage(puppet) == Usage(input_tokens=100, turns=1, budget_tokens=250)


def test_turns_that_are_used_up_suspend_the_session_between_them() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    budget(puppet, turns=2)
    puppet.send("second")
    puppet.end_turn()
    assert puppet.state() is Lifecycle.RUNNING
    assert puppet.checkpoint().limit is None
    puppet.send("third")
    puppet.end_turn()
    assert puppet.state() is Lifecycle.PAUSED
    assert puppet.core.why == "the budget of 2 turns is used up (2)"
    assert puppet.mail("#3") == ["sent"]
    budget(puppet, turns=3)
    puppet.operate(Op.RESUME)
    assert puppet.state() is Lifecycle.RUNNING
    assert puppet.mail("#3") == ["sent", "consumed"]
    assert usage(puppet).turns == 3


def test_what_is_not_named_stays() -> None:
    puppet = drive(Row.IDLE, pending=False)
    budget(puppet, tokens=5)
    assert budget(puppet, turns=9).info == {"tokens": 5, "turns": 9}
    assert (usage(puppet).budget_tokens, usage(puppet).budget_turns) == (5, 9)
    assert budget(puppet).outcome is OutcomeKind.INVALID


def test_a_budget_is_of_one_attempt_and_its_count_begins_anew() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    budget(puppet, tokens=10)
    use(puppet, 9)
    puppet.take(puppet.core.failed("broke", puppet.now))
    puppet.operate(Op.RESUME)
    puppet.react()
    use(puppet, 9)
    assert puppet.checkpoint().limit is None
    use(puppet, 10)
    assert puppet.checkpoint().limit is not None


@pytest.mark.parametrize("op", [Op.STOP, Op.INTERRUPT])
def test_a_turn_that_ends_otherwise_meanwhile_ends_so(op: Op) -> None:
    puppet = drive(Row.RUNNING, pending=False)
    budget(puppet, tokens=0)
    assert puppet.checkpoint().limit is not None
    puppet.operate(op)
    limited(puppet)
    puppet.react()
    # Nothing is left that could be resumed; the budget still stands in the way of a next turn.
    assert puppet.core.turn is None
    assert puppet.mail_error("#1") == ("stopped" if op is Op.STOP else "interrupted")
    assert puppet.state() is (Lifecycle.STOPPED if op is Op.STOP else Lifecycle.PAUSED)


def test_one_that_waits_for_nothing_else_can_be_stopped() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    budget(puppet, tokens=0)
    puppet.checkpoint()
    limited(puppet)
    puppet.operate(Op.STOP)
    puppet.react()
    assert puppet.state() is Lifecycle.STOPPED
    assert puppet.mail_error("#1") == "stopped"
