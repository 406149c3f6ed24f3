"""A session that comes back with its host: what of it is as it was, and what is said of the work that was cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.host.glass import Glass
from tests.unit.host.puppet import approval
from tests.unit.host.test_between import EVERYTHING, ends_turn, notify
from watchfloor.errors import StorageCorrupt
from watchfloor.harness.base import ConversationMessage, Wake
from watchfloor.host.effects import StartAttempt, Tell
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.sessions.record import CUT
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import LifecycleChanged, Mail, RequestResolved, ToolCall, ToolResult
from watchfloor.protocol.model import Usage
from watchfloor.words import Lifecycle, OutcomeKind


class Floor:
    """A host over one file, that can be killed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open()

    def open(self) -> None:
        self.log = SqliteLog(self.path)
        self.glass = Glass(log=self.log)
        self.glass.connect("c")

    def kill(self) -> None:
        self.log._db.close()
        self.open()

    def add(self, id: str = "s1", *, running: bool = False) -> SessionCore:
        core = self.glass.add(id, capabilities=EVERYTHING, running=running)
        back = self.glass.core.come_back(id, self.glass.now)
        if back is not None:
            self.glass.take(back)
        self.glass.flush()
        return core

    def killed(self, id: str = "s1") -> SessionCore:
        """The session after the host was killed and started anew."""
        self.glass.flush()
        self.kill()
        return self.add(id)

    def told(self, id: str = "s1") -> list[object]:
        self.glass.flush()
        return list(self.log.read(id, limit=9999))


@pytest.fixture
def floor(tmp_path: Path) -> Floor:
    return Floor(tmp_path / "log.db")


def wakes(floor: Floor) -> list[Wake]:
    return [e.signal for e in floor.glass.rest if isinstance(e, Tell) and isinstance(e.signal, Wake)]


def test_a_turn_that_ran_is_suspended_and_goes_on_with_its_mail(floor: Floor) -> None:
    core = floor.add(running=True)
    floor.glass.apply(core.send("joins", "ann", floor.glass.now).effects)
    floor.glass.apply(core.checkpoint(floor.glass.now)[1])
    floor.glass.apply(core.send("waits", "ann", floor.glass.now).effects)
    turn = core.turn
    core = floor.killed()
    assert (core.lifecycle, core.why, core.turn, core.attempt) == (Lifecycle.PAUSED, CUT, turn, 1)
    assert not core.alive
    assert floor.glass.command("c", "s1", {"primitive": "resume"}).outcome is OutcomeKind.APPLIED
    assert [e.attempt for e in floor.glass.rest if isinstance(e, StartAttempt)] == [1]
    floor.glass.apply(core.started(floor.glass.now))
    (wake,) = wakes(floor)
    assert [item.text for item in wake.mail] == ["go", "joins", "waits"]
    mail = [(e.ref, e.state.value) for e in floor.told() if isinstance(e, Mail)]
    assert sorted(mail) == [(f"#{n}", state) for n in (1, 2, 3) for state in ("consumed", "sent")]
    ends_turn(floor.glass, "s1")
    assert core.lifecycle is Lifecycle.IDLE


def test_what_an_idle_session_remembers_is_there_and_it_is_not_loaded(floor: Floor) -> None:
    core = floor.add(running=True)
    messages = core.conversation.messages
    messages += [ConversationMessage("user", "go", "#1"), ConversationMessage("assistant", "half \ud83d")]
    floor.glass.flush()
    messages.append(ConversationMessage("assistant", "done"))
    core.conversation.model = "large"
    floor.glass.command("c", "s1", {"primitive": "budget", "tokens": 100})
    floor.glass.apply(core.note_usage(Usage(input_tokens=7), floor.glass.now))
    ends_turn(floor.glass, "s1", "the result")
    kept = list(messages)
    core = floor.killed()
    assert core.conversation.messages == kept
    assert core.conversation.model == "large"
    assert (core.lifecycle, core.summary()["native_state"]) == (Lifecycle.IDLE, "not loaded")
    assert core.result is not None
    assert core.result.text == "the result"
    assert core.usage is not None
    assert (core.usage.input_tokens, core.usage.budget_tokens, core.budget.tokens) == (7, 100, 100)
    outcome = floor.glass.command("c", "s1", {"primitive": "send", "text": "more"})
    assert outcome.info == {"ref": "#2", "delivery": "started"}
    assert core.attempt == 1


def test_a_conversation_that_was_cut_short_comes_back_short(floor: Floor) -> None:
    core = floor.add(running=True)
    core.conversation.messages += [ConversationMessage("user", f"text {n}", f"#{n}") for n in range(1, 6)]
    floor.glass.flush()
    ends_turn(floor.glass, "s1")
    floor.glass.command("c", "s1", {"primitive": "reseed", "mode": "clear"})
    core.conversation.messages.append(ConversationMessage("user", "anew"))
    floor.glass.say("s1", "x")
    assert [message.text for message in floor.killed().conversation.messages] == ["anew"]


