"""Runs that ask: suspended, answered from the storage, resumed; what was allowed is carried out once."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.unit.agent.kit import Writer, built, kind, reopened, said, writes
from watchfloor.agent.agent import Agent
from watchfloor.agent.answers import Response
from watchfloor.agent.permissions import Grant, Permissions
from watchfloor.agent.session import DEFAULT_MODE, PLAN_MODE, RunState
from watchfloor.agent.sqlite_storage import SqliteStorage
from watchfloor.agent.tools import RUNS, UNKNOWN, WAITS
from watchfloor.agent.turn import Turn
from watchfloor.errors import InvalidResponse, NotAnswered, NotSuspended, SessionNotFound, StorageError
from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.protocol.model import Action, FieldType, FormField, Option
from watchfloor.words import OptionKind, RequestState, Scope


def holds(folder: Path, secret: bytes) -> list[Path]:
    """The files of a folder in which it stands."""
    return [file for file in folder.iterdir() if secret in file.read_bytes()]


def outputs(agent: Agent, id: str = "s") -> list[str]:
    return [message.text for message in agent.session_history(id) if message.role == "tool"]


async def test_a_gated_call_suspends_and_is_carried_out_once_when_it_was_allowed(tmp_path: Path) -> None:
    writer = Writer()
    agent = built(tmp_path, writer).function(writes).build()
    session = agent.open("s")
    await agent.run(session, "hello")
    assert session.state is RunState.SUSPENDED
    assert session.pending is not None
    assert outputs(agent) == [WAITS]
    with pytest.raises(NotAnswered):
        await agent.resume(session)
    outcome = await agent.answer("s", "allow")
    assert outcome.request.state is RequestState.RESOLVED
    assert (outcome.grants, outcome.plan_mode) == ((), None)
    assert writer.wrote == []
    with pytest.raises(NotSuspended, match="waits for no answer"):
        await agent.answer("s", "allow")
    await agent.resume(session)
    assert writer.wrote == ["hello"]
    assert outputs(agent) == ["wrote hello"]
    assert said(session) == [("user", "hello"), ("assistant", "wrote hello")]
    assert session.answers == []


async def test_an_answer_outlives_the_process(tmp_path: Path) -> None:
    writer = Writer()
    agent = built(tmp_path, writer).function(writes).build()
    await agent.run(agent.open("s"), "hello")
    reopened(agent)
    second = built(tmp_path, writer).function(writes).build()
    await second.answer("s", "Allow once")
    reopened(second)
    third = built(tmp_path, writer).function(writes).build()
    await third.resume("s")
    assert writer.wrote == ["hello"]


async def test_what_was_denied_is_not_carried_out(tmp_path: Path) -> None:
    writer = Writer()
    agent = built(tmp_path, writer).function(writes).build()
    session = agent.open("s")
    await agent.run(session, "hello")
    stream = await agent.answer_and_resume_stream("s", Response(option="deny", note="not now"))
    kinds = [kind(event) async for event in stream]
    assert writer.wrote == []
    assert outputs(agent) == ["declined: not now"]
    assert kinds == ["tool_call", "tool_result", "result"]
    assert agent.session_history("s")[-1].text == "not written: declined: not now"


async def test_an_answer_must_fit(tmp_path: Path) -> None:
    agent = built(tmp_path).function(writes).build()
    with pytest.raises(SessionNotFound):
        await agent.answer("s", "allow")
    session = agent.open("s")
    await agent.run(session, "hello")
    for wrong in ("Allow", "yes, do", Response(text="allow"), Response(option="other")):
        with pytest.raises(InvalidResponse, match=r"allow \(Allow once\)"):
            await agent.answer("s", wrong)
    stored = agent.get_session("s")
    assert stored is not None
    assert stored.pending == session.pending
    assert stored.answers == []


async def test_it_cannot_be_answered_while_it_still_runs(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def hangs(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        entered.set()
        await turn.sleep(1e6)

    agent = built(tmp_path).function(hangs).build()
    stream = agent.run_stream(agent.open("s"), "go")
    await entered.wait()
    with pytest.raises(NotSuspended, match="still runs"):
        await agent.answer("s", "allow")
    stream.cancel.cancel(now=True)
    await asyncio.wait([asyncio.ensure_future(stream.wait())])


async def test_a_question_is_answered_in_words_or_by_an_option(tmp_path: Path) -> None:
    async def asks(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        first = await turn.ask("Where?", ["here", "there"], free_text=True)
        second = await turn.ask("Sure?", ["yes", "no"])
        return f"{first.option or first.text} {second.option}"

    agent = built(tmp_path).function(asks).build()
    session = agent.open("s")
    await agent.run(session, "go")
    await agent.answer("s", "somewhere else")
    await agent.resume(session)
    with pytest.raises(InvalidResponse):
        await agent.answer("s", "perhaps")
    await agent.answer("s", "yes")
    await agent.resume(session)
    assert said(session)[-1] == ("assistant", "somewhere else yes")
    # The answers belonged to that turn.
    await agent.run(session, "again")
    assert session.state is RunState.SUSPENDED


async def test_the_same_question_is_answered_as_often_as_it_is_asked(tmp_path: Path) -> None:
    async def asks(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        return " ".join([str((await turn.ask("More?")).text) for _ in range(3)])

    agent = built(tmp_path).function(asks).build()
    session = agent.open("s")
    await agent.run(session, "go")
    for text in ("a", "b", "c"):
        await agent.answer("s", text)
        await agent.resume(session)
    assert said(session)[-1] == ("assistant", "a b c")


async def test_a_secret_is_never_written_down(tmp_path: Path) -> None:
    async def asks(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        answer = await turn.ask("Key", fields=[FormField(name="key", type=FieldType.SECRET, label="Key")])
        return str(len(str(answer.fields["key"])))

    agent = built(tmp_path).function(asks).build()
    session = agent.open("s")
    await agent.run(session, "go")
    await agent.answer("s", Response(fields={"key": "hunter22-very-secret"}))
    await agent.resume(session)
    assert said(session)[-1] == ("assistant", "20")
    reopened(agent)
    assert not holds(tmp_path, b"hunter22")


async def test_a_grant_reaches_the_checker_with_its_scope_and_no_wider(tmp_path: Path) -> None:
    writer, checker = Writer(), Permissions()
    agent = built(tmp_path, writer).function(writes).permissions(checker).build()
    session = agent.open("s")
    await agent.run(session, "one")
    outcome = await agent.answer("s", "allow_session")
    assert outcome.grants == (Grant(Scope.SESSION, what=("write",), session="s"),)
    assert checker.grants == outcome.grants
    await agent.resume(session)
    await agent.run(session, "two")
    assert writer.wrote == ["one", "two"]
    other = agent.open("other")
    await agent.run(other, "three")
    assert other.state is RunState.SUSPENDED
    # It is part of the session, and comes back with it.
    reopened(agent)
    again = built(tmp_path, writer).function(writes).build()
    await again.run(again.open("s"), "four")
    assert writer.wrote == ["one", "two", "four"]


async def test_an_option_of_an_agent_grants_what_it_names_and_where(tmp_path: Path) -> None:
    wide = Option(id="ws", label="In this folder", kind=OptionKind.ALLOW, scope=Scope.WORKSPACE)

    async def asks(turn: Turn, mail: tuple[MailItem, ...]) -> None:
        action = Action(tool="write", arguments={"text": "x"})
        await turn.approve(action, options=(wide, Option(id="no", label="No", kind=OptionKind.DENY)))
        await turn.call("write", {"text": "x"})
        await turn.call("write", {"text": "y"})

    writer = Writer()
    agent = built(tmp_path, writer).function(asks).build()
    session = agent.open("s", cwd="/srv")
    await agent.run(session, "go")
    outcome = await agent.answer("s", "ws")
    (grant,) = outcome.grants
    assert (grant.workspace, grant.tool, grant.arguments, grant.session) == ("/srv", "write", '{"text":"x"}', None)
    await agent.resume(session)
    assert writer.wrote == ["x"]
    assert session.pending is not None
    assert session.pending.read().actions[0].arguments == {"text": "y"}
    reopened(agent)
    again = built(tmp_path, writer).function(writes).build()
    elsewhere = again.open("elsewhere", cwd="/tmp")
    await again.run(elsewhere, "x")
    assert elsewhere.state is RunState.SUSPENDED
    here = again.open("here", cwd="/srv")
    await again.run(here, "x")
    assert writer.wrote == ["x", "x"]


async def test_a_plan_is_entered_and_left_by_requests(tmp_path: Path) -> None:
    looked: list[str] = []

    def look() -> str:
        looked.append("looked")
        return "seen"

    async def plans(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        await turn.enter_plan("it is a large change")
        seen = await turn.call("look", key="look")
        early = await turn.call("write", {"text": "early"}, key="early")
        approval = await turn.leave_plan("write once")
        late = await turn.call("write", {"text": "late"}, key="late")
        return f"{seen.value}, {early.ok}, {approval.allowed}, {late.ok}"

    writer = Writer()
    agent = built(tmp_path, writer).tool(look, reads=True, gated=False).function(plans).build()
    session = agent.open("s")
    session.mode = "auto"
    await agent.run(session, "go")
    outcome = await agent.answer("s", "enter")
    assert outcome.plan_mode == PLAN_MODE
    await agent.resume(session)
    assert (session.mode, session.mode_before) == (PLAN_MODE, "auto")
    assert (looked, writer.wrote) == (["looked"], [])
    outcome = await agent.answer("s", "approve")
    assert outcome.plan_mode == "auto"
    await agent.resume(session)
    assert (session.mode, session.mode_before) == ("auto", None)
    await agent.answer("s", "allow")
    await agent.resume(session)
    assert said(session)[-1] == ("assistant", "seen, False, True, True")
    assert (looked, writer.wrote) == (["looked"], ["late"])


async def test_who_keeps_planning_stays_in_plan_mode(tmp_path: Path) -> None:
    async def plans(turn: Turn, mail: tuple[MailItem, ...]) -> str:
        entered = await turn.enter_plan("why")
        return f"{entered} {turn.mode} {(await turn.leave_plan('plan')).allowed} {turn.mode}"

    agent = built(tmp_path).function(plans).build()
    session = agent.open("s")
    await agent.run(session, "go")
    outcome = await agent.answer("s", "stay")
    assert outcome.plan_mode is None
    await agent.resume(session)
    assert said(session)[-1] == ("assistant", f"False {DEFAULT_MODE} True {DEFAULT_MODE}")
    await agent.run(session, "go")
    await agent.answer("s", "enter")
    await agent.resume(session)
    outcome = await agent.answer("s", "keep")
    await agent.resume(session)
    assert session.mode == PLAN_MODE


async def test_answer_grants_and_mode_are_stored_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = Permissions()
    agent = built(tmp_path).function(writes).permissions(checker).build()
    await agent.run(agent.open("s"), "one")
    storage = agent.storage
    assert isinstance(storage, SqliteStorage)
    real = storage._db

    class Full:
        """A disk on which nothing but the first statements of a transaction fits."""

        in_transaction = True

        def execute(self, *args: object) -> sqlite3.Cursor:
            return real.execute(*args)  # type: ignore[arg-type]  # as it came

        def executemany(self, sql: str, rows: object) -> sqlite3.Cursor:
            if "messages" in sql:
                raise sqlite3.OperationalError("disk is full")
            return real.executemany(sql, rows)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(storage, "_db", Full())
    with pytest.raises(StorageError):
        await agent.answer("s", "allow_session")
    monkeypatch.undo()
    stored = agent.get_session("s")
    assert stored is not None
    assert stored.pending is not None
    assert (stored.answers, stored.grants, checker.grants) == ([], [], ())
    await agent.answer("s", "allow_session")


async def test_a_call_that_was_cut_is_not_repeated_and_asks_again(tmp_path: Path) -> None:
    writer = Writer()
    agent = built(tmp_path, writer).function(writes).build()
    session = agent.open("s")
    await agent.run(session, "hello")
    await agent.answer("s", "allow")
    # As the file is when the process is killed while the tool runs.
    killed = agent.get_session("s")
    assert killed is not None
    (ref,) = [message.ref for message in killed.messages if message.role == "tool"]
    killed.messages[-1] = ConversationMessage("tool", RUNS, ref)
    killed.state, killed.calls, killed.answers = RunState.RUNNING, {"call-x": True}, []
    agent.persistence.save(killed)
    reopened(agent)
    again = built(tmp_path, writer).function(writes).build()
    cut = again.get_session("s")
    assert cut is not None
    assert cut.state is RunState.CUT
    await again.resume(cut)
    assert writer.wrote == []
    assert cut.pending is not None
    assert cut.pending.about == UNKNOWN
    await again.answer("s", "allow")
    await again.resume(cut)
    assert writer.wrote == ["hello"]


async def test_the_mark_that_a_call_runs_is_in_the_file_before_it_runs(tmp_path: Path) -> None:
    seen: list[tuple[list[bool], str]] = []

    def write(text: str) -> str:
        stored = agent.storage.load("s")
        assert stored is not None
        seen.append((list(stored.calls.values()), stored.messages[-1].text))
        return text

    agent = Agent.builder().data_folder(tmp_path).tool(write).function(writes).build()
    await agent.run(agent.open("s"), "x")
    await agent.answer("s", "allow")
    await agent.resume("s")
    assert seen == [([True], RUNS)]


async def test_a_call_of_a_turn_that_was_given_up_is_not_made(tmp_path: Path) -> None:
    writer = Writer()
    agent = built(tmp_path, writer).function(writes).build()
    session = agent.open("s")
    await agent.run(session, "one")
    session.pending, session.state, session.answered = None, RunState.CANCELLED, "#1"
    agent.persistence.save(session)
    await agent.run(session, "two")
    assert outputs(agent) == ["cancelled: its turn was ended before", WAITS]


async def test_what_may_have_run_is_asked_again_whatever_was_granted(tmp_path: Path) -> None:
    writer = Writer()
    agent = built(tmp_path, writer).function(writes).build()
    session = agent.open("s")
    await agent.run(session, "one")
    await agent.answer("s", "allow_session")
    await agent.resume(session)
    await agent.run(session, "two")
    assert writer.wrote == ["one", "two"]
    killed = agent.get_session("s")
    assert killed is not None
    at, output = next((n, m) for n, m in enumerate(killed.messages) if m.text == "wrote two" and m.role == "tool")
    killed.messages[at:] = [ConversationMessage("tool", RUNS, output.ref)]
    killed.state, killed.answered = RunState.RUNNING, "#1"
    agent.persistence.save(killed)
    reopened(agent)
    again = built(tmp_path, writer).function(writes).build()
    await again.resume("s")
    cut = again.get_session("s")
    assert cut is not None
    assert cut.pending is not None
    assert [option.label for option in cut.pending.read().options] == ["Run it again", "Deny"]
    assert writer.wrote == ["one", "two"]
