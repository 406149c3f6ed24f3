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
    from watchfloor.protocol.frames import Events, Gap, Watching

_EXACT: Final = frozenset(
    {"call", "digest", "epoch", "id", "item", "key", "option", "ref", "request", "session", "turn"}
)
"""Fields of an event that name something: kept as they are."""


def events(args: Namespace) -> int:
    """Print events. Raises Usage."""
    if args.after is not None and args.session is None:
        raise Usage("--after counts the events of one session: name it with --session, or use --after-pos")
    return asyncio.run(_events(args))


async def _events(args: Namespace) -> int:
    printer = _Printer(args)
    async with attached(args, intervenes=False, on_items=printer.take) as link:
        printer.link = link
        if args.session is not None:
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
        raise Fail(f"there is no session {clean_line(args.session)}", EXIT_CODE[OutcomeKind.STALE_TARGET])
    if args.follow:
        printer.hold()
        await link.hub.send(link.name, Watch(session=args.session, start="head"))
        await link.until(lambda: session.track.followed, "show the session")
    after = args.after or 0
    more = True
    while more and not printer.full:
        page = await link.page(session, after=after)
        if page.events and page.first > after + 1:
            out.note(f"{clean_line(args.session)}: events {after + 1} to {page.first - 1} are gone")
        printer.put(args.session, page.epoch, page.events)
        more = page.more and bool(page.events)
        if more and page.last <= after:
            raise Unreachable(f"{link.source.shown} sends the same events again and again")
        after = page.last
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
        self._held: list[Events] | None = None
        self._printed: dict[tuple[str, str], int] = {}
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
        from watchfloor.connector import Received
        from watchfloor.protocol.frames import Events, Gap, Watching

        before = self.pos, self.through
        for item in items:
            match item:
                case ContactChange():
                    self._note(item)
                case Received(frame=Events() as frame):
                    if self._held is not None:
                        self._held.append(frame)
                    else:
                        self.put(frame.session, frame.epoch, frame.events)
                case Received(frame=Watching() as frame):
                    self._watching(frame)
                case Received(frame=Gap() as frame):
                    self._gap(frame)
                case _:
                    pass
        if self.full or (self.pos, self.through) != before:
            self._moves.set()

    def _note(self, change: Any) -> None:
        if self._args.follow and self.link is not None and change.contact in (Contact.LOST, Contact.REFUSED):
            out.note(f"{change.why}; trying again")

    def _watching(self, frame: Watching) -> None:
        if self.through is None and self._args.session is None:
            self.through = frame.through
            self.pos = max(self.pos, frame.from_pos)

    def _gap(self, frame: Gap) -> None:
        why = f": {frame.why}" if frame.why else ""
        out.note(f"{clean_line(frame.session)}: events up to {frame.to_seq} are gone{why}")

    def put(self, session: str, epoch: str, batch: Sequence[Event]) -> None:
        """Print these events of a session; previews of streamed items, which come again whole, are left out."""
        for event in batch:
            if event.pos is not None:
                self.pos = max(self.pos, event.pos)
            if self.full or event.seq is None or event.seq <= self._printed.get((session, epoch), 0):
                continue
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
