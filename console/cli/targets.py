"""From what an operator names to where a source is, and with which token it is greeted."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console.cli.exits import Usage
from console.config import Config, SourceConfig, env_token, read_token, url_fault
from console.discovery import Place, free_name, plain, with_port
from console.version import VERSION
from watchfloor import runtime
from watchfloor.connector import Record, Target
from watchfloor.runtime import LocalHost

if TYPE_CHECKING:
    from argparse import Namespace

TOKEN_VARIABLE: Final = "WATCHFLOOR_TOKEN"  # noqa: S105 - the name of a variable
_OWN_DEMO: Final = (
    "the console's own demo is reached by no other program: watchfloor demo --serve 127.0.0.1:7340 makes one that is"
)
_HERE: Final = ("127.0.0.1", "localhost", "[::1]")


def operator() -> str:
    """The name that this console's operator goes by: the login name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def named(args: Namespace, config: Config, words: Iterable[str]) -> list[Place]:
    """The sources that were named by URL, by a name in the configuration, or by that of a local host, with its port
    (`build:7340`) where others go by the same.

    A token comes from the options, else from `WATCHFLOOR_TOKEN`, else from the configuration, else from the runtime
    file with that URL. Raises Usage, and ConfigError where a token cannot be had.
    """
    local = runtime.hosts()
    given = _given_token(args)
    return _distinct(_by_port([_named(word, config, local, given) for word in words]))


def known(config: Config) -> list[Place]:
    """The configured sources, then the hosts of this machine that are not among them. Raises ConfigError."""
    local = runtime.hosts()
    places = [_configured(source, local, None) for source in config.sources]
    return _distinct([*places, *(local_place(host) for host in local)])


def local_places(config: Config) -> list[Place]:
    """The hosts of this machine that are not configured, as the console calls them; no token is looked for."""
    configured = [Place(_target(source.name, source.url, None)) for source in config.sources]
    places = _distinct([*configured, *(local_place(host) for host in runtime.hosts())])
    return [place for place in places if place.host is not None]


def local_place(host: LocalHost, given: str | None = None) -> Place:
    """A host of this machine as a source. `given`: a token that comes before its own."""
    return Place(_target(host.name, host.url, given or host.token), host.name, borrows=given is None, path=host.path)


def _given_token(args: Namespace) -> str | None:
    """The token of the command line or the environment; None: look further."""
    if args.token_env is not None:
        return env_token(args.token_env, "--token-env")
    if args.token_file is not None:
        return read_token(Path(args.token_file))
    return env_token(TOKEN_VARIABLE, "the environment") if os.environ.get(TOKEN_VARIABLE) else None


def _named(word: str, config: Config, local: list[LocalHost], given: str | None) -> Place:
    by_name = "://" not in word
    source = next((s for s in config.sources if (s.name == word if by_name else plain(s.url) == plain(word))), None)
    if source is not None:
        return _configured(source, local, given)
    if by_name:
        return local_place(_of_that_name(word, local), given)
    if reason := url_fault(word):
        raise Usage(reason)
    here = _at(word, local)
    name = here.name if here is not None else _address(word)
    return _by_url(name, word, given, here)


def _of_that_name(name: str, local: list[LocalHost]) -> LocalHost:
    hosts = [host for host in local if host.name == name] or [h for h in local if with_port(h.name, h.url) == name]
    if not hosts:
        demo = f"; {_OWN_DEMO}" if name == "demo" else ""
        raise Usage(
            f"{name!r} is neither a URL (ws://HOST:PORT) nor the name of a configured source or local host{demo}"
        )
    if len(hosts) > 1:
        which = " or ".join(with_port(host.name, host.url) for host in hosts)
        raise Usage(f"{len(hosts)} hosts are called {name!r}: name one with its port, {which}")
    return hosts[0]


def _configured(source: SourceConfig, local: list[LocalHost], given: str | None) -> Place:
    return _by_url(source.name, source.url, given or source.token(), _at(source.url, local), Record(source.record))


def _by_url(name: str, url: str, token: str | None, here: LocalHost | None, record: Record = Record.ALL) -> Place:
    """A source at a URL of its own. `here`: the local host with that URL, which lends its token where there is none."""
    target = _target(name, url, token or (here.token if here is not None else None), record)
    return Place(target, borrows=token is None, path=here.path if here is not None else None)


def _target(name: str, url: str, token: str | None, record: Record = Record.ALL) -> Target:
    return Target(name=name, url=url, token=token, version=VERSION, user=operator(), record=record)


def _at(url: str, local: list[LocalHost]) -> LocalHost | None:
    return next((host for host in local if plain(host.url) == plain(url)), None)


def _address(url: str) -> str:
    return url.partition("://")[2].rstrip("/")


def _by_port(places: list[Place]) -> list[Place]:
    """The same, with the port first in the names of sources that have no other name than an address on one machine:
    they differ at their end only, which a narrow column does not show."""
    nameless = [place.target.name == _address(place.target.url) for place in places]
    machines = [
        _address(place.target.url).rpartition(":")[0] if bare else ""
        for place, bare in zip(places, nameless, strict=True)
    ]
    return [
        place._replace(target=replace(place.target, name=_port_first(place.target.name)))
        if machine and machines.count(machine) > 1
        else place
        for place, machine in zip(places, machines, strict=True)
    ]


def _port_first(address: str) -> str:
    machine, _, port = address.rpartition(":")
    return f":{port}" if machine in _HERE else f":{port} {machine}"


def _distinct(places: Iterable[Place]) -> list[Place]:
    """The same, told apart where a name was taken; the same URL only once."""
    found: dict[str, Place] = {}
    urls: set[str] = set()
    for place in places:
        target = place.target
        if plain(target.url) in urls:
            continue
        urls.add(plain(target.url))
        name = free_name(target, found.__contains__)
        found[name] = place._replace(target=replace(target, name=name))
    return list(found.values())
