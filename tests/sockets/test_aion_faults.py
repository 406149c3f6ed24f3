"""An aion server that fails in part: what is not known is said, nothing is done twice, what is lost is told anew."""

from __future__ import annotations

import asyncio
import json

import pytest

from console.connectors.aion import connector, following
from console.connectors.aion import server as server_of
from tests.peers.aion_desk import Desk, desk, group_of, session_of
from tests.peers.aion_routes import HTML, JSON, PAGE, Reply, refused
from tests.peers.aion_server import AionServer
from tests.peers.aion_world import ALL, Axes, Flow, Json
from watchfloor.errors import Denied, NotAHost, Unreachable
from watchfloor.protocol.events import LifecycleChanged, Message, Notice, Raw, RequestResolved
from watchfloor.protocol.frames import DoAct, DoApprove, DoSend, DoStop
from watchfloor.words import Lifecycle, OutcomeKind, RequestState

BROKEN = refused(500, "backend", "store failure")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "LIST_S", 0.5)
    monkeypatch.setattr(connector, "LIVE_S", 0.5)
    monkeypatch.setattr(server_of, "PAGE", 20)


async def begun(server: AionServer, seen: Desk, primitives: tuple[str, ...] = ALL) -> tuple[Flow, Axes, str]:
    """A workflow whose agent lives, and whose transcript is followed."""
    flow = server.world.flow()
    axes = flow.work(primitives=primitives)
    flow.say(axes, "hello")
    id = session_of(flow, axes)
    await seen.until(lambda: seen.texts(id) == ["hello"])
    await server.until(lambda: server.of("transcript") or server.faults.no_sockets)
    return flow, axes, id


def codes(seen: Desk, id: str) -> list[str | None]:
    return [event.code for event in seen.of(id, Notice)]


# --- what is not known is said


async def test_a_namespace_that_cannot_be_listed_says_so_in_a_row_of_its_own() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, _, _ = await begun(server, seen)
        server.world.flow(namespace="sealed")
        server.world.namespaces = ["sealed", "default"]
        denied = refused(403, "namespace_denied", "subject not authorized for namespace sealed")
        server.faults.answers["/workflows/list"] = [denied]
        await seen.until(lambda: "sealed/" in seen.told)
        shown = seen.summary("sealed/")
        assert (shown.lifecycle, shown.name) == (Lifecycle.UNKNOWN, "namespace sealed")
        assert "not authorized" in (shown.why or "")
        assert group_of(flow) in seen.told
        # The next look finds it open.
        await seen.until(lambda: "sealed/" not in seen.told)


async def test_a_server_that_lists_nothing_is_not_shown_as_one_that_has_nothing() -> None:
    async with AionServer() as server:
        server.world.flow()
        server.faults.answers["/workflows/list"] = [BROKEN]
        with pytest.raises(Unreachable) as fault:
            await Desk(server.url).connect()
        assert "store failure" in str(fault.value)
        async with desk(server.url) as seen:
            server.faults.answers["/workflows/list"] = [BROKEN] * 20
            await seen.until(lambda: seen.over)
            assert seen.fault is not None
            assert seen.fault.retry


async def test_a_history_that_cannot_be_read_is_said_on_its_workflow() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        server.faults.answers["/workflows/history"] = [BROKEN]
        async with desk(server.url) as seen:
            assert "store failure" in (seen.summary(group_of(flow)).why or "")
            await seen.reads(session_of(flow, axes), "running")
            await seen.until(lambda: not seen.told[group_of(flow)].get("why"))


async def test_while_it_cannot_be_read_who_lives_nothing_is_offered() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        _, _, id = await begun(server, seen)
        server.faults.answers["/workflows/attempts"] = [BROKEN] * 4
        shown = await seen.reads(id, "unknown")
        assert "store failure" in (shown.why or "")
        assert seen.capabilities(id).advertised() == ()
        await seen.reads(id, "running")
        assert seen.capabilities(id).send is not None


