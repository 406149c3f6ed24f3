"""Themes and glyph sets: whether they can be read by everybody, and what a bad file says."""

from __future__ import annotations

import unicodedata
from itertools import combinations

import pytest
from rich.cells import cell_len
from textual.color import Color

from tests.screens.widget_kit import Bench
from themes import loader
from themes.loader import ThemeData, ThemeError, load_glyphs, load_theme, parse_glyphs, parse_theme, theme_names
from watchfloor.words import Lifecycle, Overlay
from widgets.marks import UNICODE_MARKS, Marks
from widgets.tones import TONES

SETS = ("unicode", "ascii")
THEMES = theme_names()


def luminance(colour: str) -> float:
    def linear(value: int) -> float:
        part = value / 255
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = Color.parse(colour).rgb
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


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
@pytest.mark.parametrize("ground", loader.GROUNDS)
@pytest.mark.parametrize("tone", loader.TONES)
def test_every_tone_can_be_read_on_every_ground(name: str, ground: str, tone: str) -> None:
    theme = load_theme(name)
    assert contrast(theme.tones[tone], theme.grounds[ground]) >= 4.5


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("ground", ["ground", "card"])
def test_lines_can_be_seen(name: str, ground: str) -> None:
    theme = load_theme(name)
    for colour in theme.lines.values():
        assert contrast(colour, theme.grounds[ground]) >= 3


@pytest.mark.parametrize("name", THEMES)
def test_tones_can_be_told_apart(name: str) -> None:
    theme = load_theme(name)
    for one, other in combinations(loader.TONES, 2):
        assert theme.tones[one] != theme.tones[other]


@pytest.mark.parametrize("name", THEMES)
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
    assert loader.TONES == TONES


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
    assert theme.textual().variables["wf-cursor"] == "#FFFFFF"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('lost = "#000000"\n', "", "mine.toml: tones.lost is missing"),
        ('card = "#ffffff"', 'card = "blurple"', "mine.toml: grounds.card: 'blurple' is not a colour"),
        ('card = "#ffffff"', "card = 7", "mine.toml: grounds.card is missing or not a text"),
        ("[lines]", "[strokes]", "mine.toml: the table [lines] is missing"),
        ('name = "mine"', "", "mine.toml: name is missing"),
        ("dark = false", 'dark = "no"', "mine.toml: dark must be true or false"),
        ("[grounds]", "[grounds", "mine.toml: "),
    ],
)
def test_a_bad_theme_names_file_and_key(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ThemeError) as caught:
        parse_theme(GOOD.replace(old, new), "mine.toml")
    assert str(caught.value).startswith(said)


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
        ("[unicode.states]\nidle = 'o'", "g.toml: unicode: states.starting is missing or not a text"),
        ("unicode = 3", "g.toml: the table [unicode] is missing"),
    ],
)
def test_a_bad_glyph_file_names_what_is_missing(text: str, said: str) -> None:
    with pytest.raises(ThemeError) as caught:
        parse_glyphs(text, "unicode", "g.toml")
    assert str(caught.value) == said
