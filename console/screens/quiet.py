"""Whether an operator who has just written is still at it, or writes where nothing is asked for: what is typed so must
not act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

QUIET_MS: Final = 700
"""How long no key may have been pressed before one acts again. Words follow each other faster than that."""
WORD_MS: Final = 300
"""Letters of a word follow each other faster than that; a hand that means each key by itself is slower."""
HOLD_MS: Final = 250
"""How long what a single key has begun does not leave: the next letter of a text comes sooner, and takes it back."""
_LETTERS: Final = 3
"""So many different keys in the time of a word are one."""
WRITING: Final = f"you were writing just now: keys act again {QUIET_MS / 1000:g} s after the last one"


class Quiet:
    """Counts from the moment in which a text box closed, and looks at what follows each other as letters do.

    `clock` gives milliseconds and is never set.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._since: int | None = None
        self._last_at: int | None = None
        self._last = ""
        self._letters: set[str] = set()
        self._stray = False
        """Did the last key do nothing? A hand that hit it by mistake stops for a moment."""
        self._kind = ""
        """In which way the last key intervened, if it did."""

    def broken(self) -> None:
        """Text came in: a box for it has closed, or it was pasted where none is."""
        self._since = self._clock()

    def over(self) -> None:
        """What comes next was chosen, and is no key that somebody writes on with."""
        self._since = None
        self.parted()

    @property
    def waits(self) -> bool:
        """Is the pause still to come?"""
        return self._since is not None and self._clock() - self._since < QUIET_MS

    def pressed(self) -> bool:
        """A key was pressed. True: it may belong to what was written, and the pause begins once more."""
        if not self.waits:
            self._since = None
            return False
        self._since = self._clock()
        return True

    # What is written although nothing asks for it.

    def parted(self) -> None:
        """What comes next does not belong to what came before."""
        self._last_at, self._last, self._stray, self._kind = None, "", False, ""
        self._letters.clear()

    def moved(self) -> None:
        """A key came that moves something: no text begins with it, and none ends by it."""
        now = self._clock()
        if self._last_at is not None and now - self._last_at < WORD_MS:
            self._last_at, self._kind = now, ""
        else:
            self.parted()

    def looked(self, key: str) -> None:
        """A key came that changes nothing at any source."""
        self._follows(key)
        self._stray, self._kind = False, ""

    def strayed(self, key: str) -> None:
        """A printable key came that does nothing here; right behind another one it is a letter of a text."""
        other = key != self._last
        if self._follows(key) and other:
            self.broken()
        self._stray, self._kind = True, ""

    def intervenes(self, key: str, kind: str) -> bool:
        """A key came that would change something, in a way: nobody decides right behind steering, nor the
        other way round. True: it is a letter of a text, and the pause begins."""
        other = self._kind not in ("", kind)
        stray, self._stray, self._kind = self._stray, False, kind
        written = self._follows(key) and (stray or other or len(self._letters) >= _LETTERS)
        if written:
            self.broken()
        return written

    def _follows(self, key: str) -> bool:
        """Note the key; does it follow another one as letters do?"""
        now = self._clock()
        quick = self._last_at is not None and now - self._last_at < WORD_MS
        if not quick:
            self._letters.clear()
        # A key that is held down is no word, nor are two that are pressed in turn.
        self._letters.add(key)
        self._last_at, self._last = now, key
        return quick
