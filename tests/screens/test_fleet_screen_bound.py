"""A card stays what was read on it: what a request asks for later is shown and decided only after a key of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from console.fleet.facts import RequestKey
from tests.screens.stage import SessionKey
from tests.screens.staged import ALLOW, DENY, SURE, Stage, staged
from tests.screens.widget_kit import lines
from watchfloor.protocol.frames import Gone
from watchfloor.words import Contact

HARMLESS, HARMFUL = "echo g2", "rm -rf g2"
ASKS_ELSE = "this request asks for something else now: enter shows it"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        stage.host.session()
        stage.host.ask(text=HARMLESS, options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        yield stage


def text(stage: Stage) -> str:
    return "\n".join(lines(stage.console.card))


async def changes(stage: Stage) -> None:
    stage.host.ask(text=HARMFUL, options=(ALLOW, DENY))
    await stage.show(ms=1_000)


async def reconnects(stage: Stage) -> None:
    stage.host.contact(Contact.LOST)
    await stage.show(ms=1_000)
    stage.host.contact(Contact.LIVE)
    stage.host.welcome(instance="i2")
    stage.host.tell(Gone(sessions=("s1",)))
    stage.host.session()
    stage.host.ask(text=HARMFUL, options=(ALLOW, DENY))
    await stage.show(ms=1_000)


@pytest.mark.parametrize("happens", [changes, reconnects])
@pytest.mark.parametrize("key", ["a", "d", "D", "A"])
async def test_what_is_asked_instead_is_neither_drawn_nor_decided(
    stage: Stage, happens: Callable[[Stage], Awaitable[None]], key: str
) -> None:
    await happens(stage)
    assert HARMLESS in text(stage)
    assert HARMFUL not in text(stage)
    assert ASKS_ELSE in text(stage)
    assert "Approve once" not in text(stage)
    await stage.press(key)
    assert ASKS_ELSE in stage.said
    await stage.press(key)
    await stage.show(ms=1_000)
    await stage.press(key)
    assert ASKS_ELSE in stage.said
    assert not stage.sent
    assert stage.console.asking == ""


@pytest.mark.parametrize("opens", ["enter", "i"])
async def test_a_key_of_its_own_shows_what_is_asked_now_and_it_is_armed_anew(stage: Stage, opens: str) -> None:
    await changes(stage)
    await stage.press(opens)
    assert HARMFUL in text(stage)
    await stage.press("a")
    assert "not armed yet" in stage.said
    assert not stage.sent
    await stage.show(ms=400)
    await stage.press("a")
    decided = stage.console.app.hub.fleet.requests[RequestKey("local", "s1", "r1")]
    assert [intent.seen and intent.seen.digest for intent in stage.sent] == [decided.digest]


async def test_a_change_that_is_not_painted_yet_is_not_decided(stage: Stage) -> None:
    stage.host.ask(text=HARMFUL, options=(ALLOW, DENY))
    stage.console.app.fleet_screen.action_perform("approve")
    assert ASKS_ELSE in stage.said
    stage.console.app.fleet_screen.action_perform("deny")
    assert not stage.console.app.hub.fleet.trails


async def test_a_reason_that_was_being_written_is_not_sent_to_what_is_asked_instead(stage: Stage) -> None:
    await stage.press("D", *"because")
    await changes(stage)
    await stage.press("enter")
    assert not stage.sent


async def test_what_was_agreed_to_is_not_sent_to_what_is_asked_instead(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session()
        stage.host.ask(text=HARMLESS, options=(SURE, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        await stage.press("a")
        assert "this cannot be undone" in stage.console.asking
        stage.host.ask(text=HARMFUL, options=(SURE, DENY))
        await stage.show(ms=1_000)
        await stage.press("y")
        assert not stage.sent
        assert "the request is not what was read" in stage.said


async def test_keys_of_a_card_that_asks_for_something_else_are_grey(stage: Stage) -> None:
    assert "a approve" in stage.console.footer
    await changes(stage)
    assert "a approve: it asks for something else" in stage.console.footer


async def test_that_a_key_came_too_early_stays_said(stage: Stage) -> None:
    stage.host.contact(Contact.SILENT)
    await stage.show()
    stage.host.contact(Contact.LIVE)
    await stage.show()
    for _ in range(2):
        await stage.press("a")
        assert "not armed yet: press again" in stage.said
        await stage.show(ms=100)
        assert "not armed yet: press again" in stage.said
    await stage.show(ms=1_000)
    assert "not armed yet: press again" in stage.said
    await stage.press("a")
    assert len(stage.sent) == 1


async def test_the_count_of_the_card_ends_when_a_key_counts(stage: Stage) -> None:
    stage.host.contact(Contact.SILENT)
    await stage.show()
    stage.host.contact(Contact.LIVE)
    await stage.show()
    await stage.show(ms=270)
    assert "armed in 0.1 s" in text(stage)
    await stage.show(ms=31)
    assert "armed in" not in text(stage)
    assert "armed" in text(stage)


async def test_what_ends_with_another_text_keeps_the_one_that_could_be_decided(stage: Stage) -> None:
    await stage.press("a")
    before = stage.host.asked["r1"]
    stage.host.ask(text=HARMFUL, options=(ALLOW, DENY), listed=False, state="resolved")
    assert before.digest != stage.host.asked["r1"].digest
    await stage.show(ms=1_000)
    assert HARMLESS in text(stage)
    assert HARMFUL not in text(stage)
    assert "its source shows another text" in text(stage)


async def test_what_asked_for_something_else_before_it_ended_says_so(stage: Stage) -> None:
    await changes(stage)
    stage.host.decide("r1", "no", by="bob")
    await stage.show(ms=1_000)
    assert HARMLESS in text(stage)
    assert "asked for something else in the end" in text(stage)
    await stage.press("enter")
    await stage.show(ms=1_000)
    assert HARMFUL in text(stage)
    assert "denied by bob" in text(stage)


async def test_what_we_decided_stays_on_the_card_that_we_decided_on(stage: Stage) -> None:
    await stage.press("a")
    await changes(stage)
    stage.host.decide("r1", "yes", by="ops")
    await stage.show(ms=1_000)
    assert HARMLESS in text(stage)
    assert HARMFUL not in text(stage)
    assert "your decision (approve) was on this" in text(stage)
    assert "asked for something else in the end" in text(stage)


async def test_another_session_is_still_reached_from_a_dead_card(stage: Stage) -> None:
    await changes(stage)
    stage.host.session("s2")
    await stage.show()
    await stage.press("escape", "j")
    assert stage.console.app.fleet_screen.selected == SessionKey("local", "s2")
