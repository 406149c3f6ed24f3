"""What the flows of interventions need from the screen that they run on."""

from __future__ import annotations

from typing import Protocol

from console.fleet.apply import Fleet
from console.fleet.facts import Intent, Refusal, Seen
from console.fleet.gate import Gated
from console.fleet.state import Request
from console.screens.flows.asking import Ask, Drafts
from watchfloor.text import Clean
from widgets.tones import Tone


class Desk(Protocol):
    """A screen with a drawer, a line for notices, and a way to send commands."""

    @property
    def fleet(self) -> Fleet: ...

    @property
    def by(self) -> str:
        """The operator's name."""
        ...

    @property
    def now(self) -> int:
        """Milliseconds since 1970 UTC."""
        ...

    def ask(self, ask: Ask) -> None:
        """Ask this in the drawer."""
        ...

    def say(self, text: Clean, tone: Tone = "plain") -> None:
        """One line to the operator, at once."""
        ...

    def gate(self, intent: Intent) -> Gated | Refusal:
        """May this go out now?"""
        ...

    def submit(self, intent: Intent, *, sure: bool = False, drafts: Drafts = ()) -> None:
        """Send the command, or say why not. What has to be agreed to is asked first, unless `sure`.

        `drafts` are the texts in it; they are kept until it is sent.
        """
        ...

    def entered(self, name: str, value: str) -> None:
        """Show on the card what was given for a field of the question."""
        ...

    def seen(self, request: Request) -> Seen:
        """What of the request the operator has had before them, as of now."""
        ...
