"""How a stand-in of a bamboo server takes decisions: the part of it in which every status code has a meaning."""

from __future__ import annotations

from typing import Any

from tests.peers.bamboo_http import Json, Reply
from tests.peers.bamboo_world import FakeSession, World, timestamp

DECISIONS = frozenset({"allow_once", "allow_session", "allow_workspace", "allow_global", "deny_once", "deny_session"})


def error(status: int, words: str, code: str | None = None, **more: Any) -> Reply:
    coded = {} if code is None else {"code": code}
    return Reply(status, {"error": {"message": words, "type": "api_error", **coded}, **more})


class Deciding:
    """`finalizing`: how often the next decision finds the run still ending."""

    def __init__(self, world: World, *, ancient: bool) -> None:
        self.world = world
        self.finalizing = 0
        self._ancient = ancient

    def _ends(self) -> Reply | None:
        if self.finalizing > 0:
            self.finalizing -= 1
            return error(503, "The suspending run is still finalizing; the answer was not consumed")
        return None

    def _respond(self, session: FakeSession, body: Any) -> Reply:
        pending = session.pending
        if not isinstance(body, dict) or "response" not in body:
            return Reply(400, "Json deserialize error: missing field `response` at line 1 column 2")
        if pending is None:
            return error(400, "No pending question waiting for response")
        expected, actual = body.get("expected_tool_call_id"), pending["tool_call_id"]
        if expected not in (None, actual):
            more = {"expected_tool_call_id": expected, "actual_tool_call_id": actual}
            return error(409, "Pending question changed", **more)
        if pending["permission_request"] is not None and not self._ancient:
            words = "Permission interactions require the typed decision endpoint"
            return error(409, words, interaction_kind="permission")
        if (ends := self._ends()) is not None:
            return ends
        if not pending["allow_custom"] and body["response"] not in pending["options"]:
            words = f"Response must be one of: {', '.join(pending['options'])}"
            return error(400, "Invalid response", message=words)
        run = self.world.resume(session, body["response"])
        return Reply(200, self._resumed(body["response"], run))

    def _resumed(self, response: str, run: str) -> Json:
        words = "Response recorded. Agent loop will continue."
        done = {"success": True, "message": words, "response": response}
        return {**done, "auto_resume_status": "started", "run_id": run}

    def _decide(self, session: FakeSession, body: Any) -> Reply:
        if not isinstance(body, dict) or "request_generation" not in body:
            return Reply(400, "Json deserialize error: missing field `request_generation` at line 1 column 2")
        decision, id = body["decision"], body["request_id"]
        if decision not in DECISIONS:
            return Reply(400, f"Json deserialize error: unknown variant `{decision}`")
        if (decided := session.decided.get(id)) is not None:
            made = decided["decision"]
            if made["decision"] == decision:
                return Reply(200, {"success": True, "replayed": True, "receipt": decided})
            words = "Permission request was already resolved with a different decision"
            conflict = "permission_decision_already_resolved"
            return error(409, words, conflict=conflict, current_decision=made, submitted_decision=body)
        pending = session.pending
        asked = pending["permission_request"] if pending is not None else None
        if pending is None or asked is None:
            return error(404, "pending permission request not found")
        if id != asked["request_id"]:
            return error(409, "Pending question changed", actual_tool_call_id=asked["request_id"])
        if not body["request_generation"].strip():
            return error(400, "Bad request: permission decision generation must not be blank")
        if body["request_generation"] != asked["request_generation"]:
            return error(409, "Pending permission generation changed")
        if (ends := self._ends()) is not None:
            return ends
        matcher = body.get("matcher_id")
        if matcher is not None and matcher not in {one["id"] for one in asked["suggested_matchers"]}:
            return error(400, f"Bad request: unknown matcher id '{matcher}'")
        if decision not in asked["allowed_decisions"]:
            return error(403, "Forbidden: decision is not allowed for this request")
        if decision.endswith(("_global", "_workspace")):
            revision = body.get("expected_policy_revision")
            if decision == "allow_global" and not body.get("confirm_global"):
                return error(400, "Bad request: global allow requires explicit second confirmation")
            if revision is None:
                return error(400, "Bad request: durable decision requires expected_policy_revision")
            if revision != self.world.policy:
                asked["policy_revision"] = self.world.policy
                words = f"Configuration revision conflict: expected {revision}, actual {self.world.policy}"
                return error(409, words, code="config_revision_conflict")
            self.world.policy += 1
        receipt = {"session_id": session.id, "decision": body, "decided_at": timestamp()}
        response = "Approve" if decision.startswith("allow") else "Deny"
        run = self.world.resume(session, response, receipt)
        answer = {"success": True, "replayed": False, "receipt": receipt, "auto_resume_status": "started"}
        return Reply(200, {**answer, "resume": self._resumed(response, run)})

    def _child_approval(self, child: str, body: Json) -> Reply:
        if not self._ancient and "parent_session_id" not in body:
            return Reply(400, "Json deserialize error: missing field `parent_session_id` at line 1 column 40")
        for approval in self.world.approvals:
            same = approval["child_session_id"] == child and approval["request_id"] == body["request_id"]
            if same and approval.get("asks") and approval.get("version") == body.get("expected_version"):
                self.world.approvals.remove(approval)
                return Reply(200, {"delivered": True})
        return Reply(404, {"delivered": False})
