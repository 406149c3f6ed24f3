"""How well one colour can be read on another, as the Web Content Accessibility Guidelines measure it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from themes.data import ThemeData

TEXT: Final = 4.5
"""The least ratio for text."""
LINE: Final = 3.0
"""The least ratio for what is only to be seen, such as a frame."""


class Pair(NamedTuple):
    """Two colours that are drawn one on the other, by their names in the theme; `least`: the ratio they must have."""

    over: str
    ground: str
    ratio: float
    least: float


def luminance(colour: str) -> float:
    """The relative luminance, 0 to 1, of a colour written "#rrggbb"."""

    def linear(value: int) -> float:
        part = value / 255
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def contrast(one: str, other: str) -> float:
    """The ratio of two colours, 1 (the same) to 21 (black and white)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def pairs(theme: ThemeData, *, text: float = TEXT) -> Iterator[Pair]:
    """Every pair that any screen draws: each tone on each ground, what the toolkit's own widgets write, and lines."""
    for ground_name, ground in theme.grounds.items():
        for tone_name, tone in theme.tones.items():
            yield Pair(f"tones.{tone_name}", f"grounds.{ground_name}", contrast(tone, ground), text)
    for ground_name in ("background", "surface", "panel"):
        ratio = contrast(theme.toolkit["foreground"], theme.toolkit[ground_name])
        yield Pair("toolkit.foreground", f"toolkit.{ground_name}", ratio, text)
    for ground_name in ("ground", "card"):
        for line_name, line in theme.lines.items():
            yield Pair(f"lines.{line_name}", f"grounds.{ground_name}", contrast(line, theme.grounds[ground_name]), LINE)


def unreadable(theme: ThemeData) -> list[Pair]:
    """The pairs that fall short, worst first."""
    return sorted((pair for pair in pairs(theme) if pair.ratio < pair.least), key=lambda pair: pair.ratio / pair.least)
