"""A source is kept connected, and what is heard of it is told as it is. Time is ours: nothing waits."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.connectors.supervisor import ContactChange, Item, Supervisor, Timings, retry_delay_s
from watchfloor.connector import Arrival, Received, Target
from watchfloor.errors import ConfigError, ConnectionLost, Denied, ProtocolError, Unreachable
from watchfloor.protocol.frames import Beat, ClientFrame, Command, DoPause, Outcome, Watch
from watchfloor.words import Contact, OutcomeKind

TARGET = Target("local", "fake://here")
QUICK = Timings(connect_s=0.02, close_s=0.02)
"""For the two limits that guard against code of others and run by the event loop's clock."""


class FakeTimer:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.time + seconds, future))
        if seconds <= 0:
            future.set_result(None)
        await future

    def next_due(self) -> float:
        """Seconds until the next sleeper wakes."""
        return min(due for due, future in self._sleepers if not future.done()) - self.time

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking each sleeper at its moment."""
        end = self.time + seconds
        while True:
            waiting = [sleeper for sleeper in self._sleepers if not sleeper[1].done() and sleeper[0] <= end]
            if not waiting:
                break
            due, future = min(waiting, key=lambda sleeper: sleeper[0])
            self.time = max(self.time, due)
            future.set_result(None)
            await settle()
        self.time = end
        await settle()

    async def jump(self, seconds: float) -> None:
        """As if the process had been stopped: nobody wakes before the end."""
        self.time += seconds
        for due, future in self._sleepers:
            if due <= self.time and not future.done():
                future.set_result(None)
        await settle()


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


class FakeLink:
    """A connection that a test feeds; None ends it in good order, an exception breaks it."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[Sequence[Arrival] | BaseException | None] = asyncio.Queue()
        self.sent: list[ClientFrame] = []
        self.closed = False
        self.fails_to_send: Exception | None = None
        self.hangs_on_close = False

    async def batches(self) -> AsyncIterator[Sequence[Arrival]]:
        while (item := await self.incoming.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    async def send(self, frame: ClientFrame) -> None:
        if self.fails_to_send is not None:
            raise self.fails_to_send
        self.sent.append(frame)

    async def close(self) -> None:
        if self.hangs_on_close:
            await asyncio.Event().wait()
        self.closed = True


@dataclass
class FakeConnector:
    """Answers each try with the next thing on its list, and with a fresh link when the list is used up."""

    target: Target
    plan: list[Exception | Callable[[], Awaitable[None]]] = field(default_factory=list)
    links: list[FakeLink] = field(default_factory=list)
    tries: int = 0

    async def connect(self) -> FakeLink:
        self.tries += 1
        if self.plan:
            step = self.plan.pop(0)
            if isinstance(step, Exception):
                raise step
            await step()
        self.links.append(FakeLink())
        return self.links[-1]


class Stage:
    """A supervisor at work with a fake connector, a fake timer and a clock that follows it."""

    def __init__(self, *plan: Exception | Callable[[], Awaitable[None]], timings: Timings | None = None) -> None:
        self.timer = FakeTimer()
        self.connector = FakeConnector(TARGET, list(plan))
        self.made = 0
        self.items: list[Item] = []
        self.supervisor = Supervisor(
            self.make, TARGET, self.take, self.clock, random.Random(7), timings=timings, timer=self.timer
        )
        self._told = asyncio.Event()

    def make(self, target: Target) -> FakeConnector:
        self.made += 1
        assert target is TARGET
        return self.connector

    def take(self, items: Sequence[Item]) -> None:
        self.items.extend(items)
        self._told.set()

    async def reaches(self, contact: Contact) -> None:
        """Wait for a change that real time brings."""
        async with asyncio.timeout(60):
            while self.contact() is not contact:
                self._told.clear()
                await self._told.wait()
        await settle()

    def contact(self) -> Contact:
        return self.supervisor.contact

    def last(self) -> Item:
        return self.items[-1]

    def clock(self) -> int:
        return round(self.timer.time * 1000)

    def changes(self) -> list[ContactChange]:
        return [item for item in self.items if isinstance(item, ContactChange)]

    def contacts(self) -> list[Contact]:
        return [change.contact for change in self.changes()]

    async def hear(self, *frames: Arrival) -> None:
        self.connector.links[-1].incoming.put_nowait(frames)
        await settle()

    async def end(self, how: BaseException | None = None) -> None:
        self.connector.links[-1].incoming.put_nowait(how)
        await settle()


@asynccontextmanager
async def running(stage: Stage) -> AsyncIterator[Stage]:
    task = asyncio.create_task(stage.supervisor.run())
    await settle()
    yield stage
    await stage.supervisor.close()
    await task


def beat(now: int = 1) -> Received:
    return Received(Beat(now=now, pos=0))


PAUSE = Command(id="c1", session="s", attempt=2, do=DoPause())


async def test_a_source_that_answers_is_live_and_its_frames_pass_in_order() -> None:
    async with running(Stage()) as stage:
        await stage.hear(beat(1), beat(2))
        await stage.hear(beat(3))
        assert [item for item in stage.items if not isinstance(item, ContactChange)] == [beat(1), beat(2), beat(3)]
        assert stage.changes() == [
            ContactChange(Contact.CONNECTING, at=1_000_000),
            ContactChange(Contact.LIVE, at=1_000_000),
        ]
        assert stage.contact() is Contact.LIVE


async def test_there_is_no_last_try_and_the_delays_grow_within_their_bounds() -> None:
    stage = Stage(*[Unreachable("nothing listens there") for _ in range(60)])
    async with running(stage):
        delays = []
        for n in range(1, 61):
            change = stage.changes()[-1]
            assert (change.contact, change.why, change.tries) == (Contact.LOST, "nothing listens there", n)
            delay = stage.timer.next_due()
            assert change.retry_at == pytest.approx(stage.clock() + delay * 1000, abs=1)
            assert 0 <= delay <= min(30.0, 2.0 * 2 ** (n - 1))
            delays.append(delay)
            await stage.timer.advance(delay)
        assert stage.contacts()[-1] is Contact.LIVE
        assert stage.made == 1
    late = delays[10:]
    assert max(late) > 20
    assert min(late) < 10, "full jitter also tries soon"
    assert len(set(delays)) == 60


async def test_what_a_try_cannot_mend_is_refused_and_tried_slowly() -> None:
    async with running(Stage(Denied("the token is wrong"), Denied("the token is wrong"))) as stage:
        assert stage.changes()[-1] == ContactChange(
            Contact.REFUSED, "the token is wrong", 1, retry_at=1_060_000, at=1_000_000
        )
        await stage.timer.advance(59.9)
        assert stage.connector.tries == 1
        await stage.timer.advance(0.2)
        assert stage.connector.tries == 2
        assert stage.contact() is Contact.REFUSED


async def test_what_would_break_each_connection_alike_is_tried_slowly_and_stays_lost() -> None:
    fault = ConnectionLost("a frame was larger than 16 MiB", 1009)
    fault.retry = False
    async with running(Stage()) as stage:
        await stage.end(fault)
        lost = stage.changes()[-1]
        assert (lost.contact, lost.why) == (Contact.LOST, "a frame was larger than 16 MiB")
        assert stage.timer.next_due() == 60.0


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), tries=st.integers(1, 40))
def test_a_thousand_clients_that_lost_one_host_do_not_return_in_one_second(seed: int, tries: int) -> None:
    timings, rng = Timings(), random.Random(seed)
    delays = [retry_delay_s(timings, tries, random.Random(rng.random())) for _ in range(1_000)]
    ceiling = min(timings.longest_delay_s, timings.first_delay_s * 2.0 ** (tries - 1))
    assert all(0 <= delay <= ceiling for delay in delays)
    assert max(Counter(map(int, delays)).values()) < 600, "at the first try as well"
    slices = Counter(int(delay / ceiling * 10) for delay in delays)
    assert max(slices.values()) < 200, "and evenly"


