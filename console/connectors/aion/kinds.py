"""The kinds of stored events that need nothing else to be read."""

from __future__ import annotations

from typing import Final

from console.connectors.aion.reading import Json, items, obj, shown, tagged, text
from watchfloor.protocol.events import (
    Event,
    Level,
    Notice,
    Plan,
    Progress,
    Raw,
    Reasoning,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStatus,
)

COMMAND_OUTPUT: Final = "command "
"""Role of what a command of the server wrote: "command stdout"."""
PLAN: Final = "session/update/plan"


def call(kind: Json) -> ToolCall:
    given = kind.get("input")
    command = obj(given).get("command")
    return ToolCall(
        at=0,
        call=text(kind.get("call_id")),
        name=text(kind.get("tool")),
        arguments=given,
        text=command if isinstance(command, str) else None,
    )


def result(kind: Json) -> ToolResult:
    failed = kind.get("is_error")
    status = ToolStatus.ERROR if failed is True else ToolStatus.OK if failed is False else ToolStatus.UNKNOWN
    output = kind.get("output")
    return ToolResult(at=0, call=text(kind.get("call_id")), status=status, text="" if output is None else shown(output))


def output(role: str, said: str) -> ToolOutput:
    stream = role.removeprefix(COMMAND_OUTPUT) if role.startswith(COMMAND_OUTPUT) else "tool"
    return ToolOutput(at=0, text=said, stream=stream)


def stop(reason: Json) -> Notice:
    """A stop ends the agent's turn; the attempt's end is in the workflow's history."""
    why = tagged(reason, "stop")
    more = text(reason.get("message")) or text(reason.get("reason"))
    words = f"the agent stopped: {why or shown(dict(reason))}" + (f" ({more})" if more else "")
    return Notice(at=0, level=Level.ERROR if why == "Error" else Level.INFO, code="stop", text=words)


def reasoning_item(value: Json) -> Json | None:
    """The reasoning item of a `norn` agent in a raw event's value."""
    item = obj(value.get("item"))
    return item if value.get("type") == "reasoning_item" and item else None


def reasoning(item: Json) -> Event:
    """Its summary. The encrypted part is never shown."""
    parts = [text(obj(part).get("text")) for part in items(item.get("summary"))]
    if any(parts):
        return Reasoning(at=0, text="\n".join(part for part in parts if part))
    kept = {name: value for name, value in item.items() if name != "encrypted_content"}
    return Raw(at=0, data=kept, note="reasoning without a summary")


def raw(kind: Json) -> Event:
    """Anything that no kind fits; nothing is left out."""
    source, value = text(kind.get("source")), kind.get("value")
    entries = items(obj(value).get("entries"))
    if source == PLAN and entries:
        steps = ((text(obj(entry).get("content")), text(obj(entry).get("status")) or "open") for entry in entries)
        return Plan.model_validate({"at": 0, "steps": [{"text": what, "status": status} for what, status in steps]})
    return Raw(at=0, data=value, note=source or None)


def unknown(kind: Json) -> Raw:
    return Raw(at=0, data=dict(kind), note=f"aion event of the kind {tagged(kind, 'kind') or 'that it does not say'}")


def counted(note: str, more: int) -> Progress:
    times = "once more" if more == 1 else f"{more} more times"
    return Progress(at=0, note=f"{note} ({times})")
