"""The page of the audit: its lines, what is looked for in them, and what was touched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.audit import Audit
from console.screens.pages.audit import AuditScreen
from tests.screens.stage import NOON, SMALL
from tests.screens.staged import Stage, staged
from tests.screens.widget_kit import lines
from widgets.line_box import LineBox


def written(folder: Path) -> Path:
    audit = Audit(folder / "audit", clock=lambda: NOON - 60_000)
    asked = {"by": "ann", "source": "farm", "session": "deploy", "request": "r1", "primitive": "approve"}
    audit.write("requested", "c1", {**asked, "option": "yes", "option_kind": "allow"})
    audit.write("outcome", "c1", {"outcome": "applied"})
    audit.write("requested", "c2", {**asked, "option_kind": "deny", "policy": "machine", "automatic": True})
    audit.close()
    return audit.path


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    written(tmp_path)
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session("alpha")
        await stage.show()
        yield stage


def screen(stage: Stage) -> AuditScreen:
    found = stage.console.app.screen
    assert isinstance(found, AuditScreen)
    return found


def shown(stage: Stage, part: str) -> str:
    return "\n".join(lines(screen(stage).query_one(part)))


async def opened(stage: Stage) -> None:
    await stage.console.press("L")
    await stage.console.until(lambda: "policy machine" in shown(stage, "#audit"), "the lines")


async def test_its_lines_its_details_and_that_it_is_whole(stage: Stage) -> None:
    await opened(stage)
    first, second, third = shown(stage, "#audit").splitlines()[1:4]
    assert "deny" in first
    assert "policy machine" in first
    assert "applied" in second
    assert "ann" in third
    assert "2 files are whole" in shown(stage, "#audit-top")
    assert "policy" in shown(stage, "#audit-details")
    await stage.console.press("j", "j")
    await stage.console.pilot.pause()
    assert "line 1 of " in shown(stage, "#audit-rule")
    assert "allow" in shown(stage, "#audit-details")


async def test_what_is_looked_for_is_shown_alone_and_the_line_has_all_keys(stage: Stage) -> None:
    await opened(stage)
    await stage.console.press("slash")
    await stage.console.type("machine zz")
    await stage.console.until(lambda: "none of 3 lines holds machine zz" in shown(stage, "#audit"), "nothing holds it")
    await stage.console.press("backspace", "backspace", "backspace", "enter")
    await stage.console.until(lambda: not screen(stage).query_one(LineBox).is_open, "the line is closed")
    assert "1 hold machine" in shown(stage, "#audit-top")
    assert "ann" not in shown(stage, "#audit")
    await stage.console.press("escape")
    await stage.console.until(lambda: "ann" in shown(stage, "#audit"), "all lines again")
    await stage.console.press("escape")
    await stage.console.until(lambda: stage.console.app.screen is stage.console.app.fleet_screen, "the fleet")


async def test_what_was_touched_is_said_on_the_line_and_above_all_while_it_is_open(
    stage: Stage, tmp_path: Path
) -> None:
    await opened(stage)
    (path,) = (path for path in (tmp_path / "audit").glob("*.jsonl") if path.stat().st_size)
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([kept[0], kept[1].replace(b"applied", b"refused"), kept[2]]))
    await stage.console.until(lambda: "not whole: " in shown(stage, "#audit-top"), "the fault")
    marks = [line.lstrip("▌ ")[:1] for line in shown(stage, "#audit").splitlines()[1:4]]
    assert marks == ["▴", "▴", "1"]
    assert "line 2: it was changed" in shown(stage, "#audit-details")


async def test_what_is_typed_on_behind_a_search_is_no_key_of_the_screen_below(stage: Stage) -> None:
    key = stage.host.ask(text="make", call=None)
    await opened(stage)
    await stage.console.pilot.press("slash", *"ann", "enter", "i", "a", "d")
    await stage.show()
    assert stage.console.app.screen is stage.console.app.fleet_screen
    assert stage.host.request(key).open
    assert stage.sent == []


async def test_a_key_that_is_not_its_own_goes_to_the_screen_below(stage: Stage) -> None:
    stage.host.ask(text="make", call=None)
    await opened(stage)
    await stage.press("i")
    assert stage.card() is not None


async def test_files_that_cannot_be_read_are_said(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "audit" / "20260101T000000Z-1.jsonl").mkdir()
    await stage.console.press("L")
    await stage.console.until(lambda: "it cannot be read" in shown(stage, "#audit"), "why")
