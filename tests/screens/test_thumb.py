"""What is drawn of a scrollbar: where two are told to look alike, the toolkit draws them alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.scrollbar import ScrollBar, ScrollBarRender

from widgets.thumb import thumb

HEIGHT = 7


def drawn(extent: int, window: int, position: float) -> list[tuple[str, str]]:
    segments = ScrollBarRender.render_bar(
        size=HEIGHT, virtual_size=extent, window_size=window if window < extent else 0, position=position
    )
    return [(segment.text, str(segment.style)) for segment in segments.segments]


@given(
    st.integers(1, 30),
    st.tuples(st.integers(0, 60), st.integers(0, 60)),
    st.tuples(st.integers(0, 60), st.integers(0, 60)),
)
def test_two_that_are_equal_look_alike(window: int, one: tuple[int, int], other: tuple[int, int]) -> None:
    bar = ScrollBar()
    bar.set_reactive(ScrollBar.window_size, window)
    (lines, at), (more, further) = one, other
    at, further = min(at, max(0, lines - window)), min(further, max(0, more - window))
    if thumb(bar, lines, at, HEIGHT) == thumb(bar, more, further, HEIGHT):
        assert drawn(lines, window, at) == drawn(more, window, further)


def test_a_line_more_of_thousands_moves_nothing_and_a_page_does() -> None:
    bar = ScrollBar()
    bar.set_reactive(ScrollBar.window_size, 20)
    before = thumb(bar, 10_000, 0, 20)
    assert thumb(bar, 10_001, 1, 20) == before
    assert thumb(bar, 10_000, 2_000, 20) != before
