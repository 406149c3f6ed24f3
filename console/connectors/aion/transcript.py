"""One attempt's transcript: aion's events in, what to tell of them out.

`store_seq` numbers the stored events from 0 without holes. Repetitions are dropped by it first, then order is kept by
it: what comes too early waits, and `missing` says from where to read it.
"""

from __future__ import annotations

from typing import Final

from console.connectors.aion import approvals, kinds
from console.connectors.aion.previews import Previews
from console.connectors.aion.reading import NIL, Json, millis, number, obj, shown, tagged, text
from console.connectors.aion.steps import Asked, CutShort, NoLongerAsked, Piece, Step, Tell, Used
from watchfloor.protocol.events import Event, Level, Message, Notice, Progress, Reasoning, Speaker
from watchfloor.protocol.model import Usage

NOISE: Final = "tool_call_delta"
"""A passing note of `norn` agents, one for every token of a tool call."""
RETENTION: Final = "transcript retention cap reached"
OPERATOR: Final = "operator"
MOST_CALLS: Final = 1000
_ROLES: Final = {"Assistant": Speaker.ASSISTANT, "User": Speaker.USER, "System": Speaker.SYSTEM}


class Transcript:
    """The transcript of attempt number `attempt`. Every method returns what follows, in order."""

    def __init__(self, attempt: int) -> None:
        self.attempt: Final = attempt
        self.next = 0
        """The number of the next stored event."""
        self.usage: Usage | None = None
        self.asked: dict[str, Asked] = {}
        """Open requests by the agent's call id."""
        self.running: dict[str, tuple[str, int]] = {}
        """Tool calls without a result: name and since when."""
        self._early: dict[int, Json] = {}
        self._previews = Previews(attempt)
        self._roles: dict[str, str] = {}
        self._note: tuple[str, str] = ("", "")
        self._notes = 0
        self._beyond = False
        self._losses = 0

    @property
    def name(self) -> str:
        """Begins the keys of its events: what is numbered anew is no repetition."""
        return f"{self.attempt}.{self._losses}" if self._losses else str(self.attempt)

    # --- what comes

    def begin_at(self, seq: int) -> list[Step]:
        """What is stored before `seq` is not read."""
        if self.next >= seq:
            return []
        self.next = seq
        note = f"the first {seq} events of this attempt were not read"
        return [self._notice(f"{self.name}/begin", "tail_only", note)]

    def take(self, event: object) -> list[Step]:
        """One event, from a page or a socket."""
        body = obj(event)
        seq = number(body.get("store_seq"))
        if seq is None:
            return self._passing(body)
        if seq < self.next or seq in self._early:
            return []
        worker = number(body.get("worker_seq"))
        if worker is not None and text(body.get("agent_id")) != NIL:
            self._previews.heard(worker)
        self._early[seq] = body
        return self._in_order()

    def missing(self) -> int | None:
        """The number to read from, where later events have come already."""
        return self.next if self._early else None

    def give_up(self) -> list[Step]:
        """What is missing cannot be had: go on after it, and say so."""
        if not self._early:
            return []
        found = min(self._early)
        note = f"events {self.next} to {found - 1} of this attempt are missing"
        steps: list[Step] = [self._notice(f"{self.name}/gap/{self.next}", "gap", note)]
        self.next = found
        return steps + self._in_order()

    def lost(self, head: int) -> list[Step]:
        """The server stores fewer events (`head`) than were read: it lost them, and numbers anew."""
        note = f"the server has lost what it stored of this attempt: {self.next} events were read, it has {head} now"
        steps = [*self._counted(), *self._cut(self._previews.renewed())]
        steps += self._withdraw("the server has lost what the agent asked")
        self.running.clear()
        self._early.clear()
        self._losses += 1
        self.next, self._beyond = 0, False
        return [*steps, self._notice(f"{self.name}/lost", "lost", note)]

    def interrupted(self) -> None:
        """The connection broke: pieces may be missing from now on, stored events are not."""
        self._previews.interrupted()

    def joins(self) -> None:
        """What is being said is followed from now on; what was stored was read."""
        if self.next:
            self._previews.joins()

    def ended(self) -> list[Step]:
        """The attempt is over."""
        self.running.clear()
        why = f"attempt {self.attempt} is over"
        return [*self._counted(), *self._cut(self._previews.all()), *self._withdraw(why)]

    def decided(self, call: str) -> None:
        """We have answered the request of this call."""
        self.asked.pop(call, None)

    # --- order

    def _in_order(self) -> list[Step]:
        steps: list[Step] = []
        while (body := self._early.pop(self.next, None)) is not None:
            self.next += 1
            worker = number(body.get("worker_seq"))
            if worker is not None and text(body.get("agent_id")) != NIL:
                life = self._previews.life
                steps += self._cut(self._previews.stored(worker))
                if self._previews.life != life:
                    self.running.clear()
                    steps += self._withdraw("its agent was replaced by a new one")
            steps += self._read(body, number(body.get("store_seq")))
        return steps

    def _passing(self, body: Json) -> list[Step]:
        if body.get("ephemeral") is True:
            return self._preview(body)
        steps: list[Step] = []
        if not self._beyond:
            self._beyond = True
            note = "the server keeps no more of this attempt: what follows is shown once and cannot be read again"
            steps.append(self._notice(f"{self.name}/beyond", "beyond_retention", note))
        return steps + self._read(body, None)

    def _preview(self, body: Json) -> list[Step]:
        kind, author = obj(body.get("kind")), self._author(body)
        worker = number(body.get("worker_seq")) or 0
        detail = obj(kind.get("detail"))
        match tagged(kind, "kind"), tagged(detail, "detail"):
            case "Delta", _:
                return self._piece(author, "message", kind.get("message_id"), worker, kind.get("text_fragment"))
            case "Progress", "Thinking":
                return self._piece(author, "reasoning", detail.get("message_id"), worker, detail.get("text"))
            case "Progress", "Note" if detail.get("text") == NOISE:
                return []
            case _:
                self._previews.heard(worker)
                what = text(detail.get("text")) or shown(kind)
                at = millis(body.get("emitted_at"))
                note = f"{what} (passing, not kept)"
                who = {"attempt": self.attempt, "author": author or None}
                return [Tell(Notice(at=at, level=Level.DEBUG, code="ephemeral", text=note).model_copy(update=who))]

    def _piece(self, author: str, of: str, message: object, worker: int, piece: object) -> list[Step]:
        item, shown_piece, gone = self._previews.piece(author, of, text(message), worker, text(piece))
        pieces: list[Step] = [Piece(item, of, shown_piece)] if item else []
        return [*self._cut(gone), *pieces]

    # --- reading

    def _read(self, body: Json, seq: int | None) -> list[Step]:
        kind = obj(body.get("kind"))
        name, detail = tagged(kind, "kind"), obj(kind.get("detail"))
        if name == "Progress":
            return self._progress(body, kind, detail, seq)
        return [*self._counted(), *self._told(body, name, kind, seq)]

    def _told(self, body: Json, name: str, kind: Json, seq: int | None) -> list[Step]:
        match name:
            case "Message":
                return self._message(body, kind, seq)
            case "ToolCall":
                call = kinds.call(kind)
                if len(self.running) < MOST_CALLS:
                    self.running[call.call] = (call.name, millis(body.get("emitted_at")))
                return [self._tell(call, body, seq)]
            case "ToolResult":
                return self._result(body, kind, seq)
            case "Stop":
                return [self._tell(kinds.stop(obj(kind.get("reason"))), body, seq)]
            case "Raw":
                return self._raw(body, kind, seq)
            case _:
                return [self._tell(kinds.unknown(kind), body, seq)]

    def _message(self, body: Json, kind: Json, seq: int | None) -> list[Step]:
        said, role, stands_as = text(kind.get("text")), tagged(kind.get("role"), "role"), text(body.get("agent_role"))
        if role == "Tool":
            return [self._tell(kinds.output(stands_as, said), body, seq)]
        if role == "User" and text(body.get("agent_id")) == NIL and stands_as == OPERATOR:
            return [self._tell(Message(at=0, role=Speaker.OPERATOR, text=said), body, seq)]
        item: str | None = None
        rest: list[str] = []
        if role == "Assistant":
            item, rest = self._previews.ended_by(self._author(body), number(body.get("worker_seq")) or 0, said)
        message = Message(at=0, role=_ROLES.get(role, Speaker.ASSISTANT), text=said, item=item)
        return [*self._cut(rest), self._tell(message, body, seq)]

    def _result(self, body: Json, kind: Json, seq: int | None) -> list[Step]:
        result = kinds.result(kind)
        self.running.pop(result.call, None)
        asked = self.asked.pop(result.call, None)
        ended: list[Step] = [NoLongerAsked(asked.id, "")] if asked is not None else []
        return [self._tell(result, body, seq), *ended]

    def _progress(self, body: Json, kind: Json, detail: Json, seq: int | None) -> list[Step]:
        said = text(detail.get("text"))
        match tagged(detail, "detail"):
            case "Note" if said.startswith(RETENTION):
                notice = Notice(at=0, level=Level.WARNING, code="retention", text=said)
                return [*self._counted(), self._tell(notice, body, seq)]
            case "Note":
                return self._noted(body, said, seq)
            case "UsageEstimate":
                # Not counted as an end of repeated notes, and never taken for one.
                return self._used(body, detail, seq)
            case "Thinking":
                item = self._previews.ended_as(self._author(body), text(detail.get("message_id")))
                return [*self._counted(), self._tell(Reasoning(at=0, text=said, item=item), body, seq)]
            case _:
                return [*self._counted(), self._tell(kinds.unknown(kind), body, seq)]

    def _noted(self, body: Json, said: str, seq: int | None) -> list[Step]:
        """Notes that repeat each other are told once, and counted."""
        note = (self._author(body), said)
        if note == self._note:
            self._notes += 1
            return []
        counted = self._counted()
        self._note = note
        return [*counted, self._tell(Progress(at=0, note=said), body, seq)]

    def _counted(self) -> list[Step]:
        (author, said), more = self._note, self._notes
        self._note, self._notes = ("", ""), 0
        if not more:
            return []
        progress = kinds.counted(said, more)
        return [Tell(progress.model_copy(update={"attempt": self.attempt, "author": author or None}))]

    def _used(self, body: Json, detail: Json, seq: int | None) -> list[Step]:
        told, spent = number(detail.get("input_tokens")), number(detail.get("output_tokens"))
        before = self.usage or Usage()
        self.usage = Usage(
            input_tokens=before.input_tokens if told is None else told,
            output_tokens=before.output_tokens if spent is None else spent,
        )
        return [self._tell(Progress(at=0, usage=self.usage), body, seq), Used()]

    def _raw(self, body: Json, kind: Json, seq: int | None) -> list[Step]:
        value = obj(kind.get("value"))
        if (item := kinds.reasoning_item(value)) is not None:
            whole = kinds.reasoning(item)
            preview = self._previews.ended_as(self._author(body), text(item.get("id")))
            return [self._tell(whole.model_copy(update={"item": preview}), body, seq)]
        if text(kind.get("source")) != approvals.SOURCE:
            return [self._tell(kinds.raw(kind), body, seq)]
        at = millis(body.get("emitted_at"))
        # What is stored no more has no number; it never comes again, so the agent's own number will do.
        place = str(seq) if seq is not None else f"{self._previews.life}.{number(body.get('worker_seq')) or 0}+"
        asked = approvals.asked(value, name=f"{self.name}:{place}", at=at)
        if asked is None:
            return [self._tell(kinds.raw(kind), body, seq)]
        before = self.asked.get(asked.call)
        self.asked[asked.call] = asked
        again: list[Step] = [NoLongerAsked(before.id, "it was asked anew")] if before is not None else []
        return [*again, self._tell(kinds.raw(kind), body, seq), asked]

    # --- making

    def _tell(self, event: Event, body: Json, seq: int | None) -> Tell:
        fill: dict[str, object] = {"at": millis(body.get("emitted_at")), "attempt": self.attempt}
        if author := self._author(body):
            fill["author"] = author
        if seq is not None:
            fill["key"] = f"{self.name}/{seq}"
        return Tell(event.model_copy(update=fill))

    def _author(self, body: Json) -> str:
        """Who speaks: its role, told apart where two agents have the same."""
        role, id = text(body.get("agent_role")), text(body.get("agent_id"))
        first = self._roles.setdefault(role, id)
        return role if first == id or not id else f"{role} {id[:8]}"

    def _notice(self, key: str, code: str, words: str) -> Tell:
        return Tell(Notice(at=0, attempt=self.attempt, level=Level.WARNING, code=code, text=words, key=key))

    def _cut(self, items: list[str]) -> list[Step]:
        return [CutShort(tuple(items))] if items else []

    def _withdraw(self, why: str) -> list[Step]:
        gone = list(self.asked.values())
        self.asked.clear()
        return [NoLongerAsked(asked.id, why) for asked in gone]
