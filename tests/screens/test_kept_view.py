"""A console that is opened again looks as it was left; the configuration and the environment come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.fleet.roster.search import Level
from console.kept_view import View, load, save
from tests.screens.staged import staged


async def test_it_opens_as_it_was_left(tmp_path: Path) -> None:
    kept = tmp_path / "view.json"
    async with staged(tmp_path, kept=kept) as stage:
        stage.host.session("alpha")
        stage.host.session("beta")
        await stage.show()
        await stage.press("O", "I", "v", "slash", *"bet", "enter")
        await stage.press("shift+tab", "l")
        left = stage.console.app.fleet_screen.view()
        stage.console.app.wear("harbour")
    assert left.filter == "bet"
    assert left.level == Level.WORK
    async with staged(tmp_path, kept=kept) as stage:
        stage.host.session("alpha")
        stage.host.session("beta")
        await stage.show()
        assert stage.console.app.fleet_screen.view() == left
        assert stage.console.app.theme == "harbour"
        shown = stage.console.text()
        assert "beta" in shown
        assert "alpha" not in shown
        assert "bet" in shown.splitlines()[1], "the filter is told"


async def test_a_theme_that_is_configured_since_comes_first(tmp_path: Path) -> None:
    kept = tmp_path / "view.json"
    save(kept, View(theme="harbour", configured=""))
    async with staged(tmp_path, kept=kept, theme="night-watch") as stage:
        assert stage.console.app.theme == "night-watch"


async def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    kept = tmp_path / "view.json"
    save(kept, View(theme="gone", sort="later", group="phase", filter="in:(", level="most"))
    async with staged(tmp_path, kept=kept) as stage:
        usual = View(sort="attention", group="parent", level="all")
        assert stage.console.app.fleet_screen.view()._replace(label="") == usual


async def test_no_color_wins_and_what_was_chosen_stays_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "view.json"
    save(kept, View(theme="harbour"))
    monkeypatch.setenv("NO_COLOR", "1")
    async with staged(tmp_path, kept=kept) as stage:
        assert stage.console.app.theme != "harbour"
    assert load(kept).theme == "harbour"


async def test_without_a_file_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.kept_view.save", lambda path, view: pytest.fail(f"{path} was written"))
    async with staged(tmp_path):
        pass


async def test_groups_that_are_there_again_begin_on_a_session_and_the_order_is_shown(tmp_path: Path) -> None:
    kept = tmp_path / "view.json"
    save(kept, View(sort="name", reverse=True, group="source"))
    async with staged(tmp_path, kept=kept) as stage:
        stage.host.session("alpha")
        await stage.show()
        selected = stage.console.app.fleet_screen.selected
        assert selected is not None
        assert selected.session == "alpha"
        heading = next(line for line in stage.console.text().splitlines() if "SESSION" in line)
        assert "SESSION^" in heading.replace(" ", "")


async def test_while_a_line_is_open_the_footer_names_its_keys(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("alpha")
        await stage.show()
        usual = stage.console.footer
        await stage.press("slash")
        await stage.show()
        assert " ".join(stage.console.footer.split()) == "enter take it esc leave it"
        await stage.press("escape")
        await stage.show()
        assert stage.console.footer == usual
