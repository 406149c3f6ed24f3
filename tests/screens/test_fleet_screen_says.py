"""The lines that say something: what they say is so, and goes when it is so no longer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.fleet.trail import settle
from console.screens.pages.told import Told
from console.screens.session.screen import SessionScreen
from tests.screens.live import Relay, watching
from tests.screens.staged import ALLOW, DENY, WIDE, Stage, staged
from tests.screens.widget_kit import lines
from tests.sockets.cli_kit import hosting, writes
from watchfloor.protocol import model as m
from watchfloor.text import Clean
from watchfloor.words import OutcomeKind
from widgets.request_card import RequestCard
from widgets.roster import Roster

SIXTY = "\n".join(f"echo {n}" for n in range(60))


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        yield stage


async def carded(stage: Stage) -> None:
    """A session that asks for an approval, and its card before the operator, armed."""
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)


async def test_that_a_decision_is_on_its_way_is_said_until_its_effect_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No notice goes for its age alone.
    monkeypatch.setattr("console.screens.board.NOTICE_MS", 10**9)
    async with (
        hosting() as host,
        Relay(host.url) as relay,
        watching(host, tmp_path, url=relay.url) as console,
    ):
        host.add(writes(tmp_path), name="writer", text="hello")
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.armed()
        relay.hold()
        await console.press("a")
        await console.until(lambda: console.trail.startswith("approve: sent "), "it has left")
        await console.press("a")
        assert "on its way already" in console.notice, "the second key is refused"
        relay.release()
        await console.until(lambda: "effect seen" in console.trail, "the effect is shown")
        await console.until(lambda: not console.notice, "the notice goes by itself")


async def test_what_was_said_of_a_card_goes_with_it(stage: Stage) -> None:
    await carded(stage)
    await stage.press("a", "a")
    assert "on its way already" in stage.console.notice
    stage.host.session("s2")
    other = stage.host.ask("r2", "s2", options=(ALLOW, DENY))
    # By the mouse, without any key.
    stage.console.app.fleet_screen.open_card(other)
    await stage.show()
    assert stage.console.notice == ""
    assert stage.console.trail == ""


async def test_that_a_key_came_too_soon_is_said_until_the_next(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.press("a")
    assert "not armed yet: press again" in stage.console.notice
    await stage.show(ms=1_000)
    assert "not armed yet: press again" in stage.console.notice
    await stage.press("j")
    assert stage.console.notice == ""


async def test_why_a_key_does_not_work_is_said_until_it_works(stage: Stage) -> None:
    stage.host.session(blocked={"resume": "it runs"})
    await stage.show()
    await stage.press("r")
    assert "it runs" in stage.console.notice
    stage.host.summary(blocked={"pause": "it is paused"}, lifecycle="paused")
    await stage.show()
    assert stage.console.notice == ""
    await stage.press("p")
    assert "it is paused" in stage.console.notice
    await stage.show(ms=9_000)
    assert "it is paused" in stage.console.notice
    await stage.show(ms=2_000)
    assert stage.console.notice == ""


async def test_that_nothing_waits_is_said_until_something_does(stage: Stage) -> None:
    stage.host.session()
    await stage.show()
    await stage.press("i")
    assert stage.console.notice == "nothing waits for you"
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    assert stage.console.notice == ""


async def test_the_line_below_a_card_follows_the_newest_command(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("p")
    assert stage.console.trail.startswith("pause: requested")
    await stage.show(ms=1_000)
    await stage.press("i")
    await stage.show(ms=1_000)
    # Given before the card was there, it says nothing of it.
    assert stage.console.trail == ""
    await stage.press("d")
    assert stage.console.trail.startswith("deny: requested")
    await stage.show(ms=1_000)
    await stage.press("x")
    assert stage.console.trail.startswith("interrupt: requested")
    await stage.press("escape")
    assert stage.console.trail.startswith("interrupt: requested")


async def test_on_a_low_screen_a_command_takes_the_line_from_what_was_said(tmp_path: Path) -> None:
    async with staged(tmp_path, (80, 24)) as stage:
        stage.host.session()
        stage.host.ask(options=(WIDE, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        await stage.press("a")
        assert "no way to approve it just this once" in stage.console.trail
        await stage.press("d")
        assert stage.console.trail.startswith("deny: requested")
        await stage.press("d")
        assert "on its way already" in stage.console.trail


async def test_the_result_of_an_older_command_is_not_that_of_what_is_asked_now(stage: Stage) -> None:
    await carded(stage)
    await stage.press("a")
    (trail,) = stage.console.app.hub.fleet.trails.values()
    settle(trail, OutcomeKind.INVALID, Clean("it was not an option"), stage.clock())
    await stage.press("escape")
    assert stage.said.startswith("approve: ")
    stage.host.decide("r1", "deny", by="ann")
    await stage.show(ms=1_000)
    stage.host.ask("r2", options=(ALLOW, DENY))
    await stage.show()
    assert stage.said.startswith("before it asked this: approve: ")


async def test_a_form_that_could_not_be_sent_is_not_opened(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(80, 24)) as stage:
        stage.host.session()
        stage.host.question(
            "q1", fields=[m.FormField(name=f"f{n}", type=m.FieldType.TEXT, label=f"field {n}") for n in range(30)]
        )
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        assert "(o answer)  space read on" in stage.console.footer
        await stage.press("o")
        assert stage.said == "o answer: read to the end first"
        assert stage.console.asking == ""
        for _ in range(30):
            await stage.press("space")
            await stage.show(ms=1_000)
            if "(o answer)" not in stage.console.footer:
                break
        await stage.press("o")
        assert "field 0 (1 of 30)" in stage.console.asking


async def test_a_card_whose_end_alone_was_seen_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(tmp_path, size=(80, 24)) as stage:
        stage.host.session()
        stage.host.ask(text=SIXTY, options=(ALLOW, DENY))
        await stage.show()
        with monkeypatch.context() as covered:
            # Something lies over the first line of the body, where its beginning stands.
            covered.setattr(RequestCard, "_uncovered", lambda card, y: y > card.gutter.top + len(card._head))
            await stage.press("i")
            await stage.press("end")
            await stage.show(ms=2_000)
        card = stage.console.card.card
        assert card is not None
        assert stage.console.card.end_seen
        assert not stage.console.card.begin_seen
        assert card.armed == "its beginning was not seen: home shows it"
        await stage.press("a")
        assert stage.said == "a approve: its beginning was not seen: home shows it"
        assert not stage.sent
        await stage.press("g")
        await stage.show(ms=1_000)
        await stage.press("a")
        assert len(stage.sent) == 1


async def test_a_card_that_was_read_stays_read_on_the_screen_of_its_session_and_back(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(80, 24)) as stage:
        stage.host.session()
        stage.host.ask(text=SIXTY, options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.press("end")
        await stage.show(ms=1_000)
        await stage.press("enter")
        app = stage.console.app
        await stage.console.until(lambda: isinstance(app.screen, SessionScreen), "the session")
        here = app.screen.query_one(RequestCard)
        await stage.console.until(lambda: here.begin_seen, "its card")
        assert here.end_seen
        assert not stage.sent
        stage.clock.now += 1_000
        await stage.press("a")
        assert [intent.option for intent in stage.sent] == ["yes"]


async def test_a_card_that_was_read_in_part_only_starts_unread_on_another_screen(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(80, 24)) as stage:
        stage.host.session()
        stage.host.ask(text=SIXTY, options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        await stage.press("enter")
        app = stage.console.app
        await stage.console.until(lambda: isinstance(app.screen, SessionScreen), "the session")
        here = app.screen.query_one(RequestCard)
        await stage.console.until(lambda: here.begin_seen, "its card")
        stage.clock.now += 1_000
        await stage.press("a")
        assert not stage.sent
        await stage.press("end")
        await stage.console.until(lambda: here.end_seen, "its end")
        await stage.press("escape", "escape")
        await stage.console.until(lambda: app.screen is app.fleet_screen, "the fleet")


async def test_a_long_command_has_a_page_that_is_worth_the_name(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(80, 24)) as stage:
        stage.host.session()
        stage.host.ask(text=SIXTY, options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        drawn = lines(stage.console.card)
        assert sum("echo " in line for line in drawn) >= 8
        roster = stage.console.app.fleet_screen.query_one("#roster")
        assert roster.size.height >= 3


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_a_reason_that_is_longer_than_its_line_is_told_to_its_end(tmp_path: Path, size: tuple[int, int]) -> None:
    async with staged(tmp_path, size=size) as stage:
        why = " ".join(f"word{n}" for n in range(60))
        stage.host.session(lifecycle="running", blocked={"pause": why})
        await stage.show()
        screen = stage.console.app.fleet_screen
        before = screen.query_one("#roster").region
        await stage.press("p")
        told = screen.query_one(Told)
        text = " ".join(" ".join(line.split()) for line in (stage.said, *lines(told)))
        assert f"p pause: {why}" in text
        if size[0] > 80:
            assert screen.query_one("#roster").region == before
        await stage.press("j")
        assert not told.display
        assert screen.query_one("#roster").region == before
        assert "p pause" in stage.console.footer


async def test_the_first_request_is_that_which_waits_longest_until_somebody_turns_to_a_session(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        for n in range(1, 4):
            stage.host.session(f"s{n}")
            await stage.show()
        for n in (3, 2, 1):
            stage.host.ask(f"r{n}", f"s{n}", options=(ALLOW, DENY), asked_at=stage.host.ago(60 * n))
            await stage.show(ms=1_000)
        await stage.press("i")
        card = stage.console.card.card
        assert card is not None
        assert card.title[0].startswith("1 of 3  s3")
        await stage.press("escape")
        await stage.console.select("s1")
        await stage.press("i")
        card = stage.console.card.card
        assert card is not None
        assert card.title[0].startswith("3 of 3  s1")


async def test_usage_has_a_column_once_any_session_tells_it(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session()
        await stage.show()
        roster = stage.console.app.fleet_screen.query_one(Roster)
        assert "USAGE" not in lines(roster)[0]
        stage.host.session(usage=m.Usage(input_tokens=1_200, output_tokens=300))
        await stage.show(ms=1_000)
        assert "USAGE" in lines(roster)[0]


async def test_a_form_says_at_each_field_what_enter_does(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session()
        fields = [m.FormField(name=f"f{n}", type=m.FieldType.TEXT, label=f"field {n}") for n in range(5)]
        stage.host.question("q1", fields=fields)
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        await stage.press("o")
        for n in range(5):
            assert f"field {n} ({n + 1} of 5)" in stage.console.asking
            assert "enter goes on" in stage.console.asking
            await stage.press(*"eu", "enter")
        await stage.show(ms=1_000)
        assert "enter  answers" in stage.console.asking
        assert not stage.sent
        await stage.press("enter")
        assert len(stage.sent) == 1


async def test_what_was_entered_and_left_stands_on_the_card(stage: Stage) -> None:
    stage.host.session()
    fields = [m.FormField(name=f"f{n}", type=m.FieldType.TEXT, label=f"field {n}") for n in range(2)]
    stage.host.question("q1", fields=fields)
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("o", *"eu", "enter", "escape")
    await stage.show(ms=1_000)
    card = stage.console.card.card
    assert card is not None
    assert [field.value for field in card.fields] == ["eu", ""]
