"""Questions to an engine, each asked once."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from console.connectors.dagger.queries import ALIVE
from console.connectors.dagger.reading import Json, items, obj, text
from console.connectors.web.address import Address
from console.connectors.web.http import Answer, Http
from watchfloor.errors import CapabilityNotSupported, ConnectionLost, Denied, Unreachable

PATH: Final = "/query"
HALF: Final = "it holds half a character, which cannot be sent"
FOR_EVER_S: Final = 7 * 86_400.0
"""Seconds for what the engine answers only when something has happened: it has no time-outs of its own."""


class Refused(Exception):
    """The engine says no, in these words."""


class Graph:
    """One session's endpoint. What waits has a pool of its own, so that it never holds up what is quick."""

    def __init__(self, address: Address, token: str | None) -> None:
        self._headers = authorization(token)
        self._quick = Http(address, headers=self._headers)
        self._slow = Http(address, headers=self._headers, timeout_s=FOR_EVER_S)
        self.streams: Final = Http(address, headers=self._headers)

    @property
    def where(self) -> str:
        return self._quick.where

    async def ask(
        self, document: str, variables: Mapping[str, JsonValue] | None = None, *, waits: bool = False
    ) -> Json:
        """The data that the engine answers with. `waits`: the answer may take as long as it likes.

        Raises Refused for an error of the engine, CapabilityNotSupported for a document that its schema does not have,
        Denied for a wrong token, Unreachable where it did not arrive, and ConnectionLost where nobody knows.
        """
        data, errors = await self.ask_all(document, variables, waits=waits)
        if errors:
            raise Refused("; ".join(errors))
        return data

    async def ask_all(
        self, document: str, variables: Mapping[str, JsonValue] | None = None, *, waits: bool = False
    ) -> tuple[Json, list[str]]:
        """The same for a document of several parts: the data, and the errors.

        An engine gives no data at all where one part failed, and does not say which: what then is wanted of the others
        has to be asked for one by one.
        """
        client = self._slow if waits else self._quick
        try:
            answer = await client.post(PATH, {"query": document, "variables": dict(variables or {})})
        except UnicodeEncodeError:
            raise Refused(HALF) from None
        body = self._body(client, answer)
        errors = [_words(obj(error)) for error in items(body.get("errors"))]
        said = "; ".join(errors)[:300]
        if answer.status == 422:
            raise CapabilityNotSupported(f"this engine does not know what was asked: {said}")
        if not answer.ok:
            raise ConnectionLost(f"{self.where} does not answer now (HTTP {answer.status}): {said}")
        return obj(body.get("data")), errors

    async def gone(self) -> bool:
        """Is nobody there any more, or only a proxy that says so? Raises ConnectionLost where no answer comes."""
        try:
            answer = await self._quick.post(PATH, {"query": ALIVE})
        except Unreachable:
            return True
        if answer.status in (401, 403):
            raise Denied(f"{self.where} refuses this token now (HTTP {answer.status})")
        return answer.status in (502, 503)

    def _body(self, client: Http, answer: Answer) -> Json:
        if answer.status in (200, 422) or (answer.status == 503 and "json" in answer.content_type):
            return obj(answer.json())
        failed = client.refusal(answer)
        if isinstance(failed, Unreachable):
            # A proxy says so of an engine that is gone, whatever the engine did before it went.
            raise ConnectionLost(str(failed))
        if isinstance(failed, Denied):
            raise Denied(f"{self.where} refuses this token (HTTP {answer.status}): give the session's")
        raise failed

    async def close(self) -> None:
        for client in (self._quick, self._slow, self.streams):
            await client.close()


def _words(error: Json) -> str:
    """What an error says, without the number of its trace."""
    said = text(error.get("message")).partition(" [traceparent:")[0]
    return said or "an error without words"


def authorization(token: str | None) -> dict[str, str]:
    """A session's token is the name of a user without a password."""
    if token is None:
        return {}
    return {"authorization": f"Basic {base64.b64encode(f'{token}:'.encode()).decode()}"}
