"""What a session's channel tells of its run as it happens: words, tool calls, plans, tokens."""

from __future__ import annotations

from typing import Final

from console.connectors.bamboo.history import HIDDEN, call_event, is_question
from console.connectors.bamboo.showing import context
from console.connectors.bamboo.state import Session
from console.connectors.web.reading import Json, each, flag, number, part, text
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import (
    Child,
    Event,
    Level,
    Message,
    Notice,
    Plan,
    PlanStep,
    Raw,
    Reasoning,
    ToolOutput,
    ToolResult,
    ToolStatus,
)

GATES: Final = frozenset({"request_permissions", "conclusion_with_options"})
"""What a tool's "result" is shown as where it is a question to a person, and no result."""
_STEP: Final = {"pending": "open", "in_progress": "running", "completed": "done", "blocked": "blocked"}
_SILENT: Final = frozenset(
    {
        "runner_progress",
        "hook_lifecycle",
        "notification",
        "sub_agent_heartbeat",
        "sub_agent_event",
        "task_evaluation_started",
        "task_evaluation_completed",
        "task_evaluation_cancelled",
        "gold_evaluation_started",
        "context_compression_status",
        "session_history_committed",
        "permission_posture_activated",
        "visible_message_start",
        "visible_message_discard",
    }
)
"""What says nothing that an operator would miss."""


