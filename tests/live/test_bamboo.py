"""The bamboo connector against real servers: what is approved happens, what is denied does not, and nothing twice."""

from __future__ import annotations

import asyncio

import pytest

from tests.live.bamboo_kit import OLD, Live, each_line, live, needs_bamboo
from tests.peers.bamboo_desk import BambooDesk, desk
from tests.sockets.bamboo_kit import LONG, native, script, send
from watchfloor.protocol.events import Delta, Message, Notice, RequestResolved, Speaker, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoApprove, DoDelete, DoInterrupt, DoSend
from watchfloor.words import Lifecycle, OutcomeKind, RequestKind, StopReason

pytestmark = [pytest.mark.live, needs_bamboo, each_line]

PLAN = {"call": "ExitPlanMode", "args": {"plan": "First look."}, "id": "call_plan"}


async def worker(server: Live, seen: BambooDesk) -> str:
    id = await server.session()
    await seen.until(lambda: id in seen.sessions)
    return id


async def said(seen: BambooDesk, id: str, words: str) -> None:
    await seen.until(lambda: words in [m.text for m in seen.of(id, Message) if m.role is Speaker.ASSISTANT])


async def test_a_question_is_answered_by_an_option_and_by_words(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        tool = await server.asker()
        id = await worker(server, seen)
        ask = {"call": tool, "args": {"question": "Which name?", "options": ["blue", "green"]}, "id": "call_name"}
        assert (await send(seen, id, PLAN, ask, {"say": "All done."})).info["delivery"] == "started"
        _, subject = await seen.asked(id)
        assert (subject.kind, subject.id) == (RequestKind.QUESTION, "call_plan")
        done = await seen.answer(id, "Approve (Default mode)")
        assert (done.outcome, done.info["resume"]) == (OutcomeKind.APPLIED, "started")
        await seen.until(lambda: [request.subject["id"] for request in seen.open(id)] == ["call_name"])
        assert seen.summary(id).lifecycle is Lifecycle.WAITING
        assert (await seen.answer(id, "violet")).outcome is OutcomeKind.APPLIED
        await said(seen, id, "All done.")
        await native(seen, id, "completed")
        await seen.until(lambda: len(seen.of(id, ToolResult)) == 2)
        assert [result.text for result in seen.of(id, ToolResult)][1] == "Selected response: violet"
        assert [resolved.note for resolved in seen.of(id, RequestResolved)] == ["Approve (Default mode)", "violet"]


async def test_a_permission_is_approved_once_and_one_is_denied(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        id = await worker(server, seen)
        for name, option in (("yes", "allow_once"), ("no", "deny_once")):
            file = server.work / name
            await send(seen, id, {"shell": f"touch {file}", "id": f"call_{name}"}, {"say": f"So {name}."})
            _, subject = await seen.asked(id)
            assert subject.actions[0].text == f"touch {file}"
            assert not file.exists()
            assert (await seen.decide(id, option)).outcome is OutcomeKind.APPLIED
            await said(seen, id, f"So {name}.")
            await native(seen, id, "completed")
            assert file.exists() is (option == "allow_once")
        await seen.until(lambda: len(seen.of(id, ToolResult)) == 2)
        assert [(result.call, result.status) for result in seen.of(id, ToolResult)] == [
            ("call_yes", ToolStatus.OK),
            ("call_no", ToolStatus.DECLINED),
        ]


async def test_a_run_is_interrupted_and_the_session_takes_more(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        id = await worker(server, seen)
        await send(seen, id, LONG)
        await seen.until(lambda: seen.of(id, Delta))
        run = seen.summary(id).turn
        done = await seen.do(id, DoInterrupt(), turn=run)
        assert (done.outcome, done.info["exact"]) == (OutcomeKind.APPLIED, line != OLD)
        await native(seen, id, "cancelled")
        result = seen.summary(id).result
        assert result is not None
        assert result.stop_reason is StopReason.CANCELLED
        assert [notice.code for notice in seen.of(id, Notice)] == ["interrupted"]
        await send(seen, id, {"say": "Here again."})
        await said(seen, id, "Here again.")


async def test_a_running_session_is_given_a_word_and_is_deleted(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        id = await worker(server, seen)
        read = {"call": "Read", "args": {"file_path": str(server.peer.notes)}, "id": "call_read", "gate": "read"}
        await send(seen, id, read, {"say": "Read.", "gate": "end"})
        await native(seen, id, "running")
        steered = await seen.do(id, DoSend(text="Be brief."))
        assert (steered.outcome, steered.info["delivery"]) == (OutcomeKind.APPLIED, "steered")
        server.release("read")
        server.release("end")
        await said(seen, id, "Read.")
        await native(seen, id, "completed")
        await seen.until(lambda: "Be brief." in [m.text for m in seen.of(id, Message) if m.role is Speaker.OPERATOR])
        await send(seen, id, LONG)
        await native(seen, id, "running")
        assert (await seen.do(id, DoDelete())).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: id not in seen.sessions)


async def test_what_was_asked_before_a_restart_is_answered_after_it(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        id = await worker(server, seen)
        file = server.work / "after"
        await send(seen, id, {"shell": f"touch {file}", "id": "call_touch"}, {"say": "Through."})
        before, _ = await seen.asked(id)
        await asyncio.to_thread(server.peer.stop, kill=True)
        await seen.until(lambda: seen.ended)
        assert seen.fault is not None
        await seen.close()
        await asyncio.to_thread(server.peer.start)
        await seen.read()
        await seen.until(lambda: seen.open(id))
        assert [request.digest for request in seen.open(id)] == [before.digest], "it is the same request"
        assert (await seen.decide(id, "allow_once")).outcome is OutcomeKind.APPLIED
        await said(seen, id, "Through.")
        assert file.exists()


async def test_of_two_who_decide_at_once_one_is_told_so(line: str) -> None:
    async with live(line) as server, desk(server.url) as one, desk(server.url, user="bob") as two:
        id = await worker(server, one)
        file = server.work / "both"
        await send(one, id, PLAN, {"shell": f"touch {file}", "id": "call_both"}, {"say": "Well."})
        await asyncio.gather(one.asked(id), two.asked(id))
        answers = await asyncio.gather(one.answer(id, "Stay in plan mode"), two.answer(id, "Edit plan first"))
        assert sorted(done.outcome for done in answers) == [OutcomeKind.ALREADY_DECIDED, OutcomeKind.APPLIED]
        for seen in (one, two):
            await seen.until(lambda seen=seen: "call_both" in str([r.subject["id"] for r in seen.open(id)]))  # type: ignore[misc]
        decisions = await asyncio.gather(one.decide(id, "allow_once"), two.decide(id, "deny_once"))
        assert sorted(done.outcome for done in decisions) == [OutcomeKind.ALREADY_DECIDED, OutcomeKind.APPLIED]
        await said(one, id, "Well.")
        assert file.exists() is (decisions[0].outcome is OutcomeKind.APPLIED)
        late = next(done for done in decisions if done.outcome is OutcomeKind.ALREADY_DECIDED)
        assert late.decided is not None
        assert late.decided.option == ("allow_once" if file.exists() else "deny_once")


async def test_the_reason_of_a_denial_reaches_the_model(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        id = await worker(server, seen)
        file = server.work / "why"
        await send(seen, id, {"shell": f"touch {file}", "id": "call_why"}, {"say": "So no."})
        request, subject = await seen.asked(id)
        do = DoApprove(request=subject.id, option="deny_once", digest=request.digest, note="Ask me first.")
        done = await seen.do(id, do)
        assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
        await said(seen, id, "So no.")
        await native(seen, id, "completed")
        assert "Ask me first." in [asked["last"]["content"] for asked in await server.seen_by_model()]
        assert not file.exists()


async def test_what_another_client_decided_is_told(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        id = await worker(server, seen)
        await send(seen, id, PLAN, {"shell": "true", "id": "call_true"}, {"say": "Well."})
        request, subject = await seen.asked(id)
        assert request.about == "plan: First look."
        await server.post(f"/sessions/{id}/respond", {"response": "Stay in plan mode"})
        await seen.until(lambda: seen.requests[subject.id].decision)
        answered = seen.requests[subject.id].decision
        assert answered is not None
        assert (answered.by, answered.note) == ("another client", "Stay in plan mode")
        _, subject = await seen.asked(id)
        call, _, generation = subject.id.partition("/")
        decision = {"request_id": call, "request_generation": generation, "decision": "deny_session"}
        await server.post(f"/sessions/{id}/permission-decisions", decision)
        await seen.until(lambda: seen.requests[subject.id].decision)
        denied = seen.requests[subject.id].decision
        assert denied is not None
        assert (denied.by, denied.option) == ("another client", "deny_session:exact_resource")
        await said(seen, id, "Well.")


async def test_children_are_a_tree_and_nobody_is_asked_for_them(line: str) -> None:
    async with live(line) as server, desk(server.url) as seen:
        id = await worker(server, seen)
        child = {"gate": "child", "say": "A word from the child."}
        make = {
            "action": "create",
            "title": "Helper",
            "responsibility": "Help",
            "subagent_type": "worker",
            "workspace": str(server.work),
            "prompt": script(child),
        }
        wait = {"call": "SubAgent", "args": {"action": "wait"}, "id": "call_wait"}
        await send(seen, id, {"call": "SubAgent", "args": make, "id": "call_make"}, wait, {"say": "They are done."})
        assert (await seen.decide(id, "allow_session:exact_resource")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: len(seen.sessions) == 2)
        (helper,) = seen.sessions.keys() - {id}
        await seen.until(lambda: seen.sessions[helper].get("parent") == id)
        await native(seen, id, "waiting for children")
        assert seen.summary(id).lifecycle is Lifecycle.RUNNING
        assert seen.summary(helper).name == "Helper"
        assert seen.open(helper) == []
        server.release("child")
        await said(seen, helper, "A word from the child.")
        await said(seen, id, "They are done.")
        await native(seen, id, "completed")
