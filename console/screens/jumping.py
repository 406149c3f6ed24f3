"""Jumping: every part and line in sight gets a letter, and pressing it puts the keys and the cursor there."""

from __future__ import annotations

import string
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final, NamedTuple

from textual import events

from console.screens.reading import Reading
from widgets.painting import LineView
from widgets.roster import Roster

if TYPE_CHECKING:
    from console.screens.flows.asking import Ask

_PARTS: Final = string.digits[1:]
_LINES: Final = "asdfghjklqwertyuiopzxcvbnm" + string.ascii_uppercase
"""The keys under the fingers first."""


class _Place(NamedTuple):
    pane: LineView
    line: Hashable = None


class Jumping(Reading):
    """A screen whose parts and lines can be named by a letter."""

    _places: dict[str, _Place] | None = None

    @property
    def jumping(self) -> bool:
        """Are letters shown? Then the next key is one of them, and nothing else."""
        return self._places is not None

    def jump(self) -> None:
        """Show the letters."""
        places: dict[str, _Place] = {}
        lines = iter(_LINES)
        for digit, pane in zip(_PARTS, self._panes(), strict=False):
            places[digit] = _Place(pane)
            # Those that are in sight: further ones have no line to stand on.
            named = dict(zip(pane.lines_in_sight(), lines, strict=False))
            places.update({letter: _Place(pane, line) for line, letter in named.items()})
            pane.label(digit, named)
        self._places = places
        self.deafen(True)
        self.say("jump: a letter, or a number for a part; any other key leaves it", holds=lambda: self.jumping)

    def jump_by(self, event: events.Key) -> None:
        """Go where this key says, if it is one of the letters; they are gone then."""
        event.stop()
        place = self.leave_jump().get(event.character or "")
        if place is None:
            self._quiet.strayed(event.key)
            return
        self._quiet.moved()
        self.set_focus(place.pane, scroll_visible=False)
        if place.line is not None and place.pane.go_to_line(place.line) and isinstance(place.pane, Roster):
            self._moved()

    def ask(self, ask: Ask) -> None:
        """What is asked has the keys."""
        self.leave_jump()
        super().ask(ask)

    def leave_jump(self) -> dict[str, _Place]:
        """Take the letters away; returns what they stood for."""
        places, self._places = self._places or {}, None
        for pane in self.parts():
            pane.label("", {})
        self.deafen(False)
        return places
