"""Random runs, answers, cancellations and crashes of stored sessions, against a plain model of what was allowed."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.agent.kit import Clock
from watchfloor.agent.agent import Agent
from watchfloor.agent.request import CancelToken
from watchfloor.agent.session import RunState, Session
from watchfloor.agent.sqlite_storage import SqliteStorage
from watchfloor.agent.tools import UNKNOWN
from watchfloor.agent.turn import Turn
from watchfloor.errors import AgentError, NotAnswered, NothingToRun, NotSuspended, SessionNotFound, StorageError
from watchfloor.harness.base import MailItem

IDS = ("a", "b")
ids = st.sampled_from(IDS)
WRITES = 2


@dataclass
class Known:
    """The model of one session: what it was told, and what was allowed of it."""

    sent: list[str] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)
    for_session: bool = False


class Runs(RuleBasedStateMachine):
    """One process after the other over one file."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.known: dict[str, Known] = defaultdict(Known)
        self.wrote: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.dies: str | None = None
        self.fails = False
        self.clock = Clock()
        self.open()

    def open(self) -> None:
        """A process begins."""
        builder = Agent.builder().data_folder(self.folder.name).clock(self.clock)
        self.agent = builder.tool(self.write).function(self.think).build()

    def teardown(self) -> None:
        self.runner.close()
        self.folder.cleanup()

    # --- what runs

    def write(self, text: str) -> str:
        if self.dies == "before":
            self.kill()
            return "nothing"
        self.wrote[text] += 1
        if self.dies == "after":
            self.kill()
        return f"wrote {text}"

    def kill(self) -> None:
        """Nothing of this process reaches the file any more."""
        self.dies = None
        assert isinstance(self.agent.storage, SqliteStorage)
        self.agent.storage.close()

    async def think(self, turn: Turn, mail: tuple[MailItem, ...]) -> str:
        text = mail[-1].text
        for number in range(WRITES):
            await turn.call("write", {"text": f"{text}.{number}"}, key=f"{text}.{number}")
        if self.fails:
            self.fails = False
            raise ValueError("by chance")
        return f"did {text}"

    def session(self, id: str) -> Session:
        return self.agent.open(id)

    def go(self, id: str, text: str | None, *, cancelled: bool = False) -> None:
        """Run the session until it rests; a process that died is followed by another one."""
        session = self.session(id)
        token = CancelToken()

        async def work() -> None:
            if cancelled:
                asyncio.get_running_loop().call_soon(lambda: token.cancel(now=True))
            if text is None:
                await self.agent.resume(session, cancel=token)
            else:
                await self.agent.run(session, text, cancel=token)

        with suppress(AgentError, StorageError):
            self.runner.run(work())
        self.dies = None
        if not self.lives():
            self.open()

    def lives(self) -> bool:
        try:
            self.agent.storage.grants()
        except StorageError:
            return False
        return True

    # --- operations

    @rule(id=ids, dies=st.sampled_from([None, None, "before", "after"]), fails=st.booleans(), cancelled=st.booleans())
    def run(self, id: str, dies: str | None, fails: bool, cancelled: bool) -> None:
        if self.session(id).pending is not None:
            return
        known = self.known[id]
        known.sent.append(f"{id}{len(known.sent)}")
        self.dies, self.fails = dies, fails
        self.go(id, known.sent[-1], cancelled=cancelled)

    @rule(id=ids, dies=st.sampled_from([None, None, "before", "after"]), cancelled=st.booleans())
    def resume(self, id: str, dies: str | None, cancelled: bool) -> None:
        session = self.session(id)
        if session.pending is not None:
            with pytest.raises(NotAnswered):
                self.runner.run(self.agent.resume(session))
            return
        self.dies = dies
        self.go(id, None, cancelled=cancelled)

    @rule(id=ids, option=st.sampled_from(["allow", "allow", "allow_session", "deny"]))
    def answer(self, id: str, option: str) -> None:
        pending = self.session(id).pending
        if pending is None:
            with pytest.raises((NotSuspended, SessionNotFound)):
                self.runner.run(self.agent.answer(id, option))
            return
        arguments = pending.read().actions[0].arguments
        assert isinstance(arguments, dict)
        text = str(arguments["text"])
        # What may have run already is asked for as such, and only that.
        assert (pending.about == UNKNOWN) or self.wrote[text] == 0
        if pending.about == UNKNOWN:
            option = "deny" if self.wrote[text] or option == "deny" else "allow"
        self.runner.run(self.agent.answer(id, option))
        if option != "deny":
            self.known[id].allowed[text] += 1
            self.known[id].for_session |= option == "allow_session"

    @rule()
    def restart(self) -> None:
        self.kill()
        self.open()

    @precondition(lambda self: any(known.sent for known in self.known.values()))
    @rule(id=ids)
    def nothing_is_run_twice(self, id: str) -> None:
        session = self.session(id)
        if session.state is RunState.IDLE and session.pending is None and session.to_answer() is None:
            with pytest.raises(NothingToRun):
                self.runner.run(self.agent.run_session(session))

    # --- what holds

    @invariant()
    def nothing_is_done_that_was_not_allowed(self) -> None:
        for text, times in self.wrote.items():
            known = self.known[text[0]]
            assert times == 1, f"{text} was done {times} times"
            assert known.allowed[text] or known.for_session, f"{text} was not allowed"

    @invariant()
    def states_are_legal_and_nothing_is_lost(self) -> None:
        for id, known in self.known.items():
            stored = self.agent.get_session(id)
            if stored is None:
                continue
            assert stored.state is not RunState.RUNNING
            assert (stored.state is RunState.SUSPENDED) or stored.pending is None
            users = [message.text for message in stored.messages if message.role == "user"]
            # A process that died before anything was stored is the only one that loses a message.
            assert [text for text in known.sent if text in users] == users
            assert len(users) == len(set(users))
            replies = Counter(message.text for message in stored.messages if message.role == "assistant")
            assert all(times == 1 for times in replies.values()), replies


TestRuns = Runs.TestCase
TestRuns.settings = settings(
    max_examples=30,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
