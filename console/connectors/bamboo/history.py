"""A session's stored messages as events, and which of them were told as they happened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from console.connectors.bamboo.state import Session, Told
from console.connectors.web.reading import Json, each, flag, millis, number, part, text, texts
from watchfloor.protocol.events import Event, Message, Reasoning, Speaker, ToolCall, ToolResult, ToolStatus
from watchfloor.words import OptionKind

NOTIFICATION: Final = "Runtime notification:"
CLARIFICATION: Final = "Clarification needed: "
SELECTED: Final = "Selected response: "
HIDDEN: Final = frozenset({"Tool result hidden", "Tool error hidden", "Tool output hidden"})
"""What newer servers say live instead of what a tool said; the history has it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One fact of the history. `kind` and `what` are what a live event of the same fact would be known by."""

    event: Event
    kind: str
    what: str


def entries(messages: Sequence[Json], *, ours: dict[str, str], open_call: str | None) -> Iterator[Entry]:
    """The facts in some stored messages, in order. `ours`: ids of messages that were sent from here.

    The answer of a tool call that still waits for a decision (`open_call`) is not there yet.
    """
    for message in messages:
        id, at = text(message, "id") or "", millis(message, "created_at") or 0
        match text(message, "role"):
            case "user":
                said = text(message, "content") or ""
                yield Entry(Message(at=at, role=speaker(said, ours=id in ours), text=said, key=f"m/{id}"), "user", id)
            case "assistant":
                yield from _assistant(message, id, at)
            case "tool" if (event := _result(message, id, at, open_call)) is not None:
                yield Entry(event, "result", event.call)
            case _:
                # The program's own prompts are no part of what anybody said.
                pass


def speaker(said: str, *, ours: bool) -> Speaker:
    """Who says this in the user's role: parents are woken by notices of the program."""
    if ours:
        return Speaker.OPERATOR
    return Speaker.SYSTEM if said.startswith(NOTIFICATION) else Speaker.USER


def _assistant(message: Json, id: str, at: int) -> Iterator[Entry]:
    if thought := text(message, "reasoning"):
        yield Entry(Reasoning(at=at, text=thought, key=f"m/{id}/thought"), "thought", thought)
    if said := text(message, "content"):
        cut = flag(message, "metadata", "interrupted") is True
        yield Entry(Message(at=at, text=said, cut=cut, key=f"m/{id}"), "text", said)
    for number_, call in enumerate(each(message, "tool_calls")):
        call_id, name = text(call, "id") or "", text(call, "function", "name") or "?"
        event = call_event(at, call_id, name, _parsed(text(call, "function", "arguments")), f"m/{id}/call/{number_}")
        yield Entry(event, "call", call_id)


def _parsed(arguments: str | None) -> object:
    try:
        return json.loads(arguments) if arguments else None
    except (ValueError, RecursionError):
        return arguments


def call_event(at: int, call: str, name: str, arguments: object, key: str) -> ToolCall:
    """A tool call; a shell command is its exact text."""
    rest = {}
    for argument in ("command", "cmd"):
        if (line := text(arguments, argument)) is not None:
            rest["text"] = line
            break
    return ToolCall.model_validate({"at": at, "call": call, "name": name, "arguments": arguments, "key": key, **rest})


