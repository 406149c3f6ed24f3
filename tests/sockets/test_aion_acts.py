"""What an operator does to an aion server's agents and workflows, and what becomes of it."""

from __future__ import annotations

import pytest

from console.connectors.aion import offers
from tests.peers.aion_desk import Desk, desk, group_of, session_of
from tests.peers.aion_routes import HTML, JSON, PAGE, Reply, refused
from tests.peers.aion_server import AionServer
from tests.peers.aion_world import ALL, NORN, Axes, Flow, Json
from watchfloor.protocol.events import RequestResolved
from watchfloor.protocol.frames import DoAct, DoApprove, DoBudget, DoPause, DoResume, DoSend, DoStop
from watchfloor.words import OptionKind, OutcomeKind, Primitive, Priority, RequestState


async def lives(seen: Desk, id: str, lifecycle: str = "running") -> None:
    await seen.reads(id, lifecycle)


def body(server: AionServer) -> Json:
    sent: Json = server.interventions[-1]["kind"]
    return sent


async def test_all_five_primitives_are_sent_as_aion_wants_them() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work(primitives=ALL)
        id = session_of(flow, axes)
        await lives(seen, id)
        applied = OutcomeKind.APPLIED
        assert (await seen.do(id, DoSend(text="look"))).outcome is applied
        assert body(server) == {"kind": "InjectMessage", "text": "look", "priority": {"priority": "Normal"}}
        assert (await seen.do(id, DoSend(text="now", priority=Priority.INTERRUPT))).outcome is applied
        assert body(server)["priority"] == {"priority": "Interrupt"}
        assert (await seen.do(id, DoPause())).outcome is applied
        assert body(server) == {"kind": "PauseResume", "paused": True}
        assert (await seen.do(id, DoResume())).outcome is applied
        assert body(server) == {"kind": "PauseResume", "paused": False}
        assert (await seen.do(id, DoBudget(tokens=20_000))).outcome is applied
        assert body(server) == {"kind": "UpdateBudget", "max_tokens": 20_000, "max_turns": None}
        assert (await seen.do(id, DoStop(reason="wrong branch"))).outcome is applied
        assert body(server) == {"kind": "Cancel", "reason": "wrong branch"}
        # Check 22: who and when is the server's to say.
        assert all("issued_by" not in given and "issued_at" not in given for given in server.interventions)
        assert all(given["run_id"] == flow.run and given["attempt"] == 1 for given in server.interventions)


@pytest.mark.parametrize("primitives", [(), NORN, ALL])
async def test_what_is_not_advertised_is_never_offered(primitives: tuple[str, ...]) -> None:
    """Check 18, and 19: an empty set is said in words."""
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work(primitives=primitives)
        id = session_of(flow, axes)
        await lives(seen, id)
        expected = {(): 0, NORN: 2, ALL: 6}[primitives]
        assert len(seen.capabilities(id).advertised()) == expected
        if not primitives:
            assert (seen.summary(id).why or "").startswith("observe only")
        if primitives != ALL:
            assert (await seen.do(id, DoPause())).outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
            assert not server.interventions, "refused here, without asking"


async def test_an_attempt_that_does_not_live_is_offered_nothing() -> None:
    """Check 20."""
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        flow.complete(axes)
        async with desk(server.url) as seen:
            sent = await seen.do(session_of(flow, axes), DoSend(text="hello"))
            assert sent.outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
            assert not server.interventions


STALE: Json = {"outcome": "StaleTarget", "detail": "harness reported failure: between two turns"}
UNSUPPORTED: Json = {"outcome": "CapabilityNotSupported", "primitive": {"primitive": "InjectMessage"}}


