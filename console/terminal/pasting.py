"""What comes from the terminal, parted into keys and pasted text, so that nothing of a paste ever counts as a key.

A terminal puts pasted text between two marks. The toolkit's parser takes whatever follows an escape character inside
of them for keys; here the text between the marks is taken out before the parser sees any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ESCAPE: Final = "\x1b"
BEGIN: Final = "\x1b[200~"
END: Final = "\x1b[201~"
MOST: Final = 1_000_000
"""Characters of one paste; of a longer one nothing is kept."""
ESCAPE_S: Final = 0.1
"""Seconds after which an escape character that nothing followed was the escape key."""
HALF_MARK_S: Final = 1.0
"""Seconds for which more of the beginning of a mark is held back: no key sends it."""
QUIET_S: Final = 2.0
"""Seconds without any input after which a paste that has not ended is given up."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Input for the toolkit's parser; of `ESCAPE` alone it is known that this was the key."""

    text: str


@dataclass(frozen=True, slots=True)
class Pasted:
    """A whole paste, exactly as it came, control characters included."""

    text: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A paste that was not kept, `characters` long. `ended` False: it had no end, and keys count again."""

    characters: int
    ended: bool


Piece = Keys | Pasted | Dropped


class Pastes:
    """Parts the input of one terminal. Times are seconds of a clock that is never set."""

    def __init__(self) -> None:
        self._held = ""  # what may become a mark; inside of a paste, what may become its end
        self._inside = False
        self._body: list[str] = []
        self._length = 0
        self._at = 0.0

    @property
    def waits_s(self) -> float | None:
        """Seconds of silence after which `quiet` has something to do; None where it has nothing."""
        if self._inside:
            return QUIET_S
        if not self._held:
            return None
        return ESCAPE_S if self._held == ESCAPE else HALF_MARK_S

    def feed(self, text: str, now: float) -> list[Piece]:
        """What this input comes to. Cut anywhere, it comes to the same."""
        self._at = now
        pieces: list[Piece] = []
        while text:
            text = self._take_in(text, pieces) if self._inside else self._pass_on(text, pieces)
        return pieces

    def quiet(self, now: float) -> list[Piece]:
        """What the silence until now comes to."""
        waits = self.waits_s
        if waits is None or now - self._at < waits:
            return []
        if self._inside:
            dropped = Dropped(self._length + len(self._held), ended=False)
            self._leave()
            return [dropped]
        held, self._held = self._held, ""
        return [Keys(held)]

    def _pass_on(self, text: str, pieces: list[Piece]) -> str:
        """Keys, up to where a paste begins; returns what is behind its mark."""
        text, self._held = self._held + text, ""
        before, mark, behind = text.partition(BEGIN)
        if mark:
            self._inside = True
        else:
            self._held = _half(before, BEGIN)
            before = before[: len(before) - len(self._held)]
        if before:
            pieces.append(Keys(before))
        return behind

    def _take_in(self, text: str, pieces: list[Piece]) -> str:
        """Pasted text, up to its end; returns what is behind it."""
        text, self._held = self._held + text, ""
        body, mark, behind = text.partition(END)
        if not mark:
            self._held = _half(body, END)
            body = body[: len(body) - len(self._held)]
        self._length += len(body)
        if self._length <= MOST:
            self._body.append(body)
        else:
            self._body.clear()
        if mark:
            fits = self._length <= MOST
            pieces.append(Pasted("".join(self._body)) if fits else Dropped(self._length, ended=True))
            self._leave()
        return behind

    def _leave(self) -> None:
        self._inside, self._held, self._length = False, "", 0
        self._body.clear()


def _half(text: str, mark: str) -> str:
    """The longest end of the text that the mark begins with."""
    most = min(len(text), len(mark) - 1)
    return next((text[-size:] for size in range(most, 0, -1) if mark.startswith(text[-size:])), "")
