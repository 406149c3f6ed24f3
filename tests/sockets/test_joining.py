"""Agents in other processes: they join a host, are watched and steered there, and fail closed when they are lost."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.sockets.harness_kit import operator
from tests.sockets.host_kit import PATIENCE_S, http, until
from tests.sockets.plain_client import PlainClient
from watchfloor.connector import Target
from watchfloor.errors import Denied, Unsupported
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.log.sqlite import SqliteLog
from watchfloor.host.principals import Principal
from watchfloor.host.serving.joined import GONE
from watchfloor.host.serving.joining import dial_as_agent, invited
from watchfloor.host.serving.server import Host
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.protocol.events import ResultEvent
from watchfloor.protocol.frames import DoSend
from watchfloor.protocol.model import RequestModel
from watchfloor.words import Lifecycle, OutcomeKind, Role

CHILD = Path(__file__).with_name("child_agent.py")


async def echo(run: Run, mail: tuple[MailItem, ...]) -> str:
    """Says what it was told."""
    return mail[-1].text


@asynccontextmanager
async def child(host: Host, file: Path, parent: str | None = None) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process with an agent that has joined the host."""
    env = {**os.environ, **host.invite(parent)}
    process = await asyncio.create_subprocess_exec(sys.executable, str(CHILD), str(file), "kid", env=env)
    try:
        await until(lambda: "kid" in host.core.roster)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with Host(name="floor", lost_after_s=0.0) as running:
        running.add(FunctionHarness(echo), name="boss", id="boss")
        await running.serve(announce=False)
        yield running


def mirrored(host: Host, session: str = "kid") -> MirrorSession:
    return host.core.mirrored(session)


async def asked(host: Host, text: str, session: str = "kid") -> RequestModel:
    """Send the child a message, and wait for what it asks."""
    handled = await host.intervene(session, DoSend(text=text), by="ann")
    assert handled.applied, handled.reason
    await until(lambda: mirrored(host, session).requests.open())
    return mirrored(host, session).requests.open()[0]


