"""What a stand-in of a bamboo server keeps, and the runs that it plays: those of two lines of the real one.

A run plays the script in the newest user message, as the model server for real programs does (see
`tests/fixtures/bamboo/model.py`): steps with `say`, `think`, `shell`, `call`, `fail` and `gate`. Commands are not
carried out, but noted in `ran`.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.fixtures.bamboo.model import due

Json = dict[str, Any]
OLD_LINE = "2026.9.20"
NEW_LINE = "2026.11.1"
DURABLE = frozenset(
    {
        "execution_started",
        "complete",
        "cancelled",
        "error",
        "need_clarification",
        "tool_approval_requested",
        "sub_agent_started",
        "sub_agent_completed",
        "child_approval_changed",
        "task_list_updated",
        "session_created",
        "session_deleted",
        "session_history_committed",
        "session_title_updated",
        "message_appended",
    }
)
FEED_ONLY = frozenset({"session_created", "session_deleted", "session_title_updated"})
NOTHING: Json = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
PLAN_OPTIONS = ["Approve (Default mode)", "Approve (Accept edits mode)", "Stay in plan mode", "Edit plan first"]
CANCELLED = "Agent execution cancelled by user"


def timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


@dataclass
class FakeSession:
    id: str
    info: Json
    messages: list[Json] = field(default_factory=list)
    inbox: list[Json] = field(default_factory=list)
    """Stored messages that no run has read: the newer line adds them when a run begins."""
    guidance: list[Json] = field(default_factory=list)
    pending: Json | None = None
    decided: Json = field(default_factory=dict)
    """Request id -> the receipt of its decision."""
    run: str | None = None
    last_run: str | None = None
    stopping: bool = False
    """Its run is being ended, and goes on until the tool at work gives way."""
    working: bool = False
    """Something takes its time: a command, or a text that is said slowly."""
    task: asyncio.Task[None] | None = None
    tasks: Json | None = None
    rounds: int = 0
    usage: Json | None = None

    @property
    def over(self) -> bool:
        """It has run, and nothing of it or below it runs or waits."""
        idle = self.run is None and self.pending is None and not self.info["running_child_count"]
        return idle and self.last_run is not None


class World:
    """`tell` is called with (session, event, durable number or None, envelope or None)."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.sessions: dict[str, FakeSession] = {}
        self.journal: list[Json] = []
        self.ran: list[str] = []
        """Commands that were carried out."""
        self.allowed: set[tuple[str, str]] = set()
        self.denied: set[tuple[str, str]] = set()
        self.policy = 0
        self.thinks_s = 0.02
        """Seconds that the model takes for a round."""
        self.gives_way_s = 0.0
        """Seconds until a command gives way to an end of its run."""
        self.gates: dict[str, asyncio.Event] = {}
        self.approvals: list[Json] = []
        self.watching: list[Any] = []
        """Functions that are called with the session's id and an event of its channel, or None at its end; and with
        "" and an envelope of the feed."""

    @property
    def new(self) -> bool:
        return self.line == NEW_LINE

    # --- telling

    def tell(self, session: str, event: Json) -> None:
        kind = event["type"]
        if kind not in FEED_ONLY:
            self._out(session, event)
        if kind in DURABLE and (kind != "session_history_committed" or self.new):
            seq = len(self.journal) + 1
            envelope = {"event": event, "seq": seq, "session_id": session, "ts": timestamp()}
            self.journal.append(envelope)
            self._out("", envelope)

    def _out(self, session: str, what: Json | None) -> None:
        for watching in list(self.watching):
            watching(session, what)

    # --- sessions

    def create(self, title: str = "New Session", id: str | None = None, **more: Any) -> FakeSession:
        id = id or str(uuid.uuid4())
        now = timestamp()
        parent = more.get("parent_session_id")
        info: Json = {
            "id": id,
            "project_id": None,
            "kind": "child" if parent else "root",
            "title": title,
            "title_version": 0,
            "title_generated": True,
            "pinned": False,
            "parent_session_id": None,
            "root_session_id": parent or id,
            "spawn_depth": 1 if parent else 0,
            "model": "gpt-4o-mini",
            "workspace_path": "/work",
            "created_at": now,
            "updated_at": now,
            "last_activity_at": now,
            "message_count": 0,
            "has_attachments": False,
            "is_running": False,
            "has_pending_question": False,
            "running_child_count": 0,
            "subagent_count": 0,
            "bypass_permissions": False,
            "permission_mode": "default",
            "placement": {"kind": "local", "host": "bamboo-host"},
            **more,
        }
        session = self.sessions[id] = FakeSession(id, info)
        self.tell(
            id,
            {
                "type": "session_created",
                "session_id": id,
                "kind": info["kind"],
                "title": title,
                "project_id": None,
                "created_at": now,
            },
        )
        return session

    def summary(self, session: FakeSession) -> Json:
        info = session.info
        info["is_running"] = session.run is not None and not session.stopping
        info["has_pending_question"] = session.pending is not None
        info["message_count"] = len(session.messages)
        return dict(info)

    def delete(self, id: str) -> None:
        for session in [one for one in self.sessions.values() if id in (one.id, one.info["parent_session_id"])]:
            if session.task is not None:
                session.task.cancel()
            del self.sessions[session.id]
            self.tell(session.id, {"type": "session_deleted", "session_id": session.id})

    def add_message(self, session: FakeSession, role: str, content: str, **more: Any) -> Json:
        message = {"id": str(uuid.uuid4()), "role": role, "content": content, "created_at": timestamp(), **more}
        session.messages.append(message)
        session.info["updated_at"] = session.info["last_activity_at"] = message["created_at"]
        return message

    def said(self, session: FakeSession, message: Json) -> None:
        """A user's message is in the conversation."""
        told = {name: message[name] for name in ("content", "created_at", "role")}
        self.tell(
            session.id,
            {"type": "message_appended", "session_id": session.id, "message_id": message["id"], **told},
        )

    # --- runs

    def start(self, session: FakeSession, resumed: Json | None = None) -> str:
        """Begin a run. `resumed`: what the tool call that waited is told."""
        run = session.run = session.last_run = str(uuid.uuid4())
        session.stopping = False
        session.info["last_run_status"] = "running"
        session.info.pop("last_run_error", None)
        session.task = asyncio.create_task(self._run(session, run, resumed), name=f"run of {session.id}")
        return run

    async def _run(self, session: FakeSession, run: str, resumed: Json | None) -> None:
        id = session.id
        try:
            self.tell(id, {"type": "execution_started", "run_id": run, "session_id": id, "started_at": timestamp()})
            if resumed is not None:
                await self._re_execute(session, resumed)
            for message in session.inbox:
                session.messages.append(message)
                self.said(session, message)
            session.inbox.clear()
            self.tell(id, {"type": "runner_progress", "session_id": id, "round_count": 0})
            await asyncio.sleep(0)
            ended = await self._rounds(session)
        except asyncio.CancelledError:
            if self.sessions.get(id) is session and session.run == run:
                self._end(session, "cancelled", {"type": "error", "message": CANCELLED}, "Cancelled")
            return
        self._end(session, *ended)

    async def _rounds(self, session: FakeSession) -> tuple[str, Json, str | None]:
        id = session.id
        while True:
            for entry in [one for one in session.guidance if one["mode"] == "after_round"]:
                self._guided(session, entry)
            _, step = due(session.messages)
            if "gate" in step:
                await self.gate(step["gate"]).wait()
            if "fail" in step:
                words = f"LLM error: HTTP {step['fail']}: the script says so"
                return "error", {"type": "error", "message": words}, words
            await asyncio.sleep(self.thinks_s)
            self._budget(session)
            thought, said = await self._speak(session, step)
            called = "shell" in step or "call" in step
            call = str(step.get("id") or f"call_{uuid.uuid4().hex[:8]}")
            name, arguments = self._tool(step)
            more: Json = {"reasoning": thought} if thought else {}
            if called:
                function = {"name": name, "arguments": json.dumps(arguments)}
                more["tool_calls"] = [{"id": call, "type": "function", "function": function}]
            self.add_message(session, "assistant", said, phase="commentary" if called else "final_answer", **more)
            session.rounds += 1
            if not called:
                return "completed", {"type": "complete", "usage": {**NOTHING, "total_tokens": 5}}, None
            self.tell(id, {"type": "tool_start", "tool_call_id": call, "tool_name": name, "arguments": arguments})
            self._lifecycle(session, call, name, "begin")
            if (suspended := self._execute(session, step, call, name, arguments)) is not None:
                return "suspended", suspended, None
            self.tell(id, {"type": "runner_progress", "session_id": id, "round_count": session.rounds})

    def _tool(self, step: Json) -> tuple[str, Json]:
        if "shell" in step:
            return ("exec_command", {"cmd": step["shell"]}) if self.new else ("Bash", {"command": step["shell"]})
        return str(step.get("call", "")), dict(step.get("args", {}))

    async def _speak(self, session: FakeSession, step: Json) -> tuple[str, str]:
        thought = "".join(f"{word} " for word in str(step.get("think", "")).split())
        for word in thought.split():
            self.tell(session.id, {"type": "reasoning_token", "content": f"{word} "})
        words = str(step.get("say", "")).split(" ") if step.get("say") else []
        said = ""
        try:
            for number, word in enumerate(words):
                piece = word if number == len(words) - 1 else f"{word} "
                said += piece
                self.tell(session.id, {"type": "token", "content": piece})
                session.working = "over_s" in step
                await asyncio.sleep(float(step.get("over_s", 0)) / len(words))
        except asyncio.CancelledError:
            self.add_message(session, "assistant", said, metadata={"interrupted": True})
            raise
        finally:
            session.working = False
        return thought, said

    def _budget(self, session: FakeSession) -> None:
        usage = {"total_tokens": 100 + session.rounds, "max_context_tokens": 1000, "budget_limit": 900}
        session.usage = usage
        self.tell(session.id, {"type": "token_budget_updated", "usage": usage})

    def _lifecycle(self, session: FakeSession, call: str, name: str, phase: str) -> None:
        self.tell(
            session.id,
            {
                "type": "tool_lifecycle",
                "tool_call_id": call,
                "tool_name": name,
                "phase": phase,
                "is_mutating": True,
                "auto_approved": False,
            },
        )

    def _execute(self, session: FakeSession, step: Json, call: str, name: str, arguments: Json) -> Json | None:
        """Carry out a tool call. What ends the run where it has to wait, else None."""
        if "shell" in step:
            command = step["shell"]
            if (session.id, command) in self.denied or ("", command) in self.denied:
                self._result(session, call, name, "Permission denied by policy", ok=False)
                return None
            if (session.id, command) not in self.allowed and ("", command) not in self.allowed:
                return self._permission(session, call, name, arguments, command)
            self.ran.append(command)
            self._result(session, call, name, f"ran {command}")
        elif name == "ExitPlanMode":
            return self._question(session, call, name, "Plan ready.", PLAN_OPTIONS, custom=False)
        elif name.startswith(("ask", "mcp__")):
            options = list(arguments.get("options") or [])
            return self._question(session, call, name, str(arguments.get("question")), options, custom=True)
        else:
            self._result(session, call, name, "There is nothing to note.")
        return None

    def _result(self, session: FakeSession, call: str, name: str, said: str, *, ok: bool = True) -> None:
        self._lifecycle(session, call, name, "finished")
        self.add_message(session, "tool", said, tool_call_id=call, tool_success=ok)
        result = {"success": ok, "result": said, "display_preference": "Default"}
        self.tell(session.id, {"type": "tool_complete", "tool_call_id": call, "result": result})

    # --- what waits for a person

    def _permission(self, session: FakeSession, call: str, name: str, arguments: Json, command: str) -> Json:
        hard = command.startswith("sudo")
        decisions = ["allow_once", "allow_session", "allow_global", "deny_once", "deny_session"]
        asked = {
            "request_id": call,
            "request_generation": str(uuid.uuid4()),
            "session_id": session.id,
            "tool_name": name,
            "permission_type": "execute_command",
            "resource": command,
            "operation_summary": f"Execute command: {command}",
            "risk_level": "high",
            "reason_code": "hard_dangerous" if hard else "risk_threshold",
            "effective_mode": "default",
            "bypass_requested": False,
            "auto_approve_requested": False,
            "policy_revision": self.policy,
            "allowed_decisions": ["allow_once", "deny_once"] if hard else decisions,
            "suggested_matchers": [
                {"id": kind, "kind": kind, "value": command} for kind in ("exact_resource", "command_prefix")
            ],
        }
        words = f"**Permission required**\n\nThe `{name}` tool needs approval on:\n\n`{command}`"
        self.tell(
            session.id,
            {"type": "tool_approval_requested", "tool_call_id": call, "tool_name": name, "parameters": arguments},
        )
        pending = {
            "interaction_kind": "permission",
            "permission_request": asked,
            "tool_arguments": arguments,
            "tool_arguments_truncated": False,
        }
        said = {"allow_custom": False, "options": ["Approve", "Deny"], "permission_request": asked, "question": words}
        return self._wait(session, call, name, words, ["Approve", "Deny"], said, "request_permissions", pending)

    def _question(
        self, session: FakeSession, call: str, name: str, words: str, options: list[str], *, custom: bool
    ) -> Json:
        said: Json = {"allow_custom": custom, "options": options, "question": words, "status": "awaiting_user_input"}
        if custom:
            said = {"type": "NeedClarification", "data": {"question": words, "options": options}}
        pending = {
            "interaction_kind": "clarification",
            "permission_request": None,
            "tool_arguments": None,
            "tool_arguments_truncated": False,
        }
        shown = "Default" if custom else "conclusion_with_options"
        return self._wait(session, call, name, words, options, said, shown, pending, custom=custom)

    def _wait(
        self,
        session: FakeSession,
        call: str,
        name: str,
        words: str,
        options: list[str],
        said: Json,
        shown: str,
        more: Json,
        *,
        custom: bool = False,
    ) -> Json:
        self._lifecycle(session, call, name, "finished")
        content = json.dumps(said)
        metadata = {"permission_request": said["permission_request"]} if "permission_request" in said else {}
        self.add_message(session, "tool", content, tool_call_id=call, tool_success=True, metadata=metadata)
        result = {"success": True, "result": content, "display_preference": shown}
        self.tell(session.id, {"type": "tool_complete", "tool_call_id": call, "result": result})
        asked = {"question": words, "options": options, "allow_custom": custom, "source": "pause_tool"}
        session.pending = {
            "has_pending_question": True,
            **asked,
            "tool_call_id": call,
            "tool_name": name,
            **more,
        }
        self.tell(session.id, {"type": "need_clarification", "tool_call_id": call, "tool_name": name, **asked})
        return {"type": "complete", "usage": NOTHING}

    def resume(self, session: FakeSession, content: str, receipt: Json | None = None) -> str:
        """What was asked has an answer: the run goes on, as another one."""
        pending = session.pending
        assert pending is not None
        session.pending = None
        answered = next(one for one in session.messages if one.get("tool_call_id") == pending["tool_call_id"])
        answered["content"] = f"Selected response: {content}"
        if receipt is not None:
            answered["metadata"]["permission_decision_receipt"] = receipt
            session.decided[pending["tool_call_id"]] = receipt
        return self.start(session, pending if receipt is not None else None)

    async def _work(self, session: FakeSession, command: str) -> None:
        """Commands are not carried out, but `sleep N` takes its time."""
        self.ran.append(command)
        word, _, rest = command.partition(" ")
        if word == "sleep":
            session.working = True
            try:
                await asyncio.sleep(float(rest))
            except asyncio.CancelledError:
                await asyncio.sleep(self.gives_way_s)
                raise
            finally:
                session.working = False

    async def _re_execute(self, session: FakeSession, pending: Json) -> None:
        """A tool call whose permission was decided: under its old id, and hidden in the newer line."""
        call, name, asked = pending["tool_call_id"], pending["tool_name"], pending["permission_request"]
        decision = session.decided[call]["decision"]["decision"]
        if not decision.startswith("allow"):
            if decision != "deny_once":
                self.denied.add((session.id, asked["resource"]))
            return
        if decision != "allow_once":
            self.allowed.add((session.id if decision == "allow_session" else "", asked["resource"]))
        await self._work(session, asked["resource"])
        answered = next(one for one in session.messages if one.get("tool_call_id") == call)
        answered["content"] = f"ran {asked['resource']}"
        self._lifecycle(session, call, "tool" if self.new else name, "finished")
        said = "Tool result hidden" if self.new else answered["content"]
        result = {"success": True, "result": said, "display_preference": None}
        self.tell(session.id, {"type": "tool_complete", "tool_call_id": call, "result": result})

    # --- ends

    def _guided(self, session: FakeSession, entry: Json) -> None:
        session.guidance.remove(entry)
        message = {"id": entry["id"], "role": "user", "content": entry["text"], "created_at": timestamp()}
        session.messages.append(message)
        if self.new:
            self.said(session, message)

    def _end(self, session: FakeSession, status: str, event: Json, error: str | None) -> None:
        id = session.id
        session.run, session.stopping = None, False
        session.info["last_run_status"] = status
        if session.usage is not None:
            session.info["token_usage"] = session.usage
        if error is not None:
            session.info["last_run_error"] = error
        self.tell(id, event)
        # Its channel stays open while a child runs, and when it waits for one.
        if not session.info["running_child_count"]:
            self._out(id, None)
        self.tell(id, {"type": "session_history_committed", "session_id": id})
        later = [entry for entry in session.guidance if entry["mode"] == "after_run"]
        if status == "completed" and later:
            self._guided(session, later[0])
            self.start(session)

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())
