"""What the benchmarks send: always the same events, written out beforehand as WebSocket frames ready to be sent.

    python -m benchmarks.traffic [--events N] [--sessions N] [--batch N]

Of the events 60 % are deltas of a streamed message, 20 % tool output of 400 characters, 10 % tool calls with arguments
of 1 kB, 5 % messages of 4 kB, 3 % lifecycle and 2 % requests. One text in eight is not plain ASCII. A change of
lifecycle is followed by a summary, which counts as no event. With `--batch` a frame holds so many events of one
session, else one. Prints the mix and the digest of the file: what differs in its digest is not the same load.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SEED: Final = 20_261_130
EPOCH: Final = "e"
BEGAN: Final = 1_790_000_000_000
"""The time of the first event, in milliseconds since 1970 UTC; of the others one later each."""
_POOL: Final = 64
_STRANGE: Final = "größer als zuvor, siehe »Übersicht« · 日志 · ready ✓"
_WORDS: Final = [
    "the",
    "importer",
    "reads",
    "each",
    "line",
    "of",
    "the",
    "log",
    "and",
    "counts",
    "those",
    "that",
    "are",
    "new",
    "since",
    "yesterday,",
    "then",
    "it",
    "writes",
    "a",
    "summary",
    "of",
    "them",
    "into",
    "a",
    "file",
    "that",
    "the",
    "next",
    "step",
    "takes",
    "up;",
    "where",
    "a",
    "line",
    "cannot",
    "be",
    "read",
    "it",
    "is",
    "put",
    "aside",
    "with",
    "its",
    "reason",
]
_SHARES: Final = (("delta", 60), ("output", 20), ("call", 10), ("message", 5), ("lifecycle", 3), ("request", 2))
_STATES: Final = ("running", "idle", "waiting", "running")


@dataclass(frozen=True, slots=True)
class Traffic:
    """A file of frames. `ends` and `counts`: behind each frame, how many bytes and events there are up to there."""

    path: Path
    sessions: int
    ends: array[int]
    counts: array[int]
    digest: str
    kinds: dict[str, int]

    @property
    def events(self) -> int:
        return self.counts[-1] if self.counts else 0

    def payloads(self) -> Iterator[bytes]:
        """What each frame carries."""
        data = self.path.read_bytes()
        begin = 0
        for end in self.ends:
            yield data[begin + _header(data[begin + 1]) : end]
            begin = end


def name(n: int) -> str:
    """The id of session `n`, which is its name as well."""
    return f"agent-{n:05}"


def framed(payload: bytes) -> bytes:
    """A whole text frame as a server sends it."""
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes([size]) + payload
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload


def _header(size: int) -> int:
    return {126: 4, 127: 10}.get(size, 2)


class _Writer:
    """The state of each session while its events are written."""

    def __init__(self, sessions: int, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - the same each time is what is wanted
        self._ids = [name(n) for n in range(sessions)]
        self._seqs = [0] * sessions
        self._items = [0] * sessions
        self._offsets = [0] * sessions
        self._asked = [False] * sessions
        self._pos = 0
        self._at = BEGAN
        self.kinds = dict.fromkeys((kind for kind, _ in _SHARES), 0)
        self._kinds = [kind for kind, share in _SHARES for _ in range(share)]
        self._pieces = [(len(text), json.dumps(text)) for text in (self._text(40) for _ in range(_POOL))]
        self._outputs = [json.dumps(self._text(400, "\n")) for _ in range(_POOL)]
        self._messages = [json.dumps(self._text(4_000, "\n\n")) for _ in range(_POOL)]
        self._arguments = [
            json.dumps({"path": "src/importer.py", "text": self._text(900), "lines": [1, 80], "force": False})
            for _ in range(_POOL)
        ]

    def _text(self, size: int, breaks: str = " ") -> str:
        rng = self._rng
        words: list[str] = [_STRANGE] if rng.random() < 1 / 8 else []
        length = sum(map(len, words))
        while length < size:
            words.append(rng.choice(_WORDS))
            length += len(words[-1]) + 1
        lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
        return breaks.join(lines)[:size]

    def session(self) -> int:
        """The session that speaks next."""
        # The first one is for whoever is to be found with a past of its own.
        return self._rng.randrange(min(1, len(self._ids) - 1), len(self._ids))

    def event(self, n: int) -> tuple[str, bool]:
        """The next event of a session as JSON, and whether its summary changes with it."""
        rng = self._rng
        kind = self._kinds[int(rng.random() * 100)]
        self.kinds[kind] += 1
        self._at += 1
        if kind == "delta":
            size, text = self._pieces[int(rng.random() * _POOL)]
            offset = self._offsets[n]
            self._offsets[n] = offset + size
            return (
                f'{{"kind":"delta","at":{self._at},"item":"i{self._items[n]}","offset":{offset},"text":{text}}}',
                False,
            )
        self._seqs[n] += 1
        self._pos += 1
        place = f'"seq":{self._seqs[n]},"pos":{self._pos},"attempt":1,"at":{self._at}'
        pick = int(rng.random() * _POOL)
        match kind:
            case "output":
                return (
                    f'{{"kind":"tool_output",{place},"call":"c{self._items[n]}","text":{self._outputs[pick]}}}',
                    False,
                )
            case "call":
                call = f'"call":"c{self._seqs[n]}","name":"edit","arguments":{self._arguments[pick]}'
                return f'{{"kind":"tool_call",{place},{call}}}', False
            case "message":
                item = f"i{self._items[n]}"
                self._items[n] += 1
                self._offsets[n] = 0
                return (
                    f'{{"kind":"message",{place},"item":"{item}","role":"assistant","text":{self._messages[pick]}}}',
                    False,
                )
            case "lifecycle":
                state = _STATES[pick % len(_STATES)]
                return f'{{"kind":"lifecycle",{place},"lifecycle":"{state}"}}', True
            case _:
                return self._request(n, place), False

    def _request(self, n: int, place: str) -> str:
        self._asked[n] = not self._asked[n]
        about = f'"request":"r{n}-{self._items[n]}"'
        if self._asked[n]:
            more = '"request_kind":"approval","digest":"sha256:00","text":"edit src/importer.py"'
            return f'{{"kind":"request_opened",{place},{about},{more}}}'
        return f'{{"kind":"request_resolved",{place},{about},"state":"resolved","option_kind":"allow","by":"anna"}}'

    def summary(self, n: int) -> bytes:
        last = f'{{"at":{self._at},"kind":"lifecycle","text":"it goes on"}}'
        one = f'{{"id":"{self._ids[n]}","lifecycle":"running","head":{self._seqs[n]},"last":{last}}}'
        return f'{{"type":"sessions","sessions":[{one}]}}'.encode()

    def frame(self, n: int, events: list[str]) -> bytes:
        said = ",".join(events)
        return f'{{"type":"events","session":"{self._ids[n]}","epoch":"{EPOCH}","events":[{said}]}}'.encode()


def make(path: Path, *, events: int, sessions: int, batch: int = 1, seed: int = SEED) -> Traffic:
    """Write so many events of so many sessions; the same arguments give the same bytes."""
    writer = _Writer(sessions, seed)
    digest = hashlib.sha256()
    ends, counts = array("Q"), array("Q")
    size = count = 0
    with path.open("wb") as file:

        def put(payload: bytes) -> None:
            nonlocal size
            frame = framed(payload)
            digest.update(frame)
            file.write(frame)
            size += len(frame)
            ends.append(size)
            counts.append(count)

        while count < events:
            n = writer.session()
            said, changed = [], False
            for _ in range(min(batch, events - count)):
                event, changes = writer.event(n)
                said.append(event)
                changed |= changes
            count += len(said)
            put(writer.frame(n, said))
            if changed:
                put(writer.summary(n))
    return Traffic(path, sessions, ends, counts, digest.hexdigest(), writer.kinds)


def main() -> int:
    """Write it somewhere, say what it is, and take it away again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traffic", description="what the benchmarks send")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=1, help="events a frame")
    args = parser.parse_args()
    file, place = tempfile.mkstemp(prefix="watchfloor-bench-")
    os.close(file)
    try:
        made = make(Path(place), events=args.events, sessions=args.sessions, batch=args.batch)
    finally:
        os.unlink(place)
    print(f"{made.events:,} events of {made.sessions:,} sessions, {len(made.ends):,} frames, {made.ends[-1]:,} bytes")
    print("  " + ", ".join(f"{kind} {count / made.events:.1%}" for kind, count in made.kinds.items()))
    print(f"  sha256 {made.digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
