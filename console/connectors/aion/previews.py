"""What the agents of one attempt are in the midst of saying.

Pieces overtake what was said before them: the server holds stored events back to write them together, and passes pieces
on at once. So what a whole message ends is told by the order in which the agent spoke (`worker_seq`), never by that of
arrival. That order starts again with every process of the agent, and pieces and stored events notice that separately.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

HEAD: Final = 200
"""Characters of a preview that are kept, to find the message that it became."""
MOST: Final = 64
CLOSED: Final = 1000


@dataclass(slots=True)
class Preview:
    item: str
    author: str
    of: str
    message: str
    life: int
    last: int
    head: str = ""
    broken: bool = False


@dataclass(slots=True)
class Previews:
    """`attempt` makes the ids of items unlike those of other attempts."""

    attempt: int
    open: dict[str, Preview] = field(default_factory=dict)
    _life: int = 0
    _last: int | None = None
    _next: int | None = None
    """The number after the newest event of this connection, whatever it was."""
    _joined: bool = False
    """Have we come, or come back, while something may have been said?"""
    _stored_life: int = 0
    _stored_last: int | None = None
    _closed: dict[str, None] = field(default_factory=dict)

    def heard(self, worker: int) -> None:
        """An event of the agent with this number came over the connection."""
        self._next = worker + 1 if self._next is None else max(self._next, worker + 1)

    def stored(self, worker: int) -> list[str]:
        """A stored event of an agent, in its order; the items that a former process left behind."""
        fell = self._stored_last is not None and worker < self._stored_last
        self._stored_last = worker
        if not fell:
            return []
        self._stored_life += 1
        if self._life < self._stored_life:
            self._life, self._last = self._stored_life, None
        self._next = worker + 1
        return self._close([preview for preview in self.open.values() if preview.life < self._stored_life])

    @property
    def life(self) -> int:
        """How many processes have spoken before the one whose stored events we read."""
        return self._stored_life

    def piece(self, author: str, of: str, message: str, worker: int, text: str) -> tuple[str, str, list[str]]:
        """The item that the piece belongs to, its text, and the items that a former process left behind.

        No item ("") for what cannot be shown: a piece after its message, or with something missing before it.
        """
        gone: list[str] = []
        if self._last is not None and worker < self._last:
            gone = self._close(list(self.open.values()))
            self._life += 1
            self._next = None
        self._last = worker
        item = f"{self.attempt}.{self._life}/{author}/{of}/{message}"
        known = self.open.get(item)
        whole = worker == 0 or worker == self._next
        self.heard(worker)
        if item in self._closed or (known is not None and known.broken):
            return "", "", gone
        if known is None:
            if len(self.open) >= MOST:
                gone += self._close([next(iter(self.open.values()))])
            known = self.open[item] = Preview(item, author, of, message, self._life, worker)
            # Whoever joins in the midst of a message has not got its beginning.
            text = f"…{text}" if self._joined and not whole else text
            self._joined = False
        known.last = worker
        if len(known.head) < HEAD:
            known.head += text[: HEAD - len(known.head)]
        return item, text, gone

    def interrupted(self) -> None:
        """The connection broke: what was being said has a hole from here on."""
        for preview in self.open.values():
            preview.broken = True
        self._next = None
        self._joined = True

    def joins(self) -> None:
        """We come while the agent has spoken already."""
        self._joined = True

    def ended_by(self, author: str, worker: int, said: str) -> tuple[str | None, list[str]]:
        """The preview that this message of the author is the whole of, and others of the author that it ends."""
        mine = [
            preview
            for preview in self.open.values()
            if preview.author == author
            and (preview.life < self._stored_life or (preview.life == self._stored_life and preview.last < worker))
        ]
        start = said.strip()[: HEAD // 2]
        fits = [preview for preview in mine if start.startswith(preview.head.lstrip("…").strip()[: len(start)])]
        if not mine:
            return None, []
        chosen = (fits or mine)[-1]
        rest = self._close([preview for preview in mine if preview is not chosen])
        self._close([chosen])
        return chosen.item, rest

    def ended_as(self, author: str, message: str) -> str | None:
        """The preview with that message id, which has its whole form now."""
        for preview in self.open.values():
            if preview.author == author and preview.message == message and preview.life <= self._stored_life:
                return self._close([preview])[0]
        return None

    def all(self) -> list[str]:
        """Nothing more comes."""
        return self._close(list(self.open.values()))

    def renewed(self) -> list[str]:
        """What was stored is lost, and whoever speaks now is another one."""
        gone = self.all()
        self._life = self._stored_life = self._life + 1
        self._last = self._next = self._stored_last = None
        return gone

    def _close(self, previews: list[Preview]) -> list[str]:
        for preview in previews:
            self.open.pop(preview.item, None)
            self._closed[preview.item] = None
            if len(self._closed) > CLOSED:
                del self._closed[next(iter(self._closed))]
        return [preview.item for preview in previews]
