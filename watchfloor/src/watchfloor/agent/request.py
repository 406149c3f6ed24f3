"""One execution with its own models, and the token by which a run is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from watchfloor.protocol.events import Event


class CancelToken:
    """Cancels the runs that it was given to. Cancelled once, it stays so. Belongs to one event loop."""

    def __init__(self) -> None:
        self._cancelled = False
        self._now = False
        self._told: list[Callable[[bool], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self, *, now: bool = False) -> None:
        """End the run at its next check point: between two steps, or where it waits for people or for the clock.

        With `now` the step under way is cancelled too.
        """
        if self._cancelled and (self._now or not now):
            return
        self._cancelled, self._now = True, now
        for told in list(self._told):
            told(now)

    def tell(self, told: Callable[[bool], None]) -> Callable[[], None]:
        """Call `told` with whether it must be at once, when the token is cancelled, or right away where it is.

        Returns what ends that.
        """
        self._told.append(told)
        if self._cancelled:
            told(self._now)

        def end() -> None:
            if told in self._told:
                self._told.remove(told)

        return end


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """What `Agent.execute` runs: nothing of the builder's is applied.

    `input` None: the last message of the user drives. The labels of models, the provider and the skills are for the
    agent's function (`turn.request`). `events` is called with each event.

        ExecuteRequest.build().input("Deploy").model("large").fast_model("small").done()
    """

    input: str | None = None
    model: str | None = None
    fast_model: str | None = None
    background_model: str | None = None
    summarization_model: str | None = None
    provider: str | None = None
    skills: tuple[str, ...] = ()
    events: Callable[[Event], None] | None = None
    cancel: CancelToken | None = field(default=None, compare=False)

    @staticmethod
    def build() -> ExecuteRequestBuilder:
        return ExecuteRequestBuilder()


class ExecuteRequestBuilder:
    """Makes an `ExecuteRequest`, a word at a time."""

    def __init__(self) -> None:
        self._made = ExecuteRequest()

    def input(self, text: str) -> Self:
        return self._with(input=text)

    def model(self, label: str) -> Self:
        return self._with(model=label)

    def fast_model(self, label: str) -> Self:
        return self._with(fast_model=label)

    def background_model(self, label: str) -> Self:
        return self._with(background_model=label)

    def summarization_model(self, label: str) -> Self:
        return self._with(summarization_model=label)

    def provider(self, name: str) -> Self:
        return self._with(provider=name)

    def skills(self, *names: str) -> Self:
        return self._with(skills=names)

    def events(self, take: Callable[[Event], None]) -> Self:
        return self._with(events=take)

    def cancel(self, token: CancelToken) -> Self:
        return self._with(cancel=token)

    def done(self) -> ExecuteRequest:
        return self._made

    def _with(self, **values: object) -> Self:
        self._made = replace(self._made, **values)  # type: ignore[arg-type]  # each caller names a field
        return self
