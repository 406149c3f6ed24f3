"""A stand-in of a bamboo server on loopback: two lines of it, and one from before there were sockets.

`tests/sockets/test_bamboo_stand_in.py` holds it to the recordings of real ones.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.peers.bamboo_deciding import Deciding, error
from tests.peers.bamboo_http import Asked, Json, LoopbackServer, Reply, WebSocket
from tests.peers.bamboo_world import DURABLE, NEW_LINE, NOTHING, OLD_LINE, FakeSession, World, timestamp

__all__ = ["ANCIENT_LINE", "NEW_LINE", "OLD_LINE", "FakeBamboo", "fake_bamboo"]

ANCIENT_LINE = "2026.6.1"
"""No bootstrap, no snapshot, no socket, no guidance, no metrics; a person decides for children."""
API = "/api/v1"
COOKIE = "bamboo_access_verified"
UNAUTHORIZED = "Unauthorized: access credential verification required"
CAPABILITIES = (
    "auth.device_bearer.v1",
    "auth.ws_hello_ack.v1",
    "realtime.account_feed.v1",
    "realtime.application_heartbeat.v1",
    "realtime.feed_cursor.v1",
)
EXACT_STOP = "http.native_receipt_run.v1"
Fault = Callable[[Asked], Reply | None]


class FakeBamboo(Deciding):
    """`faults` are asked before anything else; each answers a request in the server's place, or lets it through.

    `after`: the same once the request was carried out. `late`: what is waited for then. `calls`: what was asked, in
    order.
    """

    def __init__(self, line: str, *, password: str | None = None, device: tuple[str, str] | None = None) -> None:
        self.line = line
        super().__init__(World(line), ancient=line == ANCIENT_LINE)
        self.world.watching.append(self._watched)
        self.http = LoopbackServer(self._answer, self._talk)
        self.password, self.device = password, device
        self.cookies: set[str] = set()
        self.faults: list[Fault] = []
        self.after: list[Fault] = []
        self.late: list[Callable[[Asked], Awaitable[None]]] = []
        self.calls: list[Asked] = []
        self.deaf = False
        """It answers no ping."""
        self.capabilities: tuple[str, ...] = ()
        """What it can do, where that is not what its line can."""
        self.page = 200
        self.keepalive_s = 0.2
        self.takes_up_s = 0.02
        """Seconds until the newer line runs a stored message by itself."""
        self.executes = True
        """Stored messages can be run."""
        self._subscribed: dict[WebSocket, dict[str, int]] = {}
        self._beating: asyncio.Task[None] | None = None
        self._queues: list[tuple[str, asyncio.Queue[str | None]]] = []
        self._keys: dict[str, tuple[Any, Reply]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.port}"

    async def start(self) -> None:
        await self.http.start()
        self._beating = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
        for session in self.world.sessions.values():
            if session.task is not None:
                session.task.cancel()
        await self.http.stop()

    async def restart(self) -> None:
        """End and begin again: runs are lost, what is stored is kept."""
        for session in self.world.sessions.values():
            task, session.task = session.task, None
            if session.run is not None and task is not None:
                session.run = None
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                session.info["last_run_status"] = "running"
        await self.http.stop()
        self._subscribed.clear()
        await self.http.start()

    # --- telling

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.keepalive_s)
            for socket in list(self._subscribed):
                socket.send({"ch": "sys", "seq": 0, "control": {"type": "keepalive"}})

    def _watched(self, session: str, what: Json | None) -> None:
        if session == "":
            assert what is not None
            for socket, channels in list(self._subscribed.items()):
                if "feed" in channels:
                    socket.send({"ch": "feed", "seq": what["seq"], "event": what})
            line = f"id: {what['seq']}\ndata: {json.dumps(what)}\n\n"
            self._line("", line)
            return
        channel = f"agent.{session}"
        for socket, channels in list(self._subscribed.items()):
            if channel in channels:
                channels[channel] += 1
                what_ = {"event": what} if what is not None else {"control": {"type": "terminal", "reason": "complete"}}
                socket.send({"ch": channel, "seq": channels[channel], **what_})
                if what is None:
                    del channels[channel]
        self._line(session, f"data: {json.dumps(what) if what is not None else '[DONE]'}\n\n")

    def _line(self, session: str, line: str) -> None:
        for about, queue in self._queues:
            if about == session:
                queue.put_nowait(line)

    def gap(self, session: str, skipped: int) -> None:
        """Say that so many events of a session's channel are lost."""
        channel = f"agent.{session}"
        for socket, channels in self._subscribed.items():
            if channel in channels:
                socket.send({"ch": channel, "seq": 99, "control": {"type": "gap", "skipped": skipped}})

    def reset(self) -> None:
        """Say that the feed's cursor is older than what is kept."""
        for socket, channels in self._subscribed.items():
            if "feed" in channels:
                head = len(self.world.journal)
                socket.send({"ch": "feed", "seq": 0, "control": {"type": "feed_reset", "from_seq": head}})

    def quietly(self, session: str, event: Json) -> None:
        """Something that the feed alone, and nobody's channel, tells."""
        assert event["type"] in DURABLE
        envelope = {"event": event, "seq": len(self.world.journal) + 1, "session_id": session, "ts": timestamp()}
        self.world.journal.append(envelope)
        self._watched("", envelope)

    def channel(self, session: str, event: Json) -> None:
        """Something that a session's channel alone tells."""
        self._watched(session, event)

    def _talk(self, socket: WebSocket, frame: Json | None) -> None:
        if frame is None:
            self._subscribed.pop(socket, None)
            return
        asked = socket.asked
        assert asked is not None
        match frame.get("type"):
            case "hello":
                token = (frame.get("device_id"), frame.get("token"))
                if token != (None, None) and token != self.device:
                    socket.close()
                elif self._allowed(asked) or token == self.device:
                    self._subscribed.setdefault(socket, {})
                    socket.send({"type": "welcome"})
            case "ping" if not self.deaf:
                socket.send({"type": "pong"})
            case "stop" if socket in self._subscribed:
                self._stop(self.world.sessions.get(str(frame.get("session_id"))), asked)
            case "subscribe" if socket in self._subscribed:
                self._subscribe(socket, str(frame.get("ch")), frame.get("since"))
            case _:
                pass

    def _subscribe(self, socket: WebSocket, channel: str, since: int | None) -> None:
        channels = self._subscribed[socket]
        channels[channel] = 0
        if channel == "feed":
            for envelope in self.world.journal:
                if envelope["seq"] > (since or 0):
                    socket.send({"ch": "feed", "seq": envelope["seq"], "event": envelope})
            return
        session = self.world.sessions.get(channel.removeprefix("agent."))
        if session is None:
            del channels[channel]
        elif session.over:
            # What has ended is told once more, and then the channel is over.
            socket.send({"ch": channel, "seq": 1, "event": {"type": "complete", "usage": NOTHING}})
            socket.send({"ch": channel, "seq": 2, "control": {"type": "terminal", "reason": "complete"}})
            del channels[channel]

    # --- answering

    def _allowed(self, asked: Asked) -> bool:
        if self.password is None and self.device is None:
            return True
        if self.device is not None and asked.headers.get("authorization") == f"Bearer {self.device[1]}":
            return asked.headers.get("x-device-id") == self.device[0]
        return any(f"{COOKIE}={cookie}" in asked.headers.get("cookie", "") for cookie in self.cookies)

    async def _answer(self, asked: Asked) -> Reply:
        self.calls.append(asked)
        for fault in list(self.faults):
            if (reply := fault(asked)) is not None:
                return reply
        reply = await self._route(asked)
        for late in self.late:
            await late(asked)
        for fault in list(self.after):
            if (instead := fault(asked)) is not None:
                return instead
        return reply

    async def _route(self, asked: Asked) -> Reply:
        path = asked.path
        ancient = self.line == ANCIENT_LINE
        if path == "/healthz":
            return Reply(200, {"status": "ok", "version": self.line})
        if path == f"{API}/health":
            return Reply(200, "OK")
        if path == f"{API}/bootstrap" and not ancient:
            capabilities = [*(self.capabilities or CAPABILITIES), *([EXACT_STOP] if self.world.new else [])]
            server = {"product": "bamboo", "version": self.line}
            return Reply(200, {"schema_version": 1, "server": server, "capabilities": capabilities})
        if path == f"{API}/bamboo/access/verify":
            if asked.body != {"password": self.password}:
                return error(401, "Unauthorized: invalid password")
            self.cookies.add(cookie := uuid.uuid4().hex)
            return Reply(200, {"success": True}, {"set-cookie": f"{COOKIE}={cookie}; HttpOnly; Path=/"})
        if path == "/v2/stream" and not ancient:
            return Reply(101)
        if not self._allowed(asked):
            return error(401, UNAUTHORIZED)
        if path == f"{API}/subagents/snapshot" and not ancient:
            head = {"snapshot_seq": len(self.world.journal), "approvals": self.world.approvals, "children": []}
            return Reply(200, {"schema_version": 1, "approvals_revision": 0, **head})
        if path == f"{API}/runs/active":
            running = [one for one in self.world.sessions.values() if one.run is not None]
            return Reply(200, {"sessions": [{"session_id": one.id, "run_id": one.run} for one in running]})
        if path == f"{API}/metrics/sessions" and not ancient:
            return Reply(200, [self._metrics(one) for one in self.world.sessions.values()])
        if path == f"{API}/stream":
            return Reply(stream=self._lines("", int(asked.query.get("since", "0"))))
        if path == f"{API}/chat" and asked.method == "POST":
            return self._once(asked, self._chat)
        if path.startswith(f"{API}/metrics/sessions/") and not ancient:
            found = self.world.sessions.get(path.rpartition("/")[2])
            return Reply(200, {"session": self._metrics(found)}) if found is not None else Reply(404, "")
        if path == f"{API}/sessions":
            return self._sessions(asked)
        if path.startswith(f"{API}/sessions/"):
            id, _, what = path.removeprefix(f"{API}/sessions/").partition("/")
            return self._of(asked, id, what)
        return Reply(404, "")

    def _once(self, asked: Asked, do: Callable[[Asked], Reply]) -> Reply:
        key = asked.headers.get("idempotency-key")
        if key is None:
            return do(asked)
        if not key.isascii() or not all(letter.isalnum() or letter in "-_.:" for letter in key):
            return error(
                400, "Idempotency-Key may contain only ASCII letters, digits, hyphen, underscore, dot, or colon"
            )
        if key in self._keys:
            body, reply = self._keys[key]
            if body == asked.body:
                return reply
            words = "Idempotency-Key was already used with a different request payload"
            return Reply(409, {"error": {"message": words, "code": "idempotency_key_conflict", "type": "api_error"}})
        reply = do(asked)
        self._keys[key] = (asked.body, reply)
        return reply

    def _metrics(self, session: FakeSession) -> Json:
        tokens = {"prompt_tokens": 10 * session.rounds, "completion_tokens": session.rounds, "total_tokens": 0}
        return {"session_id": session.id, "total_rounds": session.rounds, "total_token_usage": tokens}

    def _sessions(self, asked: Asked) -> Reply:
        if asked.method == "POST":
            body = asked.body if isinstance(asked.body, dict) else {}
            return Reply(201, {"session": self.world.summary(self.world.create(**body))})
        found = [self.world.summary(one) for one in reversed(self.world.sessions.values())]
        offset = min(int(asked.query.get("offset", "0")), len(found))
        limit = min(int(asked.query.get("limit", "200")), self.page)
        page = found[offset : offset + limit]
        answer: Json = {"sessions": page, "total": len(found), "limit": limit, "offset": offset}
        if offset + limit < len(found):
            answer["next_offset"] = offset + limit
        return Reply(200, answer)

    def _of(self, asked: Asked, id: str, what: str) -> Reply:
        session = self.world.sessions.get(id)
        match asked.method, what:
            case "POST", "execute":
                return self._once(asked, lambda again: self._execute(id, again))
            case "POST", "stop":
                return self._stop(session, asked)
            case "POST", "child-approval":
                return self._child_approval(id, asked.body)
            case "GET", "events" if session is not None:
                return Reply(stream=self._lines(id, None))
            case "POST", "permission-decisions" if session is None:
                return error(404, "session not found")
            case "POST" | "DELETE", _ if session is None:
                return error(404, "Session not found")
            case _ if session is None:
                return error(404, "Session not found", session_id=id)
            case "GET", "":
                return Reply(200, {"session": self.world.summary(session)})
            case "DELETE", "":
                self.world.delete(id)
                return Reply(200, "")
            case "GET", "history":
                return self._history(session, asked.query)
            case "GET", "respond/pending":
                none = {"has_pending_question": False, "interaction_kind": None}
                return Reply(200, session.pending or none)
            case "POST", "respond":
                return self._respond(session, asked.body)
            case "POST", "permission-decisions":
                return self._decide(session, asked.body)
            case "POST", "guidance" if self.line != ANCIENT_LINE:
                return self._guide(session, asked.body)
            case "GET", "task" if session.tasks is not None:
                return Reply(200, session.tasks)
            case "GET", "task":
                return error(404, "Task list not found")
            case _:
                return Reply(404, "")

    def _history(self, session: FakeSession, query: dict[str, str]) -> Reply:
        messages, since = list(session.messages), query.get("since_message_id")
        ids = [message["id"] for message in messages]
        delta = since in ids
        if delta:
            messages = messages[ids.index(str(since)) + 1 :]
        about = {"session_id": session.id, "is_delta": delta, "truncated": False}
        if query.get("projection") == "messages" and self.world.new:
            messages = [one for one in messages if one["role"] in ("user", "assistant") and one["content"]]
        else:
            about["compression_events"] = []
        return Reply(200, {**about, "messages": messages, "total_message_count": len(session.messages)})

    # --- messages and runs

    def _chat(self, asked: Asked) -> Reply:
        body = asked.body
        if not isinstance(body, dict) or "message" not in body:
            return Reply(400, "Json deserialize error: missing field `message` at line 1 column 2")
        id = body.get("session_id") or str(uuid.uuid4())
        session = self.world.sessions.get(id) or self.world.create(id=id)
        answer = {"session_id": id, "stream_url": f"{API}/events/{id}", "status": "streaming"}
        if not self.world.new:
            self.world.said(session, self.world.add_message(session, "user", body["message"]))
            return Reply(201, answer)
        if not body["message"]:
            return error(500, "Failed to persist chat session: message content must contain non-empty text")
        message = {"id": str(uuid.uuid4()), "role": "user", "content": body["message"], "created_at": timestamp()}
        session.inbox.append(message)
        if session.last_run is not None and session.run is None and session.pending is None and self.executes:
            asyncio.get_running_loop().call_later(self.takes_up_s, self._starts_by_itself, session)
        elif session.last_run is None:
            session.inbox.remove(message)
            session.messages.append(message)
            self.world.said(session, message)
        return Reply(201, {**answer, "message_id": message["id"], "ingress_seq": 1})

    def _starts_by_itself(self, session: FakeSession) -> None:
        if session.run is None:
            self.world.start(session)

    def _execute(self, id: str, asked: Asked) -> Reply:
        session = self.world.sessions.get(id)
        if not isinstance(asked.body, dict):
            return Reply(400, "Content type error")
        if session is None:
            return error(500, f"Failed to load session: session not found: {id}")
        if not self.executes:
            words = "Session authority conflict: actor activation is already owned by another live attempt"
            return error(409, words)
        sync: Json = {"need_sync": False, "has_pending_question": session.pending is not None}
        answer = {"session_id": id, "events_url": f"{API}/events/{id}", "sync": sync}
        if session.run is not None:
            return Reply(200, {**answer, "status": "already_running", "run_id": session.run})
        waits = session.messages and session.messages[-1]["role"] == "user"
        if session.pending is not None:
            sync["pending_question_tool_call_id"] = session.pending["tool_call_id"]
            return Reply(200, {**answer, "status": "completed"})
        if not waits:
            return Reply(200, {**answer, "status": "completed"})
        return Reply(202, {**answer, "status": "started", "run_id": self.world.start(session)})

    def _stop(self, session: FakeSession | None, asked: Asked) -> Reply:
        nothing = Reply(404, {"success": False, "message": "No active agent execution found"})
        if session is None or session.pending is not None:
            return nothing
        named = asked.headers.get("bamboo-run-id")
        if self.world.new and named is not None and named != (session.run or session.last_run):
            return error(409, "Requested run is not the current cancellable owner")
        stopped: Json = {"success": True, "message": "Agent execution stopped"}
        if self.world.new and named is not None:
            stopped = {"success": True, "session_id": session.id, "run_id": session.last_run}
        if session.run is None or session.stopping:
            ended = session.stopping or session.info.get("last_run_status") == "cancelled"
            return Reply(200, stopped) if self.world.new and ended else nothing
        assert session.task is not None
        session.stopping = True
        session.task.cancel()
        return Reply(200, stopped)

    def _guide(self, session: FakeSession, body: Json) -> Reply:
        if not str(body.get("text", "")).strip():
            return error(400, "A queued message needs text or an image")
        known = next((one for one in session.guidance if one["id"] == body["id"]), None)
        if known is not None and known["text"] != body["text"]:
            return error(409, "session inbox claim is invalid: message id was reused")
        if known is None:
            session.guidance.append({"mode": "after_round", **body, "created_at": timestamp()})
            if session.run is None and session.pending is None and not session.info["running_child_count"]:
                session.guidance[-1]["mode"] = "after_round"
                self.world.start(session)
        return Reply(202, {"activation_pending": False, "id": body["id"]})

    # --- event streams

    async def _lines(self, session: str, since: int | None) -> AsyncIterator[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        entry = (session, queue)
        self._queues.append(entry)
        try:
            yield "data: [KEEPALIVE]\n\n"
            for envelope in self.world.journal if since is not None else ():
                if envelope["seq"] > since:
                    yield f"id: {envelope['seq']}\ndata: {json.dumps(envelope)}\n\n"
            while (line := await self._next_line(queue)) is not None:
                yield line
                if line == "data: [DONE]\n\n":
                    return
        finally:
            self._queues.remove(entry)

    async def _next_line(self, queue: asyncio.Queue[str | None]) -> str | None:
        try:
            return await asyncio.wait_for(queue.get(), self.keepalive_s)
        except TimeoutError:
            return "data: [KEEPALIVE]\n\n"

    def end_streams(self, session: str) -> None:
        """Break off the event streams of a session (of the feed: "")."""
        for about, queue in self._queues:
            if about == session:
                queue.put_nowait(None)


@asynccontextmanager
async def fake_bamboo(line: str = NEW_LINE, **options: Any) -> AsyncIterator[FakeBamboo]:
    """A server that is running."""
    server = FakeBamboo(line, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
