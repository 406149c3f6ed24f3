"""An operator at work: ten thousand sessions, 5,000 events a second, and no pause over a tenth of a second.

    python -m benchmarks.walk [--sessions N] [--rate EVENTS_PER_S] [--lines N]

In a real terminal the roster is filtered, sorted and walked through, the request that waits is approved, its session is
opened, and its past is read back to the beginning. Each key that the console counts is timed until that count is on
the screen. What was drawn is replayed afterwards into a terminal of
its own: while the roster is on the screen its cursor stands on the session that was selected, wherever that goes.
Prints each step, its slowest key, and where the cursor was found. The exit status is 1 where one was slower, or the
cursor stood elsewhere.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Final, NamedTuple

import pyte

from benchmarks.keys import DEBUG, Times, times
from benchmarks.load import Sender
from benchmarks.place import place
from benchmarks.terminal import CONSOLE, Run, load

SESSIONS: Final = 10_000
RATE: Final = 5_000
LINES: Final = 100_000
PAUSE_MS: Final = 100.0
_SIZE: Final = (160, 50)
_LINES_EACH: Final = 5
"""Lines that an event of the past takes on the screen."""
_CURSOR: Final = "▌"
_GAP_S: Final = 0.12
_PATIENCE_S: Final = 20.0


class Step(NamedTuple):
    """What was done, which keys did it, and where the cursor was to stand ("": nothing is held to that)."""

    what: str
    sent: list[int]
    first: int
    last: int
    chunk: int
    selected: str
    astray: list[str]


class Walk:
    """One operator. Keys are counted from the start, as the console counts them."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._sent: list[int] = []
        self._screen = pyte.Screen(*_SIZE)
        self._stream = pyte.ByteStream(self._screen)
        self._replayed = 0
        self._chunk = 0
        self.steps: list[Step] = []

    def keys(self, what: str, *keys: bytes, selected: str = "") -> None:
        """Press keys that the console counts."""
        begun = len(self._sent)
        for key in keys:
            self._sent.append(self._run.press(key))
            self._run.take_in(time.monotonic_ns() + int(_GAP_S * 1e9))
        self._run.take_in(time.monotonic_ns() + 300_000_000)
        self._note(what, begun, selected)

    def typed(self, what: str, text: str, *, selected: str = "") -> None:
        """Open the filter, type a text and end it. The line for it stands where keys are counted, so that nothing of
        this is timed."""
        self._sent.append(self._run.press(b"/"))
        self._run.take_in(time.monotonic_ns() + int(_GAP_S * 1e9))
        begun = len(self._sent)
        for char in text:
            self._run.press(char.encode())
            self._run.take_in(time.monotonic_ns() + int(_GAP_S * 1e9))
        self._run.press(b"\r")
        # Behind a text there is a moment in which no key intervenes.
        self._run.take_in(time.monotonic_ns() + 1_200_000_000)
        self._note(what, begun, selected)

    def until(self, what: str, text: str, key: bytes) -> None:
        """Press a key over and over until this is on the screen."""
        begun = len(self._sent)
        patience = time.monotonic() + _PATIENCE_S * 6
        while text not in "\n".join(self.screen()):
            if time.monotonic() > patience:
                raise TimeoutError(f"{text!r} did not come: {self.screen()[:6]}")
            self._sent.append(self._run.press(key))
            self._run.take_in(time.monotonic_ns() + int(_GAP_S * 1e9))
        self._note(what, begun, "")

    def screen(self) -> list[str]:
        """What is on the screen now, line by line."""
        for chunk in self._run.chunks[self._replayed :]:
            self._stream.feed(chunk.data)
        self._replayed = len(self._run.chunks)
        return [str(line) for line in self._screen.display]

    @property
    def cursor(self) -> str:
        """The line of the roster that has the cursor; "" where none has."""
        return next((line for line in self.screen() if line.startswith(_CURSOR)), "")

    def _note(self, what: str, begun: int, selected: str) -> None:
        astray: list[str] = []
        for chunk in self._run.chunks[self._replayed :]:
            self._stream.feed(chunk.data)
            self._replayed += 1
            lines = [str(line) for line in self._screen.display if str(line).startswith(_CURSOR)]
            # A frame may come in several reads: only one that is drawn to its end counts.
            if selected and chunk.data.endswith(b"\x1b[?2026l") and lines and selected not in lines[0]:
                astray.append(lines[0][:60])
        self.steps.append(Step(what, self._sent, begun, len(self._sent), self._chunk, selected, astray))

    def times(self, step: Step) -> Times:
        """How long the keys of a step took: a count that was hidden for a while is seen later."""
        return times(step.sent, self._run.chunks[step.chunk :], step.first, step.last)

    def counts_anew(self) -> None:
        """Another screen is in front. Its own count begins with the key that led there."""
        self._chunk = len(self._run.chunks)
        self._sent = [time.monotonic_ns()]


def walk(sessions: int, rate: int, lines: int) -> list[tuple[Step, Times]]:
    """Everything, once. Raises TimeoutError where something does not come to be seen."""
    past = lines // _LINES_EACH
    with (
        place() as env,
        Sender(events=rate * 180, sessions=sessions, rate=rate, past=past) as sender,
        Run((*CONSOLE, "connect", sender.url), _SIZE, {**env, **DEBUG}) as run,
    ):
        run.wait_for(b"STATE", f"{sessions:,} sessions".encode())
        run.take_in(time.monotonic_ns() + 3_000_000_000)
        operator = Walk(run)
        operator.keys("walk down", *[b"j"] * 20)
        chosen = next((word for word in operator.cursor.split() if word.startswith("agent-")), "")
        operator.keys("sort by each", *[b"O"] * 6, selected=chosen)
        operator.keys("sort the other way", b"I", b"I", selected=chosen)
        operator.keys("group by each", *[b"v"] * 4, selected=chosen)
        operator.typed("type a filter", chosen[:9], selected=chosen)
        operator.keys("walk among what it leaves", b"j", b"k", selected="")
        operator.typed("take it away", "\x7f" * 12, selected=chosen)
        operator.keys("turn to what waits", b"i")
        # A decision is taken only when what is decided on has stood for a moment.
        run.take_in(time.monotonic_ns() + 1_500_000_000)
        operator.keys("approve", b"a")
        operator.keys("close what was decided", b"\x1b")
        operator.until("open the session", "asks for them", b"\r")
        operator.counts_anew()
        operator.keys("scroll back", *[b"\x1b[5~"] * 20)
        operator.until("to the beginning", "event 1 of what was before", b"g")
        operator.keys("to the end", b"G")
        run.take_in(time.monotonic_ns() + 1_000_000_000)
        return [(step, operator.times(step)) for step in operator.steps]


def main() -> int:
    """Walk, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walk", description="an operator at work")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--lines", type=int, default=LINES)
    args = parser.parse_args()
    steps = walk(args.sessions, args.rate, args.lines)
    print(f"{args.sessions:,} sessions, {args.rate:,} events/s; {load()}")
    good = True
    for step, seen in steps:
        good &= not seen.lost and (not seen.taken or seen.worst <= PAUSE_MS) and not step.astray
        on = f"; cursor on {step.selected}, {len(step.astray)} times elsewhere" if step.selected else ""
        print(f"  {step.what:26} {seen}{on}" + (f" {step.astray[:2]}" if step.astray else ""))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
