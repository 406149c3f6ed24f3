"""The inbox on the glass: what it lists, what its keys decide, and what they never do. The clock stands unless a test
moves it."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from console.fleet.facts import RequestKey
from console.screens.inbox.board import OutcomesPane
from console.screens.inbox.screen import InboxScreen
from tests.screens.stage import SMALL, StagedHost
from tests.screens.staged import ALLOW, DENY, WIDE, Stage, staged
from tests.screens.widget_kit import lines
from watchfloor.text import clean_line
from watchfloor.words import OutcomeKind
from widgets.listing import Listing
from widgets.request_card import RequestCard
from widgets.status_bar import StatusBar

BOTH = (ALLOW, DENY)


class Desk:
    """A staged console with its inbox open."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.host = stage.host

    @property
    def screen(self) -> InboxScreen:
        screen = self.stage.console.app.screen
        assert isinstance(screen, InboxScreen), screen
        return screen

    async def show(self, ms: int = 0) -> None:
        self.stage.clock.now += ms
        pilot = self.stage.console.pilot
        for _ in range(2):
            self.screen.paint(everything=True)
            await pilot.pause()
            await pilot.pause()

    async def open(self) -> None:
        await self.stage.show()
        await self.stage.console.press("w")
        await self.show()

    async def press(self, *keys: str, ms: int = 1_000) -> None:
        """Keys with time between them, so that they are no word, and that what they showed is armed."""
        for key in keys:
            await self.stage.console.press(key)
            if isinstance(self.stage.console.app.screen, InboxScreen):
                await self.show(ms)

    @property
    def rows(self) -> list[str]:
        return [line.rstrip() for line in lines(self.screen.query_one(Listing))]

    @property
    def card(self) -> RequestKey | None:
        made = self.screen.query_one(RequestCard).card
        key = made.key if made is not None and self.screen.has_class("-carded") else None
        assert key is None or isinstance(key, RequestKey)
        return key

    @property
    def said(self) -> str:
        bars = [self.screen.query_one("#trail", StatusBar), self.screen.query_one("#notice", StatusBar)]
        return " ".join(str(text) for bar in bars for text, _ in bar.status.left)

    @property
    def cursor(self) -> object:
        return self.screen.query_one(Listing).selected

    @property
    def drawer(self) -> str:
        return "\n".join(line.rstrip() for widget in self.screen.query("#drawer *") for line in lines(widget))

    @property
    def sent(self) -> list[tuple[str, str | None]]:
        return [(intent.request or "", intent.option) for intent in self.stage.sent]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with staged(tmp_path) as stage:
        yield Desk(stage)


def harmless(host: StagedHost, n: int = 2, text: str = "make test") -> list[RequestKey]:
    keys = []
    for at in range(n):
        host.session(f"s{at}")
        keys.append(host.ask(f"r{at}", f"s{at}", text=text, call=None, options=BOTH))
    return keys


# --- what it lists -------------------------------------------------------------------------


async def test_the_riskiest_comes_first_then_the_longest_waiting_with_word_path_and_source(desk: Desk) -> None:
    host = desk.host
    host.session("top")
    host.session("middle", parent="top")
    host.session("deep", parent="middle")
    host.ask("r1", "deep", text="make test", call=None, options=BOTH)
    desk.stage.clock.now += 60_000
    host.session("late")
    host.ask("r2", "late", text="rm -rf build", call=None, options=BOTH)
    other = StagedHost(desk.stage.console.app, desk.stage.clock, "second")
    other.session("far")
    other.ask("r3", "far", text="make lint", call=None, options=BOTH, deadline=desk.stage.clock() + 42_000)
    await desk.open()
    _, first, second, third, *_ = desk.rows
    assert first.split() == ["▌", "!!", "high", "0:00", "late", "rm", "-rf", "build", "local"]
    assert second.split() == ["1:00", "deep", "<", "middle", "<", "top", "make", "test", "local"]
    assert third.split()[-1] == "second"
    assert "in 0:42: it ends by itself" in third


async def test_what_is_filtered_away_is_counted_on_and_found_again_by_esc(desk: Desk) -> None:
    harmless(desk.host)
    desk.host.session("zz")
    desk.host.ask("r9", "zz", text="make lint", call=None, options=BOTH)
    await desk.open()
    await desk.press("slash", *"lint", "enter")
    assert len([row for row in desk.rows if "make" in row]) == 1
    assert "3 need you" in "".join(lines(desk.screen.query_one("#top", StatusBar)))
    assert "3 waiting" in "".join(lines(desk.screen.query_one("#counts", StatusBar)))
    await desk.press("escape")
    assert len([row for row in desk.rows if "make" in row]) == 3


