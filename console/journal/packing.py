"""How things stand in the journal's file: names, intervals, and the bytes of frames."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Final

from console.fleet.continuity import Spans
from watchfloor.errors import StorageCorrupt

PLAIN: Final = 0
DEFLATED: Final = 1
DEFLATE_FROM: Final = 1_024
"""Bytes from which a frame is deflated: shorter ones gain little and cost as much."""
LEVEL: Final = 1
MASK: Final = b"[masked]"


def name(text: str) -> bytes:
    """Ids are opaque: also one that is no text."""
    return text.encode("utf-8", "surrogatepass")


def text(name: bytes) -> str:
    """The id that stands here."""
    return name.decode("utf-8", "surrogatepass")


def pack(raw: bytes) -> tuple[int, bytes]:
    """The form in which these bytes are kept, and what is kept."""
    if len(raw) < DEFLATE_FROM:
        return PLAIN, raw
    small = zlib.compress(raw, LEVEL)
    return (DEFLATED, small) if len(small) * 10 <= len(raw) * 9 else (PLAIN, raw)


def unpack(form: int, raw: bytes) -> bytes:
    """The bytes as they came. Raises StorageCorrupt."""
    if form == PLAIN:
        return raw
    try:
        return zlib.decompress(raw)
    except zlib.error as fault:
        raise StorageCorrupt(f"a frame of the journal cannot be read: {fault}") from None


def spans(stored: str) -> Spans:
    """The intervals that stand here. Raises StorageCorrupt."""
    found = Spans()
    if stored == "[]":
        return found
    try:
        for first, last in json.loads(stored):
            found.add_range(int(first), int(last))
    except (ValueError, TypeError):
        raise StorageCorrupt("the journal does not say what it has received") from None
    return found


def packed(spans: Spans) -> str:
    """The intervals as they are stored."""
    return "[" + ",".join([f"[{first},{last}]" for first, last in spans.intervals()]) + "]"


def spelt(secret: str) -> tuple[bytes, ...]:
    """How a text may stand in JSON: with its characters, or in ASCII."""
    forms = {json.dumps(secret, ensure_ascii=ascii)[1:-1].encode("utf-8", "surrogatepass") for ascii in (True, False)}
    return tuple(sorted(forms, key=len, reverse=True))


def hidden(raw: bytes, secrets: Sequence[bytes]) -> bytes:
    """The bytes without these."""
    for secret in secrets:
        if secret in raw:
            raw = raw.replace(secret, MASK)
    return raw
