"""An aion server over HTTP: what it is asked, in the words of both its lines, and what its refusals mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpx
from pydantic import JsonValue

from console.connectors.aion.reading import Json, items, number, obj, text
from console.connectors.web.address import Address
from console.connectors.web.http import Answer, Http
from watchfloor.errors import ConnectionLost, Denied, NotAHost, Unreachable

PAGE: Final = 200
PAGES: Final = 100
"""Pages of a list that are read at most."""
EVENTS: Final = 500
LINES: Final = 1000
PAYLOAD: Final = 262_144
"""Bytes of a payload that a page of history holds whole."""
ACK_S: Final = 45.0
"""The server waits 30 s for a worker's answer to an intervention; whoever hangs up earlier never hears of it."""
OLD: Final = "0.10 line"


class Refused(Exception):
    """The server says no. `code` is its word (`not_found`, `invalid_input` …), empty where it gave none."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message or code or f"HTTP {status}")
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Axes:
    """Which attempt's transcript. `run` is empty where an old server names none."""

    namespace: str
    workflow: str
    run: str
    activity: int
    attempt: int

    def body(self) -> Json:
        named: Json = {"run_id": self.run} if self.run else {}
        return {
            "namespace": self.namespace,
            "workflow_id": self.workflow,
            **named,
            "activity_id": self.activity,
            "attempt": self.attempt,
        }


