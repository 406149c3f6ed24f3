"""Keeps the sources of an open console in step with the hosts that this user runs on this machine.

Their runtime files are looked at every few seconds. A host that appears becomes a source; one that ends is let go,
with its last known state; one that comes back under its name takes its old place, whatever its address and token are
now. Without network and models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from watchfloor import runtime
from watchfloor.connector import Target
from watchfloor.runtime import LocalHost

POLL_S: Final = 2.0
ENDED: Final = "the host has ended"


class Place(NamedTuple):
    """A source, and what of it the runtime files say.

    `host`: the name of the local host that it stands for; None: it has a URL of its own. `borrows`: its token is what
    the host's runtime file says. `path`: the runtime file of the host that was last seen there, None for none.
    """

    target: Target
    host: str | None = None
    borrows: bool = False
    path: Path | None = None

    def at(self, host: LocalHost) -> bool:
        """Is this host the one that the place stands for, by its URL?"""
        return plain(self.target.url) == plain(host.url) and self.host in (None, host.name)


class Sources(Protocol):
    """What is told of the hosts that come and go; a hub."""

    def has(self, name: str) -> bool:
        """Is there a source of this name?"""
        ...

    def heard(self, name: str) -> bool:
        """Does a connection to the source stand?"""
        ...

    def start(self, targets: Sequence[Target]) -> None: ...

    def replace(self, target: Target) -> None: ...

    def let_go(self, name: str, why: str) -> None: ...

    def retry(self, name: str) -> None: ...


class Discovery:
    """Tells the sources of a console what the runtime files say.

    `places` are the sources that it begins with. With `adopt`, every host that appears becomes a source: it makes the
    place of one; without, only the places are kept in step.
    """

    def __init__(self, places: Iterable[Place], *, adopt: Callable[[LocalHost], Place] | None = None) -> None:
        self._places = {place.target.name: place for place in places}
        self._adopt = adopt
        self._folder = Folder()

    async def run(self, sources: Sources) -> None:
        """Look for ever."""
        while True:
            hosts = await asyncio.to_thread(self._folder.look)
            if hosts is not None:
                self.update(sources, hosts)
            await asyncio.sleep(POLL_S)

    def update(self, sources: Sources, hosts: Iterable[LocalHost]) -> None:
        """These hosts are up now, and no others."""
        free = list(hosts)
        found: dict[str, LocalHost] = {}
        # Who comes back under a name must not be taken for it while the old host is still heard: names are not unique.
        rules: tuple[Callable[[Place, LocalHost], bool], ...] = (
            lambda place, host: host.path == place.path,
            lambda place, host: place.at(host),
            lambda place, host: place.host == host.name and not sources.heard(place.target.name),
        )
        for rule in rules:
            for name, place in self._places.items():
                host = None if name in found else next((host for host in free if rule(place, host)), None)
                if host is not None:
                    found[name] = host
                    free.remove(host)
        for name, place in list(self._places.items()):
            self._places[name] = _follow(sources, place, found.get(name))
        if self._adopt is not None:
            for host in free:
                place = _named_apart(sources, self._adopt(host))
                self._places[place.target.name] = place
                sources.start([place.target])


def _follow(sources: Sources, place: Place, host: LocalHost | None) -> Place:
    """Tell what became of a place, and return it as it is now."""
    target = place.target
    if host is None:
        if place.host is not None and place.path is not None:
            sources.let_go(target.name, ENDED)
        return place._replace(path=None)
    if host.path == place.path:
        return place
    if place.host is not None:
        target = changed(target, url=host.url)
    if place.borrows and (place.host is not None or host.token is not None):
        target = changed(target, token=host.token)
    if target == place.target and (place.host is None or place.path is not None):
        sources.retry(target.name)
    else:
        sources.replace(target)
    return place._replace(target=target, path=host.path)


def _named_apart(sources: Sources, place: Place) -> Place:
    return place._replace(target=changed(place.target, name=free_name(place.target, sources.has)))


class Folder:
    """The hosts of this machine, read anew only where something may have changed."""

    def __init__(self) -> None:
        self._stamp: int | None = None
        self._again = True
        self._hosts: list[LocalHost] = []

    def look(self) -> list[LocalHost] | None:
        """The hosts that are up; None where nothing has changed since the last look. Raises nothing."""
        stamp = runtime.stamp()
        if stamp != self._stamp:
            # A file that comes right after this look may leave the folder with the same stamp.
            self._stamp, self._again = stamp, True
        elif self._again:
            self._again = False
        elif all(host.up for host in self._hosts):
            return None
        self._hosts = runtime.hosts()
        return self._hosts


def plain(url: str) -> str:
    """The URL in the one of its spellings that can be compared."""
    return url.rstrip("/").replace("://localhost:", "://127.0.0.1:")


def with_port(name: str, url: str) -> str:
    """The longer name of a source on this machine: its own, and the port by which it is told from others."""
    port = url.rstrip("/").rpartition(":")[2]
    return f"{name}:{port}" if port.isdigit() else name


def free_name(target: Target, taken: Callable[[str], bool]) -> str:
    """What a source goes by: its name, with its port where another source has it, else with a number."""
    longer = with_port(target.name, target.url)
    free, number = next((name for name in (target.name, longer) if not taken(name)), longer), 1
    while taken(free):
        number += 1
        free = f"{longer}-{number}"
    return free
