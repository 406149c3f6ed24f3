"""The client's side of watchfloor.v1 without any I/O: bytes in, arrivals and bytes out.

A `ClientCore` outlives connections. It remembers how far the host's log was received and which commands
have no outcome yet, so that the next connection goes on where the last one ended and asks what became of
them. A shell (`watchfloor.dial`) moves the bytes:

    for raw in core.opened(): send(raw)
    while connected:
        arrivals = core.receive(read())
        for raw in core.to_send(): send(raw)
    core.closed()
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from watchfloor.branches import Branches
from watchfloor.connector import Arrival, Received, Record, Streamed, Target, Unreadable
from watchfloor.cursor import Cursor, Places, SessionCursor, first_cursor
from watchfloor.errors import ProtocolError
from watchfloor.protocol.codec import KEEP_RAW, Bad, decode_host, encode
from watchfloor.protocol.frames import (
    ALL,
    MOST_RECALLED,
    Beat,
    ClientFrame,
    Command,
    DoAnswer,
    DoApprove,
    Error,
    ErrorCode,
    Events,
    Gone,
    Hello,
    History,
    Lagged,
    Outcome,
    Page,
    Recall,
    Sessions,
    Unwatch,
    Watch,
    Watching,
    Welcome,
)
from watchfloor.protocol.stream import read_stream
from watchfloor.words import PROTOCOL, OutcomeKind

_FORGOTTEN: Final = "the host was started anew and does not know what became of it"
_NOT_VOUCHED: Final = "the host does not have it, and does not say whether it was started anew since"
LONGEST: Final = 1024 * 1024
"""Bytes of one frame that a host takes."""
MISSED_AT_ONCE: Final = 1000
"""Events that are asked for at a time where the host left some out."""
_NO_RECALL: Final = "the connection broke, and the host cannot say what became of it"

_REFUSALS: Final = {
    ErrorCode.UNSUPPORTED: OutcomeKind.CAPABILITY_NOT_SUPPORTED,
    ErrorCode.NOT_PERMITTED: OutcomeKind.NOT_PERMITTED,
    ErrorCode.NOT_FOUND: OutcomeKind.STALE_TARGET,
}


class ClientCore:
    """One host as its client knows it, across connections.

    With `Record.ALL` every session is followed from the start of what the host keeps, or from the head with
    `start_at_head`; otherwise only what is watched by a frame handed to `outgoing`. Watches are renewed on
    every connection and resume after what was received.

    A host sends events in the order of `pos`, with holes where it forgot some. This client also bears neighbouring
    `events` frames that changed places: a hole counts as final when a frame of another type has arrived behind it.
    """

    def __init__(self, target: Target, *, streams: bool = False) -> None:
        """With `streams`, events arrive as `Streamed` where that says the same."""
        self._target = target
        self._streams = streams
        self._out: list[bytes] = []
        self._commands: dict[str, Command] = {}
        self._recalled: frozenset[str] = frozenset()
        self._watched: dict[str, SessionCursor] = {}
        self._all: Watch | None = Watch(session=ALL, start="start") if target.record is Record.ALL else None
        self._pos: Cursor | None = None
        self._places = Places(target.places)
        self._branches = Branches(target.places)
        if self._all is not None and target.places:
            self._all = self._places.watch()
        self._lagged: dict[str, Lagged] = {}
        """What the host did not send us and we have not fetched, by session."""
        self._asked: dict[str, str] = {}
        """Pages of history that we asked for by ourselves: the session of each."""
        self._pages = 0
        self._from_head = False
        self._listed: set[str] | None = None
        """Sessions that this connection has named, where what it names may be an older state; else None."""
        self._unanswered = 0
        """Watches of everything to which the host has not said where they begin."""
        self._now = 0
        self.instance: str | None = None
        """Which run of the host this client spoke to last; empty where the host does not say."""
        self.welcome: Welcome | None = None
        """How the host greeted this connection; None before it has."""

    @property
    def pos(self) -> int | None:
        """The pos through which all that the host had was received; None while not every session is followed."""
        return None if self._pos is None else self._pos.through

    def pending(self) -> tuple[Command, ...]:
        """The commands without an outcome, oldest first."""
        return tuple(self._commands.values())

    def opened(self) -> list[bytes]:
        """A connection stands. Returns what to send first; watches and the recall follow the welcome."""
        self.closed()
        # What lay beyond a hole comes again: that it was here once says nothing about this connection.
        if self._pos is not None:
            self._pos.forget_beyond()
        self._places.forget_beyond()
        for watched in self._watched.values():
            watched.forget_beyond()
        hello = Hello(client=self._target.client, version=self._target.version, name=self._target.user)
        return [encode(hello)]

    def closed(self) -> None:
        """The connection has ended. Cursors, watches and pending commands stay."""
        self.welcome = None
        self._listed = None
        self._unanswered = 0
        self._out.clear()
        self._asked.clear()
        self._recalled = frozenset()

    def to_send(self) -> list[bytes]:
        """What has to be sent in answer to what was received, in this order; the list is handed over."""
        out, self._out = self._out, []
        return out

    def outgoing(self, frame: ClientFrame) -> bytes:
        """The bytes of a frame that is about to be sent. Raises ProtocolError when it cannot be written.

        Where everything is followed, a watch of one session asks for its details only: its events come anyway.
        """
        raw = self._written(self._details_only(frame) if isinstance(frame, Watch) else frame)
        match frame:
            case Command():
                self._commands[frame.id] = frame
            case Watch(session="*"):
                self._unanswered += 1
                self._all = frame
                if self._pos is None:
                    self._pos = first_cursor(frame)
            case Watch():
                self._watched[frame.session] = SessionCursor(frame)
            case Unwatch(session="*"):
                self._all = self._pos = None
            case Unwatch():
                self._watched.pop(frame.session, None)
            case _:
                pass
        return raw

    def _details_only(self, watch: Watch) -> Watch:
        return watch if self._all is None or watch.session == ALL else Watch(session=watch.session, start="head")

    def _written(self, frame: ClientFrame) -> bytes:
        match frame:
            case Watch():
                return encode(self._branches.watch(frame))
            case History():
                return encode(self._branches.history(frame))
            case _:
                return encode(frame)

    def command(self, frame: Command) -> bytes:
        """The bytes of a command, which counts as in flight until its outcome arrives."""
        return self.outgoing(frame)

    def receive(self, raw: bytes) -> list[Arrival]:
        """Read one frame. Never raises: what cannot be read arrives as `Unreadable`.

        Outcomes that no host sends, because the host forgot the command, follow the frame that says so;
        they have no `raw`.
        """
        if self._streams and self._all is not None and not self._branches and (stream := read_stream(raw)) is not None:
            if self._pos is not None:
                for pos in stream.poss:
                    self._pos.add(pos)
            if stream.seqs:
                self._places.count(stream.session, stream.epoch, stream.seqs)
            return [Streamed.of(stream, raw)]
        try:
            decoded = decode_host(raw)
        except ProtocolError as error:
            return [Unreadable(Bad(error.reason, error.raw[:KEEP_RAW].decode("utf-8", "replace")))]
        if type(decoded.frame) is Events and not self._branches:
            # What nearly all frames are.
            self._count(decoded.frame)
            return [Received(decoded.frame, raw, decoded.bad)]
        if isinstance(decoded.frame, Sessions) and self._listed is not None:
            self._look_back(decoded.frame, self._listed)
        frame = self._branches.read(decoded.frame)
        # What is called otherwise here is no longer what came.
        arrival = Received(frame, raw if frame is decoded.frame else None, decoded.bad)
        if isinstance(frame, Events):
            self._count(frame)
            return [arrival]
        self._settle()
        match frame:
            case Outcome() as frame:
                return [self._outcome(frame, arrival)]
            case Welcome() as frame:
                return [arrival, *self._welcomed(frame)]
            case Error() as frame:
                return [arrival, *self._refused(frame)]
            case Watching() as frame:
                self._watching(frame)
            case Gone(sessions=sessions):
                for session in sessions:
                    self._watched.pop(session, None)
                    self._places.forget(session)
                    self._lagged.pop(session, None)
            case Sessions(sessions=summaries) if self._from_head:
                # What they hold by now was not asked for.
                self._places.stand_at(summaries)
            case Lagged() as frame:
                self._fetch(frame)
            case Page() as frame:
                self._fetched(frame)
            case Beat(now=now):
                # Its pos is the end of the log, not of what has reached us: no cursor may follow it.
                self._now = now
            case _:
                pass
        return [arrival]

    # --- greeting and resuming --------------------------------------------------------------

    def _welcomed(self, welcome: Welcome) -> list[Received]:
        if welcome.protocol != PROTOCOL:
            # A stranger at the host's address: nothing that it says is about our cursors and commands.
            return []
        anew = self.instance is not None and self.instance != welcome.host.instance
        rolled_back = self._pos is not None and welcome.pos < self._pos.through
        first = self.instance is None
        self._listed = set() if anew or rolled_back or first or not welcome.host.instance else None
        self.welcome, self.instance, self._now = welcome, welcome.host.instance, welcome.now
        outcomes: list[Received] = []
        if anew:
            outcomes = self._give_up(self._commands, _FORGOTTEN)
        self._from_head = first and self._target.start_at_head and self._target.record is Record.ALL
        if anew or rolled_back:
            # Its positions may be those of another log. What is in a session's epoch stays what it was; everything
            # that another one holds was written after we began to follow, whatever we began with.
            if self._all is not None:
                self._all, self._pos = self._places.watch(), None
            for watched in self._watched.values():
                watched.by_seq()
        elif first and self._target.start_at_head and self._target.record is Record.ALL:
            self._pos = Cursor(welcome.pos)
        self._renew_watches()
        for lagged in self._lagged.values():
            self._ask(lagged)
        if self._commands:
            self._recalled = frozenset(self._commands)
            ids = tuple(self._commands)
            for at in range(0, len(ids), MOST_RECALLED):
                self._out.append(encode(Recall(ids=ids[at : at + MOST_RECALLED])))
        return outcomes

    def _renew_watches(self) -> None:
        if self._all is not None:
            self._watch_all(self._all)
        for watched in self._watched.values():
            self._out.append(self._written(self._details_only(watched.renewed())))

    def _watch_all(self, watch: Watch) -> None:
        if self._pos is None:
            self._pos = first_cursor(watch)
        raw = self._written(Watch(session=ALL, after=self.pos) if self.pos else watch)
        # A host takes no larger frames: of so many sessions all that it has comes again.
        self._out.append(raw if len(raw) <= LONGEST else encode(Watch(session=ALL, start="start")))
        self._unanswered += 1

    def _look_back(self, frame: Sessions, listed: set[str]) -> None:
        """Is one of these logs an older state of what was received? It is read anew then, as another one."""
        all_of_it = False
        for summary in frame.sessions:
            id, epoch = summary.id, self._branches.ours(summary.id, summary.epoch)
            if id in listed or not epoch or "head" not in summary.model_fields_set:
                continue
            listed.add(id)
            watched = self._watched.get(id)
            if 0 < summary.head < self._places.through(id, epoch):
                self._places.start_over(id, self._branches.went_back(id, summary.epoch))
                self._lagged.pop(id, None)
                all_of_it = True
            elif watched is not None and 0 < summary.head < watched.through(epoch):
                watched.start_over(self._branches.went_back(id, summary.epoch))
                self._out.append(self._written(self._details_only(watched.renewed())))
        if all_of_it and self._all is not None:
            self._all, self._pos = self._places.watch(), None
            self._watch_all(self._all)

    def _watching(self, frame: Watching) -> None:
        if frame.session != ALL or self._all is None:
            return
        self._unanswered -= 1
        if self._unanswered > 0:
            # A later watch stands instead of it.
            return
        if self._pos is None:
            self._pos = Cursor(frame.from_pos)
        else:
            # Nothing that lies before where the host begins will come.
            self._pos.skip_to(frame.from_pos)

    def _count(self, frame: Events) -> None:
        events = [event for event in frame.events if event.seq is not None or event.pos is not None]
        if not events:
            return  # pieces of what follows whole
        if self._pos is not None:
            add = self._pos.add
            for event in events:
                if event.pos is not None:
                    add(event.pos)
        if self._all is not None:
            numbers = [event.seq for event in events if event.seq is not None]
            self._places.count(frame.session, frame.epoch, numbers)
        elif (watched := self._watched.get(frame.session)) is not None:
            watched.count(frame.epoch, events)

    def _settle(self) -> None:
        if self._pos is not None:
            self._pos.settle()
        self._places.settle()
        for watched in self._watched.values():
            watched.settle()

    # --- what the host left out because we were slow ---------------------------------------

    def _fetch(self, lagged: Lagged) -> None:
        before = self._lagged.get(lagged.session)
        if before is not None and before.epoch == lagged.epoch:
            # Its next page is on its way already; it only has more to bring.
            self._lagged[lagged.session] = before.model_copy(update={"to_seq": lagged.to_seq})
        else:
            self._lagged[lagged.session] = lagged
            self._ask(lagged)

    def _ask(self, lagged: Lagged) -> None:
        self._pages += 1
        id = f"lagged-{self._pages}"
        self._asked[id] = lagged.session
        limit = min(MISSED_AT_ONCE, lagged.to_seq - lagged.from_seq)
        page = History(id=id, session=lagged.session, epoch=lagged.epoch, after=lagged.from_seq, limit=limit)
        self._out.append(self._written(page))

    def _fetched(self, page: Page) -> None:
        session = self._asked.pop(page.id, None)
        lagged = self._lagged.get(session) if session is not None else None
        if session is None or lagged is None:
            return
        if page.epoch != lagged.epoch or not page.events or page.last >= lagged.to_seq:
            del self._lagged[session]
            return
        rest = self._lagged[session] = lagged.model_copy(update={"from_seq": page.last})
        self._ask(rest)

    # --- commands ----------------------------------------------------------------------------

    def _outcome(self, frame: Outcome, arrival: Received) -> Received:
        command = self._commands.pop(frame.id, None)
        if command is None or frame.outcome is not OutcomeKind.UNDELIVERED:
            return arrival
        # "Never received" can be believed of the very run that would have received it, and of no other.
        if self.instance and frame.instance in (None, self.instance):
            return arrival
        return self._verdict(command, OutcomeKind.UNKNOWN, _NOT_VOUCHED)

    def _refused(self, frame: Error) -> list[Received]:
        if frame.about == "recall":
            return self._give_up(self._recalled, _NO_RECALL)
        if frame.code is ErrorCode.NOT_FOUND and frame.session is not None:
            self._watched.pop(frame.session, None)
        if frame.about is None:
            return []
        if frame.about == "watch" and frame.code is ErrorCode.UNSUPPORTED and self._all is not None:
            return self._without_cursors(self._all)
        if (session := self._asked.pop(frame.about, None)) is not None:
            self._lagged.pop(session, None)
            return []
        command = self._commands.pop(frame.about, None)
        if command is None:
            return []
        return [self._verdict(command, _REFUSALS.get(frame.code, OutcomeKind.INVALID), frame.message)]

    def _without_cursors(self, watch: Watch) -> list[Received]:
        """A host that numbers sessions and cannot resume by that: all that it has comes again."""
        if isinstance(watch.after, dict):
            self._all = Watch(session=ALL, start="start")
            self._pos = first_cursor(self._all)
            self._out.append(encode(self._all))
        return []

    def _give_up(self, ids: Iterable[str], reason: str) -> list[Received]:
        commands = [command for id in list(ids) if (command := self._commands.pop(id, None)) is not None]
        return [self._verdict(command, OutcomeKind.UNKNOWN, reason) for command in commands]

    def _verdict(self, command: Command, outcome: OutcomeKind, reason: str) -> Received:
        do = command.do
        return Received(
            Outcome(
                id=command.id,
                outcome=outcome,
                reason=reason,
                info={},
                at=self._now,
                session=command.session,
                attempt=command.attempt,
                request=do.request if isinstance(do, DoApprove | DoAnswer) else None,
                instance=self.instance,
            )
        )