async def test_a_transcript_that_cannot_be_read_is_said_and_the_end_is_told() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        flow.say(axes, "hello")
        flow.complete(axes)
        flow.end()
        id = session_of(flow, axes)
        server.faults.answers["/workflows/transcript"] = [BROKEN]
        async with desk(server.url) as seen:
            await seen.until(lambda: "unreadable" in codes(seen, id))
            assert seen.summary(id).lifecycle is Lifecycle.COMPLETED
            await seen.watch(id)
            await seen.until(lambda: seen.texts(id) == ["hello"])


async def test_what_of_the_past_is_not_shown_is_counted() -> None:
    async with AionServer() as server:
        for _ in range(50):
            server.world.flow("older").end()
        flow = server.world.flow()
        async with desk(server.url) as seen:
            shown = seen.summary("default/")
            assert (shown.name, shown.lifecycle) == ("31 older workflows of default", Lifecycle.COMPLETED)
            assert "not shown" in (shown.why or "")
            assert group_of(flow) in seen.told
            # Those that end while we are there are not kept for ever either, and counted as well.
            seen.source.listing._kept = 10
            await seen.until(lambda: seen.told["default/"]["name"] == "40 older workflows of default")
            assert len(seen.source.feed.workflows) == 11


async def test_an_old_server_is_asked_for_all_that_runs() -> None:
    async with AionServer(modern=False) as server:
        flows = [server.world.flow() for _ in range(45)]
        async with desk(server.url) as seen:
            assert {group_of(flow) for flow in flows} <= seen.told.keys()


async def test_no_more_sockets_are_opened_than_may_be_and_what_is_looked_at_is_followed_all_the_same() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        ids = {}
        for number in range(5):
            axes = flow.work(number)
            flow.say(axes, "hello")
            ids[session_of(flow, axes)] = axes
        made = Desk(server.url)
        made.source.attendance._most = 2
        await made.connect()
        await made.until(lambda: sum("not_followed" in codes(made, id) for id in ids) == 3)
        await server.until(lambda: len(server.of("transcript")) == 2)
        left = next(id for id in ids if "not_followed" in codes(made, id))
        await made.watch(left)
        await made.until(lambda: made.texts(left) == ["hello"])
        await server.until(lambda: len(server.of("transcript")) == 3)
        await made.close()


async def test_what_was_over_when_we_came_did_not_end_then() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        flow.complete(axes)
        for number in range(1200):
            flow.record("TimerFired", timer_id={"Anonymous": number})
        flow.end()
        async with desk(server.url) as seen:
            await seen.until(lambda: len(seen.events[group_of(flow)]) == len(flow.history))
            for id in (group_of(flow), session_of(flow, axes)):
                assert seen.summary(id).lifecycle is Lifecycle.COMPLETED
                assert not seen.of(id, LifecycleChanged)


# --- sockets


async def test_what_the_server_closes_in_good_order_is_taken_up_again() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        await server.until(lambda: server.of("firehose"))
        before = [*server.of("transcript"), *server.of("firehose")]
        for socket in before:
            socket.close(1000, "subscription complete")
        await server.until(
            lambda: {each.arm for each in server.subscribers if each not in before} >= {"transcript", "firehose"}
        )
        flow.say(axes, "after")
        await seen.until(lambda: seen.texts(id) == ["hello", "after"])


async def test_without_sockets_a_transcript_is_read_now_and_then_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "READ_EVERY_S", 0.1)
    async with AionServer() as server:
        server.faults.no_sockets = True
        async with desk(server.url) as seen:
            flow, axes, id = await begun(server, seen)
            await seen.until(lambda: "no_socket" in codes(seen, id))
            flow.say(axes, "after")
            await seen.until(lambda: seen.texts(id) == ["hello", "after"])
            flow.complete(axes)
            await seen.reads(id, "completed")


async def test_a_stream_of_events_that_is_not_for_us_is_not_asked_for_again_and_nothing_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connector, "AGAIN_S", 0.0)
    async with AionServer() as server, desk(server.url) as seen:
        await begun(server, seen)
        await server.until(lambda: server.of("firehose"))
        (socket,) = server.of("firehose")
        socket.refuse("namespace_denied", "not yours any more")
        await server.until(lambda: socket not in server.subscribers)
        later = server.world.flow("later")
        await seen.until(lambda: group_of(later) in seen.told)
        asked = [frame for frame in server.first_frames if "firehose" in frame["subscription"]]
        assert len(asked) == 1