async def test_a_child_is_watched_and_decided_from_its_parents_host(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "out"
    async with child(host, file, parent="boss"), operator(host.url) as client:
        await client.until(lambda: "kid" in client.sessions)
        assert client.sessions["kid"]["parent"] == "boss"
        await client.do("send", "kid", text="one")
        request = await client.request(None)
        outcome = await client.decide(request, "approve", option="allow")
        assert outcome.outcome is OutcomeKind.APPLIED
        await client.until(lambda: client.events("result", "kid"))
        assert file.read_text() == "one\n"
        # Its own log has who it was, and ours has it once.
        resolved = client.events("request_resolved", "kid")
        assert [event.by for event in resolved] == ["ann (unverified)"]
        assert len(client.events("intervention", "kid")) == 2
        assert len(client.events("request_opened", "kid")) == 1
        assert [event.status for event in client.events("tool_result", "kid")] == ["ok"]


async def test_questions_are_answered_where_the_session_runs(host: Host, tmp_path: Path) -> None:
    async with child(host, tmp_path / "out") as process:
        client = PlainClient(host.url)
        await client.open()
        await asked(host, "one")
        said = await client.ask("query", what="snapshot", session="kid")
        assert [message["text"] for message in said["data"]["messages"]] == ["one"]
        wrong = await client.ask("query", what="message", session="kid", args={"ref": "#9"})
        assert (wrong["type"], wrong["code"]) == ("error", "not_found")
        process.kill()
        await until(lambda: not host.joins._connections)
        lost = await client.ask("query", what="snapshot", session="kid")
        assert (lost["type"], lost["message"]) == ("error", "its process is lost")
        await client.ws.close()


async def test_the_owner_decides_and_hears_whether_that_was_delivered(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "out"
    async with child(host, file):
        request = await asked(host, "one")
        id = str(request.subject["id"])
        assert await host.answer_child_approval("kid", "other", True) is False
        assert await host.answer_child_approval("nobody", id, True) is False
        assert await host.answer_child_approval("kid", id, True) is True
        assert await host.answer_child_approval("kid", id, True) is False
        await until(lambda: mirrored(host).lifecycle is Lifecycle.IDLE and file.exists())
        second = await asked(host, "two")
        assert await host.answer_child_approval("kid", str(second.subject["id"]), False) is True
        await until(lambda: mirrored(host).lifecycle is Lifecycle.IDLE)
        assert file.read_text() == "one\n"


async def test_a_child_of_another_process_can_be_waited_for(host: Host, tmp_path: Path) -> None:
    async def supervise(run: Run, mail: tuple[MailItem, ...]) -> str:
        rest = await run.wait("kid")
        return f"{rest.state.value}: {rest.error or rest.said}"

    async with child(host, tmp_path / "out") as process:
        live = host.live("kid")
        assert (live.name, live.state, await live.wait()) == ("kid", Lifecycle.IDLE, Lifecycle.IDLE)
        with pytest.raises(Unsupported, match=r"await host\.intervene\('kid'"):
            live.send("one")
        request = await asked(host, "one")
        host.add(FunctionHarness(supervise), name="waiter", id="waiter", text="go")
        await until(lambda: host.core.session("waiter").lifecycle is Lifecycle.RUNNING)
        assert await host.answer_child_approval("kid", str(request.subject["id"]), True) is True
        assert (await host.wait("waiter")).last_words() == "idle: appended one"
        await asked(host, "two")
        host.send("waiter", "again")
        await until(lambda: host.core.session("waiter").lifecycle is Lifecycle.RUNNING)
        process.kill()
        # Nobody waits for ever for one that is lost.
        assert (await host.wait("waiter")).last_words() == f"unknown: {GONE}"
        unsent = await host.intervene("kid", DoSend(text="three"))
        assert unsent.outcome is OutcomeKind.UNDELIVERED


async def test_a_child_that_is_killed_while_it_asks_fails_closed(host: Host, tmp_path: Path) -> None:
    async with child(host, tmp_path / "out") as process, operator(host.url) as client:
        request = await asked(host, "one")
        id = str(request.subject["id"])
        process.kill()
        await process.wait()
        assert await host.answer_child_approval("kid", id, True) is False
        await client.until(lambda: client.events("request_resolved", "kid"))
        (resolved,) = client.events("request_resolved", "kid")
        assert (resolved.state, resolved.why) == ("withdrawn", GONE)
        await client.until(lambda: client.sessions["kid"]["lifecycle"] == "unknown")
        assert client.sessions["kid"]["why"] == GONE
        assert await host.answer_child_approval("kid", id, True) is False
        assert not (tmp_path / "out").exists()


async def test_a_child_that_comes_back_in_time_goes_on(tmp_path: Path) -> None:
    async with Host(name="floor", lost_after_s=PATIENCE_S) as host:
        await host.serve(announce=False)
        async with child(host, tmp_path / "out"):
            request = await asked(host, "one")
            (connection,) = host.joins._connections.values()
            await connection.close()
            await until(lambda: not host.joins._connections)
            assert mirrored(host).summary()["why"] == "its process is lost"
            await until(lambda: host.joins._connections)
            await until(lambda: mirrored(host).summary()["why"] is None)
            assert [r.digest for r in mirrored(host).requests.open()] == [request.digest]
            assert await host.answer_child_approval("kid", str(request.subject["id"]), True) is True
            await until(lambda: mirrored(host).lifecycle is Lifecycle.IDLE)
            await until(
                lambda: any(isinstance(entry.event, ResultEvent) for entry in host.core.log.after(0, 999, "kid"))
            )
            keys = [entry.event.key for entry in host.core.log.after(0, 999, "kid") if entry.event.key]
            assert len(keys) == len(set(keys)) > 5


async def test_what_was_withdrawn_meanwhile_is_open_again(host: Host, tmp_path: Path) -> None:
    async with child(host, tmp_path / "out"):
        request = await asked(host, "one")
        (connection,) = host.joins._connections.values()
        await connection.close()
        await until(lambda: not mirrored(host).requests.open())
        await until(lambda: mirrored(host).requests.open())
        assert await host.answer_child_approval("kid", str(request.subject["id"]), True) is True
        await until((tmp_path / "out").exists)


async def test_a_host_that_is_started_anew_tells_nothing_twice(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    async with Host(name="inner") as inner:
        inner.add(FunctionHarness(echo), name="kid", id="kid", text="hello")
        await inner.wait("kid")
        kinds: list[list[str]] = []
        for _ in range(2):
            async with Host(name="floor", log=SqliteLog(log)) as host:
                await host.serve(announce=False)
                await inner.join(Target(name="floor", url=host.url))
                await until(lambda: "kid" in host.core.roster and len(host.core.log.after(0, 99, "kid")) >= 5)
                await asyncio.sleep(0.05)
                kinds.append([type(entry.event).__name__ for entry in host.core.log.after(0, 99, "kid")])
        assert kinds[0] == kinds[1]
        assert kinds[0].count("ResultEvent") == 1


async def test_who_may_join(host: Host) -> None:
    async with Host(name="other", tokens={"see": Principal("eve", Role.OBSERVER), "op": Principal("ann")}) as guarded:
        url = await guarded.serve(announce=False)
        for token in ("see", "wrong", None):
            with pytest.raises(Denied):
                await dial_as_agent(Target(name="t", url=url, token=token))
        await (await dial_as_agent(Target(name="t", url=url, token="op"))).close()
        found = invited(guarded.invite("p"))
        assert found is not None
        target, parent = found
        assert parent == "p"
        await (await dial_as_agent(target)).close()
        # The token of an agent does not make an operator.
        status, _ = await http(url, {"Authorization": f"Bearer {target.token}"})
        assert status == 403
    assert invited({}) is None


async def test_a_session_of_a_name_that_is_taken_is_not_shown(host: Host) -> None:
    ours = host.core.session("boss")
    async with Host(name="inner") as inner:
        inner.add(FunctionHarness(echo), name="boss", id="boss", text="x")
        inner.add(FunctionHarness(echo), name="mine", id="mine", text="x")
        await inner.join(Target(name="floor", url=host.url))
        await until(lambda: "mine" in host.core.roster and host.core.log.after(0, 9, "mine"))
        assert host.core.session("boss") is ours
        assert not host.core.log.after(0, 9, "boss")
    # It went in good order, and is gone all the same.
    await until(lambda: mirrored(host, "mine").summary()["why"] == GONE)
