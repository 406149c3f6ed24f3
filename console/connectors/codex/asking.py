"""The open requests of threads, told to the mirror."""

from __future__ import annotations

import hashlib

from console.connectors.codex import items
from console.connectors.codex.requests import (
    ASKS,
    COMMAND,
    ELICITATION,
    FILES,
    NOT_FOR_US,
    Asked,
    is_tool_approval,
    request_of,
    unknown_decisions,
    unread,
)
from console.connectors.codex.state import Fate, Thread
from console.connectors.codex.turns import Turns, known_changes, ran
from console.connectors.web.reading import Json, number, part, text
from watchfloor.canonical import canonical
from watchfloor.errors import CanonicalError
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import Level, Mail, MailState, Notice
from watchfloor.protocol.model import Decision, RequestModel
from watchfloor.words import Delivery, OptionKind, RequestState

ELSEWHERE = "another client"


class Asking:
    """Opens and ends requests."""

    def __init__(self, mirror: Mirror, turns: Turns) -> None:
        self._mirror = mirror
        self._turns = turns
        self._ids: dict[str, int] = {}
        """How often an id was given."""

    # --- opening

    def asked(self, thread: Thread, rpc: int | str, method: str, params: Json, at: int) -> None:
        """The server asks, or asks again after we came back. `at`: since when, where it does not say so."""
        if method in NOT_FOR_US:
            return
        known = thread.asked.get(rpc)
        if known is not None and known.method == method and _same(known.params, params):
            return
        if known is not None:
            self._end(thread, known, RequestState.WITHDRAWN, "the server asks something else under its number")
        call = _call(thread, method, params)
        changes = known_changes(thread, call) if method == FILES and call is not None else None
        id = self._id(rpc, method, params)
        try:
            if method not in ASKS:
                raise ValueError(f"this console does not know {method!r}: answer it in another client")
            request = request_of(id, method, params, changes=changes, call=call, now=at)
        except (CanonicalError, ValueError) as fault:
            # What no decision can be bound to is still something that waits.
            call, request = None, self._unread(thread, id, str(fault), at)
        thread.asked[rpc] = Asked(rpc, method, params, id, request, call)
        if call is not None:
            since = number(params, "startedAtMs") or at
            self._turns.waits(thread, _item(method, call, params), text(params, "turnId") or "", since)
        self._mirror.ask(thread.id, request)
        self._read(thread)
        self._not_offered(thread, id, method, params)
        if method == ELICITATION and not is_tool_approval(params):
            # A server that asks the user something is at work on its call.
            for call, begun in thread.begun.items():
                if items.kind_of(begun.item) == items.MCP and begun.item.get("server") == params.get("serverName"):
                    ran(thread, call)

    def _not_offered(self, thread: Thread, id: str, method: str, params: Json) -> None:
        """Say which decisions the server would take, and this console cannot give."""
        if method == COMMAND and (unknown := unknown_decisions(params)):
            told = f"the server offers decisions that this console does not know: {', '.join(unknown)}"
            notice = Notice(at=0, level=Level.WARNING, code="request", text=sound(told), key=f"{id}/not offered")
            self._mirror.emit(thread.id, notice)

    def _id(self, rpc: int | str, method: str, params: Json) -> str:
        """An id that is this request's alone: the server counts anew when it is started anew, its turns do not."""
        turn = text(params, "turnId")
        base = f"{turn}.{rpc}" if turn is not None else f"{text(params, 'threadId')}.{_print(params)}.{rpc}"
        base = sound(base)
        again = self._ids[base] = self._ids.get(base, 0) + 1
        return base if again == 1 else f"{base}.{again}"

    def unread(self, thread: Thread, why: str) -> None:
        """Something waits for a human there, and what cannot be read."""
        if thread.asked or thread.unread is not None:
            return
        again = self._ids[thread.id] = self._ids.get(thread.id, 0) + 1
        id = thread.unread = f"{thread.id}.unread.{again}"
        self._mirror.ask(thread.id, self._unread(thread, id, why, thread.last_at or self._mirror.now()))

    def _unread(self, thread: Thread, id: str, why: str, at: int) -> RequestModel:
        question = "waitingOnUserInput" in thread.flags
        told = f"what it asks could not be read: {sound(why)}"
        return unread(id, thread.id, question=question, why=told, now=at)

    def _read(self, thread: Thread) -> None:
        if thread.unread is not None:
            id, thread.unread = thread.unread, None
            self._mirror.end_request(thread.id, id, RequestState.WITHDRAWN, why="what it asks was read")

    # --- ending

    def resolved(self, thread: Thread, params: Json) -> None:
        """The server has an answer: ours, if one is on its way, or that of another client."""
        rpc = params.get("requestId")
        asked = thread.asked.get(rpc) if isinstance(rpc, int | str) else None
        if asked is None:
            return
        fate = thread.fates.get(asked.id)
        if fate is not None:
            fate.resolved = True
        else:
            self._end(thread, asked, RequestState.RESOLVED, f"answered by {ELSEWHERE}")

    def turn_ended(self, thread: Thread, turn: str, status: str) -> None:
        """What the turn still asked needs no answer any more."""
        for asked in list(thread.asked.values()):
            if text(asked.params, "turnId") == turn and asked.id not in thread.fates:
                self._end(thread, asked, RequestState.WITHDRAWN, f"its turn is {status}")

    def nothing_waits(self, thread: Thread) -> None:
        """The thread waits for nobody: what could not be read is over."""
        if thread.unread is not None:
            id, thread.unread = thread.unread, None
            self._mirror.end_request(thread.id, id, RequestState.WITHDRAWN, why="the thread waits no more")

    def all_gone(self, thread: Thread, why: str) -> None:
        for asked in list(thread.asked.values()):
            if asked.id not in thread.fates:
                self._end(thread, asked, RequestState.WITHDRAWN, why)

    def not_asked_again(self, thread: Thread, again: set[object]) -> None:
        """We came back, and only these are still asked."""
        for rpc, asked in list(thread.asked.items()):
            if rpc not in again and asked.id not in thread.fates:
                self._end(thread, asked, RequestState.WITHDRAWN, "it was no longer asked when the connection came back")

    def _end(self, thread: Thread, asked: Asked, state: RequestState, why: str) -> None:
        thread.asked.pop(asked.rpc, None)
        self._mirror.end_request(thread.id, asked.id, state, why=why)

    # --- our answers

    def answering(self, thread: Thread, asked: Asked) -> Fate:
        """An answer of ours is about to leave."""
        fate = thread.fates[asked.id] = Fate()
        return fate

    def would_see(self, asked: Asked) -> bool:
        """Would it show if the call that waits had run, or still ran?"""
        return asked.method != COMMAND or self._turns.lists_processes

    def answered(
        self,
        thread: Thread,
        asked: Asked,
        decision: Decision | None,
        why: str = "",
        state: RequestState = RequestState.RESOLVED,
    ) -> None:
        """What became of it is known, as far as it ever will be."""
        thread.fates.pop(asked.id, None)
        thread.asked.pop(asked.rpc, None)
        if asked.call in thread.begun and decision is not None:
            denied = decision.kind is OptionKind.DENY
            thread.begun[asked.call].denied, thread.begun[asked.call].waits = denied, denied
        self._mirror.end_request(thread.id, asked.id, state, decision=decision, why=why)
        self._turns.close(thread, self._mirror.now())

    def unanswered(self, thread: Thread, asked: Asked) -> None:
        """No word came of our answer: the request stays as it is."""
        thread.fates.pop(asked.id, None)
        if thread.id in self._mirror:
            self._turns.close(thread, self._mirror.now())

    # --- queued messages

    def queued(self, thread: Thread, entries: list[Json]) -> None:
        """Messages that wait for the turn's end, whoever sent them."""
        for entry in entries:
            client = text(entry, "clientUserMessageId") or text(entry, "id") or ""
            ref = thread.ref(client)
            said = items.said({"content": entry.get("input")})
            key = f"mail/{client}/queued"
            mail = Mail(at=0, ref=ref, state=MailState.SENT, delivery=Delivery.QUEUED, text=said, key=key)
            self._mirror.emit(thread.id, mail)


