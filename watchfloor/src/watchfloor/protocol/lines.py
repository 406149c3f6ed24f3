"""Events and actions in one line, for rosters, logs and lists. Nothing here is cleaned: that is for who shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Final

from pydantic import BaseModel, JsonValue

from watchfloor.protocol.events import (
    Child,
    Diff,
    Intervention,
    LifecycleChanged,
    Mail,
    Message,
    Notice,
    Plan,
    Progress,
    Reasoning,
    RequestOpened,
    RequestResolved,
    Reseeded,
    ResultEvent,
    ToolCall,
    ToolOutput,
    ToolResult,
)
from watchfloor.words import DECIDED, OptionKind, RequestState, verb

LINE: Final = 120
"""Code points of the line that tells of an event."""
ARGUMENTS: Final = 4_096
"""Code points of arguments that come into a line."""

_WRITTEN: Final = json.JSONEncoder(ensure_ascii=False)
_FEW: Final = 16
"""Numbers of a list that are written out here."""


def event_line(event: BaseModel) -> str:
    """One line of at most 120 code points that tells what the event says; for `last` and for logs."""
    match event:
        case Message(text=text) | Reasoning(text=text) | Notice(text=text) | ToolOutput(text=text):
            line = text
        case ToolCall(name=name, text=text, arguments=arguments):
            line = f"{name}  {action_line(text, arguments)}"
        case ToolResult(status=status, text=text):
            line = f"{status.value}  {text}"
        case RequestOpened(text=text, request=request):
            line = f"asks  {text or request}"
        case RequestResolved():
            line = resolved_line(event)
        case LifecycleChanged(why=why):
            line = f"{state_word(event)}  {why or ''}"
        case ResultEvent(result=result):
            line = result.final_message or result.text or result.stop_reason.value
        case Progress(note=note):
            line = note or ""
        case Intervention(primitive=primitive, option_kind=kind, by=by, outcome=outcome):
            line = f"{verb(primitive, kind)} by {by}: {outcome.value}"
        case Mail(ref=ref, state=state, text=text):
            line = f"{ref} {state.value}  {text or ''}"
        case Child(name=name, session=session, state=state):
            line = f"{name or session} {state}"
        case Diff(path=path):
            line = path
        case Reseeded(mode=mode):
            line = f"reseeded ({mode.value})"
        case Plan(steps=steps):
            line = f"{sum(1 for s in steps if s.status == 'done')} of {len(steps)} done"
        case _:
            line = ""
    return " ".join(line.split())[:LINE]


def resolved_line(event: RequestResolved) -> str:
    """How a request ended, by whom, and what they said or answered. Line breaks of a note stay."""
    by = f" by {event.by}" if event.by else ""
    if event.state is not RequestState.RESOLVED:
        said = [event.state.value + by, event.why, event.note]
    elif event.option_kind is OptionKind.ANSWER:
        answer = event.note or event.option
        if answer and '"' not in answer:
            return f'answered "{answer}"{by}'
        said = [f"answered{by}", answer]
    else:
        said = [DECIDED[event.option_kind] + by, event.why, event.note]
    return ": ".join(words for words in said if words)


def state_word(event: LifecycleChanged) -> str:
    """The state, or the change that is on its way with the state that still holds: "pausing (running)"."""
    state = event.lifecycle.value
    return state if event.pending is None else f"{event.pending.value} ({state})"


def action_line(text: str | None, arguments: JsonValue) -> str:
    """What a tool is called with. Where there is a text and arguments as well, neither hides behind the other."""
    return "  ".join(part for part in (text, arguments_line(arguments)) if part)


def arguments_line(arguments: JsonValue) -> str:
    """Arguments as `name: value, name: value`, at most `ARGUMENTS` code points; line breaks are not removed.

    A text stands as it is unless it could be taken for more than one value: then it is written as in JSON.
    """
    match arguments:
        case None:
            return ""
        case str():
            line = arguments
        case dict():
            line = _joined(arguments)
        case _:
            line = _json(arguments)
    return line if len(line) <= ARGUMENTS else f"{line[: ARGUMENTS - 1]}…"


def _joined(arguments: Mapping[str, JsonValue]) -> str:
    pairs: list[str] = []
    size = 0
    for name, value in arguments.items():
        pair = f"{_word(name)}: {_word(value) if isinstance(value, str) else _json(value)}"
        pairs.append(pair)
        size += len(pair)
        if size > ARGUMENTS:
            break  # what follows is cut off anyway
    return ", ".join(pairs)


def _word(text: str) -> str:
    # What is cut off anyway is not written first.
    if len(text) > ARGUMENTS:
        text = text[: ARGUMENTS + 1]
    quotes = '"' in text
    if text and not (quotes or ", " in text or ": " in text) and text == text.strip():
        return text
    # Where nothing has to be escaped there is only to be quoted.
    return encode_basestring(text) if quotes or "\\" in text or not text.isprintable() else f'"{text}"'


def _json(value: JsonValue) -> str:
    # An encoder makes itself ready for what may be nested: for most arguments that takes longer than writing them.
    if value is None:
        return "null"
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return int.__repr__(value)
    if isinstance(value, list) and len(value) <= _FEW and all(type(one) is int for one in value):
        return f"[{', '.join(map(int.__repr__, value))}]"
    return _WRITTEN.encode(value)
