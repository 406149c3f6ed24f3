"""The pipe to an agent of the Agent Client Protocol: JSON-RPC messages, one a line, as the PyPI package takes them.

Whatever an agent prints must not break the connection: what is no message is told and left out, and so is a line that
does not end. Updates are handed over here and in order, as the agent sent them.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from watchfloor.harness.calls import sound
from watchfloor.harness.process import Process
from watchfloor.logs import logger

Message = dict[str, Any]

MAX_LINE: Final = 4 * 1024 * 1024
"""Most bytes of one message; a longer line is left out."""
UPDATE: Final = "session/update"
PERMISSION: Final = "session/request_permission"
_NO_SUCH_METHOD = -32601
_UNNAMED_ERROR = -32603
_SHOWN = 200

_log = logger(__name__)


class Lines:
    """Puts bytes together to messages. No I/O."""

    def __init__(self, most: int = MAX_LINE) -> None:
        self._most = most
        self._begun = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[Message | str]:
        """The messages that are whole now, and in words what was no message."""
        found: list[Message | str] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._add(data[start:end], found)
            line, self._begun = bytes(self._begun), bytearray()
            if not self._skipping and line.strip():
                found.append(read(line))
            self._skipping = False
            start = end + 1
        self._add(data[start:], found)
        return found

    def end(self) -> list[Message | str]:
        """Nothing more comes; a line without an end may still be a message."""
        return self.feed(b"\n")

    def _add(self, part: bytes, found: list[Message | str]) -> None:
        if self._skipping:
            return
        self._begun += part
        if len(self._begun) > self._most:
            self._begun.clear()
            self._skipping = True
            found.append(f"a line of more than {self._most} bytes")


def read(line: bytes) -> Message | str:
    """One line as a message that the package can take, or what is wrong with it."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return sound(line[:_SHOWN].decode("utf-8", "replace").strip())
    if not isinstance(message, dict):
        return f"JSON that is no message: {str(message)[:_SHOWN]}"
    id = message.get("id")
    if id is not None and type(id) not in (int, str):
        return f"a message with the id {str(id)[:_SHOWN]}"
    if "method" in message and not isinstance(message["method"], str):
        return f"a message with the method {str(message['method'])[:_SHOWN]}"
    error = message.get("error")
    if error is not None and "method" not in message and not _sound_error(error):
        message["error"] = {"code": _UNNAMED_ERROR, "message": str(error)[:_SHOWN]}
    return message


def _sound_error(error: object) -> bool:
    return isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)


class Wire:
    """A transport of the package over the pipes of a process.

    `update` gets the params of each `session/update`; `noise` what was no message, in words.
    """

    def __init__(self, process: Process, update: Callable[[Any], None], noise: Callable[[str], None]) -> None:
        self._process = process
        self._update = update
        self._noise = noise
        self._lines = Lines()
        self._ready: deque[Message | str] = deque()
        self._outbox: asyncio.Queue[tuple[bytes, asyncio.Future[None]]] = asyncio.Queue()
        # A task of its own: a caller that is cancelled must not leave half of a line in the pipe.
        self._writing = asyncio.create_task(self._write(), name=f"input of {process.pid}")
        self.ended = asyncio.Event()
        """The agent says nothing more."""

    async def receive(self) -> Message | None:
        """The next response or permission request; None at the end."""
        while True:
            while self._ready:
                # Lets others run: one read may hold thousands of messages.
                await asyncio.sleep(0)
                message = await self._sort(self._ready.popleft())
                if message is not None:
                    return message
            if self.ended.is_set():
                return None
            data = await self._process.read("stdout")
            self._ready.extend(self._lines.feed(data) if data else self._lines.end())
            if not data:
                await self._rest()
                self.ended.set()

    async def _rest(self) -> None:
        """Hand on what came before the end, so that whoever waits for the end has seen all of it."""
        kept: deque[Message | str] = deque()
        while self._ready:
            message = await self._sort(self._ready.popleft())
            if message is not None:
                kept.append(message)
        self._ready = kept

    async def _sort(self, message: Message | str) -> Message | None:
        """Take what is ours; what remains is for the package."""
        if isinstance(message, str):
            self._noise(message)
            return None
        method = message.get("method")
        if method is None or (method == PERMISSION and message.get("id") is not None):
            return message
        if method == UPDATE:
            self._update(message.get("params"))
        elif message.get("id") is not None:
            error = {"code": _NO_SUCH_METHOD, "message": f"this client has no {method[:_SHOWN]}"}
            # Waiting for it bounds what an agent that asks and never reads can make us keep.
            with suppress(ConnectionError):
                await self._put({"jsonrpc": "2.0", "id": message["id"], "error": error})
        else:
            _log.info("a notification of the agent was left out: %s", method[:_SHOWN])
        return None

    async def send(self, message: Message) -> None:
        """Raises ConnectionError where the agent reads no more."""
        await self._put(message)

    def _put(self, message: Message) -> asyncio.Future[None]:
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        data = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        if self._writing.done():
            written.set_exception(ConnectionError("the agent reads no more"))
            written.exception()  # nobody has to wait for it
        else:
            self._outbox.put_nowait((data, written))
        return written

    async def _write(self) -> None:
        fault = "the connection was closed"
        try:
            while True:
                data, written = await self._outbox.get()
                try:
                    await self._process.write(data)
                except BaseException as error:
                    if isinstance(error, OSError):
                        fault = "the agent reads no more"
                    self._settle(written, fault)
                    if isinstance(error, OSError):
                        return
                    raise
                self._settle(written)
        finally:
            while not self._outbox.empty():
                self._settle(self._outbox.get_nowait()[1], fault)

    @staticmethod
    def _settle(written: asyncio.Future[None], fault: str | None = None) -> None:
        if written.done():
            return
        if fault is None:
            written.set_result(None)
        else:
            written.set_exception(ConnectionError(fault))
            written.exception()

    async def close(self) -> None:
        self._writing.cancel()
        with suppress(asyncio.CancelledError):
            await self._writing
