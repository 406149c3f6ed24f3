"""What the journal keeps up with, and what it costs the event loop.

    python -m benchmarks.journal [--events N] [--rate EVENTS_PER_S]

First everything at once: how many events a second reach the file, with their bytes as they came. Then a steady rate,
as a console takes it, with the loop's lag beside it, with the journal and without.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from console.journal.journal import Journal
from console.journal.records import Retention
from watchfloor.connector import Received
from watchfloor.protocol.codec import decode_host, encode
from watchfloor.protocol.events import AnyEvent, Message
from watchfloor.protocol.frames import Events

IN_A_FRAME: Final = 10
SESSIONS: Final = 100
PROBE_S: Final = 0.002
TEXT: Final = "ran the tests of the payment service: 412 passed, 3 skipped in 18.2 s; the retry of the webhook is green"


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


def frames(count: int) -> list[bytes]:
    """Frames that hold so many events, as a host sends them."""
    made: list[bytes] = []
    heads = [0] * SESSIONS
    pos = 0
    while pos < count:
        session = (pos // IN_A_FRAME) % SESSIONS
        told: list[AnyEvent] = [
            Message(seq=heads[session] + n, pos=pos + n, at=1_700_000_000_000 + pos, attempt=1, text=f"{TEXT} {pos}")
            for n in range(1, IN_A_FRAME + 1)
        ]
        heads[session] += IN_A_FRAME
        pos += IN_A_FRAME
        made.append(encode(Events(session=f"agent-{session}", epoch="e1", events=told)))
    return made


async def flood(raws: Sequence[bytes]) -> tuple[float, float]:
    """Events a second into the file, and bytes of the file for each."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "journal.db", clock=now_ms, retention=Retention(None, None))
        journal.start()
        await journal.flushed()
        arrivals = [Received(decode_host(raw).frame, raw) for raw in raws]
        started = time.perf_counter()
        for arrival in arrivals:
            journal.take("bench", [arrival])
        await journal.flushed()
        took = time.perf_counter() - started
        await journal.close()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())  # noqa: ASYNC240
    if journal.waiting or journal.lost:
        raise SystemExit(f"{journal.waiting} waiting, {journal.lost} lost: take fewer events")
    return len(raws) * IN_A_FRAME / took, size / (len(raws) * IN_A_FRAME)


async def lag(raws: Sequence[bytes], rate: float, take: Callable[[Received], None]) -> list[float]:
    """How much too late a timer of the loop fires while frames are read at this rate, ascending, in milliseconds."""
    late: list[float] = []
    running = True

    async def probe() -> None:
        while running:
            due = time.perf_counter() + PROBE_S
            await asyncio.sleep(PROBE_S)
            late.append((time.perf_counter() - due) * 1000)

    probing = asyncio.create_task(probe())
    started = time.perf_counter()
    for number, raw in enumerate(raws):
        take(Received(decode_host(raw).frame, raw))
        ahead = started + (number + 1) * IN_A_FRAME / rate - time.perf_counter()
        await asyncio.sleep(max(0.0, ahead))
    running = False
    await probing
    return sorted(late)


async def measure(events: int, rate: float) -> None:
    """Measure and print."""
    raws = frames(events)
    each = sum(map(len, raws)) / (len(raws) * IN_A_FRAME)
    print(f"{events:,} events, {each:.0f} bytes each as they came, {IN_A_FRAME} a frame, {SESSIONS} sessions")
    speed, size = await flood(raws)
    print(f"  {speed:>9,.0f} events/s   {size:>5.0f} bytes of file each")
    with tempfile.TemporaryDirectory() as folder:
        steady = raws[: int(rate * 5) // IN_A_FRAME]
        for name in ("without", "with"):
            journal = Journal(Path(folder) / "journal.db", clock=now_ms)
            if name == "with":
                journal.start()
                late = await lag(steady, rate, lambda one, journal=journal: journal.take("bench", [one]))  # type: ignore[misc]
                await journal.close()
            else:
                late = await lag(steady, rate, lambda one: None)
            p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
            print(f"  loop lag at {rate:,.0f} events/s {name:<8} journal: p50 {p50:.2f} ms, p99 {p99:.2f} ms")


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=2_000)
    args = parser.parse_args()
    asyncio.run(measure(args.events, args.rate))


if __name__ == "__main__":
    main()
