"""`watchfloor events`: what happened at a host, oldest first, and what happens from now on."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from console.cli import out
from console.cli.exits import OK, Fail, Usage
from console.cli.link import ANSWER_S, Link, attached
from watchfloor.errors import Unreachable
from watchfloor.text import Clean, clean, clean_line, redact
from watchfloor.words import EXIT_CODE, Contact, OutcomeKind

if TYPE_CHECKING:
    from console.connectors.supervisor import Item
    from watchfloor.protocol.events import Event
    from watchfloor.protocol.frames import Events, Watching

_EXACT: Final = frozenset(
    {"call", "digest", "epoch", "id", "item", "key", "option", "ref", "request", "session", "turn"}
)
"""Fields of an event that name something: kept as they are."""
SHOWN: Final = 200
"""Characters of a reason that are told."""


def events(args: Namespace) -> int:
    """Print events. Raises Usage."""
    if args.after is not None and args.session is None:
        what = "--after counts the events of one session: name it with --session, or use --after-pos"
        raise Usage(f"{what}; see watchfloor events --help")
    return asyncio.run(_events(args))


async def _events(args: Namespace) -> int:
    printer = _Printer(args)
    async with attached(args, intervenes=False, on_items=printer.take) as link:
        printer.link = link
        if args.session is not None:
            args.session = link.meant(args.session)
            await _one(args, link, printer)
        else:
            await _all(args, link, printer)
        if args.follow:
            await printer.filled.wait()
        if printer.failure is not None:
            raise printer.failure
    return OK


async def _one(args: Namespace, link: Link, printer: _Printer) -> None:
    """One session: its past from the history, page by page, while what happens meanwhile is kept for afterwards."""
    from watchfloor.protocol.frames import Watch

    session = link.session(args.session)
    if session is None:
        why = f"there is no session {clean_line(args.session)}{link.hint(args.session)}"
        raise Fail(why, EXIT_CODE[OutcomeKind.STALE_TARGET])
    if args.follow:
        printer.hold()
        await link.hub.send(link.name, Watch(session=args.session, start="head"))
        await link.until(lambda: session.track.followed, "show the session")
    after = args.after or 0
    more = True
    while more and not printer.full:
        page = await link.page(session, after=after)
        if page.events and page.first > after + 1:
            printer.missing(args.session, page.epoch, after + 1, page.first - 1, "are gone")
        printer.put(args.session, page.epoch, page.events)
        more = page.more and bool(page.events)
        if more and page.last <= after:
            raise Unreachable(f"{link.source.shown} sends the same events again and again")
        after = page.last or after
    if not printer.full and after < session.head:
        printer.missing(args.session, session.epoch, after + 1, session.head, "are listed and were not sent")
    printer.go_on()


async def _all(args: Namespace, link: Link, printer: _Printer) -> None:
    """Every session, in the order of the host's log, up to where the log ended when we asked."""
    from watchfloor.protocol.frames import ALL, Watch

    watch = (
        Watch(session=ALL, after=args.after_pos) if args.after_pos is not None else Watch(session=ALL, start="start")
    )
    await link.hub.send(link.name, watch)
    await link.until(lambda: printer.through is not None or printer.full, "send its events")
    while not args.follow and not printer.caught_up and not printer.full:
        # As long as more events come the host is at it, however long that takes. That it lives is not enough.
        if not await printer.moved(ANSWER_S):
            sent = f"sent only the events up to {printer.pos} of {printer.through}"
            raise Unreachable(f"{link.source.shown} {sent}, and no more within {ANSWER_S:g} s")


