"""The server's HTTP interface: credentials, answers, and what a refusal says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from console.connectors.web.address import Address
from console.connectors.web.http import SHOWN, Answer, Http
from console.connectors.web.reading import Json, each, number, parsed, part, text
from watchfloor.errors import ConfigError, ConnectionLost, Denied, NotAHost, Unreachable
from watchfloor.text import clean_line

BASE: Final = "/api/v1"
COOKIE: Final = "bamboo_access_verified"
PAGE: Final = 200
PAGES: Final = 1000
LISTINGS: Final = 3
"""How often the pages are gone through where their sessions become others meanwhile."""
_DEVICE: Final = re.compile(r"(bamboo_[0-9a-f]{12}):(bd1_[0-9a-f]{32})")
_NO_SESSION: Final = "session not found"


def said(answer: Answer) -> str:
    """What the server says went wrong, in one line: its errors have three shapes."""
    try:
        body = parsed(answer.body)
    except (ValueError, RecursionError):
        body = None
    told = text(body, "error", "message") or text(body, "error") or text(body, "message") or ""
    more = text(body, "message") or ""
    words = f"{told}: {more}" if more and more != told else told
    shown = clean_line(" ".join(words.split()))[:SHOWN] or answer.words()
    return shown or f"HTTP {answer.status}"


def body_of(answer: Answer) -> Json:
    """The object that an answer holds, an empty one where it holds none."""
    try:
        return part(parsed(answer.body))
    except (ValueError, RecursionError):
        return {}


def no_session(answer: Answer) -> bool:
    """Does the server say that it has no such session? A path that it does not know has an empty body."""
    return answer.status in (404, 500) and _NO_SESSION in said(answer).lower()


def of(session: str, *path: str) -> str:
    """The path of something of a session; ids are whatever a client once chose."""
    return "/".join((f"{BASE}/sessions", quote(session, safe=""), *(quote(step, safe="") for step in path)))


class Api:
    """Requests to one server. `token` is `DEVICE_ID:DEVICE_TOKEN`, or the server's password, or None.

    Raises ConfigError for a device token without its device.
    """

    def __init__(self, address: Address, token: str | None) -> None:
        self._http = Http(address)
        self._password: str | None = None
        self._headers: dict[str, str] = {}
        self._renewing = asyncio.Lock()
        self.device: tuple[str, str] | None = None
        if token is not None and (found := _DEVICE.fullmatch(token)):
            self.device = (found[1], found[2])
            self._headers = {"authorization": f"Bearer {found[2]}", "x-device-id": found[1]}
        elif token is not None and token.startswith("bd1_"):
            raise ConfigError("a device token needs its device: write DEVICE_ID:DEVICE_TOKEN, as the pairing gave them")
        else:
            self._password = token

    @property
    def where(self) -> str:
        return self._http.where

    @property
    def address(self) -> Address:
        return self._http.address

    @property
    def headers(self) -> Mapping[str, str]:
        """What shows who we are, for streams as well."""
        return self._headers

    @property
    def http(self) -> Http:
        return self._http

    async def close(self) -> None:
        await self._http.close()

    async def login(self) -> None:
        """Trade the password for a cookie. Raises Denied where it is wrong, Unreachable where there were too many
        tries."""
        if self._password is None:
            return
        answer = await self._http.post(f"{BASE}/bamboo/access/verify", {"password": self._password})
        if answer.status == 429:
            wait = answer.headers.get("retry-after", "")
            raise Unreachable(f"{self.where} takes no more passwords for now; try again in {clean_line(wait[:10])} s")
        if answer.status in (401, 403):
            raise Denied(f"{self.where} refuses the password: {said(answer)}; check it")
        if not answer.ok:
            raise self._http.refusal(answer)
        try:
            cookie = SimpleCookie(answer.headers.get("set-cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        # A server without a password has none to give.
        self._headers = {"cookie": f"{COOKIE}={cookie.value}"} if cookie is not None else {}

    async def ask(
        self,
        method: str,
        path: str,
        body: JsonValue = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Answer:
        """One request. Where the cookie has run out it is sent a second time: a 401 says that nothing was done."""
        own = dict(headers or {})
        send = self._http.request
        shown = self._headers
        answer = await send(method, path, body=body, headers={**shown, **own}, timeout_s=timeout_s)
        if answer.status == 401 and self._password is not None:
            async with self._renewing:
                # Requests that were refused together need one new cookie.
                if self._headers is shown:
                    await self.login()
            answer = await send(method, path, body=body, headers={**self._headers, **own}, timeout_s=timeout_s)
        return answer

    async def get(self, path: str) -> Json:
        """What is there. Raises Denied, NotAHost or Unreachable where nothing is."""
        answer = await self.ask("GET", path)
        if not answer.ok:
            raise self._http.refusal(answer)
        return part(answer.json())

    async def find(self, path: str) -> Json | None:
        """What is there; None where the server has no such thing, or does not know the path."""
        answer = await self.ask("GET", path)
        if answer.status == 404 or no_session(answer):
            return None
        if not answer.ok:
            raise self._http.refusal(answer)
        return part(answer.json())

    async def post(
        self, path: str, body: JsonValue, *, headers: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> Answer:
        """One command. Raises Denied where we may not: nothing was done then."""
        answer = await self.ask("POST", path, body, headers=headers, timeout_s=timeout_s)
        if answer.status == 401:
            raise self._http.refusal(answer)
        return answer

    # --- what there is

    async def discover(self) -> Json:
        """What the server says of itself, the version at least. Raises NotAHost for something else."""
        found = await self._first(f"{BASE}/bootstrap")
        if found is not None:
            product = text(found, "server", "product")
            if product != "bamboo":
                raise NotAHost(f"{self.where} answers, and is no bamboo server: check the address")
            return found
        health = await self._first("/healthz")
        if health is not None and text(health, "status") is not None:
            return {"server": {"version": text(health, "version") or ""}}
        alive = await self.ask("GET", f"{BASE}/health")
        if alive.ok and alive.body.strip() == b"OK":
            return {}
        raise NotAHost(f"{self.where} answers, and is no bamboo server: check the address")

    async def _first(self, path: str) -> Json | None:
        answer = await self._http.get(path)
        if answer.status >= 500 or answer.status == 429:
            raise self._http.refusal(answer)
        if answer.status == 401:
            raise self._http.refusal(answer)
        return body_of(answer) if answer.ok else None

    async def sessions(self) -> list[Json]:
        """All sessions, newest first."""
        for _ in range(LISTINGS - 1):
            found, steady = await self._list()
            if steady:
                return list(found.values())
        found, _ = await self._list()
        return list(found.values())

    async def _list(self) -> tuple[dict[str, Json], bool]:
        """Go through all pages once; False where their number changed meanwhile: one that is deleted lets another slip
        from a page that is still to come into one that was read."""
        found: dict[str, Json] = {}
        totals: set[int | None] = set()
        offset = 0
        for _ in range(PAGES):
            answer = await self.ask("GET", f"{BASE}/sessions?limit={PAGE}&offset={offset}")
            if not answer.ok:
                raise self._http.refusal(answer)
            listed = answer.json()
            page = each({"sessions": listed}, "sessions") if isinstance(listed, list) else each(listed, "sessions")
            found |= {id: info for info in page if (id := text(info, "id")) is not None}
            totals.add(number(listed, "total"))
            following = number(listed, "next_offset")
            if following is None or following <= offset:
                return found, len(totals) == 1
            offset = following
        raise ConnectionLost(f"{self.where} lists sessions without an end")
