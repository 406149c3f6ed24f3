"""A console with a journal against a real host: it goes on where it ended, and shows the past also without the host."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from console.audit import Audit
from console.connectors.supervisor import Item
from console.fleet.facts import Intent, Seen, SessionKey
from console.hub import Hub
from console.journal import journal as journaling
from console.journal.journal import Journal
from console.journal.store import Store
from tests.sockets.host_kit import until
from watchfloor import sqlite_file
from watchfloor.connector import Received, Record, Target
from watchfloor.errors import ConnectionLost
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.log.events import EventLog
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.serving.server import Host, wall_clock
from watchfloor.protocol.events import Event, RequestOpened
from watchfloor.protocol.frames import DoSend, Events
from watchfloor.protocol.model import FieldType, FormField
from watchfloor.words import Continuity, Primitive

WAIT_S = 30.0
KEY = SessionKey("local", "talker")


async def talks(run: Run, mail: tuple[MailItem, ...]) -> str:
    """Says as many lines as it is told to; asked for a secret it repeats what it was given."""
    for item in mail:
        if item.text == "ask":
            answer = await run.ask(
                "Who are you?",
                free_text=False,
                fields=(
                    FormField(name="user", type=FieldType.TEXT, label="User"),
                    FormField(name="password", type=FieldType.SECRET, label="Password"),
                ),
            )
            await run.say(f"I was given {answer.fields}")
        else:
            for number in range(int(item.text)):
                await run.say(f"line {number}")
    return "done"


@asynccontextmanager
async def hosting(lines: int = 30, log: EventLog | None = None) -> AsyncIterator[Host]:
    async with Host(name="busy", heartbeat_s=0.2, log=log) as host:
        host.add(FunctionHarness(talks), name="talker", id="talker", text=str(lines))
        await host.serve()
        await host.wait("talker")
        yield host


class Console:
    """A hub with a journal, and how many events came over the wire."""

    def __init__(self, folder: Path, *, passing: frozenset[str] = frozenset(), ahead_ms: int = 0) -> None:
        self.received: list[Event] = []
        self.hub = Hub(
            clock=lambda: wall_clock() + ahead_ms,
            audit=Audit(folder / "audit", clock=wall_clock),
            by="ann",
            on_items=self._take,
            journal=Journal(folder / "journal.db", clock=wall_clock),
            passing=passing,
        )

    def _take(self, source: str, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Received) and isinstance(item.frame, Events):
                self.received += [event for event in item.frame.events if event.seq is not None]

    @property
    def continuity(self) -> str:
        return str(self.hub.fleet.sessions[KEY].track.state(wall_clock()))

    async def whole(self, host: Host) -> None:
        """Wait until every event of the host is known."""
        await self.until(lambda: KEY in self.hub.fleet.sessions)
        track = self.hub.fleet.sessions[KEY].track
        await self.until(lambda: track.received.high == host.core.log.head("talker"))
        await self.until(lambda: self.continuity == Continuity.WHOLE.value)

    async def until(self, met: object) -> None:
        assert await self.hub.until(met, WAIT_S)  # type: ignore[arg-type]


@asynccontextmanager
async def console(host: Host | None, folder: Path, **how: object) -> AsyncIterator[Console]:
    passing = how.pop("passing", frozenset())
    made = Console(folder, passing=passing)  # type: ignore[arg-type]
    if host is not None:
        made.hub.start([Target(name="local", url=host.url, user="ann", **how)])  # type: ignore[arg-type]
    try:
        yield made
    finally:
        await made.hub.close()


def said(host: Host, text: str) -> int:
    """How often an agent has said something with this in it."""
    events = host.core.log.read("talker", after=0, limit=100_000)
    return sum(text in (getattr(event, "text", None) or "") for event in events)


async def talked(host: Host, lines: int) -> None:
    """Let the agent say so many lines, unless it has."""
    if not said(host, f"line {lines - 1}"):
        assert host.command("talker", DoSend(text=str(lines))).applied
    await until(lambda: said(host, f"line {lines - 1}"))


def kept(folder: Path, host: Host) -> list[Event]:
    store = Store(folder / "journal.db")
    try:
        return store.events("local", "talker", host.core.log.epoch("talker"))
    finally:
        store.close()


async def test_a_console_that_starts_again_asks_only_for_what_it_lacks(tmp_path: Path) -> None:
    async with hosting() as host:
        async with console(host, tmp_path) as first:
            await first.whole(host)
            before = len(first.received)
            assert before > 30
        host.send("talker", "10")
        await until(lambda: said(host, "line 9") > 1)
        await host.wait("talker")
        await until(lambda: not host.core.wants_flush)
        missed = host.core.log.head("talker") - before
        assert missed >= 10
        async with console(host, tmp_path) as second:
            await second.whole(host)
            assert len(second.received) == missed
            log = second.hub.fleet.sessions[KEY].log
            assert len(log) == missed
            second.hub.look(KEY)
            await second.until(lambda: len(log) == before + missed)
            assert [log.entry(at).fact.seq for at in range(3)] == [1, 2, 3]
            second.hub.look(KEY)
            page = await second.hub.older(KEY, 11, wait_s=WAIT_S)
            assert ([event.seq for event in page.events], page.more) == (list(range(1, 11)), False)
            assert second.hub.not_kept == ""
        assert kept(tmp_path, host) == host.core.log.read("talker", after=0, limit=10_000)


async def test_the_past_is_read_also_when_the_host_is_gone(tmp_path: Path) -> None:
    async with hosting(2_000) as host, console(host, tmp_path) as there:
        await there.whole(host)
        head = host.core.log.head("talker")
        log = there.hub.fleet.sessions[KEY].log
        assert log.left_out > 500, "not all of it is in memory"
        await host.close()
        await there.until(lambda: not there.hub.fleet.sources["local"].live)
        page = await there.hub.older(KEY, head - 1_000, wait_s=WAIT_S)
        assert [event.seq for event in page.events] == list(range(head - 1_500, head - 1_000))
        assert page.more
        with pytest.raises(ConnectionLost):
            await there.hub.older(KEY, 1, wait_s=WAIT_S)


async def test_a_hole_in_the_journal_is_filled_when_the_console_starts_again(tmp_path: Path) -> None:
    async with hosting() as host:
        epoch = host.core.log.epoch("talker")
        async with console(host, tmp_path) as first:
            await first.whole(host)
        whole = kept(tmp_path, host)
        store = Store(tmp_path / "journal.db")
        with sqlite_file.transaction(store._db):
            store._db.execute("DELETE FROM events WHERE seq BETWEEN 11 AND 20")
            store._db.execute("UPDATE runs SET held = ?", (f"[[1,10],[21,{len(whole)}]]",))
        assert store.places("local")["talker"].through == 10
        store.close()
        async with console(host, tmp_path) as second:
            await second.whole(host)
        assert kept(tmp_path, host) == whole
        assert second.hub.fleet.sessions[KEY].track.epoch == epoch


async def test_a_host_that_was_restored_from_a_backup_is_not_taken_for_what_it_was(tmp_path: Path) -> None:
    """Its log has the same epoch, ends sooner, and goes on with numbers that others had."""
    log, backup = tmp_path / "host.db", tmp_path / "backup.db"
    async with hosting(5, SqliteLog(log)) as host:
        await talked(host, 5)
    shutil.copy(log, backup)
    made = Console(tmp_path)
    try:
        async with hosting(20, SqliteLog(log)) as host:
            await talked(host, 20)
            made.hub.start([Target(name="local", url=host.url, user="ann")])
            await made.whole(host)
            before = host.core.log.head("talker")
        shutil.copy(backup, log)
        async with hosting(7, SqliteLog(log)) as host:
            await talked(host, 7)
            made.hub.replace(Target(name="local", url=host.url, user="ann"))
            await made.until(lambda: made.hub.fleet.sessions[KEY].track.epoch.endswith("(went back 1)"))
            await made.whole(host)
            head = host.core.log.head("talker")
            assert head < before
            shown = [str(entry.text) for entry in made.hub.fleet.sessions[KEY].log.entries()]
            assert f"its log went back from {before} to" in shown[0]
            told = host.core.log.read("talker", after=0, limit=1_000)
            assert len(shown) == 1 + len(told)
            epoch = host.core.log.epoch("talker")
            await made.hub.close()
            store = Store(tmp_path / "journal.db")
            assert len(store.events("local", "talker", epoch)) == before, "what it had before is not overwritten"
            assert store.events("local", "talker", f"{epoch} (went back 1)") == told
            store.close()
            # A console that starts now goes on there.
            async with console(host, tmp_path) as later:
                await later.whole(host)
                assert later.received == []
    finally:
        await made.hub.close()


async def test_what_had_no_room_is_asked_for_as_soon_as_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journaling, "MOST_BYTES", 200_000)
    (tmp_path / "state").write_text("no folder")
    async with hosting(2_500) as host, console(host, tmp_path / "state") as there:
        await until(lambda: not host.core.wants_flush)
        await there.whole(host)
        head = host.core.log.head("talker")
        assert "events are not in the journal" in there.hub.not_kept
        (tmp_path / "state").unlink()
        await until(lambda: there.hub.not_kept == "")
        # The page that fills it has been handed over by now; the thread writes it within moments.
        await until(lambda: len(kept(tmp_path / "state", host)) == head)
        assert kept(tmp_path / "state", host) == host.core.log.read("talker", after=0, limit=10_000)
        assert len(there.received) == head, "the rest did not come again"


@pytest.mark.parametrize("what", ["passing", "none"])
async def test_what_is_not_to_be_kept_is_not(tmp_path: Path, what: str) -> None:
    how: dict[str, object] = {"passing": frozenset({"local"})} if what == "passing" else {"record": Record.NONE}
    async with hosting() as host:
        async with console(host, tmp_path, **how) as one:
            await one.until(lambda: KEY in one.hub.fleet.sessions)
            page = await one.hub.older(KEY, 5, wait_s=WAIT_S)
            assert [event.seq for event in page.events] == [1, 2, 3, 4]
        assert kept(tmp_path, host) == []


async def test_an_answer_to_a_secret_field_is_kept_nowhere_also_where_the_agent_repeats_it(tmp_path: Path) -> None:
    async with hosting() as host:
        async with console(host, tmp_path) as one:
            await one.whole(host)
            host.send("talker", "ask")
            requests = one.hub.fleet.requests
            await one.until(lambda: any(r.open and r.fact is not None for r in requests.values()))
            (request,) = requests.values()
            intent = Intent(
                id=str(uuid4()),
                primitive=Primitive.ANSWER,
                target=KEY,
                by="ann",
                request=request.key.request,
                fields={"user": "ann-of-the-floor", "password": "correct horse"},
                seen=Seen(request.digest, 0, True),
            )
            trail = await one.hub.submit(intent)
            trail = await one.hub.answered(trail.id, WAIT_S)
            assert trail.outcome == "applied", trail.reason
            await until(lambda: said(host, "correct horse"))
            await host.wait("talker")
            await one.whole(host)
            told = [getattr(event, "text", None) or "" for event in one.received]
            assert any("correct horse" in text for text in told), "the agent did repeat it"
        stored = [getattr(event, "text", None) or "" for event in kept(tmp_path, host)]
        assert len(stored) == len(told)
        assert any("[masked]" in text and "ann-of-the-floor" in text for text in stored)
    written = b"".join(file.read_bytes() for file in tmp_path.glob("journal.db*"))  # noqa: ASYNC240
    assert b"correct horse" not in written
    assert b"answer" in written, "the trail is there"


async def test_what_has_happened_since_the_console_was_closed_is_told_when_it_is_opened(tmp_path: Path) -> None:
    async with hosting() as host:
        async with console(host, tmp_path) as first:
            await first.whole(host)
            assert first.hub.absence == ()
        host.send("talker", "ask")
        log = host.core.log
        await until(lambda: any(isinstance(e, RequestOpened) for e in log.read("talker", after=0, limit=1_000)))
        made = Console(tmp_path, ahead_ms=3_600_000)
        made.hub.start([Target(name="local", url=host.url, user="ann")])
        try:
            await until(lambda: bool(made.hub.absence_line))
            assert made.hub.absence_line.startswith("while you were away (1:00:")
            assert ": 1 new request, " in made.hub.absence_line
            [told] = made.hub.absence
            assert [key.session for key in told.requests] == ["talker"]
            assert told.events > 0
            made.hub.absence_read()
            assert made.hub.absence_line == ""
            assert made.hub.absence == (told,), "it can be read again"
        finally:
            await made.hub.close()
