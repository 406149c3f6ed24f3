"""Finds themes and glyph sets: those that come along, and an operator's own in a folder, one file each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from themes.data import GlyphSet, ThemeData, ThemeError, parse_glyphs, parse_theme
from themes.lines import line_of

DEFAULT_THEME: Final = "watchfloor-dark"
MONOCHROME: Final = "monochrome"

_GLYPH_FILE: Final = "glyphs.toml"
_LARGEST: Final = 64 * 1024
"""Bytes of the largest theme that is read."""


@cache
def theme_names() -> tuple[str, ...]:
    """The themes that come with the application, sorted."""
    found = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml") and name != _GLYPH_FILE))


def own_names(folder: Path) -> list[str]:
    """The themes in the operator's own folder, sorted; none where there is no such folder."""
    try:
        return sorted(path.stem for path in folder.iterdir() if path.suffix == ".toml" and path.stem.isprintable())
    except OSError:
        return []


@cache
def load_theme(name: str = DEFAULT_THEME) -> ThemeData:
    """One theme that comes along.

    Raises:
        ThemeError: there is no such theme.
    """
    if name not in theme_names():
        raise ThemeError(f"there is no theme {name!r}; there are: {', '.join(theme_names())}")
    file_name = f"{name}.toml"
    return parse_theme(_folder().joinpath(file_name).read_text("utf-8"), file_name)


def find_theme(name: str, folder: Path) -> ThemeData:
    """One theme that comes along, or of the operator's own in the folder; read anew each time.

    Raises:
        ThemeError: there is no such theme, or its file cannot be used; each line names the file and the line in it.
    """
    if name in theme_names():
        return load_theme(name)
    if name not in own_names(folder):
        there = ", ".join([*theme_names(), *own_names(folder)])
        raise ThemeError(f"there is no theme {name!r} here or in {folder}; there are: {there}")
    path = folder / f"{name}.toml"
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise ThemeError(f"{path}: it is not a file that can hold a theme")
        text = path.read_text("utf-8")
        theme = parse_theme(text, str(path), base=_built_on)
    except UnicodeDecodeError as error:
        raise ThemeError(f"{path}: it is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ThemeError(f"{path}: it cannot be read: {error.strerror or error}") from None
    if theme.name != name:
        line = line_of(text, ("name",))
        raise ThemeError(f"{path}:{line}: name: it is {theme.name!r}: a theme is called as its file is, {name!r}")
    return theme


def own_faults(folder: Path) -> list[str]:
    """What is wrong with the operator's own themes, a line each."""
    faults: list[str] = []
    for name in own_names(folder):
        if name in theme_names():
            faults.append(f"{folder / name}.toml: {name!r} is a theme that comes along; call yours otherwise")
            continue
        try:
            find_theme(name, folder)
        except ThemeError as fault:
            faults += str(fault).splitlines()
    return faults


@cache
def load_glyphs(name: str = "unicode") -> GlyphSet:
    """One glyph set: `unicode` or `ascii`.

    Raises:
        ThemeError: there is no such set.
    """
    return parse_glyphs(_folder().joinpath(_GLYPH_FILE).read_text("utf-8"), name, _GLYPH_FILE)


def _built_on(name: str) -> ThemeData | None:
    return load_theme(name) if name in theme_names() else None


def _folder() -> Traversable:
    return files("themes")
