"""What a transcript costs: made into blocks, laid out and painted, at rest and while an event comes in.

    python -m benchmarks.transcript [--events N] [--size COLUMNSxROWS]

The thousand newest events are those of the session's log; what is older came by pages of the history.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from statistics import median
from typing import Final

from textual.app import App, ComposeResult

from console.fleet.apply import Fleet
from console.fleet.facts import ContactFact, EventFact, EventsFact, SessionKey, SummaryFact
from console.fleet.log import KEEP
from console.fleet.transcript.transcript import Transcript as Blocks
from themes.loader import load_glyphs, load_theme
from themes.toolkit import toolkit_theme
from watchfloor.text import Clean
from watchfloor.words import Contact, Lifecycle
from widgets.transcript import Transcript

_KEY: Final = SessionKey("bench", "one")
_MESSAGE: Final = Clean(
    "I look at the files first.\n- one of them is large\n- the other one is missing\n```py\nx = 1\n```"
)
_ROUNDS: Final = 30


def _event(seq: int) -> EventFact:
    """A message, then a call with its output and its result, over and over."""
    call = {"call": f"c{seq // 4}"}
    kind, head, text, data = (
        ("message", "assistant", _MESSAGE, {"role": "assistant"}),
        ("tool_call", "shell", Clean("make build"), call),
        ("tool_output", "stdout", Clean("compiled\n" * 12), call),
        ("tool_result", "ok", Clean(""), {**call, "status": "ok", "duration_ms": 3_200}),
    )[seq % 4]
    return EventFact(kind, 1_700_000_000_000 + seq, seq, seq, 1, None, None, None, None, Clean(head), text, data)


class _Bench(App[None]):
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, transcript: Transcript) -> None:
        self._look = load_theme()
        super().__init__()
        self._transcript = transcript

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._look.css_variables()

    def compose(self) -> ComposeResult:
        yield self._transcript

    def on_mount(self) -> None:
        self.register_theme(toolkit_theme(self._look))
        self.theme = self._look.name


def _ms(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1_000


async def _measure(events: int, size: tuple[int, int]) -> dict[str, float]:
    fleet = Fleet()
    now = 1_700_000_000_000
    fleet.apply([ContactFact(_KEY.source, Contact.LIVE, now, Clean(""))], now)
    fleet.apply([SummaryFact(_KEY, {"epoch": "e", "lifecycle": Lifecycle.RUNNING})], now)
    kept = min(events, KEEP)
    fleet.apply([EventsFact(_KEY, "e", tuple(_event(seq) for seq in range(events - kept + 1, events + 1)))], now)
    glyphs = load_glyphs("unicode")
    blocks = Blocks(fleet, _KEY, {**glyphs.states, **glyphs.overlays, **glyphs.marks, "levels": glyphs.levels})
    blocks.now = now
    blocks.prepend("e", [_event(seq) for seq in range(1, events - kept + 1)], more=False)
    figures = {"made into blocks": _ms(blocks.take_up)}
    transcript = Transcript()
    async with _Bench(transcript).run_test(size=size) as pilot:
        begun = time.perf_counter()
        transcript.blocks = blocks
        figures["laid out"] = (time.perf_counter() - begun) * 1_000
        await pilot.pause()

        def frame() -> None:
            for y in range(transcript.size.height):
                transcript.render_line(y)

        frame()
        figures["one frame at the end"] = median(_ms(frame) for _ in range(_ROUNDS))
        transcript.jump(transcript.max_scroll_y // 2)
        frame()
        figures["one frame in the middle"] = median(_ms(frame) for _ in range(_ROUNDS))
        transcript.follow()
        seq = events

        def one_more() -> None:
            nonlocal seq
            seq += 1
            fleet.apply([EventsFact(_KEY, "e", (_event(seq),))], now)
            blocks.take_up()
            transcript.refresh_blocks()
            frame()

        figures["an event comes in, painted"] = median(_ms(one_more) for _ in range(_ROUNDS))
        figures["lines"] = transcript.virtual_size.height
    return figures


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transcript", description="what a transcript costs")
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--size", default="120x40")
    args = parser.parse_args()
    columns, _, rows = args.size.partition("x")
    figures = asyncio.run(_measure(args.events, (int(columns), int(rows))))
    lines = figures.pop("lines")
    print(f"a transcript of {args.events:,} events, {lines:,.0f} lines, at {args.size}")
    for what, ms in figures.items():
        print(f"  {what:28} {ms:7.1f} ms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
