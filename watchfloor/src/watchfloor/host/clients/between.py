"""Operations that concern more than one session: a fork, and who hears what became of another one.

A subscription is mail: when the session comes to rest or fails, its subscriber gets a message about it. It steers a
subscriber that runs, wakes an idle one, queues for a paused one, and is dropped for one that is over. Coming to rest
without having done anything is no news.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from watchfloor.host.clients.roster import Roster
from watchfloor.host.effects import ForkSession, Handled, Reached, SessionEffect
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.session import SessionCore
from watchfloor.host.sessions.state import Phase
from watchfloor.protocol.frames import DoFork, DoNotify
from watchfloor.protocol.model import JsonObject
from watchfloor.words import OutcomeKind

NEWS: Final = ("idle", "completed", "failed", "stopped")
"""What a session can be told of another one."""
REPLY: Final = 16_384
"""Code points of a final reply that a subscriber is told."""


class Between:
    """What the sessions of one host have to do with each other."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    def fork(self, core: SessionCore, do: DoFork) -> Handled:
        """A new session that begins with what this one remembers."""
        fixed = self._roster.fixed(core.id)
        name = (do.name or "").strip() or f"{fixed.get('name') or core.id} (fork)"
        id = self._roster.free_id(name, fresh=True)
        seed = tuple(core.conversation.messages)
        effect = ForkSession(core.id, id, name, seed, core.conversation.model)
        return Handled(OutcomeKind.APPLIED, [effect], info={"session": id, "name": name})

    # --- subscriptions

    def notify(self, core: SessionCore, do: DoNotify, now: int) -> Handled:
        """Tell the subscriber from now on when this session comes to rest, or fails; with nothing named, no more."""
        fault = self._misfit(core, do)
        if fault is not None:
            return Handled(OutcomeKind.INVALID, reason=fault)
        on = [word for word in NEWS if word in do.on]
        info: JsonObject = {"subscriber": do.subscriber, "on": [*on]}
        if not on:
            known = core.subscribers.pop(do.subscriber, None) is not None
            return Handled(OutcomeKind.APPLIED, info=info if known else {**info, "noop": True})
        core.subscribers[do.subscriber] = frozenset(on)
        reached = core.reached()
        effects: list[SessionEffect] = []
        if reached in on:
            effects = self.tell(do.subscriber, core, reached, now)
        return Handled(OutcomeKind.APPLIED, effects, info=info)

    def _misfit(self, core: SessionCore, do: DoNotify) -> str | None:
        unknown = [word for word in do.on if word not in NEWS]
        if unknown:
            return f"nobody can be told of '{shown(unknown[0])}', only of {', '.join(NEWS)}"
        if do.subscriber == core.id:
            return "a session is not told of itself"
        subscriber = self._core(do.subscriber)
        if subscriber is None:
            return f"this host runs no session '{shown(do.subscriber)}'"
        if do.on and subscriber.capabilities.send is None:
            return f"{shown(do.subscriber)} takes no messages"
        if do.on and (circle := self.circle(core.id, do.subscriber)):
            return f"that closes a circle: {' tells '.join(shown(id) for id in circle)}"
        return None

    def circle(self, session: str, subscriber: str) -> list[str] | None:
        """The sessions that would wake each other for ever if this one told that subscriber: who tells whom."""
        path = self._path(session, subscriber)
        return [*path, subscriber] if path else None

    def _path(self, start: str, end: str) -> list[str] | None:
        """How news of `end` would come to `start` by the subscriptions that there are: who tells whom."""
        paths = [[end]]
        seen = {end}
        while paths:
            path = paths.pop(0)
            if path[-1] == start:
                return path
            core = self._core(path[-1])
            for other in core.subscribers if core is not None else ():
                if other not in seen:
                    seen.add(other)
                    paths.append([*path, other])
        return None

    def news(self, effect: Reached) -> list[SessionEffect]:
        """A session has reached a state: what follows for those who are to be told."""
        core = self._core(effect.session)
        if core is None:
            return []
        effects: list[SessionEffect] = []
        for subscriber, on in list(core.subscribers.items()):
            if effect.state in on:
                effects += self.tell(subscriber, core, effect.state, effect.at)
        return effects

    def tell(self, subscriber: str, core: SessionCore, state: str, now: int) -> list[SessionEffect]:
        """Put the news into the subscriber's mailbox, unless it is over."""
        told = self._core(subscriber)
        if told is None or told.phase in (Phase.STOPPED, Phase.COMPLETED):
            return []
        name = str(self._roster.fixed(core.id).get("name") or core.id)
        return told.send(_text(name, state, core), core.id, now, event=state).effects

    def _core(self, session: str) -> SessionCore | None:
        entry = self._roster.get(session)
        return entry.core if entry is not None and isinstance(entry.core, SessionCore) else None


def cyclic_wait(waits: Mapping[str, Collection[str]], waiter: str, target: str) -> list[str] | None:
    """The circle that a wait of `waiter` for `target` would close, given who waits for whom; None for none."""
    paths = [[waiter, target]]
    seen = {target}
    while paths:
        path = paths.pop(0)
        if path[-1] == waiter:
            return path
        for following in waits.get(path[-1], ()):
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    return None


def _text(name: str, state: str, core: SessionCore) -> str:
    match state:
        case "failed":
            return f"{name} failed: {core.error or 'without a reason'}"
        case "stopped":
            return f"{name} was stopped{f' ({core.why})' if core.why else ''}."
        case _:
            said = core.last_words()
            line = f"{name} is now {state}."
            return f"{line} Its final reply:\n\n{said[:REPLY]}" if said else f"{line} It said nothing."
