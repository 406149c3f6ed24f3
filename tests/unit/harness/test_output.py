"""From bytes to pieces: nothing lost, nothing reordered within a stream, nothing too large."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from watchfloor.harness.output import PIECE, Output, Piece

STREAMS = st.sampled_from(["stdout", "stderr"])
CHUNKS = st.lists(
    st.tuples(STREAMS, st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)), st.booleans())
)


@given(CHUNKS)
def test_the_pieces_of_a_stream_are_the_stream(chunks: list[tuple[str, bytes, bool]]) -> None:
    output = Output()
    pieces: list[Piece] = []
    for stream, data, partial in chunks:
        output.feed(stream, data)
        pieces += output.take(partial=partial)
    for stream in ("stdout", "stderr"):
        output.end(stream)
    pieces += output.take()
    for stream in ("stdout", "stderr"):
        raw = b"".join(data for name, data, _ in chunks if name == stream)
        assert "".join(p.text for p in pieces if p.stream == stream) == raw.decode("utf-8", "replace")
    assert all(piece.text for piece in pieces)


@given(st.lists(st.text(alphabet="ab\n\u00e4\U0001f600", max_size=30), max_size=8), st.integers(1, 4000))
def test_no_piece_is_larger_than_it_may_be(texts: list[str], times: int) -> None:
    output = Output()
    for text in texts:
        output.feed("stdout", (text * times).encode())
    output.end("stdout")
    pieces = output.take()
    assert "".join(p.text for p in pieces) == "".join(text * times for text in texts)
    assert all(len(piece.text.encode()) <= PIECE for piece in pieces)


def test_lines_of_two_streams_come_in_the_order_in_which_they_were_completed() -> None:
    output = Output()
    output.feed("stdout", b"one\ntw")
    output.feed("stderr", b"oops\n")
    output.feed("stdout", b"o\nthree\n")
    assert output.take() == [
        Piece("stdout", "one\n"),
        Piece("stderr", "oops\n"),
        Piece("stdout", "two\nthree\n"),
    ]


def test_an_unfinished_line_is_held_back_until_it_is_asked_for() -> None:
    output = Output()
    output.feed("stdout", b"done\npassword: ")
    assert output.take() == [Piece("stdout", "done\n")]
    assert output.has_partial
    assert output.take() == []
    assert output.take(partial=True) == [Piece("stdout", "password: ")]
    assert not output.has_partial


def test_a_line_without_an_end_does_not_grow_for_ever() -> None:
    output = Output()
    for _ in range(3):
        output.feed("stdout", b"x" * PIECE)
    assert [len(piece.text) for piece in output.take()] == [PIECE] * 3


def test_pieces_are_cut_at_the_ends_of_lines_where_there_are_some() -> None:
    output = Output()
    line = "y" * 999 + "\n"
    output.feed("stdout", (line * 100).encode())
    first, second = output.take()
    assert first.text == line * 65
    assert second.text == line * 35


def test_a_character_in_two_halves_is_put_together() -> None:
    output = Output()
    half = "\u00e4\n".encode()
    output.feed("stdout", half[:1])
    assert output.take(partial=True) == []
    output.feed("stdout", half[1:])
    assert output.take() == [Piece("stdout", "\u00e4\n")]


def test_the_last_line_is_the_newest_with_something_in_it() -> None:
    output = Output()
    output.feed("stdout", b"a\n  result: 7 \n\n")
    output.take()
    assert output.last_line == "result: 7"
    output.feed("stderr", b"Traceback")
    output.end("stderr")
    assert output.last_line == "Traceback"
