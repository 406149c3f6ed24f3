"""What a single key has begun waits a moment before it leaves: the first letter of a text decides nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key

from console.fleet.facts import RequestKey
from console.fleet.state import Trail
from console.screens.quiet import HOLD_MS
from tests.screens.staged import ALLOW, DENY, Stage, staged
from watchfloor.errors import ConnectionLost
from watchfloor.words import OutcomeKind


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        hub = stage.console.app.hub
        del hub.dispatch

        gone: list[str] = []

        async def send(source: str, frame: Any) -> None:
            gone.append(frame.do.primitive)

        hub._lines.send = send  # type: ignore[assignment, method-assign]
        stage.left = gone  # type: ignore[attr-defined]
        stage.host.session()
        yield stage


def left(stage: Stage) -> list[str]:
    found: list[str] = stage.left  # type: ignore[attr-defined]
    return found


def newest(stage: Stage) -> Trail:
    return next(reversed(stage.host.fleet.trails.values()))


async def carded(stage: Stage, text: str = "make test") -> RequestKey:
    """A card that counts keys."""
    key = stage.host.ask(text=text, call=None, options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    return key


async def sent(stage: Stage, *primitives: str) -> None:
    await stage.console.until(lambda: left(stage) == list(primitives), f"{primitives} have left")


@pytest.mark.parametrize("behind", ["p", "s", "f", "h", "w"])
async def test_a_letter_that_follows_at_once_takes_it_back_whatever_it_stands_for(stage: Stage, behind: str) -> None:
    key = await carded(stage)
    await stage.press("a")
    assert newest(stage).sent_at is None
    assert "approve: requested" in stage.console.trail
    await stage.press(behind)
    trail = newest(stage)
    assert (trail.outcome, trail.verb) == (OutcomeKind.UNDELIVERED, "approve")
    assert "as letters of a text do" in trail.reason
    assert stage.host.request(key).open
    assert left(stage) == []
    assert stage.console.app.hub.held == ()


@pytest.mark.parametrize("text", ["approve it", "deny that one please", "pause there", "always yes approve now"])
async def test_a_sentence_where_no_line_is_open_decides_nothing(stage: Stage, text: str) -> None:
    key = await carded(stage)
    await stage.console.pilot.press(*(" ".join(text).replace("   ", " space ").split()))
    await stage.show()
    assert stage.console.app.hub.held == ()
    assert left(stage) == []
    assert stage.host.request(key).open


@pytest.mark.parametrize("text", ["approve it now", "ap", "dx", "always"])
async def test_letters_that_come_in_one_read_decide_nothing_either(stage: Stage, text: str) -> None:
    key = await carded(stage)
    await stage.press("w", "enter")
    await stage.show(ms=1_000)
    app = stage.console.app
    for letter in text:
        app.post_message(Key("space" if letter == " " else letter, letter))
    await stage.console.until(lambda: stage.host.fleet.trails, "the first letter has begun something")
    await stage.console.until(lambda: newest(stage).outcome is OutcomeKind.UNDELIVERED, "and it was taken back")
    assert left(stage) == []
    assert stage.host.request(key).open


async def test_a_hand_that_means_each_key_is_not_slowed(stage: Stage) -> None:
    await carded(stage)
    await stage.press("a")
    stage.clock.now += HOLD_MS
    await stage.press("f")
    await sent(stage, "approve")


@pytest.mark.parametrize("behind", ["i", "a", "j", "escape"])
async def test_keys_that_a_quick_hand_presses_behind_a_decision_take_nothing_back(stage: Stage, behind: str) -> None:
    await carded(stage)
    await stage.press("a", behind)
    await sent(stage, "approve")
    assert len(stage.host.fleet.trails) == 1


async def test_what_was_taken_back_is_decided_by_the_next_key_that_is_meant(stage: Stage) -> None:
    await carded(stage)
    await stage.press("d", "x")
    assert "deny taken back" in stage.said
    await stage.show(ms=1_000)
    await stage.press("d")
    await sent(stage, "approve")
    assert newest(stage).verb == "deny"


async def test_what_was_agreed_to_leaves_behind_what_was_begun_before(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.screens.flows.interventions.HOLD_MS", 3_600_000)
    await stage.show()
    await stage.press("p")
    stage.clock.now += 3_600_000
    await stage.press("s", *"hello", "enter")
    await sent(stage, "pause", "send")


async def test_what_is_held_when_the_console_is_left_is_told_as_never_sent(stage: Stage) -> None:
    await carded(stage)
    await stage.press("a")
    trail = newest(stage)
    await stage.console.app.hub.close()
    assert (trail.outcome, left(stage)) == (OutcomeKind.UNDELIVERED, [])
    assert trail.reason == "this console was left before it was sent"


async def test_what_is_held_and_cannot_leave_is_undelivered(stage: Stage) -> None:
    async def lost(source: str, frame: Any) -> None:
        raise ConnectionLost("not sent: the line is down")

    await carded(stage)
    stage.console.app.hub._lines.send = lost  # type: ignore[assignment, method-assign]
    await stage.press("a")
    trail = newest(stage)
    await stage.console.until(lambda: trail.outcome is OutcomeKind.UNDELIVERED, "it is told")


async def test_several_wait_to_be_sent_and_are_taken_back_by_one_key(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.screens.inbox.desk.UNDO_S", 3_600.0)
    for at in range(3):
        stage.host.session(f"s{at}")
        stage.host.ask(f"r{at}", f"s{at}", text="make test", call=None, options=(ALLOW, DENY))
    await stage.show()
    await stage.press("w")
    await stage.show(ms=1_000)
    for key in "May":
        await stage.press(key)
        await stage.show(ms=1_000)
    await stage.console.until(lambda: len(stage.console.app.hub.held) == 3, "all three wait")
    await stage.console.press("u")
    await stage.show()
    assert stage.console.app.hub.held == ()
    assert left(stage) == []
    assert {trail.outcome for trail in stage.host.fleet.trails.values()} == {OutcomeKind.UNDELIVERED}
    assert all(request.open for request in stage.host.fleet.requests.values())
