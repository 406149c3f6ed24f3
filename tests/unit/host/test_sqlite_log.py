"""The log in a file: the suite that any log must pass, what it survives, and the files that it refuses."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.host.test_log import memory
from watchfloor import sqlite_file
from watchfloor.errors import (
    StorageCorrupt,
    StorageError,
    StorageForeign,
    StorageFull,
    StorageInUse,
    StorageNewer,
    StorageReadOnly,
)
from watchfloor.host.log.events import Batch, EventLog
from watchfloor.host.log.sqlite import APPLICATION, SWEPT, VERSION, SqliteLog
from watchfloor.protocol.events import Message, UnknownEvent
from watchfloor.testing.log_suite import LogSuite, messages, seqs


def epochs() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"e{next(numbers)}"


class TestSqliteLog(LogSuite):
    @pytest.fixture
    def log(self, tmp_path: Path) -> Iterator[EventLog]:
        with SqliteLog(tmp_path / "log.db", new_epoch=epochs()) as log:
            yield log


# --- erasing


def test_what_was_erased_goes_bit_by_bit_and_is_read_no_more(tmp_path: Path) -> None:
    path = tmp_path / "log.db"

    def rows(log: SqliteLog) -> int:
        return int(log._db.execute("SELECT COUNT(*) FROM events").fetchone()[0])

    with SqliteLog(path) as log:
        log.append("a", messages(10))
        log.append("b", messages(2 * SWEPT + 500))
        log.erase("b")
        assert (rows(log), log.read("b"), log.sessions()) == (10 + SWEPT + 500, [], ("a",))
        assert {item.session for item in log.after(0, 9999)} == {"a"}
    with SqliteLog(path) as log:
        # The next one gets nothing of it, whatever its id.
        log.append("c", messages(1))
        assert (seqs(log.read("c")), rows(log)) == ([1], 11 + 500)
        log.append("b", messages(2))
        assert (seqs(log.read("b")), rows(log)) == ([1, 2], 13)
        assert log._db.execute("SELECT COUNT(*) FROM erased").fetchone()[0] == 0
        log.append("b", messages(1))
        assert rows(log) == 14


# --- coming back


def test_everything_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "a folder" / "log.db"
    path.parent.mkdir()
    with SqliteLog(path, keep=4) as log:
        log.write([Batch("a", messages(3)), Batch("b", messages(2))])
        epoch = log.epoch("a")
        before = log.after(0, 99)
    with SqliteLog(path, keep=4, new_epoch=lambda: "another") as log:
        assert log.after(0, 99) == before
        assert (log.pos, log.epoch("a"), log.sessions()) == (5, epoch, ("a", "b"))
        assert (log.first("a"), log.head("a"), log.lost("a")) == (2, 3, 1)
        assert seqs(log.append("a", messages(1))) == [4]
        assert log.epoch("c") == "another"


def test_what_is_not_text_or_not_known_comes_back_as_it_was(tmp_path: Path) -> None:
    odd = Message(at=1, text="half a pair: \ud83d, and \u2028 \x00")
    newer = UnknownEvent.model_validate({"at": 2, "kind": "hologram", "depth": [1, {"x": None}]})
    with SqliteLog(tmp_path / "log.db") as log:
        stored = log.append("s\udcff", [odd, newer])
        assert log.read("s\udcff") == stored
        assert log.after(0, 9)[0].session == "s\udcff"
    with SqliteLog(tmp_path / "log.db") as log:
        assert log.read("s\udcff") == stored
        assert log.read("s\udcff")[0].model_fields_set == stored[0].model_fields_set


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append("a", messages(1))
        assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


@pytest.mark.parametrize("same_boot", [True, False])
def test_only_a_machine_that_went_down_may_have_lost_what_was_told(
    tmp_path: Path, same_boot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SqliteLog(tmp_path / "log.db")
    log.append("a", messages(3))
    epoch = log.epoch("a")
    log._db.close()  # as it is when the process is killed: nothing was noted
    if not same_boot:
        monkeypatch.setattr(sqlite_file, "boot", lambda: "another boot")
    with SqliteLog(tmp_path / "log.db") as log:
        assert (log.epoch("a") == epoch) is same_boot
        assert seqs(log.read("a")) == [1, 2, 3]
        epoch = log.epoch("a")
    monkeypatch.setattr(sqlite_file, "boot", lambda: "a third boot")
    with SqliteLog(tmp_path / "log.db") as log:
        assert log.epoch("a") == epoch  # it had been closed in good order


# --- forgetting


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keep=st.integers(1, 40),
    batches=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=3), max_size=12),
    after=st.integers(0, 200),
    limit=st.integers(1, 50),
)
def test_it_is_the_log_in_memory_event_by_event(
    tmp_path_factory: pytest.TempPathFactory,
    keep: int,
    batches: list[list[tuple[str, int]]],
    after: int,
    limit: int,
) -> None:
    plain = memory(keep)
    with SqliteLog(tmp_path_factory.mktemp("log") / "log.db", keep=keep, new_epoch=epochs()) as log:
        for batch in batches:
            parts = [Batch(session, messages(size)) for session, size in dict(batch).items()]
            assert log.write(parts) == plain.write(parts)
        assert log.pos == plain.pos
        assert log.after(after, limit) == plain.after(after, limit)
        for session in "abc":
            assert log.read(session, after=after // 9, limit=limit) == plain.read(
                session, after=after // 9, limit=limit
            )
            assert log.after(after, limit, session) == plain.after(after, limit, session)
            assert (log.first(session), log.head(session), log.lost(session)) == (
                plain.first(session),
                plain.head(session),
                plain.lost(session),
            )


def test_a_log_that_keeps_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one"):
        SqliteLog(tmp_path / "log.db", keep=0)
    assert list(tmp_path.iterdir()) == []


# --- files that cannot be used


def refused(path: Path, kind: type[StorageError]) -> str:
    """The message of the refusal; the file is as it was, and nothing lies beside it."""
    before, beside = path.read_bytes(), sorted(path.parent.iterdir())
    with pytest.raises(kind) as caught:
        SqliteLog(path)
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == beside
    assert str(path) in str(caught.value)
    return str(caught.value)


def made(path: Path, events: int = 3) -> Path:
    with SqliteLog(path) as log:
        log.append("a", messages(events))
    return path


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n" * 40)
    assert "another file" in refused(path, StorageForeign)


@pytest.mark.parametrize("mark", [0, 0x41424344])
def test_the_database_of_another_program(tmp_path: Path, mark: int) -> None:
    path = tmp_path / "other.db"
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA application_id = {mark}")
    db.execute("CREATE TABLE birds (name TEXT)")
    db.commit()
    db.close()
    assert "another program" in refused(path, StorageForeign)


def test_one_of_a_newer_version(tmp_path: Path) -> None:
    path = made(tmp_path / "log.db")
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    assert "update watchfloor" in refused(path, StorageNewer)


@pytest.mark.parametrize("where", [0.3, 0.6, 0.9])
def test_a_damaged_one(tmp_path: Path, where: float) -> None:
    path = made(tmp_path / "log.db", events=2000)
    data = bytearray(path.read_bytes())
    at = int(len(data) * where)
    data[at : at + 8192] = b"\xff" * 8192
    path.write_bytes(data)
    with pytest.raises(StorageCorrupt, match="keep a copy"):
        SqliteLog(path)
    assert path.read_bytes() == bytes(data)


def test_one_that_was_cut_off(tmp_path: Path) -> None:
    path = made(tmp_path / "log.db", events=2000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StorageCorrupt):
        SqliteLog(path)
    assert path.read_bytes() == whole[: len(whole) // 2]


def test_an_event_that_is_no_event(tmp_path: Path) -> None:
    path = made(tmp_path / "log.db")
    db = sqlite3.connect(path)
    db.execute("UPDATE events SET body = 'x' WHERE seq = 2")
    db.commit()
    db.close()
    with SqliteLog(path) as log:
        with pytest.raises(StorageCorrupt, match="an event cannot be read"):
            log.read("a")
        assert seqs(log.read("a", after=2)) == [3]


def test_one_that_somebody_else_has_open(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append("a", messages(1))
        with pytest.raises(StorageInUse, match="another process"):
            SqliteLog(tmp_path / "log.db")
        assert seqs(log.append("a", messages(1))) == [2]
    SqliteLog(tmp_path / "log.db").close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageReadOnly, match="No such file"):
        SqliteLog(tmp_path / "nowhere" / "log.db")
    with pytest.raises(StorageReadOnly, match="directory"):
        SqliteLog(tmp_path)


def test_a_file_that_may_not_be_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("readonly")
    path = made(folder / "log.db")
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        code = as_nobody(lambda: SqliteLog(path))
    finally:
        folder.chmod(0o755)
    assert code == "StorageReadOnly"
    with SqliteLog(path) as log:
        assert seqs(log.read("a")) == [1, 2, 3]


def as_nobody(do: Callable[[], object]) -> str:
    """The name of what is raised by somebody who may not do everything."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        name = "nothing"
        try:
            if os.getuid() == 0:
                # The folders above belong to root alone: it must be looked at from inside.
                os.setresuid(65534, 65534, 65534)
            do()
        except BaseException as error:
            name = type(error).__name__
        os.write(write, name.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        name = answer.read().decode()
    os.waitpid(child, 0)
    return name


def fill(log: SqliteLog) -> None:
    for _ in range(1000):
        log.write([Batch("a", messages(20)), Batch("new", messages(20))])


def test_a_full_disk_costs_nothing_that_was_stored_and_room_lets_it_go_on(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append("a", messages(10))
        pages = log._db.execute("PRAGMA page_count").fetchone()[0]
        log._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageFull, match="make room"):
            fill(log)
        pos, head = log.pos, log.head("a")
        assert pos == 10 + 2 * (head - 10)
        assert [item.event.pos for item in log.after(0, 9999)] == list(range(1, pos + 1))
        log._db.execute("PRAGMA max_page_count = 1000000")
        assert seqs(log.append("a", messages(1))) == [head + 1]
        assert log.pos == pos + 1
    with SqliteLog(tmp_path / "log.db") as log:
        assert (log.pos, log.head("a"), log.head("new")) == (pos + 1, head + 1, head - 10)


def test_the_marks_stand_in_the_header(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    header = (tmp_path / "log.db").read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == APPLICATION
    assert int.from_bytes(header[60:64], "big") == VERSION
    log.close()
    assert sys.getrefcount(log) > 0
