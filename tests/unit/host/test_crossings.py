"""Operators, signals and reports in any order: an attempt that behaves never meets a core that does not.

The attempts below are models of an agent function and of a program. Signals reach them late, one at a time and
in order, as they do over a real queue, while operators go on pressing keys and the agent goes on working.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.host.puppet import FULL, Puppet, approval
from watchfloor.harness.base import Decided, Interrupt, MailArrived, Pause, Resume, Signal, Stop, Wake, Withdrawn
from watchfloor.host.effects import Changed, EndAttempt, StartAttempt, Tell
from watchfloor.protocol.events import LifecycleChanged, Mail
from watchfloor.protocol.model import PauseOptions
from watchfloor.words import Lifecycle, Op, Priority, Row

OPS = [op for op in Op if op not in (Op.WAIT, Op.SEND)]
PROGRAM = FULL.model_copy(update={"interrupt": None, "pause": PauseOptions(), "reseed": None})
"""What a program can do: it is stopped and continued as a whole, and has no turns to interrupt."""


class Attempt:
    """A turn runs, is parked at a boundary, or waits for a request; or none of them."""

    def __init__(self) -> None:
        self.signals: deque[Signal] = deque()
        self.turn: str | None = None
        self.parked = False
        self.waits_for: str | None = None
        self.stopping = False

    @property
    def works(self) -> bool:
        """Can the agent take a step?"""
        return self.turn is not None and not self.parked and self.waits_for is None

    def drop_turn(self) -> None:
        self.turn, self.parked, self.waits_for = None, False, None


class Crossings(RuleBasedStateMachine):
    program = False

    def __init__(self) -> None:
        super().__init__()
        self.puppet = Puppet(starts_itself=self.program, capabilities=PROGRAM if self.program else FULL)
        self.core = self.puppet.core
        self.attempt: Attempt | None = None
        self.seen = 0
        self.asked = 0
        self.shown: dict[str, Any] = dict(self.core.summary())
        self.ended: list[int] = []
        self.started: list[int] = []

    # --- what operators do

    @rule(op=st.sampled_from(OPS))
    def operate(self, op: Op) -> None:
        if self.program and op in (Op.INTERRUPT, Op.PAUSE_INTERRUPT, Op.RESEED):
            return
        self.puppet.operate(op)
        self.look()

    @rule(priority=st.sampled_from(list(Priority)))
    def send(self, priority: Priority) -> None:
        if self.program and priority is Priority.INTERRUPT:
            return
        self.puppet.send("hello", priority)
        self.look()

    @precondition(lambda self: bool(self.core.requests))
    @rule(option=st.sampled_from(["yes", "no"]))
    def decide(self, option: str) -> None:
        assert self.puppet.decide(self.core.requests.open()[0], option).applied
        self.look()

    # --- what reaches the attempt

    @precondition(lambda self: self.attempt is not None and self.core.row() is Row.STARTING)
    @rule(works=st.booleans())
    def start(self, works: bool) -> None:
        if works:
            self.puppet.take(self.core.started(self.puppet.now))
        else:
            self.puppet.take(self.core.failed("could not be started", self.puppet.now))
        self.look()

    @precondition(
        lambda self: self.attempt is not None and self.attempt.signals and self.core.row() is not Row.STARTING
    )
    @rule()
    def deliver(self) -> None:
        attempt = self.attempt
        assert attempt is not None
        self.obey(attempt, attempt.signals.popleft())
        self.look()

    def obey(self, attempt: Attempt, signal: Signal) -> None:
        core, now = self.core, self.puppet.now
        match signal:
            case Wake(turn=turn):
                assert attempt.turn is None, f"{turn} begins while {attempt.turn} runs"
                attempt.turn = turn
            case Pause(interrupt=True) if attempt.turn is not None:
                attempt.drop_turn()
                self.puppet.take(core.suspended(now))
            case Pause() if self.program and attempt.turn is not None and not attempt.parked:
                attempt.parked = True
                self.puppet.take(core.suspended(now))
            case MailArrived() if self.program and not attempt.parked:
                attempt.parked = self.puppet.checkpoint().paused
            case Resume() if attempt.parked:
                attempt.parked = False
                self.puppet.take(core.resumed(now))
            case Interrupt() if attempt.turn is not None:
                attempt.drop_turn()
                self.puppet.take(core.interrupted(now))
            case Stop(kill=kill):
                attempt.stopping = True
                if kill or attempt.turn is None or attempt.parked:
                    self.stopped(attempt)
            case Decided(request=request) | Withdrawn(request=request) if attempt.waits_for == request:
                attempt.waits_for = None
            case _:
                return

    def stopped(self, attempt: Attempt) -> None:
        attempt.drop_turn()
        self.puppet.take(self.core.stopped(self.puppet.now))

    # --- what the agent does

    @precondition(lambda self: self.attempt is not None and self.attempt.works)
    @rule()
    def checkpoint(self) -> None:
        attempt = self.attempt
        assert attempt is not None
        boundary = self.puppet.checkpoint()
        if boundary.stopped:
            self.stopped(attempt)
        else:
            attempt.parked = boundary.paused
        self.look()

    @precondition(lambda self: self.attempt is not None and self.attempt.works)
    @rule(begins=st.booleans())
    def work(self, begins: bool) -> None:
        if begins:
            self.puppet.begin("w")
        else:
            self.puppet.take(self.core.end("w", self.puppet.now))
        self.look()

    @precondition(lambda self: self.attempt is not None and self.attempt.works)
    @rule(patience=st.none() | st.integers(1, 20_000), at_deadline=st.sampled_from([None, "no"]))
    def ask(self, patience: int | None, at_deadline: str | None) -> None:
        attempt = self.attempt
        assert attempt is not None
        self.asked += 1
        attempt.waits_for = f"r{self.asked}"
        deadline = None if patience is None else self.puppet.now + patience
        self.puppet.ask(approval(self.core, attempt.waits_for, deadline=deadline, at_deadline=at_deadline))
        self.look()

    @precondition(lambda self: self.attempt is not None and self.attempt.works)
    @rule(how=st.sampled_from(["turn", "turn", "completed", "failed"]))
    def end(self, how: str) -> None:
        attempt = self.attempt
        assert attempt is not None
        core, now, result = self.core, self.puppet.now, self.puppet.result()
        attempt.drop_turn()
        if how == "failed":
            self.puppet.take(core.failed("it broke", now))
        elif attempt.stopping:
            self.puppet.take(core.stopped(now, result))
        elif how == "completed" or self.program:
            self.puppet.take(core.completed(result, now))
        else:
            self.puppet.take(core.turn_ended(result, now))
        self.look()

    @rule(later=st.integers(1, 20_000))
    def time_passes(self, later: int) -> None:
        self.puppet.now += later
        self.puppet.take(self.core.tick(self.puppet.now))
        self.look()

    # --- what must hold

    def look(self) -> None:
        """Take in what came out of the core."""
        effects = self.puppet.effects
        while self.seen < len(effects):
            effect = effects[self.seen]
            self.seen += 1
            match effect:
                case StartAttempt(attempt=number):
                    self.started.append(number)
                    self.attempt = Attempt()
                case Tell(attempt=number, signal=signal):
                    assert number == self.core.attempt
                    if self.attempt is not None:
                        self.attempt.signals.append(signal)
                case EndAttempt(attempt=number):
                    self.ended.append(number)
                    self.attempt = None
                case Changed(fields=fields):
                    now = self.core.summary()
                    self.shown.update({name: now[name] for name in fields})

    @invariant()
    def what_clients_were_told_is_what_is(self) -> None:
        assert self.shown == self.core.summary()
        changes = self.puppet.of(LifecycleChanged)
        if changes:
            overlay = self.core.overlay()
            assert changes[-1].lifecycle is self.core.lifecycle
            assert changes[-1].pending is (overlay.overlay if overlay else None)

    @invariant()
    def attempts_start_once_and_end_once(self) -> None:
        assert self.started == sorted(set(self.started))
        assert self.ended == self.started[: len(self.ended)]
        assert len(self.started) - len(self.ended) == (1 if self.core.alive else 0)

    @invariant()
    def nothing_works_while_the_session_is_paused(self) -> None:
        attempt = self.attempt
        if attempt is not None and self.core.lifecycle is Lifecycle.PAUSED and not attempt.signals:
            assert not attempt.works

    @invariant()
    def core_and_attempt_agree_when_all_is_said(self) -> None:
        attempt = self.attempt
        if attempt is not None and not attempt.signals and self.core.row() is not Row.STARTING:
            cut = self.core.suspension.cut
            assert (attempt.turn == self.core.turn) or (cut and attempt.turn is None)

    @invariant()
    def every_message_is_accounted_for(self) -> None:
        last: dict[str, str] = {}
        for event in self.puppet.of(Mail):
            last[event.ref] = event.state.value
        assert len(last) == self.core.mailbox.view.refs
        assert sum(state == "sent" for state in last.values()) == self.core.mailbox.view.queued

    def teardown(self) -> None:
        """Whatever happened, a kill ends it."""
        self.puppet.operate(Op.STOP_KILL)
        self.look()
        while self.core.alive:
            if self.core.row() is Row.STARTING:
                self.start(True)
            if self.attempt is not None and self.attempt.signals:
                self.deliver()
        assert self.core.lifecycle is Lifecycle.STOPPED
        assert self.core.overlay() is None
        assert not self.core.requests
        assert not self.core.mailbox.waits
        assert self.core.turn is None
        self.what_clients_were_told_is_what_is()
        self.attempts_start_once_and_end_once()


class ProgramCrossings(Crossings):
    program = True


TestCrossings = Crossings.TestCase
TestProgramCrossings = ProgramCrossings.TestCase
TestCrossings.settings = TestProgramCrossings.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None
)
