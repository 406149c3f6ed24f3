"""Questions of clients that the program of a host answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pydantic import JsonValue, ValidationError

from watchfloor.errors import one_line
from watchfloor.host.clients.queries import LARGEST, bounded
from watchfloor.host.effects import Ask
from watchfloor.host.running.port import PortHost
from watchfloor.host.wire import sound, wire
from watchfloor.logs import logger
from watchfloor.protocol.frames import Error, ErrorCode, Reply
from watchfloor.protocol.model import JsonObject

Answers = Callable[[str | None, JsonObject], Awaitable[JsonValue]]
"""Answers a question about a session (None: about the host) with these arguments; what it raises is told in a line."""

ANSWER_S: Final = 30.0
"""Seconds that an answer may take."""
_log = logger(__name__)


class ProgramQueries:
    """The questions that are being answered."""

    def __init__(self, host: PortHost, answers: Mapping[str, Answers]) -> None:
        self._host = host
        self._answers = dict(answers)
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, asked: Ask) -> None:
        """Have a question answered; the client is told when it is."""
        task = asyncio.create_task(self._ask(asked), name=f"answering {asked.query.what}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, asked: Ask) -> None:
        query = asked.query
        try:
            async with asyncio.timeout(ANSWER_S):
                data = await self._answers[query.what](query.session, dict(query.args))
            answer: Reply | Error = bounded(Reply(id=query.id, data=sound(data)))
            if len(wire(answer)) > LARGEST:
                answer = Error(code=ErrorCode.TOO_LARGE, message="the answer is too large", about=query.id)
        except ValidationError:
            answer = Error(code=ErrorCode.OTHER, message="the host's program gave no JSON", about=query.id)
        except LookupError as error:
            answer = Error(code=ErrorCode.NOT_FOUND, message=one_line(error), about=query.id)
        except Exception as error:
            _log.info("%s could not be answered", query.what, exc_info=error)
            answer = Error(code=ErrorCode.OTHER, message=one_line(error), about=query.id)
        self._host.perform(self._host.core.reply(asked.conn, answer))

    def close(self) -> None:
        """Nobody waits for answers any more."""
        for task in self._tasks:
            task.cancel()
