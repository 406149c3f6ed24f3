"""The journal of a running console: whatever happens to its file, the console goes on and says what is not kept."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

from console.journal import journal as module
from console.journal import schema
from console.journal.journal import Journal
from console.journal.records import Place, Retention, TrailRow
from console.journal.store import Store
from tests.unit.journal.kit import NOW, events, gap, heard, message, page, received, request, seqs
from watchfloor.protocol.frames import Beat, Events

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else this machine does, an answer comes."""
    monkeypatch.setattr(module, "ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(module, "OPENING_S", PATIENCE_S)
    monkeypatch.setattr(module, "CLOSE_S", PATIENCE_S)


@asynccontextmanager
async def kept(path: Path, *, retention: Retention | None = None) -> AsyncIterator[Journal]:
    journal = Journal(path, clock=lambda: NOW, retention=retention)
    journal.start()
    try:
        yield journal
    finally:
        await journal.close()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what it waits for is done by a thread
            await asyncio.sleep(0.005)


@contextmanager
def stopped(writer: int | None) -> Iterator[int]:
    """A writer that stands still, and goes on also where the test fails."""
    assert writer is not None
    os.kill(writer, signal.SIGSTOP)
    os.waitpid(writer, os.WUNTRACED)  # it may take a moment, in which it reads on
    try:
        yield writer
    finally:
        with suppress(ProcessLookupError):
            os.kill(writer, signal.SIGCONT)


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
            store.write([heard(events([seq]))])
        store.close()
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if what == "truncated" else whole[:50])
    before = path.read_bytes()
    async with kept(path) as journal:
        journal.take("h", received(events([1])))
        await journal.flushed()
        assert "is kept as journal.aside-" in journal.says
        assert journal.fault is None
    [aside] = [name for name in names(tmp_path) if name.startswith("journal.aside-")]
    assert (tmp_path / aside).read_bytes() == before
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
    monkeypatch.setattr(module, "ENOUGH_BYTES", 0)
    (tmp_path / "file").write_text("")
    async with kept(tmp_path / "file" / "journal.db") as journal:
        journal.take("h", received(events([1])))
        await until(lambda: journal.fault is not None)
        assert journal.waiting
        assert not journal.full


# --- its process


async def test_a_writer_that_somebody_ends_is_started_again_and_has_it_all(tmp_path: Path) -> None:
    async with kept(tmp_path / "journal.db") as journal:
        for round in range(2):
            await journal.flushed()
            with stopped(journal.writer) as first:
                for seq in range(round * 100 + 1, round * 100 + 101):
                    journal.take("h", received(events([seq])))
                asked = asyncio.create_task(journal.before("h", "s", "e", round * 100 + 101, 3))
                await asyncio.sleep(0)
                os.kill(first, signal.SIGKILL)
            await until(lambda: journal.fault is not None)
            assert "ended by signal 9" in journal.says
            assert seqs((await asked).events) == [round * 100 + n for n in (98, 99, 100)]
            await until(lambda: not journal.says)
            assert journal.writer != first
        assert journal.lost == 0
    assert on_disk(tmp_path / "journal.db") == list(range(1, 201))


async def test_what_would_end_the_writer_again_and_again_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    async with kept(tmp_path / "journal.db") as journal:
        await journal.flushed()
        # No console says this; whoever is told it fails at once.
        monkeypatch.setattr(module, "TRAIL", "nonsense")
        journal.trail(TrailRow("c", "h", "s", NOW, {}))
        await until(lambda: journal.lost)
        journal.take("h", received(events([1])))
        await until(lambda: not journal.waiting)
        await until(lambda: journal.fault is None)
    assert on_disk(tmp_path / "journal.db") == [1]


async def test_the_writer_ends_by_itself_when_the_console_is_gone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db", clock=lambda: NOW)
    journal.start()
    for seq in range(1, 2_001):
        journal.take("h", received(events([seq])))
    line = journal._line
    assert line is not None
    await until(lambda: journal.waiting < 2_000 and not line._unsent)
    line.let_go()
    await asyncio.to_thread(line._process.wait, PATIENCE_S)
    assert line._process.returncode == 0
    assert on_disk(tmp_path / "journal.db") == list(range(1, 2_001))


async def test_more_than_the_system_holds_between_the_two_is_handed_over_in_its_order(tmp_path: Path) -> None:
    async with kept(tmp_path / "journal.db") as journal:
        await journal.flushed()
        with stopped(journal.writer):
            text = "x" * 50_000
            for seq in range(1, 101):
                journal.take("h", received(Events(session="s", epoch="e", events=[message(seq, text)])))
            journal.hide(["xxxxx"])
            assert journal._line is not None
            assert journal._line._unsent
        assert seqs((await journal.before("h", "s", "e", 101, 100)).events) == list(range(1, 101))
        assert journal.waiting == 0