async def test_the_operator_may_ask_for_a_try_at_once() -> None:
    async with running(Stage(Denied("no"), Unreachable("nobody"))) as stage:
        stage.supervisor.retry_now()
        await settle()
        assert stage.contacts() == [Contact.CONNECTING, Contact.REFUSED, Contact.CONNECTING, Contact.LOST]
        stage.supervisor.retry_now()
        await settle()
        assert stage.contacts()[-2:] == [Contact.CONNECTING, Contact.LIVE]
        assert stage.timer.time == 1000.0


async def test_asking_for_a_try_while_connected_changes_nothing() -> None:
    async with running(Stage()) as stage:
        stage.supervisor.retry_now()
        await settle()
        await stage.end(ConnectionLost("gone"))
        assert stage.connector.tries == 1
        assert stage.contact() is Contact.LOST


async def test_silence_is_told_before_it_counts_as_a_loss() -> None:
    async with running(Stage()) as stage:
        await stage.timer.advance(39.9)
        assert stage.contact() is Contact.LIVE
        await stage.timer.advance(0.2)
        heard_at = stage.changes()[0].at
        assert stage.changes()[-1] == ContactChange(Contact.SILENT, at=heard_at), "since the last frame"
        await stage.hear(beat())
        heard_at = stage.clock()
        assert stage.items[-2:] == [ContactChange(Contact.LIVE, at=stage.clock()), beat()]
        await stage.timer.advance(39.9)
        assert stage.contact() is Contact.LIVE
        await stage.timer.advance(0.2)
        assert stage.contact() is Contact.SILENT
        await stage.timer.advance(19.8)
        assert stage.connector.tries == 1
        await stage.timer.advance(0.1)
        assert stage.contact() is Contact.LOST
        assert stage.changes()[-1].why == "nothing was heard for 60 s"
        assert stage.changes()[-1].at == heard_at
        assert stage.connector.links[0].closed
        await stage.timer.advance(2.0)
        assert stage.connector.tries == 2
        assert stage.contact() is Contact.LIVE


