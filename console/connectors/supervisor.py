"""Keeps one source connected, and says whether it is heard.

Each source has a supervisor and a task of its own: whatever a sick source or its connector does stays with
it. There is no last try. Silence is told before it becomes a loss, and neither means that an agent stopped.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from watchfloor.connector import Arrival, Clock, Connector, Link, Received, Target
from watchfloor.errors import ConfigError, ConnectionFailed, ConnectionLost, Unreachable, WatchfloorError
from watchfloor.protocol.frames import ClientFrame, Command, Outcome
from watchfloor.words import Contact, OutcomeKind

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContactChange:
    """The contact with the source is another one now.

    `why` is one line for the operator, `tries` counts the tries since the source was last connected for a while,
    `retry_at` says when the next one begins (lost and None: there will be none) and `at` since when it is so: a source
    is silent since it was last heard, not since that was noticed. Both are milliseconds since 1970 UTC by our clock.
    """

    contact: Contact
    why: str = ""
    tries: int = 0
    retry_at: int | None = None
    at: int = 0


Item: TypeAlias = Arrival | ContactChange
Sink: TypeAlias = Callable[[Sequence[Item]], None]
"""Takes what arrived, in order. Called on the event loop; it must not block."""
Room: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when there is room for more: nothing is read before, and the source comes to wait."""


@dataclass(frozen=True, slots=True)
class Timings:
    """All in seconds."""

    first_delay_s: float = 2.0
    """The n-th try waits between nothing and twice as long as the one before could, from here ..."""
    longest_delay_s: float = 30.0
    """... up to here."""
    refused_delay_s: float = 60.0
    """Between tries where a try cannot help until somebody changes something."""
    silent_after_s: float = 40.0
    lost_after_s: float = 60.0
    steady_after_s: float = 10.0
    """A connection that ended sooner counts as a failed try, so that a host that hangs up is not hammered."""
    connect_s: float = 60.0
    """How long a connector may take to connect; ours gives up sooner, and says more."""
    close_s: float = 2.0
    """How long a connection may take to end before it is left alone."""


