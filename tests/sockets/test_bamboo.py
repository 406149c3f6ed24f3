"""The bamboo connector's roster and connection: what there is, what is lost, and who may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from console.connectors.bamboo import connector, live
from console.connectors.web import http
from tests.peers.bamboo_deciding import error
from tests.peers.bamboo_desk import desk
from tests.peers.bamboo_http import Asked, Reply
from tests.peers.bamboo_server import ANCIENT_LINE, NEW_LINE, OLD_LINE, FakeBamboo, fake_bamboo
from tests.sockets.bamboo_kit import ASK_NAME, LONG, SAY, TOUCH, Fault, begin, called, go_on, native, script
from watchfloor.connector import Record
from watchfloor.errors import ConfigError, ConnectionLost, Denied, NotAHost, Unreachable
from watchfloor.protocol.events import Message, Notice, Plan, Speaker, ToolCall, ToolResult
from watchfloor.words import Lifecycle, OutcomeKind, RequestState

TOKEN = "bd1_" + "0123456789abcdef" * 2
DEVICE = "bamboo_0123456789ab"


@pytest.fixture(params=[OLD_LINE, NEW_LINE])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeBamboo]:
    async with fake_bamboo(request.param) as made:
        yield made


async def test_every_session_of_every_page_is_on_the_roster(server: FakeBamboo) -> None:
    server.page = 7
    for number in range(40):
        server.world.create(f"Session {number}")
    parent = server.world.create("Parent")
    child = server.world.create("Child", parent_session_id=parent.id)
    async with desk(server.url) as seen:
        assert len(seen.sessions) == 42
        assert seen.summary(child.id).parent == parent.id
        assert {seen.summary(id).lifecycle for id in seen.sessions} == {Lifecycle.IDLE}
        assert seen.welcome is not None
        assert (seen.welcome.host.name, seen.welcome.host.version) == ("bamboo", server.line)


@pytest.mark.parametrize("record", list(Record))
async def test_what_is_asked_is_read_before_the_roster_is_told(server: FakeBamboo, record: Record) -> None:
    session = begin(server, TOUCH, SAY)
    assert session.task is not None
    await session.task
    async with desk(server.url, record=record) as seen:
        assert seen.summary(session.id).lifecycle is Lifecycle.WAITING
        request, subject = await seen.asked(session.id)
        assert (request.state, subject.actions[0].text) == (RequestState.OPEN, "touch it")


async def test_a_session_that_is_looked_at_has_its_past_and_then_what_happens(server: FakeBamboo) -> None:
    session = begin(server, {"think": "Hm.", "call": "Read", "args": {}, "id": "call_read"}, SAY)
    assert session.task is not None
    await session.task
    async with desk(server.url, record=Record.NONE) as seen:
        assert seen.events[session.id] == []
        await seen.watch(session.id)
        page = ["user", "assistant"]
        session.tasks = None
        history = called(server, "/history", "GET")
        await seen.until(lambda: called(server, "/history", "GET") != history)
        go_on(server, session, {"say": "And more."})
        await seen.until(lambda: "And more." in [message.text for message in seen.of(session.id, Message)])
        roles = [message.role.value for message in seen.of(session.id, Message)]
        assert roles[-2:] == page


async def test_a_session_that_nobody_looks_at_is_not_read(server: FakeBamboo) -> None:
    session = begin(server, SAY)
    async with desk(server.url, record=Record.NONE) as seen:
        await native(seen, session.id, "completed")
        assert seen.of(session.id, Message) == []
    assert called(server, "/history", "GET") == []


async def test_lost_events_are_read_again(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, {"gate": "on", **SAY})
        await native(seen, session.id, "running")
        await seen.until(lambda: called(server, "/history", "GET"))
        # A message and a plan that no channel told of.
        server.world.add_message(session, "assistant", "Said in the gap.")
        items = [{"id": "t1", "description": "Look", "status": "in_progress"}]
        session.tasks = {"session_id": session.id, "items": items, "version": 3}
        server.gap(session.id, 12)
        await seen.until(lambda: [step.text for plan in seen.of(session.id, Plan) for step in plan.steps] == ["Look"])
        assert "12 of its live events were lost" in next(notice.text for notice in seen.of(session.id, Notice))
        server.world.gate("on").set()
        await seen.until(lambda: "All done." in [message.text for message in seen.of(session.id, Message)])
        await seen.until(lambda: "Said in the gap." in [message.text for message in seen.of(session.id, Message)])


async def test_a_message_may_have_any_id(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, SAY)
        await native(seen, session.id, "completed")
        await seen.until(lambda: "All done." in [message.text for message in seen.of(session.id, Message)])
        server.world.add_message(session, "user", "Odd.")["id"] = "a&b=c #d/é"
        server.quietly(session.id, {"type": "session_history_committed", "session_id": session.id})
        await seen.until(lambda: "Odd." in [message.text for message in seen.of(session.id, Message)])
        server.world.add_message(session, "assistant", "Even.")
        server.quietly(session.id, {"type": "session_history_committed", "session_id": session.id})
        await seen.until(lambda: "Even." in [message.text for message in seen.of(session.id, Message)])
    assert called(server, "/history", "GET")[-1].query["since_message_id"] == "a&b=c #d/é"


async def test_a_feed_that_begins_anew_is_read_anew(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        kept, gone = server.world.create("Kept"), server.world.create("Gone")
        await seen.until(lambda: len(seen.sessions) == 2)
        del server.world.sessions[gone.id]
        kept.info["title"] = "Kept, renamed"
        server.reset()
        await seen.until(lambda: set(seen.sessions) == {kept.id})
        await seen.until(lambda: seen.summary(kept.id).name == "Kept, renamed")


async def test_the_end_of_a_run_that_nobody_told_is_found_out(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "BEAT_S", 0.2)
    async with desk(server.url) as seen:
        session = begin(server, {"gate": "never"})
        await native(seen, session.id, "running")
        assert session.task is not None
        session.run = None
        session.task.cancel()
        session.info["last_run_status"] = "completed"
        await native(seen, session.id, "completed")


async def test_a_run_says_nothing_twice(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        read = {"think": "Hm.", "say": "Looking.", "call": "Read", "args": {}, "id": "call_read"}
        session = begin(server, read, SAY)
        await native(seen, session.id, "completed")
        await seen.until(lambda: seen.sessions[session.id].get("usage") is not None)
        said = [message.text for message in seen.of(session.id, Message) if message.role is Speaker.ASSISTANT]
        assert said == ["Looking.", "All done."]
        assert [call.call for call in seen.of(session.id, ToolCall)] == ["call_read"]
        assert [result.call for result in seen.of(session.id, ToolResult)] == ["call_read"]


async def test_a_large_answer_of_a_tool_comes_whole(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, {"gate": "on", **SAY})
        await native(seen, session.id, "running")
        await seen.until(lambda: called(server, "/history", "GET"))
        large = "x" * 900_000
        result = {"success": True, "result": large, "display_preference": "Default"}
        await asyncio.sleep(0.2)
        server.channel(session.id, {"type": "tool_complete", "tool_call_id": "big", "result": result})
        await seen.until(lambda: seen.of(session.id, ToolResult))
        assert len(seen.of(session.id, ToolResult)[0].text) == len(large)


async def test_a_server_that_falls_silent_is_lost(server: FakeBamboo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SILENCE_S", 0.6)
    async with desk(server.url) as seen:
        server.keepalive_s = 1000
        await seen.until(lambda: seen.ended)
        assert isinstance(seen.fault, ConnectionLost)
        assert "no sign of life" in str(seen.fault)


async def test_a_socket_that_ends_is_lost(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        for socket in list(server.http.sockets):
            socket.drop()
        await seen.until(lambda: seen.ended)
        assert isinstance(seen.fault, ConnectionLost)


async def test_after_a_restart_nothing_is_there_twice_and_what_was_asked_is_answered(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, {"say": "First."}, SAY)
        await native(seen, session.id, "completed")
        go_on(server, session, ASK_NAME, SAY)
        before, _ = await seen.asked(session.id)
        crashed = begin(server, LONG, title="Crashed")
        await native(seen, crashed.id, "running")
        await server.restart()
        await seen.until(lambda: seen.ended)
        await seen.close()
        told = [message.text for message in seen.of(session.id, Message)]
        await seen.read()
        await seen.until(lambda: seen.open(session.id))
        assert seen.open(session.id)[0].digest == before.digest
        await native(seen, crashed.id, "lost")
        assert (await seen.answer(session.id, "blue")).outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")
        await seen.until(lambda: "All done." in [message.text for message in seen.of(session.id, Message)])
        assert [message.text for message in seen.of(session.id, Message)] == [*told, "All done."]


async def test_connections_that_the_server_ends_lose_no_command(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "KEPT_S", 0.05)
    server.http.idle_s = 0.3
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        await seen.asked(session.id)
        await asyncio.sleep(0.31)
        assert (await seen.decide(session.id, "allow_once")).outcome is OutcomeKind.APPLIED
    assert len(called(server, "/permission-decisions")) == 1


# --- who may


async def test_a_device_may(server: FakeBamboo) -> None:
    server.device = (DEVICE, TOKEN)
    session = server.world.create("One")
    async with desk(server.url, token=f"{DEVICE}:{TOKEN}") as seen:
        assert set(seen.sessions) == {session.id}


async def test_a_password_is_traded_for_a_cookie_and_again_when_that_has_run_out(server: FakeBamboo) -> None:
    server.password = "open-sesame"
    async with desk(server.url, token="open-sesame") as seen:
        session = begin(server, TOUCH, SAY)
        await seen.asked(session.id)
        server.cookies.clear()
        assert (await seen.decide(session.id, "deny_once")).outcome is OutcomeKind.APPLIED
    assert len(called(server, "/access/verify")) == 2
    assert server.world.ran == []


@pytest.mark.parametrize("token", [None, "wrong", f"{DEVICE}:{TOKEN[:-1]}0"])
async def test_who_may_not_is_told_so(server: FakeBamboo, token: str | None) -> None:
    server.password, server.device = "right", (DEVICE, TOKEN)
    with pytest.raises(Denied, match=r"refuses this client|refuses the password"):
        async with desk(server.url, token=token):
            pass


async def test_too_many_passwords(server: FakeBamboo) -> None:
    server.password = "right"
    server.faults.append(Fault("/access/verify", Reply(429, {"error": {"message": "slow"}}, {"retry-after": "30"})))
    with pytest.raises(Unreachable, match="try again in 30 s"):
        async with desk(server.url, token="wrong"):
            pass


async def test_a_device_token_without_its_device_is_no_token() -> None:
    with pytest.raises(ConfigError, match="DEVICE_ID:DEVICE_TOKEN"):
        async with desk("http://127.0.0.1:1", token=TOKEN):
            pass


@pytest.mark.parametrize("body", [{"server": {"product": "other"}}, {"hello": "world"}, "<html>"])
async def test_another_server_is_told_apart(server: FakeBamboo, body: object) -> None:
    def other(asked: Asked) -> Reply | None:
        return Reply(200, body if asked.path.endswith("bootstrap") else json.dumps("no"))

    server.faults.append(other)
    with pytest.raises(NotAHost, match="no bamboo server"):
        async with desk(server.url):
            pass


async def test_a_server_that_is_not_there() -> None:
    with pytest.raises(Unreachable):
        async with desk("http://127.0.0.1:1"):
            pass


async def test_a_server_that_is_not_ready_is_tried_again(server: FakeBamboo) -> None:
    server.faults.append(Fault("/sessions", error(503, "starting"), method="GET"))
    with pytest.raises(Unreachable):
        async with desk(server.url):
            pass


# --- without a socket


@pytest.mark.parametrize("line", [ANCIENT_LINE, NEW_LINE])
async def test_event_streams_tell_the_same(line: str) -> None:
    async with fake_bamboo(line) as server:
        server.faults.append(Fault("/v2/stream", Reply(404, ""), method="GET"))
        old = begin(server, SAY, title="Of before")
        assert old.task is not None
        await old.task
        async with desk(server.url) as seen:
            session = server.world.create("Now")
            await seen.until(lambda: session.id in seen.sessions)
            message = server.world.add_message(
                session, "user", script({"gate": "go", "say": "Through."}, ASK_NAME, SAY)
            )
            server.world.said(session, message)
            server.world.start(session)
            await seen.until(lambda: called(server, f"{session.id}/events", "GET"))
            server.world.gate("go").set()
            await native(seen, session.id, "completed")
            await seen.until(lambda: "Through." in [message.text for message in seen.of(session.id, Message)])
            go_on(server, session, ASK_NAME, SAY)
            assert (await seen.answer(session.id, "violet")).outcome is OutcomeKind.APPLIED
            await native(seen, session.id, "completed")
            await seen.until(lambda: "All done." in [message.text for message in seen.of(session.id, Message)])
            said = [message.text for message in seen.of(session.id, Message) if message.role is Speaker.ASSISTANT]
            assert said == ["Through.", "All done."]
            server.end_streams("")
            await seen.until(lambda: seen.ended)
            assert isinstance(seen.fault, ConnectionLost)