def _call(thread: Thread, method: str, params: Json) -> str | None:
    """The item that waits for the answer."""
    if text(params, "approvalId") is not None or part(params, "networkApprovalContext"):
        # Asked about something within a command that runs: input to it, what it starts, where it connects.
        return None
    item = text(params, "itemId")
    if item is not None:
        # The agent's questions are no items.
        return item if item in thread.begun or method in (COMMAND, FILES) else None
    if not is_tool_approval(params):
        return None
    meta = part(params, "_meta")
    found = [
        id
        for id, begun in thread.begun.items()
        if items.kind_of(begun.item) == items.MCP
        and begun.item.get("server") == params.get("serverName")
        and begun.item.get("tool") == meta.get("tool_name")
        and begun.item.get("arguments") == meta.get("tool_params")
        and not begun.waits
    ]
    return found[0] if len(found) == 1 else None


def _item(method: str, call: str, params: Json) -> Json:
    """What a request tells of the item that waits for it."""
    if method == COMMAND:
        kept = {"command": params.get("command"), "cwd": params.get("cwd")}
        return {"type": items.COMMAND, "id": call, **{k: v for k, v in kept.items() if v is not None}}
    return {"type": items.FILES if method == FILES else items.MCP, "id": call}


def sound(words: str) -> str:
    """Words that can stand in every frame: what is no character is written out."""
    return words.encode("utf-8", "backslashreplace").decode()


def _same(one: Json, other: Json) -> bool:
    return dict(one) == dict(other)


def _print(params: Json) -> str:
    """A short mark of what is asked, where no turn tells one request from another."""
    try:
        raw = canonical(dict(params))
    except CanonicalError:
        raw = repr(params).encode("utf-8", "replace")
    return hashlib.sha256(raw).hexdigest()[:8]
