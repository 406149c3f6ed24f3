"""A session that only the log of its host keeps, in the console: found, read, and deleted once that was agreed to."""

from __future__ import annotations

from pathlib import Path

from console.screens.session.screen import SessionScreen
from tests.screens.live import watching
from tests.screens.widget_kit import lines
from watchfloor import FunctionHarness, Host, MailItem, Run, SqliteLog
from widgets.transcript import Transcript


async def echo(run: Run, mail: tuple[MailItem, ...]) -> str:
    """Says what it was told."""
    return f"heard {mail[-1].text}"


async def test_it_is_found_read_and_deleted(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with Host(log=SqliteLog(path)) as host:
        for id in ("old", "kept"):
            host.add(FunctionHarness(echo), name=id, id=id, text=f"the word of {id}")
            await host.wait(id)
    async with Host(log=SqliteLog(path)) as host:
        await host.list_stored()
        host.add(FunctionHarness(echo), name="new", id="new")
        await host.serve(announce=False)
        async with watching(host, tmp_path) as console:
            await console.knows("old", "kept", "new")
            await console.select("old")
            assert "send" not in console.footer
            await console.press("enter")
            await console.until(lambda: isinstance(console.app.screen, SessionScreen), "its own screen")

            def said() -> str:
                found = console.app.screen.query(Transcript)
                return "\n".join(lines(found.first())) if found else ""

            await console.until(lambda: "heard the word of old" in said(), "what was said")
            await console.press("escape")
            await console.until(lambda: console.app.screen is console.app.fleet_screen, "the fleet")
            await console.paused()
            await console.press("delete")
            await console.until(lambda: "old is deleted for good" in console.asking, "it asks")
            await console.press("y")
            await console.until(lambda: "old" not in host.core.roster, "it is gone there")
            assert host.core.log.read("old") == []
            assert host.core.log.head("kept") > 0
