"""The footer: keys that work, keys that do not and why."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.screens.widget_kit import Bench, Item, check_harmless, lines, strips, texts
from watchfloor.text import Clean
from widgets.action_footer import ActionFooter


def item(text: str, reason: str | None = None) -> Item:
    key, label = text.split(" ", 1)
    return Item(Clean(key), Clean(label), reason is None, Clean(reason or ""))


MANY = [item(f"{key} does-a-thing") for key in "abcdefghijklmnop"]


async def test_keys_stand_side_by_side_with_reasons() -> None:
    footer = ActionFooter([item("a approve"), item("p pause", "not while a request is open"), item("q quit")])
    async with Bench(footer).run_test(size=(80, 5)):
        assert lines(footer) == [" a approve  p pause: not while a request is open  q quit"]


async def test_blocked_keys_are_grey_and_do_not_look_like_keys() -> None:
    footer = ActionFooter([item("a approve"), item("p pause", "not now")])
    async with Bench(footer).run_test(size=(80, 5)):
        styles = {segment.text: segment.style for segment in footer.render_line(0)}
    key, blocked = styles["a"], styles["p pause: not now"]
    assert key is not None
    assert blocked is not None
    assert key.bold
    assert not blocked.bold
    assert key.color != blocked.color


async def test_they_wrap_onto_a_second_line() -> None:
    footer = ActionFooter(MANY[:6])
    async with Bench(footer).run_test(size=(60, 5)) as pilot:
        assert footer.size.height == 2
        assert [len(text) <= 60 for text in lines(footer)] == [True, True]
        assert " ".join(lines(footer)).split() == " ".join(f"{key} does-a-thing" for key in "abcdef").split()
        footer.items = MANY[:2]
        await pilot.pause()
        assert footer.size.height == 1


async def test_what_does_not_fit_is_announced() -> None:
    footer = ActionFooter(MANY)
    async with Bench(footer).run_test(size=(60, 5)):
        painted = lines(footer)
    assert len(painted) == 2
    assert painted[1].endswith("…  ? keys")
    assert painted[0].startswith(" a does-a-thing  b does-a-thing")


async def test_reasons_give_way_before_keys_do() -> None:
    long = "because the source says that a request of this session is open and waits for an operator"
    footer = ActionFooter([item(f"{key} does-a-thing", long) for key in "abcdef"])
    async with Bench(footer).run_test(size=(60, 5)):
        painted = " ".join(lines(footer))
    for key in "abcdef":
        assert f"({key} does-a-thing)" in painted
    footer = ActionFooter([item("a approve", long), item("q quit")])
    async with Bench(footer).run_test(size=(60, 5)):
        painted = " ".join(lines(footer))
    assert "a approve: because the source says that a …" in painted
    assert "q quit" in painted


async def test_a_change_of_words_lays_nothing_out() -> None:
    footer = ActionFooter([item("a approve"), item("p pause", "not now")])
    app = Bench(footer)
    async with app.run_test(size=(80, 5)) as pilot:
        await pilot.pause()
        layouts: list[object] = []
        footer.screen.screen_layout_refresh_signal.subscribe(footer, layouts.append)
        footer.items = [item("a approve"), item("p pause")]
        await pilot.pause()
        assert lines(footer) == [" a approve  p pause"]
        assert layouts == []


async def test_an_empty_footer_is_one_blank_line() -> None:
    footer = ActionFooter()
    async with Bench(footer).run_test(size=(80, 5)):
        assert lines(footer) == [""]


ITEMS = st.builds(Item, key=texts(3), label=texts(20), enabled=st.booleans(), reason=texts())


@pytest.mark.parametrize("width", [1, 10, 80])
async def test_no_text_breaks_a_line_or_brings_control(width: int) -> None:
    footer = ActionFooter()
    async with Bench(footer).run_test(size=(width, 5)):

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(ITEMS, max_size=8))
        def check(items: list[Item]) -> None:
            footer.items = items
            check_harmless((footer.render_line(y) for y in range(2)), width)
            check_harmless(strips(footer), width)

        check()
