"""Every row of the lifecycle table, reached by operations and reports alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.unit.host.puppet import Puppet, approval
from watchfloor.words import Op, Row

# Each driver can leave input behind (`pending`) that a resume takes up, or none.


def never_started(pending: bool) -> Puppet:
    # A session that nobody wrote to has input only when its attempts start by themselves.
    return Puppet(starts_itself=pending)


def starting(pending: bool) -> Puppet:
    puppet = Puppet()
    if pending:
        puppet.send("first")
    else:
        puppet.operate(Op.RESUME)
    return puppet


def idle(pending: bool) -> Puppet:
    puppet = starting(pending=False)
    puppet.react()
    if pending:
        # What an interrupt leaves in the queue.
        puppet.send("first")
        puppet.send("later")
        puppet.operate(Op.INTERRUPT)
        puppet.react()
    return puppet


def running(pending: bool) -> Puppet:
    puppet = starting(pending=True)
    puppet.react()
    if pending:
        puppet.send("joins")
    return puppet


def waiting(pending: bool) -> Puppet:
    puppet = running(pending)
    puppet.begin("call-1")
    puppet.ask(approval(puppet.core, call="call-1"))
    return puppet


def paused(pending: bool) -> Puppet:
    puppet = running(pending=False) if pending else idle(pending=False)
    puppet.operate(Op.PAUSE)
    puppet.react()
    return puppet


def paused_open(pending: bool) -> Puppet:
    puppet = running(pending=False)
    puppet.begin("other")
    puppet.ask(approval(puppet.core))
    puppet.operate(Op.PAUSE)
    puppet.react()
    if pending:
        # Nothing but the request is left, so that the session waits for it when it goes on.
        puppet.take(puppet.core.end("other", puppet.now))
    return puppet


def completed(pending: bool) -> Puppet:
    puppet = running(pending=False) if pending else idle(pending=False)
    puppet.take(puppet.core.completed(puppet.result(), puppet.now))
    return puppet


def failed(pending: bool) -> Puppet:
    puppet = running(pending=False)
    if pending:
        puppet.send("left in the queue")
    puppet.take(puppet.core.failed("it broke", puppet.now))
    return puppet


def stopped(pending: bool) -> Puppet:
    puppet = running(pending=False) if pending else idle(pending=False)
    puppet.operate(Op.STOP)
    puppet.react()
    return puppet


DRIVERS: Final[Mapping[Row, Callable[[bool], Puppet]]] = {
    Row.NEVER_STARTED: never_started,
    Row.STARTING: starting,
    Row.IDLE: idle,
    Row.RUNNING: running,
    Row.WAITING: waiting,
    Row.PAUSED: paused,
    Row.PAUSED_OPEN: paused_open,
    Row.COMPLETED: completed,
    Row.FAILED: failed,
    Row.STOPPED: stopped,
}


def drive(row: Row, *, pending: bool) -> Puppet:
    """A session in the row."""
    puppet = DRIVERS[row](pending)
    assert puppet.core.row() is row
    if row is not Row.STARTING:
        puppet.no_more_signals()
    return puppet
