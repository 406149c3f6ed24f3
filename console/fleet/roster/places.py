"""A long list of keys that is changed in the middle all the time, and knows where each of them is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

K = TypeVar("K")

BLOCK: Final = 256
"""Keys in a block when the list is made; one of twice that is parted."""


class Places(Generic[K]):
    """Keys in an order, each once. What a change costs hangs on the size of a block, and hardly on that of the list."""

    __slots__ = ("_block_of", "_blocks", "_starts", "_total")

    def __init__(self, keys: Sequence[K] = ()) -> None:
        self._blocks: list[list[K]] = [list(keys[at : at + BLOCK]) for at in range(0, len(keys), BLOCK)]
        self._block_of: dict[K, list[K]] = {key: block for block in self._blocks for key in block}
        self._total = len(keys)
        self._starts: dict[int, int] | None = None
        """Where each block begins, by its identity; None: blocks have changed since that was counted."""

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[K]:
        for block in self._blocks:
            yield from block

    def __contains__(self, key: object) -> bool:
        return key in self._block_of

    def __getitem__(self, at: int) -> K:
        """The key at a place. Raises IndexError."""
        if not 0 <= at < self._total:
            raise IndexError(at)
        block, within = self._find(at)
        return self._blocks[block][within]

    def index(self, key: K) -> int | None:
        """The place of a key; None where it is not in the list."""
        block = self._block_of.get(key)
        if block is None:
            return None
        if self._starts is None:
            self._starts, start = {}, 0
            for one in self._blocks:
                self._starts[id(one)] = start
                start += len(one)
        return self._starts[id(block)] + block.index(key)

    def insert(self, at: int, keys: Iterable[K]) -> None:
        """Put new keys before the one at place `at`."""
        new = list(keys)
        if not new:
            return
        if not self._blocks:
            self._blocks.append([])
        number, within = self._find(at) if at < self._total else (len(self._blocks) - 1, len(self._blocks[-1]))
        block = self._blocks[number]
        block[within:within] = new
        self._block_of.update(dict.fromkeys(new, block))
        self._total += len(new)
        self._starts = None
        if len(block) > 2 * BLOCK:
            parts = [block[begin : begin + BLOCK] for begin in range(BLOCK, len(block), BLOCK)]
            del block[BLOCK:]
            self._blocks[number + 1 : number + 1] = parts
            for part in parts:
                self._block_of.update(dict.fromkeys(part, part))

    def cut(self, at: int, count: int) -> list[K]:
        """Take out `count` keys from place `at` on, and return them."""
        taken: list[K] = []
        number, within = self._find(at)
        while len(taken) < count:
            block = self._blocks[number]
            piece = block[within : within + count - len(taken)]
            del block[within : within + len(piece)]
            taken += piece
            if block:
                number, within = number + 1, 0
            else:
                del self._blocks[number]
        for key in taken:
            del self._block_of[key]
        self._total -= len(taken)
        self._starts = None
        return taken

    def _find(self, at: int) -> tuple[int, int]:
        for number, block in enumerate(self._blocks):
            if at < len(block):
                return number, at
            at -= len(block)
        raise IndexError(at)
