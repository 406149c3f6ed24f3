"""Themes and glyph sets as data: read from TOML and checked, all faults at once. Standard library only.

A theme brings tones (what a text means) and grounds (what it stands on) as theme variables:
`$wf-attention`, `$wf-cursor` and so on. Widgets refer to nothing else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from themes.lines import Key, near_line

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
STYLED: Final = (*TONES, "cursor")
"""What may have a text style as well as a colour: tones, and the line under a cursor."""
STYLES: Final = frozenset({"bold", "italic", "underline", "reverse"})

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
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")
_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "tones": TONES,
    "grounds": GROUNDS,
    "lines": LINES,
    "toolkit": TOOLKIT,
    "styles": STYLED,
}
_TOP: Final = ("name", "dark", "base", "variables", *_TABLES)


class ThemeError(ValueError):
    """A theme or a glyph set cannot be used; the message has a line for each fault, which names file, line and key."""


class ThemeData(NamedTuple):
    """A theme as data. Colours are "#rrggbb"; `styles` are words such as "bold underline"."""

    name: str
    dark: bool
    tones: Mapping[str, str]
    grounds: Mapping[str, str]
    lines: Mapping[str, str]
    toolkit: Mapping[str, str]
    styles: Mapping[str, str]
    variables: Mapping[str, str]

    def css_variables(self) -> dict[str, str]:
        """The theme variables that widgets refer to, without the leading dollar sign."""
        colours = {f"wf-{name}": colour for name, colour in {**self.tones, **self.grounds, **self.lines}.items()}
        return {**colours, **{f"wf-{name}-style": self.styles.get(name, "none") for name in STYLED}}


class GlyphSet(NamedTuple):
    """Glyphs by use. `states` and `overlays` are keyed by the words of the lifecycle."""

    name: str
    states: Mapping[str, str]
    overlays: Mapping[str, str]
    tree: Mapping[str, str]
    marks: Mapping[str, str]
    levels: str


def parse_theme(text: str, where: str, *, base: Callable[[str], ThemeData | None] = lambda name: None) -> ThemeData:
    """A theme from TOML; `where` names it in errors. `base` gives the theme that another may build on.

    Raises:
        ThemeError: not TOML, a colour missing or not a colour, a key that means nothing.
    """
    reader = _Reader(text, where)
    data = reader.data
    for key in data:
        if key not in _TOP:
            reader.fault((key,), f"there is no such key; there are: {', '.join(_TOP)}")
    name = reader.text(data, (), "name")
    dark = data.get("dark")
    if dark is not None and not isinstance(dark, bool):
        reader.fault(("dark",), "it must be true or false")
    under = None
    if "base" in data and (called := reader.text(data, (), "base")):
        under = base(called)
        if under is None:
            reader.fault(("base",), f"there is no theme {called!r} to build on")
    tables = {table: reader.colours(table, getattr(under, table, {})) for table in ("tones", "grounds", "lines")}
    theme = ThemeData(
        name=name or where,
        dark=dark if isinstance(dark, bool) else under.dark if under is not None else True,
        toolkit=reader.colours("toolkit", under.toolkit if under is not None else {}),
        styles=reader.styles(under.styles if under is not None else {}),
        variables=reader.free("variables", under.variables if under is not None else {}),
        **tables,
    )
    reader.end()
    return theme


def parse_glyphs(text: str, name: str, where: str) -> GlyphSet:
    """The glyph set `name` from TOML; `where` names it in errors.

    Raises:
        ThemeError: not TOML, no such set, or a glyph missing.
    """
    reader = _Reader(text, where)
    if name not in reader.data:
        raise ThemeError(f"{where}: there is no glyph set {name!r}; there are: {', '.join(sorted(reader.data))}")
    chosen = reader.table(reader.data, (), name)
    groups: dict[str, dict[str, str]] = {}
    for group, names in _GLYPHS.items():
        table = reader.table(chosen, (name,), group)
        groups[group] = {key: reader.text(table, (name, group), key) for key in names}
    reader.end()
    return GlyphSet(
        name=name,
        states=groups["states"],
        overlays=groups["overlays"],
        tree=groups["tree"],
        marks=groups["marks"],
        levels=groups["bars"]["levels"],
    )


class _Reader:
    """Takes values out of a file, and gathers what is wrong with them."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._where = where
        self._faults: list[tuple[int, str]] = []
        try:
            self.data: Mapping[str, Any] = tomllib.loads(text)
        except RecursionError:
            raise ThemeError(f"{where}: its values are nested too deeply") from None
        except ValueError as error:
            raise ThemeError(f"{where}: it is not TOML: {error}") from None

    def fault(self, key: Key, says: str) -> None:
        line = near_line(self._text, key)
        self._faults.append((line, f"{self._where}:{line}: {'.'.join(str(part) for part in key)}: {says}"))

    def end(self) -> None:
        """Raises ThemeError where anything was wrong."""
        if self._faults:
            raise ThemeError("\n".join(text for _, text in sorted(self._faults, key=lambda fault: fault[0])))

    def table(self, data: Mapping[str, Any], at: Key, name: str, *, needed: bool = True) -> Mapping[str, Any]:
        table = data.get(name)
        if isinstance(table, dict):
            return table
        if needed or table is not None:
            self.fault((*at, name), f"the table [{'.'.join(str(part) for part in (*at, name))}] is missing")
        return {}

    def text(self, table: Mapping[str, Any], at: Key, name: str) -> str:
        value = table.get(name)
        if isinstance(value, str) and value:
            return value
        self.fault((*at, name), "it is missing or not a text")
        return ""

    def colours(self, name: str, under: Mapping[str, str]) -> dict[str, str]:
        table = self.table(self.data, (), name, needed=not under)
        self._unknown(name, table)
        colours: dict[str, str] = {}
        for key in _TABLES[name]:
            if key not in table and key in under:
                colours[key] = under[key]
            elif value := self.text(table, (name,), key):
                if not _COLOUR.fullmatch(value):
                    self.fault((name, key), f'{value!r} is not a colour; write it as "#rrggbb"')
                colours[key] = value
        return colours

    def styles(self, under: Mapping[str, str]) -> dict[str, str]:
        table = self.table(self.data, (), "styles", needed=False)
        self._unknown("styles", table)
        styles = dict(under)
        for key in table:
            words = self.text(table, ("styles",), key).split()
            if set(words) - STYLES - {"none"}:
                self.fault(("styles", key), f"it may say: none, {', '.join(sorted(STYLES))}")
            styles[key] = " ".join(words)
        return styles

    def free(self, name: str, under: Mapping[str, str]) -> dict[str, str]:
        table = self.table(self.data, (), name, needed=False)
        return {**under, **{key: self.text(table, (name,), key) for key in table}}

    def _unknown(self, name: str, table: Mapping[str, Any]) -> None:
        for key in table:
            if key not in _TABLES[name]:
                self.fault((name, key), f"there is no such key; there are: {', '.join(_TABLES[name])}")
