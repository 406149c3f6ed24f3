"""A session of a host as its owner handles it: its state at any moment, its mail, and every verb.

live = agent.spawn(session, name="builder")     # or host.live(id)
message = live.send("Build it")
print(await message.delivery, await message.response)
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from watchfloor.errors import Deadlock, LimitReached, NotPossible, StaleTarget, Unsupported
from watchfloor.harness.base import Conversation, ConversationMessage
from watchfloor.harness.current import CURRENT
from watchfloor.host.effects import Handled
from watchfloor.host.sessions.mailbox import Letter
from watchfloor.host.sessions.mirror import MirrorSession
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.frames import (
    Do,
    DoBudget,
    DoInterrupt,
    DoNotify,
    DoPause,
    DoReseed,
    DoResume,
    DoSend,
    DoStop,
)
from watchfloor.words import Delivery, Lifecycle, Priority, ReseedMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from watchfloor.host.serving.server import Host

T = TypeVar("T")

IDLE_OR_FAILED: Final = frozenset({"idle", "failed"})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a session remembered at one moment. It can be stored, and other sessions can begin with it."""

    handle: str
    messages: tuple[ConversationMessage, ...]
    model: str | None = None


class LiveMessage:
    """A message that was sent to a live agent. `ref` is "#n" in its mailbox."""

    def __init__(self, host: Host, session: str, letter: Letter) -> None:
        self._host = host
        self._session = session
        self._letter = letter

    @property
    def ref(self) -> str:
        return self._letter.item.ref

    @property
    def text(self) -> str:
        return self._letter.item.text

    @property
    def delivery(self) -> Awaitable[Delivery]:
        """How it reached the agent, once that is certain. May be awaited again. Raises NotDelivered, StaleTarget."""
        return _when_there(self._host, self._session, self._host.delivery(self._session, self.ref))

    @property
    def response(self) -> Awaitable[str]:
        """The first of an explicit reply and the last words of the turn that consumed it. May be awaited again.

        Raises NotDelivered: `permanent` where the turn that consumed it failed or was ended, else it waits in a failed
        agent, and is answered once that is resumed. Raises Deadlock inside of the turn of an agent that this one waits
        for, StaleTarget where the session is gone.
        """
        return self._response()

    async def _response(self) -> str:
        async with _in_turn(self._host, self._session):
            return await _when_there(self._host, self._session, self._host.response(self._session, self.ref))