async def test_the_three_outcomes_are_told_apart_and_told_verbatim() -> None:
    """Check 21: and a failure of the agent that hides in a stale target is none."""
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work()
        id = session_of(flow, axes)
        await lives(seen, id)
        server.routes.agent = lambda flow, axes, kind: STALE
        hidden = await seen.do(id, DoSend(text="a"))
        assert hidden.outcome is OutcomeKind.REFUSED
        assert str(STALE["detail"]) in (hidden.reason or "")

        def dies(flow: Flow, axes: Axes, kind: Json) -> Json:
            flow.live.clear()
            return STALE

        server.routes.agent = dies
        gone = await seen.do(id, DoSend(text="b"))
        assert (gone.outcome, gone.info) == (OutcomeKind.STALE_TARGET, {"live": False})
        flow.live[axes] = NORN
        await lives(seen, id)
        server.routes.agent = lambda flow, axes, kind: UNSUPPORTED
        assert (await seen.do(id, DoSend(text="c"))).outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
        # The agent refuses what its worker offers: that is not offered again.
        await seen.until(lambda: seen.capabilities(id).send is None)
        assert seen.capabilities(id).stop is not None
        assert len(server.interventions) == 3, "each was sent once"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ((200, JSON, '{"outcome": {"outcome": "Perhaps"}}'), OutcomeKind.UNKNOWN),
        ((200, JSON, "[]"), OutcomeKind.UNKNOWN),
        ((200, HTML, PAGE), OutcomeKind.UNKNOWN),
        (refused(404, "not_found", "workflow not found"), OutcomeKind.STALE_TARGET),
        (refused(403, "namespace_denied", "not yours"), OutcomeKind.NOT_PERMITTED),
        ((401, None, ""), OutcomeKind.NOT_PERMITTED),
        (refused(409, "not_owner", "elsewhere"), OutcomeKind.REFUSED),
        (refused(503, "backend", "draining"), OutcomeKind.REFUSED),
        (refused(500, "backend", "disk full"), OutcomeKind.UNKNOWN),
        ((422, "text/plain", "no such field"), OutcomeKind.INVALID),
        (refused(429, "lagged", "slow down"), OutcomeKind.REFUSED),
    ],
)
async def test_no_answer_that_is_none_counts_as_success(answer: Reply, outcome: OutcomeKind) -> None:
    """Check 23, and every refusal."""
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work()
        await lives(seen, session_of(flow, axes))
        server.faults.answers["/workflows/intervene"] = [answer]
        assert (await seen.do(session_of(flow, axes), DoSend(text="x"))).outcome is outcome


async def test_a_lost_answer_is_unknown_and_never_sent_again() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work()
        await lives(seen, session_of(flow, axes))
        server.faults.drops["/workflows/intervene"] = [True]
        assert (await seen.do(session_of(flow, axes), DoSend(text="x"))).outcome is OutcomeKind.UNKNOWN
        assert len(server.interventions) == 1


async def test_rows_that_do_not_say_which_attempt_they_are_are_dropped() -> None:
    """Check 24."""
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        rows = '{"attempts": [{"capabilities": {"supported": [{"primitive": "Cancel"}]}}, {"activity_id": 0}, 7]}'
        server.faults.answers["/workflows/attempts"] = [(200, JSON, rows)]
        async with desk(server.url) as seen:
            await lives(seen, session_of(flow, axes))
            assert seen.agents() == [session_of(flow, axes)]


async def test_one_unanswered_intervention_blocks_the_whole_worker_until_it_is_restarted() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        one, two = flow.work(0), flow.work(1)
        other = flow.work(2, worker="auto/other")
        ids = [session_of(flow, axes) for axes in (one, two, other)]
        for id in ids:
            await lives(seen, id)
        server.faults.deaf.add("auto/scripted")
        lost = await seen.do(ids[0], DoSend(text="hello"))
        assert lost.outcome is OutcomeKind.UNKNOWN
        assert "do not repeat" in (lost.reason or "")
        assert "restart it" in (lost.reason or "")
        await seen.until(lambda: all(set(seen.told[id]["blocked"]) == {"send", "stop"} for id in ids[:2]))
        assert not seen.told[ids[2]].get("blocked")
        assert (await seen.do(ids[1], DoStop())).outcome is OutcomeKind.INVALID
        assert len(server.interventions) == 1, "a wedged worker is asked nothing"
        done = await seen.do(ids[1], DoAct(act=offers.RESTART_WORKER, fields={}))
        assert done.outcome is OutcomeKind.APPLIED
        assert server.routes.acts == [("restart", {"worker": "auto/scripted"})]
        await seen.until(lambda: not any(seen.told[id]["blocked"] for id in ids[:2]))
        assert (await seen.do(ids[0], DoSend(text="again"))).outcome is OutcomeKind.APPLIED


async def test_while_a_worker_does_not_answer_nothing_else_is_sent_to_it() -> None:
    async with AionServer(ack_s=1.0) as server, desk(server.url) as seen:
        seen.source.acting._patience_s = 0.0
        flow = server.world.flow()
        one, two = flow.work(0), flow.work(1)
        for axes in (one, two):
            await lives(seen, session_of(flow, axes))
        server.faults.deaf.add("auto/scripted")
        first = await seen.start(session_of(flow, one), DoSend(text="hello"))
        await seen.until(lambda: True)
        second = await seen.do(session_of(flow, two), DoSend(text="hello"))
        assert second.outcome is OutcomeKind.REFUSED
        assert (await seen.outcome(first)).outcome is OutcomeKind.UNKNOWN


