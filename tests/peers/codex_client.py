"""Another client of an app-server: starts threads and turns, answers requests, and keeps every frame."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Frame = dict[str, Any]
WAIT_S = 60.0


def script(*steps: Frame, about: str = "work") -> str:
    """A message that has the scripted model do these steps."""
    return f"{about} do: {json.dumps(steps)}"


class CodexClient:
    """`frames`: what was sent (">") and what came ("<"), in order."""

    def __init__(self, ws: ClientConnection) -> None:
        self._ws = ws
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Frame]] = {}
        self._moved = asyncio.Event()
        self.frames: list[tuple[str, Frame]] = []

    async def read(self) -> None:
        try:
            async for raw in self._ws:
                frame = json.loads(raw)
                self.frames.append(("<", frame))
                asked = self._asked.pop(frame.get("id"), None) if "method" not in frame else None
                if asked is not None and not asked.done():
                    asked.set_result(frame)
                self._moved.set()
        except ConnectionClosed:
            pass

    async def send(self, frame: Frame) -> None:
        self.frames.append((">", frame))
        await self._ws.send(json.dumps(frame))

    async def call(self, method: str, **params: Any) -> Frame:
        """The result of a call. Raises AssertionError where the server refuses it."""
        id = next(self._numbers)
        asked = self._asked[id] = asyncio.get_running_loop().create_future()
        await self.send({"id": id, "method": method, "params": params})
        async with asyncio.timeout(WAIT_S):
            answer = await asked
        assert "result" in answer, answer
        result: Frame = answer["result"]
        return result

    async def answer(self, request: Frame, result: Frame) -> None:
        await self.send({"id": request["id"], "result": result})

    async def thread(self, cwd: object, **settings: Any) -> str:
        """A new thread; returns its id."""
        policy = {"approvalPolicy": "on-request", "sandbox": "workspace-write", **settings}
        answer = await self.call("thread/start", cwd=str(cwd), **policy)
        id: str = answer["thread"]["id"]
        return id

    async def turn(self, thread: str, said: str, **settings: Any) -> str:
        """Say something; returns the id of the turn."""
        text = {"type": "text", "text": said, "text_elements": []}
        answer = await self.call("turn/start", threadId=thread, input=[text], **settings)
        id: str = answer["turn"]["id"]
        return id

    async def until(self, met: Callable[[Frame], object], since: int = 0) -> Frame:
        """The first frame from `since` on that came and meets the condition."""
        async with asyncio.timeout(WAIT_S):
            while True:
                for way, frame in self.frames[since:]:
                    if way == "<" and met(frame):
                        return frame
                self._moved.clear()
                await self._moved.wait()

    async def told(self, method: str, thread: str | None = None, since: int = 0) -> Frame:
        """The first notification or request of this method, of this thread."""

        def met(frame: Frame) -> bool:
            same = thread is None or frame.get("params", {}).get("threadId") == thread
            return frame.get("method") == method and same

        return await self.until(met, since)


@asynccontextmanager
async def codex_client(
    port: int, *, name: str = "other", token: str | None = None, quiet: Sequence[str] = ()
) -> AsyncIterator[CodexClient]:
    """A client that is initialized. `quiet`: notifications that it does not want."""
    headers = {"authorization": f"Bearer {token}"} if token is not None else {}
    async with connect(f"ws://127.0.0.1:{port}", additional_headers=headers, max_size=None, proxy=None) as ws:
        client = CodexClient(ws)
        reading = asyncio.create_task(client.read())
        try:
            about = {"name": name, "title": name, "version": "1"}
            wants = {"experimentalApi": True, "optOutNotificationMethods": list(quiet)}
            await client.call("initialize", clientInfo=about, capabilities=wants)
            await client.send({"method": "initialized"})
            yield client
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
