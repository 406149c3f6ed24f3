"""One session's lifecycle, without I/O.

The table in `watchfloor.words` is the law: `row()` says in which row the session stands, an operation reads
its cell and carries it out, and no state is compared by name anywhere else.

    never started --send/resume--> starting --started()--> idle <--> running <--> waiting
          any of them --pause--> paused --resume--> as before
          running --completed()/failed()/stopped()--> completed, failed, stopped
          any of these --resume--> starting (attempt + 1); a send does the same, except that a failed session queues it

Facts, from which the row follows: the phase of the attempt (never started, starting, live, or how it
ended), whether a turn is open, whether the session is paused, the open requests, the work in flight.
`waiting` is: a turn is open, a blocking request is open, and nothing else is in flight; the tool call that
waits for the request does not count.

An operation that cannot land at once leaves an *asked* change behind (`pending`, drawn as an overlay), and
the attempt's reports land it:

- pause: `checkpoint()` (the step parks until `Resume`, then `resumed()`), or `paused()` for what is
  suspended outside a boundary. A pause with `interrupt` lands with `paused()` only, after the attempt has
  cancelled its step; the suspended turn is then resumed by `Wake` with the same turn id and the same mail,
  plus what was queued meanwhile. A pause asked for while `waiting` lands when the decision is recorded: the
  decision itself is held back and handed over on resume, so that nothing acts while paused.
- interrupt: `interrupted()` or the end of the turn. Queued mail waits for the next send or resume; a
  message sent with priority `interrupt` starts the next turn itself.
- stop: `stopped()`, `completed()` or `failed()`: whichever comes, the session is stopped. After the
  harness's grace time `tick` follows with a kill; five seconds later the attempt is given up. Meanwhile
  everything but a harder stop is a no-op, and mail is queued, to end with the rest.

What the attempt is told: `Wake` begins a turn (an attempt that starts by itself is woken without mail once it
has called `started()`), `MailArrived` says that `checkpoint()` will bring mail. The harder signal comes
first: `Interrupt`, `Pause(interrupt=True)` and `Stop` precede the `Withdrawn` of the requests they withdraw.
A report for a turn, pause or attempt that is over already changes nothing: signals and reports cross.

Mail: a message ends consumed, queued, or with the error `interrupted`, `failed`, `stopped` or `rewound`.
A relaunch or retry takes up the mail of the turn that the last attempt left; a stopped attempt without a
turn leaves none.

Every method returns the effects that follow from it, in order; `now` is in milliseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchfloor.errors import StaleTarget
from watchfloor.harness.base import Boundary, Interrupt, Pause, Stop
from watchfloor.host.effects import RequestChanged, SessionEffect
from watchfloor.host.sessions.operations import KILL_MS, Operations
from watchfloor.host.sessions.request_events import opened
from watchfloor.host.sessions.state import Phase
from watchfloor.host.sessions.streams import within
from watchfloor.protocol.events import (
    Event,
    Level,
    MailState,
    Notice,
    Progress,
    ResultEvent,
    ToolCall,
    ToolResult,
)
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Capabilities, Decision, InFlight, RequestModel, Result, Usage
from watchfloor.words import Lifecycle, Overlay, RequestState

RESULT_TEXT: Final = 16_384
"""Code points of a result's texts; what is longer is cut, and marked so."""

Effects = list[SessionEffect]


