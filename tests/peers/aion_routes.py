"""The HTTP side of a stand-in for an aion server: its routes, its refusals, and the answers of agents."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from tests.peers.aion_world import ALL, NIL, Axes, Flow, Json, World

PAGE = "<!doctype html>\n<html></html>"
HTML: Final = "text/html; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
NEEDS: Final = {
    "/workflows/list": ("namespace", "sort", "limit"),
    "/workflows/intervene": ("namespace", "workflow_id", "run_id", "activity_id", "attempt", "kind"),
    "/workflows/transcript": ("namespace", "workflow_id", "run_id", "activity_id", "attempt"),
    "/workflows/transcripts": ("namespace", "workflow_id", "run_id"),
}
OLD_NEEDS: Final = {"/workflows/list": ("namespace",)}
PAGES: Final = ("/", "/workflows", "/studio", "/launch", "/triage", "/settings", "/kit")
Reply = tuple[int, str | None, str]


def said(body: Any, status: int = 200) -> Reply:
    return status, JSON, json.dumps(body)


def refused(status: int, code: str, message: str, error_type: str | None = None) -> Reply:
    return said({"code": code, "message": message, **({"error_type": error_type} if error_type else {})}, status)


NOT_FOUND = "workflow not found in namespace {}"


@dataclass
class Faults:
    """What goes wrong. `answers`: what a path answers instead, once each; `drops`: its connection breaks, once each,
    before (`False`) or after (`True`) the request was carried out; `deaf`: workers that answer no intervention."""

    answers: dict[str, list[Reply]] = field(default_factory=dict)
    drops: dict[str, list[bool]] = field(default_factory=dict)
    deaf: set[str] = field(default_factory=set)
    loses: set[str] = field(default_factory=set)
    """The stream sends nothing to these subscriptions (by arm)."""
    no_sockets: bool = False
    """Every handshake of a socket is answered with 404, as by a proxy that knows none."""


class Routes:
    """`ack_s`: how long it waits for a worker's answer to an intervention."""

    def __init__(self, world: World, faults: Faults, *, modern: bool, token: str | None, ack_s: float) -> None:
        self.world, self.faults, self.modern, self.token, self.ack_s = world, faults, modern, token, ack_s
        self.agent: Callable[[Flow, Axes, Json], Json | None] = lambda flow, axes, kind: None
        """What an agent makes of an intervention: an outcome, or None for the usual one."""
        self.interventions: list[Json] = []
        self.acts: list[tuple[str, Json]] = []
        self.wedged: set[str] = set()
        self.granted = token is None
        self.seen: list[tuple[str, Any]] = []

    async def answer(self, method: str, target: str, body: bytes, content_type: str) -> Reply:
        """Raises ConnectionAbortedError where the connection breaks."""
        path = unquote(urlsplit(target).path) if "/workers/" in target else urlsplit(target).path
        if (drops := self.faults.drops.get(path)) and not drops[0]:
            drops.pop(0)
            raise ConnectionAbortedError
        if planned := self.faults.answers.get(path):
            return planned.pop(0)
        reply = await self._routed(method, path, target, body, content_type)
        if drops := self.faults.drops.get(path):
            drops.pop(0)
            raise ConnectionAbortedError
        return reply

    async def _routed(self, method: str, path: str, target: str, body: bytes, content_type: str) -> Reply:
        if method == "GET":
            return self._get(path, parse_qs(urlsplit(target).query))
        if path.startswith("/workers/managed/") and path.endswith("/restart"):
            return self._restart(path.removeprefix("/workers/managed/").removesuffix("/restart"))
        route = _POSTS.get(path)
        if method != "POST" or route is None:
            return 405, None, ""
        if JSON not in content_type:
            return 415, TEXT, "Expected request with `Content-Type: application/json`"
        try:
            given = json.loads(body)
        except ValueError:
            return 400, TEXT, "Failed to parse the request body as JSON: key must be a string at line 1 column 2"
        self.seen.append((path, given))
        needs = (NEEDS if self.modern else OLD_NEEDS).get(path, ("namespace",))
        for name in needs:
            if name not in given:
                why = f"missing field `{name}` at line 1 column {len(body)}"
                return 422, TEXT, f"Failed to deserialize the JSON body into the target type: {why}"
        if (untyped := _untyped(path, given)) is not None:
            return 422, TEXT, f"Failed to deserialize the JSON body into the target type: {untyped}"
        if not given["namespace"]:
            return refused(403, "namespace_denied", "requested namespace must not be empty")
        answer = route(self, given)
        return await answer if isinstance(answer, Awaitable) else answer

    # --- GET

    def _get(self, path: str, query: dict[str, list[str]]) -> Reply:
        modern = self.modern
        match path:
            case "/whoami":
                return said(self._whoami())
            case "/build" if modern:
                built = "2026-11-30T20:06:36+00:00"
                return said({"version": "0.31.0", "commit": "unknown", "dirty": "unknown", "built_at": built})
            case "/namespaces":
                return said(self.world.namespaces)
            case "/health/live" | "/health/ready":
                return 200, None, ""
            case "/queues/unserved" if modern:
                return said(self.world.unserved)
            case "/workers/managed" if modern:
                return said({"commissioned": True, "remedy": None, "workers": self._managed(), "undecodable": [],
                             "auto_provision": []})  # fmt: skip
            case "/workflows/count" if not modern:
                flows = [flow for flow in self.world.flows.values() if flow.namespace == query["namespace"][0]]
                return said({"count": len(flows)})
            case "/events/stream":
                return 400, TEXT, "Connection header did not include 'upgrade'"
            case _ if path in _POSTS and path != "/workflows":
                return 405, None, ""
            case _:
                return self._page(path)

    def _managed(self) -> list[Json]:
        """The workers that the server runs itself; it names them so."""
        names = {
            name for flow in self.world.flows.values() for name in flow.worker.values() if name.startswith("auto/")
        }
        return [{"name": name, "task_queue": "scripted", "state": "running"} for name in sorted(names)]

    def _page(self, path: str) -> Reply:
        """The server's own web pages: nearly every path of an old one, a few of a new one."""
        last = path.rpartition("/")[2]
        inside = path.startswith("/workflows/") and _is_uuid(last)
        if path in PAGES or inside:
            return 200, HTML, PAGE
        known = path.startswith(("/workflows/", "/events")) or path == "/workflows"
        return (404, None, "") if self.modern or known else (200, HTML, PAGE)

    def _whoami(self) -> Json:
        every = self.token is None
        seen = {"subject": "operator", "auth_enabled": not every, "all_namespaces": every,
                "namespaces": [] if every else ["default"]}  # fmt: skip
        if not self.modern:
            return {**seen, "deploy_granted": self.granted}
        words = ("deploy", "assistant.sessions")
        grants = [{"word": word, "header": f"x-aion-{word}", "claim": word, "granted": self.granted} for word in words]
        return {**seen, "grants": grants}

    # --- POST

    def _flow(self, given: Json) -> Flow | None:
        flow = self.world.flows.get(given["workflow_id"])
        return flow if flow is not None and flow.namespace == given["namespace"] else None

    def _list(self, given: Json) -> Reply:
        flows = [flow for flow in self.world.flows.values() if flow.namespace == given["namespace"]]
        if self.token is not None and given["namespace"] != "default":
            return refused(403, "namespace_denied", f"subject not authorized for namespace {given['namespace']}")
        wanted = given.get("filter") or {}
        if not self.modern:
            return self._old_list(flows, wanted)
        if given["limit"] < 1:
            return refused(400, "invalid_input", "invalid list query: limit must be at least 1", "InvalidQuery")
        cursor = given.get("cursor")
        if cursor is not None and not str(cursor).isdigit():
            return refused(
                400, "invalid_input", "invalid list query: cursor is not a valid cursor token", "InvalidQuery"
            )
        if statuses := wanted.get("statuses"):
            flows = [flow for flow in flows if flow.status in statuses]
        by = given["sort"]["field"]
        flows.sort(key=lambda flow: flow.summary()[by] or "", reverse=given["sort"]["direction"] == "desc")
        start = int(cursor or 0)
        end = start + given["limit"]
        following = str(end) if end < len(flows) else None
        shown = [flow.summary() for flow in flows[start:end]]
        return said({"items": shown, "next_cursor": following, "count": len(flows),
                     "provenance": {"lease_record_failures_total": 0}})  # fmt: skip

    def _old_list(self, flows: list[Flow], wanted: Json) -> Reply:
        kept = [flow for flow in flows if wanted.get("status") in (None, flow.status)]
        kept.sort(key=lambda flow: (flow.started, flow.id))
        first = wanted.get("offset", 0)
        shown = []
        for flow in kept[first : first + wanted.get("limit", 50)]:
            summary = flow.summary()
            shown.append({name: summary[name] for name in ("workflow_id", "workflow_type", "status", "started_at",
                                                           "ended_at")} | {"parent": None})  # fmt: skip
        return said({"summaries": shown})

    def _history(self, given: Json) -> Reply:
        flow = self._flow(given)
        if flow is None:
            return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
        first, limit = max(given.get("from_seq", 0), 1), given.get("limit", 500)
        events = flow.history[first - 1 : first - 1 + limit]
        last = first + len(events) - 1
        following = last + 1 if last < len(flow.history) else None
        largest = given.get("payload_limit_bytes", 2048)
        shown = [_elided(event, largest) for event in events] if largest else events
        return said({"events": shown, "next_from_seq": following, "head_seq": len(flow.history)})

    def _event(self, given: Json) -> Reply:
        flow = self._flow(given)
        if flow is None or not 0 < given["seq"] <= len(flow.history):
            return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
        return said({"event": flow.history[given["seq"] - 1]})

    def _attempts(self, given: Json) -> Reply:
        if not _is_uuid(given["workflow_id"]):
            why = "workflow_id: UUID parsing failed"
            return 422, TEXT, f"Failed to deserialize the JSON body into the target type: {why}"
        flow = self._flow(given)
        if flow is None:
            return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
        rows = []
        for (run, activity, attempt), primitives in flow.live.items():
            named = {"run_id": run} if self.modern else {}
            supported = [{"primitive": name} for name in primitives]
            row = {"activity_id": activity, "attempt": attempt, "capabilities": {"supported": supported}}
            rows.append({**named, **row})
        return said({"attempts": rows})

    def _transcripts(self, given: Json) -> Reply:
        flow = self._flow(given)
        if flow is None:
            return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
        rows = []
        for (run, activity, attempt), lines in sorted(flow.transcripts.items()):
            if lines and run == given.get("run_id", run):
                named = {"run_id": run} if self.modern else {}
                rows.append({**named, "activity_id": activity, "attempt": attempt, "head": len(lines)})
        return said({"streams": rows})

    def lines(self, flow: Flow, given: Json) -> list[Json]:
        axes = (given.get("run_id") or flow.run, given["activity_id"], given["attempt"])
        return [line if self.modern else _without_run(line) for line in flow.transcripts.get(axes, [])]

    def _transcript(self, given: Json) -> Reply:
        flow = self._flow(given)
        if flow is None:
            return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
        lines = self.lines(flow, given)
        if (last := given.get("last")) is not None:
            first, events = max(len(lines) - last, 0), lines[max(len(lines) - last, 0) :]
        else:
            first = given.get("from_seq", 0)
            limit = given.get("limit")
            events = lines[first:] if limit is None else lines[first : first + max(1, min(limit, 2000))]
        end = first + len(events)
        return said({"events": events, "next_from_seq": end if end < len(lines) else None, "head_seq": len(lines)})

    async def _intervene(self, given: Json) -> Reply:
        flow = self._flow(given)
        if flow is None:
            return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
        kind = given["kind"]["kind"]
        self.interventions.append(given)
        axes = (given.get("run_id") or flow.run, given["activity_id"], given["attempt"])
        primitives = flow.live.get(axes)
        if primitives is None:
            run, activity, attempt = axes
            whose = f"activity activity:{activity} in run {run} of workflow {flow.id}"
            detail = f"no live owner for attempt {attempt} of {whose}"
            return said({"outcome": {"outcome": "StaleTarget", "detail": detail}})
        if kind not in primitives:
            return said({"outcome": {"outcome": "CapabilityNotSupported", "primitive": {"primitive": kind}}})
        worker = flow.worker.get(axes, "")
        if worker in self.faults.deaf or worker in self.wedged:
            self.wedged.add(worker)
            await asyncio.sleep(self.ack_s)
            return refused(500, "backend", "worker dispatch failed")
        outcome = self.agent(flow, axes, given["kind"]) or self._usual(flow, axes, given["kind"])
        return said({"outcome": outcome})

    def _usual(self, flow: Flow, axes: Axes, kind: Json) -> Json:
        match kind["kind"]:
            case "InjectMessage":
                user = {"kind": "Message", "role": {"role": "User"}, "text": kind["text"]}
                flow.speak(axes, user, (NIL, "operator"))
                flow.say(axes, f"heard ({kind['priority']['priority'].lower()}): {kind['text']}")
            case "Cancel":
                flow.speak(axes, {"kind": "Stop", "reason": {"stop": "Other", "reason": "cancelled"}})
                stop = json.dumps({"reason": "cancelled", "detail": kind["reason"]})
                words = f"retryable:harness reported failure: run stopped without completing: stop: {stop}"
                flow.fail(axes, words)
            case "RespondToApproval":
                output = {"decision": kind["decision"]["decision"], "note": kind["note"]}
                flow.speak(
                    axes, {"kind": "ToolResult", "call_id": kind["call_id"], "output": output, "is_error": False}
                )
            case _:
                note = json.dumps(kind)
                flow.speak(axes, {"kind": "Progress", "detail": {"detail": "Note", "text": note}})
        return {"outcome": "Applied"}

    def _restart(self, name: str) -> Reply:
        self.acts.append(("restart", {"worker": name}))
        if not self.granted:
            return refused(403, "deploy_denied", "subject `operator` is not authorized to deploy")
        self.wedged.discard(name)
        self.faults.deaf.discard(name)
        for flow in self.world.flows.values():
            for axes in [axes for axes in flow.live if flow.worker.get(axes) == name]:
                flow.lease(axes, flow.live[axes], name)
        return said({"worker": {"name": name, "state": "starting"}})


