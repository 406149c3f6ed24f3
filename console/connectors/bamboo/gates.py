"""Tool calls of children that wait for somebody else: a person, or the parent's model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from console.connectors.bamboo.requests import child_request
from console.connectors.bamboo.state import Gate, Session, Want
from console.connectors.web.reading import Json, millis, number, text
from watchfloor.foreign import Mirror
from watchfloor.protocol.model import Decision
from watchfloor.words import RequestState

PENDING: Final = "pending"
EARLY: Final = 1_000


class Sessions(Protocol):
    """The sessions whose gates these are."""

    @property
    def sessions(self) -> dict[str, Session]: ...

    @property
    def wants(self) -> set[tuple[Want, str]]:
        """What has to be asked of the server."""
        ...

    def show(self, session: Session) -> None:
        """The session has changed."""
        ...


class Gates:
    """A gate that the server announces is asked of a person. One that only its snapshot lists is decided by the
    parent's model, and a person's word on it is not taken."""

    def __init__(self, feed: Sessions, mirror: Mirror) -> None:
        self._feed = feed
        self._mirror = mirror
        self._ended: set[str] = set()
        self._early: dict[str, list[tuple[Json, str]]] = {}
        """What was told of children that are not known yet: child -> events, each with its parent."""

    def changed(self, event: Json, *, parent: str = "") -> None:
        """`child_approval_requested` or `child_approval_changed`."""
        gate = _gate(event, parent, asks=True)
        gate.known_at = self._mirror.now()
        session = self._feed.sessions.get(gate.child)
        if session is None:
            if gate.child and len(self._early) < EARLY:
                self._early.setdefault(gate.child, []).append((event, parent))
                self._feed.wants.add((Want.READ, gate.child))
            return
        status = text(event, "status") or PENDING
        if status != PENDING:
            self.end(
                session, gate.request, f"it is {status.replace('_', ' ')}: {text(event, 'reason') or 'no reason given'}"
            )
        elif gate.id not in self._ended:
            known = session.gates.get(gate.request)
            if known is not None and gate.version is None:
                gate.version, gate.attempt = known.version, known.attempt
            session.gates[gate.request] = gate
            self._feed.show(session)
            self._mirror.ask(session.id, child_request(gate, now=self._mirror.now()))

    def heard_of(self, child: Session) -> None:
        """A session is known now: what was told of its tool calls before that counts."""
        for event, parent in self._early.pop(child.id, []):
            self.changed(event, parent=parent)

    def over(self, session: Session) -> None:
        """The session's run is over: no tool call of it waits any more."""
        for request in list(session.gates):
            self.end(session, request, "its run is over")

    def snapshot(self, approvals: Sequence[Json], asked_at: int) -> None:
        """All gates that there were at `asked_at`, as the server lists them."""
        there: dict[str, set[str]] = {}
        for approval in approvals:
            if text(approval, "state") != PENDING:
                continue
            gate = _gate(approval, "", asks=False)
            gate.known_at = asked_at
            session = self._feed.sessions.get(gate.child)
            if session is None:
                continue
            there.setdefault(gate.child, set()).add(gate.request)
            known = session.gates.get(gate.request)
            if known is None:
                session.gates[gate.request] = gate
                self._feed.show(session)
            elif known.version is None:
                known.version, known.attempt = gate.version, gate.attempt
        for session in self._feed.sessions.values():
            gone = session.gates.keys() - there.get(session.id, set())
            for request in [request for request in gone if session.gates[request].known_at < asked_at]:
                self.end(session, request, "the server lists it no more")

    def end(self, session: Session, request: str, why: str, decision: Decision | None = None) -> None:
        """The tool call waits no more."""
        gate = session.gates.pop(request, None)
        if gate is None:
            return
        self._ended.add(gate.id)
        if gate.asks:
            state = RequestState.RESOLVED if decision is not None else RequestState.WITHDRAWN
            why = "" if decision is not None else why
            self._mirror.end_request(session.id, gate.id, state, decision=decision, why=why)
        self._feed.show(session)


def _gate(of: Json, parent: str, *, asks: bool) -> Gate:
    return Gate(
        child=text(of, "child_session_id") or "",
        parent=text(of, "parent_session_id") or parent,
        request=text(of, "request_id") or "",
        tool=text(of, "tool_name") or "?",
        permission=text(of, "permission") or "",
        resource=text(of, "resource") or "",
        attempt=number(of, "child_attempt"),
        version=number(of, "version"),
        since=millis(of, "created_at"),
        asks=asks,
    )
