"""Who may connect, and as what."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from watchfloor.words import Role

_NAME: Final = 64
_BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True)
class Principal:
    """What a token stands for. An empty name leaves the naming to the client, and is shown as unverified."""

    name: str = ""
    role: Role = Role.OPERATOR
    vouches: bool = False
    """It says in whose name it gives its commands: the host that this one has joined."""


class Principals:
    """The tokens of a host. Without any, everybody who can connect is an operator of an unverified name."""

    def __init__(self, tokens: Mapping[str, Principal] | None = None) -> None:
        self._tokens = {token.encode(): principal for token, principal in (tokens or {}).items()}
        self._minted: dict[bytes, Principal] = {}
        if any(not isinstance(principal, Principal) for principal in self._tokens.values()):
            raise TypeError('tokens are given with whom they admit: {token: Principal("ann")}')
        if b"" in self._tokens:
            raise ValueError("an empty token would let everybody in")

    def mint(self, principal: Principal) -> str:
        """A new token, which stands for this as long as the host lives. Whoever needs none needs none afterwards."""
        token = secrets.token_urlsafe(24)
        self._minted[token.encode()] = principal
        return token

    @property
    def open(self) -> bool:
        """Are there no tokens?"""
        return not self._tokens

    @property
    def only_token(self) -> str | None:
        """The token, where there is one alone and it is an operator's: its user's own. None otherwise."""
        if len(self._tokens) != 1:
            return None
        ((token, principal),) = self._tokens.items()
        return token.decode() if principal.role is Role.OPERATOR else None

    def admit(self, authorization: str | None) -> Principal | None:
        """The principal of an `Authorization` header, None where it is refused."""
        if self.open:
            return Principal()
        if authorization is None or authorization[: len(_BEARER)].lower() != _BEARER:
            return None
        given = authorization[len(_BEARER) :].strip().encode("utf-8", "replace")
        found: Principal | None = None
        for token, principal in (*self._tokens.items(), *self._minted.items()):
            # All are compared, each in constant time, so that the time taken tells nothing.
            if hmac.compare_digest(token, given):
                found = principal
        return found


def display_name(principal: Principal, claimed: str) -> str:
    """The name under which interventions are recorded. One that no token vouches for says so."""
    if principal.name:
        return principal.name
    name = " ".join(claimed.split())[:_NAME]
    return f"{name or 'somebody'} (unverified)"
