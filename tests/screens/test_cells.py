"""Cell arithmetic: exact widths, and nothing lost where nothing may be lost."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.screens.widget_kit import texts
from widgets.cells import chop, crop, cut_middle, fit, flat, skip, width_of, wrap

WIDTHS = st.integers(0, 40)


@given(st.one_of(texts(), st.text()), WIDTHS, st.booleans())
@example("\u0300", 3, False)
@example("x\u200d", 5, False)
@example("\u200d\u200dab字", 2, False)
@example("\u200d字x", 2, True)
def test_fit_gives_exactly_the_width(text: str, width: int, right: bool) -> None:
    assert cell_len(fit(text, width, right=right)) == width


def test_fit_pads_on_the_asked_side_and_marks_a_cut() -> None:
    assert fit("ab", 4) == "ab  "
    assert fit("ab", 4, right=True) == "  ab"
    assert fit("abcdef", 4) == "abc…"
    assert fit("abcdef", 4, "~") == "abc~"
    assert fit("部署了", 4) == "部 …"
    assert fit("部署了", 5) == "部署…"


@given(st.one_of(texts(), st.text()), WIDTHS)
@example("\u200d字" * 20, 9)
def test_cut_in_the_middle_gives_exactly_the_width(text: str, width: int) -> None:
    assert cell_len(cut_middle(text, width)) == width


def test_cut_in_the_middle_leaves_both_ends() -> None:
    assert cut_middle("abcdefghij", 7) == "abc…hij"
    assert cut_middle("abcdefghij", 6, "~") == "ab~hij"
    assert cut_middle("abc", 5) == "abc  "


@given(st.one_of(texts(), st.text()), WIDTHS)
def test_crop_gives_exactly_the_width(text: str, width: int) -> None:
    assert cell_len(crop(text, width)) == width


@given(st.text(alphabet="ab部🚀é", max_size=20), st.integers(0, 30))
def test_crop_and_skip_part_a_text_in_two(text: str, cells: int) -> None:
    rest = skip(text, cells)
    assert width_of(rest) == max(0, width_of(text) - cells)
    assert text.endswith(rest.lstrip(" "))


@given(st.one_of(texts(), st.text()), st.integers(0, 40))
def test_skip_never_fails(text: str, cells: int) -> None:
    assert isinstance(skip(text, cells), str)


@given(st.text())
def test_flat_leaves_no_control_character_and_no_line_break(text: str) -> None:
    assert len(flat(text)) == len(text)
    assert len(flat(text).splitlines()) <= 1
    assert not any(ch < " " or "\x7f" <= ch <= "\x9f" for ch in flat(text))


@given(texts(200), st.integers(2, 40))
def test_chop_loses_nothing(text: str, width: int) -> None:
    without_tabs = text.replace("\t", "")
    pieces = chop(without_tabs, width)
    assert "".join(pieces) == flat(without_tabs)
    assert all(width_of(piece) <= width for piece in pieces)


def test_chop_shows_tabs_up_to_the_next_stop() -> None:
    assert chop("a\tb", 20) == ["a⇥  b"]
    assert chop("\t\tb", 20) == ["⇥   ⇥   b"]
    assert chop("abcd\te", 20) == ["abcd⇥   e"]
    assert chop("", 20) == [""]


@given(texts(200), st.integers(2, 40))
def test_wrap_keeps_every_word_and_the_width(text: str, width: int) -> None:
    text = text.replace("\t", " ")
    pieces = wrap(text, width)
    assert all(width_of(piece) <= width for piece in pieces)
    assert "".join(pieces).replace(" ", "") == flat(text.replace("\n", "")).replace(" ", "")


def test_wrap_breaks_at_blanks_and_at_line_breaks() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("one\n\ntwo", 8) == ["one", "", "two"]
    assert wrap("abcdefghijkl m", 5) == ["abcde", "fghij", "kl m"]


@given(texts(200), st.integers(2, 40))
def test_a_seam_changes_where_words_break_and_nothing_else(text: str, width: int) -> None:
    text = text.replace("\t", " ") + "/" + text.replace("\t", "/")
    pieces = wrap(text, width, seam="/")
    assert all(width_of(piece) <= width for piece in pieces)
    assert "".join(pieces).replace(" ", "") == flat(text.replace("\n", "")).replace(" ", "")


def test_a_path_breaks_at_its_separators() -> None:
    assert wrap("/srv/applications/eu/deploy", 14, seam="/") == ["/srv/", "applications/", "eu/deploy"]
    assert wrap("in /srv/applications", 14, seam="/") == ["in", "/srv/", "applications"]
    assert wrap("/srv/abcdefghijklmnop/b", 8, seam="/") == ["/srv/", "abcdefgh", "ijklmnop", "/b"]
    assert wrap("a/b c/d", 14, seam="/") == ["a/b c/d"]


def test_chop_takes_a_megabyte_of_tabs_whole() -> None:
    pieces = chop("\u00e9\t" * 400_000, 80)
    assert len(pieces) == 400_000 * 4 // 80
    assert all(cell_len(piece) == 80 for piece in pieces[:100] + pieces[-100:])


def test_no_control_comes_out_of_a_long_paragraph() -> None:
    text = "".join(wrap("[red]x[/red][red]x[/red][red]x[/red]a\tb c\x08d\r" * 3, 12))
    assert text.isprintable()
    assert "[red]x" in text