async def test_every_break_of_a_stream_that_had_recovered_is_said() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        for number in (1, 2):
            (socket,) = server.of("transcript")
            socket.drop()
            await server.until(lambda before=socket: [each for each in server.of("transcript") if each is not before])  # type: ignore[misc]
            flow.say(axes, f"after {number}")
            await seen.until(lambda number=number: f"after {number}" in seen.texts(id))  # type: ignore[misc]
        assert codes(seen, id).count("broken") == 2


async def test_half_a_character_ends_nothing() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        flow.say(axes, "half \ud83d of one")
        flow.record("ActivityHeld", activity_id=0, reason="half \udc00", attempt=1)
        flow.complete(axes, {"text": "\ud83d", "final_message": "b", "stop_reason": "end_turn", "session_id": "s"})
        shown = await seen.reads(id, "completed")
        assert shown.result is not None
        await seen.until(lambda: seen.texts(id) == ["hello", "half ? of one"])


# --- what is lost is told anew


async def test_a_transcript_that_the_server_lost_is_told_anew() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        for text in ("one", "two"):
            flow.say(axes, text)
        flow.ask(axes, "call-7")
        await seen.reads(id, "waiting")
        (socket,) = server.of("transcript")
        flow.transcripts[axes] = []
        flow.say(axes, "begin again")
        socket.drop()
        await seen.until(lambda: "begin again" in seen.texts(id))
        assert "lost" in codes(seen, id)
        (gone,) = seen.of(id, RequestResolved)
        assert gone.state is RequestState.WITHDRAWN
        flow.ask(axes, "call-7")
        await seen.until(lambda: len(seen.summary(id).requests) == 1)


async def test_a_history_that_the_server_lost_is_told_anew() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        flow.complete(axes)
        flow.end()
        await seen.reads(id, "completed")
        # A backup from before the end.
        del flow.history[-2:]
        flow.status, flow.ended, flow.updated = "Running", None, "2026-11-30T20:00:00Z"
        flow.live[axes] = ALL
        await seen.reads(id, "running")


# --- a list that never ends


async def test_a_list_that_goes_round_is_left() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        round_ = (200, JSON, json.dumps({"items": [flow.summary()], "next_cursor": "same", "count": 1}))
        server.faults.answers["/workflows/list"] = [round_] * 5
        async with desk(server.url) as seen:
            assert group_of(flow) in seen.told


# --- who we are, and who they are


async def test_who_acts_is_named_where_nobody_asks_for_a_token() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        await begun(server, seen)
        assert server.subjects == {"ann"}
    async with AionServer(token="a-token") as server, desk(server.url, token="a-token"):
        assert server.subjects == {None}


@pytest.mark.parametrize(
    ("answer", "fault"), [(refused(403, "namespace_denied", "subject missing"), Denied), (BROKEN, Unreachable)]
)
async def test_a_server_that_refuses_to_say_who_we_are_is_no_other_server(
    answer: Reply, fault: type[Exception]
) -> None:
    async with AionServer() as server:
        server.faults.answers["/whoami"] = [answer]
        with pytest.raises(fault):
            await Desk(server.url).connect()


async def test_a_newer_server_that_hides_its_version_is_not_spoken_to_as_an_old_one() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        server.faults.answers["/build"] = [(200, HTML, PAGE)]
        async with desk(server.url) as seen:
            assert group_of(flow) in seen.told
        server.faults.answers["/build"] = [refused(503, "backend", "draining")]
        with pytest.raises(Unreachable):
            await Desk(server.url).connect()


async def test_a_server_below_a_path_is_asked_there_on_both_ways() -> None:
    async with AionServer(below="/ops/aion") as server, desk(f"{server.url}/") as seen:
        flow, axes, id = await begun(server, seen)
        flow.say(axes, "over a socket")
        await seen.until(lambda: seen.texts(id) == ["hello", "over a socket"])
        with pytest.raises(NotAHost):
            await Desk(f"aion+http://127.0.0.1:{server.port}").connect()


# --- commands


