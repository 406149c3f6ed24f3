"""The connector to native hosts, over ws:// and wss://. Frames pass through as they are."""

from __future__ import annotations

import ssl
from typing import Final

from watchfloor.client import ClientCore
from watchfloor.connector import Link, Target
from watchfloor.dial import ANSWER_TIMEOUT_S, dial
from watchfloor.dial_errors import check_target

SCHEMES: Final = frozenset({"ws", "wss"})


class NativeConnector:
    """One native host across its connections. Raises ConfigError for an address or token that cannot be used.

    `timeout_s` is how long each step of dialling may take; `tls` replaces the system's trust for wss.
    """

    def __init__(
        self, target: Target, *, timeout_s: float = ANSWER_TIMEOUT_S, tls: ssl.SSLContext | None = None
    ) -> None:
        check_target(target)
        self._target = target
        self._timeout_s = timeout_s
        self._tls = tls
        self.core: Final = ClientCore(target, streams=True)

    @property
    def target(self) -> Target:
        return self._target

    async def connect(self) -> Link:
        return await dial(self._target, self.core, timeout_s=self._timeout_s, tls=self._tls)


class NativeFactory:
    """Makes native connectors (a `watchfloor.connector.ConnectorFactory`)."""

    schemes: Final = SCHEMES

    def __call__(self, target: Target) -> NativeConnector:
        return NativeConnector(target)
