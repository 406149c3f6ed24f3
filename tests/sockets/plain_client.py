"""A client of watchfloor.v1 written from docs/protocol alone: the standard library, `websockets`, nothing of ours.

It shows that the page suffices, so it must not learn anything from the code of the host or of our own client.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

Obj = dict[str, Any]

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
LIMIT = 2**53 - 1


def canonical(value: object, depth: int = 1) -> str:
    """The canonical text of a value; ValueError where it has none."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and -LIMIT <= value <= LIMIT:
        return str(value)
    if isinstance(value, str):
        value.encode()  # a lone surrogate is a UnicodeEncodeError, which is a ValueError
        return '"' + re.sub(r'["\\\x00-\x1f]', lambda m: ESCAPES.get(m[0], f"\\u{ord(m[0]):04x}"), value) + '"'
    if isinstance(value, list | dict) and depth > 64:
        raise ValueError("deeper than 64")
    if isinstance(value, list):
        return "[" + ",".join(canonical(one, depth + 1) for one in value) + "]"
    if isinstance(value, dict):
        names = sorted(value)  # Python compares strings by code point
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name], depth + 1)}" for name in names) + "}"
    raise ValueError(f"no canonical form: {value!r}")


def digest(subject: object) -> str:
    return "sha256:" + hashlib.sha256(canonical(subject).encode()).hexdigest()


