"""The requests of one session: the first decision wins, and whoever comes later is told who, what and when.

A decision is checked against the host's own copy of the request: its digest is computed anew, the option
must be one of the request's, and it must fit the primitive that carries it. Decided requests are
remembered for a while, so that a late approver learns what became of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue, ValidationError

from watchfloor.canonical import subject_digest
from watchfloor.errors import ContractError
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.answers import check_answer, record
from watchfloor.protocol.frames import DoAnswer, DoApprove
from watchfloor.protocol.given import given
from watchfloor.protocol.model import Decision, Option, RequestModel, RequestRef, Subject
from watchfloor.words import OptionKind, OutcomeKind, Primitive, RequestKind, RequestState, Scope

REMEMBERED: Final = 500
"""Requests of a session that are still known after their end."""
BY_DEADLINE: Final = "the deadline"
NOTE: Final = 500
"""Code points that are kept of a note, and of what was answered."""

_COVERS: Final[Mapping[Primitive, frozenset[OptionKind]]] = {
    Primitive.APPROVE: frozenset({OptionKind.ALLOW, OptionKind.DENY, OptionKind.EDIT}),
    # A question is declined by answering it so.
    Primitive.ANSWER: frozenset({OptionKind.ANSWER, OptionKind.DENY}),
}
_KIND: Final[Mapping[Primitive, RequestKind]] = {
    Primitive.APPROVE: RequestKind.APPROVAL,
    Primitive.ANSWER: RequestKind.QUESTION,
}


@dataclass(frozen=True, slots=True)
class Taken:
    """A decision that stands: what the agent is told, and the request as it is now."""

    request: RequestModel
    option: Option | None
    kind: OptionKind
    decision: Decision
    # What may be secret is in no representation.
    text: str | None = field(default=None, repr=False)
    fields: Mapping[str, JsonValue] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A decision that changed nothing."""

    outcome: OutcomeKind
    reason: str
    decided: Decision | None = None


@dataclass(slots=True)
class _Entry:
    request: RequestModel
    subject: Subject


