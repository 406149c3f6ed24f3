"""What operators do to a session. Each operation reads its cell of `words.TABLE` and carries out what that says."""

from __future__ import annotations

from typing import Final

from watchfloor.harness.base import (
    Decided,
    Interrupt,
    MailArrived,
    Pause,
    Resume,
    Stop,
    Wake,
    Withdrawn,
)
from watchfloor.host.effects import EndAttempt, Forget, Handled
from watchfloor.host.sessions.offered import not_offered
from watchfloor.host.sessions.requests import Rejected, Taken
from watchfloor.host.sessions.reseeding import Reseeding
from watchfloor.host.sessions.state import STOP_FIRST, Asked, Phase, Suspension
from watchfloor.protocol.events import MailState
from watchfloor.protocol.frames import (
    Do,
    DoAnswer,
    DoApprove,
    DoBudget,
    DoDelete,
    DoInterrupt,
    DoPause,
    DoReseed,
    DoResume,
    DoSend,
    DoStop,
    UnknownDo,
)
from watchfloor.protocol.model import JsonObject
from watchfloor.words import (
    DELETABLE,
    TABLE,
    Cell,
    Consequence,
    Delivery,
    Lifecycle,
    Op,
    OptionKind,
    OutcomeKind,
    Overlay,
    Primitive,
    Priority,
    Verdict,
)

SUPPORTED: Final = tuple(primitive for primitive in Primitive if primitive is not Primitive.ACT)
"""The primitives that this host can carry out."""
KILL_MS: Final = 5000
"""Milliseconds that a killed attempt has until it is given up."""


