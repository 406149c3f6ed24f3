"""A verb's connection to one host, over the same hub that the application uses."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from console.audit import Audit
from console.cli import logs
from console.cli.exits import Fail, Usage
from console.cli.targets import named, operator
from console.config import load
from console.fleet.facts import SessionKey
from console.fleet.state import Session, Source
from console.hub import Hub
from console.places import state_folder
from watchfloor.connector import Record
from watchfloor.errors import Denied, Unreachable
from watchfloor.text import Clean, clean_line
from watchfloor.words import EXIT_CODE, Contact, OutcomeKind

if TYPE_CHECKING:
    from console.connectors.supervisor import Item
    from console.policies.rules import Policy
    from watchfloor.protocol.frames import Outcome, Page
    from watchfloor.protocol.model import JsonObject

ANSWER_S: Final = 15.0
"""How long a host may take to list its sessions, or to answer one frame."""
PAGE: Final = 1000

OnItems = Callable[[Sequence["Item"]], None]


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


class Link:
    """One host that has listed its sessions. Its connection is kept up as that of the application is."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.hub: Final = hub
        self.name: Final = name
        self._asked: dict[str, asyncio.Future[Page]] = {}
        self._questions: dict[str, asyncio.Future[JsonObject]] = {}
        self._recalled: dict[str, asyncio.Future[Outcome | None]] = {}

    @property
    def source(self) -> Source:
        return self.hub.fleet.sources[self.name]

    def key(self, session: str) -> SessionKey:
        return SessionKey(self.name, session)

    def session(self, id: str) -> Session | None:
        found = self.hub.fleet.sessions.get(self.key(id))
        return found if found is not None and not found.placeholder else None

    def meant(self, word: str) -> str:
        """The id of the session that goes by this id, else by this name; the word itself where none does.

        Raises Usage where several have the name.
        """
        if self.session(word) is not None:
            return word
        named = [s.key.session for s in self.sessions() if s.name and s.name == clean_line(word)]
        if len(named) > 1:
            which = " or ".join(clean_line(id) for id in named)
            raise Usage(f"{len(named)} sessions are called {clean_line(word)}: name one by its id, {which}")
        return named[0] if named else word

    def hint(self, word: str) -> str:
        """Which session was probably meant by a word that none goes by, to be put behind what says so; else empty."""
        from difflib import get_close_matches  # only a mistake pays for it

        ids = {clean_line(s.key.session): s.key.session for s in self.sessions()}
        names = {s.name: s.key.session for s in self.sessions() if s.name}
        near = get_close_matches(clean_line(word), [*ids, *names], 1, 0.6)
        return f"; did you mean {clean_line({**names, **ids}[Clean(near[0])])}?" if near else ""

    def sessions(self) -> list[Session]:
        """In the order in which the host listed them."""
        return [s for s in self.hub.fleet.sessions.values() if s.key.source == self.name and not s.placeholder]

    async def until(self, met: Callable[[], bool], what: str) -> None:
        """Wait for something of the host. Raises Unreachable, or Denied, when it does not come."""
        await self.hub.until(lambda: met() or self._broken(), ANSWER_S)
        if met():
            return
        source = self.source
        if source.contact is Contact.REFUSED:
            raise Denied(source.why)
        if source.contact is Contact.LOST:
            raise Unreachable(source.why)
        raise Unreachable(f"{source.shown} did not {what} within {ANSWER_S:g} s")

    def _broken(self) -> bool:
        return self.source.contact in (Contact.LOST, Contact.REFUSED)

    async def watch(self, session: str) -> None:
        """Follow a session from now on, with the details of its requests. Raises as `until` does."""
        from watchfloor.protocol.frames import Watch

        await self.hub.send(self.name, Watch(session=session, start="head"))
        await self.until(lambda: self._followed(session) and self.read_up(session), "show the session")

    def _followed(self, session: str) -> bool:
        found = self.session(session)
        return found is None or found.track.followed

    def read_up(self, session: str | None = None) -> bool:
        """Have the texts of all listed requests (of one session, or of all) come?"""
        one = self.session(session) if session is not None else None
        sessions = self.sessions() if session is None else [one] if one is not None else []
        return all(request.fact is not None for s in sessions for request in s.open_requests())

    async def page(self, session: Session, *, after: int | None = None, before: int | None = None) -> Page:
        """A page of a session's stored events. Raises Fail where the host has none to give, Unreachable."""
        from watchfloor.protocol.frames import History

        id = str(uuid4())
        asked = self._asked[id] = asyncio.get_running_loop().create_future()
        frame = History(id=id, session=session.key.session, epoch=session.epoch, after=after, before=before, limit=PAGE)
        await self.hub.send(self.name, frame)
        try:
            return await asyncio.wait_for(asked, ANSWER_S)
        except TimeoutError:
            raise Unreachable(f"{self.source.shown} did not answer within {ANSWER_S:g} s") from None
        finally:
            del self._asked[id]

    async def ask(self, what: str, session: str, args: JsonObject) -> JsonObject:
        """What a host answers to a question about a session. Raises Fail where it does not, Unreachable."""
        from watchfloor.protocol.frames import Query

        id = str(uuid4())
        told = self._questions[id] = asyncio.get_running_loop().create_future()
        await self.hub.send(self.name, Query(id=id, what=what, session=session, args=args))
        try:
            return await asyncio.wait_for(told, ANSWER_S)
        except TimeoutError:
            raise Unreachable(f"{self.source.shown} did not answer within {ANSWER_S:g} s") from None
        finally:
            del self._questions[id]

    async def recall(self, id: str) -> Outcome | None:
        """What became of a command that was sent before; None where the host does not know, or does not say in time.

        Not to be asked about one that is still to be sent: a host does not carry out what it has called unknown.
        """
        from watchfloor.protocol.frames import Recall

        self._recalled[id] = asyncio.get_running_loop().create_future()
        await self.hub.send(self.name, Recall(ids=(id,)))
        try:
            return await asyncio.wait_for(self._recalled[id], ANSWER_S)
        except TimeoutError:
            return None
        finally:
            del self._recalled[id]

    def take(self, items: Sequence[Item]) -> None:
        """Look through what arrived for answers to `page`, `ask` and `recall`."""
        if not self._asked and not self._recalled and not self._questions:
            return
        from watchfloor.connector import Received
        from watchfloor.protocol.frames import Error, ErrorCode, Outcome, Page, Reply

        for item in items:
            match item:
                case Received(frame=Outcome(id=id) as frame) if (told := self._recalled.get(id)) and not told.done():
                    known = frame.outcome not in (OutcomeKind.UNDELIVERED, OutcomeKind.UNKNOWN)
                    told.set_result(frame if known else None)
                case Received(frame=Error(about="recall")):
                    for told in self._recalled.values():
                        if not told.done():
                            told.set_result(None)
                case Received(frame=Reply(id=id, data=data)) if (reply := self._questions.get(id)) and not reply.done():
                    reply.set_result(data if isinstance(data, dict) else {})
                case Received(frame=Error(about=str(id), message=message, code=code)) if (
                    reply := self._questions.get(id)
                ) and not reply.done():
                    unsupported = code is ErrorCode.UNSUPPORTED
                    kind = OutcomeKind.CAPABILITY_NOT_SUPPORTED if unsupported else OutcomeKind.STALE_TARGET
                    reply.set_exception(Fail(clean_line(message), EXIT_CODE[kind]))
                case Received(frame=Page(id=id) as frame) if (asked := self._asked.get(id)) and not asked.done():
                    asked.set_result(frame)
                case Received(frame=Error(about=str(id), message=message)) if (
                    asked := self._asked.get(id)
                ) and not asked.done():
                    asked.set_exception(Fail(message, EXIT_CODE[OutcomeKind.STALE_TARGET]))


