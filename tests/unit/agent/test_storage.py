"""The file of sessions where it is not as it should be: refused as it is, with what to do."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.unit.agent.kit import built, reopened, says
from watchfloor.agent.builder import FILE
from watchfloor.agent.session import RunState, Session
from watchfloor.agent.sqlite_storage import SqliteStorage
from watchfloor.errors import StorageCorrupt, StorageError, StorageForeign, StorageInUse, StorageNewer
from watchfloor.harness.base import ConversationMessage


async def stored(folder: Path) -> Path:
    """A file with one session in it."""
    agent = built(folder).function(says).build()
    await agent.run(agent.open("s"), "hello")
    reopened(agent)
    return folder / FILE


def refused(path: Path, kind: type[StorageError], says: str) -> None:
    """Opening it raises this, and leaves the file as it is."""
    before = path.read_bytes()
    with pytest.raises(kind, match=says) as fault:
        SqliteStorage(path)
    assert str(path) in str(fault.value)
    assert path.read_bytes() == before


async def test_sessions_are_listed_in_a_thread_while_others_run(tmp_path: Path) -> None:
    agent = built(tmp_path).function(says).build()
    for number in range(20):
        await agent.run(agent.open(f"s{number}"), "hello")
    listing = asyncio.get_running_loop().run_in_executor(None, lambda: [agent.list_sessions() for _ in range(20)])
    told = 1
    while not listing.done():
        await agent.run(agent.open("s0"), "hello")
        told += 1
        await asyncio.sleep(0)
    for listed in await listing:
        assert len(listed) == 20
        for session in listed:
            # Each as it stood at one moment, and none taken for one whose process has ended.
            assert session.state in (RunState.IDLE, RunState.RUNNING)
            assert session.turns - 1 <= len(session.messages) // 2 <= session.turns
    assert len(agent.session_history("s0")) == 2 * told


async def test_a_file_of_a_newer_version(tmp_path: Path) -> None:
    path = await stored(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    refused(path, StorageNewer, "update watchfloor, or name another file")


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text("what is this " * 100)
    refused(path, StorageForeign, "name another file")


async def test_a_file_that_is_damaged(tmp_path: Path) -> None:
    path = await stored(tmp_path)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * len(data[4096:])
    path.write_bytes(data)
    refused(path, StorageCorrupt, "restore a backup")


async def test_a_file_in_use(tmp_path: Path) -> None:
    path = await stored(tmp_path)
    first = SqliteStorage(path)
    with pytest.raises(StorageInUse, match="end that one, or name another file"):
        SqliteStorage(path)
    first.close()
    SqliteStorage(path).close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sessions SET body = '{'",
        "UPDATE sessions SET body = '{\"id\": 7}'",
        "UPDATE messages SET body = '[1, 2, 3, 4]'",
        "UPDATE messages SET body = 'x'",
    ],
)
async def test_a_session_that_cannot_be_read(tmp_path: Path, damage: str) -> None:
    path = await stored(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute(damage)
    db.close()
    agent = built(tmp_path).function(says).build()
    for read in (lambda: agent.open("s"), agent.list_sessions, lambda: agent.session_history("s")):
        with pytest.raises(StorageCorrupt, match=r"'s' cannot be read: .*restore a backup"):
            read()
    # What is not damaged can be used, and what is can be removed.
    await agent.run(agent.open("other"), "x")
    assert agent.delete_session("s")
    assert [session.id for session in agent.list_sessions()] == ["other"]


def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / FILE)
    storage.save(Session(id="s", messages=[ConversationMessage("user", "x", "#1")]))
    storage.close()
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_ids_and_texts_are_kept_as_they_are(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / FILE)
    session = Session(
        id="a\n\x00ü\N{GRINNING FACE}", messages=[ConversationMessage("user", "tab\tnul\x00 \ud800", "#1")]
    )
    storage.save(session)
    assert storage.load(session.id) == session
    assert storage.delete(session.id)
    assert storage.load(session.id) is None
    storage.close()
