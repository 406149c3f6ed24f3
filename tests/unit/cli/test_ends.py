"""What asks a serving verb to end is heard in its last moment as well."""

from __future__ import annotations

import asyncio
import os
import signal

from console.cli.ends import Ends


async def test_a_signal_of_the_last_moment_is_not_forgotten() -> None:
    ends = Ends()
    with ends.by_signals():
        os.kill(os.getpid(), signal.SIGINT)
        # No turn of the loop between the signal and the end.
    assert ends.was_asked
    assert (ends.status, ends.reason) == (130, "Ctrl-C")


async def test_a_signal_wakes_whoever_waits() -> None:
    ends = Ends()
    with ends.by_signals():
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(ends.asked.wait(), 10)
    assert (ends.status, ends.reason) == (143, "SIGTERM")


async def test_afterwards_signals_are_what_they_were() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with Ends().by_signals():
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before
