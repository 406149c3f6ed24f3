"""Finding one of many things by a few letters of it: pure, and fast enough for a key press over ten thousand."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Final

MOST: Final = 200
"""Findings that are listed; whoever wants another writes one letter more."""

NAME_ENDS: Final = "\n"
"""Stands in a text between its name and further words for it."""

_BEGINS: Final = 0
_GOES_ON: Final = 10
_BEGINS_WORD: Final = 150
_WITHIN: Final = 200
_SCATTERED: Final = 400
_SEPARATORS: Final = frozenset(" -_./:@#,()[]\n")


class Finder:
    """Finds among texts. `weights` part kinds of things: of two that fit as well, the smaller one comes first."""

    def __init__(self, texts: Sequence[str], weights: Sequence[int]) -> None:
        self._texts = [text.casefold() for text in texts]
        self._weights = list(weights)
        self._asked = ""
        self._fitting: Sequence[int] = range(len(self._texts))

    def find(self, asked: str, most: int = MOST) -> list[int]:
        """The places of the texts that hold every word of `asked`, or its letters in their order within the name; best
        first, `most` of them."""
        words = asked.casefold().split()
        # What did not fit a text does not fit a longer one either, as long as only letters were added.
        pool = self._fitting if asked.startswith(self._asked) else range(len(self._texts))
        scored = [
            (score + self._weights[at], at) for at in pool if (score := fitness(self._texts[at], words)) is not None
        ]
        self._asked, self._fitting = asked, [at for _, at in scored]
        return [at for _, at in nsmallest(most, scored)]


def fitness(text: str, words: Sequence[str]) -> int | None:
    """How far the text is from what the words ask for: 0 for the best, None where it does not fit."""
    total = 0
    for word in words:
        at = text.find(word)
        if at == 0:
            total += _BEGINS if text[len(word) :][:1] in ("", NAME_ENDS) else _GOES_ON
        elif at > 0:
            total += (_BEGINS_WORD if text[at - 1] in _SEPARATORS else _WITHIN) + min(at, 60)
        elif (gaps := _scattered(text.partition(NAME_ENDS)[0], word)) is not None:
            total += _SCATTERED + gaps
        else:
            return None
    return total


def _scattered(text: str, word: str) -> int | None:
    """How many letters lie between those of the word, in their order; None where not all are there."""
    at = text.find(word[0])
    if at < 0:
        return None
    begun = at
    for letter in word[1:]:
        at = text.find(letter, at + 1)
        if at < 0:
            return None
    return min(at - begun + 1 - len(word), 300)
