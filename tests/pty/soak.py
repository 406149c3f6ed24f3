"""The console in a terminal for a long time, behind a connection that breaks: is its memory flat?

    python -m tests.pty.soak [--minutes 30] [--agents 1000] [--rate 2000] [--stop SECONDS]

Half way the console is stopped (SIGSTOP) for two minutes, or for what `--stop` says, and let go on. Prints what it
holds of memory after five minutes (of a shorter run: after a sixth) and at the end, how many events its journal has,
and how soon after the stop it was of use. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.load import resident_mb
from tests.pty.harness import Terminal
from tests.pty.kit import WATCHFLOOR, console
from tests.pty.test_journal import stats
from watchfloor.testing.fault_proxy import FaultProxy, Faults

FAULTS: Final = Faults(cut_after=(2_000, 20_000), duplicate=0.02, reorder=0.05, delay_s=(0.0, 0.0))
SLOPE_MB: Final = 40.0
"""Megabytes by which it may differ at the end: what the allocator keeps back differs by more than nothing."""


@contextmanager
def fleet(env: Mapping[str, str], agents: int, rate: int) -> Iterator[str]:
    """The demo's fleet in a process of its own; yields its URL."""
    words = [*WATCHFLOOR, "demo", "--serve", "127.0.0.1:0", "--agents", str(agents), "--rate", str(rate)]
    with subprocess.Popen(
        words, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            found = re.search(r"listening on (ws://\S+)", process.stdout.readline())
            assert found
            yield found[1]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def breaking(url: str) -> Iterator[FaultProxy]:
    """A proxy in a thread of its own, since the terminal is read in this one."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="proxy", daemon=True)
    thread.start()
    proxy = FaultProxy(url, FAULTS, seed=7)
    asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result(30)
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def run_for(terminal: Terminal, seconds: float) -> None:
    """Take in what the console draws for so long."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        assert terminal.process.poll() is None, f"the console has ended:\n{terminal.screen()}"
        terminal.take_in(min(left, 0.05))
        terminal.raw.clear()


def stopped_for(terminal: Terminal, seconds: float) -> tuple[float, float]:
    """Stop the console for so long; returns after how many seconds it answered a key, and was behind no more."""
    terminal.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)  # nothing can be waited for: it stands still
    terminal.process.send_signal(signal.SIGCONT)
    at = time.monotonic()
    terminal.press("?")
    terminal.wait_until(lambda: " keys" in terminal.line(0), 60.0, what="the help")
    usable = time.monotonic() - at
    terminal.press("escape")
    terminal.wait_until(lambda: whole(terminal), 300.0, what="all that came meanwhile")
    return usable, time.monotonic() - at


def whole(terminal: Terminal) -> bool:
    """Does the console show that it has everything of the session that it shows, and is behind with nothing?"""
    screen = terminal.screen()
    return "whole" in screen and "behind" not in screen and "live" in screen


def main() -> int:
    """Run it; returns 1 where memory has grown."""
    parser = argparse.ArgumentParser(prog="python -m tests.pty.soak", description="a long run")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=2_000, help="events a second")
    parser.add_argument("--stop", type=float, default=None, help="seconds; two minutes in a run of ten or more")
    args = parser.parse_args()
    long_s = args.minutes * 60
    stop_s = args.stop if args.stop is not None else 120.0 if args.minutes >= 10 else 10.0
    early_s = min(300.0, long_s / 6)
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "XDG_CONFIG_HOME": f"{folder}/config",
            "XDG_STATE_HOME": f"{folder}/state",
            "WATCHFLOOR_RUNTIME_DIR": f"{folder}/run",
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        }
        with (
            fleet(env, args.agents, args.rate) as url,
            breaking(url) as proxy,
            console(env, "connect", proxy.url) as terminal,
        ):
            pid = terminal.process.pid
            run_for(terminal, early_s)
            early = resident_mb(pid)
            print(f"after {early_s:,.0f} s: {early:,.0f} MB, {stats(env):,} events kept", flush=True)
            run_for(terminal, max(0.0, long_s / 2 - early_s))
            usable, caught_up = stopped_for(terminal, stop_s)
            print(f"stopped for {stop_s:g} s: a key after {usable:.1f} s, nothing behind after {caught_up:.1f} s")
            run_for(terminal, max(0.0, long_s / 2 - stop_s))
            late = resident_mb(pid)
            print(
                f"after {long_s:,.0f} s: {late:,.0f} MB ({late - early:+,.0f}), {stats(env):,} events kept, "
                f"{proxy.tally.cuts} cuts, {proxy.tally.duplicated:,} frames twice, {proxy.tally.reordered:,} in "
                "another order"
            )
    return int(late - early > SLOPE_MB)


if __name__ == "__main__":
    sys.exit(main())
