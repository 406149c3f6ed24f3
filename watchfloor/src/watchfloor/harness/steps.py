"""What an agent function waits for, and how an operator's word cuts it short.

Everything that an agent awaits through its `Run` is a step. When the turn is ended from outside, its tasks are
cancelled, and inside of a step the cancellation appears as `Interrupted` or `Stopped`. An agent that swallows that
gets it again at its next step; one that was given up on waits there for ever, so that it can neither act nor spin.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from watchfloor.errors import AgentError, Stopped
from watchfloor.harness.base import Decided, Withdrawn


class Steps:
    """The steps of one turn. Lives on the event loop it was made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main: asyncio.Task[object] | None = None
        self._tasks: dict[asyncio.Task[object], int] = {}
        self._requests: dict[str, asyncio.Future[Decided | Withdrawn]] = {}
        self._rests: dict[asyncio.Future[None], bool] = {}  # by whether a resume ends it
        self._end: tuple[type[AgentError], str] | None = None
        self._stop: str | None = None
        self._given_up = False

    # --- the agent's side ------------------------------------------------------------------

    def step(self) -> Step:
        """`async with steps.step():` around whatever the agent awaits. Lets other tasks run once, first."""
        return Step(self)

    def check(self) -> None:
        """Raise what ended the turn, if anything did."""
        if self._end is not None:
            kind, text = self._end
            raise kind(text)

    def check_stop(self) -> None:
        """Raise `Stopped` where a gentle stop was asked for: for the boundaries between steps."""
        if self._stop is not None:
            raise Stopped(self._stop)

    async def rest(self, timeout_s: float | None = None) -> None:
        """Do nothing: for a time, or (None) until the session is resumed. A gentle stop ends it early."""
        if self._stop is not None:
            return
        rest: asyncio.Future[None] = self._loop.create_future()
        timer = None if timeout_s is None else self._loop.call_later(timeout_s, _finish, rest)
        self._rests[rest] = timeout_s is None
        try:
            await rest
        finally:
            del self._rests[rest]
            if timer is not None:
                timer.cancel()

    def expect(self, request: str) -> asyncio.Future[Decided | Withdrawn]:
        """The end of a request that is about to be opened. Raises Stopped where nobody would answer it any more."""
        self.check_stop()
        self._requests[request] = self._loop.create_future()
        return self._requests[request]

    def forget(self, request: str) -> bool:
        """Nobody waits for the request any more; True if it had not ended."""
        future = self._requests.pop(request)
        return future.cancelled() or not future.done()

    # --- the session's side ----------------------------------------------------------------

    def begin(self) -> None:
        """The agent function is about to run in the current task. Raises what ended the turn before it began."""
        self._main = asyncio.current_task()
        self.check()

    def release(self) -> bool:
        """The session goes on; True if a step had waited for it."""
        parked = [rest for rest, ends_by_resume in self._rests.items() if ends_by_resume]
        for rest in parked:
            _finish(rest)
        return bool(parked)

    def settle(self, signal: Decided | Withdrawn) -> None:
        """A request ended."""
        future = self._requests.get(signal.request)
        if future is not None and not future.done():
            future.set_result(signal)

    def stop_gently(self, text: str) -> None:
        """Nobody waits for a human or for the clock any longer: requests count as denied, rests end."""
        self._stop = text
        for request in list(self._requests):
            self.settle(Withdrawn(request, text))
        for rest in list(self._rests):
            _finish(rest)

    def end(self, kind: type[AgentError], text: str) -> None:
        """End the turn: cancel whatever it awaits. May be called again with a harder reason."""
        self._end = (kind, text)
        for task in {*self._tasks, *({self._main} if self._main is not None else ())}:
            task.cancel()

    def close(self, kind: type[AgentError], text: str) -> None:
        """The agent function has ended: what it left running in the background is ended too."""
        self._main = None
        self.end(kind, text)

    @property
    def given_up(self) -> bool:
        return self._given_up

    def give_up(self) -> None:
        """The agent did not end in time: it never gets out of a step again."""
        self._given_up = True

    # --- for Step --------------------------------------------------------------------------

    async def enter(self, task: asyncio.Task[object]) -> None:
        if self._given_up:
            await self._loop.create_future()
        self._tasks[task] = self._tasks.get(task, 0) + 1
        try:
            # Without it an agent that checks in a loop, or one that swallows its end, would starve everything else.
            await asyncio.sleep(0)
            self.check()
        except BaseException as error:
            self.leave(task, error)
            raise

    def leave(self, task: asyncio.Task[object], error: BaseException | None) -> None:
        if self._tasks[task] == 1:
            del self._tasks[task]
        else:
            self._tasks[task] -= 1
        if self._end is not None and (error is None or isinstance(error, asyncio.CancelledError)):
            if error is not None:
                task.uncancel()  # it is an exception from here on; time-outs around it must not see a cancellation
            self.check()


class Step:
    """One step; see `Steps.step`."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        task: asyncio.Task[object] | None = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._task = task

    async def __aenter__(self) -> Self:
        await self._steps.enter(self._task)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._steps.leave(self._task, error)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