async def test_a_source_that_is_let_go_is_used_until_it_ends_and_not_dialled_again() -> None:
    async with running(Stage()) as stage:
        stage.supervisor.let_go("the host has ended")
        await stage.hear(beat())
        assert stage.items[-1] == beat()
        assert stage.contact() is Contact.LIVE
        await stage.end(ConnectionLost("gone"))
        assert stage.changes()[-1] == ContactChange(Contact.LOST, "the host has ended", at=stage.clock())
        assert stage.contacts() == [Contact.CONNECTING, Contact.LIVE, Contact.LOST]
        await stage.timer.advance(3600)
        stage.supervisor.retry_now()
        await settle()
        assert stage.connector.tries == 1


@pytest.mark.parametrize("fault", [Unreachable("nobody"), Denied("no")])
async def test_what_is_let_go_while_it_waits_for_a_try_is_lost_at_once(fault: Exception) -> None:
    async with running(Stage(fault)) as stage:
        assert stage.changes()[-1].retry_at is not None
        stage.supervisor.let_go("the host has ended")
        await settle()
        assert stage.changes()[-1] == ContactChange(Contact.LOST, "the host has ended", at=stage.clock())
        assert stage.contacts()[-2:] == [stage.contacts()[1], Contact.LOST]
        assert stage.connector.tries == 1


async def test_beats_keep_a_source_live() -> None:
    async with running(Stage()) as stage:
        for _ in range(40):
            await stage.timer.advance(15)
            await stage.hear(beat())
        assert stage.contacts() == [Contact.CONNECTING, Contact.LIVE]