class SessionCore(Operations):
    """The attempt's side of a session; `Operations` is the operator's."""

    @property
    def _live(self) -> bool:
        return self.phase is Phase.LIVE

    # --- the attempt starts and ends

    def start(self, now: int) -> Effects:
        """Start the first attempt without a message."""
        if self.phase is Phase.NEVER_STARTED and not self.paused:
            self._launch(now, new=False)
        return self._done(now)

    def set_capabilities(self, capabilities: Capabilities, now: int) -> Effects:
        """The attempt that starts advertises this."""
        self.capabilities = capabilities
        return self._done(now)

    def started(self, now: int) -> Effects:
        """The attempt runs. What was asked for while it started lands now."""
        if self.phase is not Phase.STARTING:
            return []
        self.phase = Phase.LIVE
        again, self._again = self._again, ()
        pausing = self.pending.get(Overlay.PAUSING)
        if Overlay.STOPPING in self.pending:
            return self._done(now)
        if self.starts_itself:
            self._open_turn(now, again)
            if Overlay.INTERRUPTING in self.pending:
                self._tell(Interrupt())
            if pausing is not None:
                pausing.told = True
                self._tell(Pause(interrupt=pausing.hard, by=pausing.by))
            return self._done(now)
        if self.pending.pop(Overlay.INTERRUPTING, None) is not None:
            self._mail((*self.mailbox.end_turn(), *self.mailbox.drop_started()), MailState.ERROR, now, "interrupted")
            self.carried = ()
            if pausing is not None:
                self._pause_landed(pausing)
        elif pausing is not None:
            self._pause_landed(pausing)
        elif self.mailbox.waits or again:
            self._open_turn(now, again)
        return self._done(now)

    def turn_ended(self, result: Result, now: int) -> Effects:
        """The turn is over, the session takes more input; mail that waits begins the next turn."""
        if not self._live or self.turn is None:
            return []
        self._withdraw(now, "the turn ended", only_blocking=True)
        self._record(result, now)
        self._turn_over(now, None)
        self.carried = ()
        interrupted = self.pending.pop(Overlay.INTERRUPTING, None) is not None
        self._after_turn(now, go_on=not interrupted)
        return self._done(now)

    def interrupted(self, now: int) -> Effects:
        """The step was cancelled: the turn is over, queued mail waits."""
        if not self._live or self.turn is None:
            return []
        asked = self.pending.pop(Overlay.INTERRUPTING, None)
        reseed = self.pending.pop(Overlay.RESEEDING, None)
        why = f"interrupted by {asked.by}" if asked is not None else "interrupted"
        self._withdraw(now, why)
        self._turn_over(now, "rewound" if reseed is not None else "interrupted")
        self.carried = ()
        if reseed is not None and reseed.reseed is not None:
            self.reseed_now(reseed.reseed, reseed.by, now)
        resuming = self.pending.pop(Overlay.RESUMING, None)
        if resuming is not None:
            self.paused = False
        if not self.paused:
            self.why = why
        self._after_turn(now, go_on=resuming is not None and asked is None)
        return self._done(now)

    def _after_turn(self, now: int, *, go_on: bool) -> None:
        pausing = self.pending.get(Overlay.PAUSING)
        if Overlay.STOPPING in self.pending:
            return
        if pausing is not None:
            resume = pausing.resume
            self._pause_landed(pausing)
            if not resume:
                return
            self.paused = False
            self.why = None
        if not self.paused and (limit := self.budget.reached(self._used())) is not None:
            self._pause_landed(None)
            self.why = limit
        if not self.paused and (go_on or self._wake_next) and self.mailbox.waits:
            self._open_turn(now)

    def limited(self, result: Result, now: int) -> Effects:
        """The turn ended because the budget is used up: it is suspended until that was raised."""
        if Overlay.STOPPING in self.pending:
            return self.stopped(now)
        if not self._live or self.turn is None or Overlay.INTERRUPTING in self.pending:
            return self.interrupted(now)
        self._withdraw(now, "the budget is used up")
        self._record(result, now)
        self._pause_landed(None, cut=True)
        self.why = self.budget.reached(self._used())
        return self._done(now)

    def completed(self, result: Result, now: int) -> Effects:
        """The attempt gave its result; only a new attempt can follow."""
        if not self._live:
            return []
        self._record(result, now)
        self._over(Phase.COMPLETED, now, None)
        return self._done(now)

    def failed(self, error: str, now: int, result: Result | None = None) -> Effects:
        """The attempt failed, at its start or later."""
        if not self.alive:
            return []
        self.error = error
        if result is not None:
            self._record(result, now)
        self._over(Phase.FAILED, now, error)
        return self._done(now)

    def stopped(self, now: int, result: Result | None = None) -> Effects:
        """The attempt wound down."""
        if not self.alive:
            return []
        if result is not None:
            self._record(result, now)
        self._over(Phase.STOPPED, now, None)
        return self._done(now)

    def _record(self, result: Result, now: int) -> None:
        self._close_streams(now)
        self.result = bounded(result)
        self._publish(ResultEvent(at=now, result=self.result), now)

    def come_back(self, now: int, was: Lifecycle, events: Sequence[Event], *, stopped: bool) -> Effects:
        """The session was put together again from what was kept of it: tell what became of the work that was cut.

        `was`: the state that was told last. `stopped`: it was being stopped.
        """
        self._shown = {**self._view(), "lifecycle": was}
        for event in events:
            self._publish(event, now)
        self._withdraw(now, "the host was started anew: it is asked again when the session goes on")
        if stopped:
            self._over(Phase.STOPPED, now, "the host ended while it was being stopped")
        return self._done(now)

    # --- steps

    def checkpoint(self, now: int) -> tuple[Boundary, Effects]:
        """A step boundary: what was asked for lands, and steered mail is handed over."""
        if not self._live or Overlay.STOPPING in self.pending:
            return Boundary(stopped=True), []
        if self.turn is None or Overlay.INTERRUPTING in self.pending:
            return Boundary(), []
        if Overlay.RESUMING in self.pending and self.suspension.parked:
            self._resumed()
        pausing = self.pending.get(Overlay.PAUSING)
        if pausing is not None and pausing.hard:
            # The step hangs here until the cancellation reaches it; `paused()` lands the pause.
            return Boundary(paused=True), self._done(now)
        if pausing is not None:
            self._pause_landed(pausing, parked=True)
        if self.paused:
            self.suspension.parked = not self.suspension.cut
            return Boundary(paused=True), self._done(now)
        limit = self.budget.tokens_reached(self._used())
        if limit is not None:
            return Boundary(limit=limit), self._done(now)
        letters = self.mailbox.steer()
        self._mail(letters, MailState.CONSUMED, now)
        return Boundary(mail=tuple(letter.item for letter in letters)), self._done(now)

    def suspended(self, now: int) -> Effects:
        """A pause landed outside a step boundary (`SessionPort.paused`)."""
        asked = self.pending.get(Overlay.PAUSING)
        if not self._live or self.turn is None or Overlay.STOPPING in self.pending or (self.paused and asked is None):
            return []
        cut = asked is not None and asked.hard
        self._pause_landed(asked, parked=True, cut=cut)
        if asked is not None and asked.resume:
            self._continue(asked.by, now)
        return self._done(now)

    def resumed(self, now: int) -> Effects:
        """The attempt goes on with its suspended turn."""
        if self._live and self.paused and self.turn is not None and not self.suspension.cut:
            self._resumed()
        return self._done(now)

    def begin(self, work: str, name: str, now: int) -> Effects:
        """Work is in flight."""
        if not self._live:
            return []
        self.in_flight[work] = InFlight(id=work, name=name, since=now)
        if work in self.calls:
            self.calls[work] = True
        self.kept.begun(work)
        self._remind()
        return self._done(now)

    def end(self, work: str, now: int) -> Effects:
        self.in_flight.pop(work, None)
        return self._done(now)

    def _remind(self) -> None:
        """A pause that was to land after a decision lands at the next boundary, now that something runs again."""
        pausing = self.pending.get(Overlay.PAUSING)
        if pausing is not None and not pausing.told and not self._waits():
            pausing.told = True
            self._tell(Pause(interrupt=pausing.hard, by=pausing.by))

    # --- requests

    def ask(self, request: RequestModel, now: int) -> Effects:
        """Open a request. Raises ContractError where it is not one of this attempt."""
        if not self._live:
            raise StaleTarget(f"attempt {self.attempt} of {self.id!r} does not run: {self.phase.value}")
        request, subject = self.requests.ask(request, self.attempt)
        self._publish(opened(request, subject, now), now)
        self._effects.append(RequestChanged(self.id, request))
        if (answer := self.kept.take(subject)) is not None:
            # It was decided before the host ended, and what that allowed had not begun.
            decision = Decision(kind=answer.kind, by=answer.by, at=now, automatic=True, **given(option=answer.option))
            resolved = self.requests.end(subject.id, RequestState.RESOLVED, decision, "")
            if resolved is not None:
                self._request_ended(resolved, subject.id, now, "it was decided before the host was started anew")
                self._hand_over(answer.decided(subject.id), was_waiting=False)
        return self._done(now)

    def withdraw(self, request: str, why: str, now: int) -> Effects:
        """The attempt needs no decision any more."""
        ended = self.requests.withdraw(request, why)
        if ended is not None:
            self._request_ended(ended, request, now, why)
            self._remind()
        return self._done(now)

    # --- events

    def emit(self, event: Event, now: int) -> Effects:
        """Record an event of the attempt; a text without end is cut."""
        if event.item is not None:
            self.streams.close(event.item)
        if isinstance(event, ToolCall):
            self.calls[event.call] = False
        elif isinstance(event, ToolResult):
            self.calls.pop(event.call, None)
        self._publish(within(event), now)
        return self._take()

    def reply(self, ref: str, text: str, now: int) -> Effects:
        """The agent answers a message. The first answer stands. Raises NoSuchRef."""
        letter = self.mailbox.letter(ref)
        if letter.response is None:
            letter.response = text
            self.mailbox.ended(letter)
        return self._done(now)

    def stream(self, item: str, of: str, text: str, now: int, call: str | None = None) -> Effects:
        """Show a piece of a streamed item."""
        delta = self.streams.append(item, of, text, now, call)
        if delta is not None:
            self._publish(delta, now)
        return self._take()

    def note_usage(self, usage: Usage, now: int) -> Effects:
        """Running totals of the attempt."""
        self._note_used(usage)
        self._publish(Progress(at=now, usage=self.usage), now)
        return self._take()

    # --- time

    def tick(self, now: int) -> Effects:
        """Requests end at their deadline; an attempt that does not stop is killed, then given up."""
        self._deadlines(now)
        asked = self.pending.get(Overlay.STOPPING)
        if asked is not None and asked.force_at is not None and asked.force_at <= now:
            if not asked.hard:
                asked.hard, asked.force_at = True, now + KILL_MS
                self._tell(Stop(kill=True, reason=asked.reason))
            else:
                text = "did not end when it was killed, and was given up; something of it may still run"
                self._publish(Notice(at=now, level=Level.WARNING, text=text), now)
                self._over(Phase.STOPPED, now, None)
        return self._done(now)


def bounded(result: Result) -> Result:
    """The result with its texts cut to what a summary can carry."""
    long = [name for name in ("text", "final_message") if len(getattr(result, name) or "") > RESULT_TEXT]
    if not long:
        return result
    return result.model_copy(update={"cut": True, **{name: getattr(result, name)[:RESULT_TEXT] for name in long}})