# --- approvals


async def test_a_declared_question_is_asked_and_decided_with_its_own_call() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work(primitives=ALL)
        id = session_of(flow, axes)
        await lives(seen, id)
        flow.ask(axes, "call-7")
        await lives(seen, id, "waiting")
        (request,) = seen.summary(id).requests
        asked = seen.requests[request.id].read()
        assert [(option.id, option.kind) for option in asked.options] == [
            ("approve", OptionKind.ALLOW), ("deny", OptionKind.DENY)
        ]  # fmt: skip
        assert asked.actions[0].text == "deploy to staging"
        do = DoApprove(request=request.id, option="deny", digest=request.digest, note="not on a Friday")
        assert (await seen.do(id, do)).outcome is OutcomeKind.APPLIED
        answer = {"call_id": "call-7", "decision": {"decision": "Deny"}, "note": "not on a Friday"}
        assert body(server) == {"kind": "RespondToApproval", **answer}
        await lives(seen, id)
        (resolved,) = seen.of(id, RequestResolved)
        assert (resolved.option, resolved.by, resolved.note) == ("deny", "ann", "not on a Friday")


async def test_a_question_that_another_console_decided_is_gone() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work(primitives=ALL)
        id = session_of(flow, axes)
        await lives(seen, id)
        flow.ask(axes, "call-7")
        await lives(seen, id, "waiting")
        (request,) = seen.summary(id).requests
        flow.speak(axes, {"kind": "ToolResult", "call_id": "call-7", "output": "x", "is_error": False})
        await lives(seen, id)
        late = await seen.do(id, DoApprove(request=request.id, option="approve", digest=request.digest))
        assert late.outcome in (OutcomeKind.ALREADY_DECIDED, OutcomeKind.STALE_TARGET)
        assert not server.interventions


async def test_a_new_agent_asks_anew_and_the_old_question_is_withdrawn() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work(primitives=ALL)
        id = session_of(flow, axes)
        await lives(seen, id)
        flow.say(axes, "begin")
        flow.ask(axes, "call-7")
        await lives(seen, id, "waiting")
        (first,) = seen.summary(id).requests
        flow.lease(axes, ALL)
        flow.say(axes, "begin")
        flow.ask(axes, "call-7")
        await seen.until(lambda: [each.id for each in seen.summary(id).requests] not in ([], [first.id]))
        (resolved,) = seen.of(id, RequestResolved)
        assert (resolved.request, resolved.state) == (first.id, RequestState.WITHDRAWN)


# --- workflows


async def test_a_workflow_takes_acts_and_no_messages() -> None:
    async with AionServer() as server, desk(server.url) as seen:
        flow = server.world.flow()
        axes = flow.work()
        await lives(seen, session_of(flow, axes))
        group = group_of(flow)
        assert seen.capabilities(group).advertised() == (Primitive.ACT,)
        assert (await seen.do(group, DoSend(text="x"))).outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
        signal = DoAct(act=offers.SIGNAL, fields={"name": "approval", "payload": '{"approved": true}'})
        assert (await seen.do(group, signal)).outcome is OutcomeKind.APPLIED
        assert server.routes.acts[-1][1]["payload"] == {"approved": True}
        await seen.until(lambda: any("signal approval" in text for text in seen.notices(group)))
        unheard = DoAct(act=offers.SIGNAL, fields={"name": "unheard"})
        assert (await seen.do(group, unheard)).outcome is OutcomeKind.INVALID
        broken = DoAct(act=offers.SIGNAL, fields={"name": "approval", "payload": "{not json"})
        assert (await seen.do(group, broken)).outcome is OutcomeKind.INVALID
        done = await seen.do(group, DoAct(act=offers.CANCEL_WORKFLOW, fields={"reason": "wrong release"}))
        assert done.outcome is OutcomeKind.APPLIED
        assert "still be at work" in (done.reason or "")
        await lives(seen, group, "stopped")
        # The agent works on, can be steered, and is cancelled by itself.
        assert "works on" in (seen.summary(session_of(flow, axes)).why or "")
        assert (await seen.do(session_of(flow, axes), DoSend(text="still there?"))).outcome is OutcomeKind.APPLIED
        flow.live.clear()
        await lives(seen, session_of(flow, axes), "stopped")
        reopened = await seen.do(group, DoAct(act=offers.REOPEN, fields={}))
        assert reopened.outcome is OutcomeKind.APPLIED
        await lives(seen, group)
