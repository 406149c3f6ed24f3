"""A WebSocket to a foreign system: text frames in and out, with its own pings, and plain words for what ends it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from console.connectors.web.address import Address
from watchfloor.dial_errors import lost
from watchfloor.errors import ConnectionFailed, Denied, NotAHost, Unreachable
from watchfloor.text import clean_line

TIMEOUT_S: Final = 10.0
LARGEST: Final = 32 * 1024 * 1024
"""Bytes of one frame that are accepted."""
PINGS_EVERY_S: Final = 20.0
SHOWN: Final = 200

# The library logs every header of the handshake when it debugs, a token among them.
_wire = logging.getLogger("console.connectors.web.wire")
_wire.setLevel(logging.WARNING)


class Socket:
    """One open WebSocket."""

    def __init__(self, ws: ClientConnection, where: str) -> None:
        self._ws = ws
        self._where = where

    @property
    def subprotocol(self) -> str | None:
        return self._ws.subprotocol

    async def send(self, text: str) -> None:
        """Raises ConnectionLost."""
        try:
            await self._ws.send(text)
        except ConnectionClosed as error:
            raise lost(error, self._where) from None

    async def frames(self) -> AsyncIterator[str | bytes]:
        """What arrives. Ends where the server closes in good order, raises ConnectionLost otherwise."""
        while True:
            try:
                yield await self._ws.recv()
            except ConnectionClosedOK:
                return
            except ConnectionClosed as error:
                raise lost(error, self._where) from None

    async def close(self) -> None:
        await self._ws.close()


async def open_socket(
    address: Address,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    subprotocols: Sequence[str] = (),
    timeout_s: float = TIMEOUT_S,
) -> Socket:
    """Open a WebSocket at the address. Raises Unreachable, Denied or NotAHost, each with what to do."""
    where = address.where
    try:
        ws = await connect(
            address.ws(path),
            additional_headers=dict(headers or {}),
            subprotocols=[Subprotocol(name) for name in subprotocols] or None,
            open_timeout=timeout_s,
            ping_interval=PINGS_EVERY_S,
            close_timeout=1.0,
            max_size=LARGEST,
            proxy=None,
            user_agent_header=None,
            logger=_wire,
        )
    except InvalidStatus as error:
        raise _refused(error, where) from None
    except TimeoutError:
        raise Unreachable(f"{where} does not answer the WebSocket handshake: is it running?") from None
    except OSError as error:
        reason = clean_line(error.strerror or str(error))[:SHOWN]
        raise Unreachable(f"{where} cannot be reached ({reason}): is it running?") from None
    except (WebSocketException, EOFError, ValueError):
        raise NotAHost(f"{where} does not answer as a WebSocket server does: check the address") from None
    return Socket(ws, where)


def _refused(error: InvalidStatus, where: str) -> ConnectionFailed:
    status = error.response.status_code
    said = clean_line(bytes(error.response.body or b"")[:SHOWN].decode("utf-8", "replace"))
    words = f"HTTP {status}" + (f", {said!r}" if said else "")
    match status:
        case 401 | 403:
            return Denied(f"{where} refuses this client ({words}): check the token")
        case 429 | 500 | 502 | 503 | 504:
            return Unreachable(f"{where} takes no connections now ({words})")
        case _:
            return NotAHost(f"{where} opens no WebSocket there ({words}): check the address")