async def test_an_agent_that_did_not_answer_is_known_by_the_time_that_it_took() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        _, _, id = await begun(server, seen)
        seen.source.acting._unanswered_s = 0.0
        server.faults.answers["/workflows/intervene"] = [refused(500, "backend", "in other words")]
        lost = await seen.do(id, DoSend(text="x"))
        assert (lost.outcome, "do not repeat" in (lost.reason or "")) == (OutcomeKind.UNKNOWN, True)
        await seen.until(lambda: seen.told[id]["blocked"])
        assert seen.told[id]["native_state"] == "its worker does not answer"


async def test_a_worker_that_the_server_does_not_run_cannot_be_restarted_from_here() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work(worker="elsewhere")
        id = session_of(flow, axes)
        await seen.reads(id, "running")
        server.faults.deaf.add("elsewhere")
        lost = await seen.do(id, DoSend(text="x"))
        assert "where it runs" in (lost.reason or "")
        await seen.until(lambda: seen.told[id]["blocked"])
        assert seen.capabilities(id).act is None
        assert (await seen.do(id, DoAct(act="restart_worker", fields={}))).outcome in (
            OutcomeKind.CAPABILITY_NOT_SUPPORTED,
            OutcomeKind.INVALID,
        )
        assert not server.routes.acts


async def test_where_workers_are_not_named_one_silent_agent_holds_up_no_other() -> None:
    async with AionServer(modern=False, ack_s=1.0) as server, desk(server.url) as seen:
        seen.source.acting._patience_s = 0.0
        flow = server.world.flow()
        axes = []
        for number in (0, 1):
            flow.schedule(number)
            flow.live[each := flow.hand_out(number)] = ALL
            flow.worker[each] = f"worker {number}"
            axes.append(each)
        one, two = (session_of(flow, each) for each in axes)
        for id in (one, two):
            await seen.reads(id, "running")
        server.faults.deaf.add("worker 0")
        first = await seen.start(one, DoSend(text="hello"))
        await seen.until(lambda: True)
        assert (await seen.do(two, DoSend(text="hello"))).outcome is OutcomeKind.APPLIED
        assert (await seen.outcome(first)).outcome is OutcomeKind.UNKNOWN
        assert not seen.told[one].get("blocked")


async def test_a_server_that_takes_a_command_and_says_nothing_is_asked_once() -> None:
    async with AionServer(ack_s=60.0) as server, desk(server.url) as seen:
        _, _, id = await begun(server, seen)
        seen.source.server._ack_s = 0.3
        server.faults.deaf.add("auto/scripted")
        lost = await seen.do(id, DoSend(text="x"))
        assert lost.outcome is OutcomeKind.UNKNOWN
        assert len(server.interventions) == 1


async def test_a_workflow_that_vanishes_under_a_command_leaves_its_outcome() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow, axes, id = await begun(server, seen)
        flow.ask(axes, "call-7")
        await seen.reads(id, "waiting")
        (request,) = seen.summary(id).requests
        answered = asyncio.Event()
        went = asyncio.Event()
        plain = server.routes.answer

        async def slow(method: str, target: str, body: bytes, content_type: str) -> Reply:
            reply = await plain(method, target, body, content_type)
            if target == "/workflows/intervene":
                server.world.flows.clear()
                went.set()
                await answered.wait()
            return reply

        server.routes.answer = slow  # type: ignore[method-assign]
        do = DoApprove(request=request.id, option="approve", digest=request.digest)
        command = await seen.start(id, do)
        await went.wait()
        await seen.until(lambda: id not in seen.told)
        answered.set()
        assert (await seen.outcome(command)).outcome is OutcomeKind.APPLIED


async def test_an_attempt_that_ends_under_a_command_is_not_followed_by_another_command() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        _, axes, id = await begun(server, seen)

        def ends(flow: Flow, axes: Axes, kind: Json) -> Json:
            flow.fail(axes, "retryable:no")
            flow.retry(axes)
            return {"outcome": "StaleTarget", "detail": "no live owner for attempt 1"}

        server.routes.agent = ends
        stale = await seen.do(id, DoStop(reason="enough"), attempt=1)
        assert (stale.outcome, stale.info) == (OutcomeKind.STALE_TARGET, {"live": False})
        await seen.until(lambda: seen.told[id].get("attempt") == 2)
        assert [given["attempt"] for given in server.interventions] == [1]
        assert axes[2] == 1


