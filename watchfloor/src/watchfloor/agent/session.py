"""A stored conversation, and how the last run of it ended."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final

from pydantic import TypeAdapter

from watchfloor.agent.permissions import Grant
from watchfloor.harness.base import Conversation, ConversationMessage
from watchfloor.host.sessions.kept import KeptAnswer
from watchfloor.protocol.model import RequestModel, Result, Usage

__all__ = ["DEFAULT_MODE", "PLAN_MODE", "RunState", "Session", "conversation_of"]

DEFAULT_MODE: Final = "default"
PLAN_MODE: Final = "plan"
"""The permission mode in which tools that change something are not carried out."""


class RunState(StrEnum):
    """How a session stands between, and in, its runs."""

    IDLE = "idle"
    RUNNING = "running"
    SUSPENDED = "suspended"
    """It waits for an answer; what asked it is `Session.pending`."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    CUT = "cut"
    """Its process ended while it ran. What was being carried out then may have been, or not."""


@dataclass(slots=True, kw_only=True)
class Session:
    """What is stored of a conversation. Times are in milliseconds since 1970 UTC.

    `messages`: roles are "user", "assistant", "call" (a tool call: JSON of `tool` and `arguments`) and "tool" (its
    output, with the same ref). `mode` is the permission mode. `turns` counts the turns that were begun.
    """

    id: str
    model: str | None = None
    name: str = ""
    instruction: str | None = None
    messages: list[ConversationMessage] = field(default_factory=list)
    state: RunState = RunState.IDLE
    pending: RequestModel | None = None
    answers: list[KeptAnswer] = field(default_factory=list)
    """What was answered in the turn under way, until what it allows has begun."""
    calls: dict[str, bool] = field(default_factory=dict)
    """Tool calls without a result, and whether they have begun."""
    answered: str | None = None
    """Ref of the newest message of the user that a turn has answered."""
    mode: str = DEFAULT_MODE
    mode_before: str | None = None
    """What `mode` was before plan mode; None outside of it."""
    grants: list[Grant] = field(default_factory=list)
    cwd: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    turns: int = 0
    attempt: int = 1
    refs: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    """What its harness has to know again."""
    usage: Usage | None = None
    result: Result | None = None
    error: str | None = None
    live: bool = False
    """It was spawned: its host runs it, and has the newest of it."""
    created_at: int = 0
    updated_at: int = 0

    @classmethod
    def new(cls, *, model: str | None = None, name: str = "", cwd: str | None = None) -> Session:
        """A session of a new id with nothing in it. Nothing is stored yet."""
        return cls(id=f"session-{secrets.token_hex(8)}", model=model, name=name, cwd=cwd)

    def branch(self, id: str | None = None) -> Session:
        """A new session that begins with what this one remembers; what runs or waits in this one is not in it."""
        return Session(
            id=id or f"session-{secrets.token_hex(8)}",
            model=self.model,
            name=self.name,
            instruction=self.instruction,
            messages=list(self.messages),
            answered=self.answered,
            refs=self.refs,
            cwd=self.cwd,
            labels=dict(self.labels),
        )

    def copy(self) -> Session:
        """All of it, apart from this one."""
        return deepcopy(self)

    def take_over(self, other: Session) -> None:
        """Be what the other one is."""
        for one in fields(self):
            setattr(self, one.name, getattr(other, one.name))

    def add_user(self, text: str) -> ConversationMessage:
        """Append a message of the user, which the next run answers."""
        self.refs += 1
        message = ConversationMessage("user", text, f"#{self.refs}")
        self.messages.append(message)
        return message

    def to_answer(self) -> ConversationMessage | None:
        """The last message of the user, where no turn has answered it; it has a ref from then on."""
        for at in range(len(self.messages) - 1, -1, -1):
            message = self.messages[at]
            if message.role != "user":
                continue
            if message.ref is None:
                if any(later.role == "assistant" for later in self.messages[at + 1 :]):
                    return None
                self.refs += 1
                message = self.messages[at] = ConversationMessage("user", message.text, f"#{self.refs}")
            return None if message.ref == self.answered else message
        return None


_session: Final = TypeAdapter(Session)


def dumped(session: Session) -> str:
    """All of a session but its messages and what is secret, as JSON."""
    if any(answer.secret for answer in session.answers):
        session = replace(session, answers=[answer for answer in session.answers if not answer.secret])
    return _session.dump_json(session, exclude={"messages"}).decode("utf-8")


def loaded(record: str, messages: Iterable[str]) -> Session:
    """The session that was dumped so. Raises ValueError for what is no session."""
    data: Any = _session.validate_json(record)
    session: Session = data
    try:
        session.messages = [ConversationMessage(*json.loads(text)) for text in messages]
    except TypeError as error:
        raise ValueError(str(error)) from None
    return session


def conversation_of(session: Session) -> Conversation:
    """What an attempt sees of it: the same list of messages."""
    return Conversation(session.messages, session.model, session.notes)
