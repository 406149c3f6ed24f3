"""Canonical bytes and digest: what binds a decision to exactly that which was read. Standard library only.

The canonical form of a JSON value is the one UTF-8 string that these rules allow:

- No white space outside of strings, no byte order mark.
- `null`, `true`, `false`.
- Integers from -(2^53 - 1) to 2^53 - 1 in decimal: no leading zero, no plus sign, no exponent, and 0 never as -0.
  No other number has a canonical form; a host writes them as strings first (`stringify_numbers`).
- Strings in double quotes. Exactly these are escaped: `\\"` and `\\\\`; U+0008 `\\b`, U+0009 `\\t`, U+000A `\\n`,
  U+000C `\\f`, U+000D `\\r`; every other code point below U+0020 as `\\u00xx` with lower-case hexadecimal digits.
  Everything else is written raw in UTF-8: the slash, U+007F, U+2028, U+2029, all that is not ASCII. No normalisation.
  A lone surrogate has no canonical form.
- Arrays `[a,b]` in their order.
- Objects `{"k":v,"l":w}`, keys sorted by code point, which for U+E000 and above is not the order of UTF-16 units.
- At most 64 arrays and objects inside each other.

The digest is `sha256:` and the SHA-256 of these bytes in 64 lower-case hexadecimal digits. `docs/protocol` holds
vectors. A key that occurs twice in an object is a matter of the parser: here the value is a mapping already.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from watchfloor.errors import CanonicalError

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 64
_SHOWN_KEY = 40  # characters of a key in a path; the rest of a long one tells nobody where to look

_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def canonical(value: object) -> bytes:
    """The canonical form of a value made of None, bool, int, str, list, and dict with str keys.

    Raises `CanonicalError` for anything else; the message starts with the path, such as `$.actions[0].args["a b"]`,
    and is ASCII.
    """
    _check(value)
    # Python's encoder writes exactly the escapes that are promised above; the vectors hold it to that.
    return _encode(value).encode()


def digest(value: object) -> str:
    """`sha256:` and the hexadecimal SHA-256 of the canonical form. Raises `CanonicalError` as `canonical` does."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def subject_digest(subject: Mapping[str, object]) -> str:
    """The digest of what a request asks for: the subject as it stands in the frame.

    Give the mapping as it was parsed, fields of a newer version included and nothing cleaned, filled in or left out.
    Raises `CanonicalError`.
    """
    return digest(dict(subject))


def stringify_numbers(value: object) -> Any:
    """A copy of the value in which every number without a canonical form is a string. For hosts, before the digest.

    An integer beyond ±(2^53 - 1) becomes its decimal digits with `-` in front of a negative one. A float, whole ones
    and -0.0 too, becomes the shortest decimal that reads back as the same number: `1.0`, `-0.0`, `0.1`; with an
    exponent of at least two digits and its sign where that is below -4 or above 15: `1e-05`, `1.5e+16`; or `NaN`,
    `Infinity`, `-Infinity`. Tuples become lists, as JSON has no other. Everything else stays as it is.

    Raises `CanonicalError` for an integer so long that the interpreter refuses to write it, and beyond `MAX_DEPTH`.
    """
    return _stringified(value, _Path())


class _Path:
    """Where in the value we are. A chain of steps, joined only when there is an error to report."""

    __slots__ = ("_parent", "_step", "depth")

    def __init__(self, parent: _Path | None = None, step: str | int = "") -> None:
        self._parent = parent
        self._step = step
        self.depth: int = parent.depth + 1 if parent else 0

    def __str__(self) -> str:
        if self._parent is None:
            return "$"
        if isinstance(self._step, int):
            return f"{self._parent}[{self._step}]"
        if self._step.isascii() and self._step.isidentifier() and len(self._step) <= _SHOWN_KEY:
            return f"{self._parent}.{self._step}"
        shown = self._step if len(self._step) <= _SHOWN_KEY else self._step[:_SHOWN_KEY] + "..."
        quoted = json.dumps(shown).replace("\x7f", "\\u007f")  # the one unprintable character that JSON leaves raw
        return f"{self._parent}[{quoted}]"

    def error(self, reason: str) -> CanonicalError:
        return CanonicalError(f"{self}: {reason}")


def _check(value: object) -> None:
    # A stack of our own: the value comes from outside, and how deep it goes must not depend on the caller's stack.
    waiting: list[tuple[object, _Path]] = [(value, _Path())]
    while waiting:
        item, path = waiting.pop()
        if item is None or isinstance(item, bool):
            continue
        if isinstance(item, str):
            _check_text(item, path, "a lone surrogate")
        elif isinstance(item, int):
            if not -MAX_INTEGER <= item <= MAX_INTEGER:
                raise path.error("an integer beyond 2^53 - 1 must be written as a string")
        elif isinstance(item, float):
            raise path.error("a number that is not an integer must be written as a string")
        elif isinstance(item, (dict, list)):
            if path.depth >= MAX_DEPTH:
                raise path.error(f"more than {MAX_DEPTH} levels deep")
            waiting.extend(_children(item, path))
        else:
            raise path.error(f"not a JSON value but {_kind(item)}")


def _children(item: dict[object, object] | list[object], path: _Path) -> Iterator[tuple[object, _Path]]:
    if isinstance(item, list):
        for at, inner in enumerate(item):
            yield inner, _Path(path, at)
        return
    for key, inner in item.items():
        if not isinstance(key, str):
            raise path.error(f"a key is not a string but {_kind(key)}")
        _check_text(key, path, "a key with a lone surrogate")
        yield inner, _Path(path, key)


def _check_text(text: str, path: _Path, problem: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise path.error(f"{problem} (U+{ord(text[error.start]):04X})") from None


def _stringified(value: object, path: _Path) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if -MAX_INTEGER <= value <= MAX_INTEGER:
            return value
        try:
            return int.__repr__(value)
        except ValueError:
            raise path.error("an integer with too many digits to be written") from None
    if isinstance(value, float):
        return _float_text(value)
    if not isinstance(value, (dict, list, tuple)):
        return value
    if path.depth >= MAX_DEPTH:
        raise path.error(f"more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {
            key: _stringified(inner, _Path(path, key if isinstance(key, str) else "?")) for key, inner in value.items()
        }
    return [_stringified(inner, _Path(path, at)) for at, inner in enumerate(value)]


def _float_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return float.__repr__(value)


def _kind(item: object) -> str:
    # The name of a class is text from outside as well, if the class was made from data.
    return ascii(type(item).__name__)[1:-1]
