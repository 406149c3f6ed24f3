"""Which connector speaks which URL scheme.

Importing this loads neither models nor a network library, so that addresses can be looked at before the
console has painted. The connectors of others are found by the entry point group `watchfloor.connectors`;
they are loaded only when no connector of ours speaks the scheme.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from watchfloor.connector import ENTRY_POINTS, Connector, Target
from watchfloor.errors import ConfigError
from watchfloor.text import clean_line

if TYPE_CHECKING:
    from watchfloor.connector import ConnectorFactory

_log = logging.getLogger(__name__)


def _native() -> ConnectorFactory:
    from console.connectors.native import NativeFactory

    return NativeFactory()


def _codex() -> ConnectorFactory:
    from console.connectors.codex.connector import CodexFactory

    return CodexFactory()


def _aion() -> ConnectorFactory:
    from console.connectors.aion.connector import AionFactory

    return AionFactory()


def _dagger() -> ConnectorFactory:
    from console.connectors.dagger.connector import DaggerFactory

    return DaggerFactory()


def _bamboo() -> ConnectorFactory:
    from console.connectors.bamboo.connector import BambooFactory

    return BambooFactory()


def _replay() -> ConnectorFactory:
    from console.recording.connector import ReplayFactory

    return ReplayFactory()


_BUILT_IN: Final[dict[str, Callable[[], ConnectorFactory]]] = {
    "ws": _native,
    "wss": _native,
    "aion+http": _aion,
    "aion+https": _aion,
    "bamboo+http": _bamboo,
    "bamboo+https": _bamboo,
    "codex+ws": _codex,
    "codex+wss": _codex,
    "dagger+http": _dagger,
    "dagger+https": _dagger,
    "dagger+session": _dagger,
    "replay": _replay,
}


def connector_for(target: Target) -> Connector:
    """A connector for the target's URL. Raises ConfigError when no connector speaks its scheme."""
    return factory_for(target.url)(target)


def factory_for(url: str) -> ConnectorFactory:
    """The factory for the URL's scheme. Raises ConfigError, naming the schemes that are known."""
    scheme = _scheme(url)
    if (load := _BUILT_IN.get(scheme)) is not None:
        return load()
    known = set(_BUILT_IN) - {"replay"}  # a recording has a verb of its own
    for factory in _installed():
        if scheme in factory.schemes:
            return factory
        known |= factory.schemes
    what = f"no connector speaks {clean_line(scheme)}://" if scheme else "the address has no scheme"
    raise ConfigError(f"{what}: write one of {', '.join(f'{name}://' for name in sorted(known))}")


def _scheme(url: str) -> str:
    if "://" not in url:
        return ""
    try:
        return urlsplit(url).scheme
    except ValueError as error:
        why = clean_line(str(error))
        raise ConfigError(f"the address cannot be read ({why}): write ws://HOST:PORT or wss://HOST:PORT") from None


def _installed() -> Iterator[ConnectorFactory]:
    """The factories of others, by name; one that cannot be loaded costs itself only."""
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        if (factory := _load(point)) is not None:
            yield factory


def _load(point: EntryPoint) -> ConnectorFactory | None:
    try:
        named: Any = point.load()
        # A class is an entry point as good as an instance of it.
        found: Any = named() if isinstance(named, type) else named
        if not callable(found) or not isinstance(found.schemes, frozenset):
            raise TypeError("it is no ConnectorFactory: schemes must be a frozenset, and calling it makes a connector")
    except Exception:
        _log.exception("the connector %r (%s) cannot be loaded", point.name, point.value)
        return None
    factory: ConnectorFactory = found
    return factory
