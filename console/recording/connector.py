"""A recording as a source: what it holds arrives as it did, and nothing that is sent goes anywhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from console.recording.address import SCHEME, path_of, url_of
from console.recording.past import RecordedPast
from console.recording.player import Player
from console.recording.tape import Tape
from watchfloor.connector import Arrival, Received, Target, Unreadable
from watchfloor.errors import ConfigError, ConnectionLost, ProtocolError
from watchfloor.protocol.codec import Bad, decode_host
from watchfloor.protocol.frames import (
    Beat,
    ClientFrame,
    Command,
    Error,
    ErrorCode,
    Events,
    Gone,
    History,
    HostFrame,
    Page,
    Sessions,
    UnknownFrame,
)

BEAT_S: Final = 1.0
"""How often it says what time it is there, so that waits are told by its clock, and not by ours."""
REST_S: Final = 0.001
_PLAYERS: Final[dict[str, Player]] = {}
"""The players of this process, by URL: a screen steers the one that its source plays."""


def lend(player: Player) -> str:
    """Have the source at the returned address play this one."""
    url = url_of(player.tape.path)
    _PLAYERS[url] = player
    return url


class ReplayConnector:
    """Plays one recording (a `watchfloor.connector.Connector`)."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def target(self) -> Target:
        return self._target

    async def connect(self) -> ReplayLink:
        """Begin to play. Raises ConfigError where it cannot be read."""
        if (lent := _PLAYERS.get(self._target.url)) is not None:
            return ReplayLink(lent)
        path = path_of(self._target.url)
        try:
            tape = await asyncio.to_thread(Tape, path)
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
        return ReplayLink(Player(tape, asyncio.get_running_loop().time), tape)


class ReplayFactory:
    """Makes connectors for recordings (a `watchfloor.connector.ConnectorFactory`)."""

    schemes: Final = frozenset({SCHEME})

    def __call__(self, target: Target) -> ReplayConnector:
        return ReplayConnector(target)


class ReplayLink:
    """One showing of a recording (a `watchfloor.connector.Link`)."""

    def __init__(self, player: Player, owned: Tape | None = None) -> None:
        self._player = player
        self._owned = owned
        self._again = player.again
        self._named: set[str] = set()
        self._pos = 0
        self._past: RecordedPast | None = None
        self._asked: list[History] = []
        self._reading: asyncio.Task[None] | None = None
        self._answers: list[Received] = []

    async def batches(self) -> AsyncIterator[Sequence[Arrival]]:
        player = self._player
        player.begin()
        while True:
            player.moved.clear()
            if player.again != self._again:
                self._again = player.again
                yield [Received(Gone(sessions=tuple(self._named)))]
                self._named.clear()
            marks = player.due()
            batch: list[Arrival] = [*self._answers]
            self._answers.clear()
            for mark in marks:
                batch += self._arrivals(*player.tape.line(mark))
            if player.wait_s() != 0.0:
                batch.append(Received(Beat(now=player.at, pos=self._pos)))
            yield batch
            if player.wait_s() == 0.0:
                await asyncio.sleep(REST_S)
                continue
            wait_s = player.wait_s()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(player.moved.wait(), BEAT_S if wait_s is None else min(BEAT_S, wait_s))

    async def send(self, frame: ClientFrame) -> None:
        if isinstance(frame, Command):
            raise ConnectionLost("not sent: this is a recording")
        if isinstance(frame, History):
            self._asked.append(frame)
            if self._reading is None:
                self._reading = asyncio.create_task(self._read_past(), name="past of a recording")

    async def close(self) -> None:
        if self._reading is not None:
            await self._reading
        if self._past is not None:
            self._past.close()
        # Whoever comes next sees it from its beginning.
        self._player.again += 1
        self._player.place = 0
        if self._owned is not None:
            self._owned.close()

    async def _read_past(self) -> None:
        while self._asked:
            asked = self._asked.pop(0)
            try:
                page = await asyncio.to_thread(self._page, asked, self._player.place)
                self._answers.append(Received(page))
            except (OSError, ConfigError) as error:
                about = Error(code=ErrorCode.OTHER, message=f"it cannot be read: {error}", about=asked.id)
                self._answers.append(Received(about))
            self._player.moved.set()
        self._reading = None

    def _page(self, asked: History, place: int) -> Page:
        if self._past is None:
            self._past = RecordedPast(self._player.tape)
        mark = f" #{self._again}"
        epoch = asked.epoch.removesuffix(mark) if self._again else asked.epoch
        return self._past.page(asked, place, epoch)

    # --- lines of the recording ------------------------------------------------------------

    def _arrivals(self, raw: bytes | None, noted: dict[str, Any]) -> list[Arrival]:
        if raw is None:
            return self._noted(noted)
        try:
            decoded = decode_host(raw)
        except ProtocolError as error:
            return [Unreadable(Bad(error.reason, raw[:4096].decode("utf-8", "replace")))]
        return [Received(self._of_now(decoded.frame), None, decoded.bad)]

    def _noted(self, noted: dict[str, Any]) -> list[Arrival]:
        odd = noted.get("unreadable")
        if isinstance(odd, dict):
            return [Unreadable(Bad(str(odd.get("reason", "")), str(odd.get("raw", ""))))]
        contact, why = noted.get("contact"), noted.get("why")
        if contact in ("lost", "refused", "silent"):
            message = f"the recorder's connection was {contact}" + (f": {why}" if why else "")
            return [Received(Error(code=ErrorCode.OTHER, message=message))]
        return []

    def _of_now(self, frame: HostFrame | UnknownFrame) -> HostFrame | UnknownFrame:
        """The frame as it is for this showing: what was shown before is another log."""
        match frame:
            case Sessions():
                self._named.update(summary.id for summary in frame.sessions)
                summaries = tuple(
                    one if not one.epoch else one.model_copy(update={"epoch": self._epoch(one.epoch)})
                    for one in frame.sessions
                )
                return frame.model_copy(update={"sessions": summaries})
            case Events() | Page():
                self._pos = max([self._pos, *(event.pos or 0 for event in frame.events)])
                return frame.model_copy(update={"epoch": self._epoch(frame.epoch)})
            case _ if hasattr(frame, "epoch"):
                return frame.model_copy(update={"epoch": self._epoch(frame.epoch)})
            case _:
                return frame

    def _epoch(self, epoch: str) -> str:
        return f"{epoch} #{self._again}" if self._again else epoch
