"""What a word of the command line may be: numbers, addresses, digests, fields. Standard library only."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final, NoReturn

from console.cli.exits import Usage

_LONGEST_NUMBER: Final = 15
"""Digits; what has more is beyond what JSON numbers hold exactly."""
_LONGEST_SHOWN: Final = 80


def number(least: int, most: int | None = None) -> Any:
    def read(text: str) -> int:
        value = int(text) if _digits(text) else -1
        if value < least or (most is not None and value > most):
            span = f"{least} to {most}" if most is not None else f"{least} or more"
            raise argparse.ArgumentTypeError(f"{quoted(text)} is not a whole number, {span}")
        return value

    return read


def _digits(text: str) -> bool:
    """Is it a number that can be meant? Python itself refuses to read one of thousands of digits."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


def quoted(text: str) -> str:
    """The word in quotes, cut where it is too long to be told."""
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a number of seconds, 0 to 86400")
    return value


def rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a number of events a second, above 0")
    return value


def id(text: str) -> str:
    if not 0 < len(text) <= 200 or not text.isprintable():
        raise argparse.ArgumentTypeError("an id has 1 to 200 printable characters")
    return text


def digest(text: str) -> str:
    digits = text.removeprefix("sha256:")
    if digits == text or len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a digest: sha256: and 64 hexadecimal digits")
    return text


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE. The fault does not hold the text, which may be a secret."""
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise argparse.ArgumentTypeError("write a field as NAME=VALUE")
    return name, value


def address(text: str) -> tuple[str, int]:
    """HOST:PORT; an IPv6 address stands in brackets. Port 0: any free one."""
    host, mark, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    number = int(port) if _digits(port) else 65_536
    if not mark or not bare or number > 65_535 or (":" in bare and bare == host):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not HOST:PORT, as in 127.0.0.1:7340")
    return bare, number


def fields(text: str) -> dict[str, Any]:
    """The answer's fields from JSON. Raises Usage; the message does not hold the text, which may be a secret."""
    try:
        value = json.loads(text, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()  # half a pair of surrogates has no bytes
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Usage('--fields must be a JSON object, as in \'{"branch": "main"}\'')
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
