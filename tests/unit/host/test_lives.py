"""Random operations on a host that is killed now and then, against a plain model of what operators were told.

Commands go in as frames, attempts react when the machine lets them, and every crash throws away all but the file. What
is checked is checked in the log: it is what an operator can know.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.host.glass import Glass
from tests.unit.host.puppet import FULL, approval
from watchfloor.harness.base import Interrupt, Pause, Resume, Stop, Wake
from watchfloor.host.effects import StartAttempt, Tell
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.sessions.session import SessionCore
from watchfloor.host.sessions.state import OP_OF
from watchfloor.protocol.events import (
    Event,
    LifecycleChanged,
    Mail,
    MailState,
    RequestOpened,
    RequestResolved,
    ToolCall,
    ToolResult,
    ToolStatus,
)
from watchfloor.protocol.frames import Outcome
from watchfloor.protocol.model import BudgetOptions, NoOptions, ReseedOptions, Result, Usage
from watchfloor.words import (
    TABLE,
    TERMINAL,
    Lifecycle,
    Op,
    OutcomeKind,
    Overlay,
    Primitive,
    Priority,
    ReseedMode,
    StopReason,
    Verdict,
)

IDS = ("a", "b", "c")
MODES = (ReseedMode.CLEAR, ReseedMode.REPLACE, ReseedMode.REWIND)
CAPABILITIES = FULL.model_copy(
    update={
        "reseed": ReseedOptions(modes=MODES),
        "budget": BudgetOptions(tokens=True, turns=True),
        "notify": NoOptions(),
    }
)
session_ids = st.sampled_from(IDS)
ENDS = {
    (MailState.SENT,),
    (MailState.SENT, MailState.CONSUMED),
    (MailState.SENT, MailState.ERROR),
    (MailState.SENT, MailState.CONSUMED, MailState.ERROR),
}
ERRORS = {"interrupted", "failed", "stopped", "rewound"}


class Lives(RuleBasedStateMachine):
    """One host after the other over one file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "log.db"
        self.applied: dict[str, dict[str, str]] = defaultdict(dict)
        """The model: the text of every message that an operator was told was accepted, by session and ref."""
        self.told: list[tuple[int | None, int | None, str]] = []
        self.numbers = 0
        self.begin()

    # --- lives

    def begin(self) -> None:
        self.log = SqliteLog(self.path, new_epoch=lambda: "e")
        self.glass = Glass(log=self.log)
        self.glass.now += self.numbers * 1000
        self.signals: dict[str, list[Any]] = {id: [] for id in IDS}
        for id in IDS:
            self.glass.add(id, capabilities=CAPABILITIES, running=False)
            back = self.glass.core.come_back(id, self.glass.now)
            if back is not None:
                self.glass.take(back)
        self.glass.connect("op")
        self.settle()

    def teardown(self) -> None:
        self.flush()
        self.everything_ended_or_waits()
        self.log.close()
        self.folder.cleanup()

    @rule()
    def crash(self) -> None:
        """Killed: what was not flushed is gone, and nothing was noted."""
        at_work = {id: work for id in IDS if (work := self.at_work(id)) is not None} if not self.glass.core.news else {}
        self.log._db.close()
        self.begin()
        self.flush()
        for id, refs in at_work.items():
            core = self.core(id)
            assert core.lifecycle is Lifecycle.PAUSED
            assert [item.ref for item in core.mailbox.turn] == refs
        for id in IDS:
            core = self.core(id)
            assert not core.alive
            assert core.lifecycle not in (Lifecycle.RUNNING, Lifecycle.WAITING, Lifecycle.STARTING)
            assert not core.requests
            events = self.events(id)
            results = {event.call: event.status for event in events if isinstance(event, ToolResult)}
            for event in events:
                if isinstance(event, ToolCall) and event.attempt == core.attempt:
                    assert event.call in results
        self.what_was_told_is_there()

    @rule()
    def flush(self) -> None:
        self.glass.flush()
        self.settle()
        self.told = [(e.event.pos, e.event.seq, e.session) for e in self.log.after(0, 100_000)]

    def settle(self) -> None:
        """Hand the attempts what the core decided, in order."""
        for effect in self.glass.rest:
            if isinstance(effect, StartAttempt | Tell):
                self.signals[effect.session].append(effect)
        self.glass.rest.clear()

    def core(self, id: str) -> SessionCore:
        return self.glass.core.session(id)

    def at_work(self, id: str) -> list[str] | None:
        """The messages of the turn under way, where one is that nobody asked to end."""
        core = self.core(id)
        ending = core.pending.keys() & {Overlay.STOPPING}
        return None if core.turn is None or ending else [item.ref for item in core.mailbox.turn]

    def events(self, id: str) -> list[Event]:
        return self.log.read(id, limit=100_000)

    # --- operators

    def command(self, id: str, op: Op | None, **do: Any) -> Outcome:
        core, now = self.core(id), self.glass.now
        cell = TABLE[core.row()][op] if op is not None else None
        before = (core.lifecycle, core.attempt, core.mailbox.view)
        blocked = core.blocked()
        outcome = self.glass.command("op", id, do)
        self.glass.now = now + 10
        self.settle()
        if cell is not None and cell.verdict is Verdict.ERROR:
            assert (outcome.outcome, outcome.reason) == (OutcomeKind.INVALID, cell.why)
            assert (core.lifecycle, core.attempt, core.mailbox.view) == before
        elif op is not None and do["primitive"] not in blocked and op is not Op.RESEED:
            assert outcome.outcome is OutcomeKind.APPLIED, outcome.reason
        return outcome

    @rule(id=session_ids, priority=st.sampled_from(Priority))
    def send(self, id: str, priority: Priority) -> None:
        self.numbers += 1
        text = f"message {self.numbers}"
        outcome = self.command(id, Op.SEND, primitive="send", text=text, priority=priority.value)
        ref = str(outcome.info["ref"])
        assert ref not in self.applied[id]
        self.applied[id][ref] = text

    @rule(id=session_ids, interrupt=st.booleans())
    def pause(self, id: str, interrupt: bool) -> None:
        self.command(id, Op.PAUSE_INTERRUPT if interrupt else Op.PAUSE, primitive="pause", interrupt=interrupt)

    @rule(id=session_ids)
    def resume(self, id: str) -> None:
        self.command(id, Op.RESUME, primitive="resume")

    @rule(id=session_ids)
    def interrupt(self, id: str) -> None:
        self.command(id, Op.INTERRUPT, primitive="interrupt")

    @rule(id=session_ids, kill=st.booleans())
    def stop(self, id: str, kill: bool) -> None:
        self.command(id, Op.STOP_KILL if kill else Op.STOP, primitive="stop", kill=kill)

    @rule(id=session_ids, mode=st.sampled_from(MODES), ref=st.integers(1, 5))
    def reseed(self, id: str, mode: ReseedMode, ref: int) -> None:
        self.command(id, Op.RESEED, primitive="reseed", mode=mode.value, to=f"#{ref}", text="begin here")

    @rule(id=session_ids, tokens=st.integers(0, 60))
    def budget(self, id: str, tokens: int) -> None:
        assert self.command(id, None, primitive="budget", tokens=tokens).outcome is OutcomeKind.APPLIED

    @rule(id=session_ids, subscriber=session_ids, on=st.sampled_from([[], ["idle"], ["idle", "failed"]]))
    def notify(self, id: str, subscriber: str, on: list[str]) -> None:
        self.command(id, None, primitive="notify", subscriber=subscriber, on=on)

    @rule(id=session_ids, option=st.sampled_from(["yes", "no"]))
    def decide(self, id: str, option: str) -> None:
        for request in self.core(id).requests.open():
            do = {"request": request.subject["id"], "option": option, "digest": request.digest}
            outcome = self.command(id, None, primitive="approve", **do)
            assert outcome.outcome is OutcomeKind.APPLIED
            again = self.command(id, None, primitive="approve", **do)
            assert again.outcome is OutcomeKind.ALREADY_DECIDED

    # --- attempts

    def busy(self) -> bool:
        return any(self.signals.values())

    @precondition(busy)
    @rule(id=session_ids)
    def react(self, id: str) -> None:
        """The attempt takes the next thing that it was told."""
        if self.signals[id]:
            self.take_next(id)

    @rule()
    def react_to_all(self) -> None:
        """All attempts take all that they were told."""
        while any(self.signals.values()):
            for id in IDS:
                if self.signals[id]:
                    self.take_next(id)

    @rule(id=session_ids)
    def go_on(self, id: str) -> None:
        """The session is brought to work."""
        self.resume(id)
        self.send(id, Priority.NORMAL)
        self.resume(id)
        self.react_to_all()

    def take_next(self, id: str) -> None:
        effect, core, now = self.signals[id].pop(0), self.core(id), self.glass.now
        if isinstance(effect, StartAttempt):
            if effect.attempt == core.attempt:
                self.report(core.started(now))
            return
        if effect.attempt != core.attempt:
            return
        match effect.signal:
            case Pause(interrupt=True):
                self.report(core.suspended(now))
            case Pause():
                self.boundary(id)
            case Resume():
                self.report(core.resumed(now))
            case Interrupt():
                self.report(core.interrupted(now))
            case Stop():
                self.report(core.stopped(now))
            case Wake(mail=mail):
                for item in mail:
                    assert self.applied[id].get(item.ref, item.text) == item.text

    def report(self, effects: Any) -> None:
        self.glass.apply(effects)
        self.settle()

    def boundary(self, id: str) -> None:
        boundary, effects = self.core(id).checkpoint(self.glass.now)
        self.report(effects)
        if boundary.limit is not None:
            self.report(self.core(id).limited(self.result(id, StopReason.LIMIT_REACHED), self.glass.now))

    def result(self, id: str, reason: StopReason = StopReason.END_TURN) -> Result:
        return Result(text="done", stop_reason=reason, session_id=id)

    @rule(id=session_ids, tokens=st.integers(1, 20))
    def step(self, id: str, tokens: int) -> None:
        core = self.core(id)
        if core.alive and core.turn is not None:
            used = (core.usage or Usage()).input_tokens
            self.report(core.note_usage(Usage(input_tokens=used + tokens), self.glass.now))
            self.boundary(id)

    @rule(id=session_ids, how=st.sampled_from(["turn", "failed", "completed"]))
    def end(self, id: str, how: str) -> None:
        core, now = self.core(id), self.glass.now
        if not core.alive or core.turn is None or core.paused:
            return
        match how:
            case "turn":
                self.report(core.turn_ended(self.result(id), now))
            case "failed":
                self.report(core.failed("it broke", now))
            case _:
                self.report(core.completed(self.result(id), now))

    @rule(id=session_ids, ask=st.booleans(), begin=st.booleans(), end=st.booleans())
    def call(self, id: str, ask: bool, begin: bool, end: bool) -> None:
        core, now = self.core(id), self.glass.now
        if not core.alive or core.turn is None or core.paused:
            return
        self.numbers += 1
        call = f"call-{self.numbers}"
        self.report(core.emit(ToolCall(at=0, call=call, name="shell", gated=ask), now))
        if ask:
            self.report(core.ask(approval(core, f"r{self.numbers}", call=call), now))
        elif begin:
            self.report(core.begin(call, "shell", now))
            if end:
                self.report(core.end(call, now))
                self.report(core.emit(ToolResult(at=0, call=call, status=ToolStatus.OK), now))

    @rule(seconds=st.integers(1, 20))
    def time_passes(self, seconds: int) -> None:
        self.glass.tick(seconds * 1000)
        self.settle()

    # --- what must hold

    @invariant()
    def no_message_is_consumed_twice_and_each_ends_once(self) -> None:
        for id in IDS:
            states: dict[str, list[Mail]] = defaultdict(list)
            for event in self.events(id):
                if isinstance(event, Mail):
                    states[event.ref].append(event)
            assert list(states) == [f"#{number}" for number in range(1, len(states) + 1)]
            for mails in states.values():
                assert tuple(mail.state for mail in mails) in ENDS
                assert {mail.error for mail in mails if mail.state is MailState.ERROR} <= ERRORS
            for ref, text in self.applied[id].items():
                assert states[ref][0].text == text

    @invariant()
    def requests_and_calls_end_once(self) -> None:
        for id in IDS:
            events = self.events(id)
            for opens, ends in ((RequestOpened, RequestResolved), (ToolCall, ToolResult)):
                begun = [_id(event) for event in events if isinstance(event, opens)]
                over = [_id(event) for event in events if isinstance(event, ends)]
                assert len(over) == len(set(over))
                assert set(over) <= set(begun)

    @invariant()
    def attempts_follow_ends(self) -> None:
        for id in IDS:
            attempt, over = 1, False
            for event in self.events(id):
                if event.attempt is not None and event.attempt != attempt:
                    assert (event.attempt, over) == (attempt + 1, True)
                    attempt, over = event.attempt, False
                if isinstance(event, LifecycleChanged):
                    over = over or event.lifecycle in TERMINAL

    def what_was_told_is_there(self) -> None:
        found = [(e.event.pos, e.event.seq, e.session) for e in self.log.after(0, 100_000)]
        assert found[: len(self.told)] == self.told

    def everything_ended_or_waits(self) -> None:
        for id in IDS:
            core = self.core(id)
            waiting = [letter.item.ref for letter in core.mailbox.waiting()]
            last = {event.ref: event.state for event in self.events(id) if isinstance(event, Mail)}
            assert [ref for ref, state in last.items() if state is MailState.SENT] == waiting
            shown = [event for event in self.events(id) if isinstance(event, LifecycleChanged)]
            assert core.lifecycle is (shown[-1].lifecycle if shown else Lifecycle.IDLE)
            opened = {event.request for event in self.events(id) if isinstance(event, RequestOpened)}
            ended = {event.request for event in self.events(id) if isinstance(event, RequestResolved)}
            assert {str(r.subject["id"]) for r in core.requests.open()} == opened - ended
            for primitive, op in OP_OF.items():
                forbidden = TABLE[core.row()][op].verdict is Verdict.ERROR
                assert (primitive.value in core.blocked()) is forbidden or primitive is Primitive.RESUME


def _id(event: Event) -> str:
    return str(getattr(event, "call", None) or getattr(event, "request", None))


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
