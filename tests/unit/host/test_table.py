"""The lifecycle table, cell by cell, against a real session core.

The test reads each cell and holds the core to it; it has no table of its own. Every cell is tried with input
that waits and without.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.host.puppet import BY, Puppet, approval
from tests.unit.host.rows import drive
from watchfloor.harness.base import Decided, Interrupt, Pause, Stop, Wake, Withdrawn
from watchfloor.host.sessions.state import LIFECYCLE_OF
from watchfloor.protocol.events import LifecycleChanged, Mail, RequestResolved
from watchfloor.words import (
    TABLE,
    Cell,
    Consequence,
    Delivery,
    Lifecycle,
    Op,
    OutcomeKind,
    Overlay,
    RequestState,
    Row,
    Verdict,
)

CELLS = [pytest.param(row, op, id=f"{row.value} x {op.value}") for row in Row for op in Op]


@pytest.mark.parametrize("pending", [False, True], ids=["nothing pending", "input pending"])
@pytest.mark.parametrize(("row", "op"), CELLS)
def test_cell(row: Row, op: Op, pending: bool) -> None:
    cell = TABLE[row][op]
    puppet = drive(row, pending=pending)
    if op is Op.WAIT:
        check_wait(puppet, cell)
    elif cell.verdict is Verdict.ERROR:
        check_error(puppet, op, cell)
    else:
        check_accepted(puppet, op, cell, pending=pending)


def check_wait(puppet: Puppet, cell: Cell) -> None:
    assert puppet.core.settled is (cell.verdict is not Verdict.BLOCKS)


def check_error(puppet: Puppet, op: Op, cell: Cell) -> None:
    core = puppet.core
    before = (core.row(), core.attempt, core.summary())
    handled = puppet.operate(op)
    assert handled.outcome is OutcomeKind.INVALID
    assert handled.reason == cell.why
    assert handled.effects == []
    assert (core.row(), core.attempt, core.summary()) == before
    primitive = op.value.partition("(")[0]
    assert core.blocked()[primitive] == cell.why


def check_accepted(puppet: Puppet, op: Op, cell: Cell, *, pending: bool) -> None:
    core = puppet.core
    row, attempt, turn = core.row(), core.attempt, core.turn
    open_before = [str(r.subject["id"]) for r in core.requests.open()]
    alive_before = core.alive
    under_way = mail_under_way(puppet)
    told_before = len(puppet.told)
    assert op.value.partition("(")[0] not in core.blocked()

    handled = puppet.operate(op)

    assert handled.outcome is OutcomeKind.APPLIED
    expected = settles_in(cell, row, pending=pending)
    is_noop = cell.verdict is Verdict.NOOP and expected is LIFECYCLE_OF[row]
    assert handled.info.get("noop", False) is is_noop
    signals = puppet.told[told_before:]
    if Consequence.AT_STEP in cell.also:
        check_lands_at_step(puppet, row, op)
    if Consequence.CANCELS_STEP in cell.also and alive_before:
        assert isinstance(signals[0], Interrupt | Stop | Pause)
        assert signals[0] == Interrupt() or getattr(signals[0], "kill", getattr(signals[0], "interrupt", False))
    check_requests(puppet, cell, open_before, alive=alive_before)
    if Consequence.AFTER_DECISION in cell.also:
        check_lands_after_decision(puppet)
        return

    if not cell.to:
        assert core.row() is row
    puppet.react()

    if cell.to or row is not Row.STARTING:
        # A starting session goes on by itself, whatever leaves it as it is.
        assert puppet.state() is expected
    assert core.overlay() is None
    new = Consequence.NEW_ATTEMPT in cell.also
    assert core.attempt == attempt + (1 if new else 0)
    assert (attempt + 1 in puppet.starts) is new
    if cell.delivery is not None:
        check_delivery(puppet, handled.info, cell.delivery)
    if Consequence.ENDS_MAIL in cell.also:
        assert not core.mailbox.waits
        assert {ref: puppet.mail_error(ref) for ref in under_way} == dict.fromkeys(under_way, "stopped")
    if Consequence.ABANDONS_TURN in cell.also and turn is not None:
        assert core.turn is None
        assert puppet.mail_error("#1") == ("rewound" if op is Op.RESEED else "interrupted")


def settles_in(cell: Cell, row: Row, *, pending: bool) -> Lifecycle:
    """The state that the cell promises, given whether input waits."""
    if not cell.to:
        return LIFECYCLE_OF[row]
    return cell.to[0] if pending else cell.to[-1]


def mail_under_way(puppet: Puppet) -> list[str]:
    """Messages that are queued, or consumed by the turn that has not ended."""
    refs = list(dict.fromkeys(event.ref for event in puppet.of(Mail)))
    consumed = [item.ref for item in puppet.core.mailbox.turn]
    return [ref for ref in refs if ref in consumed or puppet.mail(ref) == ["sent"]]


def check_lands_at_step(puppet: Puppet, row: Row, op: Op) -> None:
    """Until the attempt reaches a boundary the state stays, with an overlay that says what is coming."""
    core = puppet.core
    assert core.row() is row
    overlay = core.overlay()
    assert overlay is not None
    assert overlay.by == BY
    expected = {Op.PAUSE: Overlay.PAUSING, Op.PAUSE_INTERRUPT: Overlay.PAUSING, Op.INTERRUPT: Overlay.INTERRUPTING}
    assert overlay.overlay is expected.get(op, Overlay.STOPPING)


def check_requests(puppet: Puppet, cell: Cell, open_before: list[str], *, alive: bool) -> None:
    if Consequence.WITHDRAWS_REQUESTS not in cell.also:
        assert [str(r.subject["id"]) for r in puppet.core.requests.open()] == open_before
        return
    assert not puppet.core.requests
    withdrawn = [e.request for e in puppet.of(RequestResolved) if e.state is RequestState.WITHDRAWN]
    assert withdrawn == open_before
    assert [r.state for r in puppet.requests if r.state is RequestState.WITHDRAWN] == [RequestState.WITHDRAWN] * len(
        open_before
    )
    if alive:
        told = puppet.told
        assert [s.request for s in told if isinstance(s, Withdrawn)] == open_before
        if open_before:
            # Whoever waits must not act on the withdrawal before the harder word has reached it.
            hard = max(i for i, s in enumerate(told) if isinstance(s, Interrupt | Stop | Pause))
            assert hard < min(i for i, s in enumerate(told) if isinstance(s, Withdrawn))


def check_lands_after_decision(puppet: Puppet) -> None:
    core = puppet.core
    assert puppet.state() is Lifecycle.WAITING
    overlay = core.overlay()
    assert overlay is not None
    assert overlay.overlay is Overlay.PAUSING
    assert not any(isinstance(s, Pause) for s in puppet.told)
    request = core.requests.open()[0]
    assert puppet.decide(request).outcome is OutcomeKind.APPLIED
    assert puppet.state() is Lifecycle.PAUSED
    kinds = [type(e) for e in puppet.events]
    assert kinds.index(RequestResolved) < len(kinds) - 1 - kinds[::-1].index(LifecycleChanged)
    # Nobody may act on the decision while the session is paused.
    assert not any(isinstance(s, Decided) for s in puppet.told)
    puppet.operate(Op.RESUME)
    assert [s.option for s in puppet.told if isinstance(s, Decided)] == ["yes"]
    assert puppet.state() is Lifecycle.RUNNING


def check_delivery(puppet: Puppet, info: Mapping[str, object], delivery: Delivery) -> None:
    core = puppet.core
    ref = str(info["ref"])
    assert info["delivery"] == delivery.value
    assert {e.delivery for e in puppet.of(Mail) if e.ref == ref} == {delivery}
    if delivery is Delivery.QUEUED and core.row() is not Row.RUNNING:
        # A starting session takes its mail up when it has started, the others wait for a resume.
        assert puppet.mail(ref) == ["sent"]
        assert core.mailbox.waits
        return
    if delivery is Delivery.STEERED:
        assert puppet.mail(ref) == ["sent"]
        if core.row() is Row.WAITING:
            request = core.requests.open()[0]
            puppet.decide(request)
        assert ref in [item.ref for item in puppet.checkpoint().mail]
    assert puppet.mail(ref) == ["sent", "consumed"]
    if delivery is Delivery.STARTED:
        wakes = [s for s in puppet.told if isinstance(s, Wake)]
        assert ref in [item.ref for item in wakes[-1].mail]


@pytest.mark.parametrize("row", [row for row in Row if Consequence.CANCELS_PAUSE in TABLE[row][Op.RESUME].also])
@pytest.mark.parametrize("interrupt", [False, True], ids=["pause", "pause(interrupt)"])
def test_resume_cancels_a_pause_that_has_not_landed(row: Row, interrupt: bool) -> None:
    puppet = drive(row, pending=False)
    puppet.operate(Op.PAUSE_INTERRUPT if interrupt else Op.PAUSE)
    handled = puppet.operate(Op.RESUME)
    assert handled.outcome is OutcomeKind.APPLIED
    puppet.react()
    assert puppet.core.overlay() is None
    assert puppet.state() is not Lifecycle.PAUSED
    assert not puppet.checkpoint().paused


def test_every_row_but_two_is_a_lifecycle_state() -> None:
    assert set(LIFECYCLE_OF) == set(Row)
    assert set(LIFECYCLE_OF.values()) == set(Lifecycle) - {Lifecycle.UNKNOWN}


def test_a_request_that_does_not_block_leaves_the_session_running() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.ask(approval(puppet.core, blocks=False))
    assert puppet.core.row() is Row.RUNNING