def _cancel(routes: Routes, given: Json) -> Reply:
    return _act(routes, "cancel", given, lambda flow: flow.end("Cancelled", reason=given.get("reason")))


def _signal(routes: Routes, given: Json) -> Reply:
    if given.get("signal_name") == "unheard":
        return refused(400, "invalid_input", "signal `unheard` was refused", "SignalRefused")
    payload = {"content_type": "Json", "bytes": list(json.dumps(given.get("payload")).encode())}
    return _act(
        routes, "signal", given, lambda flow: flow.record("SignalReceived", name=given["signal_name"], payload=payload)
    )


def _act(routes: Routes, name: str, given: Json, does: Callable[[Flow], object]) -> Reply:
    flow = routes._flow(given)
    if flow is None:
        return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
    routes.acts.append((name, given))
    if flow.status not in ("Running", "Paused"):
        words = f"workflow {flow.id} has already reached terminal state {flow.status}"
        return refused(412, "not_running", words, "WorkflowTerminal")
    does(flow)
    return said({})


def _reopen(routes: Routes, given: Json) -> Reply:
    flow = routes._flow(given)
    if flow is None:
        return refused(404, "not_found", NOT_FOUND.format(given["namespace"]))
    routes.acts.append(("reopen", given))
    if flow.status not in ("Failed", "Cancelled"):
        words = f"workflow {flow.id} run {flow.run} is terminal for a non-reopenable reason ({flow.status})"
        return refused(409, "invalid_state", words, "InvalidState")
    flow.status, flow.ended = "Running", None
    flow.record("WorkflowReopened", run_id=flow.run, reopened=[0])
    return said({"run_id": flow.run, "status": "Running"})


