"""An HTTP client that says what went wrong, and never asks twice by itself."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx
from pydantic import JsonValue

from console.connectors.web.address import Address
from console.connectors.web.reading import parsed
from console.connectors.web.sse import SseDecoder, SseEvent
from watchfloor.errors import ConnectionLost, Denied, NotAHost, ProtocolError, Unreachable
from watchfloor.text import clean_line

TIMEOUT_S: Final = 10.0
LARGEST: Final = 32 * 1024 * 1024
"""Bytes of one answer that are read."""
SILENCE_S: Final = 60.0
"""Seconds without a byte after which a stream of events counts as lost."""
KEPT_S: Final = 2.0
"""Seconds that an idle connection is kept for the next request. Servers end theirs after some time (of those that we
know the most hasty after five), and a request sent in that moment is lost, with nobody to say whether it was heard."""
SHOWN: Final = 200

# It logs every URL, and some systems want their token there.
logging.getLogger("httpx").setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered, whatever its status."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str]
    where: str

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> JsonValue:
        """The body. Raises NotAHost where it is not JSON: a login page, a proxy, another server."""
        if "json" not in self.content_type:
            kind = clean_line(self.content_type[:60]) or "nothing that is named"
            raise NotAHost(
                f"{self.where} answers with {kind} where JSON is due: check the address (HTTP {self.status})"
            )
        try:
            value: JsonValue = parsed(self.body)
        except (ValueError, RecursionError):
            raise NotAHost(f"{self.where} answers with broken JSON (HTTP {self.status})") from None
        return value

    def words(self) -> str:
        """What the server says went wrong, in one short line, for people."""
        text = self.body[: 4 * SHOWN].decode("utf-8", "replace")
        shown = clean_line(" ".join(text.split()))
        return shown if len(shown) <= SHOWN else shown[:SHOWN] + "…"


class Http:
    """Requests to one system. `headers` go with every request; `transport` is for tests."""

    def __init__(
        self,
        address: Address,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.address: Final = address
        self._client = httpx.AsyncClient(
            headers=dict(headers or {}),
            timeout=timeout_s,
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=KEPT_S),
            transport=transport,
        )

    @property
    def where(self) -> str:
        return self.address.where

    async def get(self, path: str, *, params: Mapping[str, str | int] | None = None) -> Answer:
        return await self.request("GET", path, params=params)

    async def post(self, path: str, body: JsonValue = None, *, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.request("POST", path, body=body, headers=headers)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        body: JsonValue = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """One request, once. `path` begins with a slash; None as `body` sends none.

        Raises Unreachable where it certainly did not arrive, ConnectionLost where nobody knows, and NotAHost for an
        answer that is too large.
        """
        options: dict[str, Any] = {"params": params, "headers": headers}
        if body is not None:
            options["json"] = body
        if timeout_s is not None:
            options["timeout"] = timeout_s
        try:
            async with self._client.stream(method, self.address.url(path), **options) as response:
                return await self._read(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failed(error) from None

    async def _read(self, response: httpx.Response) -> Answer:
        parts: list[bytes] = []
        size = 0
        async for part in response.aiter_bytes():
            size += len(part)
            if size > LARGEST:
                raise NotAHost(f"{self.where} answers with more than {LARGEST // 1024 // 1024} MiB")
            parts.append(part)
        return Answer(
            response.status_code,
            response.headers.get("content-type", "").lower(),
            b"".join(parts),
            response.headers,
            self.where,
        )

    @asynccontextmanager
    async def events(
        self,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: JsonValue = None,
        silence_s: float = SILENCE_S,
    ) -> AsyncIterator[AsyncIterator[SseEvent | None]]:
        """A stream of server-sent events; None stands for a sign of life that is no event.

            async with http.events("/feed") as feed:
                async for event in feed: ...

        The stream ends where the server ends it. Raises Denied, NotAHost or Unreachable for an answer that is no
        stream, ConnectionLost where it breaks, falls silent for `silence_s`, or holds an event that is too large.
        """
        options: dict[str, Any] = {"params": params, "headers": {"accept": "text/event-stream", **(headers or {})}}
        if body is not None:
            options["json"] = body
        options["timeout"] = httpx.Timeout(TIMEOUT_S, read=silence_s)
        try:
            async with self._client.stream(method, self.address.url(path), **options) as response:
                if response.status_code != 200 or "text/event-stream" not in response.headers.get("content-type", ""):
                    raise self.refusal(await self._read(response))
                yield self._decode(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failed(error) from None

    async def _decode(self, response: httpx.Response) -> AsyncIterator[SseEvent | None]:
        decoder = SseDecoder()
        try:
            async for piece in response.aiter_bytes():
                events = decoder.feed(piece)
                for event in events:
                    yield event
                if not events:
                    yield None
        except ProtocolError as error:
            raise ConnectionLost(f"lost {self.where}: {error.reason}") from None
        except httpx.HTTPError as error:
            raise self._failed(error) from None

    def refusal(self, answer: Answer) -> Denied | NotAHost | Unreachable:
        """What an answer means that is not what was asked for."""
        said = f": {answer.words()}" if answer.body and "html" not in answer.content_type else ""
        match answer.status:
            case 401 | 403:
                return Denied(f"{self.where} refuses this client (HTTP {answer.status}){said}; check the token")
            case 429 | 500 | 502 | 503 | 504:
                return Unreachable(f"{self.where} does not answer now (HTTP {answer.status}){said}")
            case status:
                return NotAHost(f"{self.where} does not know what was asked (HTTP {status}){said}; check the address")

    def _failed(self, error: Exception) -> Unreachable | ConnectionLost | NotAHost:
        match error:
            case httpx.ConnectTimeout():
                return Unreachable(f"{self.where} does not answer: is it running, and is the address right?")
            case httpx.ConnectError():
                return Unreachable(f"{self.where} cannot be reached ({_reason(error)}): is it running?")
            case httpx.PoolTimeout():
                return Unreachable(f"{self.where} is too busy with our other requests")
            case httpx.UnsupportedProtocol() | httpx.InvalidURL():
                return NotAHost(f"{self.where} is no address of a web server")
            case httpx.ReadTimeout():
                return ConnectionLost(f"{self.where} gave no answer in time")
            case _:
                return ConnectionLost(f"lost {self.where}: {_reason(error)}")

    async def close(self) -> None:
        await self._client.aclose()


def _reason(error: Exception) -> str:
    return clean_line(str(error)[:SHOWN]) or type(error).__name__
