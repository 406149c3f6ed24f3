"""What an agent of the Agent Client Protocol tells, as events. No I/O and no clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any, Final, Literal

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    ContentToolCallContent,
    CurrentModeUpdate,
    EmbeddedResourceContentBlock,
    FileEditToolCallContent,
    ResourceContentBlock,
    SessionInfoUpdate,
    SessionNotification,
    TextContentBlock,
    TextResourceContents,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    UserMessageChunk,
)
from pydantic import ValidationError

from watchfloor.errors import CanonicalError
from watchfloor.harness.calls import MAX_TEXT, new_id, plain, sound
from watchfloor.protocol.events import (
    Diff,
    Event,
    Message,
    Notice,
    Plan,
    PlanStep,
    Progress,
    Raw,
    Reasoning,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStatus,
)
from watchfloor.protocol.given import given
from watchfloor.words import StopReason

Told = ToolCallStart | ToolCallProgress | ToolCallUpdate
Of = Literal["message", "reasoning"]

STOP_REASONS: Final = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.LIMIT_REACHED,
    "max_turn_requests": StopReason.LIMIT_REACHED,
    "refusal": StopReason.OTHER,
    "cancelled": StopReason.CANCELLED,
}
MOST_CALLS: Final = 1000
"""Calls of one turn that are kept in mind; of further ones only the end is told."""
MOST_PIECE: Final = 256 * 1024
"""Most characters of one message or thought; what is longer goes on as another one."""
_MOST_NAME = 200
_MOST_DIFFED = 200_000
_MOST_RAW = 8 * 1024
_STATES = {"pending": "open", "in_progress": "running", "completed": "done"}


def stop_reason(word: str | None) -> StopReason:
    """The agent's stop reason in our vocabulary; what we do not know is "other"."""
    return STOP_REASONS.get(word or "", StopReason.OTHER)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a streamed item, whose whole follows as an event with the same item."""

    item: str
    of: Of
    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """A call begins to run, or ends."""

    call: str
    name: str
    begins: bool


Emission = Event | Piece | Work


@dataclass(slots=True)
class Call:
    """What is known of a tool call."""

    name: str = "tool"
    kind: str | None = None
    arguments: Any = None
    diffs: dict[str, str] = field(default_factory=dict)
    shown: str = ""
    running: bool = False
    declined: bool = False
    """An operator has denied it."""

    @property
    def command(self) -> str | None:
        """The exact command line, where the agent gave one."""
        if self.kind != "execute" or not isinstance(self.arguments, dict):
            return None
        command = self.arguments.get("command")
        return command if isinstance(command, str) else None

    def learn(self, told: Told) -> None:
        if told.title:
            self.name = " ".join(sound(told.title).split())[:_MOST_NAME] or self.name
        if told.kind:
            self.kind = told.kind
        if told.raw_input is not None:
            self.arguments = as_json(told.raw_input)


class Updates:
    """Translates the updates of one turn."""

    def __init__(self) -> None:
        self.said = ""
        """The last message."""
        self.calls: dict[str, Call] = {}
        self._item = ""
        self._of: Of = "message"
        self._message: str | None = None
        self._parts: list[str] = []
        self._length = 0

    def take(self, params: object, session: str) -> Iterator[Emission]:
        """The events of one `session/update` of this session."""
        try:
            told = SessionNotification.model_validate(params)
        except (ValidationError, RecursionError):
            yield raw(params, "an update of another kind or form than this client knows")
            return
        if told.session_id != session:
            yield raw(params, "an update of another session")
            return
        match update := told.update:
            case AgentMessageChunk():
                yield from self._chunk("message", update.message_id, update.content)
            case AgentThoughtChunk():
                yield from self._chunk("reasoning", update.message_id, update.content)
            case ToolCallStart() | ToolCallProgress():
                yield from self.close()
                yield from self._call(update)
            case AgentPlanUpdate(entries=entries):
                yield from self.close()
                steps = (PlanStep(text=sound(e.content), status=_STATES.get(e.status, e.status)) for e in entries)
                yield Plan(at=0, steps=tuple(steps))
            case UsageUpdate(used=used, size=size):
                yield Progress(at=0, note=f"{used} of {size} tokens of context")
            case CurrentModeUpdate(current_mode_id=mode):
                yield Notice(at=0, code="mode", text=sound(f"the agent is in the mode {mode[:_MOST_NAME]}"))
            case UserMessageChunk() | AvailableCommandsUpdate() | ConfigOptionUpdate() | SessionInfoUpdate():
                return  # our own words, or what has no place here
            case _:
                yield raw(params, "an update that this client did not ask for")

    # --- words

    def _chunk(self, of: Of, message: str | None, content: object) -> Iterator[Emission]:
        if self._parts and (of != self._of or (message and self._message and message != self._message)):
            yield from self.close()
        text = words(content)
        for start in range(0, len(text), MOST_PIECE):
            part = text[start : start + MOST_PIECE]
            if self._length + len(part) > MOST_PIECE:
                yield from self.close()
            if not self._parts:
                self._item, self._of = new_id("item"), of
            self._message = message
            self._parts.append(part)
            self._length += len(part)
            yield Piece(self._item, of, part)

    def close(self, *, cut: bool = False) -> Iterator[Emission]:
        """What was streamed is whole, or (`cut`) ended before it was."""
        if not self._parts:
            return
        text, self._parts, self._length, self._message = "".join(self._parts), [], 0, None
        if self._of == "message":
            self.said = text
            yield Message(at=0, item=self._item, text=text, cut=cut)
        else:
            yield Reasoning(at=0, item=self._item, text=text, cut=cut)

    # --- calls

    def learn(self, told: Told) -> Call:
        """What is known of a call, with what was told of it now. The call itself is not announced by that."""
        call = self.calls.get(told.tool_call_id) or Call()
        call.learn(told)
        return call

    def _call(self, told: Told) -> Iterator[Emission]:
        id = told.tool_call_id
        if id not in self.calls:
            yield from self.announce(told)
        call = self.calls.get(id) or self.learn(told)
        call.learn(told)
        if told.status == "in_progress" and not call.running and id in self.calls:
            call.running = True
            yield Work(id, call.name, begins=True)
        ended = told.status in ("completed", "failed")
        text = _output(told)
        if text is not None and not ended:
            fresh = text.removeprefix(call.shown)
            call.shown = text
            if fresh:
                yield ToolOutput(at=0, call=id, text=sound(fresh[:MAX_TEXT]), cut=len(fresh) > MAX_TEXT)
        yield from self._diffs(told, id, call)
        if ended:
            if text is None:
                text = _value(told.raw_output)
            yield from self._end(id, call, ToolStatus.OK if told.status == "completed" else ToolStatus.ERROR, text)

    def announce(self, told: Told, *, gated: bool = False) -> Iterator[Emission]:
        """The call, unless it was announced before."""
        id = told.tool_call_id
        if id in self.calls or len(self.calls) >= MOST_CALLS:
            return
        call = self.calls[id] = self.learn(told)
        more = given(arguments=call.arguments, text=call.command)
        yield ToolCall(at=0, call=id, name=call.name, gated=gated, **more)

    def _diffs(self, told: Told, id: str, call: Call) -> Iterator[Emission]:
        for path, (text, _) in diffs(told).items():
            if call.diffs.get(path) != text:
                call.diffs[path] = text
                yield Diff(at=0, path=path, text=text, call=id)

    def _end(self, id: str, call: Call, status: ToolStatus, text: str) -> Iterator[Emission]:
        self.calls.pop(id, None)
        if call.declined and status is not ToolStatus.OK:
            status = ToolStatus.DECLINED
        if call.running:
            yield Work(id, call.name, begins=False)
        fresh = text.removeprefix(call.shown)
        yield ToolResult(at=0, call=id, status=status, text=sound(fresh[:MAX_TEXT]), cut=len(fresh) > MAX_TEXT)

    def end(self, status: ToolStatus, *, cut: bool = False) -> Iterator[Emission]:
        """The turn is over: nothing more is heard of what is open. `status`: what became of its calls."""
        yield from self.close(cut=cut)
        for id, call in list(self.calls.items()):
            yield from self._end(id, call, status, call.shown)


def words(content: object) -> str:
    """A block of content as text; what is no text is named."""
    match content:
        case TextContentBlock(text=text):
            return sound(text)
        case ResourceContentBlock(name=name, uri=uri):
            return sound(f"[{name}: {uri}]")
        case EmbeddedResourceContentBlock(resource=resource):
            return sound(resource.text if isinstance(resource, TextResourceContents) else f"[{resource.uri}]")
        case _:
            return f"[{getattr(content, 'type', 'content')}]"


def _output(told: Told) -> str | None:
    """The whole of what a call shows; None where nothing was told."""
    parts = [words(item.content) for item in told.content or () if isinstance(item, ContentToolCallContent)]
    return "\n".join(parts) if parts else None


def _value(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def diffs(told: Told) -> dict[str, tuple[str, bool]]:
    """What a call changes, by path: a unified diff, and whether it is whole."""
    found: dict[str, tuple[str, bool]] = {}
    for item in told.content or ():
        if isinstance(item, FileEditToolCallContent):
            old, new, path = item.old_text or "", item.new_text, sound(item.path)
            if len(old) + len(new) > _MOST_DIFFED:
                found[path] = ("the change is too large to be shown", False)
                continue
            lines = unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
            found[path] = (sound("\n".join(lines)), True)
    return found


def as_json(value: object) -> Any:
    """A copy that can be bound to; text where the value has no canonical form."""
    try:
        return plain(value)
    except (CanonicalError, RecursionError):
        return sound(str(value)[:MAX_TEXT])


def raw(data: object, note: str) -> Raw:
    """What could not be put in better words, as it came unless that is too much."""
    try:
        text = json.dumps(data, ensure_ascii=False)
        text.encode()
        data = data if len(text) <= _MOST_RAW else text[:_MOST_RAW]
    except (ValueError, RecursionError):
        data = None
    return Raw(at=0, data=data, note=note)  # type: ignore[arg-type]  # it came as JSON


def explained(told: Told) -> str | None:
    """The agent's own words on a call."""
    text = _output(told)
    return text[:_MOST_RAW] if text else None
