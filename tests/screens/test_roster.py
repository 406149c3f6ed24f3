"""The roster: columns, the cursor that belongs to a session, and what it paints."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.message import Message
from textual.theme import Theme

from tests.screens.widget_kit import Bench, Row, Rows, check_harmless, lines, named, strips, texts, tones
from watchfloor.text import Clean
from widgets.columns import LEAD, columns_for
from widgets.marks import Marks
from widgets.roster import Roster

PAGE = 9  # rows on a screen of ten lines


def many(count: int = 30) -> Rows:
    return Rows(named(*(f"agent-{i:02}" for i in range(count))))


def chosen(app: Bench) -> list[object]:
    return [message.key for message in app.seen if isinstance(message, Roster.Selected)]


def screen_line(roster: Roster) -> int:
    return next(y for y, text in enumerate(lines(roster)) if text.startswith("▌"))


# ---------------------------------------------------------------- columns


def test_columns_fill_the_width_exactly() -> None:
    for width in range(25, 260):
        columns = columns_for(width)
        assert LEAD + sum(column.width for column in columns) + len(columns) - 1 == width
        assert all(column.width > 0 for column in columns)


@pytest.mark.parametrize(
    ("width", "absent"),
    [
        (60, {"rate", "usage", "attempt", "can", "source"}),
        (79, {"rate", "usage", "attempt", "can"}),
        (80, {"rate", "usage", "attempt", "can"}),
        (119, set()),
        (200, set()),
    ],
)
def test_narrow_rosters_do_without_the_least_useful_columns(width: int, absent: set[str]) -> None:
    names = {"state", "name", "source", "attempt", "needs", "last", "rate", "usage", "can"}
    assert names - {column.name for column in columns_for(width)} == absent


@pytest.mark.parametrize("width", [20, 40, 79, 80, 100, 120, 160, 200])
def test_what_needs_the_operator_is_never_dropped_nor_squeezed(width: int) -> None:
    needs = next(column for column in columns_for(width) if column.name == "needs")
    assert needs.width == 12


@pytest.mark.parametrize("width", [80, 120, 200])
async def test_wide_and_combining_characters_do_not_move_the_columns(width: int) -> None:
    names = ["plain", "部署-欧州", "cafe\u0301", "\U0001f469\u200d\U0001f680 crew", "x" * 90, ""]
    rows = Rows([(i, Row(name=Clean(name), last=Clean(name * 3), wait=Clean("2:14"))) for i, name in enumerate(names)])
    roster = Roster(rows)
    async with Bench(roster).run_test(size=(width, 10)):
        painted = lines(roster)[1 : 1 + len(names)]
    places = {cell_len(text[: text.index("2:14")]) for text in painted}
    assert len(places) == 1


async def test_a_cut_text_says_so() -> None:
    roster = Roster(Rows([("a", Row(name=Clean("n" * 90)))]))
    async with Bench(roster).run_test(size=(80, 5)):
        assert "nnn…" in lines(roster)[1]


async def test_marks_and_demo_stand_on_the_row() -> None:
    roster = Roster(Rows([("a", Row(demo=True)), ("b", Row(marked=True)), ("c", Row())]))
    async with Bench(roster).run_test(size=(80, 6)):
        first, second, third = lines(roster)[1:4]
    assert "DEMO" in first
    assert second[:2] == " *"
    assert "DEMO" not in third
    assert "*" not in third


async def test_own_characters_can_be_ascii() -> None:
    marks = Marks(cursor=">", marked="*", cut="~", rule="-", bar="|", bar_more=":", follow="v", newer="v", alert="!")
    roster = Roster(Rows([("a", Row(name=Clean("n" * 90)))]), marks=marks)
    async with Bench(roster).run_test(size=(80, 5)):
        painted = lines(roster)
    assert all(text.isascii() for text in painted)
    assert painted[1].startswith(">")


async def test_markup_in_a_name_is_only_text() -> None:
    roster = Roster(Rows([("a", Row(name=Clean("[red]x[/red]"), last=Clean("[@click=app.quit]y[/]")))]))
    async with Bench(roster).run_test(size=(120, 5)):
        assert "[red]x[/red]" in lines(roster)[1]
        assert "[@click=app.quit]y[/]" in lines(roster)[1]


async def test_an_empty_roster_says_what_it_is() -> None:
    roster = Roster(Rows([]))
    async with Bench(roster).run_test(size=(80, 6)):
        roster.empty = Clean("no sessions yet")
        assert any("no sessions yet" in text for text in lines(roster))
        roster.rows = Rows(named("a"))
        assert not any("no sessions yet" in text for text in lines(roster))


# ---------------------------------------------------------------- keys and mouse


async def test_keys_move_the_cursor() -> None:
    roster = Roster(many())
    app = Bench(roster)
    async with app.run_test(size=(80, 10), message_hook=app.note) as pilot:
        for key, expected in [
            ("down", "agent-01"),
            ("j", "agent-02"),
            ("k", "agent-01"),
            ("up", "agent-00"),
            ("up", "agent-00"),
            ("pagedown", "agent-08"),
            ("pagedown", "agent-16"),
            ("pageup", "agent-08"),
            ("end", "agent-29"),
            ("down", "agent-29"),
            ("home", "agent-00"),
        ]:
            await pilot.press(key)
            assert roster.selected == expected
            assert expected in lines(roster)[screen_line(roster)]
    assert chosen(app)[:3] == ["agent-00", "agent-01", "agent-02"]


async def test_enter_opens_the_selected_session() -> None:
    roster = Roster(many())
    app = Bench(roster)
    async with app.run_test(size=(80, 10), message_hook=app.note) as pilot:
        await pilot.press("down", "enter")
    assert [message.key for message in app.seen if isinstance(message, Roster.Opened)] == ["agent-01"]


async def test_enter_on_an_empty_roster_does_nothing() -> None:
    roster = Roster(Rows([]))
    app = Bench(roster)
    async with app.run_test(size=(80, 10), message_hook=app.note) as pilot:
        await pilot.press("enter", "down", "end", "pageup")
    assert roster.selected is None
    assert not any(isinstance(message, Roster.Opened | Roster.Selected) for message in app.seen)


async def test_a_click_selects_and_a_double_click_opens() -> None:
    roster = Roster(many())
    app = Bench(roster)
    async with app.run_test(size=(80, 10), message_hook=app.note) as pilot:
        for line in (4, 0):  # the line of headings is no session
            await pilot.click(roster, offset=(20, line))
            assert lines(roster)[4].startswith("▌")
        assert not any(isinstance(message, Roster.Opened) for message in app.seen)
        await pilot.click(roster, offset=(20, 6), times=2)
    assert [message.key for message in app.seen if isinstance(message, Roster.Opened)] == ["agent-05"]


async def test_a_click_below_the_last_row_selects_nothing_else() -> None:
    roster = Roster(Rows(named("a", "b")))
    async with Bench(roster).run_test(size=(80, 10)) as pilot:
        await pilot.click(roster, offset=(20, 7))
        assert roster.selected == "a"


async def test_select_by_key_brings_the_row_into_view() -> None:
    roster = Roster(many())
    async with Bench(roster).run_test(size=(80, 10)):
        assert roster.select("agent-20")
        assert roster.selected == "agent-20"
        assert "agent-20" in lines(roster)[screen_line(roster)]
        assert not roster.select("nobody")
        assert roster.selected == "agent-20"


async def test_the_cursor_stays_in_view_when_the_screen_shrinks() -> None:
    roster = Roster(many())
    async with Bench(roster).run_test(size=(80, 20)) as pilot:
        roster.select("agent-15")
        await pilot.resize_terminal(80, 8)
        await pilot.pause()
        assert "agent-15" in lines(roster)[screen_line(roster)]


# ---------------------------------------------------------------- rows that change


async def test_the_cursor_follows_its_session_and_keeps_its_line() -> None:
    rows = many()
    roster = Roster(rows)
    app = Bench(roster)
    async with app.run_test(size=(80, 10), message_hook=app.note) as pilot:
        await pilot.press(*["down"] * 4)
        before = screen_line(roster)
        rows.items[:0] = named(*(f"new-{i}" for i in range(6)))
        roster.refresh_rows()
        await pilot.pause()
        assert roster.selected == "agent-04"
        assert screen_line(roster) == before
        rows.items.sort(key=lambda item: str(item[0]), reverse=True)
        roster.refresh_rows()
        assert roster.selected == "agent-04"
        assert screen_line(roster) == before
    assert chosen(app)[-1] == "agent-04"


async def test_the_line_gives_way_only_at_the_ends_of_the_list() -> None:
    rows = many()
    roster = Roster(rows)
    async with Bench(roster).run_test(size=(80, 10)) as pilot:
        await pilot.press(*["down"] * 5)
        item = rows.items.pop(5)
        rows.items.insert(0, item)
        roster.refresh_rows()
        assert roster.selected == "agent-05"
        assert screen_line(roster) == 1


async def test_before_the_first_key_new_rows_show_at_the_top() -> None:
    rows = many(3)
    roster = Roster(rows)
    async with Bench(roster).run_test(size=(80, 10)) as pilot:
        rows.items[:0] = named("urgent")
        roster.refresh_rows()
        await pilot.pause()
        assert roster.selected == "agent-00"
        assert "urgent" in lines(roster)[1]
        assert screen_line(roster) == 2


async def test_the_cursor_belongs_to_its_session_even_before_the_roster_is_told() -> None:
    rows = many(5)
    roster = Roster(rows)
    async with Bench(roster).run_test(size=(80, 10)) as pilot:
        await pilot.press("down")
        rows.items.reverse()
        assert "agent-01" in lines(roster)[screen_line(roster)]
        await pilot.press("down")
        assert roster.selected == "agent-00"


@pytest.mark.parametrize(
    ("at", "gone", "now"),
    [
        (3, {"agent-03"}, "agent-04"),
        (3, {"agent-03", "agent-04", "agent-05"}, "agent-02"),
        (3, {"agent-02", "agent-03", "agent-04"}, "agent-05"),
        (29, {"agent-29"}, "agent-28"),
        (0, {"agent-00"}, "agent-01"),
    ],
)
async def test_when_the_selected_session_goes_the_nearest_is_selected(at: int, gone: set[str], now: str) -> None:
    rows = many()
    roster = Roster(rows)
    app = Bench(roster)
    async with app.run_test(size=(80, 10), message_hook=app.note) as pilot:
        roster.select(f"agent-{at:02}")
        await pilot.pause()
        app.seen.clear()
        rows.items[:] = [item for item in rows.items if item[0] not in gone]
        roster.refresh_rows()
        await pilot.pause()
        assert roster.selected == now
        said = [message for message in app.seen if isinstance(message, Roster.Vanished | Roster.Selected)]
    assert [type(message) for message in said] == [Roster.Vanished, Roster.Selected]
    assert isinstance(said[0], Roster.Vanished)
    assert (said[0].key, said[0].now) == (f"agent-{at:02}", now)


async def test_the_nearest_is_found_in_a_list_in_another_order() -> None:
    rows = many()
    roster = Roster(rows)
    async with Bench(roster).run_test(size=(80, 10)):
        roster.select("agent-10")
        kept = [item for item in rows.items if item[0] != "agent-10"]
        rows.items[:] = sorted(kept, key=lambda item: str(item[0]), reverse=True)
        roster.refresh_rows()
        assert roster.selected == "agent-11"


async def test_when_every_session_goes_nothing_is_selected() -> None:
    rows = many(3)
    roster = Roster(rows)
    app = Bench(roster)
    async with app.run_test(size=(80, 10), message_hook=app.note) as pilot:
        rows.items.clear()
        roster.refresh_rows()
        await pilot.pause()
        assert roster.selected is None
        assert chosen(app)[-1] is None
        rows.items.extend(named("back"))
        roster.refresh_rows()
        assert roster.selected == "back"


async def test_scrolled_away_from_the_cursor_the_view_stays() -> None:
    rows = many()
    roster = Roster(rows)
    async with Bench(roster).run_test(size=(80, 10)) as pilot:
        await pilot.press("down")
        roster.jump(15)
        rows.items[20:20] = named("new")
        roster.refresh_rows()
        assert roster.scroll_offset.y == 15
        assert roster.selected == "agent-01"


async def test_another_view_keeps_a_session_that_both_have() -> None:
    roster = Roster(many())
    async with Bench(roster).run_test(size=(80, 10)):
        roster.select("agent-07")
        roster.rows = Rows(named("x", "agent-07", "y"))
        assert roster.selected == "agent-07"


# ---------------------------------------------------------------- what is painted again


async def test_a_row_is_read_again_only_when_its_version_changed() -> None:
    rows = many(5)
    roster = Roster(rows)
    async with Bench(roster).run_test(size=(80, 10)) as pilot:
        await pilot.press("down")
        lines(roster)
        rows.read.clear()
        lines(roster)
        assert rows.read == []
        rows.change("agent-03", last=Clean("now this"))
        roster.refresh_rows({"agent-03"})
        assert "now this" in lines(roster)[4]
        assert rows.read == ["agent-03"]


async def test_a_changed_row_reaches_the_screen() -> None:
    rows = many(5)
    roster = Roster(rows)
    app = Bench(roster)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        rows.change("agent-03", last=Clean("now this"))
        roster.refresh_rows({"agent-03"})
        await pilot.pause()
        assert "now&#160;this" in app.export_screenshot()


async def test_the_bar_tells_whether_the_roster_has_the_keys() -> None:
    roster = Roster(many(3))
    app = Bench(roster)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        focused = next(iter(roster.render_line(1)))
        app.set_focus(None)
        await pilot.pause()
        blurred = next(iter(roster.render_line(1)))
    assert focused.text == blurred.text == "▌"
    assert focused.style != blurred.style


async def test_a_theme_change_reaches_rows_that_are_kept() -> None:
    roster = Roster(many(3))
    app = Bench(roster)
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        before = roster.render_line(1)
        app.register_theme(Theme("other", primary="#ffffff", variables={"wf-cursor": "#000088"}))
        app.theme = "other"
        await pilot.pause()
        assert list(roster.render_line(1)) != list(before)


ROWS = st.builds(
    Row,
    name=texts(),
    state=texts(),
    tone=tones(),
    glyph=texts(3),
    tree=texts(8),
    source=texts(),
    attempt=texts(),
    needs=texts(),
    wait=texts(),
    last=texts(200),
    rate=texts(),
    usage=texts(),
    can=texts(),
    demo=st.booleans(),
    marked=st.booleans(),
)


@pytest.mark.parametrize("width", [1, 5, 30, 80, 120, 200])
async def test_no_text_breaks_a_line_or_brings_control(width: int) -> None:
    roster = Roster()
    app = Bench(roster)
    async with app.run_test(size=(width, 6)):

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(ROWS, min_size=1, max_size=4), texts())
        def check(rows: list[Row], empty: Clean) -> None:
            roster.rows = Rows(list(enumerate(rows)))
            roster.empty = empty
            check_harmless(strips(roster), width)
            roster.rows = None
            check_harmless(strips(roster), width)

        check()


def test_messages_name_their_roster() -> None:
    roster = Roster()
    messages: list[Message] = [
        Roster.Selected(roster, "a"),
        Roster.Opened(roster, "a"),
        Roster.Vanished(roster, "a", None),
    ]
    assert all(getattr(message, "control", None) is roster for message in messages)


@pytest.mark.parametrize("width", range(77, 201))
def test_the_columns_fill_every_width(width: int) -> None:
    for column in (None, "rate", "usage", "needs"):
        columns = columns_for(width, column)
        assert LEAD + sum(one.width for one in columns) + len(columns) - 1 == width
        assert {"state", "name", "needs", "last"} <= {one.name for one in columns}
        assert column is None or column in {one.name for one in columns}


async def test_the_heading_says_what_the_rows_are_sorted_by() -> None:
    bench = Bench(Roster(Rows(named("a"))))
    async with bench.run_test(size=(120, 6)) as pilot:
        roster = bench.query_one(Roster)
        assert "NEEDS▾" not in lines(roster)[0]
        roster.sorted_by = ("needs", False)
        await pilot.pause()
        assert "NEEDS▾" in lines(roster)[0]
        roster.sorted_by = ("rate", True)
        await pilot.pause()
        assert "RATE^" in lines(roster)[0] or "RAT^" in lines(roster)[0]


async def test_what_is_put_away_stands_behind_the_name_and_is_never_cut() -> None:
    row = Row(name=Clean("机器人" * 20), more=Clean("+1,204"))
    bench = Bench(Roster(Rows([("a", row)])))
    async with bench.run_test(size=(80, 6)):
        painted = strips(bench.query_one(Roster))
        assert " +1,204" in painted[1].text
        check_harmless(painted, bench.query_one(Roster).size.width)
