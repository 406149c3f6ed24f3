"""The Codex connector over real WebSockets, against a server that does what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from console.connectors.codex import connector, deciding
from tests.peers.codex_desk import Desk, desk
from tests.peers.codex_server import NOW, FakeCodex, fake_codex
from watchfloor.connector import Record
from watchfloor.errors import ConfigError, ConnectionFailed, ConnectionLost, Denied, NotAHost, Unreachable
from watchfloor.protocol.events import Delta, Message, Notice, Raw, RequestResolved, ToolCall, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoApprove, DoFork, DoInterrupt, DoReseed, DoSend, Outcome
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind, Priority, RequestKind, RequestState, ReseedMode

APPROVAL = "item/commandExecution/requestApproval"


@pytest.fixture
async def server() -> AsyncIterator[FakeCodex]:
    async with fake_codex() as made:
        yield made


async def waiting(server: FakeCodex, thread: str = "t1") -> int:
    """A thread that waits for a command to be approved."""
    server.thread(thread)
    await server.begin_turn(thread)
    return await server.ask_command(thread)


async def approving(seen: Desk, thread: str, option: str) -> str:
    request, subject = await seen.asked(thread)
    return await seen.send(thread, DoApprove(request=subject.id, option=option, digest=request.digest))


async def outcome(seen: Desk, id: str) -> Outcome:
    await seen.until(lambda: id in seen.outcomes)
    return seen.outcomes[id]


async def test_every_thread_of_every_page_is_on_the_roster(server: FakeCodex) -> None:
    server.page = 7
    for n in range(40):
        server.thread(f"t{n:02}", status={"type": "notLoaded"})
    server.thread("old", status={"type": "notLoaded"}, archived=True)
    server.thread("child", info={"parentThreadId": "t00", "agentNickname": "Helper"})
    async with desk(server.url) as seen:
        await seen.until(lambda: len(seen.sessions) == 42)
        assert {seen.summary(id).lifecycle for id in seen.sessions} == {Lifecycle.IDLE}
        assert seen.summary("old").native_state == "archived"
        assert (seen.summary("child").parent, seen.summary("child").name) == ("t00", "Helper")
        assert seen.welcome is not None
        assert (seen.welcome.host.name, seen.welcome.host.version) == ("codex app-server", "0.171.0")
    methods = [method for method, _ in server.calls]
    assert "thread/resume" not in methods, "looking at the roster loads nothing"


async def test_a_request_that_waits_is_read_before_the_roster_is_told(server: FakeCodex) -> None:
    await waiting(server)
    async with desk(server.url, record=Record.NONE) as seen:
        request, subject = await seen.asked("t1")
        assert (request.state, subject.actions[0].text) == (RequestState.OPEN, "make")
        assert [option.id for option in subject.options] == ["accept", "decline", "cancel"]
        assert seen.summary("t1").lifecycle is Lifecycle.WAITING


async def test_a_request_that_cannot_be_read_is_shown_as_such(server: FakeCodex) -> None:
    await waiting(server)
    server.refuse["thread/resume"] = {"code": -32600, "message": "not for you"}
    async with desk(server.url) as seen:
        request, subject = await seen.asked("t1")
        assert (request.state, subject.kind, subject.options) == (RequestState.UNREAD, RequestKind.APPROVAL, ())
        assert request.about == "what it asks could not be read: not for you"
        del server.refuse["thread/resume"]
        await seen.watch("t1")
        await seen.until(lambda: any(r.state is RequestState.OPEN for r in seen.open("t1")))
        assert len(seen.open("t1")) == 1
        assert seen.requests[subject.id].state is RequestState.WITHDRAWN


async def test_an_approval_counts_when_the_command_is_seen_to_run(server: FakeCodex) -> None:
    number = await waiting(server)
    assert number == 0
    async with desk(server.url) as seen:
        id = await approving(seen, "t1", "accept")
        assert await server.answered(number) == {"decision": "accept"}
        assert id not in seen.outcomes
        server.threads["t1"].running = [{"itemId": "call-1", "processId": "7", "command": "make"}]
        done = await outcome(seen, id)
        assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
        assert [work.id for work in seen.summary("t1").in_flight] == ["call-1"]
        decision = seen.requests[str(done.request)].decision
        assert decision is not None
        assert (decision.option, decision.kind, decision.by) == ("accept", OptionKind.ALLOW, "ann")


async def test_an_answer_that_nothing_proves_is_unknown(server: FakeCodex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "PROOF_S", 0.3)
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await approving(seen, "t1", "accept")
        await server.answered(number)
        done = await outcome(seen, id)
        assert (done.outcome, done.reason) == (
            OutcomeKind.UNKNOWN,
            "an answer was taken, and nothing shows whether it was this one",
        )
        ended = seen.requests[str(done.request)]
        assert (ended.state, ended.decision) == (RequestState.RESOLVED, None)


@pytest.mark.parametrize(
    ("params", "tool"),
    [
        ({"kind": "writeStdin", "approvalId": "a1", "command": "write_stdin yes"}, "input to a running command"),
        ({"networkApprovalContext": {"host": "h.example", "protocol": "https"}}, "network access"),
    ],
)
async def test_that_a_command_runs_proves_nothing_of_an_answer_about_what_it_does(
    server: FakeCodex, params: dict[str, Any], tool: str
) -> None:
    server.thread("t1").running = [{"itemId": "call-1", "processId": "7", "command": "make"}]
    await server.begin_turn("t1")
    number = await server.ask_command("t1", **params)
    async with desk(server.url) as seen:
        request, subject = await seen.asked("t1")
        assert subject.actions[0].tool == tool
        await seen.until(lambda: [work.id for work in seen.summary("t1").in_flight] == ["call-1"])
        id = await seen.send("t1", DoApprove(request=subject.id, option="accept", digest=request.digest))
        await server.answered(number)
        done = await outcome(seen, id)
        assert (done.outcome, list(done.info)) == (OutcomeKind.APPLIED, ["proof"])


async def test_an_answer_that_lost_against_another_client_says_so(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        await seen.asked("t1")
        # Another client is first, by so little that our answer is on its way already.
        await server.answer_for_another("t1", number, {"decision": "decline"})
        id = await approving(seen, "t1", "accept")
        await server.dropped()
        await server.tell("t1", "serverRequest/resolved", requestId=number)
        await server.end_command("t1", "declined")
        done = await outcome(seen, id)
        assert (done.outcome, done.reason) == (OutcomeKind.ALREADY_DECIDED, "another client was first")
        assert done.decided is not None
        assert (done.decided.kind, done.decided.by) == (OptionKind.DENY, "another client")
        assert [result.status for result in seen.of("t1", ToolResult)] == [ToolStatus.DECLINED]


async def test_a_denial_that_lost_against_another_client_is_no_denial(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        await seen.asked("t1")
        await server.answer_for_another("t1", number, {"decision": "accept"})
        id = await approving(seen, "t1", "decline")
        await server.dropped()
        await server.tell("t1", "serverRequest/resolved", requestId=number)
        await server.end_command("t1", "completed")
        done = await outcome(seen, id)
        assert done.outcome is OutcomeKind.ALREADY_DECIDED
        assert done.decided is not None
        assert done.decided.kind is OptionKind.ALLOW


async def test_an_answer_without_any_word_leaves_the_request_open(
    server: FakeCodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "RESOLVED_S", 0.3)
    number = await waiting(server)
    async with desk(server.url) as seen:
        await seen.asked("t1")
        await server.answer_for_another("t1", number, {})
        done = await outcome(seen, await approving(seen, "t1", "accept"))
        assert (done.outcome, done.reason) == (OutcomeKind.UNKNOWN, "the server has not taken up the answer")
        assert len(seen.open("t1")) == 1


async def test_a_lost_connection_leaves_an_answer_unknown(server: FakeCodex) -> None:
    number = await waiting(server)
    async with desk(server.url) as seen:
        id = await approving(seen, "t1", "accept")
        await server.answered(number)
        await server.restart()
        await seen.until(lambda: seen.ended)
        assert isinstance(seen.fault, ConnectionLost)
        await seen.close()
        await seen.read()
        assert (await outcome(seen, id)).outcome is OutcomeKind.UNKNOWN
        await seen.until(lambda: not seen.open("t1"))
        await seen.until(lambda: seen.summary("t1").lifecycle is Lifecycle.IDLE)
        assert [event.state for event in seen.of("t1", RequestResolved)] == [RequestState.WITHDRAWN]


async def test_numbers_that_a_restarted_server_uses_again_are_other_requests(server: FakeCodex) -> None:
    await waiting(server)
    async with desk(server.url) as seen:
        _, first = await seen.asked("t1")
        await server.restart()
        await seen.until(lambda: seen.ended)
        await seen.close()
        await seen.read()
        await server.begin_turn("t1")
        assert await server.ask_command("t1") == 0
        await seen.until(lambda: seen.open("t1") and seen.open("t1")[0].read().id != first.id)
        assert (first.id, seen.open("t1")[0].read().id) == ("turn-1.0", "turn-2.0")


async def test_the_past_is_read_in_pages_and_told_once(server: FakeCodex) -> None:
    server.page = 10
    thread = server.thread("t1")
    said = [f"said {n}" for n in range(35)]
    for n, text in enumerate(said):
        item = {"type": "agentMessage", "id": f"m{n}", "text": text, "startedAtMs": NOW + n, "completedAtMs": NOW + n}
        thread.past.append({"turnId": "turn-0", "item": item})
    thread.turns = [{"id": "turn-0", "status": "interrupted", "completedAt": NOW // 1000, "error": None}]
    async with desk(server.url, record=Record.WATCHED) as seen:
        assert not seen.events["t1"]
        await seen.watch("t1")
        await seen.until(lambda: seen.of("t1", Notice))
        assert [message.text for message in seen.of("t1", Message)] == said
        assert [message.at for message in seen.of("t1", Message)] == [NOW + n for n in range(35)]
        await seen.close()
        await seen.read()
        await seen.watch("t1")
        await server.begin_turn("t1")
        await server.item("t1", {"type": "agentMessage", "id": "new", "text": "new"}, ended=True)
        await seen.until(lambda: [message.text for message in seen.of("t1", Message)] == [*said, "new"])


async def test_the_latest_idle_threads_are_read_without_loading_them(server: FakeCodex) -> None:
    server.page = 2
    thread = server.thread("t1", status={"type": "notLoaded"})
    for n in range(5):
        thread.past.append({"turnId": "u", "item": {"type": "agentMessage", "id": f"m{n}", "text": f"said {n}"}})
    async with desk(server.url) as seen:
        await seen.until(
            lambda: [message.text for message in seen.of("t1", Message)] == [f"said {n}" for n in range(5)]
        )
        assert not seen.of("t1", Notice)
        assert seen.summary("t1").native_state == "notLoaded"
    assert "thread/resume" not in [method for method, _ in server.calls]


async def test_a_past_that_is_too_long_says_where_it_begins(server: FakeCodex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "PAST", 4)
    server.page = 2
    thread = server.thread("t1", status={"type": "notLoaded"})
    for n in range(9):
        thread.past.append({"turnId": "u", "item": {"type": "agentMessage", "id": f"m{n}", "text": f"said {n}"}})
    async with desk(server.url) as seen:
        await seen.until(lambda: len(seen.of("t1", Message)) == 4)
        assert [message.text for message in seen.of("t1", Message)] == [f"said {n}" for n in range(5, 9)]
        assert isinstance(seen.events["t1"][0], Notice)
        assert seen.of("t1", Notice)[0].text == "the items before this one were not read: they are on the server"


async def test_what_happens_while_the_past_is_read_comes_after_it(server: FakeCodex) -> None:
    thread = server.thread("t1")
    thread.past = [{"turnId": "turn-0", "item": {"type": "agentMessage", "id": "m0", "text": "old"}}]
    server.silent.add("thread/items/list")
    async with desk(server.url, record=Record.WATCHED) as seen:
        await seen.watch("t1")
        await asyncio.wait_for(server.called("thread/items/list"), 60)
        server.silent.clear()
        await seen.close()
        await seen.read()
        await server.item("t1", {"type": "agentMessage", "id": "m1", "text": "new"}, ended=True)
        await seen.until(lambda: [message.text for message in seen.of("t1", Message)] == ["old", "new"])


async def test_a_text_that_had_begun_before_we_came_is_marked_until_it_is_whole(server: FakeCodex) -> None:
    server.thread("t1")
    turn = await server.begin_turn("t1")
    async with desk(server.url) as seen:
        await seen.until(lambda: seen.summary("t1").turn == turn)
        await server.tell("t1", "item/agentMessage/delta", turnId=turn, itemId="m1", delta="the end")
        await seen.until(lambda: seen.of("t1", Delta))
        assert "".join(delta.text for delta in seen.of("t1", Delta)) == "… the end"
        await server.item("t1", {"type": "agentMessage", "id": "m1", "text": "all and the end"}, ended=True)
        await seen.until(lambda: [message.text for message in seen.of("t1", Message)] == ["all and the end"])


async def test_a_turn_that_ended_is_not_steered_by_who_meant_it(server: FakeCodex) -> None:
    server.thread("t1")
    async with desk(server.url) as seen:
        turn = await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").turn == turn)
        server.refuse["turn/steer"] = {"code": -32600, "message": "no active turn to steer"}
        late = await seen.do("t1", DoSend(text="hello"), turn=turn)
        assert late.outcome is OutcomeKind.STALE_TARGET
        assert "turn/start" not in [method for method, _ in server.calls]
        new = await seen.do("t1", DoSend(text="hello"))
        assert (new.outcome, new.info["delivery"]) == (OutcomeKind.APPLIED, "started")


async def test_what_the_server_refuses_was_not_done(server: FakeCodex) -> None:
    server.thread("t1")
    words = {"code": -32600, "message": "Server is draining", "data": {"reason": "serverShuttingDown"}}
    for method in ("turn/start", "turn/interrupt", "thread/compact/start", "thread/queue/add"):
        server.refuse[method] = words
    async with desk(server.url) as seen:
        for do in (
            DoSend(text="hello"),
            DoSend(text="hello", priority=Priority.QUEUE),
            DoReseed(mode=ReseedMode.COMPACT),
        ):
            done = await seen.do("t1", do)
            assert (done.outcome, done.reason) == (
                OutcomeKind.REFUSED,
                "the server is shutting down: it takes nothing new",
            )
        server.refuse["thread/fork"] = {"code": -32600, "message": "no rollout found for thread id t1"}
        assert (await seen.do("t1", DoFork())).outcome is OutcomeKind.STALE_TARGET
        none = await seen.do("t1", DoInterrupt())
        assert (none.outcome, none.reason) == (OutcomeKind.INVALID, "no turn runs")


async def test_an_older_server_offers_only_what_it_has(server: FakeCodex) -> None:
    for gone in ("thread/queue/add", "thread/revert", "thread/settings/update", "thread/fork", "thread/delete"):
        server.methods.remove(gone)
    server.thread("t1")
    async with desk(server.url) as seen:
        await seen.until(lambda: "t1" in seen.sessions)
        capabilities = seen.capabilities("t1")
        assert capabilities.send is not None
        assert capabilities.send.priorities == (Priority.NORMAL,)
        assert capabilities.reseed is not None
        assert capabilities.reseed.modes == (ReseedMode.COMPACT,)
        assert (capabilities.fork, capabilities.delete) == (None, None)


async def test_what_a_newer_server_says_is_kept_as_it_came(server: FakeCodex) -> None:
    server.thread("t1")
    async with desk(server.url) as seen:
        await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").turn is not None)
        await server.tell("t1", "thread/levitated", height=3)
        await server.item("t1", {"type": "hologram", "id": "h1"}, ended=True)
        await server.ask("t1", "item/hologram/requestApproval", itemId="h1")
        await server.status("t1", "transcended")
        await seen.until(lambda: seen.summary("t1").lifecycle is Lifecycle.UNKNOWN)
        kept = [event.note for event in seen.of("t1", Raw)]
        assert kept == ["thread/levitated", "an item of the kind hologram"]
        await seen.until(lambda: seen.open("t1"))
        request = seen.open("t1")[0]
        assert (request.state, request.read().options) == (RequestState.UNREAD, ())
        assert request.about is not None
        assert "does not know 'item/hologram/requestApproval'" in request.about


async def test_frames_without_sense_cost_nothing(server: FakeCodex) -> None:
    server.thread("t1")
    async with desk(server.url) as seen:
        await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").turn is not None)
        for params in ({"item": 3}, {"item": {"type": 4}}, {"item": {"id": "x"}, "startedAtMs": "soon"}):
            await server.tell("t1", "item/started", **params)
            await server.tell("t1", "item/completed", **params)
        await server.tell("t1", "turn/completed", turn=[])
        await server.tell_all("thread/started", thread="none")
        await server.item("t1", {"type": "agentMessage", "id": "m1", "text": "all is well"}, ended=True)
        await seen.until(lambda: "all is well" in [message.text for message in seen.of("t1", Message)])


async def test_a_command_that_lived_on_and_ended_unseen_is_closed(server: FakeCodex) -> None:
    thread = server.thread("t1")
    thread.running = [{"itemId": "call-9", "processId": "7", "command": "sleep", "cwd": "/srv"}]
    async with desk(server.url) as seen:
        await server.begin_turn("t1")
        await seen.until(lambda: seen.summary("t1").in_flight)
        assert [call.text for call in seen.of("t1", ToolCall)] == ["sleep"]
        thread.running = []
        await server.end_turn("t1")
        await seen.until(lambda: not seen.summary("t1").in_flight)
        assert [result.status for result in seen.of("t1", ToolResult)] == [ToolStatus.UNKNOWN]


# --- who refuses us


async def fails(url: str, kind: type[ConnectionFailed], match: str, token: str | None = None) -> ConnectionFailed:
    with pytest.raises(kind, match=match) as caught:
        async with desk(url, token=token):
            pass
    return caught.value


async def test_a_wrong_token_is_not_tried_again() -> None:
    async with fake_codex(token="right") as server:
        assert not (await fails(server.url, Denied, "missing websocket bearer token")).retry
        refused = await fails(server.url, Denied, "invalid websocket bearer token", "wrong")
        assert "wrong" not in str(refused)
        async with desk(server.url, token="right") as seen:
            await seen.until(lambda: seen.welcome)


async def test_nobody_there_and_somebody_else_there(server: FakeCodex) -> None:
    await server.stop()
    assert (await fails(server.url, Unreachable, "is it running")).retry

    def closed(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus.NOT_FOUND, "no such page")

    async def nothing(connection: ServerConnection) -> None:
        pass

    async with serve(nothing, "127.0.0.1", 0, process_request=closed) as other:
        port = next(iter(other.sockets)).getsockname()[1]
        await fails(f"codex+ws://127.0.0.1:{port}", NotAHost, "check the address")


async def test_a_server_that_speaks_otherwise(server: FakeCodex) -> None:
    server.refuse["initialize"] = {"code": -32600, "message": "Already initialized"}
    await fails(server.url, NotAHost, "does not speak as a Codex app-server does: Already initialized")
    server.refuse = {"thread/list": {"code": -32600, "message": "thread/list requires a login"}}
    await fails(server.url, NotAHost, "thread/list requires a login")


async def test_a_server_that_ends_while_we_connect(server: FakeCodex) -> None:
    server.silent.add("thread/list")

    async def end() -> None:
        await asyncio.wait_for(server.called("thread/list"), 60)
        await server.stop()

    ending = asyncio.create_task(end())
    await fails(server.url, ConnectionLost, "lost")
    await ending


@pytest.mark.parametrize("url", ["codex+ws://me:secret@h:1", "codex+ws://h:1/?token=secret", "codex+ws://"])
async def test_an_address_that_cannot_be_used_says_so_and_shows_no_secret(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        async with desk(url):
            pass
    assert "secret" not in str(caught.value)
