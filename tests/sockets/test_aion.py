"""An aion server's sessions as a console is told of them."""

from __future__ import annotations

import pytest

from console.connectors.aion.reading import millis
from tests.peers.aion_desk import Desk, desk, group_of, session_of
from tests.peers.aion_server import AionServer
from tests.peers.aion_world import ALL, Flow
from watchfloor.connector import Record
from watchfloor.protocol.events import Child, Level, LifecycleChanged, Message, Notice, Raw, ResultEvent
from watchfloor.protocol.frames import DoSend
from watchfloor.protocol.model import EffectsTrait, RequestsTrait, SessionKind
from watchfloor.words import Lifecycle, OutcomeKind, Primitive

BOTH = pytest.mark.parametrize("modern", [True, False], ids=["0.31", "0.10"])


def at(flow: Flow, kind: str) -> int:
    """When the last event of that kind was recorded."""
    (*_, event) = [event for event in flow.history if event["type"] == kind]
    return millis(event["data"]["envelope"]["recorded_at"])


async def lives(seen: Desk, id: str, lifecycle: str = "running") -> None:
    await seen.reads(id, lifecycle)


@BOTH
async def test_an_agent_is_shown_below_its_workflow_with_what_it_says(modern: bool) -> None:
    async with AionServer(modern=modern) as server:
        flow = server.world.flow()
        axes = flow.work()
        flow.say(axes, "hello")
        id = session_of(flow, axes)
        async with desk(server.url) as seen:
            # Listed at once, for the command line looks once only.
            shown = seen.summary(id)
            assert (shown.name, shown.parent, shown.attempt, shown.lifecycle) == (
                f"work #0 {flow.id[:8]}", group_of(flow), 1, Lifecycle.RUNNING
            )  # fmt: skip
            assert shown.labels["namespace"] == "default"
            group = seen.summary(group_of(flow))
            assert (group.kind, group.name) == (SessionKind.GROUP, f"scripted {flow.id[:8]}")
            # Neither is said to have begun when we came.
            assert (shown.since, group.since) == (at(flow, "ActivityLeased"), at(flow, "WorkflowStarted"))
            assert not seen.of(id, LifecycleChanged), "what it was when we came did not happen then"
            assert seen.capabilities(id).advertised() == (Primitive.SEND, Primitive.STOP)
            assert (seen.traits(id).effects, seen.traits(id).requests) == (EffectsTrait.PARTIAL, RequestsTrait.DERIVED)
            assert "attempt" in shown.controls["send"], "steering belongs to the attempt, and the control says so"
            await seen.until(lambda: seen.texts(id) == ["hello"])
            flow.piece(axes, "more ")
            flow.say(axes, "more to come")
            flow.complete(axes)
            flow.end()
            await lives(seen, id, "completed")
            await seen.until(lambda: seen.of(id, ResultEvent))
            assert seen.texts(id) == ["hello", "more to come"]
            result = seen.summary(id).result
            assert result is not None
            assert (result.text, result.session_id, result.stop_reason.value) == ("done", "s-1", "end_turn")
            assert seen.capabilities(id).advertised() == ()
            await lives(seen, group_of(flow), "completed")


@BOTH
async def test_what_begins_later_is_found_without_anybody_asking(modern: bool) -> None:
    async with AionServer(modern=modern) as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work()
        await lives(seen, session_of(flow, axes))
        # Workers die without a word in the history: who lives is looked at again and again.
        gone = flow.live.pop(axes)
        await lives(seen, session_of(flow, axes), "starting")
        assert seen.capabilities(session_of(flow, axes)).advertised() == ()
        flow.lease(axes, ALL)
        await lives(seen, session_of(flow, axes))
        assert len(seen.capabilities(session_of(flow, axes)).advertised()) > len(gone)
        codes = [event.code for event in seen.of(session_of(flow, axes), Notice)]
        assert "new_agent" in codes


async def test_the_namespaces_are_those_that_we_may_see() -> None:
    async with AionServer(token="a-token") as server:
        flow, other = server.world.flow(), server.world.flow(namespace="elsewhere")
        async with desk(server.url, token="a-token") as seen:
            assert group_of(flow) in seen.told
            assert group_of(other) not in seen.told


async def test_whoever_we_are_not_told_to_be_has_no_rights() -> None:
    """Check 33: a /whoami without grants grants nothing."""
    async with AionServer() as server:
        server.routes.granted = False
        server.faults.deaf.add("auto/scripted")
        flow = server.world.flow()
        axes = flow.work()
        id = session_of(flow, axes)
        async with desk(server.url) as seen:
            assert (await seen.do(id, DoSend(text="hello"))).outcome is OutcomeKind.UNKNOWN
            await seen.until(lambda: seen.told[id]["blocked"])
            assert seen.capabilities(id).act is None


async def test_what_is_only_scheduled_is_no_session() -> None:
    """Check 29."""
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        flow.schedule(7)
        axes = flow.work(8)
        await lives(seen, session_of(flow, axes))
        assert seen.agents() == [session_of(flow, axes)]


