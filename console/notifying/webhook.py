"""A webhook: each alert is posted as JSON, signed, and tried again with growing pauses where that may help."""

from __future__ import annotations

import asyncio
import hmac
import json
import random
from collections.abc import Awaitable, Callable
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console.files import read
from console.notifying.alerts import Alert
from console.notifying.posts import NotTold
from watchfloor.errors import ConfigError

if TYPE_CHECKING:
    import httpx

    from watchfloor.connector import Clock

SIGNATURE: Final = "Watchfloor-Signature"
DELIVERY: Final = "Watchfloor-Delivery"
TRIES: Final = 5
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
ANSWERS_IN_S: Final = 10.0
_AGAIN: Final = frozenset({408, 425, 429})
_LEAST_SECRET: Final = 16


def signature(secret: bytes, at: int, body: bytes) -> str:
    """The header by which a receiver knows who sent a body, and when: HMAC-SHA256 over `AT.BODY`, `at` being
    milliseconds since 1970 UTC."""
    digest = hmac.new(secret, f"{at}.".encode() + body, sha256).hexdigest()
    return f"t={at},v1={digest}"


def read_secret(path: Path) -> bytes:
    """The secret in the file: its first line. Raises ConfigError where it cannot be had, or others may read it."""
    try:
        line = read(path, private=True).split(b"\n", 1)[0].strip()
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: it cannot be read: {error.strerror or error}") from None
    if len(line) < _LEAST_SECRET:
        raise ConfigError(f"{path}: its first line must be the secret, {_LEAST_SECRET} characters at least")
    return line


class Webhook:
    """Posts alerts to one URL. `secret`: the file of the secret that they are signed with; None: they are unsigned."""

    def __init__(
        self,
        url: str,
        secret: Path | None,
        clock: Clock,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        answers_in_s: float = ANSWERS_IN_S,
        tries: int = TRIES,
    ) -> None:
        self._url = url
        self._secret = secret
        self._clock = clock
        self._sleep = sleep
        self._answers_in_s = answers_in_s
        self._tries = tries
        self._client: httpx.AsyncClient | None = None

    async def tell(self, alert: Alert) -> None:
        try:
            secret = await asyncio.to_thread(read_secret, self._secret) if self._secret is not None else None
        except ConfigError as fault:
            raise NotTold(str(fault)) from None
        client = await self._open()
        body = json.dumps(alert.data(), ensure_ascii=False).encode()
        tried = 0
        while True:
            why, wait_s = await self._post(client, alert.id, body, secret)
            tried += 1
            if why is None:
                return
            if wait_s is None:
                raise NotTold(why)
            if tried == self._tries:
                raise NotTold(f"{why}, {tried} times")
            # Many consoles that one server turned away do not come back in step.
            ceiling = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (tried - 1))
            await self._sleep(max(wait_s, random.uniform(ceiling / 2, ceiling)))  # noqa: S311 - nobody gains by guessing

    async def _open(self) -> httpx.AsyncClient:
        if self._client is None:
            httpx = await asyncio.to_thread(import_module, "httpx")  # it takes a tenth of a second to load
            # What is signed goes where it was meant to go, and nowhere else.
            self._client = httpx.AsyncClient(timeout=self._answers_in_s, follow_redirects=False)
        assert self._client is not None  # noqa: S101 - for the type checker
        return self._client

    async def _post(
        self, client: httpx.AsyncClient, id: str, body: bytes, secret: bytes | None
    ) -> tuple[str | None, float | None]:
        """Why it was not taken, and the least seconds until the next try; None: another is of no use."""
        import httpx

        headers = {"Content-Type": "application/json", "User-Agent": "watchfloor", DELIVERY: id}
        if secret is not None:
            headers[SIGNATURE] = signature(secret, self._clock(), body)
        try:
            # The whole of it is bounded, and of the answer nothing is read but its head.
            async with (
                asyncio.timeout(self._answers_in_s),
                client.stream("POST", self._url, content=body, headers=headers) as answer,
            ):
                status, after = answer.status_code, answer.headers.get("Retry-After", "")
        except TimeoutError:
            return f"no answer within {self._answers_in_s:g} s", 0.0
        except httpx.TimeoutException:
            return f"no answer within {self._answers_in_s:g} s", 0.0
        except httpx.TransportError:
            return "it cannot be reached", 0.0
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return "its URL cannot be used", None
        if 200 <= status < 300:
            return None, None
        if status in _AGAIN or status >= 500:
            wait_s = min(float(after), LONGEST_PAUSE_S) if after.isascii() and after.isdigit() else 0.0
            return f"it answered {status}", wait_s
        return f"it answered {status}", None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
