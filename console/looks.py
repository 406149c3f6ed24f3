"""How the console looks: which theme an operator gets, and from where."""

from __future__ import annotations

import os
from pathlib import Path

from themes.data import ThemeData, ThemeError
from themes.loader import DEFAULT_THEME, MONOCHROME, find_theme, load_theme, own_names, theme_names
from watchfloor.errors import ConfigError


def themes_folder(config: Path) -> Path:
    """Where an operator's own themes are: beside the configuration."""
    return config.parent / "themes"


def names(folder: Path) -> list[str]:
    """Every theme there is, those that come along first."""
    return [*theme_names(), *own(folder)]


def own(folder: Path) -> list[str]:
    """The operator's own themes."""
    return [name for name in own_names(folder) if name not in theme_names()]


def colourless() -> bool:
    """Does the environment ask for no colour at all? By the convention an empty NO_COLOR asks for nothing."""
    return bool(os.environ.get("NO_COLOR"))


def theme(name: str | None, folder: Path) -> ThemeData:
    """The theme of this name, None for the usual one.

    Raises ConfigError where there is none, or its file cannot be used; each line names the file and the line in it.
    """
    try:
        return find_theme(name or DEFAULT_THEME, folder)
    except ThemeError as fault:
        raise ConfigError(str(fault)) from None


def without_colour() -> ThemeData:
    """The theme for NO_COLOR, which wins over every other: what stands under a cursor is told by its letters alone."""
    grey = load_theme(MONOCHROME)
    return grey._replace(styles={**grey.styles, "cursor": "reverse"})
