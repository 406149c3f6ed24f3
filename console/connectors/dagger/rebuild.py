"""Conversations that are built anew on the engine, message by message, for rewinding and compacting.

Conversations there are values: building one changes nothing until an agent is reseeded with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from console.connectors.dagger.abilities import Abilities
from console.connectors.dagger.reading import Json, count, obj, text
from console.connectors.dagger.transcript import Turn

AT_ONCE: Final = 20
"""Messages that one query adds."""
SUMMARISE: Final = (
    "Summarise this conversation for yourself, so that you can go on from the summary alone: what was asked, what was "
    "done and found, what is still open. Answer with the summary only."
)


class CannotRebuild(Exception):
    """The conversation holds something that cannot be put into another one. The message says what."""


@dataclass(frozen=True, slots=True)
class Step:
    """One field of a chain, such as `withPrompt(prompt: $v3)`, with the values and types of its variables."""

    field: str
    arguments: dict[str, tuple[str, JsonValue]]


def kept(conversation: Sequence[Turn], to: str) -> list[Turn]:
    """What stays when an agent is rewound. System prompts stay by themselves, and are not part of it.

    `to` is a ref ("#3": the agent goes on before that message) or "-N" (without the last N messages).
    Raises ValueError, with a reason for people, where that is nowhere in the conversation.
    """
    conversation = spoken(conversation)
    if to.startswith("-"):
        number = to[1:]
        if not (number.isascii() and number.isdigit() and 0 < int(number) <= len(conversation)):
            raise ValueError(f"there are {len(conversation)} messages to take back: write -1 to -{len(conversation)}")
        return list(conversation[: len(conversation) - int(number)])
    ref = to if to.startswith("#") else f"#{to}"
    places = [place for place, turn in enumerate(conversation) if turn.ref == ref]
    if not places:
        raise ValueError(f"message {ref} is not part of the conversation: it was not read yet, or was taken back")
    return list(conversation[: places[0]])


def spoken(conversation: Sequence[Turn]) -> list[Turn]:
    """A conversation without its system prompts, which no emptying takes away."""
    return [turn for turn in conversation if turn.role != "SYSTEM"]


def pending(conversation: Sequence[Turn]) -> bool:
    """Does the agent owe an answer?"""
    return bool(conversation) and conversation[-1].role == "USER"


def steps(conversation: Sequence[Turn], abilities: Abilities) -> list[list[Step]]:
    """What has to be added to an emptied conversation, in queries of bounded size."""
    flat = [step for turn in conversation for step in _steps(turn, abilities)]
    return [flat[start : start + AT_ONCE] for start in range(0, len(flat), AT_ONCE)]


def chain(added: Sequence[Step], *, empty: bool) -> tuple[str, str, Json]:
    """The fields of one query, its variables' types, and their values."""
    fields, types = "id", []
    values: Json = {}
    names = iter(f"v{n}" for n in range(sum(len(step.arguments) for step in added)))
    opened: list[str] = []
    for step in added:
        given = []
        for argument, (kind, value) in step.arguments.items():
            name = next(names)
            types.append(f"${name}: {kind}")
            values[name] = value
            given.append(f"{argument}: ${name}")
        opened.append(f"{step.field}({', '.join(given)})")
    if empty:
        opened.insert(0, "withoutMessageHistory")
    for field in reversed(opened):
        fields = f"{field} {{ {fields} }}"
    return fields, ", ".join(types), values


def id_at_end(built: JsonValue | None) -> str:
    """The id at the end of a chain of fields."""
    while isinstance(built, dict) and "id" not in built:
        built = next(iter(built.values()), None)
    return text(obj(built).get("id"))


def prompt(words: str) -> Step:
    return Step("withPrompt", {"prompt": ("String!", words)})


def answer(words: str) -> Step:
    return Step("withResponse", {"content": ("[LLMContentBlockInput!]!", [{"kind": "TEXT", "text": words}])})


def _steps(turn: Turn, abilities: Abilities) -> Iterator[Step]:
    if turn.role == "ASSISTANT":
        yield _response(turn, abilities)
    elif turn.results_only:
        for block in turn.blocks:
            if block.get("content"):
                raise CannotRebuild("a tool gave more than text, which cannot be put back")
            called = text(block.get("callId"))
            failed = block.get("errored") is True
            arguments: dict[str, tuple[str, JsonValue]] = {
                "callId": ("String!", called),
                "content": ("String!", text(block.get("text"))),
                "errored": ("Boolean!", failed),
            }
            yield Step("withToolResult", arguments)
    elif turn.role == "USER" and turn.blocks and all(block.get("kind") == "TEXT" for block in turn.blocks):
        arguments = {"prompt": ("String!", turn.said)}
        if turn.origin is not None:
            if not abilities.has("LLM.withPrompt", "origin"):
                raise CannotRebuild("this engine cannot keep who sent a message")
            arguments["origin"] = ("LLMMessageOriginInput", turn.origin)
        yield Step("withPrompt", arguments)
    else:
        kinds = sorted({text(block.get("kind")).lower() for block in turn.blocks})
        raise CannotRebuild(f"a message holds {', '.join(kinds) or 'nothing'}, which cannot be put back")


def _response(turn: Turn, abilities: Abilities) -> Step:
    content: list[JsonValue] = []
    for block in turn.blocks:
        if block.get("kind") not in ("TEXT", "THINKING", "TOOL_CALL"):
            raise CannotRebuild(f"an answer holds {text(block.get('kind')).lower()}, which cannot be put back")
        content.append({name: value for name, value in block.items() if value not in ("", None, False, [])})
    arguments: dict[str, tuple[str, JsonValue]] = {"content": ("[LLMContentBlockInput!]!", content)}
    usage = obj(turn.raw.get("tokenUsage"))
    names = ("inputTokens", "outputTokens", "cachedTokenReads", "cachedTokenWrites", "totalTokens")
    for name in names:
        if name in usage and abilities.has("LLM.withResponse", name):
            arguments[name] = ("Int", count(usage.get(name)))
    return Step("withResponse", arguments)