class PlainClient:
    """All that a host has told, and the frames to ask it for more. It reads only while somebody waits in `until`.

    `holds`: how many bytes may lie unread on its side, of which the system otherwise takes many megabytes.
    """

    def __init__(self, url: str, name: str = "plain", token: str | None = None, *, holds: int | None = None) -> None:
        self.url, self.name, self.token, self.holds = url, name, token, holds
        self.ws: ClientConnection
        self.welcome: Obj = {}
        self.profiles: dict[str, Obj] = {}
        self.sessions: dict[str, Obj] = {}
        self.listed = False
        self.requests: dict[tuple[str, str], Obj] = {}
        self.watching: dict[str, Obj] = {}
        self.pos = 0
        self.epochs: dict[str, str] = {}
        self.events: dict[str, dict[int, Obj]] = {}
        self.streams: dict[tuple[str, str], str] = {}
        self.arrived: list[Obj] = []  # events in the order in which this connection brought them
        self.answers: dict[str, Obj] = {}
        self.others: dict[str, list[Obj]] = {}  # beat, gap, lagged, presence, error, and what a newer host sends
        self.ignored: Counter[str] = Counter()

    # ------------------------------------------------------------ the connection

    async def open(self) -> None:
        """Connect, say hello, and read until every session is listed."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        self.ws = await connect(
            self.url,
            subprotocols=[Subprotocol("watchfloor.v1")],
            additional_headers=headers,
            max_size=16 * 2**20,
            max_queue=16 if self.holds is None else 1,
            proxy=None,
            sock=None if self.holds is None else await self._socket(self.holds),
        )
        self.listed, self.profiles, self.sessions, self.requests = False, {}, {}, {}
        self.watching, self.arrived = {}, []
        await self.tell("hello", client="plain", version="1", name=self.name)
        await self.until(lambda: self.listed)

    async def _socket(self, holds: int) -> socket.socket:
        parts = urlsplit(self.url)
        made = socket.socket()
        # Its size counts from the first packet on, so that it has to be set before there is a connection.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, holds)
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, (parts.hostname, parts.port))
        return made

    async def tell(self, type_: str, **members: Any) -> None:
        await self.ws.send(json.dumps({"type": type_} | members, ensure_ascii=False))

    async def until(self, holds: Callable[[], object], timeout_s: float = 60) -> None:
        """Take frames until the condition holds; TimeoutError where it does not come true in time."""
        async with asyncio.timeout(timeout_s):
            while not holds():
                self.take(json.loads(await self.ws.recv()))

    # ------------------------------------------------------------ frames of the host

    def take(self, frame: Obj) -> None:
        match frame["type"]:
            case "welcome":
                self.welcome = frame
            case "profiles":
                self.profiles |= frame["profiles"]
            case "sessions":
                for summary in frame["sessions"]:
                    self.sessions.setdefault(summary["id"], {}).update(summary)
                self.listed = self.listed or frame.get("listed", False)
            case "gone":
                for session in frame["sessions"]:
                    self.sessions.pop(session, None)
                    self.requests = {key: held for key, held in self.requests.items() if key[0] != session}
            case "request":
                self.requests[frame["session"], frame["request"]["subject"]["id"]] = frame["request"]
            case "watching":
                self.watching[frame["session"]] = frame
                self.pos = frame["from_pos"] if frame["session"] == "*" else self.pos
            case "events":
                self.take_events(frame)
            case "page":
                self.take_events(frame)
                self.answers[frame["id"]] = frame
            case "outcome" | "reply":
                self.answers[frame["id"]] = frame
            case other:
                self.others.setdefault(other, []).append(frame)
                if other == "error" and frame.get("about"):
                    self.answers[frame["about"]] = frame

    def take_events(self, frame: Obj) -> None:
        session, live = frame["session"], frame["type"] == "events"
        if self.epochs.setdefault(session, frame["epoch"]) != frame["epoch"]:
            self.epochs[session] = frame["epoch"]
            self.events.pop(session, None)
            self.streams = {key: text for key, text in self.streams.items() if key[0] != session}
        for event in frame["events"]:
            item = (session, event.get("item") or "")
            if event["kind"] == "delta":
                text = self.streams.get(item, "")
                if event["offset"] <= len(text):  # otherwise a piece was lost: the whole item will come
                    self.streams[item] = text[: event["offset"]] + event["text"]
            elif isinstance(event.get("seq"), int):
                self.streams.pop(item, None)
                self.events.setdefault(session, {})[event["seq"]] = event
                if live:
                    self.arrived.append(event)
                    self.pos = max(self.pos, event["pos"])
            else:
                self.ignored[event["kind"]] += 1

    # ------------------------------------------------------------ frames of the client

    async def watch(self, session: str = "*", **where: Any) -> Obj:
        self.watching.pop(session, None)
        await self.tell("watch", session=session, **where)
        await self.until(lambda: session in self.watching)
        return self.watching[session]

    async def resume(self) -> Obj:
        """A new connection that goes on where the last one ended, or from the start where the logs are others."""
        before = self.welcome["host"]["instance"]
        await self.open()
        same = self.welcome["host"]["instance"] == before or all(
            self.sessions.get(session, {}).get("epoch") == epoch for session, epoch in self.epochs.items()
        )
        return await (self.watch(after=self.pos) if same else self.watch(start="start"))

    async def ask(self, type_: str, id_: str | None = None, **members: Any) -> Obj:
        """Send a frame with an id and wait for what answers it, be it an error."""
        id_ = id_ or uuid.uuid4().hex
        self.answers.pop(id_, None)
        await self.tell(type_, id=id_, **members)
        await self.until(lambda: id_ in self.answers)
        return self.answers[id_]

    async def history(self, session: str, **where: Any) -> Obj:
        return await self.ask("history", session=session, epoch=self.sessions[session]["epoch"], **where)

    async def command(self, session: str, primitive: str, id_: str | None = None, **members: Any) -> Obj:
        seen = {name: members.pop(name) for name in ("attempt", "turn") if name in members}
        return await self.ask("command", id_, session=session, do={"primitive": primitive} | members, **seen)

    async def decide(self, session: str, request: str, primitive: str, **choice: Any) -> Obj:
        """Approve or answer by the digest of what was shown; never where that is not the digest that the host sent."""
        shown = self.requests[session, request]
        own = digest(shown["subject"])
        if own != shown["digest"]:
            raise ValueError(f"the digest of {request} does not match")
        return await self.command(session, primitive, request=request, digest=own, **choice)

    async def recall(self, *ids: str) -> list[Obj]:
        for id_ in ids:
            self.answers.pop(id_, None)
        await self.tell("recall", ids=list(ids))
        await self.until(lambda: all(id_ in self.answers for id_ in ids))
        return [self.answers[id_] for id_ in ids]
