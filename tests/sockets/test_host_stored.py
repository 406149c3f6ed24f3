"""Sessions that only the log of a host keeps: listed, read, deleted, and run again once they are added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sockets.harness_kit import operator
from tests.sockets.host_kit import until
from watchfloor import FunctionHarness, Host, Run, SqliteLog
from watchfloor.harness.base import MailItem
from watchfloor.protocol.frames import DoResume
from watchfloor.words import Lifecycle, OutcomeKind, Primitive


async def echo(run: Run, mail: tuple[MailItem, ...]) -> str:
    """Says what it was told."""
    return f"{run.name} heard {mail[-1].text}"


@pytest.fixture
async def log(tmp_path: Path) -> Path:
    """A log with the sessions of a host that has ended."""
    path = tmp_path / "log.db"
    async with Host(log=SqliteLog(path)) as host:
        for id in ("a", "b", "c"):
            host.add(FunctionHarness(echo), name=f"agent {id}", id=id, labels={"team": "web"}, cwd="/srv", text=id * 3)
            await host.wait(id)
        host.fork("a", name="branch of a")
    return path


async def test_what_nobody_adds_is_listed_and_can_be_read_and_deleted(log: Path) -> None:
    async with Host(log=SqliteLog(log)) as host:
        host.add(FunctionHarness(echo), name="agent b", id="b")
        listed = await host.list_stored()
        assert len(listed) == 3
        assert "b" not in listed
        await host.serve(announce=False)
        async with operator(host.url) as client:
            await client.until(lambda: len(client.sessions) == 4)
            one = client.sessions["c"]
            assert (one["name"], one["lifecycle"], one["cwd"]) == ("agent c", "idle", "/srv")
            assert one["labels"] == {"team": "web", "stored": "yes"}
            assert client.profiles[str(one["profile"])].capabilities.advertised() == (Primitive.DELETE,)
            await client.until(lambda: client.events("result", "c"))
            (fork,) = (id for id in listed if id not in ("a", "c"))
            assert client.sessions[fork]["name"] == "branch of a"
            assert (await client.command("send", "c", text="x")).outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
            assert (await client.do("delete", "c")).outcome is OutcomeKind.APPLIED
            await client.until(lambda: "c" in client.gone)
        assert "c" not in host.core.log.sessions()
        assert host.core.log.read("c") == []
    async with Host(log=SqliteLog(log)) as host:
        assert set(await host.list_stored()) == {"a", "b", fork}


async def test_one_that_is_listed_gives_way_to_its_program(log: Path) -> None:
    async with Host(log=SqliteLog(log)) as host:
        await host.list_stored()
        await host.serve(announce=False)
        async with operator(host.url) as client:
            await client.until(lambda: len(client.sessions) == 4)
            host.add(FunctionHarness(echo), name="agent a", id="a")
            host.send("a", "more")
            assert (await host.wait("a")).last_words() == "agent a heard more"
            texts = [message.text for message in host.core.session("a").conversation.messages]
            assert texts == ["aaa", "agent a heard aaa", "more", "agent a heard more"]
            await client.until(lambda: "stored" not in client.sessions["a"]["labels"])
            assert "a" not in client.gone


async def test_a_fork_runs_as_its_origin_does(log: Path) -> None:
    async with Host(log=SqliteLog(log)) as host:
        host.add(FunctionHarness(echo), name="agent a", id="a")
        (fork,) = (id for id in await host.list_stored() if id not in ("b", "c"))
        live = host.live(fork)
        assert (live.name, live.state) == ("branch of a", Lifecycle.IDLE)
        assert await live.send("you").response == "branch of a heard you"
        again = host.fork(fork, name="branch of the branch")
    async with Host(log=SqliteLog(log)) as host:
        host.add(FunctionHarness(echo), name="agent a", id="a")
        await host.list_stored()
        assert await host.live(again).send("two").response == "branch of the branch heard two"


async def test_nothing_runs_one_that_is_only_listed(log: Path) -> None:
    async with Host(log=SqliteLog(log)) as host:
        await host.list_stored()
        # Its program has no way to start it either, and it stays what it was.
        host.command("a", DoResume())
        await until(lambda: host.core.session("a").lifecycle is Lifecycle.FAILED)
        assert "add it to the host, by this id, with its harness" in str(host.core.session("a").error)


async def test_a_new_child_is_none_of_those_that_were_there_before(tmp_path: Path) -> None:
    async def boss(run: Run, mail: tuple[MailItem, ...]) -> str:
        return run.spawn(echo, "kid", mail[-1].text)

    for life, text in enumerate(("one", "two"), 1):
        async with Host(log=SqliteLog(tmp_path / "log.db")) as host:
            host.add(FunctionHarness(boss), name="boss", id="boss")
            child = await host.live("boss").send(text).response
            assert child == ("kid" if life == 1 else "kid-2")
            await host.wait(child)
            assert host.core.session(child).last_words() == f"kid heard {text}"


async def test_a_new_fork_is_none_of_those_that_were_there_before(log: Path) -> None:
    async with Host(log=SqliteLog(log)) as host:
        host.add(FunctionHarness(echo), name="agent a", id="a")
        host.send("a", "more")
        await host.wait("a")
        fork = host.fork("a", name="branch of a")
        assert fork == "branch-of-a-2"
        assert len(host.core.session(fork).conversation.messages) == 4