class Talk:
    """Tells the mirror what a channel says. `hidden`: something was said that only the history holds."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def take(self, session: Session, event: Json) -> bool:
        """One event of a run. True where the history has to be asked for what this event hides."""
        kind = text(event, "type") or ""
        match kind:
            case "token":
                self._word(session, text(event, "content") or "")
            case "reasoning_token":
                self._thought(session, text(event, "content") or "")
            case "tool_start":
                self._call(session, event)
            case "tool_token":
                return self._output(session, event)
            case "tool_lifecycle":
                self._lifecycle(session, event)
            case "tool_complete" | "tool_error":
                return self._result(session, event, failed=kind == "tool_error")
            case "task_list_updated":
                self.tasks(session, part(event, "task_list"), number(event, "version"))
            case "task_list_item_progress":
                self._task(session, event)
            case "token_budget_updated":
                self._budget(session, part(event, "usage"))
            case "complete" | "cancelled" | "error":
                self.end(session, cut=kind != "complete")
            case _ if kind in _SILENT:
                if kind == "runner_progress":
                    self.pause(session)
            case _:
                self._told(session, kind, event)
        return False

    # --- words

    def _item(self, session: Session, of: str) -> str:
        return f"{session.channel_run or 'run'}/{session.item}/{of}"

    def _word(self, session: Session, content: str) -> None:
        if content:
            self._end_thought(session)
            session.text += content
            self._mirror.stream(session.id, self._item(session, "text"), "message", content)

    def _thought(self, session: Session, content: str) -> None:
        if content:
            self._end_text(session)
            session.thought += content
            self._mirror.stream(session.id, self._item(session, "thought"), "reasoning", content)

    def _end_text(self, session: Session, *, cut: bool = False) -> None:
        if session.text:
            said, session.text = session.text, ""
            session.told.texts.append(said)
            cut = cut or session.partial
            self._mirror.emit(session.id, Message(at=0, item=self._item(session, "text"), text=said, cut=cut))
            session.item, session.partial = session.item + 1, False

    def _end_thought(self, session: Session, *, cut: bool = False) -> None:
        if session.thought:
            thought, session.thought = session.thought, ""
            session.told.thoughts.append(thought)
            cut = cut or session.partial
            self._mirror.emit(session.id, Reasoning(at=0, item=self._item(session, "thought"), text=thought, cut=cut))
            session.item, session.partial = session.item + 1, False

    def pause(self, session: Session, *, cut: bool = False) -> None:
        """What was being said is said."""
        self._end_thought(session, cut=cut)
        self._end_text(session, cut=cut)
        session.partial = False

    def end(self, session: Session, *, cut: bool) -> None:
        """The run is over, or its channel is."""
        self.pause(session, cut=cut)
        session.in_flight.clear()

    def lost(self, session: Session) -> None:
        """Some of what was said did not come: what is there ends where it stands, and counts as not told."""
        session.text = session.thought = ""
        session.item += 1
        self._mirror.cut_streams(session.id)

    # --- tools

    def _call(self, session: Session, event: Json) -> None:
        self.pause(session)
        call, name = text(event, "tool_call_id") or "", text(event, "tool_name") or "?"
        key = f"live/{session.channel_run}/call/{call}"
        self._mirror.emit(session.id, call_event(0, call, name, event.get("arguments"), key))
        session.told.calls[call] += 1
        session.in_flight[call] = (name, self._mirror.now())

    def _lifecycle(self, session: Session, event: Json) -> None:
        call = text(event, "tool_call_id") or ""
        if text(event, "phase") == "begin":
            name = text(event, "tool_name") or "?"
            kept = session.in_flight.get(call, (name, self._mirror.now()))
            session.in_flight[call] = kept
        else:
            session.in_flight.pop(call, None)

    def _output(self, session: Session, event: Json) -> bool:
        call, content = text(event, "tool_call_id"), text(event, "content") or ""
        if content in HIDDEN:
            return False
        self._mirror.emit(session.id, ToolOutput.model_validate({"at": 0, "call": call, "text": content}))
        return False

    def _result(self, session: Session, event: Json, *, failed: bool) -> bool:
        call = text(event, "tool_call_id") or ""
        session.in_flight.pop(call, None)
        said = text(event, "error") if failed else text(event, "result", "result")
        if (said or "") in HIDDEN:
            return True
        if not failed and (text(event, "result", "display_preference") in GATES or is_question(said or "")):
            return False
        ok = not failed and flag(event, "result", "success") is not False
        status = ToolStatus.OK if ok else ToolStatus.ERROR
        self._mirror.emit(session.id, ToolResult(at=0, call=call, status=status, text=said or ""))
        session.told.results[call] += 1
        return False

    # --- plans and tokens

    def tasks(self, session: Session, listed: Json, version: int | None = None) -> None:
        """The whole list of tasks, from an event or asked for."""
        version = version or number(listed, "version")
        if version is not None and version < session.plan_version:
            return
        session.plan_version = version or session.plan_version
        steps = {
            text(item, "id") or str(at): PlanStep(text=text(item, "description") or "", status=_status(item))
            for at, item in enumerate(each(listed, "items"))
        }
        session.tasks = steps
        self._plan(session)

    def _task(self, session: Session, event: Json) -> None:
        id, item = text(event, "item_id") or "", part(event, "item")
        version = number(event, "version")
        if version is not None and version < session.plan_version:
            return
        session.plan_version = version or session.plan_version
        known = session.tasks.get(id)
        words = text(item, "description") or (known.text if known is not None else None)
        if words is not None:
            session.tasks[id] = PlanStep(text=words, status=_status(event))
            self._plan(session)

    def _plan(self, session: Session) -> None:
        steps = tuple(session.tasks.values())
        if steps != session.plan:
            session.plan = steps
            self._mirror.emit(session.id, Plan(at=0, steps=steps))

    def _budget(self, session: Session, usage: Json) -> None:
        session.context = context(usage) or session.context
        if not (session.text or session.thought):
            # It is told before and after the model speaks.
            session.partial = False

    # --- what happens besides

    def _told(self, session: Session, kind: str, event: Json) -> None:
        told = told_of(session, kind, event)
        if told is not None:
            self._mirror.emit(session.id, told)


def told_of(session: Session, kind: str, event: Json) -> Event | None:
    """An event that is a fact of its own. None for what is told elsewhere or says nothing."""
    match kind:
        case "sub_agent_started":
            child = text(event, "child_session_id") or ""
            return Child(
                at=0, session=child, name=text(event, "title") or "", key=f"child/{child}/{session.channel_run}"
            )
        case "sub_agent_completed":
            child, state = text(event, "child_session_id") or "", text(event, "status") or "ended"
            return Child(at=0, session=child, state=state, key=f"child/{child}/{state}/{session.channel_run}")
        case "context_pressure_notification":
            level = Level.ERROR if text(event, "level") == "critical" else Level.WARNING
            return Notice(at=0, level=level, code="context", text=text(event, "message") or "the context fills up")
        case "context_summarized" | "context_archived":
            return Notice(at=0, code="context", text="the older part of the conversation was summed up")
        case "budget_exceeded":
            limit, actual = number(event, "limit"), number(event, "actual")
            words = f"the limit {text(event, 'kind') or '?'} is reached: {actual} of {limit}"
            return Notice(at=0, level=Level.WARNING, code="budget", text=words)
        case "plan_mode_entered" | "plan_mode_exited":
            words = "plan mode begins" if kind.endswith("entered") else "plan mode is over"
            return Notice(at=0, code="plan_mode", text=words, key=f"{kind}/{session.channel_run}")
        case "execution_started" | "message_appended" | "need_clarification" | "tool_approval_requested":
            return None
        case _ if kind.startswith(("session_", "child_approval_", "task_list_", "plan_file_", "config", "project_")):
            return None
        case "":
            return Raw(at=0, data=dict(event), note="an event of no kind")
        case _:
            return Raw(at=0, data=dict(event), note=f"an event of the kind {kind}")


def _status(item: Json) -> str:
    status = text(item, "status") or "pending"
    return _STEP.get(status, status)
