"""The screen of one session: opened, read, decided and steered on, and left again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from console.fleet.facts import SessionKey
from console.fleet.log import KEEP, SLACK
from console.hub.pages import OlderPage
from console.screens.pages.help import HelpScreen
from console.screens.quiet import QUIET_MS
from console.screens.session.screen import SessionScreen
from tests.screens.stage import LARGE, SMALL
from tests.screens.staged import Stage, staged
from tests.screens.widget_kit import HOSTILE, check_harmless, lines, strips
from watchfloor.errors import ConnectionLost
from watchfloor.protocol import frames as f
from watchfloor.words import Primitive
from widgets.line_box import LineBox
from widgets.request_card import RequestCard
from widgets.status_bar import StatusBar
from widgets.transcript import Transcript

ALPHA = SessionKey("local", "alpha")


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        stage.host.session("alpha")
        stage.host.session("beta")
        await stage.show()
        await stage.console.select("alpha")
        yield stage


def screen(stage: Stage) -> SessionScreen:
    found = stage.console.app.screen
    assert isinstance(found, SessionScreen)
    return found


async def opened(stage: Stage) -> SessionScreen:
    """Open the selected session by its key, and wait until all parts are there."""
    await stage.press("enter")
    await stage.console.until(lambda: isinstance(stage.console.app.screen, SessionScreen), "the session screen")
    await stage.console.until(lambda: screen(stage).furnished, "its parts")
    await painted(stage)
    return screen(stage)


async def painted(stage: Stage, ms: int = 0) -> None:
    stage.clock.now += ms
    for _ in range(2):
        screen(stage).paint(everything=True)
        await stage.console.pilot.pause()
        await stage.console.pilot.pause()


async def press(stage: Stage, *keys: str) -> None:
    await stage.console.press(*keys)
    await stage.console.pilot.pause()
    if isinstance(stage.console.app.screen, SessionScreen):
        await painted(stage)


def said(stage: Stage, part: str = "#transcript") -> str:
    return "\n".join(lines(screen(stage).query_one(part)))


def notice(stage: Stage) -> str:
    found = screen(stage)
    return "\n".join(line for part in ("#notice", "#trail") for line in lines(found.query_one(part, StatusBar))).strip()


def carded(stage: Stage) -> bool:
    return bool(screen(stage).query_one(RequestCard).display)


async def armed(stage: Stage) -> None:
    """Let the card stand still before the operator for long enough."""
    card = screen(stage).query_one(RequestCard)
    for _ in range(20):
        await painted(stage, 400)
        if card.card is not None and card.card.armed == "armed":
            return
    raise AssertionError("the card was never armed")


def told(stage: Stage, *texts: str, **rest: Any) -> None:
    stage.host.events("alpha", *({"kind": "message", "text": text, **rest} for text in texts))


# --- open, read, back ----------------------------------------------------------------------


async def test_enter_opens_the_selected_session_and_esc_returns_to_it(stage: Stage) -> None:
    told(stage, "# Plan\n- one")
    await opened(stage)
    assert "- one" in said(stage)
    assert "alpha" in said(stage, "#log-rule")
    await press(stage, "escape")
    fleet = stage.console.app.fleet_screen
    assert stage.console.app.screen is fleet
    assert fleet.selected == ALPHA


async def test_where_a_request_waits_enter_shows_its_card_first_and_the_session_then(stage: Stage) -> None:
    key = stage.host.ask("r1", "alpha")
    await stage.show()
    await stage.press("enter")
    assert stage.card() == key
    await opened(stage)
    assert carded(stage)
    assert "rm -rf build" in said(stage, "#card")


async def test_what_comes_in_is_drawn_and_followed(stage: Stage) -> None:
    await opened(stage)
    stage.host.events("alpha", {"kind": "delta", "item": "m", "offset": 0, "text": "half a "})
    await painted(stage)
    assert "half a" in said(stage)
    assert "writing" in said(stage)
    told(stage, "half a sentence", item="m")
    await stage.console.pilot.pause(0.1)
    assert "half a sentence" in said(stage)
    assert "writing" not in said(stage)


async def test_a_tool_card_is_opened_and_closed(stage: Stage) -> None:
    stage.host.events(
        "alpha",
        {"kind": "tool_call", "call": "c", "name": "shell", "text": "make"},
        {"kind": "tool_output", "call": "c", "text": "".join(f"line {at}\n" for at in range(20))},
    )
    await opened(stage)
    assert "line 19" not in said(stage)
    await press(stage, "enter")
    assert "line 19" in said(stage)
    await press(stage, "enter")
    assert "line 19" not in said(stage)


async def test_a_key_shows_what_was_written(stage: Stage) -> None:
    told(stage, "```py\nx = 1\n```")
    await opened(stage)
    assert "```" not in said(stage)
    await press(stage, "v")
    assert "```py" in said(stage)
    await press(stage, "v")
    assert "```" not in said(stage)


async def test_the_text_of_a_block_is_copied(stage: Stage) -> None:
    told(stage, "```py\nx = 1\n```")
    await opened(stage)
    await press(stage, "y")
    assert "```py\nx = 1\n```" in stage.console.app.clipboard


async def test_nothing_that_came_acts_on_the_terminal(stage: Stage) -> None:
    told(stage, *HOSTILE)
    for text in HOSTILE:
        stage.host.events("alpha", {"kind": "tool_call", "call": text, "name": text, "text": text})
    found = await opened(stage)
    transcript = found.query_one(Transcript)
    for _ in range(len(HOSTILE) * 2):
        check_harmless(strips(transcript), transcript.size.width)
        await press(stage, "v", "k")


# --- decide --------------------------------------------------------------------------------


async def test_a_request_is_decided_on_its_card_once_that_was_read(stage: Stage) -> None:
    await opened(stage)
    key = stage.host.ask("r1", "alpha")
    stage.host.events(
        "alpha", {"kind": "request_opened", "request": "r1", "request_kind": "approval", "digest": "sha256:x"}
    )
    await painted(stage)
    assert "waits for you" in said(stage)
    assert not carded(stage), "a request that comes in takes no place by itself"
    await press(stage, "a")
    assert carded(stage)
    assert not stage.sent
    assert "read it first" in notice(stage)
    await press(stage, "a")
    assert not stage.sent, "not before it is armed"
    await armed(stage)
    await press(stage, "a")
    assert [(intent.primitive, intent.request, intent.option) for intent in stage.sent] == [
        (Primitive.APPROVE, key.request, "yes")
    ]


async def test_enter_on_a_request_of_the_transcript_opens_its_card(stage: Stage) -> None:
    stage.host.ask("r1", "alpha")
    stage.host.events(
        "alpha", {"kind": "request_opened", "request": "r1", "request_kind": "approval", "digest": "sha256:x"}
    )
    await stage.show()
    stage.console.app.fleet_screen.open_session()
    await stage.console.until(lambda: isinstance(stage.console.app.screen, SessionScreen), "the session screen")
    await stage.console.until(lambda: screen(stage).furnished, "its parts")
    await painted(stage)
    await press(stage, "enter")
    assert carded(stage)


async def test_a_card_taken_over_from_the_fleet_screen_has_to_arm_anew(stage: Stage) -> None:
    stage.host.ask("r1", "alpha")
    await stage.show()
    await stage.press("enter")
    await stage.show(5_000)
    await opened(stage)
    await press(stage, "a")
    assert not stage.sent
    await armed(stage)
    await press(stage, "a")
    assert len(stage.sent) == 1


async def test_the_next_request_of_another_session_turns_the_screen_and_the_selection(stage: Stage) -> None:
    await opened(stage)
    stage.host.ask("r2", "beta")
    await painted(stage)
    await press(stage, "i")
    assert carded(stage)
    assert screen(stage).selected == SessionKey("local", "beta")
    await press(stage, "escape", "escape")
    assert stage.console.app.fleet_screen.selected == SessionKey("local", "beta")


async def test_where_nothing_can_be_read_nothing_is_decided(stage: Stage) -> None:
    stage.host.ask("r1", "alpha")
    await stage.show()
    await stage.press("enter")
    await opened(stage)
    await armed(stage)
    await stage.console.pilot.resize_terminal(30, 10)
    await painted(stage)
    await press(stage, "a")
    assert not stage.sent


# --- steer ---------------------------------------------------------------------------------


async def test_a_message_is_sent_and_what_was_begun_is_kept_on_both_screens(stage: Stage) -> None:
    await stage.press("s")
    await stage.console.type("hello")
    await stage.press("escape")
    await stage.show(QUIET_MS + 1)
    await opened(stage)
    await press(stage, "s")
    await stage.console.type(" there")
    await press(stage, "escape")
    await painted(stage, QUIET_MS + 1)
    await press(stage, "s")
    await press(stage, "enter")
    assert [(intent.primitive, intent.text) for intent in stage.sent] == [(Primitive.SEND, "hello there")]


async def test_what_was_sent_before_comes_back_by_a_key(stage: Stage) -> None:
    await opened(stage)
    for text in ("one", "two"):
        await press(stage, "s", *text, "enter")
        await painted(stage, QUIET_MS + 1)
    await press(stage, "s", "up", "up", "down", "!", "enter")
    assert [intent.text for intent in stage.sent] == ["one", "two", "two!"]


async def test_what_is_typed_on_behind_a_text_is_no_key(stage: Stage) -> None:
    await opened(stage)
    await press(stage, "s")
    await stage.console.type("go")
    await press(stage, "enter")
    await press(stage, "p")
    assert [intent.primitive for intent in stage.sent] == [Primitive.SEND]
    await painted(stage, QUIET_MS + 1)
    await press(stage, "p")
    assert stage.sent[-1].primitive is Primitive.PAUSE


async def test_a_command_outlives_the_screen_on_which_it_was_given(stage: Stage) -> None:
    await opened(stage)
    begun, let = asyncio.Event(), asyncio.Event()
    arrived: list[str] = []

    async def slow(trail: Any, **_: float) -> None:
        begun.set()
        await let.wait()
        arrived.append(trail.id)

    stage.console.app.hub.dispatch = slow  # type: ignore[method-assign]
    await press(stage, "p")
    await begun.wait()
    await press(stage, "escape")
    assert stage.console.app.screen is stage.console.app.fleet_screen
    let.set()
    await stage.console.until(lambda: arrived, "the command to arrive")


async def test_a_console_that_only_watches_has_no_key_that_intervenes(tmp_path: Path) -> None:
    async with staged(tmp_path, read_only=True) as stage:
        stage.host.session("alpha")
        stage.host.ask("r1", "alpha")
        await stage.show()
        stage.console.app.fleet_screen.open_session()
        await stage.console.until(lambda: isinstance(stage.console.app.screen, SessionScreen), "the session screen")
        await stage.console.until(lambda: screen(stage).furnished, "its parts")
        await painted(stage, 2_000)
        await press(stage, *"aadspPxrX")
        assert not stage.sent


async def test_an_attempt_that_is_over_can_only_be_read(stage: Stage) -> None:
    told(stage, "first")
    told(stage, "second", attempt=2)
    stage.host.summary("alpha", attempt=2)
    await opened(stage)
    assert "first" in said(stage)
    await press(stage, "t")
    assert "first" not in said(stage)
    assert "second" in said(stage)
    await press(stage, "p")
    assert len(stage.sent) == 1, "the attempt that runs can be steered"
    await press(stage, "t")
    assert "first" in said(stage)
    await press(stage, "x")
    assert len(stage.sent) == 1
    assert "attempt 1 is over" in notice(stage)
    await press(stage, "t")
    assert "second" in said(stage)
    assert "first" in said(stage)


async def test_the_help_lists_its_keys(stage: Stage) -> None:
    await opened(stage)
    await press(stage, "question_mark")
    await stage.console.until(lambda: isinstance(stage.console.app.screen, HelpScreen), "the help")
    await stage.console.press("escape")
    await stage.console.until(lambda: isinstance(stage.console.app.screen, SessionScreen), "the session again")


# --- what is earlier -----------------------------------------------------------------------


class Past:
    """Stands for the source: gives pages as its intake would make them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.asked: list[int] = []
        self.fault: Exception | None = None

    async def older(self, key: SessionKey, before: int, *, wait_s: float) -> OlderPage:
        self.asked.append(before)
        if self.fault is not None:
            raise self.fault
        first = max(1, before - 50)
        events = [
            {"kind": "message", "seq": seq, "pos": seq, "at": 1_000, "attempt": 1, "text": f"old {seq}"}
            for seq in range(first, before)
        ]
        frame = f.Page.model_validate(
            {"id": "p", "session": key.session, "epoch": "e1", "events": events, "first": first, "last": before - 1,
             "more": first > 1}
        )  # fmt: skip
        (fact,) = self._stage.host.intake.frame(frame)
        return OlderPage("e1", fact.events, more=first > 1)  # type: ignore[union-attr]


