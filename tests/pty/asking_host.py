"""A host whose agents ask when a test says so, and that keeps what was decided: everything real but the agents."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from watchfloor.canonical import subject_digest

Frame = Mapping[str, Any]
OPTIONS = [
    {"id": "yes", "label": "Allow once", "kind": "allow"},
    {"id": "no", "label": "Deny", "kind": "deny"},
]


class Decided(NamedTuple):
    """A decision that arrived. `text`: what its digest is the digest of."""

    request: str
    option: str | None
    text: str


def _now() -> int:
    return time.time_ns() // 1_000_000


class AskingHost:
    """One session for each request, both with the same id. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: list[ServerConnection] = []
        self._requests: dict[str, dict[str, Any]] = {}
        self._texts: dict[str, str] = {}
        self.decided: list[Decided] = []

    # --- what a test says ------------------------------------------------------------------

    def ask(self, id: str, text: str) -> None:
        """The agent of this name asks, or asks for something else."""
        action = {"tool": "shell", "text": text, "complete": True}
        subject = {"session": id, "attempt": 1, "id": id, "kind": "approval", "actions": [action], "options": OPTIONS}
        digest = subject_digest(subject)
        with self._lock:
            self._texts[digest] = text
            before = self._requests.get(id)
            asked_at = before["asked_at"] if before is not None else _now()
            self._requests[id] = {"subject": subject, "digest": digest, "asked_at": asked_at, "state": "open"}
            self._tell(self._summary(id), self._request(id))

    def end(self, id: str) -> None:
        """The request is withdrawn."""
        with self._lock:
            self._requests[id] |= {"state": "withdrawn"}
            self._tell(self._request(id), self._summary(id))

    @property
    def open(self) -> list[str]:
        """The ids of what waits."""
        with self._lock:
            return [id for id, request in self._requests.items() if request["state"] == "open"]

    # --- frames ----------------------------------------------------------------------------

    def _request(self, id: str) -> Frame:
        return {"type": "request", "session": id, "request": self._requests[id]}

    def _summary(self, id: str) -> Frame:
        request = self._requests[id]
        refs = [{**request, "id": id, "kind": "approval"}] if request["state"] == "open" else []
        session = {
            "id": id, "name": id, "attempt": 1, "epoch": "e", "lifecycle": "waiting" if refs else "running",
            "since": _now(), "profile": "p", "requests": refs, "head": 0,
        }  # fmt: skip
        return {"type": "sessions", "sessions": [session]}

    def _tell(self, *frames: Frame) -> None:
        for client in list(self._clients):
            try:
                for frame in frames:
                    client.send(json.dumps(frame))
            except ConnectionClosed:
                self._clients.remove(client)

    def _greeting(self) -> list[Frame]:
        host = {"name": "asking", "version": "1", "instance": "one"}
        return [
            {
                "type": "welcome", "protocol": "watchfloor.v1", "host": host, "principal": "ops", "role": "operator",
                "pos": 0, "heartbeat_s": 15, "now": _now(),
            },
            {"type": "profiles", "profiles": {"p": {"capabilities": {"approve": {}}, "traits": {}}}},
            {"type": "sessions", "sessions": [], "listed": True},
        ]  # fmt: skip

    def talk(self, ws: ServerConnection) -> None:
        """Serve one client until it leaves."""
        try:
            while True:
                try:
                    frame = json.loads(ws.recv(5.0))
                except TimeoutError:
                    ws.send(json.dumps({"type": "beat", "now": _now(), "pos": 0}))
                    continue
                with self._lock:
                    self._answer(ws, frame)
        except ConnectionClosed:
            return

    def _answer(self, ws: ServerConnection, frame: Mapping[str, Any]) -> None:
        match frame["type"]:
            case "hello":
                for told in self._greeting():
                    ws.send(json.dumps(told))
            case "watch":
                at = {"type": "watching", "session": frame["session"], "from_pos": 0, "through": 0}
                ws.send(json.dumps(at))
                if frame["session"] == "*":
                    self._clients.append(ws)
                    for id in self._requests:
                        self._tell(self._summary(id), self._request(id))
            case "command":
                self._decide(ws, frame)

    def _decide(self, ws: ServerConnection, frame: Mapping[str, Any]) -> None:
        """Take a decision of what is open and is what was meant; keep each, taken or not."""
        do = frame["do"]
        id, digest = do["request"], do["digest"]
        self.decided.append(Decided(id, do.get("option"), self._texts[digest]))
        request = self._requests[id]
        stale = request["state"] != "open" or request["digest"] != digest
        outcome = "stale_target" if stale else "applied"
        ws.send(json.dumps({"type": "outcome", "id": frame["id"], "outcome": outcome, "at": _now()}))
        if not stale:
            kind = "allow" if do.get("option") == "yes" else "deny"
            decision = {"option": do.get("option"), "kind": kind, "by": "ops", "at": _now()}
            self._requests[id] = {**request, "state": "resolved", "decision": decision}
            self._tell(self._request(id), self._summary(id))


@contextmanager
def asking(host: AskingHost) -> Iterator[str]:
    """Serve on loopback; yields the URL."""
    with serve(host.talk, "127.0.0.1", 0, subprotocols=[Subprotocol("watchfloor.v1")], compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()
