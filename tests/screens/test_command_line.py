"""The command line over everything: what is found, what is done by it, and what it never does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual.widgets import Input

from console.fleet.facts import SessionKey
from console.fleet.gate import ARM_MS
from console.screens.pages.commandline import CommandScreen
from console.screens.pages.sources import SourcesScreen
from console.screens.quiet import QUIET_MS
from tests.screens.stage import SMALL
from tests.screens.staged import ALLOW, DENY, Stage, staged
from tests.screens.widget_kit import IN_ONE_READ, WRITTEN, lines, type_at_once
from watchfloor.words import Primitive
from widgets.listing import Listing
from widgets.status_bar import StatusBar


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        stage.host.session("alpha", turn="t1")
        stage.host.session("beta")
        await stage.show()
        yield stage


def screen(stage: Stage) -> CommandScreen:
    found = stage.console.app.screen
    assert isinstance(found, CommandScreen)
    return found


def shown(stage: Stage, part: str, kind: type[StatusBar] | type[Listing] = StatusBar) -> str:
    return "\n".join(lines(screen(stage).query_one(part, kind)))


async def ask(stage: Stage, text: str, *, key: str = "colon") -> None:
    """Open the line, write, and give what is found the moment in which it does not count yet."""
    await stage.press(key)
    await stage.console.type(text)
    await stage.console.pilot.pause()
    stage.clock.now += ARM_MS


async def closed(stage: Stage) -> None:
    await stage.console.until(
        lambda: stage.console.app.screen is stage.console.app.fleet_screen, "the command line is closed"
    )
    await stage.show()


@pytest.mark.parametrize("key", ["colon", "ctrl+p"])
async def test_an_act_runs_as_its_key_would(stage: Stage, key: str) -> None:
    await ask(stage, "pau", key=key)
    assert screen(stage).chosen is not None
    await stage.console.press("enter")
    await closed(stage)
    assert [(one.primitive, one.target.session, one.turn) for one in stage.sent] == [(Primitive.PAUSE, "alpha", None)]


async def test_what_asks_first_asks_first(stage: Stage) -> None:
    await ask(stage, "stop")
    await stage.console.press("enter")
    await closed(stage)
    assert "stop alpha (local)" in stage.console.asking
    await stage.press("y")
    assert not stage.sent, "a key behind a line that was written in is no answer"
    stage.clock.now += QUIET_MS
    await stage.press("y")
    assert [one.primitive for one in stage.sent] == [Primitive.STOP]


async def test_an_act_that_was_not_read_does_not_run(stage: Stage) -> None:
    await stage.press("colon")
    await stage.console.press(*"pause", "enter")
    assert "pause: read it first, then enter again" in shown(stage, "#command-said")
    assert not stage.sent
    stage.clock.now += ARM_MS
    await stage.console.press("enter")
    await closed(stage)
    assert len(stage.sent) == 1


async def test_what_is_written_on_behind_it_is_no_key(stage: Stage) -> None:
    await ask(stage, "beta")
    await stage.console.press("enter")
    await closed(stage)
    await stage.press("p")
    assert not stage.sent
    assert "you were writing just now" in stage.said


async def test_an_act_that_has_become_another_meanwhile_is_not_done(stage: Stage) -> None:
    stage.host.session("alpha", lifecycle="paused", controls={"resume": "Resume"})
    await stage.show()
    await ask(stage, "resume")
    stage.host.session("alpha", lifecycle="failed", controls={"resume": "Retry (attempt 2)"})
    await stage.console.press("enter")
    await closed(stage)
    assert not stage.sent
    assert "Resume has become Retry (attempt 2): look first" in stage.said


async def test_an_act_is_not_done_to_a_session_that_was_not_read(stage: Stage) -> None:
    await ask(stage, "pause")
    stage.console.app.fleet_screen.go_to(SessionKey("local", "beta"))
    await stage.console.press("enter")
    await closed(stage)
    assert not stage.sent
    assert "another session is selected by now" in stage.said


async def test_one_may_follow_another_at_once(stage: Stage) -> None:
    await ask(stage, "beta")
    await stage.console.press("enter")
    await closed(stage)
    await ask(stage, "pause")
    await stage.console.press("enter")
    await closed(stage)
    assert [(one.primitive, one.target.session) for one in stage.sent] == [(Primitive.PAUSE, "beta")]


async def test_a_decision_is_taken_on_the_card_and_nowhere_else(stage: Stage) -> None:
    stage.host.ask("r1", "alpha", options=(ALLOW, DENY))
    await stage.show()
    await ask(stage, "approve")
    await stage.console.press("enter")
    await closed(stage)
    assert stage.card() is not None
    assert not stage.sent
    assert "read it first" in stage.said


async def test_what_does_not_work_says_why_and_stays(stage: Stage) -> None:
    stage.host.session("alpha", lifecycle="failed", blocked={"pause": "the attempt has failed"})
    await stage.show()
    await ask(stage, "pause")
    await stage.console.press("enter")
    assert "pause: the attempt has failed" in shown(stage, "#command-said")
    assert "not now: the attempt has failed" in shown(stage, "#found", Listing)
    await stage.console.press("escape")
    await closed(stage)
    assert not stage.sent


async def test_a_console_that_only_watches_finds_no_intervention(tmp_path: Path) -> None:
    async with staged(tmp_path, read_only=True) as stage:
        stage.host.session("alpha")
        await stage.show()
        await stage.press("colon")
        kinds = {command.kind.value for command in screen(stage)._commands}
        assert kinds == {"console", "session", "source", "theme"}


async def test_a_session_is_selected_by_a_few_of_its_letters(stage: Stage) -> None:
    await ask(stage, "bet")
    await stage.console.press("enter")
    await closed(stage)
    selected = stage.console.app.fleet_screen.selected
    assert selected is not None
    assert selected.session == "beta"


async def test_a_theme_is_worn_at_once_and_a_bad_one_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "mine.toml").write_text('name = "mine"\nbase = "harbour"\n[grounds]\nground = "#010203"\n')
    (folder / "poor.toml").write_text('name = "poor"\nbase = "harbour"\n[tones]\nquiet = "grey"\n')
    async with staged(tmp_path) as stage:
        app = stage.console.app
        await ask(stage, "mine theme")
        await stage.console.press("enter")
        await closed(stage)
        assert app.theme == "mine"
        assert app.fleet_screen.query_one("#roster").styles.background.hex == "#010203"
        assert 'theme = "mine" in the configuration makes it the usual one' in stage.said
        (folder / "mine.toml").write_text('name = "mine"\nbase = "harbour"\n[grounds]\nground = "#040506"\n')
        await ask(stage, "mine theme")
        await stage.console.press("enter")
        await closed(stage)
        assert app.fleet_screen.query_one("#roster").styles.background.hex == "#040506"
        await ask(stage, "poor theme")
        await stage.console.press("enter")
        await closed(stage)
        assert "poor.toml:4: tones.quiet" in stage.said
        assert app.theme == "mine"


async def test_no_theme_brings_colour_where_none_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with staged(tmp_path) as stage:
        assert stage.console.app.theme == "monochrome"
        await ask(stage, "harbour")
        await stage.console.press("enter")
        await closed(stage)
        assert stage.console.app.theme == "monochrome"
        assert "NO_COLOR is set" in stage.said


async def test_a_source_is_shown_among_the_others(stage: Stage) -> None:
    await ask(stage, "local source")
    await stage.console.press("enter")
    await stage.console.until(lambda: isinstance(stage.console.app.screen, SourcesScreen), "the sources")


async def test_an_act_is_copied_as_a_command_line(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage.console.app.hub, "address", lambda name: "ws://127.0.0.1:7")
    await ask(stage, "interrupt")
    await stage.console.press("ctrl+y")
    copied = "watchfloor interrupt ws://127.0.0.1:7 alpha --attempt 1 --turn t1"
    assert stage.console.app.clipboard == copied
    assert copied in shown(stage, "#command-said")
    await stage.console.press("escape")
    await ask(stage, "harbour")
    await stage.console.press("ctrl+y")
    assert "only an act has a command line" in shown(stage, "#command-said")


async def test_tab_completes_and_arrows_choose(stage: Stage) -> None:
    await ask(stage, "pau")
    first = screen(stage).chosen
    await stage.console.press("down")
    second = screen(stage).chosen
    assert first is not None
    assert second is not None
    assert first != second
    await stage.console.press("tab")
    await stage.console.pilot.pause()
    assert screen(stage).query_one(Input).value == second.text


async def test_what_is_pasted_is_text_and_no_key(stage: Stage) -> None:
    from textual import events

    await stage.press("colon")
    field = screen(stage).query_one(Input)
    field.post_message(events.Paste("stop\x1b[2J\nalpha\n"))
    await stage.console.until(lambda: field.value, "the paste is there")
    assert "\x1b" not in field.value
    assert "alpha" not in field.value
    assert screen(stage) is stage.console.app.screen
    assert not stage.sent


async def test_one_of_many_sessions_is_found_by_their_letters(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL) as stage:
        for number in range(200):
            stage.host.session(f"agent-{number}")
        await stage.show()
        await ask(stage, "agent-199")
        chosen = screen(stage).chosen
        assert chosen is not None
        assert chosen.text == "agent-199"
        await stage.console.press("enter")
        await closed(stage)
        selected = stage.console.app.fleet_screen.selected
        assert selected is not None
        assert selected.session == "agent-199"


async def test_keys_of_one_read_edit_in_their_order(stage: Stage) -> None:
    await stage.press("colon")
    line = screen(stage).query_one("#asked", Input)
    type_at_once(stage.console.app, *IN_ONE_READ)
    await stage.console.until(lambda: line.value == WRITTEN, "what was typed")
