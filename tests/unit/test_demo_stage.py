"""What paces the demo: requests that keep apart, events that are evenly spaced; and its commands."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from console.demo.shell import CommandFailed, shell
from console.demo.stage import Calm, Pace, difference
from console.demo.texts import Order, pieces


def test_requests_keep_apart_however_many_ask_at_once() -> None:
    calm = Calm(Random(1), least_s=20, most_s=40)
    at = [100.0 + calm.reserve(100.0) for _ in range(50)]
    gaps = [later - earlier for earlier, later in zip([100.0, *at], at, strict=False)]
    assert all(20 <= gap <= 40 for gap in gaps)
    late = at[-1] + 1000
    assert 20 <= calm.reserve(late) <= 40


def test_events_are_evenly_spaced() -> None:
    pace, now, due = Pace(20.0), 5.0, []
    for _ in range(100):
        now += pace.take(now)
        due.append(now)
    assert due == pytest.approx([5.0 + number / 20 for number in range(100)])


def test_a_short_delay_is_made_up_for_and_a_long_one_is_not() -> None:
    pace = Pace(10.0)
    assert pace.take(0.0) == 0.0
    assert [pace.take(0.35) for _ in range(4)] == pytest.approx([0.0, 0.0, 0.0, 0.05])
    assert [pace.take(90.0) for _ in range(3)] == pytest.approx([0.0, 0.1, 0.2])


@pytest.mark.parametrize("count", [1, 3, 4, 50])
def test_pieces_put_together_are_the_sentence(count: int) -> None:
    sentence = Order.draw(Random(3), 1001).sentence()
    parts = pieces(sentence, count)
    assert "".join(parts) == sentence
    assert len(parts) <= count
    assert all(part.strip() for part in parts)


def test_an_order_survives_its_line() -> None:
    order = Order.draw(Random(4), 17)
    assert Order.parse(order.line()) == order


def test_a_difference_names_the_file_and_the_changed_lines() -> None:
    assert difference("docs/a.md", "one\ntwo\n", "one\nthree\n").splitlines() == [
        "--- a/docs/a.md",
        "+++ b/docs/a.md",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+three",
    ]


async def test_a_command_runs_in_its_folder_and_tells_what_it_wrote(tmp_path: Path) -> None:
    assert await shell("echo to stderr >&2; pwd > here; echo done", tmp_path) == "to stderr\ndone\n"
    assert (tmp_path / "here").read_text().strip() == str(tmp_path)


async def test_a_command_that_fails_says_its_status(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"^no\nexit status 3$"):
        await shell("echo no; exit 3", tmp_path)


async def test_a_command_sees_nothing_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFLOOR_TOKEN", "tok-3141592653589793")
    assert "tok-" not in await shell("env", tmp_path)


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="there is no process table to read")
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, None])
async def test_a_cancelled_command_leaves_nothing_behind(tmp_path: Path, turns: int | None) -> None:
    """Cancelled after so many turns of the event loop, which is while it starts; None: while it runs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    running = asyncio.create_task(shell("sleep 600 & echo > pipe; wait", tmp_path))
    if turns is None:
        await asyncio.to_thread(pipe.read_text)
        assert len(living_in(tmp_path)) == 2
    for _ in range(turns or 0):
        await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await running
    # The shell is reaped by now; nobody tells of those that it has started.
    async with asyncio.timeout(60):
        while living_in(tmp_path):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def living_in(folder: Path) -> set[int]:
    """The processes whose current folder this is."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.add(int(process.name))
    return found
