"""What the benchmarks rest on: one load, keys matched to what was seen, a table that tells what is missed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.figures import Figure, Spread, spread
from benchmarks.keys import times
from benchmarks.table import BEGIN, END, markdown, put, record, store, stored, worse
from benchmarks.terminal import Chunk
from benchmarks.traffic import framed, make
from watchfloor.protocol.codec import decode_host
from watchfloor.protocol.events import Delta
from watchfloor.protocol.frames import Events, Sessions

MS = 1_000_000


@pytest.mark.parametrize("batch", [1, 50])
def test_the_load_is_the_same_each_time_and_all_of_it_can_be_read(tmp_path: Path, batch: int) -> None:
    one = make(tmp_path / "one", events=2_000, sessions=20, batch=batch)
    two = make(tmp_path / "two", events=2_000, sessions=20, batch=batch)
    assert one.digest == two.digest
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert make(tmp_path / "other", events=2_000, sessions=20, batch=batch, seed=1).digest != one.digest
    decoded = [decode_host(raw) for raw in one.payloads()]
    assert not any(frame.bad for frame in decoded)
    events = [event for found in decoded if isinstance(found.frame, Events) for event in found.frame.events]
    assert len(events) == one.events == 2_000
    assert 0.55 < sum(isinstance(event, Delta) for event in events) / 2_000 < 0.65
    assert [event.pos for event in events if event.pos] == list(range(1, 1 + 2_000 - one.kinds["delta"]))
    assert any(isinstance(found.frame, Sessions) for found in decoded)


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_a_frame_is_as_long_as_it_says(size: int) -> None:
    frame = framed(b"x" * size)
    short = frame[1]
    header = {126: 4, 127: 10}.get(short, 2)
    assert int.from_bytes(frame[2:header], "big") == size if header > 2 else short == size
    assert frame[header:] == b"x" * size


def test_a_key_is_seen_when_its_number_or_a_higher_one_is_and_not_before_it_was_sent() -> None:
    sent = [10 * MS, 20 * MS, 30 * MS, 40 * MS]
    chunks = [
        Chunk(5 * MS, b"keys=1 "),
        Chunk(15 * MS, b"..key"),
        Chunk(18 * MS, b"s=1 .."),
        Chunk(55 * MS, b"keys=3 "),
    ]
    seen = times(sent, chunks)
    assert (seen.taken, seen.lost) == ([8.0, 25.0, 35.0], 1)
    assert seen.worst == seen.at(0.99) == float("inf")
    assert times(sent, chunks, 1, 3).taken == [25.0, 35.0]


def figure(value: float, base: float | None = None, *, must: float = 1.0, more: bool = False) -> Figure:
    held = Spread(base, base, base) if base is not None else None
    return Figure("a figure", spread([value]), "ms", must, must * (2 if more else 0.5), held, more=more)


def test_a_figure_tells_which_limit_it_keeps() -> None:
    assert figure(0.4).reached == "aim"
    assert figure(0.9).reached == "must"
    assert figure(1.1).reached == "missed"
    assert figure(10, 10, must=0.9).reached == "missed"
    assert figure(25, 10, must=1.2, more=True).reached == "aim"
    assert figure(11, 10, must=1.2, more=True).reached == "missed"


def test_the_table_goes_between_its_marks_and_what_is_worse_is_named(tmp_path: Path) -> None:
    results, readme = tmp_path / "results" / "latest.json", tmp_path / "README.md"
    store([figure(20, 10, must=1.5)], {"on": "today"}, results)
    [one] = stored(results)
    assert (one["ratio"], one["reached"]) == (2.0, "missed")
    assert json.loads(results.read_text())["about"] == {"on": "today"}
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nbehind\n")
    assert put(markdown([one], {"on": "today"}), readme)
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n| figure |")
    assert text.endswith(f"{END}\nbehind\n")
    assert "(missed)" in text
    assert "old" not in text
    readme.write_text("no marks\n")
    assert not put("table", readme)
    assert worse([figure(25, 10)], [one]) == []
    assert worse([figure(27, 10)], [one]) == ["a figure: 2.70, it was 2.00"]
    much = record(figure(20, 10, more=True))
    assert worse([figure(15, 10, more=True)], [much]) == []
    assert worse([figure(13, 10, more=True)], [much]) == ["a figure: 1.30, it was 2.00"]
