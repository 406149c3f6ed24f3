"""The items of a thread as events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from console.connectors.codex.changes import brief, diff_of, path_of
from console.connectors.web.reading import Json, each, flag, number, part, text, texts
from watchfloor.protocol.events import (
    Child,
    Diff,
    Event,
    Message,
    Notice,
    Raw,
    Reasoning,
    Reseeded,
    Speaker,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStatus,
)
from watchfloor.words import ReseedMode

COMMAND: Final = "commandExecution"
FILES: Final = "fileChange"
MCP: Final = "mcpToolCall"
COMPACTION: Final = "contextCompaction"
USER: Final = "userMessage"
_CALLS: Final = frozenset(
    {
        COMMAND,
        FILES,
        MCP,
        "dynamicToolCall",
        "collabAgentToolCall",
        "webSearch",
        "imageView",
        "imageGeneration",
        "sleep",
    }
)
_STATUS: Final = {
    "completed": ToolStatus.OK,
    "failed": ToolStatus.ERROR,
    "declined": ToolStatus.DECLINED,
    "interrupted": ToolStatus.CANCELLED,
}
_REJECTED: Final = frozenset({"user rejected MCP tool call", "user cancelled MCP tool call"})
"""How the server words that a tool of an MCP server was not allowed: its status is then a plain "failed"."""


def kind_of(item: Json) -> str:
    return text(item, "type") or ""


def id_of(item: Json) -> str:
    return text(item, "id") or ""


def is_work(item: Json) -> bool:
    """Is it something that is in flight while it has not ended?"""
    return kind_of(item) in _CALLS or kind_of(item) == COMPACTION


def is_call(item: Json) -> bool:
    return kind_of(item) in _CALLS


def ran(item: Json) -> bool | None:
    """Did a call that has ended run? None where neither that nor a refusal shows."""
    status = text(item, "status")
    if status == "declined" or text(item, "error", "message") in _REJECTED:
        return False
    if kind_of(item) == COMMAND and status == "failed":
        # An answer that the server cannot read ends a command as failed, and without ever having run.
        return True if number(item, "exitCode") is not None else None
    return True if status in ("completed", "failed") else None


def name_of(item: Json) -> str:
    """What a piece of work is called, in a few words."""
    match kind_of(item):
        case "commandExecution":
            return text(item, "command") or "a command"
        case "contextCompaction":
            return "compaction"
        case _:
            return _tool(item)


def output_item(item_id: str) -> str:
    """The streamed output of a command, apart from the command."""
    return f"{item_id}/output"


def begun(item: Json, turn: str, at: int) -> list[Event]:
    """The events that tell that an item has begun."""
    if not is_call(item):
        return []
    call = ToolCall(at=at, call=id_of(item), name=_tool(item), **_asked_for(item))
    return _keyed([call], item, turn, "begun")


def ended(item: Json, turn: str, at: int, *, ours: bool = False) -> list[Event]:
    """The events that tell of an item that is whole. `ours`: a message that went through this connector."""
    return _keyed(list(_ended(item, at, ours)), item, turn, "ended")


def told_by(item: Json, turn: str) -> str:
    """The key of the first event that tells that an item is whole."""
    return f"{turn}/{id_of(item)}/ended/0"


def cut(item: Json, turn: str, at: int, status: ToolStatus, why: str) -> list[Event]:
    """The events for a call of which no end will be told."""
    if not is_call(item):
        return []
    return _keyed([ToolResult(at=at, call=id_of(item), status=status, text=why, cut=True)], item, turn, "cut")


def _keyed(events: list[Event], item: Json, turn: str, what: str) -> list[Event]:
    base = f"{turn}/{id_of(item)}/{what}"
    return [event.model_copy(update={"key": f"{base}/{n}", "turn": turn}) for n, event in enumerate(events)]


def _ended(item: Json, at: int, ours: bool) -> Iterator[Event]:
    id, kind = id_of(item), kind_of(item)
    match kind:
        case "userMessage":
            yield Message(at=at, role=Speaker.OPERATOR if ours else Speaker.USER, text=said(item))
        case "agentMessage":
            yield Message(at=at, item=id, text=_with_questions(item))
        case "plan":
            yield Message(at=at, item=id, text=text(item, "text") or "")
        case "reasoning":
            parts = texts(item, "summary") or texts(item, "content")
            if parts:
                yield Reasoning(at=at, item=id, text="\n\n".join(parts))
        case "hookPrompt":
            yield Message(at=at, role=Speaker.SYSTEM, text="\n".join(_fragments(item)))
        case "contextCompaction":
            yield Reseeded(at=at, mode=ReseedMode.COMPACT)
        case "enteredReviewMode":
            yield Notice(at=at, code="review", text=f"a review begins: {text(item, 'review') or ''}".rstrip(": "))
        case "exitedReviewMode":
            yield Message(at=at, text=text(item, "review") or "the review is over")
        case "subAgentActivity":
            name = text(item, "agentPath") or ""
            yield Child(at=at, session=text(item, "agentThreadId") or "", name=name, state=text(item, "kind") or "")
        case "functionCallOutput":
            output = item.get("output")
            shown = output if isinstance(output, str) else _json(output)
            yield ToolOutput(at=at, call=id, text=f"{text(item, 'name') or ''}: {shown}")
        case _ if kind in _CALLS:
            yield from _results(item, at)
        case _:
            yield Raw(at=at, data=_plain(item), note=f"an item of the kind {kind or 'that is not named'}")


def _results(item: Json, at: int) -> Iterator[Event]:
    id = id_of(item)
    status = _STATUS.get(text(item, "status") or "completed", ToolStatus.UNKNOWN)
    details: dict[str, Any] = {}
    if (duration := number(item, "durationMs")) is not None:
        details["duration_ms"] = duration
    match kind_of(item):
        case "commandExecution":
            output = text(item, "aggregatedOutput")
            # An empty one closes what was streamed all the same.
            if output is not None:
                yield ToolOutput(at=at, item=output_item(id), call=id, text=output)
            if (code := number(item, "exitCode")) is not None:
                details["exit_code"] = code
        case "fileChange":
            if status is ToolStatus.OK:
                for change in each(item, "changes"):
                    yield Diff(at=at, path=path_of(change), text=diff_of(change), call=id)
        case "mcpToolCall":
            fault = text(item, "error", "message")
            if fault is not None:
                details["text"] = fault
                status = ToolStatus.DECLINED if fault in _REJECTED else status
            if answer := _content(part(item, "result").get("content")):
                yield ToolOutput(at=at, call=id, text=answer)
        case "dynamicToolCall":
            if answer := _content(item.get("contentItems")):
                yield ToolOutput(at=at, call=id, text=answer)
            if flag(item, "success") is False:
                status = ToolStatus.ERROR
        case "collabAgentToolCall":
            for thread in texts(item, "receiverThreadIds"):
                state = text(item, "agentsStates", thread, "status") or "addressed"
                yield Child(at=at, session=thread, state=state)
        case _:
            pass
    yield ToolResult(at=at, call=id, status=status, **details)


def _tool(item: Json) -> str:
    match kind_of(item):
        case "commandExecution":
            return "operator's command" if text(item, "source") == "userShell" else "command"
        case "fileChange":
            return "change files"
        case "mcpToolCall":
            return f"{text(item, 'server') or '?'}.{text(item, 'tool') or '?'}"
        case "dynamicToolCall":
            space, tool = text(item, "namespace"), text(item, "tool") or "?"
            return f"{space}.{tool}" if space else tool
        case "collabAgentToolCall":
            return text(item, "tool") or "agents"
        case kind:
            return {"webSearch": "web search", "imageView": "view image", "imageGeneration": "make image"}.get(
                kind, kind
            )


def _asked_for(item: Json) -> dict[str, Any]:
    """The arguments of a call, as it can be shown before it runs."""
    match kind_of(item):
        case "commandExecution":
            asked: dict[str, Any] = {"text": text(item, "command") or ""}
            if (cwd := text(item, "cwd")) is not None:
                asked["cwd"] = cwd
            return asked
        case "fileChange":
            return {"arguments": {"changes": [brief(change) for change in each(item, "changes")]}}
        case "mcpToolCall" | "dynamicToolCall":
            return {"arguments": item.get("arguments")}
        case _:
            left_out = {"id", "type", "status", "result", "agentsStates", "startedAtMs", "completedAtMs"}
            return {"arguments": {k: v for k, v in item.items() if k not in left_out and v is not None}}


def said(item: Json) -> str:
    """The text of a user's message; what is no text is named."""
    parts = []
    for content in each(item, "content"):
        kind = text(content, "type") or "something"
        plain = text(content, "text")
        where = text(content, "path") or text(content, "name") or ""
        parts.append(plain if plain is not None else f"[{kind} {where}".rstrip() + "]")
    return "\n".join(parts)


def _with_questions(item: Json) -> str:
    lines = [text(item, "text") or ""]
    for question in each(item, "questions"):
        options = texts(question, "options")
        lines.append(f"? {text(question, 'title') or ''}" + (f" ({' / '.join(options)})" if options else ""))
    return "\n".join(line for line in lines if line)


def _fragments(item: Json) -> list[str]:
    return [text(fragment, "text") or "" for fragment in each(item, "fragments")]


def _content(content: object) -> str:
    """What a tool gave back: its texts, and the rest as JSON."""
    if not isinstance(content, list):
        return ""
    return "\n".join(plain if (plain := text(entry, "text")) is not None else _json(entry) for entry in content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(item: Json) -> dict[str, Any]:
    return dict(item)
