"""An aion server's connections: how its transcripts are taken up, broken, cut off and refused."""

from __future__ import annotations

import asyncio
import json

import pytest

from console.connectors.aion.connector import SCHEMES, AionFactory
from tests.peers.aion_desk import Desk, desk, group_of, session_of
from tests.peers.aion_routes import HTML, JSON, PAGE, Reply, refused
from tests.peers.aion_server import AionServer, Subscriber
from tests.peers.aion_world import CHILD, Axes, Flow, Json
from watchfloor.connector import Target
from watchfloor.errors import ConfigError, ConnectionLost, Denied, NotAHost, Unreachable
from watchfloor.protocol.events import Delta, Level, Message, Notice
from watchfloor.protocol.frames import DoSend
from watchfloor.words import OutcomeKind


async def begun(server: AionServer, seen: Desk) -> tuple[Flow, Axes, str]:
    """A workflow whose agent lives, and whose transcript is followed."""
    flow = server.world.flow()
    axes = flow.work()
    flow.say(axes, "hello")
    id = session_of(flow, axes)
    await seen.until(lambda: seen.texts(id) == ["hello"])
    await server.until(lambda: server.of("transcript"))
    return flow, axes, id


def codes(seen: Desk, id: str) -> list[str | None]:
    return [event.code for event in seen.of(id, Notice)]


async def followed_again(server: AionServer, before: Subscriber) -> None:
    """Wait until another socket follows the transcript."""
    await server.until(lambda: [each for each in server.of("transcript") if each is not before])


def arms(server: AionServer) -> list[Json]:
    return [
        frame["subscription"]["transcript"] for frame in server.first_frames if "transcript" in frame["subscription"]
    ]


# --- backfill


async def test_the_past_is_read_before_the_socket_is_opened_after_it() -> None:
    """Check 13."""
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        for number in range(2500):
            flow.say(axes, str(number))
        id = session_of(flow, axes)
        async with desk(server.url) as seen:
            await server.until(lambda: arms(server))
            await seen.until(lambda: len(seen.texts(id)) == 2500)
            assert seen.texts(id) == [str(number) for number in range(2500)]
            assert arms(server) == [
                {"namespace": "default", "workflow_id": flow.id, "run_id": flow.run, "activity_id": 0, "attempt": 1,
                 "after_seq": 2499}
            ]  # fmt: skip
            pages = [asked["from_seq"] for path, asked in server.routes.seen if path == "/workflows/transcript"]
            assert pages == [0, 1000, 2000]


async def test_a_transcript_without_a_past_is_followed_without_a_cursor() -> None:
    """Check 14."""
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        async with desk(server.url) as seen:
            await server.until(lambda: arms(server))
            assert "after_seq" not in arms(server)[0]
            flow.say(axes, "first")
            await seen.until(lambda: seen.texts(session_of(flow, axes)) == ["first"])


async def test_where_the_past_cannot_be_read_it_is_said_and_the_socket_sends_all() -> None:
    """Check 15."""
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        flow.say(axes, "hello")
        id = session_of(flow, axes)
        server.faults.answers["/workflows/transcript"] = [refused(500, "backend", "store failure")]
        async with desk(server.url) as seen:
            await seen.until(lambda: seen.texts(id) == ["hello"])
            assert "past" in codes(seen, id)
            assert "after_seq" not in arms(server)[0]


async def test_leaving_early_leaves_nothing_behind() -> None:
    """Check 16."""
    async with AionServer() as server:
        flow = server.world.flow()
        flow.work()
        before = asyncio.all_tasks()
        made = Desk(server.url)
        await made.connect()
        await made.close()
        await server.until(lambda: not server.subscribers)
        left = {task for task in asyncio.all_tasks() - before if not task.done()}
        assert not [task for task in left if "aion" in repr(task.get_coro()) and "connectors" in repr(task.get_coro())]


# --- breaks


async def test_a_broken_socket_is_taken_up_after_the_last_stored_event() -> None:
    """Check 17."""
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        (socket,) = server.of("transcript")
        flow.piece(axes, "half ")
        await seen.until(lambda: seen.of(id, Delta))
        socket.drop()
        await followed_again(server, socket)
        assert arms(server)[-1]["after_seq"] == 0
        flow.piece(axes, "lost")
        flow.say(axes, "half lost")
        await seen.until(lambda: seen.texts(id) == ["hello", "half lost"])
        assert [event.cut for event in seen.of(id, Message)] == [False, False], "no half message is left"
        assert "broken" in codes(seen, id)


