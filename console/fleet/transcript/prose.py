"""What an agent wrote, line by line: which lines are code, a list, a quotation, a heading or part of a diff.

Only the form of lines is recognised. Nothing inside a line is interpreted: there are no links and no markup, and what
stands there is what was written.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

from watchfloor.text import Clean

Form: TypeAlias = Literal[
    "prose", "heading", "item", "quote", "code", "fence", "exact", "output", "added", "removed", "hunk", "note"
]
"""What a line is. `fence` is what a block of code is called; `note` are words of our own."""


class BodyLine(NamedTuple):
    """One line as it was written. `hang`: cells by which the pieces of a wrapped line stand further right."""

    form: Form
    text: Clean
    hang: int = 0


_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*")
_ITEM: Final = re.compile(r"(\s*(?:[-*+]|\d{1,4}[.)])[ \t]+)\S")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t#]*")
_HUNK: Final = re.compile(r"@@ .* @@.*")
_DIFF_NAMES: Final = frozenset({"diff", "patch"})
_HANG_MOST: Final = 16


def prose_lines(text: Clean) -> list[BodyLine]:
    """A message line by line. A fence that is never closed holds the rest, as it does while it is being written."""
    lines: list[BodyLine] = []
    fence = ""
    form: Form = "code"
    diff = False
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if fence:
            if found is not None and found[1].startswith(fence) and not found[2]:
                fence = ""
            else:
                lines.append(BodyLine(_diff_form(line) if diff else form, Clean(line)))
        elif found is not None:
            fence, diff = found[1], found[2].lower() in _DIFF_NAMES
            if found[2]:
                lines.append(BodyLine("fence", Clean(found[2])))
        else:
            lines.append(_prose(line))
    return _trimmed(lines)


def _prose(line: str) -> BodyLine:
    if (heading := _HEADING.fullmatch(line)) is not None and heading[1]:
        return BodyLine("heading", Clean(heading[1]))
    if (item := _ITEM.match(line)) is not None:
        return BodyLine("item", Clean(line), min(len(item[1]), _HANG_MOST))
    if line.lstrip(" ").startswith(">"):
        return BodyLine("quote", Clean(line.lstrip(" ")), 2)
    return BodyLine("prose", Clean(line))


def diff_lines(text: Clean) -> list[BodyLine]:
    """A unified diff line by line."""
    return _trimmed([BodyLine(_diff_form(line), Clean(line)) for line in text.split("\n")])


def looks_like_diff(text: str) -> bool:
    """Is an output a unified diff? Only one with a hunk is."""
    return "@@ " in text and any(_HUNK.fullmatch(line) for line in text[:4_000].split("\n"))


def _diff_form(line: str) -> Form:
    if _HUNK.fullmatch(line) or line.startswith(("diff ", "index ", "--- ", "+++ ")):
        return "hunk"
    if line.startswith("+"):
        return "added"
    if line.startswith("-"):
        return "removed"
    return "code"


def output_lines(text: Clean) -> list[BodyLine]:
    """What a tool has put out."""
    if looks_like_diff(text):
        return diff_lines(text)
    return _trimmed([BodyLine("output", Clean(line)) for line in text.split("\n")])


def exact_lines(text: Clean) -> list[BodyLine]:
    """A command, or the arguments of a call, to the letter."""
    return [BodyLine("exact", Clean(line)) for line in text.split("\n")]


def _trimmed(lines: list[BodyLine]) -> list[BodyLine]:
    """Without blank lines at both ends."""
    while lines and not lines[-1].text.strip():
        lines.pop()
    begin = next((at for at, line in enumerate(lines) if line.text.strip()), len(lines))
    return lines[begin:]
