"""What the terminal sends, parted into keys and pasted text; cut anywhere, it comes to the same."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from console.terminal.pasting import (
    BEGIN,
    END,
    ESCAPE_S,
    HALF_MARK_S,
    MOST,
    QUIET_S,
    Dropped,
    Keys,
    Pasted,
    Pastes,
    Piece,
)


def parted(*reads: str) -> list[Piece]:
    """What these reads come to, with keys that follow each other joined."""
    pastes = Pastes()
    found: list[Piece] = []
    for read in reads:
        for piece in pastes.feed(read, 0.0):
            if isinstance(piece, Keys) and found and isinstance(found[-1], Keys):
                found[-1] = Keys(found[-1].text + piece.text)
            else:
                found.append(piece)
    return found


def test_keys_before_and_behind_a_paste_stay_keys() -> None:
    assert parted(f"ab{BEGIN}hello{END}cd") == [Keys("ab"), Pasted("hello"), Keys("cd")]


def test_nothing_inside_of_a_paste_is_a_key() -> None:
    body = "one\x1b\rtwo\x1b[A\x1b[200~\x03\x1b\x1b[20"
    assert parted(f"{BEGIN}{body}{END}") == [Pasted(body)]


@given(
    st.lists(
        st.one_of(st.sampled_from(["a", "\r", "\x1b", "\x1b[A", "\x1b[2"]), st.text(max_size=5)),
        max_size=8,
    ),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_where_the_input_is_cut_changes_nothing(body: list[str], cuts: list[int]) -> None:
    whole = f"x{BEGIN}{''.join(body).replace(END, '')}{END}y{BEGIN}{END}z"
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    reads = [whole[a:b] for a, b in pairwise(places)]
    assert parted(*reads) == parted(whole)


def test_an_escape_that_nothing_follows_was_the_key() -> None:
    pastes = Pastes()
    assert pastes.feed("\x1b", 1.0) == []
    waits = [pastes.waits_s]
    assert pastes.quiet(1.0 + ESCAPE_S / 2) == []
    assert pastes.quiet(1.0 + ESCAPE_S) == [Keys("\x1b")]
    waits.append(pastes.waits_s)
    assert waits == [ESCAPE_S, None]
    assert pastes.feed("[200~a", 2.0) == [Keys("[200~a")]


def test_half_a_mark_is_held_back_for_longer_than_an_escape() -> None:
    pastes = Pastes()
    assert pastes.feed("a\x1b[20", 1.0) == [Keys("a")]
    assert pastes.quiet(1.0 + ESCAPE_S) == []
    assert pastes.feed(f"0~b{END}", 1.5) == [Pasted("b")]
    assert pastes.feed("\x1b[20", 2.0) == []
    assert pastes.quiet(2.0 + HALF_MARK_S) == [Keys("\x1b[20")]


def test_a_paste_without_an_end_is_given_up_after_a_quiet_time_and_nothing_of_it_is_a_key() -> None:
    pastes = Pastes()
    assert pastes.feed(f"{BEGIN}abc\x1b[20", 1.0) == []
    assert pastes.quiet(1.0 + QUIET_S / 2) == []
    assert pastes.feed("d", 2.0) == []
    assert pastes.quiet(2.0 + QUIET_S) == [Dropped(8, ended=False)]
    assert pastes.waits_s is None
    assert pastes.feed("j", 9.0) == [Keys("j")]
    assert pastes.feed(f"{BEGIN}next{END}", 9.0) == [Pasted("next")]


def test_of_a_paste_that_is_too_long_nothing_is_kept_and_nothing_is_a_key() -> None:
    pastes = Pastes()
    assert pastes.feed(BEGIN + "a" * MOST, 1.0) == []
    assert pastes.feed("ad" + END + "j", 1.0) == [Dropped(MOST + 2, ended=True), Keys("j")]
    assert pastes.feed(f"{BEGIN}b{END}", 1.0) == [Pasted("b")]
