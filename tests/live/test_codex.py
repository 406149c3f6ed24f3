"""Decisions on the requests of a real app-server: what is approved happens, what is denied does not."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.live.codex_kit import Peer, needs_codex, peer
from tests.peers import codex_mcp
from tests.peers.codex_client import script
from tests.peers.codex_desk import Desk, desk
from watchfloor.protocol.events import Diff, Message, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoAnswer, DoApprove, DoSend
from watchfloor.protocol.model import RequestModel
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind, RequestKind, RequestState, Scope, Then

pytestmark = [pytest.mark.live, needs_codex]

MCP = f"""
[mcp_servers.forms]
command = {json.dumps(sys.executable)}
args = [{json.dumps(codex_mcp.__file__)}]
"""


@pytest.fixture
async def live() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


async def idle(seen: Desk, thread: str) -> None:
    await seen.until(lambda: seen.summary(thread).lifecycle is Lifecycle.IDLE and seen.summary(thread).turn is None)


def results(seen: Desk, thread: str) -> list[ToolStatus]:
    return [event.status for event in seen.of(thread, ToolResult)]


def said(seen: Desk, thread: str) -> list[str]:
    return [event.text for event in seen.of(thread, Message)]


def touch(file: Path) -> dict[str, object]:
    return {"run": f"touch {file}", "ask": "it has to be there"}


async def test_an_approved_command_runs_once_and_is_asked_about_again(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    async with desk(live.url) as seen:
        sent = await seen.do(
            thread, DoSend(text=script(touch(live.work / "a"), touch(live.work / "b"), {"say": "made"}))
        )
        assert (sent.outcome, sent.info["delivery"]) == (OutcomeKind.APPLIED, "started")
        request, subject = await seen.asked(thread)
        assert (subject.kind, request.about) == (RequestKind.APPROVAL, "it has to be there")
        assert f"touch {live.work / 'a'}" in (subject.actions[0].text or "")
        assert subject.actions[0].cwd == str(live.work)
        assert [option.id for option in subject.options] == [
            "accept",
            "acceptWithExecpolicyAmendment",
            "decline",
            "cancel",
        ]
        assert seen.summary(thread).lifecycle is Lifecycle.WAITING
        assert not (live.work / "a").exists()
        done = await seen.decide(thread, "accept")
        assert done.outcome is OutcomeKind.APPLIED
        await seen.until(lambda: results(seen, thread) == [ToolStatus.OK])
        assert (live.work / "a").exists()
        assert (await seen.decide(thread, "accept")).outcome is OutcomeKind.APPLIED
        await idle(seen, thread)
        assert (live.work / "b").exists()
        await seen.until(lambda: "made" in said(seen, thread))
        assert results(seen, thread) == [ToolStatus.OK, ToolStatus.OK]
        ended = seen.requests[subject.id]
        assert ended.state is RequestState.RESOLVED
        assert ended.decision is not None
        assert (ended.decision.option, ended.decision.by) == ("accept", "ann")


async def test_a_denied_command_does_not_run_and_the_turn_goes_on(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    async with desk(live.url) as seen:
        await seen.do(thread, DoSend(text=script(touch(live.work / "a"), {"say": "without it"})))
        assert (await seen.decide(thread, "decline")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "without it" in said(seen, thread))
        assert results(seen, thread) == [ToolStatus.DECLINED]
        assert not (live.work / "a").exists()


async def test_a_cancelled_command_ends_the_turn(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    async with desk(live.url) as seen:
        await seen.do(thread, DoSend(text=script(touch(live.work / "a"), {"say": "never said"})))
        _, subject = await seen.asked(thread)
        cancel = next(option for option in subject.options if option.id == "cancel")
        assert (cancel.kind, cancel.then) == (OptionKind.DENY, Then.ENDS_TURN)
        assert (await seen.decide(thread, "cancel")).outcome is OutcomeKind.APPLIED
        await idle(seen, thread)
        assert "never said" not in said(seen, thread)
        assert results(seen, thread) == [ToolStatus.DECLINED]
        assert not (live.work / "a").exists()


async def test_a_rule_holds_for_every_later_thread(live: Peer) -> None:
    first = await live.other.thread(live.work)
    made = live.work / "a"
    async with desk(live.url) as seen:
        await seen.do(first, DoSend(text=script(touch(made), {"say": "made"})))
        _, subject = await seen.asked(first)
        rule = next(option for option in subject.options if option.id == "acceptWithExecpolicyAmendment")
        assert (rule.scope, rule.persists, rule.confirm) == (Scope.GLOBAL, True, True)
        assert rule.grants == (f'every command that begins with: ["touch", "{made}"]',)
        assert (await seen.decide(first, rule.id)).outcome is OutcomeKind.APPLIED
        await idle(seen, first)
        assert str(made) in (live.server.home / "rules" / "default.rules").read_text()
        made.unlink()
        second = await live.other.thread(live.work)
        await seen.until(lambda: second in seen.sessions)
        await seen.do(second, DoSend(text=script(touch(made), {"say": "made again"})))
        await seen.until(lambda: "made again" in said(seen, second))
        assert made.exists()


async def test_a_command_that_runs_in_silence_is_known_to_run(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    async with desk(live.url) as seen:
        await seen.do(thread, DoSend(text=script({"run": "sleep 30", "ask": "patience"}, {"say": "slept"})))
        done = await seen.decide(thread, "accept")
        assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
        await seen.until(lambda: seen.summary(thread).in_flight)
        assert "sleep 30" in seen.summary(thread).in_flight[0].name


async def test_a_change_of_files_is_shown_whole_and_approved_for_the_session(live: Peer) -> None:
    thread = await live.other.thread(live.work, sandbox="read-only")
    async with desk(live.url) as seen:
        await seen.do(thread, DoSend(text=script({"write": {"new.txt": "one\ntwo"}}, {"say": "written"})))
        _, subject = await seen.asked(thread)
        action = subject.actions[0]
        assert (action.text, action.diff, action.complete) == (f"add {live.work / 'new.txt'}", "+one\n+two\n", True)
        assert [option.id for option in subject.options] == ["accept", "acceptForSession", "decline", "cancel"]
        assert (await seen.decide(thread, "acceptForSession")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "written" in said(seen, thread))
        assert (live.work / "new.txt").read_text() == "one\ntwo\n"
        assert [(diff.path, diff.text) for diff in seen.of(thread, Diff)] == [
            (str(live.work / "new.txt"), "+one\n+two\n")
        ]
        await seen.do(thread, DoSend(text=script({"write": {"new.txt": "three"}}, {"say": "and again"})))
        await seen.until(lambda: "and again" in said(seen, thread))
        assert (live.work / "new.txt").read_text() == "three\n"


async def test_a_change_of_files_that_is_denied_is_not_made(live: Peer) -> None:
    thread = await live.other.thread(live.work, sandbox="read-only")
    async with desk(live.url) as seen:
        await seen.do(thread, DoSend(text=script({"write": {"new.txt": "one"}}, {"say": "not written"})))
        assert (await seen.decide(thread, "decline")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "not written" in said(seen, thread))
        await seen.do(thread, DoSend(text=script({"write": {"new.txt": "one"}}, {"say": "not reached"})))
        assert (await seen.decide(thread, "cancel")).outcome is OutcomeKind.APPLIED
        await idle(seen, thread)
        assert not (live.work / "new.txt").exists()


async def test_a_question_of_the_agent_is_answered(live: Peer) -> None:
    question = {
        "id": "region",
        "header": "Region",
        "question": "Which one?",
        "options": [{"label": "eu", "description": "Europe"}, {"label": "us", "description": "America"}],
    }
    plan = {"mode": "plan", "settings": {"model": "m", "reasoning_effort": None, "developer_instructions": None}}
    thread = await live.other.thread(live.work)
    async with desk(live.url) as seen:
        ask = {"call": "request_user_input", "with": {"questions": [question]}}
        await live.other.turn(thread, script(ask, {"say": "thanks"}), collaborationMode=plan)
        request, subject = await seen.asked(thread)
        field = subject.fields[0]
        assert (subject.kind, field.name, field.label) == (RequestKind.QUESTION, "region", "Region: Which one?")
        assert [choice.value for choice in field.choices] == ["eu", "us"]
        assert field.free_text
        done = await seen.do(thread, answer(request, {"region": "somewhere else"}))
        assert done.outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "thanks" in said(seen, thread))
    given = live.model.asked[-1]["input"][-1]
    assert json.loads(given["output"]) == {"answers": {"region": {"answers": ["somewhere else"]}}}


def answer(request: RequestModel, fields: dict[str, object]) -> DoAnswer:
    return DoAnswer.model_validate({"request": request.read().id, "digest": request.digest, "fields": fields})


async def test_tools_and_forms_of_an_mcp_server() -> None:
    async with peer(more=MCP) as live, desk(live.url) as seen:
        thread = await live.other.thread(live.work)
        await seen.until(lambda: thread in seen.sessions)
        steps = [{"call": "order", "in": "mcp__forms", "with": {"what": "tea"}}] * 2
        steps.append({"call": "form", "in": "mcp__forms"})
        await seen.do(thread, DoSend(text=script(*steps, {"say": "ordered"})))
        _, subject = await seen.asked(thread)
        assert (subject.actions[0].tool, subject.actions[0].arguments) == ("forms.order", {"what": "tea"})
        assert [option.id for option in subject.options] == [
            "accept",
            "accept:session",
            "accept:always",
            "decline",
            "cancel",
        ]
        assert (await seen.decide(thread, "accept:session")).outcome is OutcomeKind.APPLIED
        # The second order is not asked about: the next request is for the form's tool.
        await seen.until(lambda: any(r.read().actions[0].tool == "forms.form" for r in seen.open(thread)))
        assert results(seen, thread) == [ToolStatus.OK, ToolStatus.OK]
        assert (await seen.decide(thread, "accept")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: any(r.read().kind is RequestKind.QUESTION for r in seen.open(thread)))
        request, form = await seen.asked(thread)
        assert request.about == "Which flight?"
        assert {(f.name, f.type.value, f.required) for f in form.fields} == {
            ("seat", "choice", True),
            ("bags", "number", False),
            ("meal", "bool", False),
            ("note", "text", False),
        }
        done = await seen.do(thread, answer(request, {"seat": "aisle", "bags": 2}))
        assert done.outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "ordered" in said(seen, thread))
    assert any('"seat": "aisle"' in json.dumps(asked).replace('\\"', '"') for asked in live.model.asked)


@pytest.mark.parametrize("option", ["decline", "cancel"])
async def test_a_tool_of_an_mcp_server_that_is_denied_is_not_called(option: str) -> None:
    async with peer(more=MCP) as live, desk(live.url) as seen:
        thread = await live.other.thread(live.work)
        await seen.until(lambda: thread in seen.sessions)
        step = {"call": "order", "in": "mcp__forms", "with": {"what": "tea"}}
        await seen.do(thread, DoSend(text=script(step, {"say": "no tea"})))
        assert (await seen.decide(thread, option)).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "no tea" in said(seen, thread))
        assert results(seen, thread) == [ToolStatus.DECLINED]


async def test_a_tool_that_runs_in_silence_is_taken_to_run() -> None:
    async with peer(more=MCP) as live, desk(live.url) as seen:
        thread = await live.other.thread(live.work)
        await seen.until(lambda: thread in seen.sessions)
        step = {"call": "order", "in": "mcp__forms", "with": {"what": "patience"}}
        await seen.do(thread, DoSend(text=script(step, {"say": "ordered"})))
        done = await seen.decide(thread, "accept")
        assert done.outcome is OutcomeKind.APPLIED
        assert "goes on" in str(done.info["proof"])
        await seen.until(lambda: results(seen, thread) == [ToolStatus.OK])


async def test_the_agent_hears_why_something_was_denied(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    async with desk(live.url) as seen:
        steps = touch(live.work / "a"), {"run": "sleep 1"}, {"say": "without it"}
        await seen.do(thread, DoSend(text=script(*steps)))
        request, subject = await seen.asked(thread)
        deny = DoApprove(request=subject.id, option="decline", digest=request.digest, note="not on a Friday")
        done = await seen.do(thread, deny)
        assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
        await seen.until(lambda: "without it [not on a Friday]" in said(seen, thread))
        assert not (live.work / "a").exists()


async def test_a_denial_of_what_waited_before_we_came_shows_while_the_turn_goes_on(live: Peer) -> None:
    thread = await live.other.thread(live.work)
    slow = {"say": "slowly, and still more slowly", "over_s": 60}
    await live.other.turn(thread, script(touch(live.work / "a"), slow))
    await live.other.told("item/commandExecution/requestApproval", thread)
    async with desk(live.url) as seen:
        done = await seen.decide(thread, "decline")
        assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
        assert seen.summary(thread).lifecycle is Lifecycle.RUNNING
        assert not (live.work / "a").exists()


FEATURES = """
[features]
request_permissions_tool = true
exec_permission_approvals = true
"""


@pytest.mark.parametrize("option", ["turn", "nothing"])
async def test_permissions_are_granted_for_a_turn_or_not(option: str) -> None:
    wanted = {"network": {"enabled": True}, "file_system": {"write": ["/srv/x"]}}
    ask = {"call": "request_permissions", "with": {"reason": "to build", "permissions": wanted}}
    async with peer(more=FEATURES) as live, desk(live.url) as seen:
        thread = await live.other.thread(live.work)
        await seen.until(lambda: thread in seen.sessions)
        await seen.do(thread, DoSend(text=script(ask, {"say": "went on"})))
        request, subject = await seen.asked(thread)
        assert (request.about, subject.actions[0].cwd) == ("to build", str(live.work))
        assert subject.options[0].grants == ("network access", "write /srv/x")
        assert (await seen.decide(thread, option)).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "went on" in said(seen, thread))
        answer = json.loads(live.model.asked[-1]["input"][-1]["output"])
        assert (answer["scope"], bool(answer["permissions"].get("network"))) == ("turn", option == "turn")


async def test_more_permissions_for_a_command_are_an_action_of_their_own() -> None:
    more = {"network": {"enabled": True}}
    arguments = {"sandbox_permissions": "with_additional_permissions", "additional_permissions": more}
    step = {"run": "echo hello", "with": {**arguments, "justification": "to fetch"}}
    async with peer(more=FEATURES) as live, desk(live.url) as seen:
        thread = await live.other.thread(live.work)
        await seen.until(lambda: thread in seen.sessions)
        await seen.do(thread, DoSend(text=script(step, {"say": "fetched"})))
        _, subject = await seen.asked(thread)
        assert [action.tool for action in subject.actions] == ["command", "more permissions"]
        assert subject.actions[1].arguments == more
        assert (await seen.decide(thread, "accept")).outcome is OutcomeKind.APPLIED
        await seen.until(lambda: "fetched" in said(seen, thread))
        assert results(seen, thread) == [ToolStatus.OK]


async def test_input_to_a_command_that_runs_is_asked_about_by_itself(live: Peer) -> None:
    shell = {"run": "cat > typed", "ask": "to type", "with": {"tty": True, "yield_time_ms": 500}}
    thread = await live.other.thread(live.work)
    async with desk(live.url) as seen:
        for option, words in (("decline", "one\n"), ("accept", "two\n")):
            await seen.do(thread, DoSend(text=script(shell, {"type": words}, {"say": f"that was {words.strip()}"})))
            assert (await seen.decide(thread, "accept")).outcome is OutcomeKind.APPLIED
            _, subject = await seen.asked(thread)
            action = subject.actions[0]
            assert action.tool == "input to a running command"
            assert words.strip() in (action.text or "")
            # The command itself runs already: that it does proves nothing of the answer.
            assert action.call is None
            done = await seen.decide(thread, option)
            assert done.outcome is OutcomeKind.APPLIED
            assert "proof" in done.info
            await idle(seen, thread)
            assert (live.work / "typed").read_text() == ("two\n" if option == "accept" else "")
