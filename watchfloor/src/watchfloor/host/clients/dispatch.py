"""From a command that a client gave to its outcome: who may, whether it came before, where it goes, who is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import JsonValue

from watchfloor.host.clients.between import Between
from watchfloor.host.clients.clients import Connection
from watchfloor.host.clients.commands import Outcomes, another_command, execute, intervention, outcome_of
from watchfloor.host.clients.roster import Roster
from watchfloor.host.effects import Forward, Handled, SendFrame, SessionEffect
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.hosted import Forwarded
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.protocol.events import Intervention
from watchfloor.protocol.frames import Command, DoStop, Outcome, Recall
from watchfloor.protocol.model import JsonObject
from watchfloor.words import OutcomeKind


@dataclass(slots=True)
class UnderWay:
    """A command on its way to a foreign system: it goes once, however often it is asked about. Who gave it, and the
    connections that wait to hear of its outcome."""

    command: Command
    by: str
    conns: list[str]

    def tell(self, conn: str) -> None:
        """This connection wants to hear the outcome, too."""
        if conn not in self.conns:
            self.conns.append(conn)


@dataclass(slots=True)
class Dispatched:
    """What follows from a command: first what its session did and says, then what the askers are told."""

    effects: list[SessionEffect] = field(default_factory=list)
    event: Intervention | None = None
    outcome: Outcome | None = None
    conns: list[str] = field(default_factory=list)
    forward: Forward | None = None


class Dispatch:
    """The commands of one host: those that have an outcome, and those that are on their way."""

    def __init__(self, roster: Roster, between: Between, outcomes: Outcomes) -> None:
        self._roster = roster
        self._between = between
        self._outcomes = outcomes
        self._under_way: dict[str, UnderWay] = {}

    def command(self, client: Connection, command: Command, now: int) -> Dispatched:
        """Carry out a command, forward it, or say why not."""
        by = command.by if client.principal.vouches and command.by else client.name
        if not client.may_intervene:
            handled = Handled(OutcomeKind.NOT_PERMITTED, reason=f"{client.name} may only watch")
            return Dispatched(outcome=outcome_of(command, handled, now, None), conns=[client.id])
        under_way = self._under_way.get(command.id)
        if under_way is not None and under_way.command == command:
            under_way.tell(client.id)
            return Dispatched()
        before = another_command(command, now) if under_way is not None else self._outcomes.again(command, now)
        if before is not None:
            return Dispatched(outcome=before, conns=[client.id])
        entry = self._roster.get(command.session)
        if entry is None:
            gone = Handled(OutcomeKind.STALE_TARGET, reason=f"this host has no session '{shown(command.session)}'")
            return self._settled(command, by, gone, [client.id], now)
        done = execute(entry.core, command, by, now, self._between)
        if isinstance(done, Forwarded):
            self._under_way[command.id] = UnderWay(command, by, [client.id])
            return Dispatched(done.effects, forward=Forward(command, by))
        if isinstance(command.do, DoStop) and done.applied:
            done.info.update(self._living_children(entry.id))
        return self._settled(command, by, done, [client.id], now)

    def answered(self, command: str, handled: Handled, now: int) -> Dispatched:
        """What the foreign system made of a forwarded command; nothing where none of this id is under way."""
        forwarded = self._under_way.pop(command, None)
        if forwarded is None:
            return Dispatched()
        entry = self._roster.get(forwarded.command.session)
        if entry is not None and isinstance(entry.core, MirrorSession):
            entry.core.answered(forwarded.command.do)
        return self._settled(forwarded.command, forwarded.by, handled, forwarded.conns, now)

    def recall(self, client: Connection, recall: Recall, now: int) -> list[SendFrame]:
        """What became of commands. Of those under way the client hears when they have an outcome."""
        told: list[SendFrame] = []
        for id in recall.ids:
            if id in self._under_way:
                self._under_way[id].tell(client.id)
            else:
                told.append(client.send(self._outcomes.recall(id, now, final=client.may_intervene)))
        return told

    def _settled(self, command: Command, by: str, handled: Handled, conns: list[str], now: int) -> Dispatched:
        """The command has its outcome: it is remembered, becomes an event, and is told to who asked."""
        entry = self._roster.get(command.session)
        event = intervention(command, handled, by, now, entry.core) if entry is not None else None
        outcome = outcome_of(command, handled, now, entry.core.attempt if entry is not None else None)
        self._outcomes.remember(command, outcome)
        return Dispatched(handled.effects, event, outcome, conns)

    def _living_children(self, session: str) -> JsonObject:
        """Who goes on when a session is stopped."""
        living: list[JsonValue] = [e.id for e in self._roster if e.fixed.get("parent") == session and e.core.alive]
        return {"living_children": living} if living else {}
