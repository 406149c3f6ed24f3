"""What the agents of the demo share: their host, their folder, their tools, and the pace at which they work."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

from console.demo.shell import CommandFailed, shell
from watchfloor.harness.base import MailItem
from watchfloor.harness.run import ALLOW_ONCE, DENY, Run, ToolOutcome
from watchfloor.host.serving.server import Host
from watchfloor.protocol.events import ToolStatus
from watchfloor.protocol.model import Option
from watchfloor.words import Lifecycle

Mail = tuple[MailItem, ...]

SLICE_S: Final = 0.25
"""A pause lands and mail is read at least this often while an agent rests."""
REMEMBERS: Final = 60
"""Messages that an agent which never ends keeps in its conversation."""


class Calm:
    """Keeps the demo's requests apart, so that an operator can look at each of them."""

    def __init__(self, rng: Random, *, least_s: float = 20.0, most_s: float = 40.0) -> None:
        self._rng = rng
        self._least_s = least_s
        self._most_s = most_s
        self._last = float("-inf")

    def reserve(self, now: float) -> float:
        """Seconds until whoever asks this may open a request; no other one gets a place near it."""
        self._last = max(self._last, now) + self._rng.uniform(self._least_s, self._most_s)
        return self._last - now


class Pace:
    """Evenly spaced places in time for events."""

    BEHIND_S: Final = 1.0
    """Places that were missed for longer than this (a pause, a sleeping computer) are not made up for."""

    def __init__(self, per_s: float) -> None:
        self._gap = 1 / per_s
        self._next: float | None = None

    def take(self, now: float) -> float:
        """Take the next place; returns how many seconds it is away."""
        late = self._next is None or now - self._next > self.BEHIND_S
        due = now if late or self._next is None else self._next
        self._next = due + self._gap
        return max(0.0, due - now)


class Stage:
    """`tempo` divides every rest of the agents; it leaves the streamers' rate alone. All seconds here are calm ones."""

    def __init__(self, host: Host, workspace: Path, *, seed: int, tempo: float = 1.0) -> None:
        self.host = host
        self.workspace = workspace
        self._seed = seed
        self._tempo = tempo
        self._calm = Calm(self.rng("calm"))

    def rng(self, key: str) -> Random:
        """A source of its own for whatever `key` names: what one agent draws never depends on another one."""
        return Random(f"{self._seed}/{key}")  # noqa: S311 - texts, nothing secret

    def reserve(self) -> float:
        """Seconds until the next request may be opened; see `Calm`."""
        return self._calm.reserve(asyncio.get_running_loop().time() * self._tempo)

    # --- time

    async def rest(self, run: Run, seconds: float) -> Mail:
        """Do nothing for a while. Pauses and stops land meanwhile; mail ends it early and is returned."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds / self._tempo
        while (left := end - loop.time()) > 0:
            await run.sleep(min(left, SLICE_S))
            if mail := await run.checkpoint():
                return mail
        return ()

    async def fill(self, run: Run, seconds: float, steps: Sequence[Callable[[], Awaitable[object]]]) -> Mail:
        """Take the steps, spread over a while. Mail ends it early and is returned."""
        for step in steps:
            if mail := await self.rest(run, seconds / (len(steps) + 1)):
                return mail
            await step()
        return await self.rest(run, seconds / (len(steps) + 1))

    def later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Call something after a while."""
        return asyncio.get_running_loop().call_later(seconds / self._tempo, call)

    # --- other sessions

    def lifecycle(self, session: str) -> Lifecycle:
        return self.host.core.session(session).lifecycle

    def post(self, session: str, text: str, by: str) -> str | None:
        """Put a message into a session's mailbox; returns its ref, or None where the session takes none now."""
        handled = self.host.core.session(session).send(text, by, self.host.now())
        self.host.perform(self.host.core.apply(handled.effects))
        ref = handled.info.get("ref")
        return ref if isinstance(ref, str) else None

    # --- tools

    async def shell(
        self,
        run: Run,
        command: str,
        *,
        gate: bool = False,
        options: Sequence[Option] = (ALLOW_ONCE, DENY),
        about: str | None = None,
    ) -> ToolOutcome[str]:
        """Run a command in the workspace, asking first with `gate`. A command that fails is an outcome, too."""

        async def call() -> str:
            return await shell(command, self.workspace)

        try:
            return await run.tool(
                "shell", None, call, gate=gate, text=command, cwd=str(self.workspace), options=options, about=about
            )
        except CommandFailed as error:
            return ToolOutcome(ToolStatus.ERROR, str(error))

    async def read(self, run: Run, path: str) -> str:
        """The text of a file in the workspace; empty where it is not there."""

        def call() -> str:
            return self.text(path)

        return (await run.tool("read", None, call, gate=False, text=path, cwd=str(self.workspace))).value or ""

    async def edit(self, run: Run, path: str, new: str, *, gate: bool, about: str | None = None) -> ToolOutcome[str]:
        """Replace the text of a file, asking with the difference first where `gate` is set.

        A file that somebody changed in the meantime is left alone: what was allowed is this difference, no other.
        """
        old = self.text(path)

        def call() -> str:
            if self.text(path) != old:
                raise CommandFailed(f"{path} was changed meanwhile and is left as it is")
            (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / path).write_text(new, encoding="utf-8", errors="replace")
            return f"wrote {path}, {len(new.splitlines())} lines"

        try:
            return await run.tool(
                "edit",
                None,
                call,
                gate=gate,
                text=path,
                cwd=str(self.workspace),
                diff=difference(path, old, new),
                about=about,
            )
        except CommandFailed as error:
            return ToolOutcome(ToolStatus.ERROR, str(error))

    def text(self, path: str) -> str:
        """What a file in the workspace holds; empty where it is not there."""
        try:
            return (self.workspace / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def digest(self, path: str) -> str | None:
        """The first digits of a file's SHA-256, None where it is not there."""
        try:
            return hashlib.sha256((self.workspace / path).read_bytes()).hexdigest()[:16]
        except FileNotFoundError:
            return None


def difference(path: str, old: str, new: str) -> str:
    """What changes in a file, as a unified diff."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), fromfile=f"a/{path}", tofile=f"b/{path}"
    )
    return "".join(lines)


def forget(run: Run) -> None:
    """Let the oldest part of a conversation go, so that an agent which never ends does not grow."""
    del run.messages[:-REMEMBERS]


def last_line(text: str | None) -> str:
    """The last line of what a command wrote, empty for none."""
    return ((text or "").strip().splitlines() or [""])[-1]
