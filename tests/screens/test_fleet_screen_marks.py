"""One act on several marked sessions: what it does to each is told first, and each goes through the gate by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.fleet.facts import SessionKey
from tests.screens.stage import SMALL
from tests.screens.staged import ALLOW, DENY, Stage, staged
from watchfloor.protocol import frames as f
from watchfloor.words import OutcomeKind, Primitive
from widgets.roster import Roster

ABLE: dict[str, dict[str, object]] = {"send": {}, "pause": {}, "resume": {}, "interrupt": {}, "approve": {}, "stop": {}}


async def marked(stage: Stage) -> None:
    """Three sessions that are marked, one of which can only be watched, and one that is not marked."""
    host = stage.host
    host.session("alpha", ABLE, lifecycle="running")
    host.session("beta", ABLE, lifecycle="running", attempt=3, traits={"send_interrupts": True})
    host.session("gamma", {}, lifecycle="running")
    host.session("omega", ABLE, lifecycle="idle")
    await stage.show()
    await stage.press("g", "space", "j", "space", "j", "space")
    assert len(stage.console.app.fleet_screen._board.rows.marked) == 3


def sent(stage: Stage) -> list[tuple[Primitive, str]]:
    return [(intent.primitive, intent.target.session) for intent in stage.sent]


async def answer(stage: Stage, key: str) -> None:
    await stage.show(2_000)
    await stage.press(key)


@pytest.mark.parametrize(
    ("key", "primitive"), [("p", Primitive.PAUSE), ("r", Primitive.RESUME), ("x", Primitive.INTERRUPT)]
)
async def test_each_is_named_before_anything_is_sent(tmp_path: Path, key: str, primitive: Primitive) -> None:
    async with staged(tmp_path) as stage:
        await marked(stage)
        await stage.press("G", key)
        asked = stage.console.asking
        assert f"{primitive} 2 of 3 marked sessions?" in asked
        assert "alpha (local), attempt 1, running" in asked
        assert "beta (local), attempt 3, running" in asked
        assert "not gamma (local): observe only" in asked
        assert "omega" not in asked
        assert not stage.sent
        await answer(stage, "y")
        assert sent(stage) == [(primitive, "alpha"), (primitive, "beta")]
        assert len({intent.id for intent in stage.sent}) == 2
        assert f"{primitive} sent to 2 of 2" in stage.said


async def test_what_has_become_of_them_is_counted_while_it_is_told(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await marked(stage)
        await stage.press("p")
        await answer(stage, "y")
        assert "pause sent to 2 of 2" in stage.said
        alpha, beta = stage.sent
        stage.host.outcome(alpha.id)
        stage.host.outcome(beta.id, OutcomeKind.REFUSED)
        await stage.show()
        assert "pause sent to 2 of 2; 1 taken; 1 refused" in stage.said
        stage.host.summary("alpha", lifecycle="paused")
        await stage.show()
        assert "pause sent to 2 of 2; 1 effect seen; 1 refused" in stage.said


async def test_escape_sends_nothing_and_keeps_the_marks(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await marked(stage)
        await stage.press("p", "escape")
        assert not stage.sent
        assert len(stage.console.app.fleet_screen._board.rows.marked) == 3


async def test_a_text_goes_to_all_of_them_with_its_consequences_told(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        await marked(stage)
        await stage.press("s", *"stop at five", "enter")
        asked = stage.console.asking
        assert "send 2 of 3 marked sessions?" in asked
        assert "interrupt" in asked
        await answer(stage, "y")
        assert [(intent.target.session, intent.text) for intent in stage.sent] == [
            ("alpha", "stop at five"),
            ("beta", "stop at five"),
        ]
        await stage.show(2_000)
        await stage.press("s")
        assert "stop at five" not in stage.console.asking


async def test_one_that_changed_meanwhile_ends_the_question(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await marked(stage)
        await stage.press("p")
        stage.host.summary("beta", attempt=4)
        await answer(stage, "y")
        assert not stage.sent
        assert "beta: attempt 4 has begun" in stage.console.asking


async def test_where_it_works_for_none_it_is_said_why(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("gamma", {}, lifecycle="running")
        await stage.show()
        await stage.press("space", "p")
        assert stage.console.asking == ""
        assert "pause: none of 1 marked session; not gamma (local): observe only" in stage.said


async def test_nothing_is_decided_or_stopped_by_marks(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await marked(stage)
        stage.host.ask("r1", "alpha", options=(ALLOW, DENY))
        stage.host.ask("r2", "beta", options=(ALLOW, DENY))
        stage.console.app.fleet_screen.query_one(Roster).select(SessionKey("local", "alpha"))
        await stage.show(2_000)
        await stage.press("X")
        assert "stop alpha (local), attempt 1?" in stage.console.asking
        assert "beta" not in stage.console.asking
        await stage.press("escape", "enter")
        await stage.show(1_000)
        await stage.press("a")
        assert [(intent.primitive, intent.target.session) for intent in stage.sent] == [(Primitive.APPROVE, "alpha")]


async def test_the_footer_says_how_many_an_act_is_about(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await marked(stage)
        assert "pause 3 marked" in stage.console.footer
        assert "stop 3" not in stage.console.footer


async def test_a_mark_goes_with_its_session(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await marked(stage)
        stage.host.tell(f.Gone(sessions=("alpha",)))
        await stage.show()
        assert {key.session for key in stage.console.app.fleet_screen._board.rows.marked} == {"beta", "gamma"}


async def test_a_session_that_is_paused_already_is_not_paused_once_more(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("alpha", ABLE)
        stage.host.session("beta", ABLE, lifecycle="paused")
        await stage.show()
        await stage.press("M", "p")
        assert "pause 1 of 2 marked sessions?" in stage.console.asking
        assert "not beta (local): paused already" in stage.console.asking


async def test_a_choice_below_what_is_in_sight_is_announced(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        for n in range(30):
            stage.host.session(f"agent-{n:02}", ABLE)
        await stage.show()
        await stage.press("M", "p")
        await stage.show(ms=1_000)
        assert "y stands further down: space shows it" in stage.console.asking
        await stage.press("space", "space", "space")
        await stage.show(ms=1_000)
        assert "press the key of your choice" in stage.console.asking
        await stage.press("y")
        assert len(stage.sent) == 30
