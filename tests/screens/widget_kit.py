"""What the tests of widgets share: an application with the theme, and a way to read painted lines."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import App, ComposeResult
from textual.strip import Strip
from textual.widget import Widget

from themes.loader import load_theme


class Bench(App[None]):
    """An application with one widget (or a few) and our theme."""

    def __init__(self, *widgets: Widget) -> None:
        self._theme_data = load_theme()
        super().__init__()
        self._benched = widgets

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return self._theme_data.css_variables()

    def compose(self) -> ComposeResult:
        yield from self._benched

    def on_mount(self) -> None:
        self.register_theme(self._theme_data.textual())
        self.theme = self._theme_data.name


def strips(widget: Widget) -> list[Strip]:
    """Every line of the widget's content as it would be painted now."""
    return [widget.render_line(y) for y in range(widget.size.height)]


def lines(widget: Widget) -> list[str]:
    """The painted lines as text, without the blanks at their end."""
    return [strip.text.rstrip() for strip in strips(widget)]


def check_harmless(painted: Iterable[Strip], width: int) -> None:
    """No control character, no live link, and exactly the width of the widget in each line."""
    for strip in painted:
        for segment in strip:
            assert segment.control is None
            assert segment.text
            assert all(ch >= " " and not "\x7f" <= ch <= "\x9f" for ch in segment.text), repr(segment.text)
            assert "@click" not in (segment.style.meta if segment.style else {})
            assert segment.style is None or segment.style.link is None
        assert strip.cell_length == width
        assert sum(segment.cell_length for segment in strip) == width
