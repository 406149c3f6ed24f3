"""The turns and items of a joined thread, told to the mirror."""

from __future__ import annotations

from console.connectors.codex import items, notes
from console.connectors.codex.state import Begun, Fate, Thread
from console.connectors.codex.threads import usage_of
from console.connectors.web.reading import Json, each, number, part, text
from watchfloor.foreign import Mirror
from watchfloor.protocol.events import Event, Level, Mail, MailState, Notice, ToolStatus

MISSED = "… "
"""Stands for what of a streamed text came before we did."""
_DELTAS = {
    "item/agentMessage/delta": "message",
    "item/plan/delta": "message",
    "item/reasoning/summaryTextDelta": "reasoning",
    "item/reasoning/textDelta": "reasoning",
    "item/commandExecution/outputDelta": "tool_output",
}


_SAID = frozenset({"agentMessage", "reasoning"})
"""What only the model gives: it is asked anew once all calls of its last answer have a result."""


class Turns:
    """Takes what the server tells of turns and items."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.lists_processes = True
        """Does the server tell which commands run? One that does not leaves it unknown what outlives a turn."""

    # --- while it runs

    def delta(self, thread: Thread, method: str, params: Json) -> bool:
        """A piece of an item; False where the notification is none.

        An item whose beginning we did not see is marked as such at its start, until it comes whole.
        """
        if method == "item/reasoning/summaryPartAdded":
            if (number(params, "summaryIndex") or 0) > 0:
                self._piece(thread, text(params, "itemId") or "", "reasoning", "\n\n")
            return True
        of = _DELTAS.get(method)
        if of is None:
            return False
        self._piece(thread, text(params, "itemId") or "", of, text(params, "delta") or "")
        return True

    def _piece(self, thread: Thread, id: str, of: str, piece: str) -> None:
        begun = thread.begun.get(id)
        if of == "tool_output":
            ran(thread, id)
            if begun is not None and piece:
                begun.waits = False
                if begun.missed:
                    begun.missed = False
                    self._mirror.stream(thread.id, items.output_item(id), of, MISSED, call=id)
                self._mirror.stream(thread.id, items.output_item(id), of, piece, call=id)
        elif piece and id:
            if begun is None:
                kind = {"message": "agentMessage"}.get(of, of)
                thread.begun[id] = Begun({"type": kind, "id": id}, thread.turn or "", self._mirror.now())
                self._mirror.stream(thread.id, id, of, MISSED)
            self._mirror.stream(thread.id, id, of, piece)

    def item_begun(self, thread: Thread, params: Json, at: int) -> None:
        item, turn = part(params, "item"), text(params, "turnId") or ""
        id, since = items.id_of(item), number(params, "startedAtMs") or at
        if not id:
            return
        if items.kind_of(item) in _SAID:
            for fate in thread.fates.values():
                fate.went_on = fate.resolved
        thread.begun[id] = Begun(item, turn, since, waits=id in _awaited(thread))
        if items.kind_of(item) == items.FILES:
            thread.changes[id] = each(item, "changes")
        self._mirror.emit(thread.id, *items.begun(item, turn, since))

    def patch(self, thread: Thread, params: Json) -> None:
        """The changes of files that an item asks for are others now."""
        id = text(params, "itemId") or ""
        thread.changes[id] = each(params, "changes")

    def item_ended(self, thread: Thread, item: Json, turn: str, at: int) -> None:
        """An item is whole: now, or when its past is read."""
        id = items.id_of(item)
        known = thread.begun.pop(id, None)
        thread.changes.pop(id, None)
        since = number(item, "startedAtMs") or (known.since if known is not None else at)
        ours = self._mail(thread, item, turn, at)
        # The beginning is told again: where it was before, its key drops it.
        self._mirror.emit(thread.id, *items.begun(item, turn, since), *items.ended(item, turn, at, ours=ours))
        if items.is_call(item):
            fate_of(thread, id, ran=items.ran(item))
        thread.last_at = max(thread.last_at, at)

    def _mail(self, thread: Thread, item: Json, turn: str, at: int) -> bool:
        """Tell that a message of ours was taken up; False where it is none of ours."""
        if items.kind_of(item) != items.USER:
            return False
        id, client = items.id_of(item), text(item, "clientId")
        thread.turn_of[id] = turn
        ref = thread.refs.get(client) if client is not None else None
        if ref is None:
            return False
        thread.turn_of[ref] = turn
        consumed = Mail(at=at, ref=ref, state=MailState.CONSUMED, key=f"mail/{client}/consumed")
        self._mirror.emit(thread.id, consumed)
        return True

    def usage(self, thread: Thread, params: Json, at: int) -> None:
        thread.usage = part(params, "tokenUsage")
        usage = usage_of(thread)
        if usage is not None:
            self._mirror.emit(thread.id, notes.usage_event(usage, params, at))

    # --- its end

    def ended(self, thread: Thread, turn: Json, at: int) -> None:
        """A turn is over. What of it will never be told to have ended is closed, but for commands that live on."""
        id, status = text(turn, "id") or "", text(turn, "status") or ""
        if thread.turn == id:
            thread.turn = None
        for fate in thread.fates.values():
            fate.turn_ended = status
        self._mirror.emit(thread.id, *turn_events(turn, at))
        if status == "failed":
            thread.error = notes.failure_text(part(turn, "error"))
        thread.ended_turns[id] = status

    def close(self, thread: Thread, at: int) -> None:
        """Close what turns that are over left open, but for commands that live on: the past tells no more of it."""
        ended, thread.ended_turns = thread.ended_turns, {}
        streams = []
        for id, begun in list(thread.begun.items()):
            status = ended.get(begun.turn)
            if status is None or self._may_live_on(begun):
                continue
            if _fates(thread, id):
                # What became of our answer to it is being found out, and says how it ended.
                thread.ended_turns[begun.turn] = status
                continue
            del thread.begun[id]
            thread.changes.pop(id, None)
            streams += [id, items.output_item(id)]
            why = f"the turn was {status or 'over'}, and how this ended was not told"
            self._mirror.emit(thread.id, *items.cut(begun.item, begun.turn, at, _end_of(begun, status), why))
        if streams:
            self._mirror.cut_streams(thread.id, *streams)

    def unloaded(self, thread: Thread, at: int) -> None:
        """The server has let go of the thread: nothing of it goes on."""
        thread.turn = None
        self.processes(thread, [], at)
        for begun in thread.begun.values():
            thread.ended_turns.setdefault(begun.turn, "cut off")
        self.close(thread, at)

    def missed(self, thread: Thread) -> None:
        """We were away: what streams on does so without a beginning."""
        self._mirror.cut_streams(thread.id)
        for id, begun in list(thread.begun.items()):
            if items.is_work(begun.item):
                begun.missed = True
            else:
                del thread.begun[id]

    def left_open(self, thread: Thread) -> bool:
        """Has a turn that is over left something open?"""
        begun = thread.begun.values()
        return any(one.turn in thread.ended_turns and not self._may_live_on(one) for one in begun)

    def _may_live_on(self, begun: Begun) -> bool:
        """A command whose process was started outlives an interrupted turn, and a turn that does not await it."""
        return self.lists_processes and items.kind_of(begun.item) == items.COMMAND and not begun.waits

    def waits(self, thread: Thread, item: Json, turn: str, at: int) -> None:
        """A call waits for an answer. It may have begun before we came: then this is all that is told of it."""
        id = items.id_of(item)
        if id not in thread.begun:
            thread.begun[id] = Begun(item, turn, at)
            self._mirror.emit(thread.id, *items.begun(item, turn, at))
        thread.begun[id].waits = True

    def processes(self, thread: Thread, listed: list[Json], at: int) -> None:
        """These commands of the thread run: any other that was left over from an earlier turn has ended unseen."""
        running = {text(entry, "itemId") or "": entry for entry in listed}
        for id in running:
            ran(thread, id)
            if id in thread.begun:
                thread.begun[id].waits = False
        for id, begun in list(thread.begun.items()):
            if begun.turn != thread.turn and id not in running and self._may_live_on(begun):
                del thread.begun[id]
                why = "it has ended, and how was not told"
                self._mirror.emit(thread.id, *items.cut(begun.item, begun.turn, at, ToolStatus.UNKNOWN, why))
                self._mirror.cut_streams(thread.id, id, items.output_item(id))
        for id, entry in running.items():
            if id not in thread.begun:
                # Its beginning was before our time, and it is not in the past that the server keeps.
                item = {"type": items.COMMAND, "id": id, "command": entry.get("command"), "cwd": entry.get("cwd")}
                item |= {"processId": entry.get("processId")}
                thread.begun[id] = Begun(item, "", at, missed=True)
                self._mirror.emit(thread.id, *items.begun(item, "", at))


def _end_of(begun: Begun, turn: str) -> ToolStatus:
    """How a call ended of which that was not told: a client that joined while it waited hears of no refusal."""
    if begun.denied:
        return ToolStatus.DECLINED
    return ToolStatus.CANCELLED if turn == "interrupted" else ToolStatus.UNKNOWN


def turn_events(turn: Json, at: int) -> list[Event]:
    """How a turn ended, where that is worth an event of its own."""
    key = f"{text(turn, 'id')}/ended"
    match text(turn, "status"):
        case "failed":
            return [notes.failure(part(turn, "error"), retrying=False, at=at, key=key)]
        case "interrupted":
            return [Notice(at=at, level=Level.INFO, code="interrupted", text="the turn was interrupted", key=key)]
        case _:
            return []


# --- what shows of an answer


def _awaited(thread: Thread) -> set[str]:
    """The calls that wait for an open request."""
    return {asked.call for asked in thread.asked.values() if asked.call is not None}


def _fates(thread: Thread, call: str) -> list[Fate]:
    return [
        thread.fates[asked.id] for asked in thread.asked.values() if asked.call == call and asked.id in thread.fates
    ]


def ran(thread: Thread, call: str) -> None:
    """The call is seen to run."""
    for fate in _fates(thread, call):
        if fate.resolved:
            fate.ran = True


def fate_of(thread: Thread, call: str, *, ran: bool | None) -> None:
    """The call has ended; None: whether it ran does not show."""
    for fate in _fates(thread, call):
        if ran is not None:
            fate.declined, fate.ran = not ran, ran


def known_changes(thread: Thread, call: str) -> list[Json] | None:
    """The changes that a call asks for, None where they were told before we came."""
    return thread.changes.get(call) or None
