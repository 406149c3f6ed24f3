"""A theme as the toolkit wants it."""

from __future__ import annotations

from textual.theme import Theme

from themes.data import ThemeData


def toolkit_theme(theme: ThemeData) -> Theme:
    """The theme to register with the application."""
    return Theme(
        name=theme.name,
        dark=theme.dark,
        variables={**theme.variables, **theme.css_variables()},
        primary=theme.toolkit["primary"],
        secondary=theme.toolkit["secondary"],
        accent=theme.toolkit["accent"],
        warning=theme.toolkit["warning"],
        error=theme.toolkit["error"],
        success=theme.toolkit["success"],
        foreground=theme.toolkit["foreground"],
        background=theme.toolkit["background"],
        surface=theme.toolkit["surface"],
        panel=theme.toolkit["panel"],
    )