async def test_a_cursor_whose_request_is_filtered_away_goes_to_no_other(desk: Desk) -> None:
    harmless(desk.host)
    desk.host.session("zz")
    desk.host.ask("r9", "zz", text="make lint", call=None, options=BOTH)
    await desk.open()
    await desk.press("slash", *"lint", "enter")
    assert desk.cursor is None
    await desk.press("enter")
    assert "no request is selected" in desk.said
    assert desk.card is None


async def test_new_ones_and_other_orders_leave_the_cursor_where_it_is(desk: Desk) -> None:
    first, second = harmless(desk.host)
    await desk.open()
    await desk.press("j")
    assert desk.cursor == second
    desk.host.session("danger")
    desk.host.ask("r9", "danger", text="sudo rm -rf /", call=None, options=BOTH)
    desk.host.decide("r0")
    await desk.show()
    assert desk.cursor == second
    assert desk.card is None
    assert first not in [desk.screen.query_one(Listing).selected]


# --- deciding one --------------------------------------------------------------------------


async def test_a_request_is_decided_on_its_card_and_nothing_advances(desk: Desk) -> None:
    first, _ = harmless(desk.host)
    await desk.open()
    await desk.press("enter", "a")
    assert desk.sent == [("r0", "yes")]
    assert desk.card == first
    desk.host.decide("r0")
    await desk.show(1_000)
    assert desk.card == first
    await desk.press("a")
    assert desk.sent == [("r0", "yes")]
    assert "has ended" in desk.said
    await desk.press("escape", "escape")
    assert not isinstance(desk.stage.console.app.screen, InboxScreen)


async def test_next_goes_down_the_list_by_a_key_of_its_own(desk: Desk) -> None:
    first, second = harmless(desk.host)
    await desk.open()
    await desk.press("i")
    assert desk.card == first
    await desk.press("i")
    assert desk.card == second
    await desk.press("a")
    assert desk.sent == [("r1", "yes")]


async def test_no_key_decides_from_a_line_alone(desk: Desk) -> None:
    first, _ = harmless(desk.host)
    await desk.open()
    await desk.press("a")
    assert desk.sent == []
    assert desk.card == first
    assert "read it first" in desk.said
    await desk.press("a")
    assert desk.sent == [("r0", "yes")]


