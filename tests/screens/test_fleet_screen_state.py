"""What the screen owes to whoever reads it: an honest state, reasons, and text that is only text."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.demo.process import DemoProcess
from console.screens.quiet import WORD_MS
from tests.screens.stage import LARGE, SMALL, SessionKey
from tests.screens.staged import ALLOW, DENY, Stage, staged
from tests.screens.widget_kit import check_harmless, lines, strips
from watchfloor.protocol import model as m
from watchfloor.words import Contact, OptionKind, Primitive
from widgets.event_log import EventLog
from widgets.roster import Roster


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        yield stage


# --- honest state --------------------------------------------------------------------------


async def test_a_source_that_is_not_heard_is_not_commanded(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    stage.host.contact(Contact.LOST, "connection reset", tries=2)
    await stage.show(ms=1_000)
    for key in ("a", "p", "X"):
        await stage.show(ms=WORD_MS)
        await stage.press(key)
        assert "contact with local was lost" in stage.said
    assert not stage.sent
    top = "\n".join(lines(stage.console.app.fleet_screen.query_one("#top")))
    assert "local lost 0:01: connection reset, try 2" in top
    assert "1 last known" in "\n".join(lines(stage.console.app.fleet_screen.query_one("#counts")))


@pytest.mark.parametrize(
    ("contact", "why", "says"),
    [
        (Contact.CONNECTING, "", "local connecting"),
        (Contact.REFUSED, "401: wrong token", "local refused: 401: wrong token"),
        (Contact.LOST, "connection refused", "local lost: connection refused, try 3"),
    ],
)
async def test_an_empty_roster_says_why(tmp_path: Path, contact: Contact, why: str, says: str) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.contact(contact, why, tries=3)
        await stage.show()
        assert says in "\n".join(lines(stage.console.app.fleet_screen.query_one(Roster)))


async def test_an_untouched_screen_says_who_waits(stage: Stage) -> None:
    stage.host.session("alpha")
    stage.host.session("beta")
    stage.host.ask("r1", "alpha", options=(ALLOW, DENY))
    stage.host.ask("r2", "alpha", options=(ALLOW, DENY))
    stage.host.ask("r3", "beta", options=(ALLOW, DENY))
    await stage.show()
    assert stage.said == "2 agents wait for you: i"
    await stage.press("j")
    assert stage.said == ""


async def test_the_footer_holds_what_is_advertised_and_greys_what_is_blocked(stage: Stage) -> None:
    stage.host.session(
        capabilities={"pause": {}, "resume": {}, "stop": {}},
        lifecycle="failed",
        blocked={"pause": "the attempt has failed"},
        controls={"resume": "Retry (attempt 2)"},
    )
    await stage.show()
    footer = stage.console.footer
    assert "p pause: the attempt has failed" in footer
    assert "r Retry (attempt 2)" in footer
    assert "X stop" in footer
    for absent in ("s send", "a approve", "o answer", "x interrupt", "P pause now", "R reseed", "R clear"):
        assert absent not in footer
    await stage.press("p")
    assert stage.said == "p pause: the attempt has failed"
    assert not stage.sent


async def test_keys_can_be_others_than_the_usual_ones(tmp_path: Path) -> None:
    async with staged(tmp_path, keys={"pause": "f2,ctrl+o", "stop": "p"}) as stage:
        stage.host.session()
        await stage.show()
        assert "f2 pause" in stage.console.footer
        assert "p stop" in stage.console.footer
        for key in ("f2", "ctrl+o"):
            await stage.press(key)
        assert [intent.primitive for intent in stage.sent] == [Primitive.PAUSE, Primitive.PAUSE]
        await stage.press("p")
        assert "stop s1 (local)" in stage.console.asking


async def test_a_pause_at_once_asks_first_where_it_discards_mail(stage: Stage) -> None:
    stage.host.session(traits={"pause_drops_mail": True})
    await stage.show()
    await stage.press("P")
    assert [intent.interrupt for intent in stage.sent] == [True], "nothing waits there"
    stage.host.summary("s1", mailbox={"queued": 1, "refs": 1})
    await stage.show()
    await stage.press("P")
    assert "pause now s1 (local), attempt 1?" in stage.console.asking
    assert "a message that waits unread is discarded" in stage.console.asking
    # Another one that came in since is not what was agreed to.
    stage.host.summary("s1", mailbox={"queued": 2, "refs": 2})
    await stage.show(ms=WORD_MS)
    assert "what it would discard has changed since" in stage.console.asking
    await stage.press("y")
    assert len(stage.sent) == 1
    await stage.press("escape", "P")
    await stage.show(ms=WORD_MS)
    assert "2 messages that wait unread are discarded" in stage.console.asking
    await stage.press("y")
    assert len(stage.sent) == 2


async def test_the_help_lists_every_key_and_why_one_is_missing(stage: Stage) -> None:
    stage.host.session(capabilities={"send": {}})
    await stage.show()
    await stage.press("question_mark")
    await stage.console.pilot.pause()
    screen = stage.console.app.screen
    text = "\n".join(row[1] for row in screen.query_one("Facts").facts)  # type: ignore[attr-defined]
    assert text.count("not offered by this session") >= 2
    assert "write a message to the agent" in text
    await stage.console.press("escape")
    assert stage.console.app.screen is stage.console.app.fleet_screen


async def test_leaving_says_what_ends_with_the_console(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("mine", owned=True)
        stage.host.session("wire", traits={"ends_with_client": True})
        stage.host.session("other")
        stage.host.session("over", lifecycle="completed")
        await stage.show()
        await stage.press("q")
        assert "with this console ends wire" in stage.console.asking
        assert "2 sessions go on without it" in stage.console.asking
        assert "this console started mine: not stopped by leaving" in stage.console.asking


async def test_the_exact_action_is_copied_as_it_was_cleaned(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(text="rm -rf \x1b[31mbuild\x07 && make", options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i", "y")
    copied = stage.console.app.clipboard
    assert copied.startswith("rm -rf ")
    assert "make" in copied
    assert copied.isprintable()
    assert stage.said == f"copied {len(copied)} characters"


async def test_what_cannot_be_written_down_is_said_all_the_time(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    async with staged(tmp_path / "taken") as stage:
        bar = stage.console.app.fleet_screen.query_one("#counts")
        await stage.console.until(lambda: stage.console.app.hub.audit_fault, "the fault is found")
        await stage.show()
        assert "interventions are not written down" in "\n".join(lines(bar))


async def test_a_demo_that_does_not_start_is_a_source_that_says_why(tmp_path: Path) -> None:
    async with staged(tmp_path, demo=DemoProcess(user="ops", agents=-1)) as stage:
        fleet = stage.console.app.hub.fleet
        await stage.console.until(lambda: fleet.sources["demo"].contact is Contact.REFUSED, "it is given up")
        await stage.show()
        assert "demo refused: the demo did not start" in stage.console.text()


async def test_keys_are_counted_where_somebody_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFLOOR_DEBUG_KEYS", "1")
    async with staged(tmp_path) as stage:
        await stage.show()
        await stage.press("j", "k", "j")
        assert "keys=3" in "\n".join(lines(stage.console.app.fleet_screen.query_one("#counts")))


# --- outside text is hostile ---------------------------------------------------------------

_TEXT = re.compile(r"<text[^>]*>([^<]*)</text>")

HOSTILE = "[red]a[/red] [@click=app.quit]b[/] [/nope] \x1b]52;c;eA==\x07 \x1b[2J \x9b31m \u202etxt\u2066 \u200b"


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_text_from_outside_is_drawn_as_it_is_and_acts_on_nothing(tmp_path: Path, size: tuple[int, int]) -> None:
    async with staged(tmp_path, size=size) as stage:
        host = stage.host
        host.session(HOSTILE, name=HOSTILE, why=HOSTILE, error=HOSTILE, cwd=HOSTILE, labels={HOSTILE: HOSTILE})
        host.events(HOSTILE, {"kind": "message", "text": HOSTILE}, {"kind": "tool_call", "call": "c", "name": HOSTILE})
        option = m.Option(
            id=HOSTILE, label=HOSTILE, kind=OptionKind.ALLOW, grants=(HOSTILE,), note=HOSTILE, confirm=True
        )
        host.ask(HOSTILE, HOSTILE, text=HOSTILE, options=(option, DENY), about=HOSTILE)
        host.contact(Contact.LIVE, HOSTILE)
        await stage.show()
        _check_all(stage)
        await stage.press("i")
        await stage.show(ms=1_000)
        _check_all(stage)
        for key in ("A", "s", "X", "q"):
            await stage.press(key)
            _check_all(stage)
            await stage.press("escape")
        await stage.press("a")
        _check_all(stage)
        assert stage.console.app.is_running


def _check_all(stage: Stage) -> None:
    for widget in stage.console.app.fleet_screen.query(
        "StatusBar, Roster, EventLog, RequestCard, Facts, Rule, Choices"
    ):
        if widget.display and widget.size.width:
            check_harmless(strips(widget), widget.size.width)


async def test_plain_terminals_get_plain_characters(tmp_path: Path) -> None:
    async with staged(tmp_path, ascii=True) as stage:
        stage.host.session("top", lifecycle="waiting")
        stage.host.session("child", parent="top")
        stage.host.ask("r1", "top", text="x" * 300, options=(ALLOW, DENY))
        for n in range(100):
            stage.host.session(f"watched-{n}", capabilities={})
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        for key in ("X", "escape", "s", "escape", "question_mark"):
            drawn = html.unescape("".join(_TEXT.findall(stage.console.app.export_screenshot())))
            assert drawn.replace("\xa0", " ").isascii(), set(drawn)
            await stage.console.press(key)


# --- sizes ---------------------------------------------------------------------------------


async def test_a_terminal_too_small_to_read_in_decides_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(30, 8)) as stage:
        stage.host.session()
        stage.host.ask(options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        for key in "ad":
            await stage.press(key)
        assert not stage.sent
        assert "too small" in "\n".join(lines(stage.console.app.fleet_screen.query_one("#too-small")))


async def test_facts_take_the_screen_where_there_is_no_room_beside(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session(cwd="/srv/app")
        await stage.show()
        screen = stage.console.app.fleet_screen
        assert _displayed(stage, "#facts", "#main") == [False, True]
        await stage.press("f")
        assert "/srv/app" in "\n".join(lines(screen.query_one("#facts")))
        assert _displayed(stage, "#facts", "#main") == [True, False]
        await stage.press("escape")
        assert _displayed(stage, "#facts", "#main") == [False, True]


def _displayed(stage: Stage, *selectors: str) -> list[bool]:
    return [bool(stage.console.app.fleet_screen.query_one(selector).display) for selector in selectors]


async def test_tab_goes_from_part_to_part_and_keys_move_what_they_are_on(stage: Stage) -> None:
    for n in range(60):
        stage.host.session(f"s{n:02}")
    stage.host.events("s00", *({"kind": "message", "text": f"line {n}"} for n in range(200)))
    await stage.show()
    screen = stage.console.app.fleet_screen
    log = screen.query_one(EventLog)
    await stage.press("tab")
    assert stage.console.app.focused is log
    following = [log.following]
    await stage.press("k")
    following.append(log.following)
    await stage.press("end")
    following.append(log.following)
    assert following == [True, False, True]
    assert screen.selected == SessionKey("local", "s00")
    await stage.press("shift+tab")
    await stage.press("pagedown")
    assert screen.selected != SessionKey("local", "s00")
