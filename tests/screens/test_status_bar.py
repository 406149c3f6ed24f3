"""The status bar."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.screens.widget_kit import Bench, Status, check_harmless, lines, strips, texts, tones
from watchfloor.text import Clean
from widgets.status_bar import StatusBar
from widgets.tones import Segment


async def test_pieces_stand_left_and_right() -> None:
    bar = StatusBar(
        Status(
            left=[(Clean("watchfloor"), "plain"), (Clean("4 sources live"), "quiet")],
            right=[(Clean("3 need you"), "attention"), (Clean("14:05:22"), "quiet")],
        )
    )
    async with Bench(bar).run_test(size=(80, 3)):
        text = bar.render_line(0).text
    assert text.startswith(" watchfloor  4 sources live ")
    assert text.endswith(" 3 need you  14:05:22 ")


async def test_the_right_part_wins_and_a_cut_is_marked() -> None:
    bar = StatusBar(
        Status(
            left=[(Clean("watchfloor"), "plain"), (Clean("a source with a long name is lost"), "lost")],
            right=[(Clean("3 need you"), "attention")],
        )
    )
    async with Bench(bar).run_test(size=(40, 3)) as pilot:
        assert lines(bar)[0] == " watchfloor  a source with…  3 need you"
        await pilot.resize_terminal(8, 3)
        await pilot.pause()
        assert lines(bar)[0] == " 3 nee…"


async def test_a_left_part_that_stands_alone_has_the_whole_line() -> None:
    bar = StatusBar(Status(left=[(Clean("x" * 38), "plain")]))
    async with Bench(bar).run_test(size=(40, 3)) as pilot:
        assert lines(bar)[0].rstrip() == f" {'x' * 38}"
        bar.status = Status(left=[(Clean("x" * 39), "plain")])
        await pilot.pause()
        assert "…" in lines(bar)[0]


async def test_of_a_long_reason_the_end_stands_there_as_well() -> None:
    why = "far lost 0:42: the process ended before it had listened, with status 137: killed"
    bar = StatusBar(Status(left=[(Clean(why), "lost")], right=[(Clean("3 need you"), "attention")]))
    async with Bench(bar).run_test(size=(60, 3)):
        said = lines(bar)[0]
    assert said.startswith(" far lost 0:42: the pro")
    assert "status 137: killed  3 need you" in said
    assert said.count("…") == 1


async def test_a_change_reaches_the_screen_and_lays_nothing_out() -> None:
    bar = StatusBar(Status(left=[(Clean("connecting"), "quiet")]))
    app = Bench(bar)
    async with app.run_test(size=(80, 3)) as pilot:
        await pilot.pause()
        layouts: list[object] = []
        bar.screen.screen_layout_refresh_signal.subscribe(bar, layouts.append)
        bar.status = Status(left=[(Clean("live"), "running")])
        await pilot.pause()
        assert "live" in app.export_screenshot()
        assert "connecting" not in app.export_screenshot()
        assert layouts == []


async def test_a_view_that_is_changed_later_does_not_change_what_was_said() -> None:
    left: list[Segment] = [(Clean("one"), "plain")]
    status = Status(left=left)
    bar = StatusBar(status)
    async with Bench(bar).run_test(size=(80, 3)):
        left[0] = (Clean("two"), "plain")
        assert lines(bar)[0] == " one"
        bar.status = status
        assert lines(bar)[0] == " two"


SEGMENTS = st.lists(st.tuples(texts(), tones()), max_size=5)


@pytest.mark.parametrize("width", [1, 2, 3, 10, 80])
async def test_no_text_breaks_the_line_or_brings_control(width: int) -> None:
    bar = StatusBar()
    async with Bench(bar).run_test(size=(width, 3)):

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(SEGMENTS, SEGMENTS)
        def check(left: list[Segment], right: list[Segment]) -> None:
            bar.status = Status(left, right)
            check_harmless(strips(bar), width)

        check()