class Operations(Reseeding):
    """The operator's side of a session."""

    def command(self, do: Do | UnknownDo, by: str, now: int) -> Handled:
        """Carry out a command of somebody who may give it. What was not advertised is refused."""
        missing = self.not_advertised(do)
        if missing is not None:
            return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=missing)
        return self.carry_out(do, by, now)

    def carry_out(self, do: Do | UnknownDo, by: str, now: int) -> Handled:
        """Carry out a command, whatever was advertised."""
        match do:
            case DoSend():
                return self.send(do.text, by, now, priority=do.priority, reply_to=do.reply_to)
            case DoPause():
                return self.pause(by, now, interrupt=do.interrupt)
            case DoResume():
                return self.resume(by, now)
            case DoInterrupt():
                return self.interrupt(by, now)
            case DoStop():
                return self.stop(by, now, kill=do.kill, reason=do.reason)
            case DoReseed():
                return self.reseed(do, by, now)
            case DoBudget():
                return self.set_budget(do, now)
            case DoDelete():
                return self.delete(by, now)
            case DoApprove() | DoAnswer():
                return self.decide(do, by, now)
            case _:
                return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=f"this host knows no {do.primitive}")

    def not_advertised(self, do: Do | UnknownDo) -> str | None:
        """Why the session cannot take this command at all, or None."""
        return not_offered(self.capabilities, do)

    # --- send

    def send(
        self,
        text: str,
        by: str,
        now: int,
        *,
        priority: Priority = Priority.NORMAL,
        reply_to: str | None = None,
        event: str | None = None,
    ) -> Handled:
        """Put a message into the mailbox; it starts a turn, joins the one under way, or waits."""
        cell = self._cell(Op.SEND)
        if cell.verdict is Verdict.ERROR:
            return self._invalid(cell)
        ends_turn = Consequence.CANCELS_STEP in self._cell(Op.INTERRUPT).also
        interrupts = priority is Priority.INTERRUPT and ends_turn and not self._being_stopped
        delivery = self._delivery(cell, priority, interrupts)
        letter = self.mailbox.post(
            text,
            by=by,
            delivery=delivery,
            steers=priority is not Priority.QUEUE,
            reply_to=reply_to,
            event=event,
            at=now,
        )
        self._mail([letter], MailState.SENT, now)
        if interrupts:
            self._wake_next = True
            if Overlay.INTERRUPTING not in self.pending:
                self._interrupt(self._cell(Op.INTERRUPT), by, now)
        elif delivery is Delivery.STARTED and self.alive:
            self._open_turn(now)
        elif delivery is Delivery.STARTED:
            self._launch(now, new=Consequence.NEW_ATTEMPT in cell.also)
        elif delivery is Delivery.STEERED:
            self._tell(MailArrived())
        return self._applied(now, {"ref": letter.item.ref, "delivery": delivery.value})

    def _delivery(self, cell: Cell, priority: Priority, interrupts: bool) -> Delivery:
        if interrupts:
            return Delivery.STARTED
        delivery = cell.delivery or Delivery.QUEUED
        if delivery is Delivery.STEERED and (
            priority is Priority.QUEUE or self.pending.keys() & {Overlay.PAUSING, Overlay.INTERRUPTING}
        ):
            # The turn will not take it any more: it waits for whatever comes after.
            return Delivery.QUEUED
        if Overlay.RESEEDING in self.pending:
            return Delivery.QUEUED
        return Delivery.QUEUED if self._being_stopped else delivery

    # --- pause, resume, interrupt

    def pause(self, by: str, now: int, *, interrupt: bool = False) -> Handled:
        """Suspend the session: at once where nothing runs, else at the step boundary, or by cancelling the step."""
        cell = self._cell(Op.PAUSE_INTERRUPT if interrupt else Op.PAUSE)
        if cell.verdict is Verdict.ERROR:
            return self._invalid(cell)
        if self._being_stopped:
            return self._noop(now)
        if Overlay.RESUMING in self.pending:
            # Asked for before the resume has landed: the attempt goes on and suspends again.
            self._ask_pause(Asked(by, now, hard=interrupt))
        elif cell.verdict is Verdict.NOOP:
            return self._noop(now)
        elif Consequence.CANCELS_STEP in cell.also:
            self._ask_pause(Asked(by, now, hard=True))
            self._withdraw(now, f"paused by {by}")
        elif Consequence.AFTER_DECISION in cell.also:
            self.pending[Overlay.PAUSING] = Asked(by, now, told=False)
        elif Consequence.AT_STEP in cell.also:
            self._ask_pause(Asked(by, now, hard=interrupt))
        else:
            self._pause_landed(Asked(by, now))
        return self._applied(now)

    def _ask_pause(self, asked: Asked) -> None:
        before = self.pending.get(Overlay.PAUSING)
        asked.hard = asked.hard or (before is not None and before.hard)
        asked.told = self.phase is Phase.LIVE
        self.pending[Overlay.PAUSING] = asked
        if asked.told:
            self._tell(Pause(interrupt=asked.hard, by=asked.by))

    def resume(self, by: str, now: int) -> Handled:
        """Go on: continue what is suspended, start what never ran, retry what failed, relaunch what ended."""
        cell = self._cell(Op.RESUME)
        if cell.verdict is Verdict.ERROR:
            return self._invalid(cell)
        if self._being_stopped:
            return self._noop(now)
        if (limit := self.limit()) is not None:
            return Handled(OutcomeKind.INVALID, reason=f"{limit}: raise it first")
        if Consequence.NEW_ATTEMPT in cell.also:
            self._launch(now, new=True, again=self.carried)
        elif self.paused:
            self._continue(by, now)
        elif Consequence.CANCELS_PAUSE in cell.also and Overlay.PAUSING in self.pending:
            self._cancel_pause(by)
        elif self.phase is Phase.NEVER_STARTED:
            self._launch(now, new=False, again=self.carried)
        elif Lifecycle.RUNNING in cell.to and self.mailbox.waits and not self.pending:
            self._open_turn(now)
        else:
            return self._noop(now)
        return self._applied(now)

    def _continue(self, by: str, now: int) -> None:
        """Leave `paused`."""
        suspension, self.suspension = self.suspension, Suspension()
        self.why = None
        if self.turn is None:
            self.paused = False
            if self.alive and (self.mailbox.waits or self.carried):
                # Mail that an attempt was to take up, which was paused while it started.
                self._open_turn(now, self.carried)
            elif self.mailbox.waits:
                self._launch(now, new=False)
        elif suspension.cut and not self.alive:
            # It came back with its host: what ran it has to be started anew.
            self.carried = self.mailbox.turn
            self.turn = None
            self._launch(now, new=False, again=self.carried)
        elif suspension.cut:
            self.paused = False
            self._mail(self.mailbox.steer(), MailState.CONSUMED, now)
            self._tell(Wake(self.turn, self.mailbox.turn))
        else:
            self._tell(Resume(by))
            for signal in suspension.held:
                self._tell(signal)
            if suspension.parked:
                self.suspension.parked = True
                self.pending[Overlay.RESUMING] = Asked(by, now)
            else:
                self._resumed()

    def _cancel_pause(self, by: str) -> None:
        asked = self.pending[Overlay.PAUSING]
        if asked.hard and asked.told:
            # The step is being cancelled already: go on as soon as it is.
            asked.resume = True
            return
        del self.pending[Overlay.PAUSING]
        if asked.told:
            self._tell(Resume(by))

    def interrupt(self, by: str, now: int) -> Handled:
        """End the turn. Queued mail stays."""
        cell = self._cell(Op.INTERRUPT)
        if cell.verdict is Verdict.ERROR:
            return self._invalid(cell)
        if self._being_stopped or Overlay.INTERRUPTING in self.pending:
            return self._noop(now)
        self._interrupt(cell, by, now)
        queued = self.mailbox.view.queued
        return self._applied(now, {"queued": queued} if queued else None)

    def _interrupt(self, cell: Cell, by: str, now: int) -> None:
        asked = Asked(by, now)
        if Consequence.ABANDONS_TURN in cell.also:
            self._abandon(Overlay.INTERRUPTING, asked, now, why=f"interrupted by {by}")
        elif Consequence.AT_STEP in cell.also:
            asked.told = False
            self.pending[Overlay.INTERRUPTING] = asked
        else:
            self.pending[Overlay.INTERRUPTING] = asked
            # Before the withdrawals, so that nobody acts on one of them first.
            self._tell(Interrupt())
            self._withdraw(now, f"interrupted by {by}")

    def _abandon(self, overlay: Overlay, asked: Asked, now: int, *, why: str) -> None:
        """Give up the suspended turn and stay paused. The attempt is asked only where a step still hangs."""
        if self.turn is not None and not self.suspension.cut:
            self.pending[overlay] = asked
            self._tell(Interrupt())
            self._withdraw(now, why)
            return
        self._withdraw(now, why)
        self._turn_over(now, "rewound" if overlay is Overlay.RESEEDING else "interrupted")
        if asked.reseed is not None:
            self.reseed_now(asked.reseed, asked.by, now)

    # --- stop

    def stop(self, by: str, now: int, *, kill: bool = False, reason: str | None = None) -> Handled:
        """End the session: at the step boundary, or with `kill` at once. All its mail ends with an error."""
        cell = self._cell(Op.STOP_KILL if kill else Op.STOP)
        if cell.verdict is Verdict.ERROR:
            return self._invalid(cell)
        if cell.verdict is Verdict.NOOP:
            return self._noop(now)
        asked = Asked(by, now, hard=kill, force_at=now + (KILL_MS if kill else self.grace_ms), reason=reason)
        why = self._stopped_why(asked)
        if not self.alive:
            self._withdraw(now, f"stopped {why}")
            self._over(Phase.STOPPED, now, why)
            return self._applied(now)
        before = self.pending.get(Overlay.STOPPING)
        if before is not None and (before.hard or not kill):
            return self._noop(now)
        self.pending[Overlay.STOPPING] = asked
        self._tell(Stop(kill=kill, reason=reason))
        self._withdraw(now, f"stopped {why}")
        return self._applied(now)

    # --- reseed

    def reseed(self, do: DoReseed, by: str, now: int) -> Handled:
        """Replace what the session remembers."""
        cell = self._cell(Op.RESEED)
        if cell.verdict is Verdict.ERROR:
            return self._invalid(cell)
        fault = self.misfit(do)
        if fault is None and Overlay.RESEEDING in self.pending:
            fault = "the conversation is being changed already"
        if fault is not None:
            return Handled(OutcomeKind.INVALID, reason=fault)
        if self._being_stopped:
            return self._noop(now)
        if Consequence.ABANDONS_TURN in cell.also and self.turn is not None:
            self._abandon(Overlay.RESEEDING, Asked(by, now, reseed=do), now, why=f"reseeded by {by}")
        else:
            self._withdraw(now, f"reseeded by {by}")
            self.reseed_now(do, by, now)
        return self._applied(now)

    # --- budget, delete

    def set_budget(self, do: DoBudget, now: int) -> Handled:
        """Set how much the attempt may use; what is not named stays. Suspends at the next boundary where it is used
        up, and lets a session that was suspended so be resumed where it is not any more."""
        if do.tokens is None and do.turns is None:
            return Handled(OutcomeKind.INVALID, reason="a budget needs tokens or turns")
        if do.tokens is not None:
            self.budget.tokens = do.tokens
        if do.turns is not None:
            self.budget.turns = do.turns
        self._note_used(self._used())
        info: JsonObject = {"tokens": self.budget.tokens, "turns": self.budget.turns}
        return self._applied(now, {name: value for name, value in info.items() if value is not None})

    def delete(self, by: str, now: int) -> Handled:
        """Forget the session. Only where nothing of it runs."""
        if self.row() not in DELETABLE:
            return Handled(OutcomeKind.INVALID, reason=f"the session is {self.lifecycle.value}: {STOP_FIRST}")
        self._withdraw(now, f"deleted by {by}")
        self._mail(self.mailbox.empty(), MailState.ERROR, now, "deleted")
        if self.alive:
            self._effects.append(EndAttempt(self.id, self.attempt))
        self._effects.append(Forget(self.id))
        return self._applied(now)

    # --- decisions

    def decide(self, do: DoApprove | DoAnswer, by: str, now: int) -> Handled:
        """Decide a request. The first decision stands."""
        was_waiting = Consequence.AFTER_DECISION in self._cell(Op.PAUSE).also
        taken = self.requests.approve(do, by, now) if isinstance(do, DoApprove) else self.requests.answer(do, by, now)
        if isinstance(taken, Rejected):
            return Handled(taken.outcome, reason=taken.reason, decided=taken.decided)
        self._decided(taken, do.request, was_waiting, now)
        info: JsonObject = {"option": taken.decision.option} if taken.decision.option is not None else {}
        return self._applied(now, info)

    def _decided(self, taken: Taken, id: str, was_waiting: bool, now: int) -> None:
        self._request_ended(taken.request, id, now, None)
        decision = taken.decision
        # With an answer the note is what goes on record of it; the agent gets the answer itself.
        note = decision.note if taken.kind is not OptionKind.ANSWER else None
        signal = Decided(id, decision.option, taken.kind, decision.by, note, taken.text, taken.fields)
        self.kept.keep(taken.request, signal)
        self._hand_over(signal, was_waiting=was_waiting)

    def next_due(self) -> int | None:
        """When `tick` should be called next."""
        stopping = self.pending.get(Overlay.STOPPING)
        dues = (self.requests.next_deadline(), stopping.force_at if stopping else None)
        return min((at for at in dues if at is not None), default=None)

    def _deadlines(self, now: int) -> None:
        was_waiting = Consequence.AFTER_DECISION in self._cell(Op.PAUSE).also
        for ended in self.requests.due(now):
            if isinstance(ended, Taken):
                self._decided(ended, str(ended.request.subject["id"]), was_waiting, now)
                continue
            id = str(ended.subject["id"])
            self._request_ended(ended, id, now, "its deadline passed")
            self._hand_over(Withdrawn(id, "its deadline passed"), was_waiting=was_waiting)

    # --- outcomes

    @property
    def _being_stopped(self) -> bool:
        """Nothing but a harder stop means anything to an attempt that was told to end."""
        return Overlay.STOPPING in self.pending

    def _cell(self, op: Op) -> Cell:
        return TABLE[self.row()][op]

    def _invalid(self, cell: Cell) -> Handled:
        return Handled(OutcomeKind.INVALID, reason=cell.why)

    def _noop(self, now: int) -> Handled:
        return self._applied(now, {"noop": True})

    def _applied(self, now: int, info: JsonObject | None = None) -> Handled:
        return Handled(OutcomeKind.APPLIED, self._done(now), info=info or {})
