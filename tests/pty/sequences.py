"""What a program told its terminal to do: the control sequences in its output, apart from its text."""

from __future__ import annotations

import base64
import re
import unicodedata
from typing import Final

_SEQUENCE: Final = re.compile(
    r"\x1b\[(?P<private>[<=>?]?)(?P<numbers>[0-9:;]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<osc>\d*)(?P<payload>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b(?P<string>[PX^_])[^\x1b]*\x1b\\"
    r"|\x1b(?P<short>[ -/]*[0-~])"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])",
    re.DOTALL,
)
_COLOUR: Final = re.compile(r"[34]8[;:](?:2[;:]\d+[;:]\d+[;:]\d+|5[;:]\d+)")

# Letters and marks by their category, and yet nothing that can be seen.
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u3164\uffa0\ufe00\ufe0e\U000e0100\u2800")


def sequences(raw: bytes) -> set[str]:
    """Each kind of control sequence once: its introducer, private prefix and final letter.

    Numbers are dropped, but for those that name a mode, which are kept. Colours and styles are told by `styles`.
    """
    found: set[str] = set()
    for match in _SEQUENCE.finditer(raw.decode("utf-8", "surrogateescape")):
        part = match.groupdict(default="")
        if part["final"]:
            numbers = part["numbers"] if part["private"] or part["between"] else ""
            found.add(f"CSI {part['private']}{numbers}{part['between']}{part['final']}")
        elif match["osc"] is not None:
            found.add(f"OSC {part['osc']}")
        else:
            found.add(f"ESC {part['string'] or part['short']}" if not part["control"] else repr(part["control"]))
    return found


def styles(raw: bytes) -> set[str]:
    """The styles that were set, such as "1" for bold, without colours."""
    found: set[str] = set()
    for match in _SEQUENCE.finditer(raw.decode("utf-8", "surrogateescape")):
        if match["final"] == "m" and not match["private"]:
            found.update(_COLOUR.sub("", match["numbers"]).split(";"))
    return found


def copied(raw: bytes) -> list[str]:
    """What was put into the terminal's clipboard."""
    texts = [m["payload"] for m in _SEQUENCE.finditer(raw.decode("utf-8", "surrogateescape")) if m["osc"] == "52"]
    return [base64.b64decode(text.rpartition(";")[2]).decode() for text in texts]


def unseen(raw: bytes) -> set[str]:
    """The code points in the text that take no place, turn the text around, or are no characters at all."""
    text = _SEQUENCE.sub("", raw.decode("utf-8", "surrogateescape"))
    hidden = {"Cf", "Cs", "Cn", "Co", "Zl", "Zp", "Cc"}
    return {f"U+{ord(char):04X}" for char in set(text) if char in _UNSEEN or unicodedata.category(char) in hidden}