class Timer(Protocol):
    """Time that passes, apart from the time of day."""

    def now(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class LoopTimer:
    """The event loop's time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_SUSPENDED_S: Final = 2.0
"""A sleep that ends this much too late means that this process was stopped or starved meanwhile."""


class Supervisor:
    """Dials, reads, and dials again, until it is closed.

    `connector_factory` makes the connector when it is first needed; its ConfigError is told as a refusal. `room` is
    waited for between two batches.
    """

    def __init__(
        self,
        connector_factory: Callable[[Target], Connector],
        target: Target,
        sink: Sink,
        clock: Clock,
        rng: random.Random,
        *,
        timings: Timings | None = None,
        timer: Timer | None = None,
        room: Room | None = None,
    ) -> None:
        self._factory = connector_factory
        self._target = target
        self._sink = sink
        self._clock = clock
        self._rng = rng
        self._timings = timings or Timings()
        self._timer = timer or LoopTimer()
        self._room = room
        self._connector: Connector | None = None
        self._link: Link | None = None
        self._life: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._closed = False
        self.let_go_for: str | None = None
        """Why it is dialled no more; None while it is."""
        self._tries = 0
        self._heard = 0.0
        self._heard_at = 0
        self.contact = Contact.CONNECTING

    @property
    def target(self) -> Target:
        return self._target

    async def run(self) -> None:
        """Keep the source connected. Returns once `close` was called, or what `let_go` waits for has happened;
        cancelling it closes as well."""
        if self._closed:
            return
        life = self._life = asyncio.create_task(self._live(), name=f"source {self._target.name}")
        try:
            await asyncio.wait({life})
            if not life.cancelled() and (fault := life.exception()) is not None:
                _log.critical("the supervisor of %r failed", self._target.name, exc_info=fault)
                self._change(Contact.LOST, "the console itself failed here: the log has the details")
        finally:
            await _end(life)

    async def send(self, frame: ClientFrame) -> None:
        """Hand a frame to the source.

        Raises ConnectionLost when it certainly did not leave, and ProtocolError when it cannot be written.
        Where the connector fails otherwise nobody knows: a command is then answered to the sink by `unknown`.
        """
        link = self._link
        if link is None:
            raise ConnectionLost(f"not sent: {self._target.name} is not connected")
        try:
            await link.send(frame)
        except WatchfloorError:
            raise
        except Exception:
            _log.exception("the connector of %r failed to send a %s", self._target.name, type(frame).__name__)
            if isinstance(frame, Command):
                self._tell(self._unknown(frame))

    def retry_now(self) -> None:
        """Do not wait for the next try. Without effect while connected."""
        self._hurry.set()

    def let_go(self, why: str) -> None:
        """Dial no more. A connection that stands is used until it ends; then the source is lost for this reason."""
        self.let_go_for = why
        self._hurry.set()

    async def close(self) -> None:
        """End the connection, and with it `run`."""
        self._closed = True
        if self._life is not None:
            await _end(self._life)

    # --- the life of a source ----------------------------------------------------------------

    async def _live(self) -> None:
        self._change(Contact.CONNECTING)
        while self.let_go_for is None:
            connected_at: float | None = None
            since: int | None = None
            helps = True
            try:
                self._link = await self._connect()
                connected_at = self._timer.now()
                (why, since), contact = await self._listen(self._link), Contact.LOST
            except ConnectionFailed as error:
                why, helps = str(error), error.retry
                contact = Contact.LOST if helps or connected_at is not None else Contact.REFUSED
            except ConfigError as error:
                why, contact, helps = str(error), Contact.REFUSED, False
            except Exception as error:
                _log.exception("the connector of %r failed", self._target.name)
                why, contact = f"its connector failed ({type(error).__name__}): the log has the details", Contact.LOST
            finally:
                await self._hang_up()
            if connected_at is not None and self._timer.now() - connected_at >= self._timings.steady_after_s:
                self._tries = 0
            self._tries += 1
            if self.let_go_for is None:
                await self._wait(why, contact, since, helps=helps)
        self._change(Contact.LOST, self.let_go_for)

    async def _connect(self) -> Link:
        if self._connector is None:
            self._connector = self._factory(self._target)
        try:
            async with asyncio.timeout(self._timings.connect_s):
                return await self._connector.connect()
        except TimeoutError:
            raise Unreachable(f"{self._target.name} is not connected after {self._timings.connect_s:g} s") from None

    async def _listen(self, link: Link) -> tuple[str, int | None]:
        """Pass on what arrives until the connection ends or falls silent for too long; returns why, and since when
        if that is not now."""
        self._heard, self._heard_at = self._timer.now(), self._clock()
        self._change(Contact.LIVE)
        reading = asyncio.create_task(self._read(link))
        watching = asyncio.create_task(self._watch_for_silence())
        try:
            await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                # Raises what ended it, if it was not good order.
                reading.result()
                return f"{self._target.name} ended the connection", None
            watching.result()
            return f"nothing was heard for {self._timings.lost_after_s:g} s", self._heard_at
        finally:
            await _end(reading, watching)

    async def _read(self, link: Link) -> None:
        async for batch in link.batches():
            self._heard, self._heard_at = self._timer.now(), self._clock()
            if self.contact is not Contact.LIVE:
                self._change(Contact.LIVE)
            self._tell(*batch)
            if self._room is not None:
                await self._room()
                # Whatever time that took, it was not the source that was silent.
                self._heard = self._timer.now()

    async def _watch_for_silence(self) -> None:
        """Say when the source falls silent; return when it counts as lost."""
        timings, timer = self._timings, self._timer
        while True:
            limit = timings.lost_after_s if self.contact is Contact.SILENT else timings.silent_after_s
            due = self._heard + limit
            await timer.sleep(max(0.0, due - timer.now()))
            if timer.now() - due > _SUSPENDED_S:
                # We did not listen meanwhile, so the silence may have been ours: the source gets a while to be heard.
                self._heard = max(self._heard, timer.now() - timings.silent_after_s / 2)
            quiet_s = timer.now() - self._heard
            if quiet_s >= timings.lost_after_s:
                return
            if quiet_s >= timings.silent_after_s and self.contact is Contact.LIVE:
                self._change(Contact.SILENT, since=self._heard_at)

    async def _wait(self, why: str, contact: Contact, since: int | None, *, helps: bool) -> None:
        """Tell what happened, and wait until the next try is due or asked for; `helps`: it may bring something else."""
        self._hurry.clear()
        delay_s = self._delay(helps=helps)
        self._change(contact, why, self._tries, self._clock() + round(delay_s * 1000), since)
        waits = {asyncio.create_task(self._timer.sleep(delay_s)), asyncio.create_task(self._hurry.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(*waits)
        if self._hurry.is_set() and self.let_go_for is None:
            self._change(Contact.CONNECTING, tries=self._tries)

    def _delay(self, *, helps: bool) -> float:
        if not helps:
            return self._timings.refused_delay_s
        return retry_delay_s(self._timings, self._tries, self._rng)

    async def _hang_up(self) -> None:
        link, self._link = self._link, None
        if link is None:
            return
        try:
            async with asyncio.timeout(self._timings.close_s):
                await link.close()
        except Exception:
            _log.warning("the connection to %r did not end in good order", self._target.name, exc_info=True)

    # --- to the sink ---------------------------------------------------------------------------

    def _change(
        self,
        contact: Contact,
        why: str = "",
        tries: int = 0,
        retry_at: int | None = None,
        since: int | None = None,
    ) -> None:
        self.contact = contact
        self._tell(ContactChange(contact, why, tries, retry_at, self._clock() if since is None else since))

    def _tell(self, *items: Item) -> None:
        if not items:
            return
        try:
            self._sink(items)
        except Exception:
            # A fault of ours in what takes the frames must not cost the connection.
            _log.exception("what %r sent could not be taken in", self._target.name)

    def _unknown(self, command: Command) -> Received:
        return Received(
            Outcome(
                id=command.id,
                outcome=OutcomeKind.UNKNOWN,
                reason="the connector failed while it was sent",
                info={},
                at=self._clock(),
                session=command.session,
                attempt=command.attempt,
            )
        )


def retry_delay_s(timings: Timings, tries: int, rng: random.Random) -> float:
    """How long to wait after so many tries, in seconds.

    Full jitter: many consoles that lost one host do not come back in step. Those that come at once come within
    `first_delay_s`, so that a host which was only restarted is not asked by all of them in one second.
    """
    ceiling = min(timings.longest_delay_s, timings.first_delay_s * 2.0 ** min(tries - 1, 16))
    return rng.uniform(0, ceiling)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