def _result(message: Json, id: str, at: int, open_call: str | None) -> ToolResult | None:
    call, said = text(message, "tool_call_id") or "", text(message, "content") or ""
    receipt = part(message, "metadata", "permission_decision_receipt", "decision")
    decision = text(receipt, "decision") or ""
    decided_at = millis(message, "metadata", "permission_decision_receipt", "decided_at")
    if call == open_call or is_question(said) or (part(message, "metadata", "permission_request") and not decision):
        return None
    status = ToolStatus.OK if flag(message, "tool_success") is not False else ToolStatus.ERROR
    if said.startswith(SELECTED):
        if decision.startswith("allow"):
            # Allowed, and not carried out yet: what it said takes this place when it was.
            return None
        if decision.startswith("deny"):
            # The message is of the moment in which it was asked.
            status, at = ToolStatus.DECLINED, decided_at or at
    return ToolResult.model_validate(
        {
            "at": at,
            "call": call,
            "status": status,
            "text": said,
            "key": f"m/{id}",
            "duration_ms": number(message, "metadata", "elapsed_ms"),
        }
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody chose: an option of a permission, or words."""

    option: str | None
    kind: OptionKind
    words: str | None
    at: int | None

    @property
    def chosen(self) -> str:
        return self.option if self.option is not None else self.words or ""


def choice_in(messages: Sequence[Json], call: str, generation: str | None, *, permission: bool) -> Choice | None:
    """What was decided on a tool call that waited; None where the messages do not say it (yet)."""
    message = next((one for one in reversed(messages) if text(one, "tool_call_id") == call), None)
    receipt = part(message, "metadata", "permission_decision_receipt")
    made = part(receipt, "decision")
    if generation is not None and text(made, "request_generation") not in (None, generation):
        return None
    if (choice := choice_of(made, millis(receipt, "decided_at"))) is not None:
        return choice
    said = text(message, "content") or ""
    if not said.startswith(SELECTED):
        return None
    words = said.removeprefix(SELECTED)
    if not permission:
        return Choice(None, OptionKind.ANSWER, words, None)
    return Choice(words, OptionKind.DENY if words.casefold() == "deny" else OptionKind.ALLOW, None, None)


def given_to(messages: Sequence[Json], call: str) -> Json:
    """The arguments of a tool call, an empty object where the messages do not have it."""
    for message in reversed(messages):
        for made in each(message, "tool_calls"):
            if text(made, "id") == call:
                return part(_parsed(text(made, "function", "arguments")))
    return {}


def choice_of(made: Json, at: int | None) -> Choice | None:
    """What a decision on a permission chose, as the server records it."""
    decision, matcher = text(made, "decision"), text(made, "matcher_id")
    if not decision:
        return None
    kind = OptionKind.ALLOW if decision.startswith("allow") else OptionKind.DENY
    return Choice(f"{decision}:{matcher}" if matcher else decision, kind, None, at)


def is_question(said: str) -> bool:
    """Is what a tool said a question to a person, in one of the forms that the agent and the server give it?

    It stands in the tool's place until the answer does, for a moment longer than the question is open.
    """
    if said.startswith(CLARIFICATION):
        return True
    if not said.startswith("{"):
        return False
    found = _parsed(said)
    asks = text(found, "type") == "NeedClarification" or text(found, "status") == "awaiting_user_input"
    return asks or bool(part(found, "permission_request") and texts(found, "options"))


def unknown_to(session: Session, found: Sequence[Entry]) -> list[Entry]:
    """The entries that nobody was told of yet, in order; all of them count as told from now on.

    Live events carry no message ids, so what was told live is recognised by what it says, the newest first.
    """
    told, new = session.told, []
    for entry in reversed(found):
        key = entry.event.key or ""
        if key in session.known:
            continue
        session.known.add(key)
        if not _was_told(told, entry):
            new.append(entry)
    return new[::-1]


def _was_told(told: Told, entry: Entry) -> bool:
    match entry.kind:
        case "text" | "thought":
            texts = told.texts if entry.kind == "text" else told.thoughts
            if entry.what in texts:
                texts.reverse()
                texts.remove(entry.what)
                texts.reverse()
                return True
        case "call" | "result":
            counted = told.calls if entry.kind == "call" else told.results
            if counted[entry.what] > 0:
                counted[entry.what] -= 1
                return True
        case _:
            pass
    return False


def cursor_of(messages: Sequence[Json], open_call: str | None) -> str | None:
    """The newest message up to which nothing can change any more: an answer of a tool that waits is replaced later."""
    cursor: str | None = None
    for message in messages:
        if text(message, "role") == "tool":
            decision = text(message, "metadata", "permission_decision_receipt", "decision", "decision")
            waits = bool(part(message, "metadata", "permission_request")) and decision is None
            allowed = (text(message, "content") or "").startswith(SELECTED) and (decision or "").startswith("allow")
            asks = is_question(text(message, "content") or "")
            if asks or waits or allowed or text(message, "tool_call_id") == open_call:
                break
        cursor = text(message, "id") or cursor
    return cursor