async def test_a_card_that_has_just_come_up_takes_no_key_and_this_is_written_down(desk: Desk, tmp_path: Path) -> None:
    harmless(desk.host)
    await desk.open()
    await desk.press("enter", ms=0)
    for key in "da":
        await desk.press(key, ms=0)
        assert "not armed yet" in desk.said
    assert desk.sent == []
    written = [line for path in (tmp_path / "audit").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert len([line for line in written if '"what":"refused"' in line]) == 2


async def test_moving_the_cursor_turns_the_card_and_arms_it_anew(desk: Desk) -> None:
    _, second = harmless(desk.host)
    await desk.open()
    await desk.press("enter", "tab", "tab", "tab", ms=1_000)
    desk.screen.set_focus(desk.screen.query_one(Listing))
    await desk.press("j", ms=0)
    assert desk.card == second
    await desk.press("a", ms=0)
    assert desk.sent == []
    assert "not armed yet" in desk.said


async def test_a_text_that_changes_under_the_cursor_is_decided_by_no_key(desk: Desk) -> None:
    harmless(desk.host, 1)
    await desk.open()
    await desk.press("enter")
    desk.host.ask("r0", "s0", text="rm -rf /", call=None, options=BOTH)
    await desk.press("a")
    assert desk.sent == []
    assert "something else now" in desk.said


async def test_races_between_what_was_shown_and_the_key_decide_nothing_else(desk: Desk) -> None:
    """New requests, removals, another order, other texts, right before the key: never another one than the shown."""
    dice = random.Random(5)
    host = desk.host
    texts = ["make test", "make lint", "sudo reboot", "rm -rf build", "cargo check"]
    for at in range(4):
        host.session(f"s{at}")
        host.ask(f"q{at}", f"s{at}", text=texts[at], call=None, options=BOTH)
    await desk.open()
    for step in range(15):
        await desk.press("i")
        shown = desk.card
        before = desk.stage.console.app.hub.fleet.requests[shown].digest if shown is not None else ""
        for _ in range(dice.randint(1, 3)):
            match dice.randrange(3):
                case 0:
                    session = f"n{step}x{dice.randrange(9)}"
                    host.session(session)
                    host.ask(f"{session}r", session, text=dice.choice(texts), call=None, options=BOTH)
                case 1:
                    host.decide(dice.choice(list(host.asked)), state=dice.choice(["resolved", "withdrawn"]))
                case _:
                    if shown is not None:
                        host.ask(shown.request, shown.session, text=dice.choice(texts), call=None, options=BOTH)
        count = len(desk.stage.sent)
        await desk.press(dice.choice("ad"))
        for intent in desk.stage.sent[count:]:
            assert shown == RequestKey("local", intent.target.session, intent.request or "")
            assert intent.seen is not None
            assert intent.seen.digest == before
        await desk.press("escape")
    assert desk.stage.sent


async def test_what_is_masked_is_shown_by_a_key_that_is_written_down_and_approved_unseen_only_knowingly(
    desk: Desk, tmp_path: Path
) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    desk.host.session()
    desk.host.ask(text=f"deploy --token {secret}", call=None, options=BOTH)
    await desk.open()
    await desk.press("enter", "a")
    assert desk.sent == []
    assert "is masked" in desk.drawer
    await desk.press("escape", "e")
    assert secret in "\n".join(lines(desk.screen.query_one(RequestCard)))
    written = "".join(path.read_text() for path in (tmp_path / "audit").glob("*.jsonl"))
    assert '"what":"revealed"' in written
    assert secret not in written
    await desk.press("a")
    assert desk.sent == [("r1", "yes")]


async def test_the_figures_are_a_page_of_their_own(desk: Desk) -> None:
    harmless(desk.host, 1)
    await desk.open()
    await desk.press("enter", "a", "U")
    await desk.stage.console.until(lambda: "keys too early" in desk.drawer, "the figures")
    assert "decisions         1" in desk.drawer


# --- several -------------------------------------------------------------------------------


async def test_identical_ones_are_marked_by_one_key_and_decided_from_a_table(desk: Desk) -> None:
    harmless(desk.host, 3)
    desk.host.session("zz")
    desk.host.ask("r9", "zz", text="make lint", call=None, options=BOTH)
    await desk.open()
    await desk.press("M")
    assert "3 marked" in desk.said
    await desk.press("a")
    assert "3 times  make test" in desk.drawer
    assert "s0, s1, s2" in desk.drawer
    assert "make lint" not in desk.drawer
    await desk.press("y")
    assert sorted(desk.sent) == [("r0", "yes"), ("r1", "yes"), ("r2", "yes")]
    outcomes = "\n".join(lines(desk.screen.query_one(OutcomesPane)))
    assert outcomes.count("waits to be sent") == 3
    for trail in list(desk.host.fleet.trails.values()):
        desk.stage.console.app.take(desk.host.fleet.sent(trail.id, desk.stage.clock()))
    pane = desk.screen.query_one(OutcomesPane)
    await desk.stage.console.until(lambda: "\n".join(lines(pane)).count("no word yet") == 3, "all three have left")


async def test_what_became_of_each_is_told(desk: Desk) -> None:
    harmless(desk.host)
    await desk.open()
    await desk.press("M", "a", "y")
    fleet, now = desk.stage.console.app.hub.fleet, desk.stage.clock()
    one, other = desk.stage.sent
    fleet.sent(one.id, now)
    fleet.settle(one.id, OutcomeKind.APPLIED, clean_line(""), now)
    fleet.settle(other.id, OutcomeKind.REFUSED, clean_line("the host is busy"), now)
    await desk.show()
    outcomes = "\n".join(lines(desk.screen.query_one(OutcomesPane)))
    assert "effect not seen yet" in outcomes
    assert "refused (the host is busy)" in outcomes
    await desk.press("escape")
    assert not desk.screen.has_class("-outcomes")


async def test_risky_wide_and_unknown_ones_do_not_go_along_and_the_table_says_why(desk: Desk) -> None:
    harmless(desk.host, 1)
    asked: dict[str, dict[str, Any]] = {
        "risky": {"text": "rm -rf build"},
        "part": {"text": "make all", "complete": False},
        "long": {"text": "echo " + "a" * 1_200},
    }
    for name, rest in asked.items():
        desk.host.session(name)
        desk.host.ask(f"q-{name}", name, call=None, options=BOTH, **rest)
    desk.host.session("wide")
    desk.host.ask("q-wide", "wide", text="make all", call=None, options=(WIDE, DENY))
    await desk.open()
    for _ in range(5):
        await desk.press("space", "j")
    await desk.press("a")
    told = " ".join(desk.drawer.split())
    assert "risky (destructive" in told
    assert "only a part of it" in told
    assert "too long for a line of a table" in told
    assert "no way to allow just this once" in told
    await desk.press("y")
    assert desk.sent == [("r0", "yes")]


async def test_a_marked_one_that_changes_before_the_answer_is_not_decided(desk: Desk) -> None:
    harmless(desk.host)
    await desk.open()
    await desk.press("M", "a")
    desk.host.ask("r1", "s1", text="rm -rf /", call=None, options=BOTH)
    await desk.press("y")
    assert desk.sent == []
    assert "has changed" in desk.drawer or "one by one" in desk.drawer


async def test_typing_fast_into_the_table_decides_nothing(desk: Desk) -> None:
    harmless(desk.host)
    await desk.open()
    await desk.press("M")
    await desk.press(*"ay", ms=0)
    assert desk.sent == []


async def test_with_a_card_open_marks_count_for_nothing(desk: Desk) -> None:
    harmless(desk.host)
    await desk.open()
    await desk.press("M", "enter", "d")
    assert desk.sent == [("r0", "no")]


# --- around --------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [("S",), ("question_mark",), ()], ids=["sources", "help", "fleet"])
async def test_from_any_screen_two_keys_decide_what_was_raised(desk: Desk, way: tuple[str, ...]) -> None:
    stage = desk.stage
    await stage.show()
    for key in way:
        await stage.console.press(key)
        stage.clock.now += 1_000
    desk.host.session()
    desk.host.ask(text="make test", call=None, options=BOTH)
    stage.console.app.fleet_screen.paint()
    await stage.console.press("i")
    await stage.show(ms=400)
    await stage.console.press("a")
    await stage.show()
    assert [intent.option for intent in stage.sent] == ["yes"]


@pytest.mark.parametrize("way", ["S", "question_mark", "colon", "w"])
async def test_every_screen_says_who_waits_within_a_second(desk: Desk, way: str) -> None:
    stage = desk.stage
    await stage.show()
    await stage.console.press(way)
    desk.host.session()
    desk.host.ask(text="make test", call=None, options=BOTH)

    def said() -> bool:
        return any("1 needs you" in line for bar in stage.console.app.screen.query(StatusBar) for line in lines(bar))

    await stage.console.until(said, "the badge")


async def test_a_session_opened_from_the_inbox_leads_back_to_it(desk: Desk) -> None:
    harmless(desk.host, 1)
    await desk.open()
    inbox = desk.screen
    await desk.press("enter", "enter")
    assert desk.stage.console.app.screen is not inbox
    await desk.stage.console.press("w")
    await desk.stage.console.pilot.pause()
    assert desk.stage.console.app.screen is inbox


async def test_what_is_too_small_decides_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(38, 11)) as stage:
        desk = Desk(stage)
        harmless(desk.host, 1)
        await desk.open()
        await desk.press("enter", "a", "d")
        assert desk.sent == []


