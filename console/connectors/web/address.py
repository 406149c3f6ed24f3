"""Where a foreign system is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from watchfloor.connector import Target
from watchfloor.errors import ConfigError
from watchfloor.text import clean_line

_WS: Final = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_HOW: Final = "give it with --token-file, --token-env or token_file in the configuration"


@dataclass(frozen=True, slots=True)
class Address:
    """`base` is what paths are appended to, without a slash at its end; `where` is for people."""

    base: str
    where: str

    def url(self, path: str) -> str:
        return self.base + path

    def ws(self, path: str) -> str:
        """The same place as a WebSocket address."""
        scheme, rest = self.base.split("://", 1)
        return f"{_WS[scheme]}://{rest}{path}"


def address_of(target: Target, schemes: Mapping[str, str]) -> Address:
    """The address in the target's URL; `schemes` says what each scheme really is: {"acme+http": "http"}.

    Raises ConfigError for an address or a token that cannot be used as they stand.
    """
    parts = _split(target.url, schemes)
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"the address of {clean_line(target.name)} holds a name or password: {_HOW}")
    if parts.fragment or parts.query:
        raise ConfigError(f"the address of {clean_line(target.name)} must end before ? and #")
    token = target.token
    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(
            f"the token for {clean_line(target.name)} is empty or holds characters that no token has: "
            "write it alone on one line of its file"
        )
    path = parts.path.rstrip("/")
    return Address(
        base=f"{schemes[parts.scheme]}://{parts.netloc}{path}",
        where=clean_line(f"{parts.scheme}://{parts.netloc}{path}"),
    )


def _split(url: str, schemes: Mapping[str, str]) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in schemes and parts.hostname and parts.port != 0 and url.isprintable() and " " not in url:
            return parts
    except ValueError:
        pass
    # Not shown: what cannot be taken apart may hold a secret in any place.
    raise ConfigError(f"the address cannot be used: write {next(iter(schemes))}://HOST:PORT")
