"""Conversations of a stand-in Dagger engine, and the models that continue them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

NO_REPLY: Final = "(no reply)"


@dataclass(frozen=True)
class Block:
    """One piece of a message, as `LLMContentBlock` has it."""

    kind: str = "TEXT"
    text: str = ""
    call_id: str = ""
    tool: str = ""
    arguments: str = ""
    errored: bool = False
    inside: tuple[Block, ...] = ()
    """What a tool gave besides text."""


@dataclass(frozen=True)
class Origin:
    kind: str
    agent: str = ""
    ref: str = ""
    reply_to: str = ""


@dataclass(frozen=True)
class Tokens:
    input: int = 0
    output: int = 0
    reads: int = 0
    writes: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.reads + self.writes

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.reads + other.reads,
            self.writes + other.writes,
        )


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    role: str
    blocks: tuple[Block, ...]
    origin: Origin | None = None
    tokens: Tokens = field(default_factory=Tokens)

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if block.kind == "TEXT")

    @property
    def calls(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.kind == "TOOL_CALL")


def said(text: str, origin: Origin | None = None, role: str = "USER") -> Turn:
    return Turn(role, (Block(text=text),), origin)


@dataclass(frozen=True)
class Conversation:
    """An immutable LLM value."""

    model: str = "echo"
    provider: str = "stand-in"
    effort: str = ""
    label: str = ""
    turns: tuple[Turn, ...] = ()

    def plus(self, *turns: Turn) -> Conversation:
        return replace(self, turns=(*self.turns, *turns))

    @property
    def id(self) -> str:
        return f"llm-{hashlib.sha256(repr(self).encode()).hexdigest()[:16]}"

    @property
    def pending(self) -> bool:
        return bool(self.turns) and self.turns[-1].role == "USER"

    @property
    def last_reply(self) -> str:
        replies = [turn.text for turn in self.turns if turn.role == "ASSISTANT" and turn.text]
        return replies[-1] if replies else NO_REPLY

    @property
    def tokens(self) -> Tokens:
        return sum((turn.tokens for turn in self.turns), Tokens())

    @property
    def context(self) -> int:
        return sum(len(block.text) for turn in self.turns for block in turn.blocks)


class StepFailed(Exception):
    """The model gave no answer."""


class Model(Protocol):
    async def step(self, conversation: Conversation) -> Turn:
        """The next message. Raises StepFailed."""
        ...


class Models:
    """The models by name.

    `echo` answers with what was said last; `held` does so once `release` was called, one step a call; `tools` calls a
    tool first; `broken` fails; `replay/<base64 of a JSON list>` gives what was recorded and fails where it ends.
    """

    def __init__(self) -> None:
        self._steps = asyncio.Semaphore(0)
        self.waiting = 0
        """Steps that are held."""

    def release(self, steps: int = 1) -> None:
        for _ in range(steps):
            self._steps.release()

    async def step(self, conversation: Conversation) -> Turn:
        name = conversation.model
        if name.startswith("replay/"):
            return self._recorded(conversation)
        if name == "held":
            self.waiting += 1
            try:
                await self._steps.acquire()
            finally:
                self.waiting -= 1
        elif name == "broken":
            raise StepFailed("the model is out of order")
        elif name == "tools" and not any(b.kind == "TOOL_RESULT" for b in conversation.turns[-1].blocks):
            call = Block(
                "TOOL_CALL", call_id=f"call_{len(conversation.turns)}", tool="checks", arguments='{"name":"ci"}'
            )
            return Turn("ASSISTANT", (Block("THINKING", "let me look"), call), tokens=Tokens(30, 4))
        heard = [turn.text for turn in conversation.turns if turn.role == "USER" and turn.text]
        return Turn("ASSISTANT", (Block(text=f"echo: {heard[-1] if heard else ''}"),), tokens=Tokens(20, 5, 3, 1))

    def _recorded(self, conversation: Conversation) -> Turn:
        try:
            recorded = json.loads(base64.b64decode(conversation.model.removeprefix("replay/"), validate=True))
        except (binascii.Error, ValueError):
            raise StepFailed("the recording cannot be read") from None
        done = sum(1 for turn in conversation.turns if turn.role == "ASSISTANT")
        if done >= len(recorded):
            raise StepFailed("no more messages")
        return said(str(recorded[done]), role="ASSISTANT")
