"""The console in a terminal for a long time, behind a connection that breaks: is its memory flat?

    python -m tests.pty.soak [--minutes 30] [--agents 1000] [--rate 2000] [--stop SECONDS]

`--rate` counts what has a number, and so is kept. Half way the console is stopped (SIGSTOP) for two minutes, or for
what `--stop` says, and let go on. Each minute it prints what the console holds of memory and how far its journal is; at
the end by how much memory has changed since the sixth minute (of a shorter run: since its second sixth), how soon after
the stop the console was of use, and whether its journal has every event of the host. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import selectors
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.load import resident_mb
from tests.pty.harness import Terminal
from tests.pty.kit import console
from watchfloor.testing.fault_proxy import FaultProxy, Faults

FAULTS: Final = Faults(cut_after=(20_000, 80_000), duplicate=0.02, reorder=0.05)
"""At the usual rate a cut every twenty seconds or so: a connection that ends before ten seconds counts as one to a host
that hangs up, and the console would wait longer each time."""
SLOPE_MB: Final = 40.0
"""Megabytes by which it may differ at the end: what the allocator keeps back differs by more than nothing."""


SAMPLE_S: Final = 5.0
CATCHES_UP_S: Final = 300.0
"""How long a stop is waited to be made up for: a machine that has no time for that never does."""


class Sample(NamedTuple):
    """What the console held, so many seconds after the beginning."""

    at: float
    mb: float


class Speaker:
    """The host with its agents, a process of its own. `url`: where it listens."""

    def __init__(self, env: Mapping[str, str], agents: int, rate: int) -> None:
        words = [sys.executable, "-m", "tests.pty.soak_host", str(agents), str(rate)]
        self._process = subprocess.Popen(
            words, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.url = self._word("listening on ")

    def _word(self, behind: str) -> str:
        assert self._process.stdout is not None
        found = re.match(f"{behind}(.+)", self._process.stdout.readline())
        assert found
        return found[1]

    def hush(self) -> int:
        """Let the agents say no more; how many events there were."""
        return int(self._asked(signal.SIGINT, "said "))

    def count(self) -> int:
        """How many events there are by now."""
        return int(self._asked(signal.SIGUSR1, "there are "))

    def _asked(self, number: int, behind: str) -> str:
        # A busy event loop may miss a signal: its wake-up has no room beside those of its threads.
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as answer:
            answer.register(self._process.stdout, selectors.EVENT_READ)
            while True:
                self._process.send_signal(number)
                if answer.select(5.0):
                    break
        while not (found := re.match(f"{behind}(.+)", self._process.stdout.readline())):
            assert self._process.poll() is None
        return found[1]

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextmanager
def fleet(env: Mapping[str, str], agents: int, rate: int) -> Iterator[Speaker]:
    """The agents, until the end."""
    speaker = Speaker(env, agents, rate)
    try:
        yield speaker
    finally:
        speaker.close()


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


class Watch:
    """Takes in what the console draws, and notes what it holds meanwhile."""

    def __init__(self, terminal: Terminal, env: Mapping[str, str]) -> None:
        self._terminal = terminal
        self._env = env
        self._began = time.monotonic()
        self._minute = 1
        self.samples: list[Sample] = []

    def until(self, end_s: float) -> None:
        """Go on until so many seconds after the beginning."""
        terminal = self._terminal
        while (now := time.monotonic() - self._began) < end_s:
            assert terminal.process.poll() is None, f"the console has ended:\n{terminal.screen()}"
            terminal.take_in(0.05)
            terminal.raw.clear()
            if not self.samples or now >= self.samples[-1].at + SAMPLE_S:
                self.samples.append(Sample(now, resident_mb(terminal.process.pid)))
                self._tell(now)

    def _tell(self, now: float) -> None:
        if now >= 60 * self._minute:
            print(f"{now:6,.0f} s: {self.samples[-1].mb:,.0f} MB, {kept(self._env):,} events kept", flush=True)
            self._minute = int(now // 60) + 1

    def median_mb(self, begin_s: float, end_s: float) -> float:
        """What it held between two moments."""
        return statistics.median(sample.mb for sample in self.samples if begin_s <= sample.at <= end_s)

    def slope(self, begin_s: float) -> float:
        """Megabytes an hour by which it grew since a moment, the line of least squares."""
        late = [sample for sample in self.samples if sample.at >= begin_s]
        return statistics.linear_regression([s.at / 3600 for s in late], [s.mb for s in late]).slope


def stopped_for(terminal: Terminal, seconds: float, behind: Callable[[], bool]) -> tuple[float, float]:
    """Stop the console for so long; returns after how many seconds it answered a key, and was behind no more."""
    terminal.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)  # nothing can be waited for: it stands still
    terminal.process.send_signal(signal.SIGCONT)
    at = time.monotonic()
    terminal.press("?")
    terminal.wait_until(lambda: " keys" in terminal.line(0), 60.0, what="the help")
    usable = time.monotonic() - at
    terminal.press("escape")
    terminal.wait_until(lambda: not behind(), CATCHES_UP_S, or_fail=False)
    return usable, time.monotonic() - at


def kept(env: Mapping[str, str]) -> int:
    """How many events the journal has. Asked of its file, since a program would take a second only to begin."""
    path = Path(env["XDG_STATE_HOME"], "watchfloor", "journal.db")
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM events").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # it is not there yet


def all_kept(env: Mapping[str, str], terminal: Terminal, said: int) -> int:
    """How many events the journal has, once it has so many or no more come."""
    before = -1
    while (now := kept(env)) < said and now > before:
        before = now
        terminal.wait_until(lambda: False, 10.0, or_fail=False)
    return now


def main() -> int:
    """Run it; returns 1 where memory has grown or an event is not kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.pty.soak", description="a long run")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=2_000, help="events a second")
    parser.add_argument("--stop", type=float, default=None, help="seconds; two minutes in a run of ten or more")
    args = parser.parse_args()
    long_s = args.minutes * 60
    stop_s = args.stop if args.stop is not None else 120.0 if args.minutes >= 10 else 10.0
    early_s = min(300.0, long_s / 6)
    span_s = min(60.0, early_s)
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "XDG_CONFIG_HOME": f"{folder}/config",
            "XDG_STATE_HOME": f"{folder}/state",
            "WATCHFLOOR_RUNTIME_DIR": f"{folder}/run",
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parents[2]), *sys.path]),
        }
        with (
            fleet(env, args.agents, args.rate) as speaker,
            breaking(speaker.url) as proxy,
            console(env, "connect", proxy.url) as terminal,
        ):
            watch = Watch(terminal, env)
            watch.until(long_s / 2)
            usable, caught_up = stopped_for(terminal, stop_s, lambda: kept(env) < speaker.count() - args.rate)
            told = f"a key after {usable:.1f} s, less than a second behind after {caught_up:.1f} s"
            print(f"stopped for {stop_s:g} s: {told}", flush=True)
            watch.until(long_s)
            proxy.faults = Faults()
            said = speaker.hush()
            held = all_kept(env, terminal, said)
    early, late = watch.median_mb(early_s, early_s + span_s), watch.median_mb(long_s - span_s, long_s)
    tally = proxy.tally
    print(
        f"{early:,.0f} MB after {early_s:,.0f} s, {late:,.0f} MB after {long_s:,.0f} s ({late - early:+,.0f}; "
        f"{watch.slope(early_s):+,.0f} MB an hour); {held:,} of {said:,} events kept ({said / long_s:,.0f} a second); "
        f"{tally.cuts} cuts, {tally.duplicated:,} frames twice, {tally.reordered:,} in another order"
    )
    return int(late - early > SLOPE_MB or held != said)


if __name__ == "__main__":
    sys.exit(main())
