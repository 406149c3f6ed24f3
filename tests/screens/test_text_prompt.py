"""The text prompt: it keeps its keys, and what is sent is what was seen."""

from __future__ import annotations

from typing import ClassVar

import pytest
from textual import events
from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from tests.screens.stage import until
from tests.screens.widget_kit import (
    IN_ONE_READ,
    WRITTEN,
    Bench,
    Rows,
    check_harmless,
    lines,
    named,
    strips,
    type_at_once,
)
from watchfloor.text import Clean
from widgets.roster import Roster
from widgets.text_prompt import TextPrompt


class Greedy(Bench):
    """An application that has something on nearly every key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, "hit", show=False)
        for key in ("a", "x", "q", "question_mark", "f5", "ctrl+r", "tab", "enter", "escape", "space", "left", "up")
    ]

    def __init__(self) -> None:
        self.prompt = TextPrompt()
        self.roster = Roster(Rows(named("one", "two")))
        self.roster.styles.height = 5
        super().__init__(self.roster, self.prompt)
        self.hits = 0

    def action_hit(self) -> None:
        self.hits += 1

    def said(self) -> list[str | None]:
        return [
            message.text if isinstance(message, TextPrompt.Submitted) else None
            for message in self.seen
            if isinstance(message, TextPrompt.Submitted | TextPrompt.Cancelled)
        ]


async def ask(app: Greedy, pilot: Pilot[None], *, secret: bool = False, initial: str | None = None) -> None:
    app.roster.focus()
    await pilot.pause()
    app.prompt.ask(Clean("deny deploy-eu: reason"), secret=secret, initial=None if initial is None else Clean(initial))
    await pilot.pause()


@pytest.mark.parametrize("secret", [False, True])
async def test_no_binding_fires_while_one_writes(secret: bool) -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, secret=secret)
        await pilot.press("a", "x", "space", "q", "?", "f5", "ctrl+r", "tab", "up", "f12")
        assert app.prompt.text == "ax q?"
        assert app.hits == 0
        assert app.roster.selected == "one"


async def test_bindings_fire_again_after_it() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot)
        await pilot.press("a", "escape", "x")
        assert app.hits == 1


@pytest.mark.parametrize("secret", [False, True])
async def test_enter_submits_and_gives_the_focus_back(secret: bool) -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        await ask(app, pilot, secret=secret)
        await pilot.press("n", "o", "enter")
        await pilot.pause()
        assert app.said() == ["no"]
        assert app.focused is app.roster
        assert not app.prompt.is_open
        assert app.prompt.text == ""
        assert app.hits == 0


async def test_escape_cancels_and_nothing_is_kept() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        await ask(app, pilot)
        await pilot.press("n", "o", "escape")
        await ask(app, pilot)
        assert app.prompt.text == ""
        await pilot.press("enter")
        await pilot.pause()
        assert app.said() == [None, ""]


async def test_its_own_editing_keys_work() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, initial="because")
        await pilot.press("backspace", "home", "N", "o", "end", "left", "delete", "!")
        assert app.prompt.text == "Nobecau!"
        assert app.hits == 0


async def test_it_grows_with_its_lines() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        await ask(app, pilot)
        one = app.prompt.region.height
        await pilot.press("a", "ctrl+j", "b", "ctrl+j", "c")
        await pilot.pause()
        assert app.prompt.region.height == one + 2
        for _ in range(12):
            app.prompt.query_one("_Area").post_message(events.Paste("more\n"))
        await pilot.pause()
        assert app.prompt.region.height == one + 5
        await pilot.press("enter")
        await pilot.pause()
        assert app.said() == ["a\nb\nc" + "more\n" * 12]


@pytest.mark.parametrize("secret", [False, True])
async def test_what_is_pasted_is_cleaned_before_it_is_seen_and_sent(secret: bool) -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        await ask(app, pilot, secret=secret)
        focused = app.focused
        assert focused is not None
        focused.post_message(events.Paste("a\x1b]52;c;aGk=\x07\u202eb\r\nc"))
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
    text = "a\u241b]52;c;aGk=\u2407<U+202E>b"
    assert app.said() == [text if secret else text + "\nc"]


async def test_a_secret_is_not_shown() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, secret=True)
        await pilot.press(*"hunter2")
        assert app.prompt.text == "hunter2"
        assert "hunter2" not in app.export_screenshot()
        await ask(app, pilot)
        assert app.prompt.text == ""


async def test_the_label_is_only_text_and_says_which_keys_end_it() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        app.prompt.ask(Clean("[@click=app.quit]to[/] 部署"))
        await pilot.pause()
        label = app.prompt.query_one("_Label")
        assert lines(label)[0].startswith(" [@click=app.quit]to[/] 部署")
        assert lines(label)[0].endswith("enter sends  esc leaves  ctrl+j new line")
        check_harmless(strips(label), label.size.width)


async def test_asking_again_keeps_where_the_focus_goes_back_to() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot)
        app.prompt.ask(Clean("something else"))
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert app.focused is app.roster


async def test_what_was_sent_before_is_brought_back_and_what_is_being_written_is_not_lost() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        prompt, label = app.prompt, app.prompt.query_one("_Label")
        past = ["first", "second\nline"]
        prompt.ask(Clean("send to alpha"), initial=Clean("begun"), past=past)
        await pilot.pause()
        assert "up sent before" in lines(label)[0]
        await pilot.press("up")
        assert prompt.text == past[1]
        assert "2 of 2 sent before" in lines(label)[0]
        await pilot.press("up", "!")
        assert prompt.text == "first!"
        await pilot.press("down", "down", "down", "down")
        assert prompt.text == "begun"
        await pilot.press("up", "up")
        assert prompt.text == "first!"
        await pilot.press("escape")
        await pilot.pause()
        prompt.ask(Clean("send to alpha"), initial=Clean("begun"), past=past)
        await pilot.press("up", "escape")
        await pilot.pause()
        left = [message.text for message in app.seen if isinstance(message, TextPrompt.Cancelled)]
        assert left == ["first!", "begun"]


async def test_keys_that_have_no_room_go_before_the_name_of_whom_it_goes_to() -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        label = app.prompt.query_one("_Label")
        app.prompt.ask(Clean("send to " + "nightly-index" * 3), past=["one"])
        await pilot.pause()
        line = lines(label)[0]
        assert "nightly-index" * 3 in line
        assert line.rstrip().endswith("enter sends  esc leaves")


def test_messages_name_their_prompt() -> None:
    prompt = TextPrompt()
    for message in (TextPrompt.Submitted(prompt, "x"), TextPrompt.Cancelled(prompt, "x")):
        assert message.control is prompt


@pytest.mark.parametrize("secret", [False, True])
async def test_keys_of_one_read_edit_in_their_order(secret: bool) -> None:
    app = Greedy()
    async with app.run_test(size=(80, 24)) as pilot:
        await ask(app, pilot, secret=secret)
        type_at_once(app, *IN_ONE_READ)
        await until(pilot, lambda: app.prompt.text == WRITTEN, lambda: app.prompt.text)
        if not secret:
            type_at_once(app, "ctrl+u", "x", "ctrl+j", "y", "enter")
            await until(pilot, lambda: not app.prompt.is_open, lambda: app.prompt.text)
