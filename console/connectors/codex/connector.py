"""`codex app-server` as a source: the shell around the feed."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from console.connectors.codex import notes
from console.connectors.codex.acting import Acting
from console.connectors.codex.feed import Feed, Want
from console.connectors.codex.offers import Methods
from console.connectors.codex.rpc import CallRefused, Rpc
from console.connectors.codex.state import Thread
from console.connectors.web.address import address_of
from console.connectors.web.reading import Json, each, part, text
from console.connectors.web.socket import open_socket
from watchfloor.connector import Connector, Record, Target
from watchfloor.errors import ConnectionFailed, ConnectionLost, NotAHost, Unreachable
from watchfloor.foreign import ForeignConnector, Handled, Mirror
from watchfloor.protocol.frames import Command

SCHEMES: Final = {"codex+ws": "ws", "codex+wss": "wss"}
PAGE: Final = 100
PAST: Final = 1000
"""Items of a thread's past that are read at most."""
ROSTER_PAGES: Final = 1000
BEAT_S: Final = 15.0
"""Between two signs of life: a server whose threads are idle says nothing by itself."""
RECENT: Final = 30
"""Idle threads whose last page is read when all sessions are followed."""
LINGER_MS: Final = 60_000
"""How long an idle thread that nobody looks at is still followed: while it is, the server does not unload it."""
AT_ONCE: Final = 8
"""Threads that are joined at the same time."""
HELLO_S: Final = 10.0
"""Seconds that the server may take for its first answer."""
JOINS_S: Final = 5.0
"""Seconds that the roster waits for what is asked of people; what takes longer is told when it is known."""
SOURCE_KINDS: Final = (
    "cli", "vscode", "exec", "appServer", "subAgent", "subAgentReview", "subAgentCompact", "subAgentThreadSpawn",
    "subAgentOther", "unknown",
)  # fmt: skip
_NO_METHOD: Final = "watchfloor/methods"
_VERSION: Final = re.compile(r"/(\d[^ ]*)")
_log = logging.getLogger(__name__)
P = TypeVar("P")


class CodexFactory:
    """Makes connectors for `codex app-server`."""

    schemes = frozenset(SCHEMES)

    def __call__(self, target: Target) -> Connector:
        return ForeignConnector(target, CodexSource, name="codex app-server")


