"""The one place where the command line prints: cleaned text for people, plain-ASCII JSON for programs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from watchfloor.text import Clean, cell_width, clean, cut, redact

_NAME: Final = "watchfloor"


class Unwritable(OSError):
    """Standard output does not take what was printed. `reader_left`: it is a pipe that nobody reads any more."""

    def __init__(self, fault: OSError | ValueError) -> None:
        self.reader_left = isinstance(fault, BrokenPipeError)
        why = fault.strerror if isinstance(fault, OSError) else None
        super().__init__(f"the output could not be written: {why or fault}")


def prepare() -> None:
    """Let a terminal or a pipe of any encoding take every text: what it cannot show is written as an escape.

    A standard stream that was closed is opened on what takes nothing, so that no file of ours gets its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, _instead(number))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def forget(*streams: TextIO) -> None:
    """Write nothing more there: the interpreter must not try once more when it ends, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def line(text: Clean) -> None:
    """One line on standard output, at once: whoever reads a pipe must not wait for a full buffer. Raises Unwritable, as
    do all who print there."""
    _put(text)


def record(fields: Mapping[str, Any]) -> None:
    """One JSON object on standard output. In ASCII, so that nothing in it can act on a terminal."""
    import json  # the console itself prints nothing

    _put(json.dumps(fields, ensure_ascii=True, default=str))


def document(fields: Mapping[str, Any]) -> None:
    """One JSON object on standard output, indented, to be read or kept in a file. In ASCII as `record`."""
    import json

    _put(json.dumps(fields, ensure_ascii=True, indent=2))


def note(text: str) -> None:
    """A line for the person at the terminal, on standard error, where it is in nobody's pipe. Raises nothing."""
    _tell(clean(text).split("\n"))


def fail(text: str) -> None:
    """What went wrong, on standard error, with our name before it; known forms of secrets masked. Raises nothing."""
    _tell(failure(text))


def failure(text: str) -> list[str]:
    """The lines that `fail` writes."""
    masked, _ = redact(clean(text))
    return [f"{_NAME}: {part}" for part in masked.split("\n")]


_WIDEST: Final = 48
"""Cells of the widest column that the others are aligned behind."""


def table(headings: Sequence[str], rows: Sequence[Sequence[Clean]], *, width: int | None = None) -> None:
    """Aligned columns on standard output; the last one takes what is left of `width` cells (None: all it needs).

    A cell that is far wider than usual stands out of its column, whole, and the other lines stay as they are.
    """
    columns = list(zip(*([clean(heading) for heading in headings], *rows), strict=True))
    widths = [min(max(cell_width(cell) for cell in column), _WIDEST) for column in columns]
    for row in zip(*columns, strict=True):
        cells = [cell + " " * (size - cell_width(cell)) for cell, size in zip(row, widths, strict=True)]
        text = Clean("  ".join(cells).rstrip())
        line(text if width is None else cut(text, width))


def _instead(number: int) -> TextIO:
    # What is only to be read refuses each line on standard output; on standard error nobody could be told.
    handle = os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    return open(number, "w" if number else "r", encoding="utf-8", closefd=False)


def _put(text: str) -> None:
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except (OSError, ValueError) as fault:
        forget(sys.stdout)
        raise Unwritable(fault) from None


def _tell(lines: Sequence[str]) -> None:
    try:
        for text in lines:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        forget(sys.stderr)  # there is no other place for it
