"""The connector of an aion server: the shell around the feed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from console.connectors.aion import offers
from console.connectors.aion.acting import Acting
from console.connectors.aion.attendance import Attendance
from console.connectors.aion.feed import Feed
from console.connectors.aion.following import SETTLE_S
from console.connectors.aion.history import Workflow, seq_of
from console.connectors.aion.listing import Listing
from console.connectors.aion.reading import Elided, Json, obj, text
from console.connectors.aion.server import Refused, Server
from console.connectors.aion.sockets import Following
from console.connectors.web.address import address_of
from console.connectors.web.reading import parsed
from watchfloor.connector import Record, Target
from watchfloor.errors import ConnectionFailed, ConnectionLost, Denied, NotAHost, Unreachable
from watchfloor.foreign import ForeignConnector, Handled, Mirror
from watchfloor.protocol.frames import Command

SCHEMES: Final = {"aion+http": "http", "aion+https": "https"}
LIST_S: Final = 5.0
"""Between two looks at the lists: they find what the stream of events did not tell."""
FIRST_S: Final = 0.5
"""The same on a server that has no namespace yet (the first run makes one), and after a look that failed."""
PATIENCE: Final = 3
"""Looks at the lists that may be refused one after the other."""
LIVE_S: Final = 3.0
"""Between two looks at who lives: a worker that dies is told by nothing else."""
GATHER_S: Final = 0.05
AT_ONCE: Final = 6
"""Requests of one kind that are under way at the same time."""
TOGETHER: Final = 5000
"""Events of a history that are read before any of them is shown."""
LOOKS: Final = 100
"""Workflows at whose agents is looked at a time."""
AGAIN_S: Final = 30.0
"""Until a stream of events that cannot be opened is tried again; the lists tell the same, later."""
_log = logging.getLogger(__name__)


class AionFactory:
    """Makes connectors for aion servers."""

    schemes: Final = frozenset(SCHEMES)

    def __call__(self, target: Target) -> ForeignConnector:
        return ForeignConnector(target, AionSource, name="aion")


class AionSource:
    """One aion server (a `watchfloor.foreign.ForeignSource`)."""

    def __init__(self, target: Target, mirror: Mirror) -> None:
        self._address = address_of(target, SCHEMES)
        self._target = target
        self._mirror = mirror
        self.feed: Final = Feed(mirror)
        self.acting: Final = Acting(self.feed, mirror, lambda: self.server, self._read_live)
        self.attendance: Final = Attendance(
            self.feed,
            mirror,
            lambda: self.server,
            self._in_background,
            everything=target.record is Record.ALL,
        )
        self._server: Server | None = None
        self._namespaces: dict[str, asyncio.Task[None]] = {}
        self._turn = 0
        self.listing: Final = Listing(self.feed, mirror, self._drop)
        self._relive: set[str] = set()
        self._wake = asyncio.Event()
        self._relist = asyncio.Event()
        self._working: set[asyncio.Task[None]] = set()
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._fault: asyncio.Future[None] | None = None
        self._whoami: Json = {}

    @property
    def server(self) -> Server:
        if self._server is None:
            raise ConnectionLost("aion is not connected")
        return self._server

    # --- connecting

    async def open(self) -> None:
        server = self._server = Server(self._address, self._target.token, user=self._target.user)
        self._fault = asyncio.get_running_loop().create_future()
        try:
            self._whoami = await server.recognise()
        except Refused as refused:
            if refused.status == 403:
                raise Denied(f"{server.where} refuses this client: {refused}; check the token") from None
            if refused.status >= 500:
                raise Unreachable(f"{server.where} does not say now who we are: {refused}") from None
            raise NotAHost(f"{server.where} is no aion server: {refused}; check the address") from None
        self._mirror.host(version=server.version)
        self.feed.deploys = server.modern and offers.granted(self._whoami, "deploy")
        try:
            await self._list()
        except Refused as refused:
            raise Unreachable(f"{server.where} does not say what it has now: {refused}") from None
        await self._read_dirty()
        self._relive |= set(self._not_over())
        await self._read_lives()
        await self.attendance.begin()

    async def run(self) -> None:
        assert self._fault is not None  # noqa: S101 - it was opened
        ours = [asyncio.create_task(work) for work in (self._follow_lists(), self._follow_changes())]
        try:
            await asyncio.wait([*ours, self._fault], return_when=asyncio.FIRST_COMPLETED)
            for task in ours:
                if task.done():
                    task.result()
            self._fault.result()
        except ConnectionFailed as fault:
            raise fault if not fault.retry else ConnectionLost(str(fault)) from None
        except Refused as refused:
            raise ConnectionLost(f"{self._address.where}: {refused}") from None
        finally:
            for task in ours:
                task.cancel()
            await asyncio.gather(*ours, return_exceptions=True)

    async def close(self) -> None:
        tasks = list(self._working)
        self._namespaces = {}
        self.attendance.end()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._fault is not None:
            self._fault.cancel()
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def execute(self, command: Command, by: str) -> Handled:
        handled = await self.acting.execute(command, by)
        session = self.feed.sessions.get(command.session)
        workflow = session.workflow if session is not None else self.feed.workflows.get(command.session)
        if workflow is not None:
            self.listing.dirty.add(workflow.key)
            self._relive.add(workflow.key)
            self._wake.set()
        return handled

    async def watch(self, session: str) -> None:
        self.attendance.watched.add(session)
        known = self.feed.sessions.get(session)
        if known is None:
            return
        try:
            await self._retained(known.workflow, known.activity.run)
            await self._read_live(known.workflow)
        except Refused as refused:
            raise ConnectionLost(str(refused)) from None
        self.attendance.attend([known.workflow.key])
        await self.attendance.fetch(known)

    async def unwatch(self, session: str) -> None:
        self.attendance.looked_away(session)

    # --- lists

    async def _follow_lists(self) -> None:
        failures = 0
        while True:
            every = LIST_S if self._namespaces and not failures else FIRST_S
            with suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await self._relist.wait()
            self._relist.clear()
            try:
                await self._list()
                self._wake.set()
                failures = 0
            except (ConnectionFailed, Refused) as fault:
                failures += 1
                if isinstance(fault, ConnectionFailed) and (failures > 1 or not fault.retry):
                    raise
                if failures > PATIENCE:
                    raise

    async def _list(self) -> None:
        """What there is: the namespaces, and what each of them has."""
        server = self.server
        names = await server.namespaces(self._whoami)
        await self.listing.read(server, names)
        for name in names:
            if name not in self._namespaces:
                self._namespaces[name] = self._in_background(self._follow_namespace(server, name))
        self._mirror.heard()

    def _drop(self, workflow: Workflow) -> None:
        """It is shown no more."""
        self.attendance.forget(self.feed.forget(workflow))

    async def _follow_namespace(self, server: Server, name: str) -> None:
        """Every event of its workflows. It cannot be taken up where it broke, so the lists are read again then."""

        def broken(code: str, words: str) -> None:
            self._relist.set()

        def arm() -> Json:
            return {"firehose": {"namespace": name}}

        while True:
            try:
                await Following(server, arm, lambda frame: self._told(name, frame), broken).run()
            except Refused as refused:
                return _log.info("the events of the namespace %r are not for us: %s", name, refused)
            except NotAHost as refused:
                _log.info("the events of the namespace %r cannot be followed: %s", name, refused)
            await asyncio.sleep(AGAIN_S)

    def _told(self, namespace: str, frame: Json) -> None:
        self._mirror.heard()
        payload = obj(obj(frame.get("event")).get("payload"))
        try:
            event = obj(parsed(bytes(payload["bytes"])))  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, RecursionError):
            self._relist.set()
            return
        id = text(obj(obj(event.get("data")).get("envelope")).get("workflow_id"))
        if not id:
            return
        workflow = self.feed.workflow(namespace, id)
        if seq_of(event) == workflow.head + 1:
            if self.feed.took(workflow, [event]):
                self._relive.add(workflow.key)
        elif (seq_of(event) or 0) > workflow.head:
            self.listing.dirty.add(workflow.key)
        self._wake.set()

    # --- changes

    async def _follow_changes(self) -> None:
        clock = asyncio.get_running_loop().time
        look_at = clock() + LIVE_S
        while True:
            try:
                async with asyncio.timeout(max(look_at - clock(), 0)):
                    await self._wake.wait()
                # What happens within this time is read together.
                await asyncio.sleep(GATHER_S)
            except TimeoutError:
                look_at = clock() + LIVE_S
                self._relive |= self._to_look_at()
            self._wake.clear()
            changed = self.listing.dirty | self._relive
            await self._read_dirty()
            changed |= self._relive
            await self._read_lives()
            self.attendance.attend(changed & self.feed.workflows.keys())

    def _to_look_at(self) -> set[str]:
        """The workflows whose agents may have come or gone without a word, so many at a time, one after the other."""
        keys = self._not_over()
        self._turn = self._turn % max(len(keys), 1)
        found = (keys + keys)[self._turn : self._turn + min(LOOKS, len(keys))]
        self._turn += len(found)
        return set(found)

    def _not_over(self) -> list[str]:
        return [key for key, workflow in self.feed.workflows.items() if not workflow.over or self.feed.live.get(key)]

    async def _read_dirty(self) -> None:
        dirty, self.listing.dirty = self.listing.dirty & self.feed.workflows.keys(), set()
        await asyncio.gather(*(self._read_history(self.feed.workflows[key]) for key in dirty))

    async def _read_lives(self) -> None:
        keys, self._relive = self._relive & self.feed.workflows.keys(), set()
        await asyncio.gather(*(self._read_live_gently(self.feed.workflows[key]) for key in keys))

    async def _read_history(self, workflow: Workflow) -> None:
        changed = self.listing.changed(workflow)
        async with self._gate:
            more = True
            while more:
                try:
                    events, more = await self._read_events(workflow)
                except Refused as refused:
                    if refused.code == "not_found":
                        self._drop(workflow)
                    else:
                        self.feed.unread(workflow, str(refused))
                    return
                if events is None:
                    self._drop(workflow)
                    self._relist.set()
                    return
                before = workflow.head
                if self.feed.took(workflow, events):
                    self._relive.add(workflow.key)
                if workflow.head == before:
                    break
            self.feed.unread(workflow, "")
            await self._complete(workflow)
            workflow.updated = changed

    async def _read_events(self, workflow: Workflow) -> tuple[list[Json] | None, bool]:
        """The next events of a history, and whether there are more; None where the server has less than was read."""
        found: list[Json] = []
        more = True
        while more and len(found) < TOGETHER:
            page, more, head = await self.server.history(
                workflow.namespace, workflow.id, workflow.head + 1 + len(found)
            )
            if not found and head is not None and head < workflow.head and await self._is_lost(workflow):
                return None, False
            if not page:
                return found, False
            found += page
        return found, more

    async def _is_lost(self, workflow: Workflow) -> bool:
        """Does the server have less of its history than was read, as after a restored backup?

        Asked again, for the answer may be older than what the stream has told since.
        """
        read = workflow.head
        await asyncio.sleep(SETTLE_S)
        _, _, head = await self.server.history(workflow.namespace, workflow.id, read + 1)
        return head is not None and head < read

    async def _complete(self, workflow: Workflow) -> None:
        """Fetch the results that were left out for their size."""
        for activity in list(workflow.activities.values()):
            for attempt in activity.attempts.values():
                if isinstance(attempt.result, Elided):
                    with suppress(Refused):
                        event = await self.server.event(workflow.namespace, workflow.id, attempt.result_seq)
                        self.feed.completed(workflow, attempt, event)

    async def _read_live_gently(self, workflow: Workflow) -> None:
        async with self._gate:
            try:
                await self._read_live(workflow)
            except Refused as refused:
                if refused.code == "not_found":
                    self._drop(workflow)
                else:
                    self.feed.lives_unread(workflow, str(refused))

    async def _read_live(self, workflow: Workflow) -> None:
        self.feed.lives(workflow, await self.server.attempts(workflow.namespace, workflow.id))

    async def _retained(self, workflow: Workflow, run: str) -> None:
        for each in dict.fromkeys([run, workflow.run]):
            self.feed.retained(workflow, each, await self.server.transcripts(workflow.namespace, workflow.id, each))

    # --- tasks

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        if task.cancelled() or (fault := task.exception()) is None:
            return
        if isinstance(fault, Denied) and self._fault is not None and not self._fault.done():
            self._fault.set_exception(fault)
        elif not isinstance(fault, ConnectionFailed):
            _log.error("following %r failed", self._target.name, exc_info=fault)