async def test_being_cut_off_for_being_slow_is_shown_and_costs_no_stored_event() -> None:
    """Check 17, of lag."""
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        (socket,) = server.of("transcript")
        server.lag()
        flow.say(axes, "while away")
        await seen.until(lambda: seen.texts(id) == ["hello", "while away"])
        await followed_again(server, socket)
        (lag,) = [event for event in seen.of(id, Notice) if event.code == "transcript_lagged"]
        assert "705" not in lag.text, "what was skipped is not all ours"
        assert arms(server)[-1]["after_seq"] in (0, 1)


async def test_a_frame_that_is_none_is_shown() -> None:
    """Check 17, of frames that nobody knows."""
    async with AionServer() as server, desk(server.url) as seen:
        _, _, id = await begun(server, seen)
        server.of("transcript")[0].send({"kind": "dance"})
        await seen.until(lambda: [event for event in seen.events[id] if event.kind == "raw"])  # type: ignore[attr-defined]


async def test_events_that_come_twice_and_backwards_are_told_once_in_order() -> None:
    """Checks 1 and 2 over a socket."""
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        made = []
        for text in ("one", "two", "three"):
            made.append(flow.event(axes, {"kind": "Message", "role": {"role": "Assistant"}, "text": text}))
        for event in (made[2], made[0], made[0], made[1], made[2]):
            server.send_raw(flow, event)
        await seen.until(lambda: seen.texts(id) == ["hello", "one", "two", "three"])


async def test_a_stored_event_that_never_came_is_fetched() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        flow.event(axes, {"kind": "Message", "role": {"role": "Assistant"}, "text": "not sent"})
        flow.say(axes, "sent")
        await seen.until(lambda: seen.texts(id) == ["hello", "not sent", "sent"])


async def test_two_agents_in_one_attempt_are_told_apart() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        flow.say(axes, "I agree", CHILD)
        await seen.until(lambda: [event.author for event in seen.of(id, Message)] == ["orchestrator", "reviewer"])


# --- what the stream of events does not tell


async def test_what_the_stream_of_events_did_not_send_is_found_in_the_lists() -> None:
    """Check 31: it sends no cursor, and after a break everything is looked at again."""
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        await server.until(lambda: server.of("firehose"))
        server.faults.loses.add("firehose")
        flow.complete(axes)
        flow.end()
        other = server.world.flow("other")
        server.drop_sockets("firehose")
        await seen.reads(id, "completed")
        await seen.until(lambda: group_of(other) in seen.told)
        arm = [frame["subscription"] for frame in server.first_frames if "firehose" in frame["subscription"]]
        assert all(each == {"firehose": {"namespace": "default"}} for each in arm)


async def test_every_socket_has_one_subscription_and_its_refusal_is_its_own() -> None:
    """Check 32."""
    async with AionServer() as server, desk(server.url) as seen:
        flow, _, id = await begun(server, seen)
        flow.schedule(1)
        second = flow.lease(flow.hand_out(1))
        flow.say(second, "me too")
        await seen.until(lambda: seen.texts(session_of(flow, second)) == ["me too"])
        await server.until(lambda: len(server.of("transcript")) == 2)
        first = next(each for each in server.of("transcript") if each.fields["activity_id"] == 0)
        first.refuse("namespace_denied", "not yours any more")
        await seen.until(lambda: "refused" in codes(seen, id))
        flow.say(second, "still here")
        await seen.until(lambda: seen.texts(session_of(flow, second)) == ["me too", "still here"])
        again = [arm for arm in arms(server) if arm["activity_id"] == 0]
        assert len(again) == 1, "what is refused for good is not asked for again"
        assert "refused" not in codes(seen, session_of(flow, second))


# --- the server


