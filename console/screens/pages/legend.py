"""What the letters and words of the fleet screen stand for, as the help tells it."""

from __future__ import annotations

from console.fleet.roster.filter import KEYS
from console.fleet.views.row import LETTERS
from watchfloor.text import Clean
from widgets.facts import FactRow


def legend() -> list[FactRow]:
    """The letters of the roster, some of its words, and what a filter is made of."""
    letters = "  ".join(f"{letter} {primitive.value}" for primitive, letter in LETTERS)
    return [
        (Clean("CAN"), Clean(letters), "quiet"),
        (Clean("TRY"), Clean("which attempt it is"), "quiet"),
        (Clean("? was"), Clean("the last known state: its source is not heard"), "quiet"),
        (Clean("whole"), Clean("every event of the session is known here"), "quiet"),
        (Clean("unverified"), Clean("a name that no token vouches for"), "quiet"),
        (Clean("filter"), Clean("  ".join(f"{key}:" for key in KEYS) + "  or any text"), "quiet"),
        (Clean(""), Clean('- before a term turns it round, a,b is either, "a text" may hold blanks'), "quiet"),
    ]
