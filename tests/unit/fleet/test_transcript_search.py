"""Looking through a transcript: what is found is what plain reading finds, and each block is read once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.fleet.transcript.search import BlockFinder
from tests.unit.fleet.scripted import ScriptedHost
from tests.unit.fleet.test_transcript import blocks, taken, transcript

WORDS = st.lists(st.text("abAB ", min_size=1, max_size=8).map(str.strip).filter(bool), max_size=8)


def hosted(words: list[str]) -> ScriptedHost:
    host = ScriptedHost()
    host.session()
    say(host, words)
    return host


def say(host: ScriptedHost, words: list[str]) -> None:
    host.events("s1", *({"kind": "message", "text": text} for text in words))


@given(WORDS, WORDS, st.text("abAB", min_size=1, max_size=3))
def test_what_is_found_is_what_plain_reading_finds(words: list[str], more: list[str], query: str) -> None:
    host = hosted(words)
    made = transcript(host)
    finder = BlockFinder(made, query)

    def plainly() -> list[int]:
        asked = query.casefold()
        return [
            at
            for at, block in enumerate(blocks(made))
            if any(asked in text.casefold() for text in (block.title, block.source, block.kind, block.tail))
        ]

    assert finder.matches == plainly()
    say(host, more)
    taken(made, host)
    finder.take_up()
    assert finder.matches == plainly()
    for at in range(len(made)):
        after = [match for match in plainly() if match > at]
        assert finder.next_match(at) == next(iter(after or plainly()), None)
        before = [match for match in plainly() if match < at]
        assert finder.match_before(at) == next(reversed(before or plainly()), None)


def test_an_empty_text_finds_nothing() -> None:
    assert BlockFinder(transcript(hosted(["a"])), "").matches == []


def test_a_time_before_all_is_the_first_and_one_after_all_the_last() -> None:
    host = hosted(["a", "b", "c"])
    finder = BlockFinder(transcript(host))
    assert finder.at_time(0) == 0
    assert finder.at_time(host.now * 2) == len(finder.blocks) - 1
    assert BlockFinder(transcript(hosted([]))).at_time(0) in (None, 0)
