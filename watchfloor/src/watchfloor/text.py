"""Text from outside, made fit for a terminal. Standard library only.

Everything that reaches an operator's eyes passes through here once, at the door. `clean`, `clean_line` and
`clean_prose` turn each harmful code point into a visible token of its own:

    C0 controls      the control picture, one cell: ESC is ␛, CR is ␍
    DEL              ␡
    everything else  the code point in angle brackets, in plain ASCII: `<U+202E>`

A token hides nothing, takes the same number of cells in every terminal and contains no character that a markup
language reads. Text may contain what looks like a token; `count_hidden` on the raw text tells how many are real.

The table is fixed, it does not follow the Unicode version of the interpreter: C0, DEL, C1, bidi controls, zero-width
and format characters, fillers, tag characters, variation selectors, line and paragraph separators, lone surrogates,
noncharacters, and every blank that can pass for a space. Only the widths of characters lean on `unicodedata`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, NewType

from watchfloor.secret_shapes import shapes

Clean = NewType("Clean", str)
"""Text that has passed through one of the functions of this module. Slices of it are clean as well."""

NOTHING: Final = Clean("")
"""No text."""


def _spans(spec: str) -> list[tuple[int, int]]:
    """First and last code point of each part of a list of hexadecimal code points and ranges."""
    ends = (part.split("-") for part in spec.split())
    return [(int(end[0], 16), int(end[-1], 16)) for end in ends]


def _charclass(spec: str) -> str:
    """The same as the inside of a regular expression's character class."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in _spans(spec))


class _CharSet:
    """A set of characters, for tests of single ones: cheap to make, which a compiled character class is not."""

    def __init__(self, spec: str) -> None:
        spans = sorted(_spans(spec))
        self._firsts = [first for first, _ in spans]
        self._lasts = [last for _, last in spans]

    def __contains__(self, char: str) -> bool:
        if not char:
            return False
        at = bisect_right(self._firsts, ord(char)) - 1
        return at >= 0 and ord(char) <= self._lasts[at]


# ---------------------------------------------------------------------------------------------- what is made visible

# Blank in every font, yet not the space that a command line or a path is split at.
_BLANKS = "a0 1680 2000-200a 202f 205f 2800 3000"
# Format characters with a shape of their own (Arabic number signs and the like); terminals disagree on their width.
_SIGNS = "600-605 6dd 890-891 8e2 110bd 110cd"
# Planes 4 to 14 hold nothing but tags, variation selectors and noncharacters.
_INVISIBLE = """
    0-8 b-1f 7f-9f ad 34f 61c 70f 115f-1160 17b4-17b5 180b-180f 200b-200f 2028-202e 2060-206f 3164 d800-dfff fdd0-fdef
    fe00-fe0f feff ffa0 fff0-fffc fffe-ffff 13430-1343f 1bca0-1bca3 1d173-1d17a 1fffe-1ffff 2fffe-2ffff 3fffe-effff
    ffffe-fffff 10fffe-10ffff
"""
_HIDDEN = re.compile(f"[{_charclass(' '.join((_INVISIBLE, _BLANKS, _SIGNS)))}]")
_HIDDEN_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_KEPT_IN_PROSE = _CharSet(f"{_BLANKS} {_SIGNS}")


class _Tokens(dict[str, str]):
    """Code point to token, filled on demand; it cannot outgrow the table above."""

    def __missing__(self, char: str) -> str:
        point = ord(char)
        picture = 0x2421 if point == 0x7F else 0x2400 + point
        token = chr(picture) if point < 0x20 or point == 0x7F else f"<U+{point:04X}>"
        self[char] = token
        return token


_TOKENS = _Tokens()


def _token(match: re.Match[str]) -> str:
    return _TOKENS[match[0]]


_SHORT: Final = 48
"""Characters up to which one search is the fastest."""
_PLAIN_ASCII: Final = bytes((0x09, 0x0A, *range(0x20, 0x7F)))