@asynccontextmanager
async def attached(
    args: Namespace,
    *,
    intervenes: bool,
    record: Record = Record.NONE,
    on_items: OnItems | None = None,
    past: bool = False,
    policies: tuple[Policy, ...] = (),
) -> AsyncIterator[Link]:
    """Connect to the host that `args.url` names, until it has listed its sessions. With `past` what is followed
    begins at the start of what the host keeps. `policies` hold what is decided, and decide nothing by themselves.

    Raises Usage, ConfigError, and ConnectionFailed in its kinds.
    """
    from console.connectors.registry import connector_for

    logs.keep()
    config = load()
    (place,) = named(args, config, [args.url])
    target = replace(place.target, record=record, start_at_head=not past)
    # What is wrong with an address or a token by itself shows here, as a fault of the command line.
    connector_for(target)

    def take(_: str, items: Sequence[Item]) -> None:
        link.take(items)
        if on_items is not None:
            on_items(items)

    hub = Hub(
        clock=now_ms,
        audit=Audit(state_folder() / "audit", clock=now_ms, required=config.audit == "required"),
        by=operator(),
        read_only=not intervenes or args.read_only or config.read_only,
        on_items=take,
        policies=policies,
        by_itself=False,
    )
    link = Link(hub, target.name)
    try:
        hub.start([target])
        await link.until(lambda: link.source.listed, "list its sessions")
        yield link
    finally:
        await hub.close()
