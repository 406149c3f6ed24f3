"""The event log: following and staying, what is cut and how one reads on."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.screens.widget_kit import Bench, Line, Ring, check_harmless, lines, strips, texts, tones
from watchfloor.text import Clean
from widgets.event_log import EventLog

PAGE = 9  # lines on a screen of ten, above the last one that says whether the log follows


def ring(count: int = 40) -> Ring:
    return Ring([Line(Clean(f"line {i}")) for i in range(count)])


def shown(log: EventLog) -> list[str]:
    return [text.split("tool", 1)[1].strip() for text in lines(log)[:-1] if text]


async def test_it_begins_at_the_end_and_follows() -> None:
    view = ring()
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)):
        assert shown(log)[-1] == "line 39"
        log.refresh_log(appended=view.append("new 0", "new 1"))
        assert shown(log)[-2:] == ["new 0", "new 1"]
        assert log.following
        assert "following" in lines(log)[-1]


async def test_scrolled_up_it_stays_while_lines_arrive() -> None:
    view = ring()
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        await pilot.press("up", "pageup")
        reading = shown(log)
        log.refresh_log(appended=view.append(*(f"new {i}" for i in range(5))))
        await pilot.pause()
        assert shown(log) == reading
        assert not log.following
        assert log.unread == 5
        assert "5 new" in lines(log)[-1]


async def test_what_is_read_stays_when_the_ring_drops_lines_above() -> None:
    view = ring()
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        await pilot.press("pageup")
        reading = shown(log)
        log.refresh_log(appended=view.append("new"), dropped=view.drop(12))
        assert shown(log) == reading
        log.refresh_log(dropped=view.drop(15))
        assert shown(log)[0] == f"line {view.first}"
        assert not log.following


async def test_scrolling_back_to_the_end_follows_again() -> None:
    view = ring()
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        await pilot.press("up", "up")
        log.refresh_log(appended=view.append("new"))
        await pilot.press("down", "down")
        assert (log.following, log.unread) == (False, 1)
        await pilot.press("down")
        assert (log.following, log.unread) == (True, 0)
        await pilot.press("home")
        assert shown(log)[0] == "line 0"
        await pilot.press("end")
        assert log.following
        assert shown(log)[-1] == "new"


async def test_lines_that_came_into_view_are_not_new_any_more() -> None:
    view = ring()
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        await pilot.press("up", "up")
        log.refresh_log(appended=view.append("a", "b", "c", "d"))
        assert log.unread == 4
        await pilot.press("down", "down", "down")
        assert log.unread == 3
        await pilot.press("up")
        assert log.unread == 3


async def test_a_short_log_follows_whatever_is_pressed() -> None:
    view = ring(3)
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        await pilot.press("up", "home", "pageup")
        assert log.following
        log.refresh_log(appended=view.append(*(f"new {i}" for i in range(20))))
        assert shown(log)[-1] == "new 19"


async def test_it_keeps_following_when_the_screen_changes_size() -> None:
    log = EventLog(ring())
    async with Bench(log).run_test(size=(80, 20)) as pilot:
        await pilot.resize_terminal(80, 8)
        await pilot.pause()
        assert shown(log)[-1] == "line 39"
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert log.following
        assert shown(log)[-1] == "line 39"


async def test_another_log_begins_at_its_end() -> None:
    log = EventLog(ring())
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        await pilot.press("home")
        log.lines = ring(60)
        assert log.following
        assert shown(log)[-1] == "line 59"


async def test_a_line_that_changed_is_painted_again() -> None:
    view = ring()
    log = EventLog(view)
    app = Bench(log)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        view.items[-1].text = Clean("grown further")
        log.refresh_log()
        await pilot.pause()
        assert "grown&#160;further" in app.export_screenshot()


async def test_new_lines_lay_nothing_out_again() -> None:
    view = ring()
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        resized = 0

        def count() -> None:
            nonlocal resized
            resized += 1

        log.screen.screen_layout_refresh_signal.subscribe(log, lambda _: count())
        for i in range(5):
            log.refresh_log(appended=view.append(f"new {i}"))
            await pilot.pause()
        assert shown(log)[-1] == "new 4"
        assert resized == 0


async def test_a_long_line_is_cut_with_a_mark_and_can_be_read_on() -> None:
    text = "".join(f"{i:03}-" for i in range(40))
    log = EventLog(Ring([Line(Clean(text), tail=Clean("3.2 s"))]))
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        first = lines(log)[0]
        assert "000-001-" in first
        assert first.endswith("… 3.2 s")
        seen = set(first.split("tool", 1)[1].split("…", 1)[0].strip().split("-"))
        await pilot.press("right")
        assert lines(log)[0] != first
        for _ in range(20):
            middle = lines(log)[0].split("tool", 1)[1].removesuffix("3.2 s").strip().strip("…")
            seen.update(middle.split("-"))
            log.action_shift(1)
        assert {f"{i:03}" for i in range(40)} <= seen
        assert not lines(log)[0].removesuffix("3.2 s").rstrip().endswith("…")
        log.action_shift(-30)
        await pilot.press("left")
        assert lines(log)[0] == first


async def test_short_lines_do_not_move_sideways() -> None:
    log = EventLog(ring(3))
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        before = lines(log)
        await pilot.press("right")
        assert lines(log) == before


async def test_time_kind_and_tail_have_their_places() -> None:
    view = Ring([Line(Clean("部署 done"), tail=Clean("✓ 3.2 s")), Line(Clean("x" * 200), tail=Clean("✓ 3.2 s"))])
    log = EventLog(view)
    async with Bench(log).run_test(size=(100, 5)):
        first, second = strips(log)[:2]
    assert first.text.startswith(" 14:03:07  tool     部署 done")
    assert first.crop(0, 98).text.rstrip().endswith("✓ 3.2 s")
    assert second.crop(0, 98).text.rstrip().endswith("… ✓ 3.2 s")


async def test_an_empty_log_says_what_it_is() -> None:
    log = EventLog()
    async with Bench(log).run_test(size=(80, 6)):
        log.empty = Clean("no events yet")
        assert lines(log)[0] == " no events yet"


async def test_markup_is_only_text() -> None:
    log = EventLog(Ring([Line(Clean("[@click=app.quit]x[/] [/nope]"))]))
    async with Bench(log).run_test(size=(80, 6)):
        assert "[@click=app.quit]x[/] [/nope]" in lines(log)[0]


LINES = st.builds(Line, text=texts(300), time=texts(), kind=texts(), tone=tones(), tail=texts())


@pytest.mark.parametrize("width", [1, 5, 24, 80, 160])
async def test_no_text_breaks_a_line_or_brings_control(width: int) -> None:
    log = EventLog()
    async with Bench(log).run_test(size=(width, 6)):

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(LINES, max_size=5), st.integers(0, 5), texts())
        def check(items: list[Line], steps: int, empty: Clean) -> None:
            log.lines = Ring(items)
            log.empty = empty
            log.action_shift(steps)
            check_harmless(strips(log), width)

        check()


STEPS = st.lists(st.tuples(st.sampled_from(("append", "drop", "up", "down", "end")), st.integers(1, 12)), max_size=30)


async def test_no_order_of_arrivals_and_keys_loses_the_place() -> None:
    """Detached, the line at the top stays until the ring drops it; following, the end is shown."""
    log = EventLog()
    async with Bench(log).run_test(size=(80, 10)):

        @settings(max_examples=60, deadline=None)
        @given(STEPS)
        def check(steps: list[tuple[str, int]]) -> None:
            view = ring(25)
            log.lines = view
            for what, count in steps:
                walk(log, view, what, count)

        check()


def walk(log: EventLog, view: Ring, what: str, count: int) -> None:
    top = view.first + log.scroll_offset.y
    if what == "append":
        end = view.first + len(view)
        log.refresh_log(appended=view.append(*(f"line {end + i}" for i in range(count))))
    elif what == "drop":
        log.refresh_log(dropped=view.drop(min(count, len(view))))
    elif what == "end":
        log.action_scroll_end()
    else:
        log.jump(log.scroll_offset.y + (count if what == "down" else -count))
    place = view.first + log.scroll_offset.y
    if log.following:
        assert log.scroll_offset.y == log.max_scroll_y
        assert log.unread == 0
    elif what in ("append", "drop"):
        assert place == max(top, view.first)
    if shown(log):
        assert shown(log)[0] == f"line {place}"


# ---------------------------------------------------------------- what is looked for


async def test_what_is_looked_for_is_marked_wherever_it_stands() -> None:
    log = EventLog(Ring([Line(Clean("Make it, then make MAKE"), matched=True), Line(Clean("nothing"))]))
    async with Bench(log).run_test(size=(80, 10)) as pilot:
        log.needle = "make"
        log.status = Clean("make: 1 of 1")
        await pilot.pause()
        first, second, *_, last = strips(log)
        assert [s.text for s in first if s.style is not None and s.style.reverse] == ["Make", "make", "MAKE"]
        assert first.text.startswith("*")
        assert not second.text.startswith("*")
        assert "make: 1 of 1" in last.text
        assert "following" in last.text


async def test_a_line_that_is_stayed_with_is_so_at_the_end_as_well() -> None:
    view = ring(3)
    log = EventLog(view)
    async with Bench(log).run_test(size=(80, 10)):
        log.select(2, stay=True)
        assert not log.following
        log.refresh_log(appended=view.append("new"))
        assert (log.selected, log.following) == (2, False)
        log.select(3)
        assert log.following


@pytest.mark.parametrize("width", [12, 80])
async def test_no_search_breaks_a_line_or_brings_control(width: int) -> None:
    log = EventLog()
    async with Bench(log).run_test(size=(width, 6)):

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(LINES, max_size=5), st.text(max_size=4), texts())
        def check(items: list[Line], needle: str, said: Clean) -> None:
            log.needle, log.status = needle, said
            log.lines = Ring(items)
            check_harmless(strips(log), log.size.width)

        check()
