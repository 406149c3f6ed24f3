"""How a recording is named among the sources."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

SCHEME: Final = "replay"


def url_of(path: Path) -> str:
    """The address of a recording."""
    return f"{SCHEME}://{quote(str(path.absolute()))}"


def path_of(url: str) -> Path:
    """The file at the address of a recording."""
    return Path(unquote(urlsplit(url).path))


def is_recording(url: str) -> bool:
    """Is a source at this address one?"""
    return url.partition(":")[0] == SCHEME