class LiveAgent:
    """A session of a host by its handle. Everything is read at the moment it is asked for.

    Verbs raise NotPossible where the state forbids them, which says why, and StaleTarget where the session is gone. One
    that another process runs, which has joined the host, has `name`, `state`, `error` and `wait`; all else of it raises
    Unsupported, since that process has to be asked: `Host.intervene`.
    """

    def __init__(self, host: Host, handle: str, by: str | None = None) -> None:
        """`by`: in whose name the verbs are carried out; None: the host's own."""
        self._host = host
        self._handle = handle
        self._by = by

    def __repr__(self) -> str:
        return f"<LiveAgent {self.name!r} {self._handle} {self.state.value}>"

    @property
    def host(self) -> Host:
        return self._host

    @property
    def handle(self) -> str:
        """The session's id: opaque, and the same after a relaunch."""
        return self._handle

    @property
    def name(self) -> str:
        """A label, which other sessions may have too."""
        entry = self._host.core.roster.get(self._handle)
        return str(entry.fixed.get("name") or self._handle) if entry is not None else self._handle

    @property
    def state(self) -> Lifecycle:
        """`unknown` where the session is gone."""
        core = self._find()
        return core.lifecycle if core is not None else Lifecycle.UNKNOWN

    @property
    def error(self) -> str | None:
        """Why it failed, where it has."""
        core = self._find()
        if isinstance(core, MirrorSession):
            return core.rest().error if core.lifecycle is Lifecycle.FAILED else None
        return core.error if core is not None and core.lifecycle is Lifecycle.FAILED else None

    @property
    def snapshot(self) -> Snapshot:
        """What it remembers now; what it began with before its first step. Raises StaleTarget."""
        conversation = self._core().conversation
        return Snapshot(self._handle, tuple(conversation.messages), conversation.model)

    def message(self, ref: str) -> LiveMessage:
        """A message by its ref, "#3" or "3". Raises NoSuchRef for one that it has not, StaleTarget where it is gone."""
        return LiveMessage(self._host, self._handle, self._core().mailbox.letter(ref))

    # --- verbs

    def send(self, text: str, *, reply_to: str | None = None, priority: Priority = Priority.NORMAL) -> LiveMessage:
        """Send it a message; never waits."""
        if not text.strip():
            raise NotPossible("send: there is no text")
        handled = self._do(DoSend(text=text, priority=priority, reply_to=reply_to))
        return self.message(str(handled.info["ref"]))

    def pause(self, *, interrupt: bool = False) -> None:
        """Suspend it: when its step lands, or with `interrupt` at once."""
        self._do(DoPause(interrupt=interrupt))

    def resume(self) -> None:
        """Start it, go on, retry or relaunch, whichever its state asks for. Raises LimitReached at a used up budget."""
        core = self._core()
        if (limit := core.limit()) is not None:
            raise LimitReached(f"{limit}: raise it first")
        self._do(DoResume())

    def interrupt(self) -> None:
        """End its turn. Messages that wait stay."""
        self._do(DoInterrupt())

    async def stop(self, *, kill: bool = False, reason: str | None = None) -> None:
        """End it, and wait until nothing of its attempt runs."""
        self._do(DoStop(kill=kill, reason=reason))
        await self._host.wait(self._handle)

    def reseed(self, conversation: Snapshot | Sequence[ConversationMessage]) -> None:
        """Replace what it remembers. A suspended turn is given up."""
        seed = conversation.messages if isinstance(conversation, Snapshot) else tuple(conversation)
        if any(not isinstance(message, ConversationMessage) for message in seed):
            raise TypeError("a conversation is a Snapshot, or ConversationMessages")
        if not isinstance(conversation, Snapshot) or conversation.handle != self._handle:
            # The refs of another session's messages would pass for those of our own.
            seed = tuple(replace(message, ref=None) if message.role == "user" else message for message in seed)
        model = conversation.model if isinstance(conversation, Snapshot) else None
        core = self._core()
        core.seed = Conversation(list(seed), model)
        try:
            self._do(DoReseed(mode=ReseedMode.REPLACE, text=f"{len(seed)} messages"))
        except NotPossible:
            core.seed = None
            raise

    def budget(self, *, tokens: int | None = None, turns: int | None = None) -> None:
        """Limit what the attempt may use. Used up it is suspended; raised, `resume` goes on."""
        if min(tokens or 0, turns or 0) < 0:
            raise NotPossible("budget: what may be used is no less than 0")
        self._do(DoBudget(tokens=tokens, turns=turns))

    async def wait(self) -> Lifecycle:
        """Until nothing of it runs or waits; returns its state. A paused one blocks until somebody resumes it.

        Raises Deadlock inside of the turn of an agent that this one waits for.
        """
        if self._find() is None:
            raise self._gone()
        async with _in_turn(self._host, self._handle):
            return (await self._host.rest(self._handle)).state

    def notify(self, subscriber: LiveAgent, on: Collection[str | Lifecycle] = IDLE_OR_FAILED) -> None:
        """Tell another live agent of this host when this one reaches these states; what it has reached is told at once.

        A second call replaces the first, an empty set ends it. Raises Deadlock where that closes a circle, which it
        names; Unsupported for an agent of another host; NotPossible to itself, or of a state that is not told.
        """
        if not isinstance(subscriber, LiveAgent):
            raise TypeError(f"the subscriber must be a LiveAgent, not {type(subscriber).__name__}")
        if subscriber.host is not self._host:
            raise Unsupported(f"{subscriber.name!r} lives on another host")
        words = tuple(sorted(str(state) for state in on))
        core = self._core()
        if words and subscriber.handle != self._handle:
            circle = self._host.core.between.circle(core.id, subscriber.handle)
            if circle is not None:
                raise Deadlock(f"that closes a circle: {' tells '.join(circle)}")
        self._do(DoNotify(subscriber=subscriber.handle, on=words))

    # --- inside

    def _find(self) -> SessionCore | MirrorSession | None:
        entry = self._host.core.roster.get(self._handle)
        core = entry.core if entry is not None else None
        return core if isinstance(core, SessionCore | MirrorSession) else None

    def _gone(self) -> StaleTarget:
        return StaleTarget(f"this host runs no session {self._handle!r}")

    def _core(self) -> SessionCore:
        core = self._find()
        if isinstance(core, MirrorSession):
            how = f"use `await host.intervene({self._handle!r}, ...)`"
            raise Unsupported(f"another process runs {self.name!r}, and answers when it has been told: {how}")
        if core is None:
            raise self._gone()
        return core

    def _do(self, do: Do) -> Handled:
        self._core()
        handled = self._host.command(self._handle, do, by=self._by)
        if not handled.applied:
            raise NotPossible(f"{do.primitive}: {handled.reason or handled.outcome.value}")
        return handled


@asynccontextmanager
async def _in_turn(host: Host, session: str) -> AsyncIterator[None]:
    """A wait inside of an agent's turn counts among those that must not close a circle."""
    waiter = CURRENT.get()
    if waiter is None or waiter not in host.core.roster:
        yield
        return
    async with host.waits_for(waiter, session):
        yield


async def _when_there(host: Host, session: str, what: Awaitable[T]) -> T:
    try:
        return await what
    except KeyError:
        if session in host.core.roster:
            raise
        raise StaleTarget(f"this host runs no session {session!r}") from None
