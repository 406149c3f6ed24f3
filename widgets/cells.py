"""Cell arithmetic for one-line painting: every result has an exact width in terminal cells.

Widths are measured with rich's tables, because the toolkit crops and pads strips by them.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len, split_graphemes

_TAB: Final = 4

# Texts are cleaned long before they come here. This is the last line before the terminal, for the
# two controls that a cleaned text may hold (line feed, tab) and for whatever a new door forgets.
_VISIBLE: Final[dict[int, str]] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    0x2028: "\ufffd",
    0x2029: "\ufffd",
}


def flat(text: str) -> str:
    """The text as one line: each control character replaced by one visible cell."""
    if text.isprintable():
        return text
    return text.translate(_VISIBLE)


def fit(text: str, width: int, cut: str = "…", *, right: bool = False) -> str:
    """The text in exactly `width` cells: padded, or cut with the mark `cut` (one cell) at its end."""
    if width <= 0:
        return ""
    if not (text.isascii() and text.isprintable()):
        text = flat(text)
        size = cell_len(text)
        if size > width:
            return _exactly(_first(text, width - 1) + cut, width)
        return _exactly(" " * (width - size) + text if right else text + " " * (width - size), width)
    if len(text) > width:
        return text[: width - 1] + cut
    return text.rjust(width) if right else text.ljust(width)


def crop(text: str, width: int) -> str:
    """The first `width` cells of the text, padded to that width; without any mark."""
    text = flat(text)
    return _first(text, width) if width_of(text) > width else fit(text, width)


def cut_middle(text: str, width: int, cut: str = "…") -> str:
    """The text in exactly `width` cells: padded, or with the mark `cut` (one cell) in place of its middle."""
    text = flat(text)
    size = width_of(text)
    if size <= width or width < 3:
        return fit(text, width, cut)
    head = (width - 1) // 2
    return _exactly(_first(text, head) + cut + skip(text, size - (width - 1 - head)), width)


def width_of(text: str) -> int:
    """Cells that the text takes once it is on one line."""
    return len(text) if text.isascii() and text.isprintable() else cell_len(flat(text))


def skip(text: str, cells: int) -> str:
    """The text without its first `cells` cells; half of a wide character becomes a blank."""
    text = flat(text)
    if text.isascii():
        return text[cells:]
    used = 0
    for start, end, size in split_graphemes(text)[0]:
        if used >= cells:
            return " " * (used - cells) + text[start:]
        used += size
        if end == len(text) and used > cells:
            return " " * (used - cells)
    return ""


def _first(text: str, width: int) -> str:
    """The first `width` cells of a flat text that is wider than that."""
    if width <= 0:
        return ""
    if text.isascii():
        return text[:width]
    used = end = 0
    for _start, stop, size in split_graphemes(text)[0]:
        if used + size > width:
            break
        used, end = used + size, stop
    return _exactly(text[:end] + " " * (width - used), width)


def _exactly(text: str, width: int) -> str:
    """The text, unless the toolkit measures it differently as a whole than in its parts.

    A joiner at an edge does that. Without joiners and marks widths add up.
    """
    if cell_len(text) == width:
        return text
    kept = ""
    for char in text:
        if 0 < cell_len(char) <= width - cell_len(kept):
            kept += char
    return kept + " " * (width - cell_len(kept))


def chop(text: str, width: int) -> list[str]:
    """The text in pieces of at most `width` cells (at least 2), with nothing left out; never empty.

    A tab becomes a visible mark and blanks up to the next stop, so that it is neither lost nor wider
    than it was measured.
    """
    width = max(2, width)
    text = flat(_expand_tabs(text))
    if text.isascii():
        return [text[at : at + width] for at in range(0, len(text), width)] or [""]
    spans, _ = split_graphemes(text)
    pieces: list[str] = []
    begin = used = 0
    for start, _end, cells in spans:
        if used + cells > width:
            pieces.append(text[begin:start])
            begin, used = start, 0
        used += cells
    pieces.append(text[begin:])
    return pieces


def wrap(text: str, width: int, *, seam: str = "") -> list[str]:
    """Prose in lines of at most `width` cells: line breaks kept, broken at blanks where possible.

    A word that is too long for a line is broken behind the character `seam` where it holds one, else anywhere.
    """
    width = max(2, width)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines.extend(_wrap_paragraph(paragraph, width, seam))
    return lines


def _wrap_paragraph(text: str, width: int, seam: str) -> list[str]:
    text = flat(_expand_tabs(text))
    if width_of(text) <= width:
        return chop(text, width)
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if width_of(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *whole, line = _break(word, width, seam)
        lines.extend(whole)
    lines.append(line)
    return lines


def _break(word: str, width: int, seam: str) -> list[str]:
    """A word in pieces of at most `width` cells, never none."""
    if not seam or seam not in word:
        return chop(word, width)
    pieces: list[str] = []
    line = ""
    *parts, last = word.split(seam)
    for part in (*(part + seam for part in parts), last):
        if width_of(line + part) <= width:
            line += part
            continue
        if line:
            pieces.append(line)
        *whole, line = chop(part, width)
        pieces.extend(whole)
    return [*pieces, line]


def _expand_tabs(text: str) -> str:
    if "\t" not in text:
        return text
    first, *rest = text.split("\t")
    # The column is carried along: measuring all that came before at each tab would be quadratic.
    parts, column = [first], cell_len(first)
    for piece in rest:
        stop = _TAB - column % _TAB
        parts += ["\u21e5".ljust(stop), piece]
        column += stop + cell_len(piece)
    return "".join(parts)
