"""Agents that work without asking anybody: one that can be paused, one that can only be observed, one that fails."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Final

from console.demo.project import INDEX_LOCK, LIBRARY, ORDERS
from console.demo.stage import Mail, Stage, forget
from console.demo.texts import Order
from watchfloor.harness.run import Run
from watchfloor.protocol.events import Level

WORDS: Final = "index/words.txt"
_WATCHED = ("build", "content", "docs", "preview", "release")
_CHUNK = 40  # orders


class Checksums:
    """Takes the digest of one file after the other and says which have changed since the last round."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._known: dict[str, str] = {}

    async def __call__(self, run: Run, mail: Mail) -> None:
        await run.say(f"I watch the files in {', '.join(_WATCHED)}.")
        while True:
            for path in self._files():
                await self._check(run, path)
                await self._stage.rest(run, 2.0)
            await self._stage.rest(run, 2.0)

    def _files(self) -> list[str]:
        root = self._stage.workspace
        found = (path for folder in _WATCHED for path in (root / folder).rglob("*") if path.is_file())
        return sorted(path.relative_to(root).as_posix() for path in found)

    async def _check(self, run: Run, path: str) -> None:
        def call() -> str:
            return self._stage.digest(path) or ""

        digest = (await run.tool("sha256", None, call, gate=False, text=path, cwd=str(self._stage.workspace))).value
        if digest and self._known.setdefault(path, digest) != digest:
            run.notice(f"{path} has changed", Level.WARNING, "changed")
            self._known[path] = digest


class Etl:
    """Adds up the orders, some at a time, over and over."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def __call__(self, run: Run, mail: Mail) -> None:
        while True:
            await run.say(f"Reading {ORDERS}.")
            row, cents = 0, Counter[str]()
            with (self._stage.workspace / ORDERS).open(encoding="utf-8") as file:
                next(file)
                while chunk := list(islice(file, _CHUNK)):
                    for order in map(Order.parse, chunk):
                        cents[order.city] += order.count * order.price
                    row += len(chunk)
                    run.progress(f"row {row:,}, {cents.total() // 100:,} so far")
                    await self._stage.rest(run, 1.2)
            city, most = cents.most_common(1)[0]
            await run.say(f"{row:,} rows, {cents.total() // 100:,} in all; {city} leads with {most // 100:,}.")
            forget(run)


class IndexLocked(Exception):
    """An earlier run left its lock behind."""


class Indexer:
    """Indexes the library. It refuses to work beside a lock; it takes the lock away, so that a retry gets through."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def __call__(self, run: Run, mail: Mail) -> str:
        stage = self._stage
        books = sorted(path.name for path in (stage.workspace / LIBRARY).glob("*.txt"))
        await run.say(f"Attempt {run.attempt}: an index of {len(books)} books.")
        self._unlock(stage.workspace / INDEX_LOCK)
        words: Counter[str] = Counter()
        for number, book in enumerate(books, 1):
            words.update(re.findall(r"[a-z]+", (await stage.read(run, f"{LIBRARY}/{book}")).lower()))
            run.progress(f"{number} of {len(books)} books, {len(words)} words")
            await stage.rest(run, 0.8)
        text = "".join(f"{count:>5}  {word}\n" for word, count in words.most_common())
        await stage.edit(run, WORDS, text, gate=False)
        return f"Attempt {run.attempt} worked: {len(words)} words from {len(books)} books in {WORDS}."

    def _unlock(self, lock: Path) -> None:
        if lock.exists():
            lock.unlink()
            raise IndexLocked(f"{INDEX_LOCK} was left by an earlier run. It is removed now; nothing was indexed")