def _hides(s: str) -> bool:
    """Does anything in it have to be made visible?"""
    if len(s) > _SHORT:
        # Most of what is written is plain ASCII with line feeds: to take that away costs a fraction of a search. What
        # is left is looked at by itself, as each code point stands for itself.
        try:
            rest = s.encode().translate(None, _PLAIN_ASCII)
        except UnicodeEncodeError:
            return True  # lone surrogates
        if not rest:
            return False
        s = rest.decode()
    return (_HIDDEN_ASCII if s.isascii() else _HIDDEN).search(s) is not None


def clean(s: str) -> Clean:
    """For what names or acts: commands, arguments, paths, options. Line feeds and tabs stay, all else is shown.

    Works on single code points and keeps no state, so `clean(a) + clean(b) == clean(a + b)`. Idempotent, never
    shorter than its input. Never raises, whatever the string holds.
    """
    if (s.isascii() and s.isprintable()) or not _hides(s):
        # NewType is a call that costs as much as the test above; this runs for every field of every event.
        return s  # type: ignore[return-value]
    return Clean(_HIDDEN.sub(_token, s))


def clean_line(s: str) -> Clean:
    """As `clean`, on one line: line feeds become ␊, tabs ␉. For ids, names and cells of a table."""
    if s.isascii() and s.isprintable():
        return s  # type: ignore[return-value]
    return Clean(clean(s).replace("\n", "␊").replace("\t", "␉"))


def clean_prose(s: str) -> Clean:
    """For message bodies: as `clean`, but what ordinary writing needs is left alone.

    Kept are joiners and presentation selectors inside emoji, joiners between letters of scripts that need them
    (Persian, the Indic scripts, ...), blanks such as the no-break space, and Arabic number signs. It looks at the
    neighbours, so clean the whole body, not its pieces. Idempotent, never shorter than its input.
    """
    if (s.isascii() and s.isprintable()) or not _hides(s):
        return s  # type: ignore[return-value]
    return Clean(_HIDDEN.sub(_prose_token, s))


def count_hidden(s: str, *, prose: bool = False) -> int:
    """How many code points of the raw text `clean` makes visible; with `prose`, how many `clean_prose` does."""
    if is_plain(s):
        return 0
    if prose:
        return sum(_prose_token(match) != match[0] for match in _HIDDEN.finditer(s))
    return len(_HIDDEN.findall(s))


def is_plain(s: str) -> bool:
    """Whether `clean` would leave the text as it is."""
    return (s.isascii() and s.isprintable()) or not _hides(s)


# ---------------------------------------------------------------------------------------------- prose

_ZWNJ, _ZWJ, _TEXT_STYLE, _EMOJI_STYLE, _KEYCAP = "\u200c", "\u200d", "\ufe0e", "\ufe0f", "\u20e3"
_KEYCAP_BASES = frozenset("0123456789#*")