class _Printer:
    """Prints the events that arrive, once each, until there were enough."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._left: int | None = args.count
        self._from_start = args.session is None and args.after_pos is None
        self._held: list[Events] | None = None
        self._printed: dict[tuple[str, str], int] = {}
        """The newest event of each session and epoch that is behind us: printed, or told to be missing."""
        self._moves = asyncio.Event()
        self._contact = Contact.CONNECTING
        self.link: Link | None = None
        self.failure: Exception | None = None
        """What ended the printing, such as a reader that left."""
        self.filled = asyncio.Event()
        self.pos = 0
        self.through: int | None = None
        """Position up to which the events are the past; None while the host has not said."""

    @property
    def full(self) -> bool:
        return self.filled.is_set()

    @property
    def caught_up(self) -> bool:
        return self.through is not None and self.pos >= self.through

    async def moved(self, wait_s: float) -> bool:
        """Wait until the events have come further; False when they have not."""
        self._moves.clear()
        try:
            await asyncio.wait_for(self._moves.wait(), wait_s)
        except TimeoutError:
            return False
        return True

    def hold(self) -> None:
        """Keep live events until `go_on`."""
        self._held = []

    def go_on(self) -> None:
        held, self._held = self._held, None
        for frame in held or ():
            self.put(frame.session, frame.epoch, frame.events)

    def take(self, items: Sequence[Item]) -> None:
        """What arrived from the host."""
        from console.connectors.supervisor import ContactChange
        from watchfloor.connector import Received, Unreadable
        from watchfloor.protocol.frames import Events, Gap, Lagged, Watching

        before = self.pos, self.through
        for item in items:
            for bad in getattr(item, "bad", ()) if isinstance(item, Received) else ():
                out.note(f"unreadable, and left out: {clean_line(bad.reason[:SHOWN])}")
            match item:
                case ContactChange():
                    self._note(item)
                case Unreadable(bad=bad):
                    out.note(f"a frame is unreadable: {clean_line(bad.reason[:SHOWN])}")
                case Received(frame=Events() as frame):
                    if self._held is not None:
                        self._held.append(frame)
                    else:
                        self.put(frame.session, frame.epoch, frame.events)
                case Received(frame=Watching() as frame):
                    self._watching(frame)
                case Received(frame=Gap() as frame):
                    why = f": {frame.why}" if frame.why else ""
                    self._gap(frame.session, frame.epoch, frame.from_seq, frame.to_seq, f"are gone{why}")
                case Received(frame=Lagged() as frame):
                    how = "were not sent, for this reader was too slow; --session and --after fetch them"
                    self._gap(frame.session, frame.epoch, frame.from_seq, frame.to_seq, how)
                case _:
                    pass
        if self.full or (self.pos, self.through) != before:
            self._moves.set()

    def _note(self, change: Any) -> None:
        if self._args.follow and self.link is not None and change.contact in (Contact.LOST, Contact.REFUSED):
            out.note(f"{change.why}; trying again")

    def _watching(self, frame: Watching) -> None:
        if self.through is not None or self._args.session is not None:
            return
        self.through = frame.through
        self.pos = max(self.pos, frame.from_pos)
        asked = self._args.after_pos
        if asked is not None and frame.from_pos < asked:
            out.note(f"its log ends at {frame.through}, before {asked}: it is another log, told from {frame.from_pos}")

    def _gap(self, session: str, epoch: str, after: int, to: int, what: str) -> None:
        """Events after `after` through `to` will not come."""
        first = max(after, self._printed.get((session, epoch), 0)) + 1
        if to >= first:
            self.missing(session, epoch, first, to, what)

    def missing(self, session: str, epoch: str, first: int, last: int, what: str) -> None:
        """Say that these events are not among what is printed."""
        span = f"events {first} to {last}" if last > first else f"event {first}"
        out.note(f"{clean_line(session)}: {span} {what}")
        self._printed[session, epoch] = max(last, self._printed.get((session, epoch), 0))

    def put(self, session: str, epoch: str, batch: Sequence[Event]) -> None:
        """Print these events of a session; previews of streamed items, which come again whole, are left out."""
        for event in batch:
            if event.pos is not None:
                self.pos = max(self.pos, event.pos)
            before = self._printed.get((session, epoch), 0)
            if self.full or event.seq is None or event.seq <= before:
                continue
            if event.seq > before + 1 and (before or self._from_start):
                self.missing(session, epoch, before + 1, event.seq - 1, "did not come")
            self._printed[session, epoch] = event.seq
            try:
                self._print(session, epoch, event)
            except Exception as failure:
                # Raised where the frames come in it would be taken for a fault of the connection.
                self.failure, self._left = failure, 1
            if self._left is not None:
                self._left -= 1
                if self._left == 0:
                    self.filled.set()

    def _print(self, session: str, epoch: str, event: Event) -> None:
        source = self.link.name if self.link is not None else ""
        if self._args.json:
            data = _masked(event.model_dump(mode="json", exclude_none=True))
            out.record({"source": source, "session": session, "epoch": epoch, "event": data})
            return
        from console.intake import event_fact

        fact = event_fact(event)
        at = _clock_time(event.at)
        first, *rest = redact(fact.text)[0].rstrip("\n").split("\n")
        name = "" if self._args.session is not None else f"{clean_line(session)}  "
        words = "  ".join(part for part in (fact.head, first) if part)
        out.line(Clean(f"{at}  {fact.kind:<16}  {name}{clean_line(words)}".rstrip()))
        for line in rest:
            out.line(Clean(f"          {line}"))


def _clock_time(at: int) -> str:
    """The time of day of a moment in milliseconds since 1970 UTC, which may be one that no calendar has."""
    try:
        return datetime.fromtimestamp(at / 1000).astimezone().strftime("%H:%M:%S")
    except (ArithmeticError, ValueError, OSError):
        return "--:--:--"


def _masked(value: Any) -> Any:
    """Known forms of secrets masked, all else exactly as the host sent it."""
    match value:
        case str():
            masked, count = redact(clean(value))
            return masked if count else value
        case list():
            return [_masked(item) for item in value]
        case dict():
            return {
                name: item if name in _EXACT and isinstance(item, str) else _masked(item)
                for name, item in value.items()
            }
        case _:
            return value
