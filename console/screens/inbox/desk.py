"""What decisions on several requests need from the inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from console.fleet.apply import Fleet
from console.fleet.facts import Intent, Refusal, Seen
from console.fleet.gate import Gated
from console.fleet.state import Request, Trail
from console.screens.flows.asking import Ask, Drafts
from console.screens.flows.interventions import UNDO_S, Interventions
from console.screens.flows.together import Outcome
from watchfloor.text import Clean
from widgets.tones import Tone

if TYPE_CHECKING:
    from console.hub import Hub


class InboxDesk:
    """The desk of the screen, with a way to send several decisions."""

    def __init__(
        self,
        interventions: Interventions,
        hub: Hub,
        *,
        undo: str,
        show: Callable[[Sequence[Outcome]], None],
        begin: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Create it. `undo`: the key that takes back what waits to be sent. `show` shows what becomes of them; `begin`
        runs what has to be waited for."""
        self._one = interventions
        self._hub = hub
        self._undo = undo
        self._show = show
        self._begin = begin

    @property
    def fleet(self) -> Fleet:
        return self._hub.fleet

    @property
    def by(self) -> str:
        return self._hub.by

    @property
    def now(self) -> int:
        return self._one.now

    @property
    def steady(self) -> int:
        return self._hub.steady()

    @property
    def read_only(self) -> bool:
        return self._hub.read_only

    @property
    def undo(self) -> str:
        return self._undo

    def ask(self, ask: Ask) -> None:
        self._one.ask(ask)

    def say(self, text: Clean, tone: Tone = "plain") -> None:
        self._one.say(text, tone)

    def gate(self, intent: Intent) -> Gated | Refusal:
        return self._hub.gate(intent)

    def submit(self, intent: Intent, *, sure: bool = False, drafts: Drafts = ()) -> None:
        self._one.submit(intent, sure=sure, drafts=drafts)

    def entered(self, name: str, value: str) -> None:
        self._one.entered(name, value)

    def seen(self, request: Request) -> Seen:
        return self._one.seen(request)

    def begin_all(self, commands: Sequence[Intent]) -> Sequence[Trail]:
        """Begin all of them at once, so that no key that follows finds one undecided, then send what was begun."""
        trails = [self._hub.begin(command) for command in commands]
        sent = [trail for trail in trails if trail.id in self.fleet.trails]

        async def dispatch() -> None:
            await asyncio.gather(*(self._hub.dispatch(trail, hold_s=UNDO_S) for trail in sent))

        self._begin(dispatch())
        return trails

    def show_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        self._show(outcomes)
