"""The one place where the command line prints: cleaned text for people, plain-ASCII JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from watchfloor.text import Clean, cell_width, clean, cut, redact

_NAME: Final = "watchfloor"


def prepare() -> None:
    """Let a terminal or a pipe of any encoding take every text: what it cannot show is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def line(text: Clean) -> None:
    """One line on standard output, at once: whoever reads a pipe must not wait for a full buffer."""
    _put(sys.stdout, text)


def record(fields: Mapping[str, Any]) -> None:
    """One JSON object on standard output. In ASCII, so that nothing in it can act on a terminal."""
    _put(sys.stdout, json.dumps(fields, ensure_ascii=True, default=str))


def document(fields: Mapping[str, Any]) -> None:
    """One JSON object on standard output, indented, to be read or kept in a file. In ASCII as `record`."""
    _put(sys.stdout, json.dumps(fields, ensure_ascii=True, indent=2))


def note(text: str) -> None:
    """A line for the person at the terminal, on standard error, where it is in nobody's pipe."""
    for part in clean(text).split("\n"):
        _put(sys.stderr, part)


def fail(text: str) -> None:
    """What went wrong, on standard error, with our name before it. Known forms of secrets are masked."""
    masked, _ = redact(clean(text))
    for part in masked.split("\n"):
        _put(sys.stderr, f"{_NAME}: {part}")


def table(headings: Sequence[str], rows: Sequence[Sequence[Clean]], *, width: int | None = None) -> None:
    """Aligned columns on standard output; the last one takes what is left of `width` cells (None: all it needs)."""
    columns = list(zip(*([clean(heading) for heading in headings], *rows), strict=True))
    widths = [max(cell_width(cell) for cell in column) for column in columns]
    for row in zip(*columns, strict=True):
        cells = [cell + " " * (size - cell_width(cell)) for cell, size in zip(row, widths, strict=True)]
        text = Clean("  ".join(cells).rstrip())
        line(text if width is None else cut(text, width))


def _put(stream: TextIO, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()