class CodexSource:
    """A `watchfloor.foreign.ForeignSource`. Raises ConfigError for an address or token that cannot be used."""

    def __init__(self, target: Target, mirror: Mirror) -> None:
        self._target = target
        self._mirror = mirror
        self._address = address_of(target, SCHEMES)
        self.feed: Final = Feed(mirror, follow_all=target.record is Record.ALL)
        self._moved = asyncio.Event()
        self._rpc: Rpc | None = None
        self._working: set[asyncio.Task[None]] = set()
        self._joins = asyncio.Semaphore(AT_ONCE)
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._reading: set[str] = set()
        self._refused: dict[str, CallRefused] = {}
        self._early: list[Json] | None = None
        """What the server told while it listed its threads; None once they are known."""
        self._idle_since: dict[str, int] = {}
        self.acting: Final = Acting(self.feed, self, mirror)

    # --- connecting

    async def open(self) -> None:
        headers = {"authorization": f"Bearer {self._target.token}"} if self._target.token is not None else {}
        socket = await open_socket(self._address, "", headers=headers)
        rpc = self._rpc = Rpc(socket, self._told)
        self._early = []
        rpc.begin()
        where = self._address.where
        try:
            hello = await rpc.call("initialize", _hello(self._target), timeout_s=HELLO_S)
            await rpc.notify("initialized")
            self._mirror.host(version=_version(text(hello, "userAgent") or ""))
            self.feed.has = await self._methods(rpc)
            for _ in self.feed.listing(await self._roster(rpc)):
                await asyncio.sleep(0)
        except TimeoutError:
            raise Unreachable(f"{where} takes connections, and does not answer") from None
        except CallRefused as refused:
            if refused.draining:
                raise Unreachable(f"{where} is shutting down: it takes nothing new") from None
            raise NotAHost(f"{where} does not speak as a Codex app-server does: {refused}") from None
        # What it told meanwhile is newer than some of the list, or is in it already: told again it changes nothing.
        early, self._early = self._early, None
        for frame in early:
            self._take(frame)
        # What waits for a human is read before the roster is shown: it says what is asked, not only that something is.
        joins = self._start_joins(waiting=True)
        if joins:
            await asyncio.wait(joins, timeout=JOINS_S)
        self._ask()
        if self._target.record is Record.ALL:
            for thread in self.feed.latest(RECENT):
                self._in_background(self._peek, thread)

    async def _methods(self, rpc: Rpc) -> Methods:
        try:
            await rpc.call(_NO_METHOD)
        except CallRefused as refused:
            return Methods(refused.known)
        return Methods()

    async def _roster(self, rpc: Rpc) -> list[tuple[Json, bool]]:
        entries = []
        for archived in (False, True):
            entries += [(info, archived) for info in await self._listed(rpc, archived)]
        known = {text(info, "id") for info, _ in entries}
        has_loaded = "thread/loaded/list" in self.feed.has
        loaded = part(await rpc.call("thread/loaded/list")).get("data") if has_loaded else None
        for id in loaded if isinstance(loaded, list) else ():
            # A thread that is never stored is in no list of stored ones.
            if id not in known:
                try:
                    entries.append((part(await rpc.call("thread/read", {"threadId": id}), "thread"), False))
                except CallRefused as gone:
                    _log.info("the loaded thread %r cannot be read: %s", id, gone)
        return entries

    async def _listed(self, rpc: Rpc, archived: bool) -> list[Json]:
        """The threads that are stored, archived or not."""
        params = {"limit": PAGE, "archived": archived, "modelProviders": ()}
        try:
            return await self._pages(rpc, "thread/list", {**params, "sourceKinds": SOURCE_KINDS})
        except CallRefused as refused:
            if refused.unknown not in SOURCE_KINDS:
                raise
            kinds = [kind for kind in SOURCE_KINDS if kind in (refused.known or ())]
        # An older server has not all kinds.
        return await self._pages(rpc, "thread/list", {**params, "sourceKinds": kinds})

    async def _pages(self, rpc: Rpc, method: str, params: Json, most: int = ROSTER_PAGES * PAGE) -> list[Json]:
        """All entries of a paged list, up to `most`."""
        found: list[Json] = []
        cursor: object = None
        for _ in range(ROSTER_PAGES):
            answer = await rpc.call(method, {**params, **({"cursor": cursor} if cursor is not None else {})})
            found += each(answer, "data")
            cursor = answer.get("nextCursor")
            if cursor is None or len(found) >= most:
                break
        return found

    # --- reading

    def _told(self, frame: Json) -> None:
        self._mirror.heard()
        if self._early is not None:
            self._early.append(frame)
            return
        self._take(frame)
        self._ask()
        self._moved.set()

    def _take(self, frame: Json) -> None:
        try:
            self.feed.frame(frame)
        except Exception:
            # One frame that we handle badly must not cost the connection to all threads.
            _log.exception("a frame of the app-server could not be handled: %.400r", frame)
            self.feed.not_understood(frame)

    async def run(self) -> None:
        rpc = self.rpc
        beating = asyncio.create_task(self._beat(rpc), name="codex beat")
        try:
            await rpc.ended()
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self, rpc: Rpc) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await rpc.call("thread/loaded/list", {"limit": 1})
                self._mirror.heard()
                await self._leave_idle(rpc)
            except CallRefused as refused:
                _log.info("the app-server refuses a sign of life: %s", refused)
                self._mirror.heard()
            except (ConnectionFailed, TimeoutError):
                continue

    async def _leave_idle(self, rpc: Rpc) -> None:
        """Let go of threads that are idle and that nobody looks at, so that the server can unload them."""
        now = self._mirror.now()
        for thread in list(self.feed.threads.values()):
            kept = thread.active or thread.watched or thread.begun or thread.goal is not None or not thread.joined
            if kept:
                self._idle_since.pop(thread.id, None)
            elif now - self._idle_since.setdefault(thread.id, now) >= LINGER_MS:
                self._idle_since.pop(thread.id)
                await self._leave(rpc, thread)

    async def _leave(self, rpc: Rpc, thread: Thread) -> None:
        await rpc.call("thread/unsubscribe", {"threadId": thread.id})
        # It may have begun a turn while the server took us from its list: then it is joined anew.
        self.feed.left(thread)
        self._ask()

    # --- asking for more

    def _ask(self) -> None:
        """Ask for what the feed wants to know."""
        self._start_joins()
        wants, self.feed.wants = self.feed.wants, set()
        for want, id in wants:
            thread = self.feed.threads.get(id)
            match want:
                case Want.READ if thread is None and id not in self._reading:
                    self._reading.add(id)
                    self._in_background(self._read, id)
                case Want.PAST if thread is not None:
                    self._in_background(self._past_again, thread)
                case Want.QUEUE if thread is not None:
                    self._in_background(self._queue, thread)
                case Want.PROCESSES if thread is not None:
                    self._in_background(self._processes, thread)
                case _:
                    pass

    def _start_joins(self, *, waiting: bool = False) -> list[asyncio.Task[None]]:
        wanted = {id for want, id in self.feed.wants if want is Want.JOIN}
        if waiting:
            wanted = {id for id in wanted if self.feed.threads[id].waiting}
        self.feed.wants -= {(Want.JOIN, id) for id in wanted}
        return [self._start_join(self.feed.threads[id]) for id in wanted if id in self.feed.threads]

    def _start_join(self, thread: Thread) -> asyncio.Task[None]:
        task = self._joining.get(thread.id)
        if task is None:
            task = self._joining[thread.id] = self._in_background(self._join, thread)
            task.add_done_callback(lambda _: self._joining.pop(thread.id, None))
        return task

    def _in_background(self, work: Callable[[P], Awaitable[None]], about: P) -> asyncio.Task[None]:
        task = asyncio.create_task(self._guarded(work, about))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task

    async def _guarded(self, work: Callable[[P], Awaitable[None]], about: P) -> None:
        try:
            await work(about)
        except (CallRefused, ConnectionFailed, TimeoutError) as fault:
            _log.info("the app-server did not tell more of a thread: %s", fault)

    async def _join(self, thread: Thread) -> None:
        """Have the server send all of a thread, after its past."""
        async with self._joins:
            rpc, feed = self.rpc, self.feed
            feed.joining(thread)
            try:
                resumed = await rpc.call("thread/resume", {"threadId": thread.id, "excludeTurns": True})
            except (CallRefused, TimeoutError) as refused:
                why = str(refused) or "the server does not answer"
                self._refused[thread.id] = refused if isinstance(refused, CallRefused) else CallRefused.saying(why)
                feed.not_joined(thread, why)
                self._moved.set()
                return
            feed.joined(thread, resumed)
            try:
                await self._past(rpc, thread)
            except (CallRefused, TimeoutError) as refused:
                # A thread without a message has no past yet, and says so by a refusal.
                _log.info("the past of thread %r cannot be read: %s", thread.id, refused)
            feed.caught_up(thread)
            self._moved.set()
            self._ask()
        await self._queue(thread)
        await self._processes(thread)

    async def _read(self, id: str) -> None:
        """Read of a thread that is new to us. One that the server does not let us read is not asked about again."""
        self.feed.found(part(await self.rpc.call("thread/read", {"threadId": id}), "thread"))
        self._reading.discard(id)
        self._ask()

    async def _peek(self, thread: Thread) -> None:
        """Read what an idle thread has said lately, which loads nothing."""
        async with self._joins:
            if not (thread.read or thread.joined or thread.held_back is not None):
                await self._past_again(thread)

    async def _past_again(self, thread: Thread) -> None:
        """Look in the past for ends that were not told."""
        try:
            await self._past(self.rpc, thread, again=thread.read)
        finally:
            self.feed.past_was_read(thread)
            self._moved.set()
        if thread.begun:
            await self._processes(thread)

    async def _past(self, rpc: Rpc, thread: Thread, *, again: bool = False) -> None:
        """Read the items that the server keeps of the thread, back to those that we have; `again`: the last page."""
        has_items = "thread/items/list" in self.feed.has
        entries: list[Json] = []
        cursor: object = None
        known = False
        while has_items and len(entries) < PAST:
            params = {"threadId": thread.id, "limit": PAGE, "sortDirection": "desc"}
            answer = await rpc.call("thread/items/list", {**params, **({"cursor": cursor} if cursor else {})})
            page = each(answer, "data")
            entries += page
            cursor = answer.get("nextCursor")
            known = self.feed.knows(thread, page)
            if cursor is None or again or known:
                break
        turns: list[Json] = []
        if "thread/turns/list" in self.feed.has:
            params = {"threadId": thread.id, "limit": PAGE}
            turns = await self._pages(rpc, "thread/turns/list", params, most=PAGE if again or known else PAST)
        self.feed.past(thread, entries[::-1], turns, more=cursor is not None and not known)
        if not has_items:
            raise CallRefused.saying("the server has no list of what was said and done in a thread")

    async def _queue(self, thread: Thread) -> None:
        if "thread/queue/list" in self.feed.has:
            params = {"threadId": thread.id, "limit": PAGE}
            self.feed.queue(thread, await self._pages(self.rpc, "thread/queue/list", params))

    async def _processes(self, thread: Thread) -> None:
        await self.processes(thread)

    # --- for the acting part (a `console.connectors.codex.acting.Server`)

    @property
    def rpc(self) -> Rpc:
        if self._rpc is None:
            raise ConnectionLost("the app-server is not connected")
        return self._rpc

    async def processes(self, thread: Thread) -> list[Json]:
        """The commands of a thread that run, asked now."""
        if not thread.loaded or "thread/backgroundTerminals/list" not in self.feed.has:
            return []
        params = {"threadId": thread.id, "limit": PAGE}
        listed = await self._pages(self.rpc, "thread/backgroundTerminals/list", params)
        if thread.id in self.feed.threads and thread.joined:
            self.feed.turns.processes(thread, listed, self._mirror.now())
            self.feed.show(thread)
            self._moved.set()
        return listed

    async def join(self, thread: Thread) -> None:
        """Follow a thread, loading it where it is not. Raises CallRefused where the server does not let us."""
        await self._start_join(thread)
        if not thread.joined:
            raise self._refused.pop(thread.id, None) or ConnectionLost("the connection ended meanwhile")

    async def moved(self) -> None:
        """Wait until the server has told something."""
        self._moved.clear()
        await self._moved.wait()

    async def turn_ids(self, thread: Thread) -> list[str]:
        """The ids of a thread's turns, oldest first."""
        turns = await self._pages(self.rpc, "thread/turns/list", {"threadId": thread.id, "limit": PAGE})
        return [id for turn in reversed(turns) if (id := text(turn, "id")) is not None]

    # --- the rest of a source

    async def execute(self, command: Command, by: str) -> Handled:
        return await self.acting.execute(command, by)

    async def watch(self, session: str) -> None:
        thread = self.feed.threads.get(session)
        if thread is None:
            return
        thread.watched = True
        if thread.loaded and not thread.archived:
            await self._start_join(thread)
            refused = self._refused.pop(session, None)
            if refused is not None and thread.active and not thread.joined:
                raise refused
            return
        # Its past can be read without loading it, and nothing happens in it until somebody loads it.
        if not thread.read:
            await self._past_again(thread)
        if not thread.archived:
            if "thread/goal/get" in self.feed.has:
                goal = await self.rpc.call("thread/goal/get", {"threadId": session})
                thread.goal = part(goal, "goal") or None
            await self._queue(thread)
        self.feed.show(thread)

    async def unwatch(self, session: str) -> None:
        thread = self.feed.threads.get(session)
        if thread is not None:
            thread.watched = False

    async def close(self) -> None:
        tasks: Iterable[asyncio.Task[None]] = list(self._working)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._joining.clear()
        self._reading.clear()
        self._idle_since.clear()
        rpc, self._rpc = self._rpc, None
        if rpc is not None:
            await rpc.close()
        self.feed.lost()
        self._moved.set()


def _hello(target: Target) -> Json:
    client = {"name": target.client, "title": "Watchfloor", "version": target.version}
    return {
        "clientInfo": client,
        "capabilities": {"experimentalApi": True, "optOutNotificationMethods": sorted(notes.IGNORED)},
    }


def _version(agent: str) -> str:
    """The server's version: the part of its user agent after our own name, "watchfloor/0.171.0 (…)"."""
    found = _VERSION.search(agent)
    return found[1] if found else ""
