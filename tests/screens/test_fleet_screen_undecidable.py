"""What cannot be decided says so at once, on the card, in the footer and at the first key, in the same words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.screens.staged import ALLOW, DENY, Stage, staged
from tests.screens.widget_kit import lines
from watchfloor.canonical import subject_digest
from watchfloor.protocol import model as m
from watchfloor.protocol.frames import RequestFrame


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        yield stage


def asks(stage: Stage, digest: str | None = None, **changed: Any) -> None:
    """An approval whose subject says what no honest host would say."""
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    subject = {**stage.host.asked["r1"].subject, **changed}
    made = m.RequestModel(subject=subject, digest=digest or subject_digest(subject), asked_at=stage.clock.now)
    stage.host.asked["r1"] = made
    stage.host.list_requests("s1")
    stage.host.tell(RequestFrame(session="s1", request=made))


def same_ids(stage: Stage) -> None:
    option = {"id": "yes", "label": "Allow", "kind": "allow"}
    asks(stage, options=[option, {**option, "label": "Deny", "kind": "deny"}])


def wrong_digest(stage: Stage) -> None:
    asks(stage, digest="sha256:" + "0" * 64)


def other_session(stage: Stage) -> None:
    asks(stage, session="s2")


def older_attempt(stage: Stage) -> None:
    asks(stage)
    stage.host.summary(attempt=2)


def not_offered(stage: Stage) -> None:
    stage.host.session(capabilities={"send": {}, "pause": {}})
    stage.host.ask(options=(ALLOW, DENY))


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (same_ids, "two of its options have the same id"),
        (wrong_digest, "its digest is not that of its text"),
        (other_session, "it names another session: s2"),
        (older_attempt, "it belongs to attempt 1, and 2 runs"),
        (not_offered, "this session does not offer approve"),
    ],
)
@pytest.mark.parametrize("key", ["a", "d"])
async def test_it_says_why_at_once(stage: Stage, happens: Callable[[Stage], None], why: str, key: str) -> None:
    happens(stage)
    await stage.show()
    await stage.press("i")
    text = "\n".join(lines(stage.console.card))
    assert f"undecidable: {why}" in text
    await stage.press(key)
    assert why in stage.said
    await stage.show(ms=1_000)
    text = "\n".join(lines(stage.console.card))
    assert "armed" not in text
    made = stage.console.card.card
    assert made is not None
    assert not any(option.enabled for option in made.options)
    for action, standing in stage.console.app.fleet_screen.standings():
        assert action.id not in ("approve", "deny") or why in standing.reason
    assert not stage.sent


async def test_sending_announces_what_will_be_done(stage: Stage) -> None:
    stage.host.session(traits={"send_approves": True})
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("s")
    assert "now: queued: sent at once it would approve what is pending" in stage.console.asking
    assert "steers" not in stage.console.asking
    stage.host.decide("r1", "no")
    await stage.show()
    assert "now: steers the running turn" in stage.console.asking


async def test_where_nothing_can_be_read_no_key_that_acts_is_offered(tmp_path: Path) -> None:
    async with staged(tmp_path, (39, 11)) as stage:
        stage.host.session()
        stage.host.ask(options=(ALLOW, DENY))
        await stage.show()
        offered = {
            action.id: standing.reason
            for action, standing in stage.console.app.fleet_screen.standings()
            if action.intervenes
        }
        assert set(offered.values()) == {"nothing can be read here"}
        assert "quit" in stage.console.footer
        assert "approve" not in stage.console.footer
