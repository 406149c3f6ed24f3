"""The past of the sources as the journal has it: what is kept there, and what of it is read again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from console.fleet.facts import EventFact, EventsFact, Fact, KeptFact, SessionKey, SummaryFact
from console.fleet.log import KEEP
from console.hub.again import Again
from console.hub.away import Away
from console.hub.pages import PAGE, OlderPage
from console.journal.records import TrailRow
from watchfloor.words import Primitive

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from console.connectors.supervisor import Item
    from console.fleet.gate import Gated
    from console.fleet.state import Trail
    from console.fleet.store import Store
    from console.journal.journal import Journal
    from console.journal.records import Place, Stored
    from watchfloor.connector import Target
    from watchfloor.protocol.frames import ClientFrame

ROOM_S: Final = 0.01
_NO_PLACES: Final[dict[str, tuple[str, int]]] = {}


class Past:
    """Stands between a hub and its journal, which may be absent: nothing is kept then.

    `store` is the fleet, `take` takes up facts, `away` is told how an earlier console has left its sources. Sources in
    `passing` are not kept.
    """

    def __init__(
        self,
        journal: Journal | None,
        store: Store,
        take: Callable[[list[Fact]], None],
        away: Away,
        passing: frozenset[str] = frozenset(),
    ) -> None:
        self._journal = journal
        self._again = Again(journal) if journal is not None else None
        self._store = store
        self._take = take
        self._away = away
        self._passing = passing
        self._places: dict[str, dict[str, Place]] = {}
        self._looked: set[SessionKey] = set()
        self._reading: set[asyncio.Task[None]] = set()

    @property
    def says(self) -> str:
        """What is not kept, and why, in one line; "" while everything is."""
        return self._journal.says if self._journal is not None else ""

    def begin(self) -> None:
        """Open the journal."""
        if self._journal is not None:
            self._journal.start()

    def ask_again(
        self, send: Callable[[str, ClientFrame], Awaitable[None]], heard: Callable[[str], bool], steady: int
    ) -> None:
        """Ask for what the journal had no room for, where it has by now."""
        if self._again is not None:
            self._again.ask(send, heard, steady)

    async def close(self) -> None:
        """Put everything on the disk."""
        if self._again is not None:
            await self._again.close()
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        if self._journal is not None:
            await self._journal.close()

    # --- what happens ----------------------------------------------------------------------

    async def places(self, target: Target) -> dict[str, tuple[str, int]]:
        """From where the source is asked on: epoch and number of each session."""
        from watchfloor.connector import Record

        if (journal := self._kept(target.name)) is None or target.record is Record.NONE:
            return _NO_PLACES
        if target.token is not None:
            journal.hide([target.token])
        self._away.remember(target.name, await journal.seen(target.name))
        found = self._places[target.name] = await journal.places(target.name)
        return {session: (place.epoch, place.through) for session, place in found.items() if place.through}

    def take(self, target: Target, items: Sequence[Item]) -> None:
        """Keep what arrived from the source."""
        from watchfloor.connector import Record

        if (journal := self._kept(target.name)) is not None and target.record is not Record.NONE:
            journal.take(target.name, items)
            if self._again is not None:
                self._again.take(target.name, items)

    async def room(self) -> None:
        """Wait until the journal has written enough to take more."""
        while self._journal is not None and self._journal.full:  # noqa: ASYNC110 - nobody is told when there is room
            await asyncio.sleep(ROOM_S)

    def kept(self, source: str, told: Sequence[Fact]) -> list[Fact]:
        """What was received before of the sessions that are named here for the first time."""
        places = self._places.get(source)
        if not places:
            return []
        facts: list[Fact] = []
        for fact in told:
            if isinstance(fact, SummaryFact) and (place := places.pop(fact.key.session, None)) is not None:
                facts.append(KeptFact(fact.key, place.epoch, place.held, place.gone))
        return facts

    def hide_answer(self, gated: Gated) -> None:
        """What is given for a secret field reaches no file, also where the source repeats it."""
        intent = gated.intent
        if self._journal is None or gated.primitive is not Primitive.ANSWER:
            return
        request = next((r for key, r in self._store.requests.items()
                        if key.owner == gated.target and key.request == intent.request), None)  # fmt: skip
        fields = request.fact.fields if request is not None and request.fact is not None else ()
        secret = {field.name for field in fields if field.type == "secret"}
        if secret:
            given = [intent.text, *((intent.fields or {}).get(name) for name in secret)]
            self._journal.hide(value for value in given if isinstance(value, str))

    def trail(self, trail: Trail) -> None:
        """Keep how far a command has come; nothing of what was filled in."""
        if (journal := self._kept(trail.target.source)) is None:
            return
        body = {
            "primitive": trail.intent.primitive.value,
            "by": trail.intent.by,
            "request": trail.intent.request,
            "attempt": trail.baseline.attempt,
            "sent_at": trail.sent_at,
            "outcome": trail.outcome.value if trail.outcome is not None else None,
            "reason": trail.reason or None,
            "effect": trail.effect.value if trail.effect is not None else None,
        }
        journal.trail(TrailRow(trail.id, trail.target.source, trail.target.session, trail.requested_at, body))

    def _kept(self, source: str) -> Journal | None:
        return None if source in self._passing else self._journal

    # --- what is read again ----------------------------------------------------------------

    async def older(self, key: SessionKey, before: int) -> OlderPage | None:
        """Events before number `before`; None where the journal has none that join it."""
        stored = await self._before(key, before, PAGE)
        if stored is None or not stored.events:
            return None
        # What the journal lacks its source may have.
        facts = await asyncio.to_thread(_facts, stored)
        return OlderPage(stored.epoch, facts, (stored.events[0].seq or 1) > 1)

    def look(self, key: SessionKey | None) -> None:
        """The operator looks at this session: what the journal has of it joins its log, once."""
        if key is None or key in self._looked or self._journal is None:
            return
        session = self._store.sessions.get(key)
        if session is None or not session.track.kept:
            return
        self._looked.add(key)
        reading = asyncio.create_task(self._recall(key), name=f"read {key.session}")
        self._reading.add(reading)
        reading.add_done_callback(self._reading.discard)

    async def _recall(self, key: SessionKey) -> None:
        track = self._store.sessions[key].track
        stored = await self._before(key, (track.held.low or track.kept.high + 1), KEEP)
        if stored is not None and stored.events:
            facts = await asyncio.to_thread(_facts, stored)
            if key in self._store.sessions:
                self._take([EventsFact(key, stored.epoch, facts, stored=True)])

    async def _before(self, key: SessionKey, before: int, limit: int) -> Stored | None:
        journal, session = self._kept(key.source), self._store.sessions.get(key)
        if journal is None or session is None:
            return None
        return await journal.before(key.source, key.session, session.epoch, before, limit)


# A thousand events take some tens of milliseconds, in which no key would be answered: not on the event loop.
def _facts(stored: Stored) -> tuple[EventFact, ...]:
    from console.intake import event_fact

    return tuple(event_fact(event) for event in stored.events)