def test_what_was_asked_is_withdrawn_and_what_was_carried_out_is_unknown(floor: Floor) -> None:
    core = floor.add(running=True)
    glass = floor.glass
    for call in ("waits", "runs", "done"):
        glass.apply(core.emit(ToolCall(at=0, call=call, name="shell"), glass.now))
    for call in ("runs", "done"):
        glass.apply(core.begin(call, "shell", glass.now))
    glass.apply(core.emit(ToolResult.model_validate({"at": 0, "call": "done", "status": "ok"}), glass.now))
    request = approval(core, call="waits")
    glass.ask("s1", request)
    core = floor.killed()
    results = {e.call: (e.status.value, e.text) for e in floor.told() if isinstance(e, ToolResult)}
    assert {call: status for call, (status, _) in results.items()} == {
        "waits": "cancelled",
        "runs": "unknown",
        "done": "ok",
    }
    assert "not known" in results["runs"][1]
    (ended,) = [e for e in floor.told() if isinstance(e, RequestResolved)]
    assert (ended.request, ended.state.value) == ("r1", "withdrawn")
    do = {"primitive": "approve", "request": "r1", "option": "yes", "digest": request.digest}
    late = floor.glass.command("c", "s1", do)
    assert late.outcome is OutcomeKind.STALE_TARGET
    assert "asked again" in str(late.reason)
    # Killed once more, nothing of it is told again.
    before = len(floor.told())
    floor.killed()
    assert [type(e).__name__ for e in floor.told()[before:]] == []


@pytest.mark.parametrize("how", ["stopped", "completed", "failed", "paused", "being stopped"])
def test_other_states_come_back_as_they_were(floor: Floor, how: str) -> None:
    core = floor.add(running=True)
    glass = floor.glass
    match how:
        case "stopped":
            glass.apply(core.stopped(glass.now))
        case "completed":
            ends_turn(glass, "s1")
            assert core.result is not None
            glass.apply(core.send("more", "ann", glass.now).effects)
            glass.apply(core.completed(core.result, glass.now))
        case "failed":
            glass.apply(core.failed("no disk", glass.now))
            glass.apply(core.send("queued", "ann", glass.now).effects)
        case "paused":
            ends_turn(glass, "s1")
            glass.apply(core.pause("ann", glass.now).effects)
        case _:
            glass.apply(core.stop("ann", glass.now).effects)
    lifecycle = core.lifecycle
    core = floor.killed()
    assert core.lifecycle is (Lifecycle.STOPPED if how == "being stopped" else lifecycle)
    shown = [e.lifecycle for e in floor.told() if isinstance(e, LifecycleChanged)]
    assert shown[-1] is core.lifecycle
    assert not core.pending
    if how == "failed":
        assert (core.error, core.mailbox.view.queued) == ("no disk", 1)
        outcome = floor.glass.command("c", "s1", {"primitive": "resume"})
        assert outcome.outcome is OutcomeKind.APPLIED
        floor.glass.apply(core.started(floor.glass.now))
        assert core.attempt == 2
        assert [item.text for item in wakes(floor)[0].mail] == ["go", "queued"]


def test_subscriptions_hold_and_nothing_is_told_twice(floor: Floor) -> None:
    floor.add("worker", running=True)
    floor.add("boss", running=True)
    notify(floor.glass, "worker", "boss", "idle")
    ends_turn(floor.glass, "worker")
    floor.glass.flush()
    floor.kill()
    worker, boss = floor.add("worker"), floor.add("boss")
    assert boss.mailbox.view.refs == 2
    assert worker.subscribers == {"boss": frozenset({"idle"})}
    floor.glass.apply(worker.send("go", "x", floor.glass.now).effects)
    floor.glass.apply(worker.started(floor.glass.now))
    ends_turn(floor.glass, "worker")
    assert boss.mailbox.view.refs == 3


def test_what_was_removed_does_not_come_back(floor: Floor) -> None:
    floor.add(running=True)
    floor.glass.flush()
    floor.glass.core.remove("s1")
    floor.glass.flush()
    head = floor.log.head("s1")
    core = floor.killed()
    assert (core.lifecycle, core.mailbox.view.refs) == (Lifecycle.IDLE, 0)
    assert floor.log.head("s1") == head


def test_a_record_that_cannot_be_read_is_said_to_be_damaged(floor: Floor) -> None:
    floor.add(running=True)
    floor.glass.flush()
    floor.log._db.execute("""UPDATE states SET body = '{"attempt": 1}'""")
    with pytest.raises(StorageCorrupt, match="of session 's1' cannot be read"):
        floor.killed()


@pytest.mark.parametrize("then", ["nothing", "pause", "interrupt", "stop", "killed again"])
def test_mail_that_is_being_taken_up_once_more_is_not_lost_on_the_way(floor: Floor, then: str) -> None:
    floor.add(running=True)
    core = floor.killed()
    floor.glass.command("c", "s1", {"primitive": "resume"})
    assert core.lifecycle is Lifecycle.STARTING
    if then in ("pause", "interrupt", "stop"):
        floor.glass.command("c", "s1", {"primitive": then})
    if then == "killed again":
        core = floor.killed()
        assert core.lifecycle is Lifecycle.IDLE
        floor.glass.command("c", "s1", {"primitive": "resume"})
    if then == "stop":
        floor.glass.apply(core.stopped(floor.glass.now))
    else:
        floor.glass.apply(core.started(floor.glass.now))
    if then == "pause":
        floor.glass.command("c", "s1", {"primitive": "resume"})
    mail = [(e.state.value, e.error) for e in floor.told() if isinstance(e, Mail)]
    if then in ("interrupt", "stop"):
        assert mail[-1] == ("error", "interrupted" if then == "interrupt" else "stopped")
    else:
        assert mail == [("sent", None), ("consumed", None)]
        assert [[item.text for item in wake.mail] for wake in wakes(floor)] == [["go"]]
