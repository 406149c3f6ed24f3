"""Themes and glyph sets: whether they can be read by everybody, and what a bad file says."""

from __future__ import annotations

import unicodedata
from itertools import combinations
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.color import Color

from tests.screens.widget_kit import Bench
from themes import data, loader
from themes.contrast import contrast, pairs, unreadable
from themes.data import ThemeData, ThemeError, parse_glyphs, parse_theme
from themes.loader import find_theme, load_glyphs, load_theme, own_faults, own_names, theme_names
from themes.toolkit import toolkit_theme
from watchfloor.words import Lifecycle, Overlay
from widgets.marks import UNICODE_MARKS, Marks
from widgets.tones import TONES

SETS = ("unicode", "ascii")
THEMES = theme_names()


def is_red(colour: str) -> bool:
    red, green, blue = Color.parse(colour).rgb
    return red > 1.5 * green and red > 1.5 * blue


# ---------------------------------------------------------------- themes


def test_there_is_the_default_theme() -> None:
    assert loader.DEFAULT_THEME in THEMES
    assert load_theme().name == loader.DEFAULT_THEME


def test_contrast_is_measured_as_the_guidelines_do() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", THEMES)
def test_whatever_is_drawn_can_be_read(name: str) -> None:
    theme = load_theme(name)
    assert unreadable(theme) == []
    drawn = {(pair.over, pair.ground) for pair in pairs(theme)}
    assert {(f"tones.{tone}", f"grounds.{ground}") for tone in data.TONES for ground in data.GROUNDS} <= drawn


def test_the_theme_of_high_contrast_has_it() -> None:
    text = [pair for pair in pairs(load_theme("high-contrast"), text=7) if pair.least == 7]
    assert min(pair.ratio for pair in text) >= 7


def test_what_cannot_be_read_is_named_worst_first() -> None:
    theme = load_theme()
    pale = theme._replace(tones={**theme.tones, "quiet": "#3a4450", "lost": "#6a5f50"})
    named = [(pair.over, pair.ground) for pair in unreadable(pale)]
    assert named[0] == ("tones.quiet", "grounds.cursor")
    assert {over for over, _ in named} == {"tones.quiet", "tones.lost"}


def test_there_is_one_of_each_kind() -> None:
    assert {"watchfloor-dark", "watchfloor-light", "high-contrast", "monochrome"} < set(THEMES)
    assert {load_theme(name).dark for name in THEMES} == {True, False}
    assert len(THEMES) >= 6


def test_the_grey_one_has_no_colour_and_says_by_form_what_others_say_by_colour() -> None:
    grey = load_theme(loader.MONOCHROME)
    colours = [*grey.tones.values(), *grey.grounds.values(), *grey.lines.values(), *grey.toolkit.values()]
    assert all(len({colour[at : at + 2] for at in (1, 3, 5)}) == 1 for colour in [*colours, *grey.variables.values()])
    assert len({grey.styles.get(tone, "none") for tone in ("plain", "attention", "failed", "lost")}) == 4


@pytest.mark.parametrize("name", THEMES)
def test_tones_can_be_told_apart(name: str) -> None:
    theme = load_theme(name)
    for one, other in combinations(data.TONES, 2):
        assert theme.tones[one] != theme.tones[other]


@pytest.mark.parametrize("name", [name for name in THEMES if name != loader.MONOCHROME])
def test_red_is_kept_for_what_failed_or_destroys(name: str) -> None:
    theme = load_theme(name)
    assert is_red(theme.tones["failed"])
    others = {tone: colour for tone, colour in theme.tones.items() if tone != "failed"}
    others |= {key: colour for key, colour in theme.toolkit.items() if key != "error"}
    others |= dict(theme.grounds) | dict(theme.lines)
    assert [key for key, colour in others.items() if is_red(colour)] == []


@pytest.mark.parametrize("name", THEMES)
def test_the_file_is_named_after_its_theme(name: str) -> None:
    assert load_theme(name).name == name


def test_themes_and_widgets_know_the_same_tones() -> None:
    assert data.TONES == TONES


async def test_the_toolkit_gets_every_variable_that_widgets_use() -> None:
    app = Bench()
    async with app.run_test() as pilot:
        await pilot.pause()
        variables = app.theme_variables
    theme = load_theme()
    assert variables["wf-attention"].lower() == theme.tones["attention"].lower()
    assert set(theme.css_variables()) <= set(variables)
    assert is_red(variables["error"])
    assert app.theme == theme.name


GOOD = """
name = "mine"
dark = false
[grounds]
ground = "#ffffff"
bar = "#ffffff"
card = "#ffffff"
cursor = "#ffffff"
[tones]
plain = "#000000"
quiet = "#000000"
attention = "#000000"
running = "#000000"
failed = "#000000"
paused = "#000000"
lost = "#000000"
[lines]
rule = "#000000"
[toolkit]
primary = "#000000"
secondary = "#000000"
accent = "#000000"
warning = "#000000"
error = "#000000"
success = "#000000"
foreground = "#000000"
background = "#ffffff"
surface = "#ffffff"
panel = "#ffffff"
"""


