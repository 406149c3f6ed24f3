"""What the feed wants to know, asked of the server: each thing once at a time, and anew if it was wanted meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

from console.connectors.bamboo.api import BASE, body_of, of
from console.connectors.bamboo.feed import Feed
from console.connectors.bamboo.history import Choice, choice_in, given_to
from console.connectors.bamboo.requests import GIVEN, is_permission, source_id
from console.connectors.bamboo.server import Server
from console.connectors.bamboo.state import Session, Want
from console.connectors.web.reading import Json, each, flag, part, text
from watchfloor.errors import ConnectionFailed, ConnectionLost, NotAHost, Unreachable, WatchfloorError

AT_ONCE: Final = 8
"""Questions to the server at the same time."""
QUIET_S: Final = 3.0
"""Seconds in which the last words of a run have to come."""
SETTLES_S: Final = (0.1, 0.3, 0.6, 1.0, 2.0, 4.0, 6.0)
"""Waits between the questions whether a session has come to rest."""
AGAIN_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Waits between tries where the server does not answer."""
REPLACED_S: Final = (0.15, 0.45)
"""Waits until the history holds an answer in the place of its question."""
_UNREAD: Final = {
    Want.PAST: "what was said in it before",
    Want.RESULTS: "what its tools said",
    Want.TASKS: "its list of tasks",
    Want.CHANNEL: "what happens in it",
}
_log = logging.getLogger(__name__)


class Reader:
    """Asks in the background."""

    def __init__(self, feed: Feed, server: Server) -> None:
        self._feed = feed
        self._server = server
        self._questions = asyncio.Semaphore(AT_ONCE)
        self._working: set[asyncio.Task[Any]] = set()
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
        task = asyncio.create_task(self._keep_asking(want, work[want], id))
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

    async def _keep_asking(self, want: Want, work: Callable[[str], Awaitable[None]], id: str) -> None:
        """Ask, and again where no answer came: what is not read now is told nowhere else."""
        fault: WatchfloorError | None = None
        for wait_s in AGAIN_S:
            fault = await self._guarded(work, id)
            if not isinstance(fault, ConnectionLost | Unreachable):
                break
            if not self._server.connected:
                # It is asked for when everything else is read.
                self._feed.wants.add((want, id))
                return
            await asyncio.sleep(wait_s)
        if fault is None or not self._server.connected:
            return
        if want is Want.ALL:
            self._server.lose(f"what there is cannot be read anew: {fault}")
        self._feed.unreadable(id, _UNREAD.get(want, "how it stands"), str(fault))

    async def _guarded(self, work: Callable[[str], Awaitable[None]], id: str) -> WatchfloorError | None:
        """Ask once; returns what went wrong."""
        failed: WatchfloorError | None = None
        try:
            await work(id)
        except WatchfloorError as fault:
            _log.info("the server did not tell more of session %r: %s", id, fault)
            failed = fault
        except Exception:
            _log.exception("the connector failed to read session %r", id)
        if self._server.connected:
            self._server.told()
        return failed

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
            choice = await self._choice(before, pending) if before is not None and info else None
            given = await self._given(before or Session(id), pending) if pending is not None else None
            now = self._feed.sessions.get(id)
            if now is not None and now.moves != moves:
                continue
            if answer is None:
                self._feed.gone(id)
                return None
            parent = text(info, "parent_session_id")
            if parent is not None and parent not in self._feed.sessions:
                self.want(Want.READ, parent)
            self._feed.found(info, pending if given is None else {**(pending or {}), GIVEN: given}, run, choice)
            return self._feed.sessions.get(id)

    async def _choice(self, session: Session, pending: Json | None) -> Choice | None:
        """What was chosen, where the session waits no more for what it waited for."""
        asked = session.pending
        if asked is None or (pending is not None and source_id(pending) == source_id(asked)):
            return None
        return await self.choice(session, asked)

    async def choice(self, session: Session, asked: Json) -> Choice | None:
        """What somebody chose who was asked this, as the history has it; None where it does not say."""
        call = text(asked, "tool_call_id")
        if call is None:
            return None
        generation = text(asked, "permission_request", "request_generation")
        permission = is_permission(asked, session.permission_calls)
        for wait_s in (0.0, *REPLACED_S):
            # It takes its place a moment after the question is closed.
            await asyncio.sleep(wait_s)
            try:
                answer = await self._messages(session)
            except ConnectionFailed as fault:
                _log.info("how a request of session %r ended cannot be read: %s", session.id, fault)
                return None
            if found := choice_in(each(answer, "messages"), call, generation, permission=permission):
                return found
        return None

    async def _given(self, session: Session, pending: Json) -> Json | None:
        """What the tool call of a question was given: "the plan below" is there, and not in what is asked."""
        call = text(pending, "tool_call_id")
        if call is None or is_permission(pending, session.permission_calls):
            return None
        if session.pending is not None and source_id(session.pending) == source_id(pending):
            return part(session.pending, GIVEN)
        try:
            return given_to(each(await self._messages(session), "messages"), call)
        except ConnectionFailed as fault:
            _log.info("what session %r asks about cannot be read: %s", session.id, fault)
            return None

    async def _messages(self, session: Session) -> Json | None:
        """The history from the session's cursor on."""
        query = f"?since_message_id={quote(session.cursor, safe='')}" if session.cursor is not None else ""
        async with self._questions:
            return await self._server.api.find(of(session.id, "history") + query)

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
        answer = await self._messages(session)
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
            try:
                await self.past(id)
            except NotAHost as fault:
                # What happens from now on is told all the same.
                self._feed.unreadable(id, _UNREAD[Want.PAST], str(fault))
                session.read = True
        if id in self._feed.sessions:
            session.channel, session.channel_run, session.quiet = True, session.run, False
            session.partial = session.read
            await self._server.follow(id)

    async def _all(self, _: str) -> None:
        """Everything anew: what was told meanwhile is lost."""
        await self.roster()
        for session in self._feed.sessions.values():
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