class Requests:
    """Open and lately ended requests of one session."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._open: OrderedDict[str, _Entry] = OrderedDict()
        self._ended: OrderedDict[str, tuple[_Entry, str]] = OrderedDict()
        self._used: set[str] = set()

    # --- what is there

    def open(self) -> list[RequestModel]:
        """The open requests, oldest first."""
        return [entry.request for entry in self._open.values()]

    def refs(self) -> tuple[RequestRef, ...]:
        """The open requests as a summary lists them."""
        return tuple(
            RequestRef(
                id=id,
                kind=entry.subject.kind,
                asked_at=entry.request.asked_at,
                deadline=entry.request.deadline,
                digest=entry.request.digest,
            )
            for id, entry in self._open.items()
        )

    def __contains__(self, id: str) -> bool:
        return id in self._open

    def __bool__(self) -> bool:
        return bool(self._open)

    def has(self, kind: RequestKind) -> bool:
        return any(entry.subject.kind is kind for entry in self._open.values())

    def blocking(self) -> bool:
        return any(entry.request.blocks for entry in self._open.values())

    def calls(self) -> frozenset[str]:
        """The tool calls that wait for an open request."""
        return frozenset(a.call for entry in self._open.values() for a in entry.subject.actions if a.call is not None)

    def option(self, request: str, option: str | None) -> Option | None:
        """An option of a request that is open, or ended lately; None where it has none of this id."""
        entry = self._open.get(request) or self._ended.get(request, (None,))[0]
        return next((o for o in entry.subject.options if o.id == option), None) if entry is not None else None

    def ended(self, id: str) -> RequestModel | None:
        """A request that ended lately, as it is now."""
        found = self._ended.get(id)
        return found[0].request if found is not None else None

    def next_deadline(self) -> int | None:
        return min((e.request.deadline for e in self._open.values() if e.request.deadline is not None), default=None)

    # --- opening and ending

    def put_back(self, requests: Sequence[RequestModel]) -> None:
        """Open again what was open when it was kept."""
        for request in requests:
            subject = request.read()
            self._used.add(subject.id)
            self._open[subject.id] = _Entry(request, subject)

    def ask(
        self,
        request: RequestModel,
        attempt: int | None,
        states: Collection[RequestState] = (RequestState.OPEN,),
    ) -> tuple[RequestModel, Subject]:
        """Open a request, in one of these states; returns it as it is kept, and its subject.

        Raises ContractError where it is not one of this session, or its id was used before.
        """
        try:
            subject = request.read()
        except ValidationError as error:
            raise ContractError(f"malformed request: {error.errors()[0]['msg']}") from None
        if subject.session != self._session or subject.attempt != attempt:
            raise ContractError(
                f"request {subject.id!r} names session {subject.session!r}, attempt {subject.attempt}; "
                f"this is {self._session!r}, attempt {attempt}"
            )
        if subject.id in self._used:
            raise ContractError(f"the request id {subject.id!r} was used before; an id is unique for ever")
        if request.state not in states:
            raise ContractError(f"request {subject.id!r} is asked in the state {request.state.value!r}")
        if request.digest != subject_digest(request.subject):
            raise ContractError(f"the digest of request {subject.id!r} is not that of its subject")
        self._used.add(subject.id)
        # Set, so that it is written: who reads the frame should not have to know the default.
        self._open[subject.id] = _Entry(request.model_copy(update={"state": request.state}), subject)
        return self._open[subject.id].request, subject

    def fits(self, do: DoApprove | DoAnswer) -> Option | Rejected | None:
        """Would the decision stand? The option that it takes (None: it is in words), or why not. Nothing changes."""
        entry = self._find(do.request, do.digest)
        if isinstance(entry, Rejected):
            return entry
        if isinstance(do, DoApprove):
            return self._option(entry, do.option, Primitive.APPROVE)
        if entry.subject.kind is not RequestKind.QUESTION:
            return _no(f"{entry.subject.id} is an approval: approve or deny it")
        option: Option | None = None
        if do.option is not None:
            found = self._option(entry, do.option, Primitive.ANSWER)
            if isinstance(found, Rejected):
                return found
            option = found
        fault = check_answer(entry.subject, do)
        return option if fault is None else _no(fault)

    def approve(self, do: DoApprove, by: str, now: int) -> Taken | Rejected:
        """Take an option of an approval."""
        option = self.fits(do)
        if isinstance(option, Rejected):
            return option
        assert option is not None  # noqa: S101 - an approval is always decided by an option
        entry = self._open[do.request]
        return self._decide(entry, option, option.kind, by, now, note=do.note, automatic=do.automatic)

    def answer(self, do: DoAnswer, by: str, now: int) -> Taken | Rejected:
        """Answer a question by an option, in words, or by its fields."""
        option = self.fits(do)
        if isinstance(option, Rejected):
            return option
        entry = self._open[do.request]
        note = record(entry.subject, do)
        kind = OptionKind.ANSWER if option is None else option.kind
        return self._decide(entry, option, kind, by, now, note=note, text=do.text, fields=do.fields)

    def withdraw(self, id: str, why: str) -> RequestModel | None:
        """The request needs no decision any more. None where it is not open."""
        return self.end(id, RequestState.WITHDRAWN, None, why)

    def end(self, id: str, state: RequestState, decision: Decision | None, why: str) -> RequestModel | None:
        """The request has ended like this; returns it as it is now, None where it is not open."""
        entry = self._open.pop(id, None)
        if entry is None:
            return None
        entry.request = entry.request.model_copy(update={"state": state, **given(decision=decision)})
        self._ended[id] = (entry, why)
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        return entry.request

    def reopen(self, id: str) -> None:
        """A request that ended here is open all the same: its id may ask anew."""
        if self._ended.pop(id, None) is not None:
            self._used.discard(id)

    def forget(self, id: str) -> None:
        """Take an open request back as if it had never been asked, so that its id may ask anew."""
        if self._open.pop(id, None) is not None:
            self._used.discard(id)

    def due(self, now: int) -> list[Taken | RequestModel]:
        """Requests whose deadline has passed: decided by the option that their author named for it, or expired."""
        ended: list[Taken | RequestModel] = []
        for id, entry in list(self._open.items()):
            deadline = entry.request.deadline
            if deadline is None or deadline > now:
                continue
            option = next((o for o in entry.subject.options if o.id == entry.request.at_deadline), None)
            if option is not None:
                ended.append(self._decide(entry, option, option.kind, BY_DEADLINE, now, automatic=True))
            elif (expired := self.end(id, RequestState.EXPIRED, None, "its deadline passed")) is not None:
                ended.append(expired)
        return ended

    # --- inside

    def _find(self, id: str, digest: str) -> _Entry | Rejected:
        if id in self._ended:
            entry, why = self._ended[id]
            decision = entry.request.decision
            if decision is not None:
                what = decision.option or "an answer"
                return Rejected(OutcomeKind.ALREADY_DECIDED, f"{what}, by {decision.by}", decision)
            return Rejected(OutcomeKind.STALE_TARGET, f"the request was {entry.request.state.value}: {why}")
        entry_ = self._open.get(id)
        if entry_ is None:
            return Rejected(OutcomeKind.STALE_TARGET, "no such request")
        if digest != subject_digest(entry_.request.subject):
            return Rejected(OutcomeKind.STALE_TARGET, "the digest differs: the request is not what was shown")
        return entry_

    def _option(self, entry: _Entry, id: str, primitive: Primitive) -> Option | Rejected:
        if entry.subject.kind is not _KIND[primitive]:
            fit = "answer it" if entry.subject.kind is RequestKind.QUESTION else "approve or deny it"
            return _no(f"{entry.subject.id} is of the kind {entry.subject.kind.value}: {fit}")
        option = next((o for o in entry.subject.options if o.id == id), None)
        if option is None:
            known = ", ".join(o.id for o in entry.subject.options) or "none"
            # What was given is not repeated: it may be what belongs into a secret field.
            return _no(f"that is not an option of this request ({known})")
        if option.kind not in _COVERS[primitive]:
            return _no(
                f"the option '{shown(id)}' is of the kind {option.kind.value}, which {primitive.value} does not cover"
            )
        return option

    def _decide(
        self,
        entry: _Entry,
        option: Option | None,
        kind: OptionKind,
        by: str,
        now: int,
        *,
        note: str | None = None,
        text: str | None = None,
        fields: Mapping[str, JsonValue] | None = None,
        automatic: bool = False,
    ) -> Taken:
        rest = given(option=option and option.id, note=note and _bounded(note))
        decision = Decision(kind=kind, by=by, at=now, automatic=automatic, **rest)
        request = self.end(entry.subject.id, RequestState.RESOLVED, decision, "")
        assert request is not None  # noqa: S101 - the entry was found among the open ones
        return Taken(request, option, kind, decision, text, fields)


def narrowest(subject: Subject, *, approved: bool) -> Option | None:
    """The option that allows this once and no more, or (not `approved`) one that denies; None where there is none."""
    if not approved:
        return next((option for option in subject.options if option.kind is OptionKind.DENY), None)
    allows = [o for o in subject.options if o.kind is OptionKind.ALLOW and not o.persists]
    return next((option for option in allows if option.scope is Scope.ONCE), None)


def _bounded(note: str) -> str:
    return note if len(note) <= NOTE else f"{note[: NOTE - 1]}…"


def _no(reason: str) -> Rejected:
    return Rejected(OutcomeKind.INVALID, reason)