async def test_a_console_that_was_stopped_does_not_blame_the_source() -> None:
    async with running(Stage()) as stage:
        await stage.timer.advance(10)
        await stage.timer.jump(500)
        assert stage.contact() is Contact.LIVE
        await stage.timer.advance(19)
        await stage.hear(beat())
        await stage.timer.advance(39)
        assert stage.contacts() == [Contact.CONNECTING, Contact.LIVE]
        await stage.timer.jump(500)
        await stage.timer.advance(41)
        assert stage.contacts()[2:4] == [Contact.SILENT, Contact.LOST]


async def test_a_lost_connection_says_why_and_is_dialled_again_by_the_same_connector() -> None:
    async with running(Stage()) as stage:
        await stage.end(ConnectionLost("lost the host: it is shutting down (1012)", 1012))
        assert stage.changes()[-1].why == "lost the host: it is shutting down (1012)"
        assert stage.connector.links[0].closed
        await stage.timer.advance(2.0)
        assert stage.contact() is Contact.LIVE
        assert (stage.made, stage.connector.tries) == (1, 2)


async def test_a_host_that_hangs_up_at_once_is_not_hammered() -> None:
    async with running(Stage()) as stage:
        for n in range(1, 8):
            await stage.end()
            assert stage.changes()[-1].why == "local ended the connection"
            assert stage.changes()[-1].tries == n
            await stage.timer.advance(stage.timer.next_due())
        await stage.timer.advance(10)
        await stage.end()
        assert stage.changes()[-1].tries == 1


@pytest.mark.parametrize("place", ["factory", "connect", "batches"])
async def test_a_broken_connector_hurts_its_source_only(place: str, caplog: pytest.LogCaptureFixture) -> None:
    sick, well = Stage(*([ZeroDivisionError("secret detail")] if place == "connect" else [])), Stage()
    if place == "factory":
        broken = [True]

        def make(target: Target) -> FakeConnector:
            if broken.pop() if broken else False:
                raise ZeroDivisionError("secret detail")
            return sick.connector

        sick.supervisor._factory = make
    async with running(well), running(sick):
        if place == "batches":
            await sick.end(ZeroDivisionError("secret detail"))
        change = sick.changes()[-1]
        assert change.contact is Contact.LOST
        assert change.why == "its connector failed (ZeroDivisionError): the log has the details"
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        await well.hear(beat())
        assert well.items[-1] == beat()
        await sick.timer.advance(2.0)
        assert sick.contact() is Contact.LIVE


async def test_what_cannot_be_taken_in_does_not_cost_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[Item] = []

    def sink(items: Sequence[Item]) -> None:
        if beat(2) in items:
            raise LookupError("a fault of ours")
        taken.extend(items)

    stage = Stage()
    stage.supervisor._sink = sink
    async with running(stage):
        for n in (1, 2, 3):
            await stage.hear(beat(n))
        assert [item for item in taken if not isinstance(item, ContactChange)] == [beat(1), beat(3)]
        assert len(caplog.records) == 1
        assert stage.connector.tries == 1


async def test_a_configuration_that_cannot_work_is_refused_until_it_does() -> None:
    stage = Stage(ConfigError("no connector speaks foo://"))
    async with running(stage):
        assert stage.changes()[-1].contact is Contact.REFUSED
        assert stage.changes()[-1].why == "no connector speaks foo://"
        await stage.timer.advance(60)
        assert stage.contact() is Contact.LIVE


async def test_a_connector_that_never_connects_is_given_up_and_tried_again() -> None:
    stage = Stage(asyncio.Event().wait, timings=QUICK)  # type: ignore[arg-type]
    async with running(stage):
        await stage.reaches(Contact.LOST)
        assert "not connected after 0.02 s" in stage.changes()[-1].why
        await stage.timer.advance(2.0)
        assert stage.contact() is Contact.LIVE


async def test_a_connection_that_will_not_end_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(timings=QUICK)
    async with running(stage):
        stage.connector.links[0].hangs_on_close = True
        await stage.end()
        await stage.reaches(Contact.LOST)
        await stage.timer.advance(2.0)
        assert stage.contact() is Contact.LIVE
        assert "did not end in good order" in caplog.text


# --- sending -------------------------------------------------------------------------------------


