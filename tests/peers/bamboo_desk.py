"""A console's end of the bamboo connector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from console.connectors.bamboo.connector import BambooFactory
from tests.peers.codex_desk import Desk
from watchfloor.connector import Record, Target
from watchfloor.protocol.frames import DoAnswer, Outcome

__all__ = ["BambooDesk", "desk"]


class BambooDesk(Desk):
    """A desk that can answer questions."""

    async def answer(self, session: str, words: str) -> Outcome:
        """Answer the session's open question in words, which may be those of an option."""
        request, subject = await self.asked(session)
        choices = [choice.value for field in subject.fields for choice in field.choices]
        given = {"fields": {subject.fields[0].name: words}} if words in choices else {"text": words}
        return await self.do(
            session, DoAnswer.model_validate({"request": subject.id, "digest": request.digest, **given})
        )


@asynccontextmanager
async def desk(
    url: str, *, token: str | None = None, record: Record = Record.ALL, user: str = "ann"
) -> AsyncIterator[BambooDesk]:
    """A connected desk. `url` may be that of the server itself."""
    url = url if url.startswith("bamboo+") else f"bamboo+{url}"
    made = BambooDesk(BambooFactory()(Target("bamboo", url, token=token, user=user, record=record)))
    await made.read()
    try:
        await made.until(lambda: made.listed)
        yield made
    finally:
        await made.close()
