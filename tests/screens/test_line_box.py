"""The line that is written in: it keeps its keys, tells of every change once, and takes no control in."""

from __future__ import annotations

from typing import ClassVar

import pytest
from textual import events
from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from tests.screens.stage import until
from tests.screens.widget_kit import (
    HOSTILE,
    IN_ONE_READ,
    WRITTEN,
    Bench,
    Rows,
    check_harmless,
    named,
    strips,
    type_at_once,
)
from watchfloor.text import Clean
from widgets.line_box import LineBox
from widgets.roster import Roster


class Greedy(Bench):
    """An application that has something on nearly every key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, "hit", show=False) for key in ("a", "q", "question_mark", "f5", "tab", "enter", "escape", "space")
    ]

    def __init__(self) -> None:
        self.box = LineBox()
        self.roster = Roster(Rows(named("one", "two")))
        self.roster.styles.height = 5
        super().__init__(self.roster, self.box)
        self.hits = 0

    def action_hit(self) -> None:
        self.hits += 1

    def told(self) -> list[tuple[str, str]]:
        kinds = {LineBox.Changed: "changed", LineBox.Submitted: "submitted", LineBox.Cancelled: "cancelled"}
        return [(kinds[type(one)], getattr(one, "text", "")) for one in self.seen if type(one) in kinds]


async def ask(app: Greedy, pilot: Pilot[None], initial: str = "") -> None:
    app.roster.focus()
    await pilot.pause()
    app.box.ask(Clean("filter"), initial)
    await pilot.pause()


async def test_every_change_is_told_once_and_nothing_else_acts() -> None:
    app = Greedy()
    async with app.run_test(size=(60, 10), message_hook=app.note) as pilot:
        await ask(app, pilot)
        await pilot.press("a", "space", "q", "left", "backspace", "tab", "f5")
        assert app.told() == [("changed", text) for text in ("a", "a ", "a q", "aq")]
        assert app.hits == 0
        assert app.box.text == "aq"


async def test_enter_leaves_it_open_for_whoever_asked() -> None:
    app = Greedy()
    async with app.run_test(size=(60, 10), message_hook=app.note) as pilot:
        await ask(app, pilot, "state:idle")
        await pilot.press("enter")
        assert app.told() == [("submitted", "state:idle")]
        assert app.box.is_open
        app.box.close()
        await pilot.pause()
        assert app.focused is app.roster


async def test_escape_closes_it_and_keys_behind_that_are_nobodys() -> None:
    app = Greedy()
    async with app.run_test(size=(60, 10), message_hook=app.note) as pilot:
        await ask(app, pilot)
        await pilot.press("a", "escape")
        assert app.told()[-1] == ("cancelled", "")
        assert not app.box.is_open
        assert app.hits == 0
        assert app.focused is app.roster


@pytest.mark.parametrize("text", HOSTILE)
async def test_what_is_pasted_or_said_brings_no_control(text: str) -> None:
    app = Greedy()
    async with app.run_test(size=(60, 10), message_hook=app.note) as pilot:
        await ask(app, pilot)
        app.post_message(events.Paste(text))
        await pilot.pause()
        assert all(char >= " " and not "\x7f" <= char <= "\x9f" for char in app.box.text)
        app.box.say(Clean(text), "attention")
        await pilot.pause()
        for said in app.box.query("_Said"):
            check_harmless(strips(said), said.size.width)


async def test_keys_of_one_read_edit_in_their_order() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot)
        type_at_once(app, *IN_ONE_READ)
        await until(pilot, lambda: app.box.text == WRITTEN, lambda: app.box.text)