class Server:
    """Requests to one aion server. Raises `watchfloor.errors.ConnectionFailed` and `Refused`."""

    def __init__(self, address: Address, token: str | None, *, user: str = "", ack_s: float = ACK_S) -> None:
        self.address: Final = address
        # A server that asks nobody for a token writes down who says to be there; one that asks takes it from the token.
        named = {"x-aion-subject": quote(user, safe=" @.-_+")} if user else {}
        self.headers: Final[Mapping[str, str]] = {"authorization": f"Bearer {token}"} if token is not None else named
        self._ack_s = ack_s
        self._http = Http(address, headers=self.headers)
        # What acts never goes over a connection that the server may have dropped without saying so: it would be lost,
        # and nobody would know.
        fresh = httpx.AsyncHTTPTransport(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
        self._acting = Http(address, headers=self.headers, transport=fresh)
        self.version = OLD
        self.modern = False

    @property
    def where(self) -> str:
        return self.address.where

    async def close(self) -> None:
        await self._http.close()
        await self._acting.close()

    # --- who and what

    async def recognise(self) -> Json:
        """Find out who we are there and which line it is of. Raises NotAHost where it is no aion server."""
        whoami = obj(await self._read("GET", "/whoami"))
        if "subject" not in whoami:
            raise NotAHost(f"{self.where} is no aion server: its /whoami names nobody")
        self.version, self.modern = await self._line()
        return whoami

    async def _line(self) -> tuple[str, bool]:
        """Its version, and whether it speaks as the newer servers do."""
        answer = await self._http.get("/build")
        if answer.ok and "json" in answer.content_type and (version := text(obj(answer.json()).get("version"))):
            return version, True
        if answer.status == 429 or answer.status >= 500:
            raise Unreachable(f"{self.where} does not say its version now (HTTP {answer.status})")
        # A list without an order is what the old ones give, and the newer ones refuse to read.
        probe = await self._http.post("/workflows/list", {"namespace": "default"})
        return ("", True) if probe.status == 422 else (OLD, False)

    async def namespaces(self, whoami: Json) -> list[str]:
        """The namespaces that we may see."""
        granted = [name for name in items(whoami.get("namespaces")) if isinstance(name, str)]
        if whoami.get("all_namespaces") is not True:
            return granted
        listed = await self._read("GET", "/namespaces")
        return [name for name in items(listed) if isinstance(name, str)]

    # --- workflows

    async def live(self, namespace: str) -> list[Json]:
        """All workflows that run."""
        if not self.modern:
            return await self._old_live(namespace, "Running") + await self._old_live(namespace, "Paused")
        found: list[Json] = []
        cursor: JsonValue = None
        for _ in range(PAGES):
            body = self._listing(namespace, "started_at") | {"filter": {"statuses": ["Running", "Paused"]}}
            if cursor:
                body["cursor"] = cursor
            answer = obj(await self._post("/workflows/list", body))
            page = [obj(entry) for entry in items(answer.get("items"))]
            found += page
            before, cursor = cursor, answer.get("next_cursor")
            if not cursor or not page or cursor == before:
                break
        return found

    async def latest(self, namespace: str) -> tuple[list[Json], int]:
        """The workflows that changed last, and how many there are in all."""
        if not self.modern:
            # It lists the oldest first, and knows no cursor: the newest page has to be counted out.
            count = await self._old_count(namespace)
            page = await self._old_list(namespace, {"offset": max(0, count - PAGE)})
            return page, max(len(page), count)
        answer = obj(await self._post("/workflows/list", self._listing(namespace, "updated_at")))
        page = [obj(entry) for entry in items(answer.get("items"))]
        return page, max(len(page), number(answer.get("count")) or 0)

    def _listing(self, namespace: str, by: str) -> Json:
        return {"namespace": namespace, "sort": {"field": by, "direction": "desc"}, "limit": PAGE}

    async def _old_count(self, namespace: str) -> int:
        answer = await self._read("GET", f"/workflows/count?namespace={quote(namespace, safe='')}")
        return number(obj(answer).get("count")) or 0

    async def _old_live(self, namespace: str, status: str) -> list[Json]:
        found: list[Json] = []
        for _ in range(PAGES):
            page = await self._old_list(namespace, {"status": status, "offset": len(found)})
            found += page
            if len(page) < PAGE:
                break
        return found

    async def _old_list(self, namespace: str, wanted: Json) -> list[Json]:
        body: Json = {"namespace": namespace, "filter": {**wanted, "limit": PAGE}}
        answer = obj(await self._post("/workflows/list", body))
        return [obj(entry) for entry in items(answer.get("summaries"))]

    async def history(self, namespace: str, workflow: str, seq: int) -> tuple[list[Json], bool, int | None]:
        """Events from number `seq` on, whether there are more, and the last one's number as far as it is said."""
        body: Json = {
            "namespace": namespace,
            "workflow_id": workflow,
            "from_seq": seq,
            "limit": EVENTS,
            "payload_limit_bytes": PAYLOAD,
        }
        answer = obj(await self._post("/workflows/history", body))
        events = [obj(event) for event in items(answer.get("events"))]
        return events, answer.get("next_from_seq") is not None, number(answer.get("head_seq"))

    async def event(self, namespace: str, workflow: str, seq: int) -> Json:
        """One event of a history with all that it holds."""
        body: Json = {"namespace": namespace, "workflow_id": workflow, "seq": seq}
        return obj(obj(await self._post("/workflows/event", body)).get("event"))

    async def attempts(self, namespace: str, workflow: str) -> list[Json]:
        """The attempts that live now, each with what may be done to it."""
        answer = await self._post("/workflows/attempts", {"namespace": namespace, "workflow_id": workflow})
        return [obj(row) for row in items(obj(answer).get("attempts"))]

    async def transcripts(self, namespace: str, workflow: str, run: str) -> list[Json]:
        """The transcripts that are kept of a run."""
        named: Json = {"run_id": run} if run else {}
        answer = await self._post("/workflows/transcripts", {"namespace": namespace, "workflow_id": workflow, **named})
        return [obj(row) for row in items(obj(answer).get("streams"))]

    async def transcript(self, axes: Axes, seq: int, limit: int = LINES) -> tuple[list[Json], bool, int]:
        """Stored events from number `seq` on, whether there are more, and the number after the last one."""
        answer = obj(await self._post("/workflows/transcript", axes.body() | {"from_seq": seq, "limit": limit}))
        events = [obj(event) for event in items(answer.get("events"))]
        head = number(answer.get("head_seq"))
        return events, answer.get("next_from_seq") is not None, seq + len(events) if head is None else head

    async def unserved(self, namespace: str) -> list[Json]:
        """The queues whose work no worker takes."""
        if not self.modern:
            return []
        answer = await self._read("GET", f"/queues/unserved?namespace={quote(namespace, safe='')}")
        return [obj(row) for row in items(answer)]

    async def managed(self) -> list[Json]:
        """The workers that the server itself runs."""
        answer = obj(await self._read("GET", "/workers/managed"))
        return [obj(row) for row in items(answer.get("workers"))]

    # --- acting: each of these is sent once

    async def intervene(self, axes: Axes, kind: Json) -> object:
        return await self._act("/workflows/intervene", axes.body() | {"kind": kind})

    async def cancel(self, namespace: str, workflow: str, reason: str) -> None:
        await self._act("/workflows/cancel", {"namespace": namespace, "workflow_id": workflow, "reason": reason})

    async def signal(self, namespace: str, workflow: str, name: str, payload: JsonValue) -> None:
        body: Json = {"namespace": namespace, "workflow_id": workflow, "signal_name": name}
        if payload is not None:
            body["payload"] = payload
        await self._act("/workflows/signal", body)

    async def reopen(self, namespace: str, workflow: str) -> None:
        await self._act("/workflows/reopen", {"namespace": namespace, "workflow_id": workflow})

    async def restart_worker(self, name: str) -> None:
        await self._act(f"/workers/managed/{quote(name, safe='')}/restart", None)

    # --- asking

    async def _post(self, path: str, body: Json) -> object:
        return await self._read("POST", path, body)

    async def _read(self, method: str, path: str, body: Json | None = None) -> object:
        try:
            answer = await self._http.request(method, path, body=body)
        except ConnectionLost:
            # A connection that was kept open may have been dropped meanwhile: reading twice harms nobody.
            answer = await self._http.request(method, path, body=body)
        return self._taken(answer)

    async def _act(self, path: str, body: Json | None) -> object:
        return self._taken(await self._acting.request("POST", path, body=body, timeout_s=self._ack_s))

    def _taken(self, answer: Answer) -> object:
        if answer.ok:
            return answer.json()
        if answer.status == 401:
            raise Denied(f"{self.where} refuses this client (HTTP 401): give it a bearer token, or a newer one")
        if "json" in answer.content_type:
            body = obj(answer.json())
            raise Refused(answer.status, text(body.get("code")), text(body.get("message")))
        if answer.status in (404, 405) and not answer.body:
            raise Refused(answer.status, "", f"{self.where} has nothing of the kind (HTTP {answer.status})")
        if answer.status in (502, 503, 504):
            raise Unreachable(f"{self.where} does not answer now (HTTP {answer.status})")
        raise Refused(answer.status, "", answer.words())