async def test_a_server_that_goes_away_is_lost_and_taken_up_where_it_was_left() -> None:
    """Check 30, as ours: nobody gives up. Trying again, and saying since when, is the console's for all sources."""
    async with AionServer() as server:
        port = server.port
        made = Desk(server.url)
        await made.connect()
        flow, axes, id = await begun(server, made)
        await server.close()
        await made.until(lambda: made.over)
        assert isinstance(made.fault, ConnectionLost)
        assert made.fault.retry
        await made.close()
        with pytest.raises(Unreachable):
            await made.connect()
        again = AionServer(port=port)
        again.world.flows, again.world.namespaces = server.world.flows, server.world.namespaces
        flow.says, flow.speaks = again.world._says, again.world._speaks
        async with again:
            flow.say(axes, "after the break")
            await made.connect()
            await made.until(lambda: made.texts(id) == ["hello", "after the break"])
            flow.complete(axes)
            await made.reads(id, "completed")
            await made.close()


async def test_a_list_that_fails_once_is_asked_for_again() -> None:
    """Check 35."""
    async with AionServer() as server, desk(server.url) as seen:
        _, _, id = await begun(server, seen)
        server.faults.answers["/workflows/list"] = [refused(500, "backend", "store failure")]
        server.faults.drops["/workflows/list"] = [False]
        later = server.world.flow("later")
        await seen.until(lambda: group_of(later) in seen.told)
        assert (await seen.do(id, DoSend(text="x"))).outcome is OutcomeKind.APPLIED


async def test_what_the_server_has_no_more_is_gone() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, _, id = await begun(server, seen)
        server.world.flows.clear()
        await seen.until(lambda: id not in seen.told and group_of(flow) not in seen.told)
        later = server.world.flow("later")
        await seen.until(lambda: group_of(later) in seen.told)


async def test_a_server_that_cannot_say_what_it_has_is_asked_again_later() -> None:
    async with AionServer() as server:
        server.faults.answers["/namespaces"] = [refused(500, "backend", "store failure")]
        with pytest.raises(Unreachable) as fault:
            await Desk(server.url).connect()
        assert fault.value.retry
        async with desk(server.url) as seen:
            server.faults.answers["/namespaces"] = [refused(500, "backend", "store failure")] * 9
            await seen.until(lambda: seen.over)
            assert isinstance(seen.fault, ConnectionLost)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ((200, HTML, PAGE), NotAHost),
        ((404, None, ""), NotAHost),
        ((200, JSON, "{}"), NotAHost),
        ((200, JSON, "{broken"), NotAHost),
        ((401, None, ""), Denied),
        ((503, "text/plain", "draining"), Unreachable),
    ],
)
async def test_what_is_no_aion_server_is_said_to_be_none(answer: Reply, fault: type[Exception]) -> None:
    async with AionServer() as server:
        server.faults.answers["/whoami"] = [answer]
        with pytest.raises(fault):
            await Desk(server.url).connect()


async def test_a_wrong_token_is_refused_and_not_tried_again() -> None:
    async with AionServer(token="a-token") as server:
        with pytest.raises(Denied) as denied:
            await Desk(server.url, token="another").connect()
        assert not denied.value.retry
        assert "another" not in str(denied.value)
        async with desk(server.url, token="a-token") as seen:
            await begun(server, seen)


@pytest.mark.parametrize("url", ["aion+http://", "aion+http://user:secret@host", "aion+http://host?token=secret"])
def test_an_address_that_cannot_be_used_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        AionFactory()(Target("aion", url))
    assert "secret" not in str(refused.value)
    assert set(SCHEMES) == {"aion+http", "aion+https"}


async def test_hostile_json_ends_nothing() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        strange: list[object] = [
            {"kind": "activity_event", "event": None},
            {"kind": "activity_event", "event": {"store_seq": -1, "kind": 7}},
            {"kind": "activity_event", "event": {"store_seq": 1, "kind": {"kind": ["Message"]}, "agent_role": {}}},
        ]
        for frame in strange:
            server.of("transcript")[0].send(frame)
        for frame in [
            {"event": {"payload": {"bytes": [1, 2, 3]}}},
            {"event": 7},
            {"event": {"payload": {"bytes": ["x"]}}},
        ]:
            server.of("firehose")[0].send(frame)
        flow.record("Unheard", note=json.loads('{"deep": [[[[]]]]}'))
        flow.event(axes, {"kind": "Message", "role": {"role": "Assistant"}, "text": "covered by a strange one"})
        flow.say(axes, "still here")
        await seen.until(lambda: "still here" in seen.texts(id))
        await seen.until(lambda: any(getattr(event, "note", "") == "Unheard" for event in seen.events[group_of(flow)]))
        levels = {event.level for event in seen.of(id, Notice)}
        assert Level.ERROR not in levels
