"""Who gets past the door: decided on the request's headers, before anything is upgraded."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from watchfloor.host.principals import Principal, Principals
from watchfloor.words import PROTOCOL, Role


@dataclass(frozen=True, slots=True)
class Refusal:
    """HTTP status and one line of text."""

    status: int
    text: str


@dataclass(slots=True)
class Door:
    """Whom a host lets in.

    `origins`: values of the `Origin` header that are welcome; a browser page of any other is refused, since
    it would act with the operator's reach. `hosts`: names besides the loopback ones that the `Host` header
    may carry, so that no foreign name can be pointed at this machine. `beyond`: it serves other machines too, which
    may call it by any address; an address, other than a name, cannot be pointed at another machine.
    """

    principals: Principals
    origins: Collection[str] = ()
    hosts: Collection[str] = ()
    beyond: bool = False

    def admit(self, headers: Iterable[tuple[str, str]], *, joins: bool = False) -> Principal | Refusal:
        """The principal of a request, or why it is refused. `joins`: it is a process that wants to join its agents."""
        values: dict[str, list[str]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(value)
        host = values.get("host", [])
        if len(host) != 1 or not self._is_ours(host[0]):
            return Refusal(403, "refused: the Host header names neither a loopback address nor this host\n")
        if any(origin not in self.origins for origin in values.get("origin", [])):
            return Refusal(403, "refused: requests with this Origin header are not welcome\n")
        offered = [word.strip() for line in values.get("sec-websocket-protocol", []) for word in line.split(",")]
        if PROTOCOL not in offered:
            return Refusal(400, f"no common subprotocol: this host speaks {PROTOCOL}\n")
        authorization = values.get("authorization", [])
        principal = self.principals.admit(authorization[0] if len(authorization) == 1 else None)
        if principal is None:
            return Refusal(401, "missing or unknown token\n")
        if joins and principal.role is Role.OBSERVER:
            return Refusal(403, "refused: this token may only watch\n")
        if not joins and principal.role is Role.AGENT:
            return Refusal(403, "refused: this token is that of an agent, which joins at the path /agent\n")
        return principal

    def _is_ours(self, host: str) -> bool:
        name = host_name(host)
        return name in self.hosts or is_loopback(name) or (self.beyond and _is_address(name))


def host_name(host: str) -> str:
    """The name in a `Host` header, without its port, in lower case."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Does the name stand for this machine only?"""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
