"""Logs that went back: a source that was set back to an older state says so by a head below what was received of it.

What follows has numbers that others had before. So that neither is taken for the other, the log from there on has a
name of its own on this side: its epoch with a mark behind it. The source hears its epoch as it calls it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from watchfloor.protocol.frames import Cursor, Events, Gap, History, HostFrame, Lagged, Page, Sessions, Watch
from watchfloor.protocol.frames import UnknownFrame as Unknown
from watchfloor.words import WENT_BACK

_MARK: Final = re.compile(rf"(.*){re.escape(WENT_BACK)}(\d{{1,9}})\)", re.DOTALL)


class Branches:
    """The sessions of one source whose logs went back."""

    def __init__(self, places: Mapping[str, tuple[str, int]]) -> None:
        """Begin with the epochs that sessions had before."""
        self._of: dict[str, tuple[str, int]] = {}
        """The source's epoch, and how often its log went back."""
        for session, (epoch, _) in places.items():
            if (found := _MARK.fullmatch(epoch)) is not None:
                self._of[session] = found[1], int(found[2])

    def __bool__(self) -> bool:
        return bool(self._of)

    def went_back(self, session: str, epoch: str) -> str:
        """The log of this epoch, the source's, went back; returns what it is called from now on."""
        known, times = self._of.get(session, (epoch, 0))
        self._of[session] = epoch, times + 1 if known == epoch else 1
        return self.ours(session, epoch)

    def ours(self, session: str, epoch: str) -> str:
        """What the source's epoch is called here."""
        known = self._of.get(session)
        return epoch if known is None or known[0] != epoch else f"{epoch}{WENT_BACK}{known[1]})"

    def theirs(self, session: str, epoch: str) -> str:
        """What an epoch is called by the source."""
        known = self._of.get(session)
        return epoch if known is None or self.ours(session, known[0]) != epoch else known[0]

    def read(self, frame: HostFrame | Unknown) -> HostFrame | Unknown:
        """A frame as it is to be read here; the same object where nothing is called otherwise."""
        if not self._of:
            return frame
        match frame:
            case Events() | Page() | Lagged() | Gap():
                ours = self.ours(frame.session, frame.epoch)
                return frame if ours == frame.epoch else frame.model_copy(update={"epoch": ours})
            case Sessions():
                summaries = [
                    one
                    if (ours := self.ours(one.id, one.epoch)) == one.epoch
                    else one.model_copy(update={"epoch": ours})
                    for one in frame.sessions
                ]
                if all(new is old for new, old in zip(summaries, frame.sessions, strict=True)):
                    return frame
                return frame.model_copy(update={"sessions": type(frame.sessions)(summaries)})
            case _:
                return frame

    def history(self, frame: History) -> History:
        """The question as the source reads it."""
        theirs = self.theirs(frame.session, frame.epoch)
        return frame if theirs == frame.epoch else frame.model_copy(update={"epoch": theirs})

    def watch(self, frame: Watch) -> Watch:
        """The watch as the source reads it."""
        if not self._of or not isinstance(frame.after, dict):
            return frame
        after = {
            session: Cursor(epoch=self.theirs(session, place.epoch), seq=place.seq)
            for session, place in frame.after.items()
        }
        return frame.model_copy(update={"after": after})