async def test_frames_go_to_the_connection() -> None:
    async with running(Stage()) as stage:
        await stage.supervisor.send(PAUSE)
        assert stage.connector.links[0].sent == [PAUSE]


async def test_without_a_connection_a_frame_certainly_did_not_leave() -> None:
    async with running(Stage(Unreachable("nobody"))) as stage:
        with pytest.raises(ConnectionLost, match="local is not connected"):
            await stage.supervisor.send(PAUSE)
        assert not [item for item in stage.items if isinstance(item, Received)]


@pytest.mark.parametrize("error", [ConnectionLost("gone"), ProtocolError("cannot be written")])
async def test_what_certainly_did_not_leave_is_told_to_the_caller(error: Exception) -> None:
    async with running(Stage()) as stage:
        stage.connector.links[0].fails_to_send = error
        with pytest.raises(type(error)):
            await stage.supervisor.send(PAUSE)


async def test_a_command_that_a_broken_connector_may_have_sent_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Stage()) as stage:
        stage.connector.links[0].fails_to_send = ZeroDivisionError()
        await stage.supervisor.send(Watch(session="s"))
        assert isinstance(stage.last(), ContactChange)
        await stage.supervisor.send(PAUSE)
        answer = stage.last()
        assert isinstance(answer, Received)
        assert isinstance(answer.frame, Outcome)
        assert (answer.frame.id, answer.frame.outcome) == ("c1", OutcomeKind.UNKNOWN)
        assert (answer.frame.session, answer.frame.attempt) == ("s", 2)
        assert len(caplog.records) == 2


# --- closing ---------------------------------------------------------------------------------------


async def test_closing_ends_the_connection_and_the_run() -> None:
    stage = Stage()
    task = asyncio.create_task(stage.supervisor.run())
    await settle()
    told = len(stage.items)
    await stage.supervisor.close()
    await asyncio.wait_for(task, 60)
    assert stage.connector.links[0].closed
    assert len(stage.items) == told
    with pytest.raises(ConnectionLost):
        await stage.supervisor.send(PAUSE)
    await stage.supervisor.run()
    assert stage.connector.tries == 1


@pytest.mark.parametrize("when", ["waiting", "connecting"])
async def test_closing_does_not_wait_for_the_next_try(when: str) -> None:
    stage = Stage(Unreachable("nobody") if when == "waiting" else asyncio.Event().wait)  # type: ignore[arg-type]
    task = asyncio.create_task(stage.supervisor.run())
    await settle()
    await asyncio.wait_for(stage.supervisor.close(), 60)
    await asyncio.wait_for(task, 60)


async def test_cancelling_the_run_closes_the_connection() -> None:
    stage = Stage()
    task = asyncio.create_task(stage.supervisor.run())
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.connector.links[0].closed


async def test_nothing_is_read_while_there_is_no_room_for_it() -> None:
    timer, room = FakeTimer(), asyncio.Event()
    connector = FakeConnector(TARGET)
    taken: list[Item] = []

    async def waits() -> None:
        await room.wait()

    supervisor = Supervisor(
        lambda _: connector, TARGET, taken.extend, lambda: 0, random.Random(7), timer=timer, room=waits
    )
    running = asyncio.create_task(supervisor.run())
    try:
        await settle()
        for pos in (1, 2):
            connector.links[0].incoming.put_nowait([Received(Beat(now=1, pos=pos))])
        await settle()
        assert [item.frame for item in taken if isinstance(item, Received)] == [Beat(now=1, pos=1)]
        assert connector.links[0].incoming.qsize() == 1
        # However long that takes, the source is not taken for silent, nor for lost.
        await timer.advance(Timings().lost_after_s - 1)
        room.set()
        await settle()
        assert [item.frame for item in taken if isinstance(item, Received)] == [Beat(now=1, pos=1), Beat(now=1, pos=2)]
        await timer.advance(Timings().silent_after_s - 1)
        assert supervisor.contact is Contact.LIVE
    finally:
        await supervisor.close()
        await running