async def test_a_command_of_100_000_characters_is_decided_only_once_its_end_was_seen(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        desk = Desk(stage)
        desk.host.session()
        text = "echo " + "harmless " * 11_110 + "; rm -rf ~"
        assert len(text) >= 100_000
        desk.host.ask(text=text, call=None, options=BOTH)
        await desk.open()
        await desk.press("enter", "a", "space", "a")
        assert desk.sent == []
        assert "end" in desk.said
        await desk.press("end", "end", "a")
        assert desk.sent == [("r1", "yes")]


async def test_500_agents_that_ask_at_once_ring_once_and_the_inbox_is_there(desk: Desk) -> None:
    rung: list[int] = []
    app = desk.stage.console.app
    app.attention._ring = lambda: rung.append(desk.stage.clock())
    await desk.open()
    for at in range(500):
        desk.host.session(f"s{at}")
        desk.host.ask(f"r{at}", f"s{at}", text=f"make part-{at}", call=None, options=BOTH)
        desk.stage.clock.now += at % 5 == 0
    began = time.perf_counter()
    await desk.press("i")
    took = time.perf_counter() - began
    print(f"500 requests: one bell, first card after {took * 1000:.0f} ms")
    assert len(rung) == 1
    assert desk.card is not None
    for _ in range(20):  # on a slow machine the card may not have been painted yet
        await desk.press("a")
        if desk.sent:
            break
    assert len(desk.sent) == 1
