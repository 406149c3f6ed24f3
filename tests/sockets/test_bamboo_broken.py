"""A bamboo server that fails, lies, forgets or says nothing: the console says what is so, and decides nothing twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from console.connectors.bamboo import connector, live, reader
from console.connectors.web import http
from tests.peers.bamboo_deciding import error
from tests.peers.bamboo_desk import desk
from tests.peers.bamboo_http import Asked, Reply
from tests.peers.bamboo_server import ANCIENT_LINE, NEW_LINE, OLD_LINE, FakeBamboo, fake_bamboo
from tests.peers.bamboo_world import timestamp
from tests.sockets.bamboo_kit import ASK_NAME, SAY, TOUCH, Fault, begin, called, native
from watchfloor.connector import Record
from watchfloor.errors import ConnectionLost
from watchfloor.protocol.events import Message, Notice
from watchfloor.protocol.frames import DoApprove, DoDelete
from watchfloor.words import Lifecycle, OutcomeKind


@pytest.fixture(params=[OLD_LINE, NEW_LINE])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeBamboo]:
    async with fake_bamboo(request.param) as made:
        yield made


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "AGAIN_S", (0.05, 0.05, 0.1, 0.1))


# --- what cannot be read now


@pytest.mark.parametrize("lost", [True, False])
async def test_what_is_asked_is_told_also_where_it_could_not_be_read_at_once(server: FakeBamboo, lost: bool) -> None:
    async with desk(server.url) as seen:
        server.faults.append(Fault("/respond/pending", error(503, "busy"), times=3, method="GET", lost=lost))
        session = begin(server, TOUCH, SAY)
        _, subject = await seen.asked(session.id)
        assert subject.actions[0].text == "touch it"


async def test_what_cannot_be_read_for_long_is_said_and_is_read_in_the_end(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "BEAT_S", 0.3)
    async with desk(server.url) as seen:
        broken = Fault("/respond/pending", error(500, "it broke"), method="GET")
        server.faults.append(broken)
        session = begin(server, TOUCH, SAY)
        await seen.until(lambda: "unreadable" in [notice.code for notice in seen.of(session.id, Notice)])
        said = next(notice.text for notice in seen.of(session.id, Notice) if notice.code == "unreadable")
        assert "how it stands cannot be read" in said
        assert "it broke" in said
        server.faults.remove(broken)
        await seen.asked(session.id)


async def test_what_cannot_be_read_at_the_beginning_is_read_soon_after_it(server: FakeBamboo) -> None:
    session = begin(server, TOUCH, SAY)
    assert session.task is not None
    await session.task
    server.faults.append(Fault("/respond/pending", times=1, method="GET", lost=True))
    async with desk(server.url) as seen:
        await seen.asked(session.id)


async def test_a_history_that_is_too_large_hides_nothing_of_what_happens_now(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LARGEST", 20_000)
    session = server.world.create("Worker")
    server.world.add_message(session, "user", "x" * 30_000)
    async with desk(server.url) as seen:
        message = server.world.add_message(session, "user", "#!script " + json.dumps([{"gate": "on", **SAY}]))
        server.world.said(session, message)
        server.world.start(session)
        await native(seen, session.id, "running")
        await seen.until(lambda: "unreadable" in [notice.code for notice in seen.of(session.id, Notice)])
        server.world.gate("on").set()
        await seen.until(lambda: "All done." in [said.text for said in seen.of(session.id, Message)])


async def test_where_nothing_can_be_read_anew_the_connection_ends(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        server.world.create("One")
        await seen.until(lambda: seen.sessions)
        server.faults.append(Fault("/sessions", error(500, "it broke"), method="GET"))
        server.reset()
        await seen.until(lambda: seen.ended)
        assert "cannot be read anew" in str(seen.fault)


async def test_a_server_that_takes_requests_and_says_nothing(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        request, subject = await seen.asked(session.id)
        silent = asyncio.Event()

        async def hold(asked: Asked) -> None:
            if asked.path.endswith("/permission-decisions"):
                await silent.wait()

        server.late.append(hold)
        monkeypatch.setattr("console.connectors.bamboo.deciding.ANSWERS_S", 0.3)
        do = DoApprove(request=subject.id, option="allow_once", digest=request.digest)
        done = await seen.do(session.id, do)
        assert (done.outcome, "no answer in time" in (done.reason or "")) == (OutcomeKind.UNKNOWN, True)
        await native(seen, session.id, "completed")
        assert len(called(server, "/permission-decisions")) == 1
        assert server.world.ran == ["touch it"]
        decision = seen.requests[subject.id].decision
        assert decision is None, "nothing says whether it was this one that counted"
        silent.set()


# --- a roster that moves, and is large


async def test_a_session_that_slips_from_a_page_into_another_is_found(server: FakeBamboo) -> None:
    server.page = 5
    sessions = [server.world.create(f"Session {number}") for number in range(12)]

    def slips(asked: Asked) -> Reply | None:
        if asked.path.endswith("/sessions") and asked.query.get("offset") == "5" and sessions[-1].id in left:
            # One of the page that was read is deleted: all that follow move up by one.
            left.discard(sessions[-1].id)
            del server.world.sessions[sessions[-1].id]
        return None

    left = {session.id for session in sessions}
    server.faults.append(slips)
    async with desk(server.url) as seen:
        assert left <= set(seen.sessions)


async def test_five_thousand_sessions(server: FakeBamboo) -> None:
    server.page = 1000
    for number in range(5000):
        server.world.create(f"Session {number}")
    waiting = [begin(server, TOUCH, SAY, title=f"Waits {number}") for number in range(40)]
    await asyncio.gather(*(session.task for session in waiting if session.task is not None))
    async with desk(server.url, record=Record.NONE) as seen:
        assert len(seen.sessions) == 5040
        assert all(seen.summary(session.id).lifecycle is Lifecycle.WAITING for session in waiting)
        asked = len(server.calls)
        server.reset()
        await seen.until(lambda: len(called(server, "/sessions", "GET")) > 26)
        late = begin(server, ASK_NAME, title="Late")
        await seen.asked(late.id)
        assert len(server.calls) - asked < 300, "what has not changed is not read one by one"


async def test_a_session_that_is_deleted_while_it_is_shown_and_asked(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        request, subject = await seen.asked(session.id)
        server.faults.append(Fault("/permission-decisions", error(404, "session not found")))
        do = DoApprove(request=subject.id, option="allow_once", digest=request.digest)
        server.world.delete(session.id)
        done = await seen.do(session.id, do)
        assert done.outcome is OutcomeKind.STALE_TARGET
        await seen.until(lambda: session.id not in seen.sessions)
        assert server.world.ran == []


async def test_a_deletion_that_is_refused_is_refused(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = server.world.create("One")
        await seen.until(lambda: session.id in seen.sessions)
        server.faults.append(Fault(session.id, error(409, "it is busy"), method="DELETE"))
        done = await seen.do(session.id, DoDelete())
        assert (done.outcome, done.reason) == (OutcomeKind.REFUSED, "HTTP 409: it is busy")
        assert session.id in seen.sessions


# --- a feed that is not what it should be


async def test_a_feed_that_begins_to_count_anew_is_noticed(server: FakeBamboo) -> None:
    for number in range(20):
        server.world.tell(server.world.create(f"Old {number}").id, {"type": "session_created", "title": ""})
    async with desk(server.url) as seen:
        listed = len(called(server, "/sessions", "GET"))
        session = server.world.create("Told by number 1")
        await seen.until(lambda: session.id in seen.sessions)
        session.info["title"] = "Renamed"
        envelope = {"event": {"type": "session_title_updated"}, "seq": 1, "session_id": session.id, "ts": timestamp()}
        server.world.journal[:] = [envelope]
        server._watched("", envelope)
        await seen.until(lambda: seen.summary(session.id).name == "Renamed")
        await seen.until(lambda: len(called(server, "/sessions", "GET")) > listed)
        session.info["title"] = "Again"
        server.quietly(session.id, {"type": "session_title_updated"})
        await seen.until(lambda: seen.summary(session.id).name == "Again")


async def test_an_event_that_comes_a_little_late_is_not_dropped_and_a_replay_is(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        one, two = server.world.create("One"), server.world.create("Two")
        await seen.until(lambda: len(seen.sessions) == 2)
        base = len(server.world.journal)
        event = {"type": "session_title_updated"}
        first = {"event": event, "seq": base + 1, "session_id": one.id, "ts": timestamp()}
        for session, envelope in ((two, {**first, "seq": base + 2, "session_id": two.id}), (one, first)):
            session.info["title"] += ", renamed"
            server._watched("", envelope)
        await seen.until(lambda: {seen.summary(s.id).name for s in (one, two)} == {"One, renamed", "Two, renamed"})
        reads = len(called(server, one.id, "GET"))
        server._watched("", first)
        server.world.create("Three")
        await seen.until(lambda: len(seen.sessions) == 3)
        assert len(called(server, one.id, "GET")) == reads


async def test_a_frame_that_is_too_large_ends_the_connection_and_is_said(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.connectors.web.socket.LARGEST", 50_000)
    async with desk(server.url) as seen:
        session = begin(server, {"gate": "on", **SAY})
        await native(seen, session.id, "running")
        await seen.until(lambda: called(server, "/history", "GET"))
        await asyncio.sleep(0.2)
        server.channel(session.id, {"type": "token", "content": "x" * 60_000})
        await seen.until(lambda: seen.ended)
        assert isinstance(seen.fault, ConnectionLost)


async def test_a_server_that_is_silent_by_nature_is_asked_whether_it_lives(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LONG_SILENCE_S", 0.6)
    monkeypatch.setattr(live, "PING_S", 0.15)
    server.capabilities = ("auth.ws_hello_ack.v1",)
    server.keepalive_s = 1000
    async with desk(server.url) as seen:
        await asyncio.sleep(1.5)
        assert not seen.ended, "it answers each time"
        server._subscribed.clear()
        server.deaf = True
        await seen.until(lambda: seen.ended)
        assert "no sign of life" in str(seen.fault)


async def test_the_silence_of_a_server_that_never_says_that_it_lives_is_no_end(
    server: FakeBamboo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LONG_SILENCE_S", 0.4)
    server.capabilities = ("auth.ws_hello_ack.v1",)
    server.deaf, server.keepalive_s = True, 1000
    # One that is due already goes out to nobody.
    await asyncio.sleep(0.3)
    async with desk(server.url) as seen:
        await asyncio.sleep(1.0)
        assert not seen.ended
        session = begin(server, SAY)
        await native(seen, session.id, "completed")
        for socket in list(server.http.sockets):
            socket.drop()
        await seen.until(lambda: seen.ended)


# --- what another version, or somebody who means ill, may say


async def test_half_a_character_hides_no_request(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, {"shell": "touch \ud800 \x1b[31m it", "id": "call_odd"}, SAY)
        session.info["title"] = "\udfff\x1b]0;owned\x07\u202e"
        _, subject = await seen.asked(session.id)
        assert subject.actions[0].text == "touch ? \x1b[31m it", (
            "what is to be cleaned is cleaned at the console's door"
        )
        assert (await seen.decide(session.id, "deny_once")).outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 10**40, 1.5, [[]] * 3, {"a": None}, "\x00", True])
async def test_odd_arguments_hide_no_request(odd: object) -> None:
    async with fake_bamboo(NEW_LINE) as server, desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        assert session.task is not None
        await session.task
        assert session.pending is not None
        session.pending["tool_arguments"] = {"cmd": "touch it", "odd": odd}
        session.pending["permission_request"]["request_generation"] = "another"
        server.quietly(session.id, {"type": "tool_approval_requested", "tool_call_id": "call_touch"})
        await seen.until(lambda: [r.subject["id"] for r in seen.open(session.id)] == ["call_touch/another"])


# --- children


async def test_what_a_child_asks_is_heard_in_what_its_parent_is_told_of_it() -> None:
    async with fake_bamboo(ANCIENT_LINE) as server, desk(server.url) as seen:
        parent = begin(server, {"gate": "on", **SAY}, title="Parent")
        child = server.world.create("Child", parent_session_id=parent.id)
        await seen.until(lambda: child.id in seen.sessions)
        await seen.until(lambda: called(server, f"{parent.id}/events", "GET"))
        await asyncio.sleep(0.1)
        asked = {"type": "child_approval_requested", "child_session_id": child.id, "request_id": 'MsgId("q1")'}
        inner = {**asked, "tool_name": "Bash", "permission": "Execute", "resource": "make"}
        event = {"type": "sub_agent_event", "parent_session_id": parent.id, "child_session_id": child.id}
        server.channel(parent.id, {**event, "event": inner})
        _, subject = await seen.asked(child.id)
        assert subject.actions[0].text == "make"


async def test_what_a_child_asks_before_it_is_known_is_asked() -> None:
    async with fake_bamboo(ANCIENT_LINE) as server, desk(server.url) as seen:
        parent = begin(server, {"gate": "on", **SAY}, title="Parent")
        await seen.until(lambda: called(server, f"{parent.id}/events", "GET"))
        await asyncio.sleep(0.1)
        child = server.world.create("Child", parent_session_id=parent.id)
        asked = {"type": "child_approval_requested", "child_session_id": child.id, "request_id": "q1"}
        server.channel(parent.id, {**asked, "tool_name": "Bash", "permission": "Execute", "resource": "make"})
        _, subject = await seen.asked(child.id)
        assert subject.actions[0].text == "make"