@pytest.fixture
async def past(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Past:
    past = Past(stage)
    monkeypatch.setattr(stage.console.app.hub, "older", past.older)
    told(stage, *(f"new {at}" for at in range(1, KEEP + SLACK + 60)))
    await opened(stage)
    return past


def oldest(stage: Stage) -> int:
    log = stage.console.app.hub.fleet.sessions[ALPHA].log
    return log.entry(0).fact.seq or 0


async def test_what_is_earlier_is_asked_for_at_the_top_and_stands_above(stage: Stage, past: Past) -> None:
    first = oldest(stage)
    assert f"{first - 1:,} earlier entries" in said(stage)
    assert past.asked == []
    await press(stage, "g")
    await stage.console.until(lambda: past.asked == [first], "a page asked for")
    await painted(stage)
    before = said(stage).splitlines()[:-1]
    assert f"new {first}" in "\n".join(before), "what was read stays where it was"
    await press(stage, "k")
    assert f"old {first - 1}" in said(stage)
    await press(stage, "g")
    await stage.console.until(lambda: len(past.asked) == 2, "the page before that")
    assert past.asked[1] == first - 50


async def test_the_beginning_is_told(stage: Stage, past: Past) -> None:
    for _ in range(12):
        await press(stage, "g")
        await painted(stage)
    assert past.asked[-1] <= 51
    assert "from the beginning" in said(stage)
    count = len(past.asked)
    await press(stage, "g", "k", "k")
    assert len(past.asked) == count, "nothing is before the beginning"


async def test_it_is_told_why_nothing_came(stage: Stage, past: Past) -> None:
    past.fault = ConnectionLost("not sent: local is not connected")
    await press(stage, "g")
    await painted(stage)
    assert "nothing earlier came: not sent: local is not connected" in said(stage)
    past.fault = None
    await press(stage, "g")
    await painted(stage)
    assert "earlier entries" in said(stage)


# --- the smallest terminal -----------------------------------------------------------------


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x50"])
async def test_every_part_is_on_the_screen(tmp_path: Path, size: tuple[int, int]) -> None:
    async with staged(tmp_path, size) as stage:
        stage.host.session("alpha")
        stage.host.ask("r1", "alpha")
        await stage.show()
        await stage.press("enter")
        found = await opened(stage)
        assert carded(stage)
        for part in ("#card", "#transcript", "#footer"):
            region = found.query_one(part).region
            assert region.height >= 1, part
            assert found.region.contains_region(region), part


async def test_details_stand_beside_or_come_by_a_key(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL) as stage:
        stage.host.session("alpha", traits={"stop_leaves_process": True})
        stage.host.events("alpha", {"kind": "mail", "ref": "#1", "state": "sent", "delivery": "queued", "text": "hi"})
        await stage.show()
        await opened(stage)
        await press(stage, "f")
        assert "stop leaves its process alive" in said(stage, "#facts")
        assert "#1 sent, queued: hi" in said(stage, "#facts")
        await press(stage, "p")
        assert not stage.sent, "what is acted on has to be seen"
        await press(stage, "escape")


async def test_it_is_watched_while_it_is_open(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[SessionKey | None, bool]] = []

    def look(key: SessionKey | None, *, opened: bool = False) -> None:
        looked.append((key, opened))

    monkeypatch.setattr(stage.console.app.hub, "look", look)
    await opened(stage)
    await stage.console.until(lambda: (ALPHA, True) in looked, "the session to be looked at")


async def test_a_session_that_is_gone_takes_no_command(stage: Stage) -> None:
    await opened(stage)
    stage.host.tell(f.Gone(sessions=("alpha",)))
    await painted(stage)
    await press(stage, "p")
    assert not stage.sent
    await press(stage, "escape")
    assert stage.console.app.screen is stage.console.app.fleet_screen


# --- looked through ------------------------------------------------------------------------


def selected(stage: Stage) -> str:
    block = screen(stage).query_one(Transcript).selected_block
    return block.source if block is not None else ""


def line(stage: Stage) -> str:
    return " ".join(text for part in screen(stage).query_one(LineBox).query("_Said") for text in lines(part))


async def test_a_text_is_looked_for_and_its_places_are_gone_to(stage: Stage) -> None:
    told(stage, "the Red door", "a blue one", "another red one", "green")
    await opened(stage)
    await press(stage, "slash", *"red")
    assert "2 found" in line(stage)
    await press(stage, "enter")
    assert "another red one" in selected(stage)
    assert "red: 2 of 2" in said(stage)
    await press(stage, "n")
    assert "the Red door" in selected(stage)
    await press(stage, "N")
    assert "another red one" in selected(stage)
    await press(stage, "escape")
    assert isinstance(stage.console.app.screen, SessionScreen), "the search goes first"
    assert "red:" not in said(stage)
    await press(stage, "n")
    assert "nothing was looked for: go to the transcript" in notice(stage)


async def test_what_arrives_is_found_as_well_and_the_cursor_stays(stage: Stage) -> None:
    told(stage, "red one", "blue")
    await opened(stage)
    await press(stage, "slash", *"red", "enter")
    told(stage, "red two")
    await painted(stage)
    assert "red one" in selected(stage)
    assert "red: 1 of 2" in said(stage)


async def test_what_is_not_there_is_said_and_the_line_stays(stage: Stage) -> None:
    told(stage, "red one")
    await opened(stage)
    await press(stage, "slash", *"mauve", "enter")
    assert "not found" in line(stage)
    assert screen(stage).line_open


async def test_a_time_is_gone_to(stage: Stage) -> None:
    told(stage, "early", at=stage.clock.now - 3_600_000)
    told(stage, "late", at=stage.clock.now - 60_000)
    await opened(stage)
    await press(stage, "T", *"2m", "enter")
    assert "late" in selected(stage)
    await press(stage, "T", *"2h", "enter")
    assert "early" in selected(stage)
    await press(stage, "T", *"soon", "enter")
    assert "a time such as 14:03" in line(stage)


# --- the mailbox ---------------------------------------------------------------------------


async def mailed(stage: Stage, **send: Any) -> None:
    stage.host.session("alpha", {"send": {"priorities": ["normal"], **send}})
    stage.host.events(
        "alpha",
        {"kind": "mail", "ref": "#1", "state": "consumed", "delivery": "started", "by": "ann", "text": "use port 5"},
        {"kind": "mail", "ref": "#2", "state": "sent", "by": "bob", "text": "which one?", "reply_to": "#1"},
    )
    await opened(stage)
    await press(stage, "M")
    await stage.console.until(lambda: screen(stage).focused is screen(stage).query_one("#mailbox"), "the mailbox")


async def test_the_mailbox_lists_every_message_and_a_key_answers_one(stage: Stage) -> None:
    await mailed(stage, replies=True)
    assert not screen(stage).query_one(Transcript).display
    said_there = said(stage, "#mailbox")
    assert "#2" in said_there
    assert "use port 5" in said_there
    await press(stage, "j")
    assert "the agent has read it; it began a turn" in said(stage, "#letter")
    assert "#2" in said(stage, "#letter"), "what answers it"
    await press(stage, "enter", *"six", "enter")
    assert [(intent.text, intent.reply_to) for intent in stage.sent] == [("six", "#1")]
    await painted(stage, QUIET_MS + 1)
    await press(stage, "escape")
    assert screen(stage).query_one(Transcript).display
    assert screen(stage).focused is screen(stage).query_one(Transcript)


async def test_where_no_answer_is_offered_the_mailbox_says_so_and_is_still_read(stage: Stage) -> None:
    await mailed(stage)
    await press(stage, "enter")
    assert "does not offer a message that answers another one" in notice(stage)
    stage.host.events("alpha", {"kind": "mail", "ref": "#3", "state": "error", "error": "it was stopped"})
    await painted(stage, 1_000)
    await press(stage, "g")
    assert "#3" in said(stage, "#letter")
    assert "it was stopped" in said(stage, "#letter")


async def test_looking_for_a_text_brings_the_transcript_back(stage: Stage) -> None:
    await mailed(stage)
    await press(stage, "slash")
    assert screen(stage).query_one(Transcript).display
    assert screen(stage).query_one(LineBox).is_open
