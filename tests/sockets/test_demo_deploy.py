"""The demo's agent with every control: approvals with an effect, steering, permissions, interrupt, reseed, stop."""

from __future__ import annotations

from pathlib import Path

from console.demo.deploy import SCHEDULE, SESSION
from tests.sockets.demo_kit import FAST, NEVER, Operator, demo
from watchfloor.protocol.events import Mail, Reseeded, ToolResult, ToolStatus
from watchfloor.protocol.frames import DoInterrupt, DoPause, DoReseed, DoResume, DoSend, DoStop
from watchfloor.protocol.model import RequestModel
from watchfloor.words import Lifecycle, OutcomeKind, RequestState, ReseedMode, Scope

DEPLOY = "deploy"
PREVIEW = "mkdir -p preview"


async def publishes(operator: Operator, number: int) -> RequestModel:
    """The request for a release, waited for."""
    return await operator.is_asked(DEPLOY, by=f"release/site-{number}.tar")


async def wants_note(operator: Operator) -> RequestModel:
    """The request to write a note, waited for. What else is asked before it is denied."""
    while (await operator.is_asked(DEPLOY)).read().actions[0].text != "notes.txt":
        await operator.decides(await operator.is_asked(DEPLOY), "deny")
    return await operator.is_asked(DEPLOY)


async def works_through(operator: Operator, number: int) -> None:
    """Allow whatever is asked until release `number` is asked for."""
    while f"site-{number}.tar" not in str((await operator.is_asked(DEPLOY)).read().actions[0].text):
        await operator.decides(await operator.is_asked(DEPLOY), "allow")


async def becomes(operator: Operator, lifecycle: Lifecycle) -> None:
    await operator.until(lambda: operator.summaries[DEPLOY].lifecycle is lifecycle)


def results(operator: Operator) -> dict[str, ToolStatus]:
    """How each call has ended."""
    return {event.call: event.status for event in operator.of(DEPLOY, ToolResult)}


async def test_what_is_approved_happens_in_the_folder_that_the_request_names(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        request = await publishes(operator, 3)
        action = request.read().actions[0]
        assert action.text == "mkdir -p release && cp build/site.tar release/site-3.tar"
        assert action.cwd == str(tmp_path)
        tar = tmp_path / "release/site-3.tar"
        assert not tar.exists()
        outcome = await operator.decides(request, "allow")
        assert outcome.outcome is OutcomeKind.APPLIED
        await operator.hears(DEPLOY, "release/site-3.tar is there")
        assert tar.read_bytes() == (tmp_path / "build/site.tar").read_bytes()
        assert results(operator)[str(action.call)] is ToolStatus.OK


async def test_what_is_denied_does_not_happen_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        request = await publishes(operator, 3)
        await operator.decides(request, "deny")
        await operator.hears(DEPLOY, "release/site-3.tar was not made")
        assert not (tmp_path / "release").exists()
        assert results(operator)[str(request.read().actions[0].call)] is ToolStatus.DECLINED
        await operator.is_asked(DEPLOY, by=PREVIEW)


async def test_the_schedule_wakes_it_for_the_next_release(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        await operator.hushes()
        await works_through(operator, 4)
        assert {mail.text for mail in operator.of(DEPLOY, Mail) if mail.by == SCHEDULE} >= {"It is time for release 4."}
        assert operator.summaries[DEPLOY].attempt == 1
        result = operator.summaries[DEPLOY].result
        assert result is not None
        assert result.text == "Release 3 is published."


async def test_a_message_is_kept_in_the_notes_where_that_is_allowed(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        for text, option in (("mind the gap", "allow"), ("mind the dog", "deny")):
            await operator.does(DEPLOY, DoSend(text=text))
            request = await wants_note(operator)
            assert f"\n+{text}\n" in (request.read().actions[0].diff or "")
            await operator.decides(request, option)
        await operator.hears(DEPLOY, "I keep no note of it")
        notes = (tmp_path / "notes.txt").read_text()
        assert "mind the gap" in notes
        assert "mind the dog" not in notes


async def test_a_permission_for_the_session_is_remembered_until_the_conversation_is_cleared(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        await operator.hushes()
        await operator.decides(await publishes(operator, 3), "allow")
        preview = await operator.is_asked(DEPLOY, by=PREVIEW)
        option = next(option for option in preview.read().options if option.id == SESSION)
        assert option.scope is Scope.SESSION
        await operator.decides(preview, SESSION)
        # Every second release has a preview: the one of release 5 is not asked for any more.
        await works_through(operator, 6)
        assert sum(PREVIEW in str(request.read().actions[0].text) for request in operator.asked(DEPLOY)) == 1
        assert "The preview is renewed; that was allowed for this session." in operator.said(DEPLOY)

        await operator.does(DEPLOY, DoInterrupt())
        await becomes(operator, Lifecycle.IDLE)
        assert (await operator.does(DEPLOY, DoReseed(mode=ReseedMode.CLEAR))).outcome is OutcomeKind.APPLIED
        await operator.until(lambda: operator.of(DEPLOY, Reseeded))
        await operator.does(DEPLOY, DoSend(text="begin again"))
        await operator.hears(DEPLOY, "My conversation is empty. I go on with release 6")
        await works_through(operator, 7)
        await operator.decides(await publishes(operator, 7), "allow")
        await operator.is_asked(DEPLOY, by=PREVIEW)


async def test_an_interrupt_withdraws_the_request_and_leaves_it_idle_until_somebody_writes(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        request = (await publishes(operator, 3)).read().id
        await operator.does(DEPLOY, DoInterrupt())
        await becomes(operator, Lifecycle.IDLE)
        assert operator.requests[request].state is RequestState.WITHDRAWN
        assert not (tmp_path / "release").exists()
        await operator.does(DEPLOY, DoSend(text="go on"))
        await operator.decides(await wants_note(operator), "allow")
        again = await publishes(operator, 3)
        assert again.read().id != request


async def test_a_pause_and_a_stop_land_while_it_rests(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        await operator.decides(await publishes(operator, 3), "allow")
        # What follows is a rest of hours: the pause must not wait for its end.
        await operator.hears(DEPLOY, "release/site-3.tar is there")
        await operator.does(DEPLOY, DoPause())
        await becomes(operator, Lifecycle.PAUSED)
        await operator.does(DEPLOY, DoResume())
        await becomes(operator, Lifecycle.RUNNING)
        await operator.does(DEPLOY, DoStop())
        await becomes(operator, Lifecycle.STOPPED)
        await operator.does(DEPLOY, DoResume())
        await operator.until(lambda: operator.summaries[DEPLOY].attempt == 2)
        await publishes(operator, 3)
