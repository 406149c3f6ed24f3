"""A host of watchfloor.v1 that says what a test has written for it, from a thread of the test. It runs no agent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

from watchfloor.canonical import subject_digest

Frame = Mapping[str, Any]
BEATS_EVERY_S: Final = 5.0
NOW: Final = time.time_ns() // 1_000_000

PROFILE: Final[Mapping[str, Any]] = {
    "send": {"priorities": ["normal", "interrupt", "queue"]},
    "pause": {"interrupt": True},
    "resume": {},
    "interrupt": {},
    "stop": {"kill": True},
    "reseed": {"modes": ["clear", "rewind", "replace", "compact", "model"]},
    "budget": {"tokens": True, "turns": True},
    "fork": {},
    "notify": {},
    "delete": {},
    "approve": {},
    "answer": {},
}


class Words:
    """Texts in turn, so that each of them comes to stand in every kind of place."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._next = 0

    def __call__(self) -> str:
        self._next += 1
        return self._texts[self._next % len(self._texts)]

    def some(self, count: int) -> str:
        """Several texts in one."""
        return " ".join(self() for _ in range(count))


class ScriptedHost:
    """Sessions `0` to `sessions - 1`: of each ten, six ask for an approval, two ask a question, two ask nothing.

    Each has events of every kind. Every command is declined.
    """

    def __init__(self, texts: Sequence[str], sessions: int) -> None:
        self.word = Words(texts)
        self._texts = texts
        self._sessions = [f"{n}-{self.word()}" for n in range(sessions)]
        self._requests = [self._request(n, id) for n, id in enumerate(self._sessions)]
        self._pos = 0
        self._events = [self._events_of(id) for id in self._sessions]
        self.told: list[Mapping[str, Any]] = []

    # --- what it says ----------------------------------------------------------------------

    def greeting(self) -> list[Frame]:
        """What comes before anybody asks: who it is, and every session."""
        word = self.word
        host = {"name": word(), "version": word(), "instance": "one"}
        welcome = {"type": "welcome", "protocol": "watchfloor.v1", "host": host, "principal": word()}
        field = {"name": word(), "type": "text", "label": word()}
        acts = [{"id": f"{n}-{word()}", "label": word(), "effect": word(), "fields": [field]} for n in range(6)]
        offered = {**PROFILE, "act": {"acts": acts}, "teleport": {word(): word()}}
        profile = {"capabilities": offered, "traits": {}}
        return [
            {**welcome, "role": "operator", "pos": self._pos, "heartbeat_s": 15, "now": NOW},
            {"type": "profiles", "profiles": {"p": profile}},
            {"type": "sessions", "sessions": [self._summary(n) for n in range(len(self._sessions))], "listed": True},
            {"type": "error", "code": "other", "message": word(), "about": word()},
            {"type": word(), word(): word()},
        ]

    def watched(self) -> list[Frame]:
        """What comes once everything is watched."""
        frames: list[Frame] = [{"type": "watching", "session": "*", "from_pos": 0, "through": self._pos}]
        for id, events in zip(self._sessions, self._events, strict=True):
            frames.append({"type": "events", "session": id, "epoch": "e", "events": events})
        for id, request in zip(self._sessions, self._requests, strict=True):
            if request is not None:
                frames.append({"type": "request", "session": id, "request": request})
                frames.append(self._presence(id, request))
        return frames

    def outcome(self, command: Mapping[str, Any]) -> Frame:
        """Every command is declined, with a reason."""
        return {"type": "outcome", "id": command["id"], "outcome": "refused", "reason": self.word.some(2), "at": NOW}

    def commands(self) -> list[str]:
        """The primitives of the commands that came, in their order."""
        return [frame["do"]["primitive"] for frame in self.told if frame["type"] == "command"]

    def _presence(self, id: str, request: Frame) -> Frame:
        looks = [self.word(), self.word()]
        return {"type": "presence", "session": id, "request": request["subject"]["id"], "looking": looks}

    def _summary(self, n: int) -> Frame:
        word = self.word
        request = self._requests[n]
        refs = (
            [] if request is None else [{**request, "id": request["subject"]["id"], "kind": request["subject"]["kind"]}]
        )
        return {
            "id": self._sessions[n],
            "name": f"{n:02}{self._texts[n % len(self._texts)]}",
            "attempt": 1,
            "turn": word(),
            "epoch": "e",
            "lifecycle": "waiting" if refs else ("failed" if n % 2 else "running"),
            "native_state": word(),
            "why": word(),
            "since": NOW - 60_000,
            "profile": "p",
            "blocked": {"pause": word()},
            "controls": {"resume": word()},
            "pending": {"overlay": "stopping", "by": word(), "since": NOW} if n % 7 == 0 else None,
            "in_flight": [{"id": word(), "name": word(), "since": NOW}],
            "mailbox": {"queued": 1, "refs": 2},
            "requests": refs,
            "head": len(self._events[n]),
            "last": {"at": NOW, "kind": "message", "text": word()},
            "labels": {word(): word(), "team": word()},
            "cwd": f"/srv/{word()}",
            "result": {"text": word(), "final_message": word(), "stop_reason": word(), "session_id": word()},
            "error": word() if not refs and n % 2 else None,
        }

    def _request(self, n: int, id: str) -> dict[str, Any] | None:
        if n % 10 >= 8:
            return None
        word = self.word
        subject: dict[str, Any] = {"session": id, "attempt": 1, "id": f"r{n}-{word()}", "kind": "approval"}
        options = [
            {"id": f"yes-{word()}", "label": word(), "kind": "allow", "note": word()},
            {"id": "all", "label": word(), "kind": "allow", "scope": "session", "grants": [word()], "note": word()},
            {"id": "no", "label": word(), "kind": "deny", "note": word()},
        ]
        if n % 10 >= 6:
            choices = [{"value": word(), "label": word(), "note": word()} for _ in range(3)]
            field = {"name": word(), "type": "choice", "label": word(), "choices": choices, "free_text": True}
            subject |= {"kind": "question", "fields": [field]}
        else:
            action = {"tool": word(), "cwd": word(), "diff": f"--- a\n+++ b\n-{word()}\n+{word()}", "complete": True}
            said = {"text": word.some(2)} if n % 2 else {"arguments": {word(): word(), word(): [word(), {word(): 1}]}}
            subject |= {"actions": [action | said], "options": options}
        asked = {"digest": subject_digest(subject), "asked_at": NOW - 60_000 - n, "about": word.some(3)}
        return {"subject": subject, "state": "open", **asked}

    def _events_of(self, id: str) -> list[Frame]:
        word = self.word
        kinds: list[dict[str, Any]] = [
            {"kind": "message", "role": "assistant", "text": word.some(3), "author": word()},
            {"kind": "message", "role": "user", "text": word()},
            {"kind": "message", "text": word.some(60)},
            {"kind": "reasoning", "text": word()},
            {"kind": "tool_call", "call": "c", "name": word(), "arguments": {word(): word()}, "cwd": word()},
            {"kind": "tool_call", "call": "d", "name": word(), "text": word()},
            {"kind": "tool_output", "call": "c", "stream": word(), "text": word()},
            {"kind": "tool_result", "call": "c", "status": "ok", "text": word(), "exit_code": 0},
            {"kind": "tool_result", "call": "d", "status": word(), "text": word()},
            {"kind": "diff", "path": word(), "text": word()},
            {"kind": "plan", "steps": [{"text": word(), "status": word()}, {"text": word()}]},
            {"kind": "progress", "note": word()},
            {"kind": "notice", "level": "warning", "code": word(), "text": word()},
            {"kind": "mail", "ref": word(), "state": "failed", "text": word(), "by": word(), "error": word()},
            {"kind": "request_opened", "request": word(), "request_kind": "approval", "digest": "d", "text": word()},
            {"kind": "request_resolved", "request": word(), "state": "resolved", "option": word(), "by": word()},
            {"kind": "lifecycle", "lifecycle": "waiting", "native_state": word(), "why": word()},
            {"kind": "child", "session": word(), "name": word(), "state": word()},
            {"kind": "intervention", "primitive": word(), "command": word(), "by": word(), "outcome": "refused"},
            {"kind": "intervention", "primitive": "stop", "command": "x", "by": word(), "outcome": "refused",
             "reason": word(), "info": {word(): word()}},
            {"kind": "reseeded", "mode": "clear", "by": word(), "note": word()},
            {"kind": "result", "result": {"text": word(), "stop_reason": "end_turn", "session_id": word()}},
            {"kind": "raw", "data": {word(): [word()]}, "note": word()},
            {"kind": f"new-{word()}", word(): word()},
        ]  # fmt: skip
        made: list[Frame] = []
        for seq, event in enumerate(kinds, 1):
            self._pos += 1
            made.append({"seq": seq, "pos": self._pos, "attempt": 1, "at": NOW, **event})
        return made

    # --- the connection --------------------------------------------------------------------

    def talk(self, ws: ServerConnection) -> None:
        """Serve one client until it leaves, and tell it now and then that this host lives."""
        try:
            while True:
                try:
                    message = ws.recv(BEATS_EVERY_S)
                except TimeoutError:
                    ws.send(json.dumps({"type": "beat", "now": NOW, "pos": self._pos}))
                    continue
                frame = json.loads(message)
                self.told.append(frame)
                for answer in self._answers(frame):
                    ws.send(json.dumps(answer))
        except ConnectionClosed:
            return

    def _answers(self, frame: Mapping[str, Any]) -> list[Frame]:
        match frame["type"]:
            case "hello":
                return self.greeting()
            case "watch" if frame["session"] == "*":
                return self.watched()
            case "watch":
                return [{"type": "watching", "session": frame["session"], "from_pos": 0, "through": 0}]
            case "command":
                return [self.outcome(frame)]
            case _:
                return []


@contextmanager
def serving(host: ScriptedHost) -> Iterator[str]:
    """Serve on loopback; yields the URL."""
    with serve(host.talk, "127.0.0.1", 0, subprotocols=[Subprotocol("watchfloor.v1")], compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()
