"""What outlives a host: decisions that nothing was made of yet, and what became of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.host.test_coming_back import Floor, wakes
from watchfloor.harness.base import Decided, Wake
from watchfloor.harness.run import ALLOW_ONCE, DENY
from watchfloor.host.effects import Tell
from watchfloor.host.sessions.mailbox import NoSuchRef
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import ToolCall
from watchfloor.protocol.model import Action, FieldType, FormField, RequestModel, Result, Subject
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind, RequestKind, StopReason


@pytest.fixture
def floor(tmp_path: Path) -> Floor:
    return Floor(tmp_path / "log.db")


def asks(id: str, call: str = "c1", text: str = "rm x") -> RequestModel:
    """An approval of a call, under an id of its own."""
    subject = Subject(
        session="s1",
        attempt=1,
        id=id,
        kind=RequestKind.APPROVAL,
        actions=(Action(tool="shell", text=text, call=call),),
        options=(ALLOW_ONCE, DENY),
    )
    return RequestModel.ask(subject, asked_at=1)


def go(floor: Floor, request: RequestModel) -> SessionCore:
    """A session whose turn has announced the call and asked."""
    core = floor.add(running=True)
    floor.glass.apply(core.emit(ToolCall(at=0, call="c1", name="shell", gated=True), floor.glass.now))
    floor.glass.apply(core.ask(request, floor.glass.now))
    return core


def decide(floor: Floor, request: RequestModel, option: str = "allow") -> None:
    """Take an option, and have it in the file."""
    do = {"primitive": "approve", "request": request.read().id, "option": option, "digest": request.digest}
    assert floor.glass.command("c", "s1", do).outcome is OutcomeKind.APPLIED


def again(floor: Floor) -> SessionCore:
    """After a crash the turn is taken up."""
    core = floor.killed()
    assert floor.glass.command("c", "s1", {"primitive": "resume"}).outcome is OutcomeKind.APPLIED
    floor.glass.apply(core.started(floor.glass.now))
    assert wakes(floor)
    return core


def told(floor: Floor) -> list[Decided]:
    return [e.signal for e in floor.glass.rest if isinstance(e, Tell) and isinstance(e.signal, Decided)]


def test_a_decision_of_which_nothing_was_made_yet_serves_the_same_question(floor: Floor) -> None:
    request = asks("r1")
    go(floor, request)
    decide(floor, request)
    core = again(floor)
    before = len(told(floor))
    floor.glass.apply(core.ask(asks("r2", "c2"), floor.glass.now))
    (answer,) = told(floor)[before:]
    assert (answer.request, answer.option, answer.kind) == ("r2", "allow", OptionKind.ALLOW)
    assert not core.requests.open()
    # It allowed one call.
    floor.glass.apply(core.ask(asks("r3", "c3"), floor.glass.now))
    assert [r.read().id for r in core.requests.open()] == ["r3"]


def test_what_differs_is_asked(floor: Floor) -> None:
    request = asks("r1")
    go(floor, request)
    decide(floor, request)
    core = again(floor)
    floor.glass.apply(core.ask(asks("r2", "c2", text="rm y"), floor.glass.now))
    assert [r.read().id for r in core.requests.open()] == ["r2"]


def test_what_had_begun_is_asked_again(floor: Floor) -> None:
    request = asks("r1")
    core = go(floor, request)
    decide(floor, request)
    floor.glass.apply(core.begin("c1", "shell", floor.glass.now))
    core = again(floor)
    floor.glass.apply(core.ask(asks("r2", "c2"), floor.glass.now))
    assert [r.read().id for r in core.requests.open()] == ["r2"]


def test_a_decision_serves_again_when_the_host_ends_once_more(floor: Floor) -> None:
    request = asks("r1")
    go(floor, request)
    decide(floor, request)
    core = again(floor)
    floor.glass.apply(core.ask(asks("r2", "c2"), floor.glass.now))
    core = again(floor)
    before = len(told(floor))
    floor.glass.apply(core.ask(asks("r3", "c3"), floor.glass.now))
    assert [answer.request for answer in told(floor)[before:]] == ["r3"]


def test_a_secret_is_not_kept(floor: Floor) -> None:
    field = FormField(name="key", type=FieldType.SECRET, label="Key")
    subject = Subject(session="s1", attempt=1, id="q1", kind=RequestKind.QUESTION, fields=(field,))
    request = RequestModel.ask(subject, asked_at=1)
    core = floor.add(running=True)
    floor.glass.apply(core.ask(request, floor.glass.now))
    do = {"primitive": "answer", "request": "q1", "digest": request.digest, "fields": {"key": "hunter22"}}
    assert floor.glass.command("c", "s1", do).outcome is OutcomeKind.APPLIED
    floor.glass.flush()
    assert not [file for file in floor.path.parent.iterdir() if b"hunter22" in file.read_bytes()]


def test_the_turn_takes_its_decisions_with_it(floor: Floor) -> None:
    request = asks("r1")
    core = go(floor, request)
    decide(floor, request)
    result = Result(stop_reason=StopReason.END_TURN, session_id="s1")
    floor.glass.apply(core.turn_ended(result, floor.glass.now))
    floor.glass.apply(core.send("more", "ann", floor.glass.now).effects)
    core = floor.killed()
    assert core.lifecycle is Lifecycle.PAUSED
    assert not core.kept


def test_what_became_of_messages_is_known_after_a_restart(floor: Floor) -> None:
    core = floor.add(running=True)
    (wake,) = [e.signal for e in floor.glass.rest if isinstance(e, Tell) and isinstance(e.signal, Wake)][-1:]
    ref = wake.mail[0].ref
    result = Result(text="done it", stop_reason=StopReason.END_TURN, session_id="s1")
    floor.glass.apply(core.turn_ended(result, floor.glass.now))
    floor.glass.apply(core.send("again", "ann", floor.glass.now).effects)
    floor.glass.apply(core.interrupt("ann", floor.glass.now).effects)
    floor.glass.apply(core.interrupted(floor.glass.now))
    core = floor.killed()
    assert core.mailbox.letter(ref).response == "done it"
    ended = core.mailbox.letter("#2")
    assert (ended.error, ended.consumed, ended.response) == ("interrupted", True, None)
    assert [letter.item.ref for letter in core.mailbox.letters()] == ["#1", "#2"]
    with pytest.raises(NoSuchRef):
        core.mailbox.letter("#3")
