"""The steps that transitions are made of, and the effects that they leave behind."""

from __future__ import annotations

from collections.abc import Iterable

from watchfloor.harness.base import Decided, MailArrived, MailItem, Signal, Wake, Withdrawn
from watchfloor.host.effects import (
    Changed,
    EndAttempt,
    Publish,
    Reached,
    RequestChanged,
    SessionEffect,
    StartAttempt,
    Tell,
)
from watchfloor.host.sessions.mailbox import Letter
from watchfloor.host.sessions.request_events import ended
from watchfloor.host.sessions.state import RESTS, Asked, Phase, SessionState, Suspension
from watchfloor.protocol.events import Event, LifecycleChanged, MailState
from watchfloor.protocol.given import given
from watchfloor.protocol.model import RequestModel, Usage
from watchfloor.words import Lifecycle, Overlay


class SessionChanges(SessionState):
    """What operations and reports have in common."""

    def _done(self, now: int) -> list[SessionEffect]:
        """Note what changed, and hand over the effects."""
        view = self._view()
        if view["lifecycle"] is not self._shown["lifecycle"]:
            self.since = view["since"] = now
            self._tell_subscribers(now)
        changed = frozenset(name for name, value in view.items() if value != self._shown[name])
        if changed & {"lifecycle", "pending", "attempt"}:
            overlay = self.overlay()
            rest = given(native_state=view["native_state"], why=self.why, pending=overlay and overlay.overlay)
            self._publish(LifecycleChanged(at=now, lifecycle=self.lifecycle, **rest), now)
        if changed:
            self._effects.append(Changed(self.id, changed))
        self._shown = view
        return self._take()

    def _tell_subscribers(self, now: int) -> None:
        """An edge into a state of rest, unless nothing was done since the last one."""
        state = self.lifecycle
        if state not in RESTS or (state is Lifecycle.IDLE and self._told == self.worked):
            return
        self._told = self.worked
        if self.subscribers:
            self._effects.append(Reached(self.id, state.value, now))

    def _take(self) -> list[SessionEffect]:
        effects, self._effects = self._effects, []
        return effects

    def _tell(self, signal: Signal) -> None:
        self._effects.append(Tell(self.id, self.attempt, signal))

    def _publish(self, event: Event, now: int) -> None:
        fill: dict[str, object] = {}
        if event.at == 0:
            fill["at"] = now
        if event.attempt is None:
            fill["attempt"] = self.attempt
        if event.turn is None and self.turn is not None:
            fill["turn"] = self.turn
        self._effects.append(Publish(self.id, event.model_copy(update=fill) if fill else event))

    # --- mail and requests

    def _mail(self, letters: Iterable[Letter], state: MailState, now: int, error: str | None = None) -> None:
        for letter in letters:
            if letter.state is MailState.ERROR and state is MailState.ERROR:
                # It was taken up once more, and that it ended was told already.
                continue
            letter.state, letter.error = state, error
            letter.consumed = letter.consumed or state is MailState.CONSUMED
            if state is MailState.ERROR:
                self.mailbox.ended(letter)
            self._publish(letter.event(state, now, error), now)

    def _request_ended(self, request: RequestModel, id: str, now: int, why: str | None) -> None:
        self._publish(ended(request, id, now, why), now)
        self._effects.append(RequestChanged(self.id, request))

    def _withdraw(self, now: int, why: str, *, only_blocking: bool = False) -> None:
        """Withdraw the open requests; whoever waits for one takes it as denied."""
        for request in self.requests.open():
            if only_blocking and not request.blocks:
                continue
            id = str(request.subject["id"])
            withdrawn = self.requests.withdraw(id, why)
            if withdrawn is not None:
                self._request_ended(withdrawn, id, now, why)
                if self.alive:
                    self._tell(Withdrawn(id, why))

    def _hand_over(self, signal: Decided | Withdrawn, *, was_waiting: bool) -> None:
        """Tell the attempt how a request ended, unless a pause stands: then the signal waits for `resume`.

        Held back, because an agent that learns of its approval acts on it, and nothing may act while paused.
        """
        pausing = self.pending.get(Overlay.PAUSING)
        if pausing is not None and not pausing.hard and was_waiting:
            self._pause_landed(pausing)
        if self.paused and self.turn is not None:
            self.suspension.held.append(signal)
        else:
            self._tell(signal)

    # --- pauses

    def _pause_landed(self, asked: Asked | None, *, parked: bool = False, cut: bool = False) -> None:
        """The session is paused. `asked` is None where nobody asked for it."""
        self.pending.pop(Overlay.PAUSING, None)
        self.pending.pop(Overlay.RESUMING, None)
        self.paused = True
        self.suspension.parked = parked and not cut
        self.suspension.cut = cut
        if cut:
            # Whoever waited for these was cancelled with the step.
            self.suspension.held.clear()
        self.why = f"by {asked.by}" if asked is not None and asked.by else None

    def _resumed(self) -> None:
        """The attempt goes on with its turn."""
        held, self.suspension = self.suspension.held, Suspension()
        self.paused = False
        self.why = None
        self.pending.pop(Overlay.RESUMING, None)
        for signal in held:
            self._tell(signal)
        if self.mailbox.waits:
            self._tell(MailArrived())

    # --- turns and attempts

    def _open_turn(self, now: int, again: tuple[MailItem, ...] = ()) -> None:
        """Begin a turn with all mail that waits."""
        self.turns += 1
        self.begun += 1
        if self.usage is not None:
            self._note_used(self.usage)
        self.turn = f"t{self.turns}"
        self.paused = False
        self.why = None
        self.suspension = Suspension()
        self._wake_next = False
        mail, consumed = self.mailbox.begin_turn(again)
        self._mail(consumed, MailState.CONSUMED, now)
        self._tell(Wake(self.turn, mail))

    def _note_used(self, usage: Usage) -> None:
        """What the attempt has used by now, with its limits beside it."""
        self.usage = self.budget.within(usage)
        self.usage = self._used()
        self._effects.append(Changed(self.id, frozenset({"usage"})))

    def _close_streams(self, now: int) -> None:
        for event in self.streams.cut(now):
            self._publish(event, now)

    def _turn_over(self, now: int, mail_error: str | None) -> None:
        """No turn runs any more; what it had consumed ends with the error, or well.

        Work stays in flight until the attempt says that it ended: a thread outlives the turn that began it.
        """
        self._close_streams(now)
        letters = self.mailbox.end_turn()
        if mail_error is not None:
            self._mail(letters, MailState.ERROR, now, mail_error)
        elif self.turn is not None:
            words = self.last_words()
            for letter in letters:
                letter.state, letter.error = MailState.CONSUMED, None
                letter.response = words if letter.response is None else letter.response
                self.mailbox.ended(letter)
        if self.turn is not None:
            self.worked += 1
        self.suspension = Suspension()
        self.kept.clear()
        self.turn = None

    def _over(self, phase: Phase, now: int, why: str | None) -> None:
        """The attempt is over. One that ends by itself while it is being stopped counts as stopped."""
        was_alive, had_turn, mail = self.alive, self.turn is not None, self.mailbox.turn
        asked = self.pending.get(Overlay.STOPPING)
        if asked is not None:
            phase, why = Phase.STOPPED, why or self._stopped_why(asked)
        self._withdraw(now, f"the attempt {phase.value}" if phase is not Phase.STOPPED else "the attempt was stopped")
        self._turn_over(now, {Phase.STOPPED: "stopped", Phase.FAILED: "failed"}.get(phase))
        if had_turn:
            self.carried = mail
        elif phase is Phase.STOPPED:
            self.carried = ()
        if phase is Phase.STOPPED:
            self._mail(self.mailbox.empty(), MailState.ERROR, now, "stopped")
        self.phase = phase
        self.why = why
        self.paused = False
        self.pending.clear()
        self._wake_next = False
        if was_alive:
            self._effects.append(EndAttempt(self.id, self.attempt))

    def _stopped_why(self, asked: Asked) -> str:
        return f"by {asked.by}" + (f": {asked.reason}" if asked.reason else "")

    def _launch(self, now: int, *, new: bool, again: tuple[MailItem, ...] = ()) -> None:
        """Start an attempt; with `new` the next one. It takes up the mail in `again`."""
        if new:
            self.attempt += 1
        self.phase = Phase.STARTING
        self.why = self.error = None
        self.result = None
        if new:
            self.usage = None
        self.calls.clear()
        self.begun = 0 if new else self.begun
        self.unloaded = False
        self.paused = False
        self.in_flight.clear()
        self._again = again
        self._effects.append(StartAttempt(self.id, self.attempt))