def _untyped(path: str, given: Json) -> str | None:
    """What a body holds that its type has no room for."""
    if path == "/workflows/intervene" and given["kind"]["kind"] not in ALL:
        return f"kind.kind: unknown variant `{given['kind']['kind']}`"
    field = given.get("sort", {}).get("field", "started_at")
    if field not in ("started_at", "updated_at", "ended_at", "workflow_type", "status", "display_name"):
        return f"sort.field: unknown variant `{field}`"
    return None


def _is_uuid(value: str) -> bool:
    try:
        uuid.UUID(value)
    except ValueError:
        return False
    return True


def _without_run(line: Json) -> Json:
    return {name: value for name, value in line.items() if name != "run_id"}


def _elided(event: Json, largest: int) -> Json:
    data = event["data"]
    cut = {
        name: {**value, "bytes": {"__elided": True, "size_bytes": len(value["bytes"])}}
        for name, value in data.items()
        if isinstance(value, dict) and isinstance(value.get("bytes"), list) and len(value["bytes"]) > largest
    }
    return {**event, "data": {**data, **cut}} if cut else event


_POSTS: Final[dict[str, Callable[[Routes, Json], Reply | Awaitable[Reply]]]] = {
    "/workflows/list": Routes._list,
    "/workflows/history": Routes._history,
    "/workflows/event": Routes._event,
    "/workflows/attempts": Routes._attempts,
    "/workflows/transcripts": Routes._transcripts,
    "/workflows/transcript": Routes._transcript,
    "/workflows/intervene": Routes._intervene,
    "/workflows/cancel": _cancel,
    "/workflows/signal": _signal,
    "/workflows/reopen": _reopen,
}