# Narrow characters that take two cells once U+FE0F asks for their emoji form (with the keycap bases above).
_NARROW_EMOJI = _CharSet("""
    a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 2328 23cf 23ed-23ef 23f1-23f2 23f8-23fa 24c2 25aa-25ab 25b6 25c0
    25fb-25fc 2600-2604 260e 2611 2618 261d 2620 2622-2623 2626 262a 262e-262f 2638-263a 2640 2642 265f-2660 2663
    2665-2666 2668 267b 267e 2692 2694-2697 2699 269b-269c 26a0 26a7 26b0-26b1 26c8 26cf 26d1 26d3 26e9 26f0-26f1 26f4
    26f7-26f9 2702 2708-2709 270c-270d 270f 2712 2714 2716 271d 2721 2733-2734 2744 2747 2763-2764 27a1 2934-2935
    2b05-2b07 1f170-1f171 1f17e-1f17f 1f321 1f324-1f32c 1f336 1f37d 1f396-1f397 1f399-1f39b 1f39e-1f39f 1f3cb-1f3ce
    1f3d4-1f3df 1f3f3 1f3f5 1f3f7 1f43f 1f441 1f4fd 1f549-1f54a 1f56f-1f570 1f573-1f579 1f587 1f58a-1f58d 1f590 1f5a5
    1f5a8 1f5b1-1f5b2 1f5bc 1f5c2-1f5c4 1f5d1-1f5d3 1f5dc-1f5de 1f5e1 1f5e3 1f5e8 1f5ef 1f5f3 1f5fa 1f6cb 1f6cd-1f6cf
    1f6e0-1f6e5 1f6e9 1f6f0 1f6f3
""")
_WIDE_EMOJI = _CharSet("""
    231a-231b 23e9-23ec 23f0 23f3 25fd-25fe 2614-2615 2648-2653 267f 2693 26a1 26aa-26ab 26bd-26be 26c4-26c5 26ce 26d4
    26ea 26f2-26f3 26f5 26fa 26fd 2705 270a-270b 2728 274c 274e 2753-2755 2757 2795-2797 27b0 27bf 2b1b-2b1c 2b50 2b55
    3030 303d 3297 3299 1f004 1f0cf 1f18e 1f191-1f19a 1f201 1f21a 1f22f 1f232-1f23a 1f250-1f251 1f300-1f64f 1f680-1f6ff
    1f7e0-1f7eb 1f90c-1f9ff 1fa70-1faff
""")
_JOINED_SCRIPTS = _CharSet("""
    620-6dc 6de-8e1 8e3-dff 1000-109f 1780-17b3 17b6-180a 1810-18af 1a20-1aaf 1b00-1bbf a800-a82f a840-a8df
    a980-a9df aa60-aa7f abc0-abff fb50-fdcf fdf0-fdff fe70-fefc 10a00-10a5f 10d00-10d3f 10f30-10f6f 11000-110bc
    110be-110cc 110ce-11fff 1e900-1e95f
""")
_VIRAMA = 9  # the combining class of the marks that a joiner may follow at the end of a word


def _is_emoji(char: str) -> bool:
    return char in _NARROW_EMOJI or char in _WIDE_EMOJI


def _writes(char: str) -> bool:
    """Whether the character is a letter, mark or digit of a script in which joiners change the writing."""
    return char in _JOINED_SCRIPTS and unicodedata.category(char)[0] in "LMN"


def _belongs(s: str, at: int) -> bool:
    """Whether the joiner or presentation selector at this place does what it was made for."""
    char, before, after = s[at], s[at - 1 : at], s[at + 1 : at + 2]
    if char in (_TEXT_STYLE, _EMOJI_STYLE):
        if before in _KEYCAP_BASES:
            return char == _EMOJI_STYLE and after == _KEYCAP
        return _is_emoji(before)
    if char == _ZWJ and _is_emoji(after):
        base = s[at - 2 : at - 1] if before == _EMOJI_STYLE else before
        return _is_emoji(base)
    if not _writes(before):
        return False
    return _writes(after) or (unicodedata.combining(before) == _VIRAMA and after not in (_ZWJ, _ZWNJ))


def _prose_token(match: re.Match[str]) -> str:
    char = match[0]
    if char in _KEPT_IN_PROSE:
        return char
    if char in (_ZWNJ, _ZWJ, _TEXT_STYLE, _EMOJI_STYLE) and _belongs(match.string, match.start()):
        return char
    return _TOKENS[char]


# ---------------------------------------------------------------------------------------------- cells