async def test_an_agent_that_outlives_its_attempt_is_said_read_and_can_be_ended() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        first = flow.work()
        flow.say(first, "hello")
        # As a live server does it with an attempt that took too long.
        flow.fail(first, "timeout:activity exceeded its per-attempt bound of 600000ms")
        second = flow.retry(first)
        flow.fail(second, "exhausted: spent 2 of 2 attempts; last refusal: timeout:activity exceeded", "Terminal")
        flow.end("Failed", error={"message": "failed", "details": None})
        flow.live[first] = ("Cancel",)
        id = session_of(flow, first)
        async with desk(server.url) as seen:
            await seen.until(lambda: seen.texts(id) == ["hello"])
            shown = seen.summary(id)
            assert shown.lifecycle is Lifecycle.FAILED
            assert "attempt 1 is over, and the server still has its agent at work" in (shown.why or "")
            assert seen.capabilities(id).stop is None
            flow.say(first, "and on")
            await seen.watch(id)
            await seen.until(lambda: seen.texts(id) == ["hello", "and on"])

            def ends(flow: Flow, axes: Axes, kind: Json) -> Json:
                flow.live.clear()
                return {"outcome": "Applied"}

            server.routes.agent = ends
            act = DoAct(act="cancel_attempt_1", fields={})
            assert (await seen.do(id, act)).outcome is OutcomeKind.APPLIED
            assert [(given["attempt"], given["kind"]["kind"]) for given in server.interventions] == [(1, "Cancel")]
            await seen.until(lambda: "at work" not in (seen.told[id].get("why") or ""))
            assert seen.capabilities(id).act is None


# --- hostile text


async def test_hostile_text_in_every_field_ends_nothing_and_stays_what_it_is() -> None:
    bad = "\x1b]0;owned\x07\u202e[red]\x9b31m" + "\u200b" * 20 + "x" * 70_000
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow(bad)
        flow.more = {"display_name": bad, "failure_reason": bad, "failed_step": bad}
        flow.schedule(0, bad, bad)
        axes = flow.lease(flow.hand_out(0), ALL, bad)
        id = session_of(flow, axes)
        agent = (bad, bad)
        kinds: list[Json] = [
            {"kind": "Message", "role": {"role": bad}, "text": bad},
            {"kind": "ToolCall", "tool": bad, "call_id": bad, "input": {bad: bad}},
            {"kind": "ToolResult", "call_id": bad, "output": {bad: bad}, "is_error": bad},
            {"kind": "Progress", "detail": {"detail": "Note", "text": bad}},
            {"kind": "Progress", "detail": {"detail": bad}},
            {"kind": "Progress", "detail": {"detail": "UsageEstimate", "input_tokens": 10**30, "output_tokens": -1}},
            {"kind": "Stop", "reason": {"stop": bad, "message": bad}},
            {"kind": "Raw", "source": bad, "value": bad},
            {"kind": "Raw", "source": "approval/request", "value": {"call_id": bad, "action": bad, "options": [bad]}},
            {"kind": "Raw", "source": "session/update/plan", "value": {"entries": [{"content": bad, "status": bad}]}},
            {"kind": bad},
        ]
        for kind in kinds:
            flow.speak(axes, kind, agent)
        flow.piece(axes, bad, bad, agent)
        line = flow.event(axes, {"kind": "Message", "role": {"role": "Assistant"}, "text": "dated"})
        line["emitted_at"] = "0001-01-01T00:00:00+14:00"
        server.send_raw(flow, line)
        flow.record("SignalReceived", name=bad, payload={"bytes": [256, -1]})
        flow.record(bad, activity_id=10**400, attempt=-1)
        flow.say(axes, "still here")
        await seen.until(lambda: "still here" in seen.texts(id))
        await seen.until(lambda: seen.told[id].get("lifecycle") in ("running", "waiting"))
        (dated,) = [event for event in seen.of(id, Message) if event.text == "dated"]
        assert dated.at >= 0
        assert seen.of(id, Raw)
        assert (await seen.do(id, DoSend(text="x"))).outcome is OutcomeKind.APPLIED
        flow.fail(axes, bad, bad)
        flow.end("Failed", error={"message": bad, "details": bad})
        await seen.reads(id, "failed")
