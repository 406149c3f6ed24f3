"""The roster against the table widget of the toolkit: a full frame, one changed row, and the way from bytes to rows.

    python -m benchmarks.roster_table [--rounds N]

Both are drawn in memory, at the same size and with the same columns, to the characters that a terminal would get.

- A full frame: everything visible has changed. For the table that is a change of one cell: it draws all of them anew.
- One row changed: a fact is applied, the roster arranged, that row drawn; with 100,000 sessions against 1,000.
- From bytes: what a host says of 10,000 sessions is read, and the first frame drawn. The table is given the same bytes,
  validated by the same models, and is usable when it has measured its columns.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.widget import Widget
from textual.widgets import DataTable

from benchmarks.figures import ROUNDS, Figure, Spread, spread, told
from benchmarks.intake import Console, greeting
from benchmarks.terminal import load
from benchmarks.traffic import BEGAN, name
from console.fleet.facts import SessionKey, SummaryFact
from themes.loader import load_theme
from themes.toolkit import toolkit_theme
from watchfloor.protocol.codec import decode_host
from watchfloor.protocol.frames import Sessions
from watchfloor.words import Lifecycle
from widgets.columns import columns_for
from widgets.roster import Roster, RosterRow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROWS: Final = 10_000
_SIZE: Final = (160, 50)
_FRAMES: Final = 20
_STATES: Final = (Lifecycle.RUNNING, Lifecycle.IDLE, Lifecycle.WAITING, Lifecycle.FAILED)


class _Bench(App[None]):
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, widget: Widget) -> None:
        self._look = load_theme()
        super().__init__()
        self._widget = widget

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._look.css_variables()

    def compose(self) -> ComposeResult:
        yield self._widget

    def on_mount(self) -> None:
        self.register_theme(toolkit_theme(self._look))
        self.theme = self._look.name


@asynccontextmanager
async def _running(widget: Widget) -> AsyncIterator[App[None]]:
    app = _Bench(widget)
    async with app.run_test(size=_SIZE) as pilot:
        await pilot.pause()
        yield app


@contextmanager
def _undisturbed() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _drawn(app: App[None], widget: Widget) -> None:
    """Draw the widget, down to what goes to the terminal."""
    width, height = widget.size
    for strip in widget.render_lines(Region(0, 0, width, height)):
        strip.render(app.console)


def _ms(act: Callable[[], object]) -> float:
    begun = time.process_time()
    act()
    return (time.process_time() - begun) * 1_000


def _cells(row: RosterRow) -> tuple[str, ...]:
    """What the roster shows of a row, by column."""
    return tuple(str(getattr(row, column.name)) for column in columns_for(_SIZE[0]))


class _Table(DataTable[str]):
    def on_mount(self) -> None:
        self.cursor_type = "row"
        for column in columns_for(_SIZE[0]):
            self.add_column(column.heading, key=column.name)

    async def measured(self) -> None:
        """Wait until it has measured what was added: it does when nothing else is to be done."""
        while self.virtual_size.height <= self.row_count:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)


# --- a full frame -------------------------------------------------------------------------------


async def _roster_frames(console: Console) -> list[float]:
    roster = Roster(console.view)
    async with _running(roster) as app:
        spent: list[float] = []
        with _undisturbed():
            for n in range(_FRAMES):
                state = {"lifecycle": _STATES[n % len(_STATES)]}
                keys = [console.view.key(row) for row in range(_SIZE[1])]
                facts = [SummaryFact(key, state) for key in keys if isinstance(key, SessionKey)]
                console.view.refresh(console.fleet.apply(facts, BEGAN), BEGAN)
                roster.refresh_rows()
                spent.append(_ms(lambda: _drawn(app, roster)))
        return spent


async def _table_frames(console: Console) -> list[float]:
    table = _Table()
    async with _running(table) as app:
        for at in range(len(console.view)):
            table.add_row(*_cells(console.view.row(at)), key=str(at))
        await table.measured()
        _drawn(app, table)
        spent: list[float] = []
        with _undisturbed():
            for n in range(_FRAMES):
                table.update_cell("0", "state", f"state {n}")
                spent.append(_ms(lambda: _drawn(app, table)))
        return spent


def frames(rounds: int) -> Figure:
    """A full frame of ten thousand rows."""
    console = Console(ROWS)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours += asyncio.run(_roster_frames(console))
        theirs += asyncio.run(_table_frames(console))
    base = spread(theirs)
    return Figure(f"full roster frame against DataTable, {ROWS:,} rows", spread(ours), "ms", 1 / 15, 1 / 20, base)


# --- one row ------------------------------------------------------------------------------------


async def _one_row(console: Console, sessions: int) -> list[float]:
    roster = Roster(console.view)
    async with _running(roster) as app:
        _drawn(app, roster)
        key = SessionKey("bench", name(_SIZE[1] // 2))
        line = Region(0, (console.view.index(key) or 0) + 1, _SIZE[0], 1)
        spent: list[float] = []
        with _undisturbed():
            for n in range(_FRAMES * 10):
                fields: dict[str, Any] = {"head": n, "why": f"step {n}"}

                def change(fields: dict[str, Any] = fields) -> None:
                    changes = console.fleet.apply([SummaryFact(key, fields)], BEGAN)
                    console.view.refresh(changes, BEGAN)
                    roster.refresh_rows(changes.sessions)
                    for strip in roster.render_lines(line):
                        strip.render(app.console)

                spent.append(_ms(change) * 1_000)
        return spent


def one_row(rounds: int, many: int = 100_000, few: int = 1_000) -> Figure:
    """One row changed among many sessions, against among few."""
    large, small = Console(many), Console(few)
    a: list[float] = []
    b: list[float] = []
    for _ in range(rounds):
        a.append(spread(asyncio.run(_one_row(large, many))).median)
        b.append(spread(asyncio.run(_one_row(small, few))).median)
    return Figure(f"one row changed, {many:,} rows against {few:,}", spread(a), "us", 1.3, 1.1, spread(b))


# --- from bytes ---------------------------------------------------------------------------------


async def _roster_from(raws: list[bytes]) -> float:
    roster = Roster()
    async with _running(roster) as app:
        with _undisturbed():
            begun = time.process_time()
            console = Console(0)
            console.take(raws)
            console.view.refresh(None, BEGAN)
            roster.rows = console.view
            _drawn(app, roster)
            return (time.process_time() - begun) * 1_000


async def _table_from(raws: list[bytes]) -> float:
    table = _Table()
    async with _running(table) as app:
        with _undisturbed():
            begun = time.process_time()
            for raw in raws:
                frame = decode_host(raw).frame
                for one in frame.sessions if isinstance(frame, Sessions) else ():
                    table.add_row(
                        one.lifecycle.value, one.name or one.id, "bench", str(one.attempt), "", "", "", "", "p-x-",
                        key=one.id,
                    )  # fmt: skip
            await table.measured()
            _drawn(app, table)
            return (time.process_time() - begun) * 1_000


def from_bytes(rounds: int) -> Figure:
    """Ten thousand sessions from what a host says to the first frame."""
    raws = greeting(ROWS)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours.append(asyncio.run(_roster_from(raws)))
        theirs.append(asyncio.run(_table_from(raws)))
    base: Spread = spread(theirs)
    name = f"{ROWS:,} sessions from bytes to a usable roster, against DataTable"
    return Figure(name, spread(ours), "ms", 1 / 5, 1 / 10, base)


def measure(rounds: int = ROUNDS) -> list[Figure]:
    """All three."""
    return [frames(rounds), one_row(rounds), from_bytes(rounds)]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roster_table", description="the roster and a table")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    figures = measure(args.rounds)
    print(f"in memory, {args.rounds} rounds in turns, time of the processor; {load()}")
    print(told(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
