"""What an operator does, carried out on the app-server."""

from __future__ import annotations

from typing import Final, Protocol
from uuid import uuid4

from console.connectors.codex import deciding, offers
from console.connectors.codex.deciding import Deciding, commands_of, until
from console.connectors.codex.feed import Feed
from console.connectors.codex.rpc import CallRefused
from console.connectors.codex.state import Thread
from console.connectors.web.reading import Json, text
from watchfloor.errors import StaleTarget
from watchfloor.foreign import Handled, Mirror
from watchfloor.protocol.events import Event, Mail, MailState
from watchfloor.protocol.frames import (
    Command,
    DoAct,
    DoAnswer,
    DoApprove,
    DoBudget,
    DoDelete,
    DoFork,
    DoInterrupt,
    DoPause,
    DoReseed,
    DoResume,
    DoSend,
)
from watchfloor.protocol.model import JsonObject
from watchfloor.words import Delivery, OutcomeKind, Priority, ReseedMode

SHOWN_S: Final = 10.0
"""Seconds that the server may take to show what it has accepted."""
_NOT_RUNNING: Final = ("no active turn", "expected active turn id")
_NO_THREAD: Final = ("thread not found", "no rollout found", "thread not loaded")
_LIST_PROCESSES: Final = "thread/backgroundTerminals/list"
_APPLIED: Final = OutcomeKind.APPLIED


class Server(deciding.Server, Protocol):
    """What is needed of the connection."""

    async def join(self, thread: Thread) -> None: ...

    async def turn_ids(self, thread: Thread) -> list[str]: ...


