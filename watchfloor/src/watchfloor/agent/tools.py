"""The tools that an agent is built with, and how their calls stand in its conversation.

A call is two messages with the same ref: "call" says what is called, "tool" what came of it. Until then the latter
holds a placeholder, so that a turn which is begun anew knows what it owes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from watchfloor.harness.base import ConversationMessage

WAITS: Final = "(waits for a decision)"
RUNS: Final = "(is being carried out)"
UNKNOWN: Final = "It was being carried out when its process ended: whether it ran, and how far, is not known."
ENTER_PLAN: Final = "enter_plan_mode"
LEAVE_PLAN: Final = "exit_plan_mode"


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that an agent may call with JSON arguments.

    `reads`: it changes nothing, so that it is free in plan mode. `gated`: it is asked for, unless something allows it.
    """

    name: str
    call: Callable[..., Any]
    reads: bool = False
    gated: bool = True
    description: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """A call as the conversation has it. `turn`: ref of the message that it was made for."""

    ref: str
    tool: str
    arguments: dict[str, Any]
    turn: str | None
    key: str | None
    output: str | None
    """What the "tool" message says; None where it is missing."""

    @property
    def open(self) -> bool:
        return self.output in (WAITS, RUNS)


def note(ref: str, tool: str, arguments: Mapping[str, Any], turn: str | None, key: str | None) -> ConversationMessage:
    """The message that says what is called."""
    data = {"tool": tool, "arguments": arguments, "turn": turn, **({"key": key} if key is not None else {})}
    return ConversationMessage("call", json.dumps(data, ensure_ascii=False), ref)


def noted(messages: list[ConversationMessage]) -> list[Noted]:
    """The calls of a conversation, in their order. What is no call of ours is passed over."""
    outputs = {message.ref: message.text for message in messages if message.role == "tool"}
    calls = []
    for message in messages:
        if message.role != "call" or message.ref is None:
            continue
        try:
            data = json.loads(message.text)
            tool, arguments = str(data["tool"]), dict(data["arguments"])
        except (ValueError, TypeError, KeyError):
            continue
        output = outputs.get(message.ref)
        calls.append(Noted(message.ref, tool, arguments, data.get("turn"), data.get("key"), output))
    return calls


def settle(messages: list[ConversationMessage], ref: str, text: str) -> None:
    """What became of a call."""
    for at, message in enumerate(messages):
        if message.role == "tool" and message.ref == ref:
            messages[at] = ConversationMessage("tool", text, ref)
            return
