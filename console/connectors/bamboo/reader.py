"""What the feed wants to know, asked of the server: each thing once at a time, and anew if it was wanted meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from console.connectors.bamboo.api import BASE, body_of, of
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.server import Server
from console.connectors.bamboo.state import Session, Want
from console.connectors.web.reading import each, flag, part, text
from watchfloor.errors import WatchfloorError

AT_ONCE: Final = 8
"""Questions to the server at the same time."""
QUIET_S: Final = 3.0
"""Seconds in which the last words of a run have to come."""
SETTLES_S: Final = (0.1, 0.3, 0.6, 1.0, 2.0, 4.0, 6.0)
"""Waits between the questions whether a session has come to rest."""
_log = logging.getLogger(__name__)


class Reader:
    """Asks in the background."""

    def __init__(self, feed: Feed, server: Server) -> None:
        self._feed = feed
        self._server = server
        self._questions = asyncio.Semaphore(AT_ONCE)
        self._working: set[asyncio.Task[None]] = set()
        self._under_way: dict[tuple[Want, str], asyncio.Task[None]] = {}
        self._again: set[tuple[Want, str]] = set()
        """What was wanted anew while it was being asked."""
        self._metrics = True

    async def done(self) -> None:
        """Wait for everything that is being asked."""
        await asyncio.gather(*self._working, return_exceptions=True)

    async def stop(self) -> None:
        self._again.clear()
        for task in list(self._working):
            task.cancel()
        await self.done()
        self._under_way.clear()

    def want(self, want: Want, id: str) -> None:
        """Ask, once at a time; what was wanted meanwhile is asked for anew."""
        if (want, id) in self._under_way:
            self._again.add((want, id))
        else:
            self._start(want, id)

    def _start(self, want: Want, id: str) -> None:
        self._feed.wants.discard((want, id))
        work: dict[Want, Callable[[str], Awaitable[None]]] = {
            Want.READ: self._read,
            Want.SETTLE: self._settle,
            Want.PAST: self.past,
            Want.RESULTS: self._results,
            Want.TASKS: self._tasks,
            Want.CHANNEL: self._channel,
            Want.ALL: self._all,
        }
        task = asyncio.create_task(self._guarded(work[want], id))
        self._under_way[want, id] = task
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        task.add_done_callback(lambda done: self._ended(want, id, done))

    def _ended(self, want: Want, id: str, task: asyncio.Task[None]) -> None:
        if self._under_way.get((want, id)) is task:
            del self._under_way[want, id]
            if (want, id) in self._again and not task.cancelled():
                self._again.discard((want, id))
                self._start(want, id)

    async def _guarded(self, work: Callable[[str], Awaitable[None]], id: str) -> None:
        try:
            await work(id)
        except WatchfloorError as fault:
            _log.info("the server did not tell more of session %r: %s", id, fault)
        except Exception:
            _log.exception("the connector failed to read session %r", id)
        if self._server.connected:
            self._server.told()

    async def _read(self, id: str) -> None:
        await self.read(id)

    async def read(self, id: str) -> Session | None:
        """Read a session and what it waits for, until nothing has happened to it meanwhile."""
        while True:
            before = self._feed.sessions.get(id)
            moves = before.moves if before is not None else 0
            async with self._questions:
                answer = await self._server.api.find(of(id))
                info = part(answer, "session")
                pending = None
                if info and flag(info, "has_pending_question"):
                    pending = await self._server.api.find(of(id, "respond", "pending"))
                    if flag(pending, "has_pending_question") is not True:
                        pending = None
                run = before.run if before is not None else None
                if flag(info, "is_running") and run is None:
                    # Its beginning was not told: which run it is, is said elsewhere.
                    active = each(await self._server.api.find(f"{BASE}/runs/active"), "sessions")
                    run = next((text(one, "run_id") for one in active if text(one, "session_id") == id), None)
            now = self._feed.sessions.get(id)
            if now is not None and now.moves != moves:
                continue
            if answer is None:
                self._feed.gone(id)
                return None
            parent = text(info, "parent_session_id")
            if parent is not None and parent not in self._feed.sessions:
                self.want(Want.READ, parent)
            self._feed.found(info, pending, run)
            return self._feed.sessions.get(id)

    async def _settle(self, id: str) -> None:
        """A run has ended: the session's own word on it comes a little later."""
        for wait_s in SETTLES_S:
            session = await self.read(id)
            if session is None or session.run is not None or session.pending is not None:
                break
            if session.settled and (session.status != "suspended" or session.children_run):
                break
            await asyncio.sleep(wait_s)
        if (session := self._feed.sessions.get(id)) is not None:
            session.settling = False
            self._feed.show(session)
        await self._metrics_of(id)

    async def past(self, id: str) -> None:
        session = self._feed.sessions.get(id)
        if session is None:
            return
        # What it waits for has to be known: the answer of that tool call is not there yet.
        await self.read(id)
        if session.read and session.talks:
            # Its words are on their way. What the history holds is read when they are here.
            if session.run is not None:
                return
            await self._server.until(lambda: not session.talks, QUIET_S)
        await self._history(session)

    async def _results(self, id: str) -> None:
        session = self._feed.sessions.get(id)
        if session is not None:
            await self._history(session, results_only=session.talks)

    async def _history(self, session: Session, *, results_only: bool = False) -> None:
        id = session.id
        query = f"?since_message_id={quote(session.cursor, safe='')}" if session.cursor is not None else ""
        async with self._questions:
            answer = await self._server.api.find(of(id, "history") + query)
        if answer is not None and self._feed.sessions.get(id) is session:
            first = not session.read
            self._feed.past(session, answer, results_only=results_only)
            if first:
                await self._tasks(id)

    async def _tasks(self, id: str) -> None:
        async with self._questions:
            answer = await self._server.api.find(of(id, "task"))
        session = self._feed.sessions.get(id)
        if answer is not None and session is not None:
            self._feed.tasks(session, answer)

    async def _channel(self, id: str) -> None:
        session = self._feed.sessions.get(id)
        if session is None or session.channel:
            return
        if self._feed.wants_past(session):
            await self.past(id)
        if id in self._feed.sessions:
            session.channel, session.channel_run, session.quiet = True, session.run, False
            session.partial = session.read
            await self._server.follow(id)

    async def _all(self, _: str) -> None:
        """Everything anew: what was told meanwhile is lost."""
        await self.roster()
        for session in self._feed.sessions.values():
            self._feed.wants.add((Want.READ, session.id))
            if session.read:
                self._feed.wants |= {(Want.PAST, session.id), (Want.TASKS, session.id)}

    # --- what sessions use

    def start_metrics(self) -> None:
        self._metrics = True
        task = asyncio.create_task(self._guarded(self._all_metrics, ""))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _all_metrics(self, _: str) -> None:
        answer = await self._server.api.ask("GET", f"{BASE}/metrics/sessions")
        self._metrics = answer.ok
        if answer.ok:
            self._feed.metrics(each({"all": answer.json()}, "all"))

    async def _metrics_of(self, id: str) -> None:
        if self._metrics:
            answer = await self._server.api.ask("GET", f"{BASE}/metrics/sessions/{of(id).rpartition('/')[2]}")
            if answer.ok:
                self._feed.metrics([part(body_of(answer), "session")])

    # --- everything

    async def roster(self) -> None:
        """All sessions, and which of them run."""
        infos = await self._server.api.sessions()
        active = await self._server.api.find(f"{BASE}/runs/active")
        self._feed.listed(infos, each(active, "sessions"))
