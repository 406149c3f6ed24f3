"""Themes and glyph sets: read from TOML, checked, handed to the toolkit.

A theme brings tones (what a text means) and grounds (what it stands on) as theme variables:
`$wf-attention`, `$wf-cursor` and so on. Widgets refer to nothing else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, NamedTuple

from textual.color import Color, ColorParseError
from textual.theme import Theme

DEFAULT_THEME: Final = "watchfloor-dark"

TONES: Final = ("plain", "quiet", "attention", "running", "failed", "paused", "lost")
GROUNDS: Final = ("ground", "bar", "card", "cursor")
LINES: Final = ("rule",)
TOOLKIT: Final = (
    "primary",
    "secondary",
    "accent",
    "warning",
    "error",
    "success",
    "foreground",
    "background",
    "surface",
    "panel",
)

_GLYPHS: Final[Mapping[str, tuple[str, ...]]] = {
    "states": (
        "starting",
        "idle",
        "running",
        "waiting",
        "paused",
        "completed",
        "failed",
        "stopped",
        "unknown",
        "observed",
    ),
    "overlays": ("pausing", "resuming", "stopping", "interrupting", "reseeding"),
    "tree": ("branch", "last", "pipe", "blank"),
    "marks": ("cursor", "marked", "cut", "rule", "bar", "bar_more", "follow", "newer", "alert"),
    "bars": ("levels",),
}


class ThemeError(ValueError):
    """A theme or a glyph set cannot be used; the message names the file and the key."""


class ThemeData(NamedTuple):
    """A theme as data. Colours are "#rrggbb"."""

    name: str
    dark: bool
    tones: Mapping[str, str]
    grounds: Mapping[str, str]
    lines: Mapping[str, str]
    toolkit: Mapping[str, str]
    variables: Mapping[str, str]

    def css_variables(self) -> dict[str, str]:
        """The theme variables that widgets refer to, without the leading dollar sign."""
        own = {**self.tones, **self.grounds, **self.lines}
        return {f"wf-{name}": colour for name, colour in own.items()}

    def textual(self) -> Theme:
        """The theme as the toolkit wants it."""
        return Theme(
            name=self.name,
            dark=self.dark,
            variables={**self.variables, **self.css_variables()},
            primary=self.toolkit["primary"],
            secondary=self.toolkit["secondary"],
            accent=self.toolkit["accent"],
            warning=self.toolkit["warning"],
            error=self.toolkit["error"],
            success=self.toolkit["success"],
            foreground=self.toolkit["foreground"],
            background=self.toolkit["background"],
            surface=self.toolkit["surface"],
            panel=self.toolkit["panel"],
        )


class GlyphSet(NamedTuple):
    """Glyphs by use. `states` and `overlays` are keyed by the words of the lifecycle."""

    name: str
    states: Mapping[str, str]
    overlays: Mapping[str, str]
    tree: Mapping[str, str]
    marks: Mapping[str, str]
    levels: str


@cache
def theme_names() -> tuple[str, ...]:
    """The themes that come with the application, sorted."""
    found = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml") and name != _GLYPH_FILE))


@cache
def load_theme(name: str = DEFAULT_THEME) -> ThemeData:
    """One theme by name.

    Raises:
        ThemeError: there is no such theme, or it lacks a colour.
    """
    if name not in theme_names():
        raise ThemeError(f"there is no theme {name!r}; there are: {', '.join(theme_names())}")
    file_name = f"{name}.toml"
    return parse_theme(_folder().joinpath(file_name).read_text("utf-8"), file_name)


@cache
def load_glyphs(name: str = "unicode") -> GlyphSet:
    """One glyph set: `unicode` or `ascii`.

    Raises:
        ThemeError: there is no such set.
    """
    return parse_glyphs(_folder().joinpath(_GLYPH_FILE).read_text("utf-8"), name, _GLYPH_FILE)


def parse_theme(text: str, where: str) -> ThemeData:
    """A theme from TOML; `where` names it in errors.

    Raises:
        ThemeError: not TOML, a colour missing or not a colour.
    """
    data = _toml(text, where)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ThemeError(f"{where}: name is missing")
    dark = data.get("dark", True)
    if not isinstance(dark, bool):
        raise ThemeError(f"{where}: dark must be true or false")
    variables = _table(data, "variables", where) if "variables" in data else {}
    return ThemeData(
        name=name,
        dark=dark,
        tones=_colours(data, "tones", TONES, where),
        grounds=_colours(data, "grounds", GROUNDS, where),
        lines=_colours(data, "lines", LINES, where),
        toolkit=_colours(data, "toolkit", TOOLKIT, where),
        variables={key: _text(value, f"variables.{key}", where) for key, value in variables.items()},
    )


def parse_glyphs(text: str, name: str, where: str) -> GlyphSet:
    """The glyph set `name` from TOML; `where` names it in errors.

    Raises:
        ThemeError: not TOML, no such set, or a glyph missing.
    """
    data = _toml(text, where)
    if name not in data:
        raise ThemeError(f"{where}: there is no glyph set {name!r}; there are: {', '.join(sorted(data))}")
    chosen = _table(data, name, where)
    groups: dict[str, dict[str, str]] = {}
    for group, names in _GLYPHS.items():
        table = _table(chosen, group, f"{where}: {name}")
        groups[group] = {key: _text(table.get(key), f"{group}.{key}", f"{where}: {name}") for key in names}
    return GlyphSet(
        name=name,
        states=groups["states"],
        overlays=groups["overlays"],
        tree=groups["tree"],
        marks=groups["marks"],
        levels=groups["bars"]["levels"],
    )


_GLYPH_FILE: Final = "glyphs.toml"


def _folder() -> Traversable:
    return files("themes")


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ThemeError(f"{where}: {error}") from error


def _table(data: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    table = data.get(key)
    if not isinstance(table, dict):
        raise ThemeError(f"{where}: the table [{key}] is missing")
    return table


def _text(value: object, key: str, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ThemeError(f"{where}: {key} is missing or not a text")
    return value


def _colours(data: Mapping[str, Any], key: str, names: tuple[str, ...], where: str) -> dict[str, str]:
    table = _table(data, key, where)
    colours: dict[str, str] = {}
    for name in names:
        value = _text(table.get(name), f"{key}.{name}", where)
        try:
            colours[name] = Color.parse(value).hex
        except ColorParseError as error:
            raise ThemeError(f"{where}: {key}.{name}: {value!r} is not a colour") from error
    return colours
