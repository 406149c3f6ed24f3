"""The column of facts."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.screens.widget_kit import Bench, check_harmless, lines, strips, texts, tones
from watchfloor.text import Clean
from widgets.facts import FactRow, Facts


async def test_labels_and_values_stand_in_columns() -> None:
    facts = Facts([(Clean("state"), Clean("waiting"), "attention"), (Clean("continuity"), Clean("whole"), "plain")])
    async with Bench(facts).run_test(size=(40, 5)):
        assert lines(facts)[:2] == [" state       waiting", " continuity  whole"]


async def test_long_values_wrap_below_themselves() -> None:
    facts = Facts([(Clean("in"), Clean("one two three four five six"), "plain"), (Clean("b"), Clean("x\ny"), "plain")])
    async with Bench(facts).run_test(size=(20, 8)):
        assert lines(facts)[:5] == [" in  one two three", "     four five six", " b   x", "     y", ""]


async def test_a_value_without_blanks_is_wrapped_with_nothing_lost() -> None:
    path = "/srv/app/" + "部署" * 20 + "/end"
    facts = Facts([(Clean("cwd"), Clean(path), "plain")])
    async with Bench(facts).run_test(size=(30, 8)):
        assert "".join(text.removeprefix(" cwd").strip() for text in lines(facts)) == path


async def test_a_path_breaks_between_its_parts() -> None:
    facts = Facts([(Clean("cwd"), Clean("/srv/applications/eu/deploy"), "plain")])
    async with Bench(facts).run_test(size=(20, 5)):
        assert lines(facts)[:3] == [" cwd  /srv/", "      applications/", "      eu/deploy"]


async def test_a_value_gets_no_more_lines_than_it_is_worth() -> None:
    long = Clean("one two three four five six")
    facts = Facts(
        [(Clean("in"), long, "attention", 2), (Clean("b"), long, "plain", 9), (Clean("c"), Clean("x"), "plain", 1)]
    )
    async with Bench(facts).run_test(size=(20, 8)):
        assert lines(facts)[:5] == [
            " in  one two three",
            "     four five six",
            " b   one two three",
            "     four five six",
            " c   x",
        ]
        facts.facts = [(Clean("in"), Clean("one two three four five six seven"), "attention", 2)]
        assert lines(facts)[:3] == [" in  one two three", "     four five six…", ""]
        facts.facts = [(Clean("in"), Clean("one two thre fo abcdefghijklmno pq"), "attention", 2)]
        assert lines(facts)[:3] == [" in  one two thre", "     fo…", ""]


async def test_it_wraps_again_for_another_width() -> None:
    facts = Facts([(Clean("in"), Clean("one two three four five six"), "plain")])
    async with Bench(facts).run_test(size=(20, 8)) as pilot:
        await pilot.resize_terminal(60, 8)
        await pilot.pause()
        assert lines(facts)[0] == " in  one two three four five six"


async def test_new_facts_reach_the_screen_and_take_no_focus() -> None:
    facts = Facts([(Clean("state"), Clean("waiting"), "attention")])
    app = Bench(facts)
    async with app.run_test(size=(40, 5)) as pilot:
        facts.facts = [(Clean("state"), Clean("running"), "running")]
        await pilot.pause()
        assert "running" in app.export_screenshot()
        assert app.focused is None


async def test_a_value_takes_the_colour_of_its_tone() -> None:
    facts = Facts([(Clean("a"), Clean("failed"), "failed"), (Clean("b"), Clean("quiet"), "quiet")])
    async with Bench(facts).run_test(size=(40, 5)):
        colours = [str(strip_colour(facts, y)) for y in (0, 1)]
    assert colours == ["#ff8077", "#9aa6b4"]


def strip_colour(facts: Facts, y: int) -> str:
    style = list(facts.render_line(y))[1].style
    assert style is not None
    assert style.color is not None
    return style.color.get_truecolor().hex


@pytest.mark.parametrize("width", [1, 5, 12, 40])
async def test_no_text_breaks_a_line_or_brings_control(width: int) -> None:
    facts = Facts()
    async with Bench(facts).run_test(size=(width, 12)):

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(st.tuples(texts(), texts(120), tones()), max_size=4))
        def check(rows: list[FactRow]) -> None:
            facts.facts = rows
            check_harmless(strips(facts), width)

        check()


async def test_what_is_wrapped_stands_behind_the_column_that_its_value_begins_with() -> None:
    rows: list[FactRow] = [
        (Clean("k"), Clean("label     one two three four five six"), "plain"),
        (Clean(""), Clean("no column here, only words that are wrapped"), "plain"),
    ]
    facts = Facts(rows, hang=10)
    async with Bench(facts).run_test(size=(32, 8)) as pilot:
        await pilot.pause()
        shown = [line.rstrip() for line in lines(facts)]
    assert shown[:2] == [" k  label     one two three", "              four five six"]
    assert shown[2].startswith("    no column here, only")
    assert shown[3].startswith("    that")
