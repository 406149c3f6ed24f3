"""Everything that the app-server tells, told to the mirror. Without I/O: frames and answers in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from console.connectors.codex import items, notes, threads
from console.connectors.codex.asking import Asking
from console.connectors.codex.offers import TRAITS, Methods, capabilities_of
from console.connectors.codex.state import NOT_LOADED, Thread
from console.connectors.codex.turns import Turns, ran, turn_events
from console.connectors.web.reading import Json, number, part, text
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import Level, Notice, Reseeded
from watchfloor.words import ReseedMode

STEP = 20
"""Threads that are listed at a time."""


class Want(Enum):
    """What only the server can tell, and has to be asked."""

    JOIN = "join"
    READ = "read"
    PAST = "past"
    QUEUE = "queue"
    PROCESSES = "processes"


class Feed:
    """All threads of one server. `wants` is what to ask next; who asks takes it out."""

    def __init__(self, mirror: Mirror, *, follow_all: bool) -> None:
        self.threads: dict[str, Thread] = {}
        self.wants: set[tuple[Want, str]] = set()
        self.has = Methods()
        self.turns = Turns(mirror)
        self.asking = Asking(mirror, self.turns)
        self._mirror = mirror
        self._follow_all = follow_all

    # --- the roster

    def listed(self, entries: Iterable[tuple[Json, bool]]) -> None:
        """All threads that there are, each with whether it is archived: the connection stands."""
        for _ in self.listing(entries):
            pass

    def listing(self, entries: Iterable[tuple[Json, bool]]) -> Iterator[None]:
        """The same in steps of a few milliseconds, between which others have their turn."""
        self.turns.lists_processes = "thread/backgroundTerminals/list" in self.has
        found: set[str] = set()
        for info, archived in entries:
            id = text(info, "id")
            if id:
                found.add(id)
                self._known(info, archived=archived)
                if len(found) % STEP == 0:
                    yield
        for id in [id for id in self.threads if id not in found]:
            self._gone(id)
        self._mirror.keep_only(found)
        for thread in self.threads.values():
            if thread.away:
                # What became of its work is told to who joins, or stands in its past.
                self._want(Want.JOIN if thread.loaded else Want.PAST, thread)

    def latest(self, most: int) -> list[Thread]:
        """The threads that were at work last, the latest first."""
        threads = [thread for thread in self.threads.values() if not thread.archived]
        return sorted(threads, key=lambda thread: number(thread.info, "updatedAt") or 0, reverse=True)[:most]

    def found(self, info: Json) -> None:
        """A thread that is new to us."""
        if text(info, "id"):
            self._known(info)

    def _known(self, info: Json, *, archived: bool = False) -> Thread:
        id = text(info, "id") or ""
        thread = self.threads.setdefault(id, Thread(id))
        thread.info, thread.archived = info, archived
        self._status(thread, part(info, "status"))
        self.show(thread)
        if not thread.waiting and not thread.joined:
            self.asking.all_gone(thread, "it was no longer asked when the connection came back")
        return thread

    def has_still(self, thread: Thread) -> bool:
        """Is the thread still there? It may have been deleted while something was asked about it."""
        return self.threads.get(thread.id) is thread

    def show(self, thread: Thread) -> None:
        """Tell the roster how the thread stands."""
        if not self.has_still(thread):
            return
        capabilities = capabilities_of(thread, self.has)
        self._mirror.put(thread.id, capabilities=capabilities, traits=TRAITS, **threads.fields_of(thread))
        if thread.waiting and not thread.joined and thread.held_back is None:
            self._want(Want.JOIN, thread)

    def _gone(self, id: str) -> None:
        self.threads.pop(id, None)
        self._mirror.gone(id)

    def _want(self, want: Want, thread: Thread) -> None:
        self.wants.add((want, thread.id))

    def _status(self, thread: Thread, status: Json) -> None:
        thread.status, thread.flags = threads.status_of(status)
        if thread.active:
            thread.error = None
            if not thread.joined and thread.held_back is None and (self._follow_all or thread.watched):
                self._want(Want.JOIN, thread)
        elif not thread.joined:
            thread.turn = None
        if not thread.loaded:
            self._unloaded(thread)
        if not thread.waiting:
            self.asking.nothing_waits(thread)

    def _unloaded(self, thread: Thread) -> None:
        thread.joined, thread.turn = False, None
        if thread.begun and not thread.away:
            self.turns.unloaded(thread, self._mirror.now())
        self.asking.all_gone(thread, "the server has unloaded its thread")

    # --- a connection

    def lost(self) -> None:
        """The connection has ended. What is known stays, as the last that was known."""
        self.wants.clear()
        for thread in self.threads.values():
            thread.joined, thread.held_back, thread.read = False, None, False
            self.turns.missed(thread)
            thread.away = bool(thread.begun)

    def left(self, thread: Thread) -> None:
        """The server sends no more of the thread than it sends to all."""
        thread.joined = False
        if thread.active and (self._follow_all or thread.watched):
            self._want(Want.JOIN, thread)
        self.show(thread)

    def joining(self, thread: Thread) -> None:
        """From now on frames of the thread wait, until its past is told."""
        thread.held_back = []

    def joined(self, thread: Thread, resumed: Json) -> None:
        """The server sends everything of the thread from now on."""
        thread.joined = True
        info = part(resumed, "thread")
        if info:
            thread.info = info
            thread.status, thread.flags = threads.status_of(part(info, "status"))
        if not thread.active:
            thread.turn = None
        thread.model = text(resumed, "model") or thread.model

    def knows(self, thread: Thread, entries: list[Json]) -> bool:
        """Was one of these items of its past told before?"""
        session = self._mirror.session(thread.id)
        return any(session.saw(items.told_by(part(entry, "item"), text(entry, "turnId") or "")) for entry in entries)

    def past(self, thread: Thread, entries: list[Json], turns: list[Json], *, more: bool) -> None:
        """The past of the thread: its items, oldest first, and its turns. `more`: older ones were left out that were
        not told before."""
        if not self.has_still(thread):
            return
        if more and not thread.read and entries:
            old = "the items before this one were not read: they are on the server"
            first = items.told_by(part(entries[0], "item"), text(entries[0], "turnId") or "")
            notice = Notice(at=_at_of(entries), level=Level.INFO, code="past", text=old, key=f"past/{first}")
            self._mirror.emit(thread.id, notice)
        thread.read = True
        by_id = {text(turn, "id") or "": turn for turn in turns}
        thread.turns |= by_id.keys()
        last: str | None = None
        for entry in entries:
            turn = text(entry, "turnId") or ""
            if turn != last:
                self._past_turn(thread, by_id.get(last or ""))
            last = turn
            item = part(entry, "item")
            at = number(item, "completedAtMs") or number(item, "startedAtMs") or _at_of([entry])
            self.turns.item_ended(thread, item, turn, at or self._mirror.now())
        self._past_turn(thread, by_id.get(last or ""))
        if thread.held_back is not None:
            running = [turn for turn in turns if text(turn, "status") == "inProgress"]
            thread.turn = text(running[0], "id") if running and thread.active else None
        for begun in thread.begun.values():
            status = text(by_id.get(begun.turn), "status")
            if status not in (None, "inProgress"):
                thread.ended_turns.setdefault(begun.turn, status)

    def past_was_read(self, thread: Thread) -> None:
        """What turns left open will not be told any more."""
        if not self.has_still(thread):
            return
        thread.away = False
        if not thread.active:
            for begun in thread.begun.values():
                thread.ended_turns.setdefault(begun.turn, "over")
        if thread.loaded:
            self.turns.close(thread, self._mirror.now())
        else:
            self.turns.unloaded(thread, self._mirror.now())
        self.show(thread)

    def _past_turn(self, thread: Thread, turn: Json | None) -> None:
        if turn is None:
            return
        completed = number(turn, "completedAt")
        at = completed * 1000 if completed is not None else self._mirror.now()
        self._mirror.emit(thread.id, *turn_events(turn, at))

    def caught_up(self, thread: Thread) -> None:
        """The past is told: now what came meanwhile."""
        again = {frame.get("id") for frame in thread.held_back or ()}
        self._let_go(thread)
        if self.has_still(thread):
            self.asking.not_asked_again(thread, again)
            self.past_was_read(thread)

    def _let_go(self, thread: Thread) -> None:
        held, thread.held_back = thread.held_back or [], None
        for frame in held:
            # Since when it is asked is not told with all requests: what came late was asked after what is known.
            self.frame(frame, since=thread.last_at)

    def not_joined(self, thread: Thread, why: str) -> None:
        """The thread could not be joined."""
        self._let_go(thread)
        self.wants.discard((Want.JOIN, thread.id))
        if thread.waiting and self.has_still(thread):
            self.asking.unread(thread, why)

    # --- frames

    def frame(self, frame: Json, *, since: int = 0) -> None:
        """A notification or a request of the server. `since`: when a request that does not say so came; 0: now."""
        method, params = text(frame, "method") or "", part(frame, "params")
        if method == "thread/started":
            self.found(part(params, "thread"))
            return
        id = text(params, "threadId") or ""
        thread = self.threads.get(id)
        if thread is None:
            # A sub-agent's thread is told of by what happens in it only.
            if id and method != "thread/deleted":
                self.wants.add((Want.READ, id))
            return
        if thread.held_back is not None and method not in _AT_ONCE:
            thread.held_back.append(frame)
            return
        at = number(frame, "emittedAtMs") or self._mirror.now()
        rpc = frame.get("id")
        if isinstance(rpc, int | str) and not isinstance(rpc, bool):
            self.asking.asked(thread, rpc, method, params, since or at)
        elif not self.turns.delta(thread, method, params):
            self._notice(thread, method, params, at)
        else:
            return
        self.show(thread)

    def not_understood(self, frame: Json) -> None:
        """A frame that could not be taken: that something is missing is told where it would have stood."""
        thread = self.threads.get(text(frame, "params", "threadId") or "")
        if thread is not None:
            method = (text(frame, "method") or "").encode("ascii", "backslashreplace").decode()[:80]
            told = f"something that the server told could not be read, and is not shown ({method})"
            self._mirror.emit(thread.id, Notice(at=0, level=Level.WARNING, code="unreadable", text=told))

    def _notice(self, thread: Thread, method: str, params: Json, at: int) -> None:
        match method:
            case "thread/status/changed":
                self._status(thread, part(params, "status"))
            case "thread/closed":
                self._status(thread, {"type": NOT_LOADED})
            case "thread/deleted":
                self._gone(thread.id)
            case "thread/archived" | "thread/unarchived":
                thread.archived = method == "thread/archived"
            case "thread/name/updated":
                thread.info = {**thread.info, "name": text(params, "threadName")}
            case "thread/reverted":
                thread.turn, thread.turns = None, set()
                self._want(Want.PAST, thread)
                self._mirror.emit(thread.id, Reseeded(at=at, mode=ReseedMode.REWIND))
            case "thread/goal/updated" | "thread/goal/cleared":
                thread.goal = part(params, "goal") or None
            case "thread/queue/changed":
                self._want(Want.QUEUE, thread)
            case "thread/settings/updated":
                self._model(thread, text(params, "threadSettings", "model"), at)
            case "thread/tokenUsage/updated":
                self.turns.usage(thread, params, at)
            case "turn/started":
                thread.turn, thread.error = text(params, "turn", "id"), None
                thread.turns.add(thread.turn or "")
            case "turn/completed":
                self._turn_ended(thread, part(params, "turn"), at)
            case "item/started":
                self.turns.item_begun(thread, params, at)
            case "item/completed":
                done = number(params, "completedAtMs") or at
                self.turns.item_ended(thread, part(params, "item"), text(params, "turnId") or "", done)
            case "item/fileChange/patchUpdated":
                self.turns.patch(thread, params)
            case "serverRequest/resolved":
                self.asking.resolved(thread, params)
                if any(begun.waits for begun in thread.begun.values()):
                    self._want(Want.PROCESSES, thread)
            case _:
                if method == "item/mcpToolCall/progress":
                    ran(thread, text(params, "itemId") or "")
                self._mirror.emit(thread.id, *notes.events_of(method, params, at))

    def _turn_ended(self, thread: Thread, turn: Json, at: int) -> None:
        self.turns.ended(thread, turn, at)
        self.asking.turn_ended(thread, text(turn, "id") or "", text(turn, "status") or "over")
        if self.turns.left_open(thread):
            # An end that was not told may stand in the past.
            self._want(Want.PAST, thread)
        else:
            thread.ended_turns.clear()
        if any(items.kind_of(begun.item) == items.COMMAND for begun in thread.begun.values()):
            self._want(Want.PROCESSES, thread)

    def _model(self, thread: Thread, model: str | None, at: int) -> None:
        before, thread.model = thread.model, model or thread.model
        if before is not None and thread.model != before:
            self._mirror.emit(thread.id, Reseeded(at=at, mode=ReseedMode.MODEL, note=f"{before} -> {thread.model}"))

    def queue(self, thread: Thread, entries: list[Json]) -> None:
        """The messages that wait for the thread's turn to end."""
        if not self.has_still(thread):
            return
        thread.queue = entries
        self.asking.queued(thread, entries)
        self.show(thread)


_AT_ONCE = frozenset({"thread/deleted"})
"""What does not wait until the past is told."""


def _at_of(entries: list[Json]) -> int:
    return next((at for entry in entries if (at := number(entry, "startedAtMs")) is not None), 0)