# Where terminals and the toolkit differ from what category and East Asian width say, or know later characters.
_NO_CELL = _CharSet("""
    897 cf3 ece 1160-11ff 1acf-1add 1ae0-1aeb 200b-200d 2060 d7b0-d7ff 10d69-10d6d 10efa-10eff 11241 113b8-113c0
    113c2 113c5 113c7-113ca 113cc-113d0 113d2 113e1-113e2 11b60-11b67 11f00-11f01 11f03 11f34-11f3a 11f3e-11f42
    11f5a 13440 13447-13455 1611e-1612f 1e08f 1e4ec-1e4ef 1e5ee-1e5ef 1e6e3 1e6e6 1e6ee-1e6ef 1e6f5 1f3fb-1f3ff
""")
_TWO_CELLS = _CharSet("""
    2630-2637 268a-268f 2ffc-2fff 31e4-31e5 31ef 4dc0-4dff fa6e-fa6f fada-faff 16ff2-16ff6 187f8-187ff 18cff
    18d09-18d1e 18d80-18df2 1b132 1b155 1d300-1d356 1d360-1d376 1f6d8 1f6dc 1fa75-1fa77 1fa87-1fa8a 1fa8e-1fa8f
    1faad-1faaf 1fabb-1fabf 1fac6 1fac8 1facd-1facf 1fada-1fadc 1fadf 1fae8-1faea 1faef 1faf7-1faf8 2a6e0-2a6ff
    2b739-2b73f 2b81e-2b81f 2cea2-2ceaf 2ebe1-2f7ff 2fa1e-2fffd 3134b-3fffd
""")


@lru_cache(maxsize=8192)
def _cells(char: str) -> int:
    if char in _NO_CELL:
        return 0
    if char in _TWO_CELLS:
        return 2
    category = unicodedata.category(char)
    if category in ("Mn", "Mc", "Me", "Cc"):
        return 0
    # Unassigned code points report a width that differs from one interpreter to the next.
    return 2 if category != "Cn" and unicodedata.east_asian_width(char) in ("W", "F") else 1


def cell_width(s: str) -> int:
    """How many terminal cells the line takes, by the toolkit's measure, so that layouts agree.

    Combining marks take none, U+FE0F widens a narrow emoji to two, U+200D swallows the character after it. Line feeds
    and tabs count as none: split lines and expand tabs first.
    """
    if s.isascii() and s.isprintable():
        return len(s)
    if _ZWJ not in s and _EMOJI_STYLE not in s:
        return sum(map(_cells, s))
    return _measure(s, 2 * len(s))[0]


def _measure(s: str, cells: int) -> tuple[int, int]:
    """The width of the line, and how many code points of it fit into one cell less than `cells`.

    A line that is wider is not measured to its end: the width is then just some number above `cells`.
    """
    used = fitting = 0
    base = ""  # the character that a selector for the emoji form would widen
    chars = enumerate(s)
    for at, char in chars:
        if width := _cells(char):
            if used < cells:
                fitting = at
            used += width
            base = char
        elif char == _ZWJ:
            next(chars, None)
        elif char == _EMOJI_STYLE:
            used += base in _NARROW_EMOJI or base in _KEYCAP_BASES
            base = ""
        if used > cells:
            break
    return used, fitting


def cut(s: Clean, cells: int) -> Clean:
    """The line, if it fits into so many cells, else as much of its beginning as fits before an ellipsis.

    Never splits a wide character, a mark from its letter or a joined emoji, so that the result may be a cell narrower
    than asked. Line feeds and tabs become visible, as in `clean_line`. Less than one cell gives the empty string.
    """
    if cells <= 0:
        return Clean("")
    if s.isascii() and s.isprintable():
        return s if len(s) <= cells else Clean(s[: cells - 1] + "…")
    if "\n" in s or "\t" in s:
        s = Clean(s.replace("\n", "␊").replace("\t", "␉"))
    width, fitting = _measure(s, cells)
    return s if width <= cells else Clean(s[:fitting] + "…")


MOST_COUNTED: Final = 2**53 - 1
"""The largest count that is written out."""
LONGEST_MS: Final = 20 * 365 * 86_400_000
"""Twenty years. Nothing that is shown lasts longer: one of the two times was none."""


