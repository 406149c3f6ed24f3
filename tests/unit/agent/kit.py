"""What the tests of agents share: a clock, tools that count, an agent over a storage."""

from __future__ import annotations

from pathlib import Path

from watchfloor.agent.agent import Agent
from watchfloor.agent.builder import AgentBuilder
from watchfloor.agent.session import Session
from watchfloor.agent.sqlite_storage import SqliteStorage
from watchfloor.agent.turn import Turn
from watchfloor.harness.base import MailItem
from watchfloor.protocol.events import Event


class Clock:
    """Moves on by a second each time that it is read."""

    def __init__(self, at: int = 1_000_000) -> None:
        self.at = at

    def __call__(self) -> int:
        self.at += 1000
        return self.at


class Writer:
    """A tool that remembers what it wrote."""

    def __init__(self) -> None:
        self.wrote: list[str] = []

    def write(self, text: str) -> str:
        self.wrote.append(text)
        return f"wrote {text}"


async def writes(turn: Turn, mail: tuple[MailItem, ...]) -> str:
    """Writes what it was told last, and says what came of it."""
    outcome = await turn.call("write", {"text": mail[-1].text}, key="write")
    return str(outcome.value) if outcome.ok else f"not written: {outcome.note}"


async def says(turn: Turn, mail: tuple[MailItem, ...]) -> str:
    """Says what it was told."""
    return f"you said {mail[-1].text}"


def built(tmp_path: Path, writer: Writer | None = None) -> AgentBuilder:
    """A builder over the file in the folder, with the writer's tool."""
    builder = Agent.builder().data_folder(tmp_path).clock(Clock())
    return builder.tool((writer or Writer()).write)


def reopened(agent: Agent) -> None:
    """Let go of the file as a process does that ends, so that another one can have it."""
    assert isinstance(agent.storage, SqliteStorage)
    agent.storage.close()


def kind(event: Event) -> str:
    """What sort of event it is."""
    return str(event.model_dump()["kind"])


def said(session: Session) -> list[tuple[str, str]]:
    """Who said what, without the calls."""
    return [(m.role, m.text) for m in session.messages if m.role in ("user", "assistant")]
