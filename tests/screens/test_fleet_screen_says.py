"""The lines that say something: what they say is so, and goes when it is so no longer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.fleet.trail import settle
from tests.screens.live import Relay, watching
from tests.screens.staged import ALLOW, DENY, WIDE, Stage, staged
from tests.sockets.cli_kit import hosting, writes
from watchfloor.protocol import model as m
from watchfloor.text import Clean
from watchfloor.words import OutcomeKind


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        yield stage


async def carded(stage: Stage) -> None:
    """A session that asks for an approval, and its card before the operator, armed."""
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)


async def test_that_a_decision_is_on_its_way_is_said_until_its_effect_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No notice goes for its age alone.
    monkeypatch.setattr("console.screens.board.NOTICE_MS", 10**9)
    async with (
        hosting() as host,
        Relay(host.url) as relay,
        watching(host, tmp_path, url=relay.url) as console,
    ):
        host.add(writes(tmp_path), name="writer", text="hello")
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.armed()
        relay.hold()
        await console.press("a", "a")
        await console.until(lambda: "on its way already" in console.notice, "the second key is refused")
        assert console.trail.startswith("approve: sent ")
        relay.release()
        await console.until(lambda: "effect seen" in console.trail, "the effect is shown")
        await console.until(lambda: not console.notice, "the notice goes by itself")


async def test_what_was_said_of_a_card_goes_with_it(stage: Stage) -> None:
    await carded(stage)
    await stage.press("a", "a")
    assert "on its way already" in stage.console.notice
    stage.host.session("s2")
    other = stage.host.ask("r2", "s2", options=(ALLOW, DENY))
    # By the mouse, without any key.
    stage.console.app.fleet_screen.open_card(other)
    await stage.show()
    assert stage.console.notice == ""
    assert stage.console.trail == ""


async def test_that_a_key_came_too_soon_is_said_until_the_next(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.press("a")
    assert "not armed yet: press again" in stage.console.notice
    await stage.show(ms=1_000)
    assert "not armed yet: press again" in stage.console.notice
    await stage.press("j")
    assert stage.console.notice == ""


async def test_why_a_key_does_not_work_is_said_until_it_works(stage: Stage) -> None:
    stage.host.session(blocked={"resume": "it runs"})
    await stage.show()
    await stage.press("r")
    assert "it runs" in stage.console.notice
    stage.host.summary(blocked={"pause": "it is paused"}, lifecycle="paused")
    await stage.show()
    assert stage.console.notice == ""
    await stage.press("p")
    assert "it is paused" in stage.console.notice
    await stage.show(ms=9_000)
    assert "it is paused" in stage.console.notice
    await stage.show(ms=2_000)
    assert stage.console.notice == ""


async def test_that_nothing_waits_is_said_until_something_does(stage: Stage) -> None:
    stage.host.session()
    await stage.show()
    await stage.press("i")
    assert stage.console.notice == "nothing waits for you"
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    assert stage.console.notice == ""


async def test_the_line_below_a_card_follows_the_newest_command(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("p")
    assert stage.console.trail.startswith("pause: requested")
    await stage.show(ms=1_000)
    await stage.press("i")
    await stage.show(ms=1_000)
    # Given before the card was there, it says nothing of it.
    assert stage.console.trail == ""
    await stage.press("d")
    assert stage.console.trail.startswith("deny: requested")
    await stage.show(ms=1_000)
    await stage.press("x")
    assert stage.console.trail.startswith("interrupt: requested")
    await stage.press("escape")
    assert stage.console.trail.startswith("interrupt: requested")


async def test_on_a_low_screen_a_command_takes_the_line_from_what_was_said(tmp_path: Path) -> None:
    async with staged(tmp_path, (80, 24)) as stage:
        stage.host.session()
        stage.host.ask(options=(WIDE, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        await stage.press("a")
        assert "no way to approve it just this once" in stage.console.trail
        await stage.press("d")
        assert stage.console.trail.startswith("deny: requested")
        await stage.press("d")
        assert "on its way already" in stage.console.trail


async def test_the_result_of_an_older_command_is_not_that_of_what_is_asked_now(stage: Stage) -> None:
    await carded(stage)
    await stage.press("a")
    (trail,) = stage.console.app.hub.fleet.trails.values()
    settle(trail, OutcomeKind.INVALID, Clean("it was not an option"), stage.clock())
    await stage.press("escape")
    assert stage.said.startswith("approve: ")
    stage.host.decide("r1", "deny", by="ann")
    await stage.show(ms=1_000)
    stage.host.ask("r2", options=(ALLOW, DENY))
    await stage.show()
    assert stage.said.startswith("before it asked this: approve: ")


async def test_a_form_that_could_not_be_sent_is_not_opened(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(80, 24)) as stage:
        stage.host.session()
        stage.host.question("q1", fields=[m.FormField(name=f"f{n}", type=m.FieldType.TEXT, label=f"field {n}") for n in range(30)])
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        assert "o answer: read to the end first" in stage.console.footer
        await stage.press("o")
        assert stage.said == "o answer: read to the end first"
        assert stage.console.asking == ""
        await stage.press("end")
        await stage.show(ms=1_000)
        await stage.press("o")
        assert "field 0 (1 of 30)" in stage.console.asking


async def test_a_card_whose_end_alone_was_seen_says_so(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(80, 24)) as stage:
        stage.host.session()
        action = m.Action(tool="shell", text="\n".join(f"echo {n}" for n in range(60)))
        stage.host.ask(actions=(action,), options=(ALLOW, DENY))
        await stage.show()
        screen = stage.console.app.fleet_screen
        screen.action_perform("next")
        screen.action_perform("last")
        await stage.show(ms=2_000)
        card = stage.console.card.card
        assert card is not None
        if not stage.console.card.begin_seen:
            assert card.armed.startswith("its beginning was not seen: ")
            await stage.press("a")
            assert "its beginning was not seen" in stage.said
            assert not stage.sent
        await stage.press("home")
        await stage.show(ms=1_000)
        await stage.press("a")
        assert len(stage.sent) == 1


async def test_what_was_entered_and_left_stands_on_the_card(stage: Stage) -> None:
    stage.host.session()
    fields = [m.FormField(name=f"f{n}", type=m.FieldType.TEXT, label=f"field {n}") for n in range(2)]
    stage.host.question("q1", fields=fields)
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("o", *"eu", "enter", "escape")
    await stage.show(ms=1_000)
    card = stage.console.card.card
    assert card is not None
    assert [field.value for field in card.fields] == ["eu", ""]