class Acting:
    """Carries out commands, each at most once."""

    def __init__(self, feed: Feed, server: Server, mirror: Mirror) -> None:
        self._feed = feed
        self._server = server
        self._mirror = mirror
        self._deciding = Deciding(feed.asking, server, mirror, feed.show, self._tell_why)

    async def execute(self, command: Command, by: str) -> Handled:
        thread = self._feed.threads.get(command.session)
        if thread is None:
            raise StaleTarget("the server has no such thread any more")
        try:
            return await self._do(thread, command, by)
        except CallRefused as refused:
            return _refused(refused)

    async def _do(self, thread: Thread, command: Command, by: str) -> Handled:
        do = command.do
        match do:
            case DoApprove() | DoAnswer():
                return await self._deciding.decide(thread, do, by)
            case DoSend():
                return await self._send(thread, do, command, by)
            case DoInterrupt():
                return await self._interrupt(thread, command)
            case DoPause() | DoResume():
                status = "paused" if isinstance(do, DoPause) else "active"
                return await self._call("thread/goal/set", thread, status=status, origin="user")
            case DoBudget():
                return await self._call("thread/goal/set", thread, tokenBudget=do.tokens, origin="user")
            case DoReseed():
                return await self._reseed(thread, do)
            case DoFork():
                return await self._fork(thread, do)
            case DoDelete():
                return await self._call("thread/delete", thread)
            case DoAct():
                return await self._act(thread, do)
            case _:
                return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason="a thread has no such control")

    async def _call(self, method: str, thread: Thread, **params: object) -> Handled:
        await self._server.rpc.call(method, {"threadId": thread.id, **params})
        return Handled(_APPLIED)

    # --- messages

    async def _send(self, thread: Thread, do: DoSend, command: Command, by: str) -> Handled:
        rpc = self._server.rpc
        ref = thread.ref(command.id)
        said = {"threadId": thread.id, "input": [{"type": "text", "text": do.text, "text_elements": []}]}
        marked = {**said, "clientUserMessageId": command.id}
        if do.priority is Priority.QUEUE:
            self._tell_sent(thread, command, ref, Delivery.QUEUED, do.text, by)
            await self._sent(thread, command, ref, rpc.call("thread/queue/add", marked))
            return Handled(_APPLIED, info={"ref": ref, "delivery": Delivery.QUEUED.value})
        await self._follow(thread)
        if thread.turn is not None and thread.active:
            try:
                return await self._steer(thread, command, ref, {**marked, "expectedTurnId": thread.turn}, do.text, by)
            except CallRefused as refused:
                # It ended in this moment. Who named that turn did not mean another one.
                if command.turn is not None or not _says(refused, _NOT_RUNNING):
                    raise
        self._tell_sent(thread, command, ref, Delivery.STARTED, do.text, by)
        answer = await self._sent(thread, command, ref, rpc.call("turn/start", marked))
        turn = text(answer, "turn", "id")
        return Handled(_APPLIED, info={"ref": ref, "delivery": Delivery.STARTED.value, "turn": turn})

    async def _steer(self, thread: Thread, command: Command, ref: str, params: Json, said: str, by: str) -> Handled:
        answer = await self._server.rpc.call("turn/steer", params)
        self._tell_sent(thread, command, ref, Delivery.STEERED, said, by)
        return Handled(_APPLIED, info={"ref": ref, "delivery": Delivery.STEERED.value, "turn": text(answer, "turnId")})

    def _tell_sent(self, thread: Thread, command: Command, ref: str, how: Delivery, said: str, by: str) -> None:
        key = f"mail/{command.id}/queued" if how is Delivery.QUEUED else f"mail/{command.id}/sent"
        self._emit(thread, Mail(at=0, ref=ref, state=MailState.SENT, delivery=how, text=said, by=by, key=key))

    def _emit(self, thread: Thread, event: Event) -> None:
        """Tell what happened on a thread, unless it was deleted meanwhile."""
        if self._feed.has_still(thread):
            self._mirror.emit(thread.id, event)

    async def _sent(self, thread: Thread, command: Command, ref: str, call: object) -> Json:
        """The answer to a message that was told as sent; told as failed where the server refuses it."""
        try:
            answer: Json = await call  # type: ignore[misc]
        except CallRefused as refused:
            key = f"mail/{command.id}/error"
            self._emit(thread, Mail(at=0, ref=ref, state=MailState.ERROR, error=str(refused), key=key))
            raise
        return answer

    async def _tell_why(self, thread: Thread, said: str, by: str) -> None:
        """Tell the agent why something was denied, in the turn that runs. Raises CallRefused."""
        id = f"why-{uuid4()}"
        content = [{"type": "text", "text": said, "text_elements": []}]
        marked = {"threadId": thread.id, "input": content, "clientUserMessageId": id}
        await self._server.rpc.call("turn/steer", {**marked, "expectedTurnId": thread.turn})
        ref, key = thread.ref(id), f"mail/{id}/sent"
        self._emit(
            thread, Mail(at=0, ref=ref, state=MailState.SENT, delivery=Delivery.STEERED, text=said, by=by, key=key)
        )

    async def _follow(self, thread: Thread) -> None:
        """A thread must be loaded to take a message, and followed to see what becomes of it."""
        if thread.joined:
            return
        try:
            await self._server.join(thread)
        except CallRefused:
            # A new thread without a message is loaded, and cannot be joined before its first turn runs.
            if not thread.loaded:
                raise

    # --- the running turn

    async def _interrupt(self, thread: Thread, command: Command) -> Handled:
        await self._follow(thread)
        turn = command.turn or thread.turn
        if turn is None and thread.active:
            return Handled(OutcomeKind.REFUSED, reason="the server has not told which turn runs: try again")
        if turn is None:
            return Handled(OutcomeKind.INVALID, reason="no turn runs")
        await self._server.rpc.call("turn/interrupt", {"threadId": thread.id, "turnId": turn})
        await until(self._server, lambda: thread.turn != turn, SHOWN_S)
        if _LIST_PROCESSES not in self._feed.has:
            return Handled(_APPLIED, reason="the server does not tell whether commands of the turn go on")
        living = commands_of(await self._server.processes(thread))
        info: JsonObject = {"processes": list(living)} if living else {}
        return Handled(_APPLIED, reason=_live_on(living), info=info)

    async def _reseed(self, thread: Thread, do: DoReseed) -> Handled:
        match do.mode:
            case ReseedMode.COMPACT:
                await self._follow(thread)
                return await self._call("thread/compact/start", thread)
            case ReseedMode.MODEL:
                if not do.to:
                    return Handled(OutcomeKind.INVALID, reason="name the model")
                await self._follow(thread)
                return await self._call("thread/settings/update", thread, model=do.to)
            case ReseedMode.REWIND:
                return await self._rewind(thread, do.to or "")
            case _:
                return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=f"no reseed with mode {do.mode.value}")

    async def _rewind(self, thread: Thread, to: str) -> Handled:
        """The server cuts between turns: the turn that the message began goes, with all that came after."""
        turns = await self._server.turn_ids(thread)
        first = thread.turn_of.get(to, to)
        if first not in turns:
            return Handled(OutcomeKind.INVALID, reason="name a turn, or a message, that the thread has")
        if to != first and to not in _beginning(thread, first):
            reason = "the server cuts between turns, and this message steered one: name the one that began it"
            return Handled(OutcomeKind.INVALID, reason=reason)
        gone = turns[turns.index(first) :]
        await self._follow(thread)
        await self._server.rpc.call("thread/revert", {"threadId": thread.id, "beforeTurnId": first})
        return Handled(_APPLIED, reason="files are as they were left", info={"turns_dropped": len(gone)})

    async def _fork(self, thread: Thread, do: DoFork) -> Handled:
        rpc = self._server.rpc
        answer = await rpc.call("thread/fork", {"threadId": thread.id, "excludeTurns": True})
        new = text(answer, "thread", "id")
        if new is None:
            return Handled(OutcomeKind.UNKNOWN, reason="the server did not say which thread is the new one")
        info: JsonObject = {"session": new}
        if do.name:
            try:
                await rpc.call("thread/name/set", {"threadId": new, "name": do.name})
            except CallRefused as refused:
                return Handled(_APPLIED, reason=f"it has not got the name: {refused}", info=info)
        return Handled(_APPLIED, info=info)

    # --- acts

    async def _act(self, thread: Thread, do: DoAct) -> Handled:
        fields = do.fields
        match do.act:
            case offers.END_PROCESSES:
                return await self._end_processes(thread)
            case offers.NAME:
                return await self._call("thread/name/set", thread, name=text(fields, "name") or "")
            case offers.ARCHIVE:
                return await self._call("thread/archive", thread)
            case offers.UNARCHIVE:
                return await self._call("thread/unarchive", thread)
            case offers.SET_GOAL:
                await self._follow(thread)
                objective = text(fields, "objective") or ""
                return await self._call("thread/goal/set", thread, objective=objective, origin="user")
            case offers.CLEAR_GOAL:
                return await self._call("thread/goal/clear", thread, origin="user")
            case offers.UNQUEUE:
                return await self._unqueue(thread, text(fields, "ref") or "")
            case _:
                return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason="a thread has no such act")

    async def _end_processes(self, thread: Thread) -> Handled:
        before = await self._server.processes(thread)
        if not before:
            return Handled(_APPLIED, reason="none runs", info={"noop": True})
        await self._server.rpc.call("thread/backgroundTerminals/clean", {"threadId": thread.id})
        ids = {text(entry, "itemId") for entry in before}
        await until(self._server, lambda: not ids & thread.begun.keys(), SHOWN_S)
        left = commands_of(await self._server.processes(thread))
        info: JsonObject = {"ended": len(before) - len(left), "processes": list(left)}
        return Handled(_APPLIED, reason=_live_on(left), info=info)

    async def _unqueue(self, thread: Thread, ref: str) -> Handled:
        for entry in thread.queue:
            client = text(entry, "clientUserMessageId") or text(entry, "id") or ""
            if thread.refs.get(client) == ref:
                answer = await self._server.rpc.call(
                    "thread/queue/delete", {"threadId": thread.id, "queuedSubmissionId": text(entry, "id")}
                )
                if answer.get("deleted") is False:
                    break
                gone = Mail(
                    at=0, ref=ref, state=MailState.ERROR, error="taken from the queue", key=f"mail/{client}/error"
                )
                self._emit(thread, gone)
                return Handled(_APPLIED)
        return Handled(OutcomeKind.STALE_TARGET, reason="no such message is in the queue")


def _live_on(commands: list[str]) -> str | None:
    if not commands:
        return None
    shown = "; ".join(commands[:3]) + (f" and {len(commands) - 3} more" if len(commands) > 3 else "")
    return f"still running: {shown}"


def _says(refused: CallRefused, words: tuple[str, ...]) -> bool:
    return any(word in str(refused) for word in words)


def _refused(refused: CallRefused) -> Handled:
    """The server said no: nothing was done. It has no codes for its reasons, only words."""
    if refused.draining:
        return Handled(OutcomeKind.REFUSED, reason="the server is shutting down: it takes nothing new")
    if refused.unknown is not None:
        return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=str(refused))
    if _says(refused, _NOT_RUNNING) or _says(refused, _NO_THREAD):
        return Handled(OutcomeKind.STALE_TARGET, reason=str(refused))
    return Handled(OutcomeKind.REFUSED, reason=str(refused))


def _beginning(thread: Thread, turn: str) -> list[str]:
    """The names of the message that began the turn: its id, and its ref where it is one of ours."""
    names = [name for name, of in thread.turn_of.items() if of == turn]
    return names[: 2 if len(names) > 1 and names[1].startswith("#") else 1]
