"""Reading and deciding: keys decide only what is on the screen, and nothing that can be read is out of reach."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.fleet.facts import RequestKey
from tests.screens.stage import SMALL, StagedHost
from tests.screens.staged import ALLOW, DENY, Stage, staged
from tests.screens.widget_kit import lines
from watchfloor.words import Contact
from widgets.event_log import EventLog
from widgets.facts import Facts
from widgets.roster import Roster


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        yield stage


# --- the card is what is on the screen -----------------------------------------------------


@pytest.mark.parametrize("key", ["a", "d"])
async def test_no_key_decides_a_card_behind_the_facts_and_arming_starts_anew(tmp_path: Path, key: str) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session()
        stage.host.ask(options=(ALLOW, DENY))
        await stage.show()
        await stage.press("enter", "end")
        await stage.show(ms=1_000)
        await stage.press("f")
        await stage.show(ms=1_000)
        await stage.press(key)
        assert f"read it first, then {key} again" in stage.said
        assert not stage.console.app.fleet_screen.has_class("-facts")
        await stage.press(key)
        assert "not armed yet" in stage.said
        assert not stage.sent
        await stage.show(ms=301)
        await stage.press(key)
        assert len(stage.sent) == 1


async def test_a_card_that_died_leads_to_what_the_session_asks_next_and_decides_nothing(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask("r1", options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    stage.host.decide("r1", "yes")
    stage.host.ask("r2", options=(ALLOW, DENY))
    await stage.show(ms=1_000)
    assert "another request waits: enter" in "\n".join(lines(stage.console.card))
    assert "nothing waits here" not in stage.console.footer
    await stage.press("d")
    assert stage.card() == RequestKey("local", "s1", "r2")
    assert "read it first, then d again" in stage.said
    assert not stage.sent


@pytest.mark.parametrize("key", ["enter", "i"])
async def test_a_key_opens_what_the_session_of_a_dead_card_asks_next(stage: Stage, key: str) -> None:
    far = StagedHost(stage.console.app, stage.clock, "far")
    far.session("other")
    far.ask("r0", "other", options=(ALLOW, DENY))
    stage.clock.now += 1_000
    stage.host.session()
    stage.host.ask("r1", options=(ALLOW, DENY))
    await stage.show()
    await stage.console.pilot.pause()
    stage.console.app.fleet_screen.query_one(Roster).select(RequestKey("local", "s1", "r1").owner)
    await stage.show()
    await stage.press("i")
    assert stage.card() == RequestKey("local", "s1", "r1")
    stage.host.decide("r1", "yes")
    stage.host.ask("r2", options=(ALLOW, DENY))
    await stage.show(ms=1_000)
    await stage.press(key)
    assert stage.card() == RequestKey("local", "s1", "r2")


async def test_space_pages_the_card_and_the_footer_says_to_read_to_the_end(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session()
        stage.host.ask(text="\n".join(f"echo {n}" for n in range(20)), options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        assert "(a approve)" in stage.console.footer
        await stage.press("question_mark")
        text = "\n".join(row[1] for row in stage.console.app.screen.query_one(Facts).facts)
        assert "not now: read to the end first" in text
        await stage.press("escape")
        await stage.show(ms=1_000)
        for _ in range(5):
            await stage.press("space")
        await stage.console.until(lambda: stage.console.card.end_seen, "the end comes into sight")
        await stage.show()
        assert "(a approve)" not in stage.console.footer
        await stage.press("a")
        assert len(stage.sent) == 1


@pytest.mark.parametrize(("size", "count"), [((120, 40), 8), ((160, 50), 14)])
async def test_a_card_is_as_high_as_its_text_and_the_log_has_the_rest(
    tmp_path: Path, size: tuple[int, int], count: int
) -> None:
    async with staged(tmp_path, size=size) as stage:
        stage.host.session()
        stage.host.ask(text="\n".join(f"echo {n}" for n in range(count)), options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        drawn = lines(stage.console.card)
        assert sum("echo" in line for line in drawn) == count
        assert sum(not line for line in drawn) <= 1
        screen = stage.console.app.fleet_screen
        assert screen.query_one(EventLog).size.height >= 4
        assert screen.query_one(Roster).size.height >= 5


# --- what is asked, and what was written ---------------------------------------------------


async def test_a_key_that_comes_too_soon_for_a_dialog_says_so(stage: Stage) -> None:
    stage.host.session()
    await stage.show()
    await stage.press("X", "y")
    assert "too soon: again" in stage.console.asking
    assert not stage.sent
    await stage.show(ms=1_000)
    await stage.press("k")
    assert not stage.sent
    await stage.press("K")
    assert [intent.kill for intent in stage.sent] == [True]


async def test_a_text_that_was_not_sent_is_there_when_the_same_is_asked_again(stage: Stage) -> None:
    stage.host.session("alpha")
    stage.host.session("beta")
    await stage.show()
    await stage.console.select("alpha")
    await stage.press("s", *"half", "escape")
    await stage.console.select("beta")
    await stage.show(ms=1_000)
    await stage.press("s", *"other", "enter")
    await stage.console.select("alpha")
    await stage.show(ms=1_000)
    await stage.press("s", *"way", "enter")
    assert [intent.text for intent in stage.sent] == ["other", "halfway"]
    stage.host.summary("alpha", attempt=2)
    await stage.show(ms=1_000)
    await stage.press("s", "x", "enter")
    assert stage.sent[-1].text == "x"


async def test_what_has_stopped_is_not_stopped_again(stage: Stage) -> None:
    stage.host.session(lifecycle="stopped")
    await stage.show()
    assert "X stop: stopped already" in stage.console.footer
    await stage.press("X")
    assert stage.said == "X stop: stopped already"
    assert stage.console.asking == ""


async def test_leaving_says_whose_state_is_not_known(stage: Stage) -> None:
    stage.host.session("here")
    far = StagedHost(stage.console.app, stage.clock, "far")
    far.session("there")
    far.contact(Contact.LOST, "connection reset")
    await stage.show()
    await stage.press("q")
    assert "1 session goes on without it" in stage.console.asking
    assert "contact with 1 session is lost: its state is not known" in stage.console.asking


# --- reading events and reasons ------------------------------------------------------------


async def test_the_selected_event_is_marked_read_whole_and_copied(stage: Stage) -> None:
    stage.host.session()
    long = "\n".join(f"line {n}" for n in range(80))
    stage.host.events("s1", {"kind": "message", "text": long}, {"kind": "message", "text": "the newest"})
    await stage.show()
    log = stage.console.app.fleet_screen.query_one(EventLog)
    assert not any(line.startswith("▌") for line in lines(log))
    await stage.press("tab", "k")
    assert [line[:1] for line in lines(log)].count("▌") == 1
    await stage.press("y")
    assert stage.console.app.clipboard.endswith("line 79")
    await stage.press("enter")
    assert "line 0" in stage.console.asking
    assert "line 79" not in stage.console.asking
    await stage.press("end")
    assert "line 79" in stage.console.asking
    await stage.press("escape")
    assert stage.console.asking == ""
    assert stage.console.app.focused is log


async def test_a_reason_is_wrapped_where_there_is_room_and_short_above(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        why = " ".join(["this token is not known here;"] * 6) + " ask for another"
        stage.host.contact(Contact.REFUSED, why)
        await stage.show()
        screen = stage.console.app.fleet_screen
        body = " ".join(line.strip() for line in lines(screen.query_one(Roster)))
        assert f"local refused: {why}" in body
        assert "this token" not in "\n".join(lines(screen.query_one("#top")))
        assert "local refused" in "\n".join(lines(screen.query_one("#top")))


async def test_the_facts_show_that_the_keys_are_theirs(stage: Stage) -> None:
    stage.host.session()
    await stage.show()
    facts = stage.console.app.fleet_screen.query_one("#facts")
    before = facts.styles.border_left
    await stage.press("tab", "tab")
    assert stage.console.app.focused is facts
    assert facts.styles.border_left[0] != before[0]
