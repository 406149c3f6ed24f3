"""What goes wrong with a Codex app-server: what the console then says is true, and nothing is decided twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from console.connectors.codex import connector
from console.connectors.codex.feed import STEP, Feed
from console.connectors.codex.rpc import SLICE
from console.connectors.codex.turns import Turns
from tests.peers.codex_desk import Desk, desk
from tests.peers.codex_server import NOW, FakeCodex, fake_codex
from tests.sockets.codex_kit import again, said, statuses, waiting
from watchfloor.connector import Record
from watchfloor.errors import Unreachable
from watchfloor.protocol.events import (
    Delta,
    Message,
    Notice,
    RequestResolved,
    ToolCall,
    ToolOutput,
    ToolStatus,
)
from watchfloor.protocol.frames import DoInterrupt, DoReseed
from watchfloor.words import Lifecycle, OutcomeKind, RequestState, ReseedMode

ELICITATION = "mcpServer/elicitation/request"


@pytest.fixture
async def server() -> AsyncIterator[FakeCodex]:
    async with fake_codex() as made:
        yield made


# --- a connection that is lost


async def test_what_a_thread_said_while_we_were_away_is_read(server: FakeCodex) -> None:
    server.page = 2
    server.thread("t1")
    async with desk(server.url) as seen:
        await server.begin_turn("t1")
        await server.item("t1", {"type": "agentMessage", "id": "m0", "text": "said 0"}, ended=True)
        await seen.until(lambda: said(seen, "t1") == ["said 0"])
        await server.drop()
        await seen.until(lambda: seen.ended)
        for n in range(1, 6):
            await server.item("t1", {"type": "agentMessage", "id": f"m{n}", "text": f"said {n}"}, ended=True)
        await server.end_turn("t1")
        await again(seen)
        await seen.until(lambda: said(seen, "t1") == [f"said {n}" for n in range(6)])
        assert not [notice for notice in seen.of("t1", Notice) if notice.code == "past"]


@pytest.mark.parametrize("record", [Record.ALL, Record.WATCHED, Record.NONE])
async def test_work_that_ended_while_we_were_away_does_not_stay_in_flight(server: FakeCodex, record: Record) -> None:
    server.thread("t1")
    turn = await server.begin_turn("t1")
    async with desk(server.url, record=record) as seen:
        await seen.watch("t1")
        await seen.until(lambda: seen.summary("t1").turn == turn)
        await server.item("t1", {"type": "fileChange", "id": "f1", "changes": [], "status": "inProgress"}, ended=False)
        command = {"type": "commandExecution", "id": "call-1", "command": "make", "status": "inProgress"}
        await server.item("t1", command, ended=False)
        await seen.until(lambda: len(seen.summary("t1").in_flight) == 2)
        await seen.unwatch("t1")
        await server.drop()
        await seen.until(lambda: seen.ended)
        await server.end_command("t1", "completed")
        await server.end_turn("t1", "interrupted")
        await again(seen)
        await seen.until(lambda: not seen.summary("t1").in_flight)
        if record is not Record.NONE:
            await seen.watch("t1")
        if record is Record.ALL:
            # The end of one stands in the past, that of the other nowhere.
            await seen.until(lambda: sorted(statuses(seen, "t1")) == [ToolStatus.CANCELLED, ToolStatus.OK])
        assert seen.summary("t1").lifecycle is Lifecycle.IDLE


async def test_what_streams_on_after_we_came_back_does_not_pass_for_the_whole(server: FakeCodex) -> None:
    server.thread("t1")
    turn = await server.begin_turn("t1")
    async with desk(server.url) as seen:
        await seen.until(lambda: seen.summary("t1").turn == turn)
        await server.item("t1", {"type": "agentMessage", "id": "m1", "text": ""}, ended=False)
        command = {"type": "commandExecution", "id": "call-1", "command": "make", "status": "inProgress"}
        await server.item("t1", command, ended=False)
        await server.tell("t1", "item/agentMessage/delta", turnId=turn, itemId="m1", delta="one ")
        await server.tell("t1", "item/commandExecution/outputDelta", turnId=turn, itemId="call-1", delta="a ")
        await seen.until(lambda: len(seen.of("t1", Delta)) == 2)
        server.threads["t1"].running = [{"itemId": "call-1", "processId": "7", "command": "make"}]
        await server.drop()
        await seen.until(lambda: seen.ended)
        await again(seen)
        await seen.until(lambda: any(message.cut for message in seen.of("t1", Message)))
        before = len(seen.events["t1"])
        await asyncio.wait_for(server.joined("t1"), 60)
        await server.tell("t1", "item/agentMessage/delta", turnId=turn, itemId="m1", delta="three")
        await server.tell("t1", "item/commandExecution/outputDelta", turnId=turn, itemId="call-1", delta="c")

        def streamed(of: str) -> str:
            return "".join(e.text for e in seen.events["t1"][before:] if isinstance(e, Delta) and e.of == of)

        await seen.until(lambda: (streamed("message"), streamed("tool_output")) == ("… three", "… c"))
        assert [output.cut for output in seen.of("t1", ToolOutput)] == [True]


async def test_a_thread_that_changes_while_the_threads_are_listed_is_shown_as_it_is(server: FakeCodex) -> None:
    server.page = 1
    for id in ("t1", "t2", "t3"):
        server.thread(id)
    server.slow["thread/loaded/list"] = asyncio.Event()
    async with asyncio.timeout(60):
        connecting = asyncio.create_task(_connected(server))
        await server.called("thread/loaded/list")
        # All pages are read by now.
        await server.status("t1", "transcended")
        await server.tell_all("thread/deleted", threadId="t2")
        server.thread("t4")
        await server.tell_all("thread/started", thread=server.threads["t4"].json())
        server.slow["thread/loaded/list"].set()
        seen, leave = await connecting
    try:
        await seen.until(lambda: "t4" in seen.sessions and "t2" not in seen.sessions)
        assert seen.summary("t1").native_state == "transcended"
    finally:
        await leave()


async def _connected(server: FakeCodex) -> tuple[Desk, Callable[[], Any]]:
    connected = desk(server.url)
    seen = await connected.__aenter__()
    return seen, lambda: connected.__aexit__(None, None, None)


# --- another version


async def test_a_server_that_knows_fewer_kinds_of_threads_is_listed(server: FakeCodex) -> None:
    server.thread("t1")
    server.kinds = {"cli", "vscode", "exec"}
    async with desk(server.url) as seen:
        assert list(seen.sessions) == ["t1"]
    asked = [params["sourceKinds"] for method, params in server.calls if method == "thread/list"]
    assert asked[1] == ["cli", "vscode", "exec"]


async def test_a_server_without_what_is_read_says_what_it_has_not(server: FakeCodex) -> None:
    for gone in (
        "thread/loaded/list",
        "thread/items/list",
        "thread/goal/get",
        "thread/queue/list",
        "thread/backgroundTerminals/list",
    ):
        server.methods.remove(gone)
    server.thread("t1", status={"type": "notLoaded"})
    server.thread("t2")
    async with desk(server.url) as seen:
        await seen.watch("t1")
        await seen.until(lambda: seen.of("t1", Notice))
        notice = seen.of("t1", Notice)[0].text
        assert notice == (
            "its details could not be fetched: the server has no list of what was said and done in a thread"
        )
        turn = await server.begin_turn("t2")
        await seen.until(lambda: seen.summary("t2").turn == turn)
        command = {"type": "commandExecution", "id": "call-1", "command": "make", "status": "inProgress"}
        await server.item("t2", command, ended=False)
        done = asyncio.create_task(seen.do("t2", DoInterrupt()))
        await asyncio.wait_for(server.called("turn/interrupt"), 60)
        await server.end_turn("t2", "interrupted")
        assert (await done).reason == "the server does not tell whether commands of the turn go on"
        await seen.until(lambda: not seen.summary("t2").in_flight)
        assert statuses(seen, "t2") == [ToolStatus.CANCELLED]


async def test_a_method_that_went_missing_is_no_capability_and_is_named_in_few_words(server: FakeCodex) -> None:
    server.thread("t1")
    async with desk(server.url) as seen:
        await seen.until(lambda: "t1" in seen.sessions)
        server.methods.remove("thread/compact/start")
        done = await seen.do("t1", DoReseed(mode=ReseedMode.COMPACT))
        assert (done.outcome, done.reason) == (
            OutcomeKind.CAPABILITY_NOT_SUPPORTED,
            "the server does not know 'thread/compact/start'",
        )


async def test_a_thread_that_waits_for_something_new_waits(server: FakeCodex) -> None:
    server.thread("t1")
    async with desk(server.url, record=Record.NONE) as seen:
        await server.begin_turn("t1")
        await server.ask("t1", "item/hologram/requestApproval")
        await server.status("t1", "active", "waitingOnHologram")
        await seen.until(lambda: seen.open("t1"))
        assert seen.summary("t1").lifecycle is Lifecycle.WAITING
        assert seen.open("t1")[0].state is RequestState.UNREAD


async def test_each_request_that_cannot_be_read_waits_and_ends_by_itself(server: FakeCodex) -> None:
    first = await waiting(server)
    async with desk(server.url) as seen:
        await seen.asked("t1")
        second = await server.ask_command("t1", item="call-2", command="rm \ud800")
        await seen.until(lambda: len(seen.open("t1")) == 2)
        states = {str(request.subject["id"]): request.state for request in seen.open("t1")}
        assert states == {"turn-1.0": RequestState.OPEN, "turn-1.1": RequestState.UNREAD}
        await server.tell("t1", "serverRequest/resolved", requestId=second)
        await seen.until(lambda: [str(r.subject["id"]) for r in seen.open("t1")] == ["turn-1.0"])
        assert first == 0


async def test_decisions_that_the_console_does_not_know_are_named(server: FakeCodex) -> None:
    await waiting(server, availableDecisions=["beam", {"warp": {"to": 9}}])
    async with desk(server.url) as seen:
        _, subject = await seen.asked("t1")
        assert [option.id for option in subject.options] == ["decline"]
        await seen.until(lambda: seen.of("t1", Notice))
        assert seen.of("t1", Notice)[0].text == (
            'the server offers decisions that this console does not know: beam, {"warp": {"to": 9}}'
        )


async def test_a_frame_that_cannot_be_taken_is_missed_where_it_would_have_stood(
    server: FakeCodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("it breaks")

    monkeypatch.setattr(Turns, "patch", breaks)
    server.thread("t1")
    async with desk(server.url) as seen:
        turn = await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").turn == turn)
        await server.tell("t1", "item/fileChange/patchUpdated", itemId="f1")
        await server.item("t1", {"type": "agentMessage", "id": "m2", "text": "all is well"}, ended=True)
        await seen.until(lambda: said(seen, "t1") == ["all is well"])
        texts = [notice.text for notice in seen.of("t1", Notice)]
        assert texts == [
            "something that the server told could not be read, and is not shown (item/fileChange/patchUpdated)"
        ]


async def test_a_running_thread_that_we_may_not_follow_says_so_to_who_opens_it(server: FakeCodex) -> None:
    server.thread("t1")
    await server.begin_turn("t1")
    server.refuse["thread/resume"] = {"code": -32600, "message": "not for you"}
    async with desk(server.url, record=Record.WATCHED) as seen:
        await seen.watch("t1")
        await seen.until(lambda: seen.of("t1", Notice))
        assert seen.of("t1", Notice)[0].text == "its details could not be fetched: not for you"
        stopped = await seen.do("t1", DoInterrupt())
        assert stopped.outcome is OutcomeKind.REFUSED
        assert not [method for method, _ in server.calls if method == "turn/interrupt"]


async def test_a_request_that_waited_before_we_came_waits_since_then(server: FakeCodex) -> None:
    server.thread("t1")
    await server.begin_turn("t1")
    await server.item("t1", {"type": "userMessage", "id": "u1", "content": []}, ended=True)
    await server.ask("t1", "item/tool/requestUserInput", itemId="q", questions=[{"id": "a", "question": "Which?"}])
    async with desk(server.url) as seen:
        request, _ = await seen.asked("t1")
        assert request.asked_at == NOW


# --- a server that does not answer


async def test_a_server_that_takes_connections_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "HELLO_S", 0.2)

    async def silence(client: ServerConnection) -> None:
        await client.wait_closed()

    async with serve(silence, "127.0.0.1", 0) as mute:
        port = next(iter(mute.sockets)).getsockname()[1]
        with pytest.raises(Unreachable, match="takes connections, and does not answer") as caught:
            async with desk(f"codex+ws://127.0.0.1:{port}"):
                pass
        assert caught.value.retry


async def test_a_server_that_shuts_down_while_we_connect_is_tried_again(server: FakeCodex) -> None:
    server.refuse["thread/list"] = {"code": -32600, "message": "no", "data": {"reason": "serverShuttingDown"}}
    with pytest.raises(Unreachable, match="is shutting down"):
        async with desk(server.url):
            pass


async def test_one_thread_that_does_not_answer_keeps_no_other_from_being_shown(
    server: FakeCodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "JOINS_S", 0.2)
    await waiting(server)
    server.thread("t2")
    server.slow["thread/resume"] = asyncio.Event()
    async with desk(server.url) as seen:
        assert set(seen.sessions) == {"t1", "t2"}
        assert seen.summary("t1").lifecycle is Lifecycle.WAITING
        server.slow["thread/resume"].set()
        await seen.asked("t1")


# --- much of it


async def test_thousands_of_threads_are_listed_and_leave_others_their_turn(
    server: FakeCodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(2000):
        server.thread(f"t{n}", status={"type": "notLoaded"})
    async with at_a_time(monkeypatch, "_known") as most, desk(server.url, record=Record.WATCHED) as seen:
        await seen.until(lambda: len(seen.sessions) == 2000)
        assert 0 < most() <= STEP


async def test_a_flood_of_pieces_leaves_others_their_turn(server: FakeCodex, monkeypatch: pytest.MonkeyPatch) -> None:
    server.thread("t1")
    async with desk(server.url) as seen:
        turn = await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").turn == turn)
        params = {"threadId": "t1", "turnId": turn, "itemId": "m1", "delta": "piece "}
        raw = json.dumps({"method": "item/agentMessage/delta", "params": params})
        async with at_a_time(monkeypatch, "frame") as most:
            await server.flood("t1", [raw] * 5000)
            await server.item("t1", {"type": "agentMessage", "id": "m1", "text": "piece " * 5000}, ended=True)
            await seen.until(lambda: said(seen, "t1") == ["piece " * 5000])
            assert 0 < most() <= SLICE


@asynccontextmanager
async def at_a_time(monkeypatch: pytest.MonkeyPatch, method: str) -> AsyncIterator[Callable[[], int]]:
    """How often at most a method of the feed was called before others had their turn."""
    calls = most = 0
    whole = getattr(Feed, method)

    def counted(*args: Any, **rest: Any) -> Any:
        nonlocal calls, most
        calls += 1
        most = max(most, calls)
        return whole(*args, **rest)

    async def others() -> None:
        nonlocal calls
        while True:
            await asyncio.sleep(0)
            calls = 0

    monkeypatch.setattr(Feed, method, counted)
    other = asyncio.create_task(others())
    try:
        yield lambda: most
    finally:
        other.cancel()


HOSTILE = "\x1b]0;owned\x07\u202e[bold red]\u200b" + "x" * 3000


async def test_hostile_text_in_every_place_is_a_text_like_any_other(server: FakeCodex) -> None:
    info = {"name": HOSTILE, "cwd": HOSTILE, "agentNickname": HOSTILE, "modelProvider": HOSTILE, "source": HOSTILE}
    server.thread("t1", info=info)
    async with desk(server.url) as seen:
        await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").turn is not None)
        for kind in ("agentMessage", "commandExecution", "fileChange", "mcpToolCall", "webSearch", HOSTILE):
            item: dict[str, Any] = {
                "type": kind,
                "id": f"{kind}{HOSTILE}",
                "text": HOSTILE,
                "command": HOSTILE,
                "server": HOSTILE,
            }
            item |= {"tool": HOSTILE, "cwd": HOSTILE, "query": HOSTILE, "changes": [{"path": HOSTILE, "diff": HOSTILE}]}
            await server.item("t1", item, ended=False)
            await server.item("t1", {**item, "status": "completed"}, ended=True)
        await server.ask_command("t1", item=HOSTILE, command=HOSTILE, cwd=HOSTILE, reason=HOSTILE)
        _, subject = await seen.asked("t1")
        assert subject.actions[0].text == HOSTILE
        assert len(seen.of("t1", ToolCall)) == 5
        assert not [notice for notice in seen.of("t1", Notice) if notice.code == "unreadable"]
        await server.end_turn("t1", HOSTILE)
        await seen.until(lambda: seen.of("t1", RequestResolved))
