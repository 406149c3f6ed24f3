"""The sessions of a host: how they are added, come back, branch off, and are forgotten."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from watchfloor.errors import StorageCorrupt, WatchfloorError
from watchfloor.harness.base import AgentHarness, AttemptSpec, ConversationMessage
from watchfloor.host.core import HostCore
from watchfloor.host.effects import ForkSession, HostEffect
from watchfloor.host.running.runner import Runner
from watchfloor.host.serving.stored import OF_THE_LOG, StoredHarness
from watchfloor.host.sessions.mailbox import number_of
from watchfloor.host.sessions.record import fixed_of
from watchfloor.logs import logger
from watchfloor.protocol.events import Child

LISTED: Final = 1000
"""Sessions of the log that are listed, the newest ones."""
FORKED: Final = "forked_from"
"""The label that names the session of which one is a fork."""
_log = logger(__name__)


class Adding(ABC):
    """That side of a host."""

    _core: HostCore
    _runner: Runner
    _closed: bool

    @abstractmethod
    def now(self) -> int: ...

    @abstractmethod
    def perform(self, effects: list[HostEffect]) -> None: ...

    def add(
        self,
        harness: AgentHarness,
        *,
        name: str,
        id: str | None = None,
        parent: str | None = None,
        labels: Mapping[str, str] | None = None,
        cwd: str | None = None,
        demo: bool = False,
        owned: bool = False,
        text: str | None = None,
        messages: Sequence[ConversationMessage] = (),
        model: str | None = None,
        start: bool = True,
    ) -> str:
        """Add a session and return its id. It runs at once where `text` is given, or where the harness starts itself
        (unless `start` is False). `messages` and `model` are what it remembers from the beginning.

        A session that the log knows by its id comes back as it was, and nothing is sent or started: a turn that ran
        when the host ended is suspended, until `resume` takes it up with the same mail.

        Raises ValueError where the id is taken, TypeError for what is no harness,
        WatchfloorError once the host has ended.
        """
        only_harness(harness)
        if text is not None and not isinstance(text, str):
            raise TypeError(f"a message is a text, not {type(text).__name__}")
        if self._closed:
            raise WatchfloorError("the host has ended: nothing can be added to it any more")
        session = id if id is not None else self._core.roster.free_id(name)
        fixed: dict[str, object] = {"name": name, "parent": parent, "labels": dict(labels or {}), "cwd": cwd}
        self._make_room(session)
        core = self._core.add(
            session,
            capabilities=harness.capabilities,
            traits=harness.traits,
            now=self.now(),
            starts_itself=harness.starts_itself,
            grace_s=harness.grace_s,
            fixed={**fixed, "demo": demo, "owned": owned},
        )
        spec = AttemptSpec(session_id=session, attempt=1, name=name, cwd=cwd, labels=dict(labels or {}))
        self._runner.add(harness, spec)
        back = self._core.come_back(session, self.now())
        if back is not None:
            self.perform(back)
            return session
        core.conversation.messages.extend(messages)
        # A message that is sent now must not pass for one of those.
        core.mailbox.number_on(max((number_of(m.ref) or 0 for m in messages if m.ref is not None), default=0))
        core.conversation.model = model
        effects = core.start(self.now()) if text is None and harness.starts_itself and start else []
        if text is not None:
            effects = core.send(text, self._core.info.name, self.now()).effects
        self.perform(self._core.apply(effects))
        return session

    def add_child(self, parent: str, harness: AgentHarness, name: str, text: str | None) -> str:
        """A session that another one started; the parent's folder and marks are its own too."""
        entry = self._core.roster.get(parent)
        fixed = entry.fixed if entry is not None else {}
        session = self.add(
            harness,
            name=name,
            # A new child is none that was there before this host ended: what it is told would not reach that one.
            id=self._core.roster.free_id(name, fresh=True),
            parent=parent,
            cwd=self._runner[parent].spec.cwd,
            demo=bool(fixed.get("demo")),
            owned=bool(fixed.get("owned")),
            text=text,
        )
        child = Child(at=self.now(), session=session, name=name)
        self.perform(self._core.apply(self._core.session(parent).emit(child, self.now())))
        return session

    def remove(self, session: str) -> None:
        """Forget a session. Raises KeyError where there is none, WatchfloorError while an attempt of it runs."""
        if self._core.session(session).alive:
            raise WatchfloorError(f"an attempt of {session!r} runs: stop it first")
        self._forget(session)
        self.perform([])

    def _forget(self, session: str, *, erase: bool = False) -> None:
        self._core.remove(session, erase=erase)
        self._runner.forget(session)

    async def list_stored(self) -> tuple[str, ...]:
        """List what else the log keeps: sessions that this program has not added. Returns their ids, oldest first.

        They are as they were, to be read and deleted; nothing runs them until they are added by their ids. Forks of a
        session that runs here run as that one does. The newest thousand are listed at most. To be called once all
        others were added, else new ones take the ids of old ones.
        """
        log = self._core.log
        there = [name for name in log.sessions() if name not in self._core.roster]
        listed: list[str] = []
        for session in there[-LISTED:]:
            # Each is read whole, and whoever is connected already must not wait for all of them.
            await asyncio.sleep(0)
            saved = log.state(session) if session not in self._core.roster else None
            if saved is None:
                continue
            try:
                self._list(session, saved[0])
            except (StorageCorrupt, ValueError) as error:
                _log.warning("what the log keeps of %r cannot be listed: %s", session, error)
            else:
                listed.append(session)
        return tuple(listed)

    def _list(self, session: str, saved: str) -> None:
        fixed = fixed_of(saved)
        labels = {name: text for name, text in (fixed.get("labels") or {}).items() if name != OF_THE_LOG}
        harness = self._runner.harness(str(labels.get(FORKED)))
        if harness is None or isinstance(harness, StoredHarness):
            harness, labels = StoredHarness(), {**labels, OF_THE_LOG: "yes"}
        try:
            self.add(harness, **{"name": session, **fixed, "labels": labels}, id=session, start=False)
        except StorageCorrupt:
            self._core.put_away(session)
            self._runner.forget(session)
            raise

    def _make_room(self, session: str) -> None:
        """What is only listed gives way to whoever runs it."""
        if session in self._core.roster and isinstance(self._runner.harness(session), StoredHarness):
            self._core.put_away(session)
            self._runner.forget(session)

    def _fork(self, fork: ForkSession) -> None:
        hosted = self._runner[fork.session]
        fixed = self._core.roster.fixed(fork.session)
        parent = fixed.get("parent")
        self.add(
            hosted.harness,
            name=fork.name,
            id=fork.id,
            parent=parent if isinstance(parent, str) else None,
            labels={**hosted.spec.labels, FORKED: fork.session},
            cwd=hosted.spec.cwd,
            demo=bool(fixed.get("demo")),
            owned=bool(fixed.get("owned")),
            messages=fork.messages,
            model=fork.model,
            start=False,
        )


def only_harness(harness: object) -> None:
    """Raises TypeError for what is no harness, with what was probably meant."""
    if not isinstance(harness, type) and hasattr(harness, "capabilities") and hasattr(harness, "starts_itself"):
        return
    name = getattr(harness, "__name__", type(harness).__name__)
    if isinstance(harness, type):
        raise TypeError(f"a harness is added, not its class: {name}(...)")
    if hasattr(harness, "capabilities"):
        raise TypeError(f"{name} has no `starts_itself`: a harness of the smaller seam is added as Streamed(...)")
    raise TypeError(f"a harness is added, not {name}: FunctionHarness({name}) makes one of an async function")
