"""A conversation as the engine has it, and what of it is news."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from console.connectors.dagger.reading import Json, count, items, obj, text
from watchfloor.protocol.events import (
    Event,
    Level,
    Mail,
    MailState,
    Message,
    Notice,
    Raw,
    Reasoning,
    Reseeded,
    Speaker,
    ToolCall,
    ToolResult,
    ToolStatus,
)
from watchfloor.words import ReseedMode

SPEAKERS: Final = {"ASSISTANT": Speaker.ASSISTANT, "SYSTEM": Speaker.SYSTEM, "USER": Speaker.USER}


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. `raw` is what the engine gave; `digest` tells it from others."""

    raw: Json = field(repr=False)

    @property
    def role(self) -> str:
        return text(self.raw.get("role"))

    @property
    def blocks(self) -> list[Json]:
        return [obj(block) for block in items(self.raw.get("content"))]

    @property
    def origin(self) -> Json | None:
        origin = self.raw.get("origin")
        return origin if isinstance(origin, dict) else None

    @property
    def ref(self) -> str:
        """Which message of the mailbox it was, "" where it came another way."""
        return text((self.origin or {}).get("ref"))

    @property
    def said(self) -> str:
        return "".join(text(block.get("text")) for block in self.blocks if block.get("kind") == "TEXT")

    @property
    def results_only(self) -> bool:
        blocks = self.blocks
        return bool(blocks) and all(block.get("kind") == "TOOL_RESULT" for block in blocks)

    @property
    def digest(self) -> str:
        told = json.dumps([self.role, self.blocks, self.origin], sort_keys=True)
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def turns(messages: JsonValue | None) -> list[Turn]:
    return [Turn(message) for message in items(messages) if isinstance(message, dict)]


class Transcript:
    """What was told of one agent's conversation.

    The engine keeps no times and no identity of messages: each is known by its place, by what it holds, and by how
    often the conversation was cut before it.
    """

    def __init__(self, handle: str) -> None:
        self._handle = handle
        self._told: list[str] = []
        self._replies: set[str] = set()
        self._cuts = 0
        self._reseeded_by_us: tuple[ReseedMode, str] | None = None
        self._sure = False
        self.spoken: tuple[str, ...] | None = None
        """Digests of the conversation as it was last read, without system prompts; None before that."""
        self.turns = 0
        """Turns that have ended: answers of the agent that call no tool."""
        self.refs: frozenset[str] = frozenset()
        """The messages of the mailbox that are part of the conversation."""

    def reseeded(self, mode: ReseedMode, by: str, *, sure: bool = True) -> None:
        """What is missing from the conversation next was taken out by us. Not `sure`: if anything is."""
        self._reseeded_by_us, self._sure = (mode, by), sure

    def said(self, reply: str) -> bool:
        """Has the agent said just this, as far as was told?"""
        return reply in self._replies

    def take(self, conversation: Sequence[Turn], ours: frozenset[str] = frozenset()) -> list[Event]:
        """The conversation as it is now: what was not told yet. `ours`: refs of messages that this console sent."""
        digests = [turn.digest for turn in conversation]
        same = 0
        while same < min(len(digests), len(self._told)) and digests[same] == self._told[same]:
            same += 1
        events: list[Event] = []
        mine, self._reseeded_by_us = self._reseeded_by_us, None
        lost = len(self._told) - same
        if lost or (mine and self._sure):
            self._cuts += 1
            mode, by = mine or (ReseedMode.REPLACE, "")
            note = f"{lost} of {len(self._told)} messages are gone" if lost else "no message is gone"
            if not mine:
                note += "; another client did that"
            key = f"{self._handle}/reseed/{self._cuts}"
            events.append(Reseeded(at=0, key=key, mode=mode, by=by, note=note))
        for place in range(same, len(conversation)):
            turn, key = conversation[place], f"{self._handle}/{self._cuts}/{place}/{digests[place]}"
            if turn.ref and turn.ref not in ours:
                events.append(self._of_others(turn))
            events += _events(turn, key, ours)
        self._told = digests
        self.spoken = tuple(turn.digest for turn in conversation if turn.role != "SYSTEM")
        self._replies = {turn.said for turn in conversation if turn.role == "ASSISTANT"}
        self.turns = sum(1 for turn in conversation if turn.role == "ASSISTANT" and not _calls(turn))
        self.refs = frozenset(turn.ref for turn in conversation if turn.ref)
        return events

    def _of_others(self, turn: Turn) -> Mail:
        """A message that somebody else sent, by its number: by that the conversation can be taken back to it."""
        origin = turn.origin or {}
        return Mail(
            at=0,
            key=f"{self._handle}/mail/{turn.ref}/read",
            ref=turn.ref,
            state=MailState.CONSUMED,
            reply_to=text(origin.get("replyTo")) or None,
            text=turn.said,
            by=text(origin.get("agentName")),
        )


def _calls(turn: Turn) -> bool:
    return any(block.get("kind") == "TOOL_CALL" for block in turn.blocks)


def _events(turn: Turn, key: str, ours: frozenset[str]) -> list[Event]:
    speaker, author = SPEAKERS.get(turn.role, Speaker.ASSISTANT), None
    origin = turn.origin
    if origin is not None:
        author = text(origin.get("agentName")) or None
        if text(origin.get("kind")) == "EVENT":
            speaker = Speaker.SYSTEM
        elif turn.ref in ours:
            speaker = Speaker.OPERATOR
    return [
        event
        for number, block in enumerate(turn.blocks)
        if (event := _event(block, f"{key}/{number}", speaker, author)) is not None
    ]


def _event(block: Json, key: str, speaker: Speaker, author: str | None) -> Event | None:
    said, call = text(block.get("text")), text(block.get("callId"))
    match block.get("kind"):
        case "TEXT":
            return Message(at=0, key=key, role=speaker, text=said, author=author) if said else None
        case "THINKING":
            return Reasoning(at=0, key=key, text=said, author=author) if said else None
        case "TOOL_CALL":
            name, arguments = text(block.get("toolName")), _arguments(block.get("arguments"))
            return ToolCall(at=0, key=key, call=call, name=name, arguments=arguments, author=author)
        case "TOOL_RESULT":
            status = ToolStatus.ERROR if block.get("errored") is True else ToolStatus.OK
            return ToolResult(at=0, key=key, call=call, status=status, text=said)
        case "IMAGE" | "AUDIO" | "DOCUMENT" as kind:
            return Notice(at=0, key=key, level=Level.INFO, text=f"{kind.lower()}, not shown here", author=author)
        case _:
            return Raw(at=0, key=key, data=block, author=author)


def _arguments(value: JsonValue | None) -> JsonValue:
    """The arguments of a call, which the engine gives as JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        parsed: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed


def tokens(usage: JsonValue | None) -> tuple[int, int]:
    """Tokens that went in, cached ones too, and that came out."""
    used = obj(usage)
    names = ("inputTokens", "cachedTokenReads", "cachedTokenWrites")
    return sum(count(used.get(name)) for name in names), count(used.get("outputTokens"))
