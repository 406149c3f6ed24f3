"""The journal of a running console: whatever happens to its file, the console goes on and says what is not kept."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from console.journal import journal as module
from console.journal import schema
from console.journal.journal import Journal
from console.journal.records import Heard, Place, Retention, TrailRow
from console.journal.store import Store
from tests.unit.journal.kit import NOW, events, gap, message, page, received, request, seqs
from watchfloor.errors import StorageFull
from watchfloor.protocol.codec import encode
from watchfloor.protocol.frames import Beat, Events

PATIENCE_S = 60.0


@asynccontextmanager
async def kept(path: Path, *, retention: Retention | None = None) -> AsyncIterator[Journal]:
    journal = Journal(path, clock=lambda: NOW, retention=retention)
    journal.start()
    try:
        yield journal
    finally:
        await asyncio.to_thread(journal.close)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what it waits for is done by a thread
            await asyncio.sleep(0.005)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def on_disk(path: Path, session: str = "s") -> list[int | None]:
    store = Store(path)
    try:
        return seqs(store.events("h", session, "e"))
    finally:
        store.close()


async def test_what_arrives_is_in_the_file_and_can_be_read_again(tmp_path: Path) -> None:
    async with kept(tmp_path / "journal.db") as journal:
        journal.take("h", received(events([1, 2]), Beat(now=1, pos=1), gap(3, 3), page([4, 5]), request("r")))
        journal.trail(TrailRow("c1", "h", "s", NOW, {"verb": "pause"}))
        stored = await journal.before("h", "s", "e", 6, 1)
        assert (stored.events, stored.more) == ((message(5),), True)
        assert await journal.places("h") == {"s": Place("e", ((1, 2), (4, 5)), ((3, 3),), 5)}
        assert journal.says == ""
    assert on_disk(tmp_path / "journal.db") == [1, 2, 4, 5]


async def test_the_end_of_the_console_waits_for_what_is_not_written(tmp_path: Path) -> None:
    async with kept(tmp_path / "journal.db") as journal:
        for first in range(1, 5_001, 10):
            journal.take("h", received(events(range(first, first + 10))))
    assert on_disk(tmp_path / "journal.db") == list(range(1, 5_001))
    assert journal.waiting == 0
    journal.take("h", received(events([9_999])))
    assert journal.waiting == 0, "it is closed"


async def test_questions_have_an_answer_without_a_file_as_well(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with kept(tmp_path / "file" / "journal.db") as journal:
        assert await journal.places("h") == {}
        assert (await journal.before("h", "s", "e", 9, 9)).events == ()
    assert await journal.places("h") == {}, "it is closed"


async def test_secrets_never_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    secret = 'hunter2 "söme"'
    async with kept(path) as journal:
        journal.hide([secret, "abc"])
        frame = Events(session="s", epoch="e", events=[message(1, f"it is {secret}"), message(2, "abc")])
        journal.take("h", received(frame))
        journal.trail(TrailRow("c", "h", "s", NOW, {"reason": secret}))
        stored = await journal.before("h", "s", "e", 3, 9)
    assert [getattr(event, "text", "") for event in stored.events] == ["it is [masked]", "abc"]
    written = b"".join((tmp_path / name).read_bytes() for name in names(tmp_path))
    assert b"hunter2" not in written
    assert b"it is [masked]" in written


# --- the disk


async def test_a_full_disk_is_said_and_room_lets_it_go_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with kept(path) as journal:
        journal.take("h", received(events([1])))
        await journal.flushed()
        assert journal._store is not None
        db = journal._store._db
        db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
        for seq in range(2, 400):
            journal.take("h", received(events([seq])))
        await until(lambda: journal.fault)
        assert "keeps nothing new" in journal.says
        assert "make room" in journal.says
        assert journal.waiting > 0
        db.execute("PRAGMA max_page_count = 1000000")
        await until(lambda: not journal.waiting)
        assert journal.says == ""
    assert on_disk(path) == list(range(1, 400))


async def test_what_has_no_room_to_wait_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10_000)
    (tmp_path / "file").write_text("")
    async with kept(tmp_path / "file" / "journal.db") as journal:
        await until(lambda: journal.fault)
        for seq in range(1, 101):
            journal.take("h", received(events([seq, 100 + seq])))
        assert 0 < journal.waiting < 60
        assert journal.waiting + journal.lost == 200
        assert f"{journal.lost} events are not in the journal" in journal.says
        (tmp_path / "file").unlink()
        await until(lambda: not journal.waiting)
        assert journal.fault is None
        assert await journal.places("h") != {}


async def test_another_process_that_holds_the_file_costs_the_event_loop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.journal.file.BUSY_MS", 50)
    path = tmp_path / "journal.db"
    Store(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    async with kept(path) as journal:
        await journal.flushed()
        other.execute("BEGIN IMMEDIATE")
        took = time.thread_time()
        journal.take("h", received(events([1])))
        took = time.thread_time() - took
        await until(lambda: journal.fault)
        assert "in use" in journal.says
        other.execute("ROLLBACK")
        await until(lambda: not journal.waiting)
        assert journal.says == ""
    other.close()
    assert took < 0.02
    assert on_disk(path) == [1]


async def test_two_consoles_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with kept(path) as one, kept(path) as two:
        for seq in range(1, 301):
            one.take("h", received(events([seq])))
            two.take("h", received(events([seq, seq + 1])))
            await asyncio.sleep(0)
        await one.flushed()
        await two.flushed()
        assert (one.says, two.says) == ("", "")
        assert (await one.places("h"))["s"].held == ((1, 301),)
    assert on_disk(path) == list(range(1, 302))


# --- files that cannot be used


@pytest.mark.parametrize("what", ["truncated", "foreign", "text", "cut header"])
async def test_what_cannot_be_used_is_kept_aside_and_a_new_journal_begins(tmp_path: Path, what: str) -> None:
    path = tmp_path / "journal.db"
    if what == "foreign":
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE theirs (x)")
        other.commit()
        other.close()
    elif what == "text":
        path.write_text("dear diary\n" * 100)
    else:
        store = Store(path)
        for seq in range(1, 200):
            store.write([Heard("h", NOW, events([seq]), encode(events([seq])))])
        store.close()
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if what == "truncated" else whole[:50])
    before = path.read_bytes()
    async with kept(path) as journal:
        journal.take("h", received(events([1])))
        await journal.flushed()
        assert "is kept as journal.aside-20231114T221320Z.db" in journal.says
        assert journal.fault is None
    assert (tmp_path / "journal.aside-20231114T221320Z.db").read_bytes() == before
    assert on_disk(path) == [1]


async def test_a_newer_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.db"
    with monkeypatch.context() as newer:
        newer.setattr(schema, "STEPS", [*schema.STEPS, ("CREATE TABLE notes (body TEXT)",)])
        newer.setattr("console.journal.file.STEPS", schema.STEPS)
        Store(path).close()
    before = path.read_bytes()
    async with kept(path) as journal:
        journal.take("h", received(events([1])))
        await until(lambda: journal.fault)
        assert "newer version" in journal.says
        assert "update watchfloor" in journal.says
    assert names(tmp_path) == ["journal.db"]
    assert path.read_bytes() == before


async def test_damage_that_shows_while_it_runs_costs_the_old_file_only(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with kept(path) as journal:
        for seq in range(1, 300):
            journal.take("h", received(events([seq])))
        await journal.flushed()
        assert journal._store is not None
        journal._store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with path.open("r+b") as file:
            file.seek(4_096)
            file.write(b"\xff" * (path.stat().st_size - 4_096))
        journal._store._db.execute("PRAGMA cache_size = 0")
        journal.take("h", received(events([1_000])))
        await until(lambda: journal.notice)
        await until(lambda: not journal.waiting)
        assert journal.fault is None
    assert on_disk(path) == [1_000]
    assert "journal.aside-20231114T221320Z.db" in names(tmp_path)


async def test_what_is_old_goes_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRUNE_S", 0.01)
    path = tmp_path / "journal.db"
    store = Store(path)
    for seq in range(1, 11):
        store.write([Heard("h", NOW - 100_000 + seq * 10_000, events([seq]), None)])
    store.close()
    async with kept(path, retention=Retention(age_s=35.0, size=None)) as journal:
        async with asyncio.timeout(PATIENCE_S):
            while (await journal.places("h"))["s"].held != ((7, 10),):  # noqa: ASYNC110 - a thread does it
                await asyncio.sleep(0.01)
    assert on_disk(path) == [7, 8, 9, 10]


async def test_more_than_enough_that_waits_asks_for_a_pause_until_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kept(tmp_path / "journal.db") as journal:
        await journal.flushed()
        before = journal.full
        monkeypatch.setattr(module, "ENOUGH_BYTES", 4_096)
        journal.take("h", received(*(events([seq]) for seq in range(1, 2_000))))
        assert (before, journal.full) == (False, True)
        await until(lambda: not journal.full)
        await journal.flushed()
        assert journal.lost == 0
    assert len(on_disk(tmp_path / "journal.db")) == 1_999


async def test_a_journal_that_cannot_be_written_asks_for_no_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_: object) -> int:
        raise StorageFull("no space left")

    monkeypatch.setattr(module, "ENOUGH_BYTES", 0)
    monkeypatch.setattr(Store, "write", write)
    async with kept(tmp_path / "journal.db") as journal:
        journal.take("h", received(events([1])))
        await until(lambda: journal.fault is not None)
        assert journal.waiting
        assert not journal.full