async def test_attempt_0_is_called_legacy_and_can_be_read() -> None:
    """Check 28."""
    async with AionServer() as server:
        flow = server.world.flow()
        flow.schedule()
        flow.record("ActivityStarted", activity_id=0)
        axes = (flow.run, 0, 0)
        flow.say(axes, "from before")
        id = session_of(flow, axes)
        async with desk(server.url) as seen:
            await seen.watch(id)
            await seen.until(lambda: seen.texts(id) == ["from before"])
            assert "legacy" in seen.summary(id).labels["attempts"]
            assert seen.summary(id).native_state == "legacy"


async def test_all_attempts_of_a_failed_run_stay_and_can_be_read() -> None:
    """Check 27."""
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        for number in (1, 2, 3):
            flow.say(axes, f"try {number}")
            last = number == 3
            flow.fail(axes, "exhausted: spent 3 of 3 attempts; last refusal: retryable:no" if last else "retryable:no",
                      "Terminal" if last else "Retryable")  # fmt: skip
            axes = axes if last else flow.retry(axes)
        flow.end("Failed", error={"message": "failed", "details": None})
        id = session_of(flow, axes)
        async with desk(server.url) as seen:
            await seen.until(lambda: len(seen.texts(id)) == 3)
            assert [(event.attempt, event.text) for event in seen.of(id, Message)] == [
                (1, "try 1"), (2, "try 2"), (3, "try 3")
            ]  # fmt: skip
            assert (seen.summary(id).lifecycle, seen.summary(id).attempt) == (Lifecycle.FAILED, 3)
            assert seen.summary(id).labels["attempts"] == "1, 2, 3"
            levels = [event.level for event in seen.of(id, Notice)]
            assert levels == [Level.WARNING, Level.WARNING, Level.ERROR]


async def test_a_child_is_shown_below_its_parent() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        parent = server.world.flow("family")
        child = server.world.flow(parent=parent.id)
        parent.record("ChildWorkflowStarted", child_workflow_id=child.id, workflow_type="scripted", input=None)
        await seen.until(lambda: seen.told.get(group_of(child), {}).get("parent") == group_of(parent))
        await seen.until(lambda: seen.of(group_of(parent), Child))


async def test_a_run_that_goes_on_as_a_new_one_has_sessions_of_its_own() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow("rounds")
        first = flow.work()
        flow.say(first, "round one")
        flow.complete(first)
        await seen.until(lambda: "round one" in seen.texts(session_of(flow, first)))
        flow.go_on_as_new()
        second = flow.work()
        flow.say(second, "round two")
        await seen.until(lambda: seen.texts(session_of(flow, second)) == ["round two"])
        assert seen.texts(session_of(flow, first)) == ["round one"]
        assert seen.summary(group_of(flow)).lifecycle is Lifecycle.RUNNING


async def test_an_outcome_that_lacks_a_field_is_no_record() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work()
        id = session_of(flow, axes)
        await lives(seen, id)
        flow.complete(axes, {"text": "a", "final_message": "b", "stop_reason": "end_turn"})
        await seen.until(lambda: [event.code for event in seen.of(id, Notice)] == ["contract"])
        assert seen.summary(id).result is None
        assert seen.of(id, Raw)


async def test_a_result_that_a_page_leaves_out_is_fetched() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        long = "x" * 300_000
        flow.complete(axes, {"text": long, "final_message": "b", "stop_reason": "end_turn", "session_id": "s"})
        flow.end()
        async with desk(server.url) as seen:
            result = seen.summary(session_of(flow, axes)).result
            assert result is not None
            assert (result.cut, len(result.text)) == (True, 100_000)


async def test_why_nobody_takes_the_work_is_said() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        flow.schedule(queue="open")
        axes = flow.hand_out()
        row = {"namespace": "default", "task_queue": "open", "reason": "NO_LIVE_POLLERS", "detail": "no worker"}
        server.world.unserved = [row | {"unserved_for_ms": 2000}]
        async with desk(server.url) as seen:
            await seen.until(lambda: "NO_LIVE_POLLERS" in (seen.told[session_of(flow, axes)].get("why") or ""))
            assert seen.summary(session_of(flow, axes)).lifecycle is Lifecycle.STARTING


async def test_a_new_workflow_off_the_page_is_still_found() -> None:
    """Check 34, as ours: nothing waits behind a banner, what runs is always listed."""
    async with AionServer() as server:
        old = server.world.flow("old")
        for _ in range(250):
            server.world.flow("newer").end()
        async with desk(server.url) as seen:
            assert group_of(old) in seen.told


async def test_only_what_is_looked_at_is_followed_where_that_is_wanted() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        one, two = flow.work(0), flow.work(1)
        for axes in (one, two):
            flow.say(axes, "hello")
        async with desk(server.url, record=Record.WATCHED) as seen:
            await seen.watch(session_of(flow, one))
            await seen.until(lambda: seen.texts(session_of(flow, one)) == ["hello"])
            assert len(server.of("transcript")) == 1
