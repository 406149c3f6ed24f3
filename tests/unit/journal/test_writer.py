"""What owns the journal's file: whatever happens to it, it says what is not kept, and goes on when it can."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from console.journal import writer as module
from console.journal.file import open_journal, put_aside
from console.journal.records import Heard, Retention, TrailRow
from console.journal.store import Store
from console.journal.wire import Message
from console.journal.writer import Block, Writer
from tests.unit.journal.kit import NOW, events, heard, seqs

PATIENCE_S = 60.0


class Desk:
    """A writer without a process, and what it has told."""

    def __init__(self, path: Path, retention: Retention | None = None) -> None:
        self.told: list[Message] = []
        self.writer = Writer(path, lambda: NOW, retention or Retention(), self.told.append)
        self._number = 0

    def give(self, *entries: Heard | TrailRow) -> None:
        self._number += 1
        self.writer.take(Block(self._number, entries, len(entries)))

    def flush(self) -> bool:
        """Write all that waits; False where that cannot be done."""
        while self.writer._queue:
            if not self.writer.flush():
                return False
        return True

    @property
    def state(self) -> tuple[Any, ...]:
        """Done up to, lost, fault, opened, notice."""
        return next(message[1:] for message in reversed(self.told) if message[0] == "state")

    @property
    def fault(self) -> str:
        return str(self.state[2])

    @property
    def db(self) -> sqlite3.Connection:
        assert self.writer._store is not None
        return self.writer._store._db


def on_disk(path: Path) -> list[int | None]:
    store = Store(path)
    try:
        return seqs(store.events("h", "s", "e"))
    finally:
        store.close()


def given(desk: Desk, numbers: Sequence[int]) -> None:
    for number in numbers:
        desk.give(heard(events([number])))


def until(holds: Callable[[], object]) -> None:
    patience = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.005)


def test_a_full_disk_is_said_and_room_lets_it_go_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "journal.db")
    desk.writer.open()
    desk.give(heard(events([1])))
    assert desk.flush()
    done = desk.state[0]
    desk.db.execute(f"PRAGMA max_page_count = {desk.db.execute('PRAGMA page_count').fetchone()[0]}")
    given(desk, range(2, 400))
    assert not desk.flush()
    assert "make room" in desk.fault
    assert desk.state[:2] == (done, 0), "none of it counts as kept, none as lost"
    desk.writer.answer(7, "places", ("h",))
    assert desk.told[-1][:3] == ("answer", 7, ""), "what is there can be read"
    desk.db.execute("PRAGMA max_page_count = 1000000")
    assert desk.flush()
    assert desk.state[:3] == (400 - 1, 0, "")
    desk.writer._shut()
    assert on_disk(tmp_path / "journal.db") == list(range(1, 400))


def test_a_disk_that_is_read_only_is_said_and_what_came_meanwhile_is_kept_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.db"
    desk = Desk(path)
    with monkeypatch.context() as disk:
        disk.setattr("os.open", _read_only)
        desk.writer.open()
        desk.give(heard(events([1])))
        assert not desk.flush()
        assert "cannot be written: Read-only file system" in desk.fault
    desk.writer.open()
    assert desk.flush()
    assert desk.fault == ""
    # It became so while the file was open.
    desk.db.execute("PRAGMA query_only = 1")
    desk.give(heard(events([2])))
    assert not desk.flush()
    assert "cannot be written" in desk.fault
    desk.writer.open()
    assert desk.flush()
    assert desk.state[1:3] == (0, "")
    desk.writer._shut()
    assert on_disk(path) == [1, 2]


def _read_only(*_: object) -> int:
    raise OSError(errno.EROFS, "Read-only file system")


@pytest.mark.parametrize("how", ["the file", "its folder", "by another journal"])
def test_a_file_that_is_removed_under_its_writer_is_said_and_begun_anew(how: str, tmp_path: Path) -> None:
    path = tmp_path / "state" / "journal.db"
    desk = Desk(path)
    desk.writer.open()
    desk.give(heard(events([1])))
    assert desk.flush()
    assert desk.state[4] == ""
    match how:
        case "its folder":
            shutil.rmtree(path.parent)
        case "the file":
            path.unlink()
        case _:
            # As another console does with one that it finds damaged.
            put_aside(path, "stamp")
    other = Store(path) if how == "by another journal" else None
    beside = 0
    if other is not None:
        other.write([heard(events([9]))])
        beside = path.with_name("journal.db-wal").stat().st_ino
    desk.writer._looked_at = float("-inf")
    given(desk, [2, 3])
    assert desk.flush()
    assert "was removed while it was open" in desk.state[4]
    assert desk.fault == ""
    desk.writer._shut()
    if other is not None:
        # What stands beside the new file is not taken away with what belonged to the old one.
        assert path.with_name("journal.db-wal").stat().st_ino == beside
        other.write([heard(events([10]))])
        other.close()
    assert on_disk(path) == [2, 3, *([9, 10] if other is not None else [])]


def test_another_process_that_holds_the_file_is_told_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.journal.file.BUSY_MS", 50)
    path = tmp_path / "journal.db"
    Store(path).close()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    desk = Desk(path)
    living = threading.Thread(target=desk.writer.live)
    living.start()
    until(lambda: desk.told)
    other.execute("BEGIN IMMEDIATE")
    desk.give(heard(events([1])))
    until(lambda: "in use" in desk.fault)
    desk.give(heard(events([2])))
    desk.writer.end()
    until(lambda: desk.told.count(desk.told[-1]) > 1)
    other.execute("ROLLBACK")
    other.close()
    living.join(PATIENCE_S)
    assert on_disk(path) == [1, 2], "also when the console has ended meanwhile"


def test_damage_that_shows_while_it_runs_costs_the_old_file_only(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    desk = Desk(path)
    desk.writer.open()
    given(desk, range(1, 300))
    assert desk.flush()
    desk.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (path.stat().st_size - 4_096))
    desk.db.execute("PRAGMA cache_size = 0")
    desk.give(heard(events([1_000])))
    assert not desk.flush()
    assert "damaged" in desk.fault
    desk.writer.open()
    assert desk.flush()
    assert "is kept as journal.aside-20231114T221320Z.db" in desk.state[4]
    assert desk.fault == ""
    desk.writer._shut()
    assert on_disk(path) == [1_000]


def test_what_is_old_goes_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRUNE_S", 0.01)
    path = tmp_path / "journal.db"
    store = Store(path)
    for seq in range(1, 11):
        store.write([heard(events([seq]), at=NOW - 100_000 + seq * 10_000)])
    store.close()
    desk = Desk(path, Retention(age_s=35.0, size=None))
    living = threading.Thread(target=desk.writer.live)
    living.start()
    reader = open_journal(path, read_only=True)
    until(lambda: reader.execute("SELECT MIN(seq) FROM events").fetchone() == (7,))
    reader.close()
    desk.writer.end()
    living.join(PATIENCE_S)
    assert on_disk(path) == [7, 8, 9, 10]


def test_what_cannot_be_written_at_all_keeps_nothing_else_from_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    desk = Desk(path)
    desk.writer.open()
    desk.give(heard(events([1])), heard(events([2**70])), heard(events([2])))
    assert desk.flush()
    assert desk.state[:3] == (1, 1, "")
    assert any(message[0] == "said" for message in desk.told)
    desk.writer._shut()
    assert on_disk(path) == [1, 2]


def test_frames_are_written_as_they_came_while_it_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HURRIED_ROWS", 3)
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    desk = Desk(tmp_path / "journal.db")
    desk.writer.open()
    for number in range(1, 7):
        desk.give(heard(events(range(number * 100, number * 100 + 40))))
    assert desk.flush()
    forms = [form for (form,) in desk.db.execute("SELECT form FROM frames ORDER BY id")]
    assert forms == [0, 0, 0, 0, 1, 1]
    assert len(seqs(desk.writer._store.events("h", "s", "e"))) == 240  # type: ignore[union-attr]
    desk.writer._shut()
