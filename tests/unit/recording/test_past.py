"""Pages of the past out of a recording: of one session, as far as it has been played."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.recording.past import RecordedPast
from console.recording.tape import Recorder, Tape
from tests.fixtures.odd import batch, message
from watchfloor.connector import Received
from watchfloor.protocol.codec import decode_host
from watchfloor.protocol.frames import History

AT = 1_700_000_000_000


@pytest.fixture
def tape(tmp_path: Path) -> Iterator[Tape]:
    """Ten lines, each with two events of the session and one of another."""
    recorder = Recorder(tmp_path / "a.rec", "build", AT)
    for number in range(10):
        for session, told in (("sché\n", [message(2 * number + 1), message(2 * number + 2)]), ("s2", [message(7)])):
            raw = batch(*told, session=session)
            recorder.take([Received(decode_host(raw).frame, raw)], AT + number)
    recorder.close()
    made = Tape(tmp_path / "a.rec")
    yield made
    made.close()


def seqs(tape: Tape, place: int = 20, *, epoch: str = "e", **asked: Any) -> tuple[list[int | None], bool]:
    past = RecordedPast(tape)
    try:
        page = past.page(History(id="h", session="sché\n", epoch="e #2", **asked), place, epoch)
    finally:
        past.close()
    assert (page.id, page.session, page.epoch) == ("h", "sché\n", "e #2")
    numbers = [event.seq for event in page.events]
    assert (page.first, page.last) == ((numbers[0], numbers[-1]) if numbers else (0, 0))
    return numbers, page.more


def test_pages_go_back_and_forth(tape: Tape) -> None:
    assert seqs(tape, before=10, limit=4) == ([6, 7, 8, 9], True)
    assert seqs(tape, before=4, limit=4) == ([1, 2, 3], False)
    assert seqs(tape, after=15, limit=3) == ([16, 17, 18], True)
    assert seqs(tape, limit=2) == ([19, 20], True)


def test_nothing_is_told_that_was_not_played_or_is_of_another_log(tape: Tape) -> None:
    assert seqs(tape, place=5, after=0, limit=100) == ([1, 2, 3, 4, 5, 6], False)
    assert seqs(tape, epoch="f", before=10, limit=4) == ([], False)
