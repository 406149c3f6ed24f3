"""After a decision of which nobody knows whether it counted, the operator is told so, and can decide again."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.screens.staged import ALLOW, DENY, Stage, staged
from tests.screens.widget_kit import lines
from watchfloor.text import Clean
from watchfloor.words import OutcomeKind


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A card whose request has been approved; the command has left, and nothing has come back."""
    async with staged(tmp_path) as stage:
        stage.host.session()
        stage.host.ask(options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        await stage.press("a")
        stage.console.app.hub.fleet.sent(stage.sent[0].id, stage.clock.now)
        await stage.show(ms=7_000)
        yield stage


def text(stage: Stage) -> str:
    return "\n".join(lines(stage.console.card))


async def test_the_card_shows_what_is_on_its_way_and_offers_no_key(stage: Stage) -> None:
    assert "approve sent 0:07 ago, no word yet" in text(stage)
    assert "a approve: approve sent, no word yet" in stage.console.footer
    for key in "adD":
        stage.clock.now += 400  # each is a press of its own, and no word that is typed
        await stage.press(key)
        assert re.search(r"approve sent 0:0[78] ago, no word yet", stage.said)
    assert stage.console.asking == ""
    assert len(stage.sent) == 1


async def test_once_no_word_can_be_hoped_for_another_decision_is_confirmed_and_sent(stage: Stage) -> None:
    said = Clean("no word came back within 10 s")
    changes = stage.console.app.hub.fleet.settle(stage.sent[0].id, OutcomeKind.UNKNOWN, said, stage.clock.now)
    stage.console.app.fleet_screen.take(changes)
    await stage.show()
    await stage.show(ms=1_000)
    assert "no word came back: it may have been taken" in text(stage)
    await stage.press("d")
    assert "approve was sent 0:08 ago, and no word came back: it may have been taken" in stage.console.asking
    assert len(stage.sent) == 1
    await stage.show(ms=1_000)
    await stage.press("y")
    assert [intent.option for intent in stage.sent] == ["yes", "no"]