def test_a_theme_is_read_from_toml() -> None:
    theme = parse_theme(GOOD, "mine.toml")
    assert (theme.name, theme.dark, theme.variables) == ("mine", False, {})
    assert toolkit_theme(theme).variables["wf-cursor"] == "#ffffff"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('lost = "#000000"\n', "", "mine.toml:9: tones.lost: it is missing or not a text"),
        ('card = "#ffffff"', 'card = "blurple"', "mine.toml:7: grounds.card: 'blurple' is not a colour"),
        ('card = "#ffffff"', "card = 7", "mine.toml:7: grounds.card: it is missing or not a text"),
        ('card = "#ffffff"', 'card = "#ffffff"\ncrad = "#ffffff"', "mine.toml:8: grounds.crad: there is no such key"),
        ('name = "mine"', "", "mine.toml:1: name: it is missing or not a text"),
        ("dark = false", 'dark = "no"', "mine.toml:3: dark: it must be true or false"),
        ("dark = false", 'base = "neon"', "mine.toml:3: base: there is no theme 'neon' to build on"),
        ("[lines]", '[styles]\nfailed = "blink"\n[lines]', "mine.toml:18: styles.failed: it may say: none, bold,"),
        ("[grounds]", "[grounds", "mine.toml: it is not TOML: "),
    ],
)
def test_a_bad_theme_names_file_line_and_key(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ThemeError) as caught:
        parse_theme(GOOD.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith(said)


def test_all_faults_of_a_theme_are_told_at_once_in_the_order_of_the_file() -> None:
    bad = GOOD.replace('rule = "#000000"', "").replace('bar = "#ffffff"', 'bar = "white"')
    with pytest.raises(ThemeError) as caught:
        parse_theme(bad, "mine.toml")
    assert [line.split(": ")[:2] for line in str(caught.value).splitlines()] == [
        ["mine.toml:6", "grounds.bar"],
        ["mine.toml:17", "lines.rule"],
    ]


# ---------------------------------------------------------------- an operator's own


def test_ones_own_theme_may_build_on_another_and_change_little(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nbase = "watchfloor-light"\n[tones]\nquiet = "#404040"\n')
    theme, under = find_theme("mine", tmp_path), load_theme("watchfloor-light")
    assert theme.tones == {**under.tones, "quiet": "#404040"}
    assert (theme.dark, theme.grounds, theme.variables) == (False, under.grounds, under.variables)
    assert own_names(tmp_path) == ["mine"]
    assert own_faults(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("mine", 'name = "yours"\nbase = "harbour"', "name: it is 'yours': a theme is called as its file is, 'mine'"),
        ("mine", "name =", "mine.toml: it is not TOML"),
        ("mine", "\udcff", "mine.toml: it is not UTF-8"),
        ("harbour", "", "harbour.toml: 'harbour' is a theme that comes along; call yours otherwise"),
        ("mine", "#" * 70_000, "mine.toml: it is not a file that can hold a theme"),
    ],
)
def test_what_is_wrong_with_ones_own_is_told_with_its_file(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / f"{name}.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    (fault,) = own_faults(tmp_path)
    assert said in fault
    assert str(tmp_path) in fault


def test_a_folder_that_is_not_there_holds_no_themes(tmp_path: Path) -> None:
    assert own_names(tmp_path / "none") == []


def test_an_unknown_theme_says_which_there_are() -> None:
    with pytest.raises(ThemeError, match=r"no theme 'neon'; there are: .*watchfloor-dark"):
        load_theme("neon")


def test_a_theme_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="attribute"):
        load_theme().name = "other"  # type: ignore[misc]
    assert isinstance(load_theme(), ThemeData)


# ---------------------------------------------------------------- glyphs


@pytest.mark.parametrize("name", SETS)
def test_every_state_and_overlay_has_a_glyph(name: str) -> None:
    glyphs = load_glyphs(name)
    assert {state.value for state in Lifecycle} <= set(glyphs.states)
    assert {overlay.value for overlay in Overlay} == set(glyphs.overlays)


@pytest.mark.parametrize("name", SETS)
def test_states_can_be_told_apart_without_colour(name: str) -> None:
    states = load_glyphs(name).states
    assert len(set(states.values())) == len(states)


@pytest.mark.parametrize("name", SETS)
def test_each_glyph_takes_one_cell(name: str) -> None:
    glyphs = load_glyphs(name)
    for glyph in [*glyphs.states.values(), *glyphs.overlays.values(), *glyphs.marks.values(), *glyphs.levels]:
        assert len(glyph) == 1
        assert cell_len(glyph) == 1
    assert {cell_len(piece) for piece in glyphs.tree.values()} == {2}
    assert len(glyphs.levels) == 8


def test_state_glyphs_are_narrow_in_every_terminal() -> None:
    glyphs = load_glyphs("unicode")
    for glyph in [*glyphs.states.values(), *glyphs.overlays.values()]:
        # "A" would be two cells wide under an East Asian locale.
        assert unicodedata.east_asian_width(glyph) in ("N", "Na", "H"), glyph
        # With an emoji form, some terminals draw it wide and in colours of their own.
        assert cell_len(glyph + "\ufe0f") == 1, glyph


def test_the_ascii_set_is_ascii() -> None:
    glyphs = load_glyphs("ascii")
    groups = (glyphs.states, glyphs.overlays, glyphs.tree, glyphs.marks)
    assert all(glyph.isascii() and glyph.isprintable() for group in groups for glyph in group.values())
    assert glyphs.levels.isascii()


def test_marks_are_what_widgets_draw_with() -> None:
    assert Marks(**load_glyphs("ascii").marks).cursor == "|"
    assert Marks(**load_glyphs("unicode").marks) == UNICODE_MARKS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[other]", "g.toml: there is no glyph set 'unicode'; there are: other"),
        ("[unicode.states]\nidle = 'o'", "g.toml:1: unicode.states.starting: it is missing or not a text"),
        ("unicode = 3", "g.toml:1: unicode: the table [unicode] is missing"),
    ],
)
def test_a_bad_glyph_file_names_what_is_missing(text: str, said: str) -> None:
    with pytest.raises(ThemeError) as caught:
        parse_glyphs(text, "unicode", "g.toml")
    assert str(caught.value).splitlines()[0] == said
