"""The transcript widget: what it draws, where it stays, and that nothing in it acts."""

# ruff: noqa: RUF009 - `Clean` returns its argument, a string, which nobody can change.

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from tests.screens.widget_kit import HOSTILE, Bench, check_harmless, lines, strips, texts, tones
from watchfloor.text import Clean, clean
from widgets.cells import width_of
from widgets.marks import UNICODE_MARKS
from widgets.tones import Tone
from widgets.transcript import Transcript
from widgets.transcript_layout import lay
from widgets.transcript_view import Form


@dataclass(frozen=True)
class Line:
    text: Clean
    form: Form = "output"
    hang: int = 0


@dataclass(frozen=True, eq=False)
class Block:
    key: Hashable
    title: Clean = Clean("a title")
    body: tuple[Line, ...] = ()
    most: int | None = None
    time: Clean = Clean("14:03:07")
    kind: Clean = Clean("tool")
    tail: Clean = Clean("ok")
    tone: Tone = "plain"
    source: Clean = Clean("as it was written")


class Blocks:
    def __init__(self, *blocks: Block) -> None:
        self.all = list(blocks)

    def __len__(self) -> int:
        return len(self.all)

    def block(self, place: int, /) -> Block:
        return self.all[place]


def many(count: int, height: int = 2) -> Blocks:
    return Blocks(*(block(at, height) for at in range(count)))


def block(at: int, height: int = 2, most: int | None = None) -> Block:
    body = tuple(Line(Clean(f"{at}.{line}")) for line in range(height - 1))
    return Block(at, Clean(f"title {at}"), body, most)


@asynccontextmanager
async def shown(
    blocks: Blocks, size: tuple[int, int] = (60, 12)
) -> AsyncIterator[tuple[Transcript, Pilot[None], Bench]]:
    transcript = Transcript(blocks)
    bench = Bench(transcript)
    async with bench.run_test(size=size, message_hook=bench.note) as pilot:
        transcript.focus()
        await pilot.pause()
        yield transcript, pilot, bench


def asked_for_more(bench: Bench) -> int:
    return sum(isinstance(message, Transcript.AtTop) for message in bench.seen)


async def test_it_follows_its_end() -> None:
    blocks = many(30)
    async with shown(blocks) as (transcript, _, _):
        assert "29.0" in "\n".join(lines(transcript))
        blocks.all.append(block(30))
        transcript.refresh_blocks()
        said = "\n".join(lines(transcript))
        assert "30.0" in said
        assert "following" in said


async def test_what_is_read_stays_while_blocks_come_in_below_and_above() -> None:
    blocks = many(30)
    async with shown(blocks) as (transcript, _, _):
        transcript.page(-1)
        before = lines(transcript)[:-1]
        blocks.all.append(block(30))
        transcript.refresh_blocks()
        assert lines(transcript)[:-1] == before
        assert "1 new (end)" in lines(transcript)[-1]
        blocks.all[:0] = [block(at, 5) for at in range(100, 140)]
        transcript.refresh_blocks()
        assert lines(transcript)[:-1] == before
        transcript.follow()
        assert "30.0" in "\n".join(lines(transcript))


async def test_the_cursor_stays_on_its_block() -> None:
    blocks = many(30)
    async with shown(blocks) as (transcript, _, _):
        transcript.select(20)
        blocks.all[:0] = [block(at) for at in range(100, 110)]
        transcript.refresh_blocks()
        selected = transcript.selected_block
        assert selected is not None
        assert selected.key == 20


async def test_above_the_first_block_more_is_asked_for() -> None:
    async with shown(many(3)) as (transcript, pilot, bench):
        transcript.select(0)
        await pilot.pause()
        assert not asked_for_more(bench)
        transcript.move(-1)
        await pilot.pause()
        assert asked_for_more(bench) == 1


async def test_long_output_is_closed_until_it_is_opened() -> None:
    blocks = Blocks(block(0, 30, most=4))
    async with shown(blocks, (60, 40)) as (transcript, _, _):
        said = "\n".join(lines(transcript))
        assert "0.3" in said
        assert "0.4" not in said
        assert "25 more lines: open it" in said
        assert transcript.toggle()
        assert "0.28" in "\n".join(lines(transcript))
        assert transcript.toggle()
        assert "0.4" not in "\n".join(lines(transcript))


async def test_a_block_that_is_shown_whole_cannot_be_opened() -> None:
    async with shown(many(1)) as (transcript, _, _):
        assert not transcript.toggle()


async def test_one_endless_line_does_not_fill_a_closed_block() -> None:
    blocks = Blocks(Block(0, body=(Line(Clean("x" * 50_000)),), most=4))
    async with shown(blocks) as (transcript, _, _):
        assert transcript.virtual_size.height <= 8
        assert "1 more line: open it" in "\n".join(lines(transcript))


async def test_a_key_shows_the_source_text_and_the_form_again() -> None:
    async with shown(many(1)) as (transcript, _, _):
        assert transcript.toggle_source()
        said = "\n".join(lines(transcript))
        assert "as it was written" in said
        assert "0.0" not in said
        assert not transcript.toggle_source()
        assert "0.0" in "\n".join(lines(transcript))


async def test_a_block_taller_than_the_screen_is_read_line_by_line() -> None:
    blocks = Blocks(block(0), block(1, 40), block(2))
    async with shown(blocks) as (transcript, _, _):
        transcript.select(0)
        seen: set[str] = set()
        for _ in range(60):
            transcript.move(1)
            seen |= set("\n".join(lines(transcript)).split())
        assert {f"1.{line}" for line in range(39)} <= seen


async def test_hostile_texts_are_drawn_and_do_nothing() -> None:
    made = [
        Block(at, clean(text), (Line(clean(text), "prose"),), tail=clean(text), kind=clean(text), source=clean(text))
        for at, text in enumerate(HOSTILE)
    ]
    async with shown(Blocks(*made), (70, 60)) as (transcript, _, _):
        check_harmless(strips(transcript), transcript.size.width)
        for at in range(len(made)):
            transcript.select(at)
            transcript.toggle_source()
        check_harmless(strips(transcript), transcript.size.width)


@settings(max_examples=60, deadline=None)
@given(
    texts(), texts(), texts(), tones(), st.integers(1, 90), st.booleans(), st.integers(0, 12),
    st.sampled_from(("prose", "item", "code", "output", "heading")),
)  # fmt: skip
def test_a_body_never_leaves_its_room(
    title: Clean, text: Clean, tail: Clean, tone: Tone, width: int, source: bool, hang: int, form: Form
) -> None:
    made = Block(0, title, (Line(text, form, hang),), tail=tail, tone=tone, source=text)
    laid = lay(made, width, UNICODE_MARKS, opened=True, source=source)
    assert len(laid.lines) > 1 or not text
    for line in laid.lines:
        assert all(character >= " " and not "\x7f" <= character <= "\x9f" for piece, _ in line for character in piece)
    for line in laid.lines[1:]:
        assert 1 + sum(width_of(piece) for piece, _ in line) <= max(width, 8)