def numeral(n: int) -> str:
    """A count in digits with commas; beyond ±(2^53 - 1) only that it is. Total: any integer can be written so."""
    if -MOST_COUNTED <= n <= MOST_COUNTED:
        return f"{n:,}"
    return "over 2^53" if n > 0 else "under -2^53"


def since(ms: int) -> str:
    """A duration in milliseconds, rounded down: "0:31", "2:14", "1:02:03", from a day on "3d 4h"; negative is 0:00.

    One of more than twenty years is "unknown time".
    """
    if ms > LONGEST_MS:
        return "unknown time"
    seconds = max(0, ms) // 1000
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24}d {hours % 24}h"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


# ---------------------------------------------------------------------------------------------- secrets


class _Span(NamedTuple):
    start: int
    end: int
    hint: int  # so many characters from the start stay visible
    sized: bool


_SHORTEST_EXTRA = 4
_MASK = re.compile(r"…\[masked(?: \d+)?\]")


def _found(s: str, extra: Iterable[str]) -> list[_Span]:
    masks = [match.span() for match in _MASK.finditer(s)]
    ends = [end for _, end in masks]

    def masked(start: int, end: int) -> bool:
        at = bisect_right(ends, start)
        return at < len(masks) and masks[at][0] < end

    spans = []
    for own in {clean(e) for e in extra if len(e) >= _SHORTEST_EXTRA}:
        at = s.find(own)
        while at >= 0:
            if not masked(at, at + len(own)):
                spans.append(_Span(at, at + len(own), 0, True))
            at = s.find(own, at + len(own))
    lowered = s.lower()
    for shape in shapes():
        if not any(needle in lowered for needle in shape.needles):
            continue
        for match in shape.pattern.finditer(s):
            start, end = match.span(match.lastindex or 0)
            hint = len(match["hint"]) if "hint" in shape.pattern.groupindex else 0
            # What stands right before a mask is the hint that was left of this very secret.
            if not masked(start - hint, end + 1):
                spans.append(_Span(start - hint, end, hint, shape.sized))
    return sorted(spans)


def redact(s: Clean, extra: Iterable[str] = ()) -> tuple[Clean, int]:
    """Masks secrets: the text with each replaced by `sk-…[masked 48]`, and how many were replaced.

    Known are the tokens of the usual services, JSON web tokens, bearer tokens, private key blocks, passwords in the
    user part of a URL, and values given to names such as PASSWORD, API_KEY or --token. A hint of the kind stays; the
    number is the count of characters that were taken away, left out for passwords. `extra` are our own credentials,
    masked wherever they stand (those under 4 characters are ignored: they would mask ordinary words).

    Without `extra`, masking what is masked changes nothing. It is a courtesy against shoulder-surfing and pasted logs,
    not a proof: a secret without a known shape or name stays.
    """
    merged = _merged(s, extra)
    if not merged:
        return s, 0
    pieces = []
    at = 0
    for span in merged:
        kept = span.start + span.hint
        pieces.append(f"{s[at:kept]}…[masked{f' {span.end - kept}' if span.sized else ''}]")
        at = span.end
    pieces.append(s[at:])
    return Clean("".join(pieces)), len(merged)


def secret_spans(s: Clean, extra: Iterable[str] = ()) -> list[tuple[int, int]]:
    """Where in the text the secrets stand that `redact` takes away, in their order: start and end of each."""
    return [(span.start + span.hint, span.end) for span in _merged(s, extra)]


def _merged(s: str, extra: Iterable[str]) -> list[_Span]:
    merged: list[_Span] = []
    for span in _found(s, extra):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            hint = max(last.hint, span.hint) if span.start == last.start else min(last.hint, span.start - last.start)
            merged[-1] = _Span(last.start, max(last.end, span.end), hint, last.sized or span.sized)
        else:
            merged.append(span)
    return merged
