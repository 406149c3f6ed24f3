"""A real app-server that others use too, that is lost, killed, shut down, or that refuses us."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.live.codex_kit import Peer, needs_codex, peer
from tests.peers.codex_client import script
from tests.peers.codex_desk import Desk, desk
from watchfloor.connector import Record
from watchfloor.errors import ConnectionLost, Denied, Unreachable
from watchfloor.protocol.events import Message, Notice, RequestResolved, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoApprove, DoSend
from watchfloor.words import Lifecycle, OutcomeKind, RequestState

pytestmark = [pytest.mark.live, needs_codex]


@pytest.fixture
async def live() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def said(seen: Desk, thread: str) -> list[str]:
    return [event.text for event in seen.of(thread, Message)]


async def waiting(live: Peer, name: str = "a") -> str:
    """A thread on which the other client began a turn that asks whether a file may be made."""
    thread = await live.other.thread(live.work)
    since = len(live.other.frames)
    step = {"run": f"touch {live.work / name}", "ask": "it has to be there"}
    await live.other.turn(thread, script(step, {"say": "done"}))
    await live.other.told("item/commandExecution/requestApproval", thread, since)
    return thread


async def test_what_waited_before_we_came_is_read_and_decided(live: Peer) -> None:
    thread = await waiting(live)
    async with desk(live.url, record=Record.NONE) as seen:
        await seen.until(lambda: thread in seen.sessions)
        assert seen.open(thread)
        assert seen.open(thread)[0].read().actions[0].complete
        assert (await seen.decide(thread, "accept")).outcome is OutcomeKind.APPLIED
        await live.other.told("turn/completed", thread)
        assert (live.work / "a").exists()
        assert seen.welcome is not None
        assert seen.welcome.host.version == "0.171.0"


async def test_a_change_of_files_from_before_we_came_says_that_it_is_not_whole(live: Peer) -> None:
    thread = await live.other.thread(live.work, sandbox="read-only")
    await live.other.turn(thread, script({"write": {"new.txt": "one"}}, {"say": "done"}))
    await live.other.told("item/fileChange/requestApproval", thread)
    async with desk(live.url) as seen:
        _, subject = await seen.asked(thread)
        assert not subject.actions[0].complete
        assert (await seen.decide(thread, "decline")).outcome is OutcomeKind.APPLIED
        await live.other.told("turn/completed", thread)
        assert not (live.work / "new.txt").exists()


async def test_another_client_decides_first(live: Peer) -> None:
    thread = await waiting(live)
    async with desk(live.url) as seen, desk(live.url, user="ben") as second:
        request, subject = await seen.asked(thread)
        await second.asked(thread)
        assert (await second.decide(thread, "decline")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: not seen.open(thread))
        assert seen.requests[subject.id].state is RequestState.RESOLVED
        late = await seen.do(thread, DoApprove(request=subject.id, option="accept", digest=request.digest))
        assert (late.outcome, late.reason) == (
            OutcomeKind.STALE_TARGET,
            "the request was resolved: answered by another client",
        )
        # The server tells nobody who joined later that the call was declined: only who decided knows.
        await seen.until(lambda: [r.status for r in seen.of(thread, ToolResult)] == [ToolStatus.UNKNOWN])
        await second.until(lambda: [r.status for r in second.of(thread, ToolResult)] == [ToolStatus.DECLINED])
        assert not (live.work / "a").exists()


async def test_two_clients_answer_at_once_and_one_of_them_counts(live: Peer) -> None:
    async with desk(live.url) as seen:
        for n in range(6):
            since = len(live.other.frames)
            thread = await waiting(live, f"at-once-{n}")
            asked = await live.other.told("item/commandExecution/requestApproval", thread, since)
            request, subject = await seen.asked(thread)
            ours, theirs = ("decline", "accept") if n % 2 else ("accept", "decline")
            do = DoApprove(request=subject.id, option=ours, digest=request.digest)
            async with asyncio.TaskGroup() as both:
                answered = both.create_task(seen.do(thread, do))
                both.create_task(live.other.answer(asked, {"decision": theirs}))
            await live.other.told("turn/completed", thread, since)
            ran = (live.work / f"at-once-{n}").exists()
            done = answered.result()
            if ran is (ours == "accept"):
                assert done.outcome is OutcomeKind.APPLIED, (n, done)
            else:
                # Either it was told before ours left, or the thread showed it afterwards.
                assert done.outcome in (OutcomeKind.ALREADY_DECIDED, OutcomeKind.STALE_TARGET), (n, done)
            assert not seen.open(thread)


async def test_a_request_outlives_our_connection_with_the_same_id(live: Peer) -> None:
    thread = await waiting(live)
    async with desk(live.url) as seen:
        _, first = await seen.asked(thread)
        await seen.close()
        await seen.read()
        _, again = await seen.asked(thread)
        assert again == first
        assert (await seen.decide(thread, "accept")).outcome is OutcomeKind.APPLIED
        await live.other.told("turn/completed", thread)
        await seen.until(lambda: "done" in said(seen, thread))
        assert (live.work / "a").exists()


async def test_a_killed_server_takes_its_requests_along_and_work_goes_on(live: Peer) -> None:
    thread = await waiting(live)
    async with desk(live.url) as seen:
        _, subject = await seen.asked(thread)
        await live.server.end(signal.SIGKILL)
        await seen.until(lambda: seen.ended)
        assert isinstance(seen.fault, ConnectionLost)
        await seen.close()
        with pytest.raises(Unreachable):
            await seen.read()
        await live.server.start()
        await seen.read()
        await seen.until(lambda: not seen.open(thread) and seen.summary(thread).lifecycle is Lifecycle.IDLE)
        await seen.until(lambda: seen.of(thread, RequestResolved))
        resolved = seen.of(thread, RequestResolved)[0]
        assert (resolved.request, resolved.state) == (subject.id, RequestState.WITHDRAWN)
        sent = await seen.do(thread, DoSend(text=script({"say": "going on"})))
        assert sent.outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "going on" in said(seen, thread))
        assert any(notice.code == "interrupted" for notice in seen.of(thread, Notice))
        # The server counts its requests anew: ours are still told apart.
        ask = script({"run": f"touch {live.work / 'b'}", "ask": "again"}, {"say": "done"})
        await seen.do(thread, DoSend(text=ask))
        _, new = await seen.asked(thread)
        assert new.id != subject.id
        assert (await seen.decide(thread, "decline")).outcome is OutcomeKind.APPLIED


async def test_a_server_that_shuts_down_takes_nothing_new(live: Peer) -> None:
    idle = await live.other.thread(live.work)
    await live.other.turn(idle, script({"say": "short"}))
    await live.other.told("turn/completed", idle)
    thread = await waiting(live)
    async with desk(live.url) as seen:
        await seen.asked(thread)
        process = live.server.process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        new = await seen.do(idle, DoSend(text="one more thing"))
        assert new.outcome is OutcomeKind.REFUSED
        assert new.reason == "the server is shutting down: it takes nothing new"
        # What runs still waits for its answer, and the server for the turn.
        assert (await seen.decide(thread, "accept")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "done" in said(seen, thread))
        assert (live.work / "a").exists()
        await seen.until(lambda: seen.ended)
        assert await process.wait() == 0


async def test_a_thread_that_is_deleted_while_it_is_shown_is_gone(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    await live.other.turn(thread, script({"say": "short"}))
    await live.other.told("turn/completed", thread)
    async with desk(live.url) as seen:
        await seen.watch(thread)
        await seen.until(lambda: "short" in said(seen, thread))
        await live.other.call("thread/delete", threadId=thread)
        await seen.until(lambda: thread not in seen.sessions)
        assert (await seen.do(thread, DoSend(text="hello"))).outcome is OutcomeKind.STALE_TARGET


async def test_an_archived_thread_can_be_read(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    await live.other.turn(thread, script({"say": "short"}))
    await live.other.told("turn/completed", thread)
    await live.other.call("thread/archive", threadId=thread)
    async with desk(live.url, record=Record.WATCHED) as seen:
        await seen.watch(thread)
        await seen.until(lambda: "short" in said(seen, thread))
        assert seen.summary(thread).native_state == "archived"
        assert not [notice for notice in seen.of(thread, Notice) if notice.code is None]


async def test_reading_a_stored_thread_does_not_load_it(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    await live.other.turn(thread, script({"run": "echo hello"}, {"say": "short"}))
    await live.other.told("turn/completed", thread)
    await live.server.end(signal.SIGKILL)
    await live.server.start()
    async with desk(live.url, record=Record.WATCHED) as seen:
        await seen.until(lambda: thread in seen.sessions)
        assert seen.summary(thread).native_state == "notLoaded"
        assert not seen.events[thread]
        await seen.watch(thread)
        await seen.until(lambda: "short" in said(seen, thread))
        assert [result.status for result in seen.of(thread, ToolResult)] == [ToolStatus.OK]
        assert seen.summary(thread).native_state == "notLoaded"


TOKEN = "a-token-that-is-long-enough-for-a-test"


async def test_a_token_is_needed_where_the_server_wants_one() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "token"
        file.write_text(TOKEN)
        options = ("--ws-auth", "capability-token", "--ws-token-file", str(file))
        async with peer(options, token=TOKEN) as live:
            for token, word in ((None, "missing"), ("wrong", "invalid")):
                with pytest.raises(Denied, match=f"{word} websocket bearer token") as refused:
                    async with desk(live.url, token=token):
                        pass
                assert not refused.value.retry
            async with desk(live.url, token=TOKEN) as seen:
                await seen.until(lambda: seen.welcome)


def jwt(secret: bytes, expires: int) -> str:
    """A token signed as the server wants it."""

    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    head = part(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = part(json.dumps({"exp": expires, "iss": "ops", "aud": "codex"}).encode())
    signature = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{part(signature)}"


async def test_a_signed_token_that_has_expired_is_refused_for_that_reason() -> None:
    secret, now = b"s" * 48, int(time.time())
    with TemporaryDirectory() as folder:
        file = Path(folder) / "secret"
        file.write_bytes(secret)
        options = ["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", str(file)]
        options += ["--ws-issuer", "ops", "--ws-audience", "codex"]
        good = jwt(secret, now + 3600)
        async with peer(options, token=good) as live:
            async with desk(live.url, token=good) as seen:
                await seen.until(lambda: seen.welcome)
            with pytest.raises(Denied, match="expired websocket jwt"):
                async with desk(live.url, token=jwt(secret, now - 3600)):
                    pass
            with pytest.raises(Denied, match="websocket jwt"):
                async with desk(live.url, token=jwt(b"x" * 48, now + 3600)):
                    pass
