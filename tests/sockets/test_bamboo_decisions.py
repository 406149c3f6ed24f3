"""Decisions on what bamboo sessions ask: each status code of the server is the outcome that it stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from console.connectors.bamboo import deciding
from tests.peers.bamboo_deciding import error
from tests.peers.bamboo_desk import BambooDesk, desk
from tests.peers.bamboo_http import Asked, Reply
from tests.peers.bamboo_server import ANCIENT_LINE, NEW_LINE, OLD_LINE, FakeBamboo, fake_bamboo
from tests.sockets.bamboo_kit import ASK_NAME, ASK_PLAN, SAY, TOUCH, Fault, begin, called, go_on, native
from watchfloor.protocol.events import Message, RequestResolved, Speaker, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoApprove
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind, RequestKind, RequestState


@pytest.fixture(params=[OLD_LINE, NEW_LINE])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeBamboo]:
    async with fake_bamboo(request.param) as made:
        yield made


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "FINALIZING_S", (0.01, 0.01))


def results(seen: BambooDesk, id: str) -> list[tuple[str, ToolStatus]]:
    return [(result.call, result.status) for result in seen.of(id, ToolResult)]


def asks(seen: BambooDesk, id: str, what: str) -> bool:
    return any(what in str(request.subject["id"]) for request in seen.open(id))


async def test_a_permission_is_approved_once_and_the_command_runs(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        done = await seen.decide(session.id, "allow_once")
        assert (done.outcome, done.info["resume"]) == (OutcomeKind.APPLIED, "started")
        assert done.info["run"] == session.last_run
        await native(seen, session.id, "completed")
        assert server.world.ran == ["touch it"]
        await seen.until(lambda: results(seen, session.id) == [("call_touch", ToolStatus.OK)])
        assert [result.text for result in seen.of(session.id, ToolResult)] == ["ran touch it"]
        (resolved,) = seen.of(session.id, RequestResolved)
        assert (resolved.option, resolved.option_kind, resolved.by) == ("allow_once", OptionKind.ALLOW, "ann")
    assert called(server, "/execute") == [], "the server goes on by itself"
    assert len(called(server, "/permission-decisions")) == 1


async def test_a_permission_is_denied_and_the_command_does_not_run(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        done = await seen.decide(session.id, "deny_once")
        assert done.outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")
        await seen.until(lambda: results(seen, session.id) == [("call_touch", ToolStatus.DECLINED)])
        assert "All done." in [said.text for said in seen.of(session.id, Message)]
    assert server.world.ran == []


async def test_what_is_allowed_for_the_session_is_not_asked_again(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, {**TOUCH, "id": "call_again"}, SAY)
        done = await seen.decide(session.id, "allow_session:command_prefix")
        assert done.outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")
    assert server.world.ran == ["touch it", "touch it"]
    (sent,) = called(server, "/permission-decisions")
    assert (sent.body["decision"], sent.body["matcher_id"]) == ("allow_session", "command_prefix")


async def test_a_global_grant_is_confirmed_and_bound_to_the_policy(server: FakeBamboo) -> None:
    server.world.policy = 3
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        request, subject = await seen.asked(session.id)
        assert {option.id for option in subject.options if option.confirm} == {
            "allow_global:exact_resource",
            "allow_global:command_prefix",
        }
        server.world.policy = 4
        do = DoApprove(request=subject.id, option="allow_global:exact_resource", digest=request.digest)
        refused = await seen.do(session.id, do)
        assert refused.outcome is OutcomeKind.STALE_TARGET
        await seen.until(lambda: seen.open(session.id) and seen.open(session.id)[0].digest != request.digest)
        done = await seen.decide(session.id, "allow_global:exact_resource")
        assert done.outcome is OutcomeKind.APPLIED
    assert server.world.ran == ["touch it"]
    sent = called(server, "/permission-decisions")[-1].body
    assert (sent["confirm_global"], sent["expected_policy_revision"]) == (True, 4)


async def test_a_question_is_answered_by_an_option_and_by_words(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, ASK_PLAN, ASK_NAME, SAY)
        _, subject = await seen.asked(session.id)
        assert (subject.kind, subject.id) == (RequestKind.QUESTION, "call_plan")
        assert (await seen.answer(session.id, "the moon")).outcome is OutcomeKind.INVALID
        assert called(server, "/respond") == [], "what the question does not take is not even sent"
        done = await seen.answer(session.id, "Stay in plan mode")
        assert done.outcome is OutcomeKind.APPLIED
        await seen.until(lambda: [request.subject["id"] for request in seen.open(session.id)] == ["call_name"])
        assert (await seen.answer(session.id, "violet")).outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")
        notes = [resolved.note for resolved in seen.of(session.id, RequestResolved)]
        assert notes == ["Stay in plan mode", "violet"]
        said = [message.text for message in seen.of(session.id, Message) if message.role is Speaker.ASSISTANT]
        assert said == ["Here is the plan.", "All done."]
        await seen.until(lambda: len(seen.of(session.id, ToolResult)) == 2)
    assert [sent.body["expected_tool_call_id"] for sent in called(server, "/respond")] == ["call_plan", "call_name"]
    assert called(server, "/execute") == []


async def test_of_two_who_answer_at_once_one_is_told_that_another_was_first(server: FakeBamboo) -> None:
    async with desk(server.url) as one, desk(server.url, user="bob") as two:
        session = begin(server, ASK_NAME, TOUCH, SAY)
        await asyncio.gather(one.asked(session.id), two.asked(session.id))
        outcomes = await asyncio.gather(one.answer(session.id, "blue"), two.answer(session.id, "green"))
        assert sorted(done.outcome for done in outcomes) == [OutcomeKind.ALREADY_DECIDED, OutcomeKind.APPLIED]
        for seen in (one, two):
            await seen.until(partial(asks, seen, session.id, "call_touch"))
        outcomes = await asyncio.gather(one.decide(session.id, "allow_once"), two.decide(session.id, "deny_once"))
        assert sorted(done.outcome for done in outcomes) == [OutcomeKind.ALREADY_DECIDED, OutcomeKind.APPLIED]
        late = next(done for done in outcomes if done.outcome is OutcomeKind.ALREADY_DECIDED)
        assert late.decided is not None
        ran = outcomes[0].outcome is OutcomeKind.APPLIED
        assert late.decided.option == ("allow_once" if ran else "deny_once")
        assert late.decided.by == "another client"
        await native(one, session.id, "completed")
        await native(two, session.id, "completed")
        assert server.world.ran == (["touch it"] if ran else [])


async def test_the_same_decision_by_another_client_is_not_ours(server: FakeBamboo) -> None:
    async with desk(server.url) as one, desk(server.url, user="bob") as two:
        session = begin(server, TOUCH, SAY)
        await asyncio.gather(one.asked(session.id), two.asked(session.id))
        outcomes = await asyncio.gather(one.decide(session.id, "allow_once"), two.decide(session.id, "allow_once"))
        assert sorted(done.outcome for done in outcomes) == [OutcomeKind.ALREADY_DECIDED, OutcomeKind.APPLIED]
        await native(one, session.id, "completed")
    assert server.world.ran == ["touch it"]


async def test_an_answer_that_was_not_taken_yet_is_sent_again(server: FakeBamboo) -> None:
    server.finalizing = 2
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        assert (await seen.decide(session.id, "allow_once")).outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")
    assert server.world.ran == ["touch it"]
    assert len(called(server, "/permission-decisions")) == 3


async def test_an_answer_that_is_never_taken_is_refused_and_stays_open(server: FakeBamboo) -> None:
    server.finalizing = 100
    async with desk(server.url) as seen:
        session = begin(server, ASK_NAME, SAY)
        done = await seen.answer(session.id, "blue")
        assert (done.outcome, done.retry_after_s) == (OutcomeKind.REFUSED, 5.0)
        assert "still finalizing" in (done.reason or "")
        assert [request.state for request in seen.open(session.id)] == [RequestState.OPEN]


async def test_an_answer_whose_fate_is_not_known_is_not_sent_again(server: FakeBamboo) -> None:
    server.after.append(Fault("/permission-decisions", lost=True))
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        done = await seen.decide(session.id, "allow_once")
        assert done.outcome is OutcomeKind.UNKNOWN
        await native(seen, session.id, "completed")
        assert seen.open(session.id) == []
        (resolved,) = seen.of(session.id, RequestResolved)
        assert resolved.state is RequestState.WITHDRAWN, "whose decision it was is not known"
    assert len(called(server, "/permission-decisions")) == 1
    assert server.world.ran == ["touch it"]


@pytest.mark.parametrize(
    ("reply", "outcome", "words"),
    [
        (error(400, "Bad request: unknown matcher id 'x'"), OutcomeKind.INVALID, "unknown matcher"),
        (Reply(400, "Json deserialize error: missing field"), OutcomeKind.INVALID, "Json deserialize error"),
        (error(401, "Unauthorized"), OutcomeKind.NOT_PERMITTED, "Unauthorized"),
        (error(403, "Forbidden: not allowed"), OutcomeKind.NOT_PERMITTED, "not allowed"),
        (error(404, "pending permission request not found"), OutcomeKind.STALE_TARGET, "not found"),
        (error(409, "Pending question changed"), OutcomeKind.STALE_TARGET, "something else now"),
        (error(409, "Pending permission generation changed"), OutcomeKind.STALE_TARGET, "generation changed"),
        (error(429, "slow down"), OutcomeKind.REFUSED, "slow down"),
        (Reply(500, {"error": "it broke"}), OutcomeKind.UNKNOWN, "it broke"),
    ],
)
async def test_what_a_refusal_means(server: FakeBamboo, reply: Reply, outcome: OutcomeKind, words: str) -> None:
    server.faults.append(Fault("/permission-decisions", reply))
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        done = await seen.decide(session.id, "allow_once")
        assert done.outcome is outcome
        assert words in (done.reason or "")
        assert [request.state for request in seen.open(session.id)] == [RequestState.OPEN]
    assert server.world.ran == []


async def test_what_somebody_else_decided_is_asked_no_more(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        request, subject = await seen.asked(session.id)
        assert seen.summary(session.id).lifecycle is Lifecycle.WAITING
        receipt = {"session_id": session.id, "decision": {"decision": "deny_once", "request_id": "call_touch"}}
        server.world.resume(session, "Deny", receipt)
        await native(seen, session.id, "completed")
        decision = seen.requests[subject.id].decision
        assert decision is not None
        assert (decision.option, decision.kind, decision.by) == ("deny_once", OptionKind.DENY, "another client")
        late = await seen.do(session.id, DoApprove(request=subject.id, option="allow_once", digest=request.digest))
        assert (late.outcome, late.decided) == (OutcomeKind.ALREADY_DECIDED, decision)
    assert called(server, "/permission-decisions") == []


@pytest.mark.parametrize("early", [True, False])
async def test_the_plan_that_is_asked_about_is_told_with_the_question(server: FakeBamboo, early: bool) -> None:
    session = server.world.create("Planner")
    if early:
        go_on(server, session, ASK_PLAN, SAY)
        assert session.task is not None
        await session.task
    async with desk(server.url) as seen:
        if not early:
            go_on(server, session, ASK_PLAN, SAY)
        request, subject = await seen.asked(session.id)
        assert subject.fields[0].label == "Plan ready."
        assert request.about == "plan: Look."


async def test_how_a_question_was_answered_elsewhere_is_told(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, ASK_NAME, SAY)
        _, subject = await seen.asked(session.id)
        server.world.resume(session, "green")
        await native(seen, session.id, "completed")
        decision = seen.requests[subject.id].decision
        assert decision is not None
        assert (decision.kind, decision.by, decision.note) == (OptionKind.ANSWER, "another client", "green")


async def test_how_it_ended_is_not_guessed_where_the_history_does_not_say_it(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, ASK_NAME, SAY)
        _, subject = await seen.asked(session.id)
        server.faults.append(Fault("/history", error(500, "it broke"), method="GET"))
        server.world.resume(session, "green")
        await seen.until(lambda: seen.requests[subject.id].state is RequestState.WITHDRAWN)
        assert seen.requests[subject.id].decision is None


@pytest.mark.parametrize("twice", ["allow_once", "deny_once"])
async def test_whose_decision_it_was_is_not_claimed_where_a_try_was_lost(server: FakeBamboo, twice: str) -> None:
    server.after.append(Fault("/permission-decisions", times=1, lost=True))
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        request, subject = await seen.asked(session.id)
        # The console does not read on until the second try: it is still open there.
        server.faults.append(Fault(session.id, error(503, "busy"), method="GET"))
        lost = await seen.do(session.id, DoApprove(request=subject.id, option="allow_once", digest=request.digest))
        assert lost.outcome is OutcomeKind.UNKNOWN
        again = await seen.do(session.id, DoApprove(request=subject.id, option=twice, digest=request.digest))
        assert again.outcome is OutcomeKind.ALREADY_DECIDED
        assert again.decided is None
        assert "by an earlier try from here or by another client" in (again.reason or "")
    assert server.world.ran == ["touch it"]


async def test_a_request_that_follows_at_once_is_not_taken_for_decided(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, {"shell": "touch more", "id": "call_more"}, SAY)
        request, subject = await seen.asked(session.id)
        begun, go_on_ = asyncio.Event(), asyncio.Event()

        async def late(asked: Asked) -> None:
            # The decision counts, its answer is late: the next request is told before it.
            if asked.path.endswith("/permission-decisions") and not begun.is_set():
                begun.set()
                await go_on_.wait()

        server.late.append(late)
        do = DoApprove(request=subject.id, option="allow_once", digest=request.digest)
        deciding_ = asyncio.create_task(seen.do(session.id, do))
        await begun.wait()
        await seen.until(lambda: session.pending is not None and session.pending["tool_call_id"] == "call_more")
        reads = len(called(server, "/respond/pending", "GET"))
        await seen.until(lambda: len(called(server, "/respond/pending", "GET")) > reads)
        go_on_.set()
        assert (await deciding_).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: asks(seen, session.id, "call_more"))
        decision = seen.requests[subject.id].decision
        assert decision is not None
        assert (decision.by, decision.option) == ("ann", "allow_once")
        assert server.world.ran == ["touch it"]


async def test_a_permission_that_waits_again_after_its_decision_is_asked_again(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        _, subject = await seen.asked(session.id)
        pending = session.pending
        server.after.append(Fault("/permission-decisions", Reply(200, {"success": True, "replayed": False})))
        assert (await seen.decide(session.id, "allow_once")).outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")
        # It went down before it had written what it had answered.
        session.pending, session.decided = pending, {}
        session.info["last_run_status"] = "suspended"
        await server.restart()
        await seen.until(lambda: seen.ended)
        await seen.close()
        await seen.read()
        await seen.until(lambda: seen.open(session.id))
        assert [one.subject["id"] for one in seen.open(session.id)] == [f"{subject.id}#2"]


async def test_the_reason_of_a_denial_is_told_to_the_run_that_goes_on(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, {"gate": "on", "call": "Read", "args": {}, "id": "call_read"}, SAY)
        request, subject = await seen.asked(session.id)
        do = DoApprove(request=subject.id, option="deny_once", digest=request.digest, note="too risky")
        done = await seen.do(session.id, do)
        assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
        decision = seen.requests[subject.id].decision
        assert decision is not None
        assert decision.note == "too risky"
        server.world.gate("on").set()
        await seen.until(lambda: "too risky" in [said.text for said in seen.of(session.id, Message)])
    assert [(sent.body["text"], sent.body["mode"]) for sent in called(server, "/guidance")] == [
        ("too risky", "after_round")
    ]
    assert server.world.ran == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Reply(404, ""), "the agent was not told why: this server takes no message"),
        (error(429, "slow down"), "the agent was not told why: not taken: slow down"),
        (error(401, "Unauthorized"), "the agent was not told why"),
        (None, "whether the agent was told why is not known"),
    ],
)
async def test_a_reason_that_was_not_told_is_said_not_to_be_told(
    server: FakeBamboo, fault: Reply | None, words: str
) -> None:
    server.faults.append(Fault("/guidance", fault, lost=fault is None))
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, {"gate": "on", **SAY})
        request, subject = await seen.asked(session.id)
        do = DoApprove(request=subject.id, option="deny_once", digest=request.digest, note="too risky")
        done = await seen.do(session.id, do)
        assert done.outcome is OutcomeKind.APPLIED, "it is denied, whatever became of the reason"
        assert words in (done.reason or "")


# --- children


async def test_a_person_decides_for_a_child_where_the_server_asks_one() -> None:
    async with fake_bamboo(ANCIENT_LINE) as server, desk(server.url) as seen:
        parent = begin(server, {"gate": "on", **SAY}, title="Parent")
        child = server.world.create("Child", parent_session_id=parent.id)
        server.world.approvals.append({"child_session_id": child.id, "request_id": "q1", "asks": True})
        await seen.until(lambda: child.id in seen.sessions)
        asked = {"type": "child_approval_requested", "child_session_id": child.id, "request_id": "q1"}
        about = {"tool_name": "Bash", "permission": "Execute shell commands", "resource": "make"}
        await seen.until(lambda: called(server, f"{parent.id}/events", "GET"))
        server.channel(parent.id, {**asked, **about})
        _, subject = await seen.asked(child.id)
        assert (subject.session, subject.actions[0].text) == (child.id, "make")
        assert seen.summary(child.id).lifecycle is Lifecycle.WAITING
        done = await seen.decide(child.id, "Approve")
        assert done.outcome is OutcomeKind.APPLIED
        assert seen.requests[subject.id].decision is not None
        server.channel(parent.id, {**asked, **about, "request_id": "q2"})
        await seen.until(lambda: [request.subject["id"] for request in seen.open(child.id)] == ["child/q2/0"])
        late = await seen.decide(child.id, "Deny")
        assert late.outcome is OutcomeKind.STALE_TARGET
        assert "not delivered" in (late.reason or "")
    assert [sent.body for sent in called(server, "/child-approval")] == [
        {"request_id": "q1", "approved": True},
        {"request_id": "q2", "approved": False},
    ]


async def test_a_childs_request_is_decided_by_its_version_where_there_is_one() -> None:
    async with fake_bamboo(OLD_LINE) as server, desk(server.url) as seen:
        parent = begin(server, {"gate": "on", **SAY}, title="Parent")
        child = server.world.create("Child", parent_session_id=parent.id)
        await seen.until(lambda: seen.sessions.get(child.id, {}).get("parent") == parent.id)
        about = {
            "parent_session_id": parent.id,
            "child_session_id": child.id,
            "child_attempt": 1,
            "request_id": "q1",
            "version": 77,
            "tool_name": "Bash",
            "permission": "Execute",
            "resource": "make",
        }
        server.world.approvals.append({**about, "state": "pending", "asks": True})
        server.quietly(parent.id, {"type": "child_approval_changed", "status": "pending", **about})
        done = await seen.decide(child.id, "Approve")
        assert done.outcome is OutcomeKind.APPLIED
        (sent,) = called(server, "/child-approval")
        assert (sent.body["expected_version"], sent.body["child_attempt"]) == (77, 1)
        server.quietly(parent.id, {"type": "child_approval_changed", "status": "pending", **about, "request_id": "q2"})
        await seen.until(lambda: [request.subject["id"] for request in seen.open(child.id)] == ["child/q2/1"])
        server.quietly(
            parent.id,
            {"type": "child_approval_changed", "status": "expired", "reason": "too late", **about, "request_id": "q2"},
        )
        await seen.until(lambda: seen.requests["child/q2/1"].state is RequestState.WITHDRAWN)
