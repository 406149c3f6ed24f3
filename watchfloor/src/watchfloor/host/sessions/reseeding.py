"""Replacing what a session remembers: in which ways, and what becomes of its mail and its requests.

The conversation changes at once wherever no turn runs, and after the suspended turn was given up where one hangs; its
consumed messages end with the error `rewound` then. Queued mail stays. Compacting takes its time, since a summary has
to be written: meanwhile the session is `reseeding`, messages queue, and the next turn begins when it has landed.
"""

from __future__ import annotations

from collections.abc import Sequence

from watchfloor.harness.base import ConversationMessage, Reseed
from watchfloor.host.effects import CompactNow, SessionEffect
from watchfloor.host.quoting import shown
from watchfloor.host.sessions.changes import SessionChanges
from watchfloor.host.sessions.mailbox import number_of
from watchfloor.host.sessions.state import Asked
from watchfloor.protocol.events import Level, Notice, Reseeded
from watchfloor.protocol.frames import DoReseed
from watchfloor.protocol.given import given
from watchfloor.words import Overlay, ReseedMode


class Reseeding(SessionChanges):
    """The conversation of a session, as operators change it."""

    def misfit(self, do: DoReseed) -> str | None:
        """Why the conversation cannot be changed like this, or None."""
        match do.mode:
            case ReseedMode.REPLACE if not (do.text or "").strip():
                return "to replace the conversation needs the text that it begins with"
            case ReseedMode.MODEL if not (do.to or "").strip():
                return "to change the model needs its name"
            case ReseedMode.REWIND:
                if not do.to:
                    return 'to rewind needs the message before which to go on, as in "#3"'
                if self._place(do.to) is None:
                    return f"the conversation has no message {shown(do.to)}"
            case ReseedMode.COMPACT if not self.conversation.messages:
                return "the conversation is empty"
            case _:
                pass
        return None

    def _place(self, ref: str) -> int | None:
        """Index of the message with this ref in the conversation."""
        number = number_of(ref)
        refs = [message.ref for message in self.conversation.messages]
        return refs.index(f"#{number}") if number is not None and f"#{number}" in refs else None

    def reseed_now(self, do: DoReseed, by: str, now: int) -> None:
        """Change the conversation, in which no turn is under way."""
        messages = self.conversation.messages
        note: str | None = None
        match do.mode:
            case ReseedMode.COMPACT:
                self.pending[Overlay.RESEEDING] = Asked(by, now)
                self._effects.append(CompactNow(self.id, tuple(messages)))
                return
            case ReseedMode.CLEAR:
                messages.clear()
            case ReseedMode.REPLACE:
                self._replace(do.text or "")
                # What it begins with takes the place of what a retry would have taken up.
                self.carried = ()
            case ReseedMode.MODEL:
                self.conversation.model = do.to
                note = do.to
            case ReseedMode.REWIND:
                note = self._rewind(do.to or "")
        self._publish(Reseeded(at=now, mode=do.mode, by=by, **given(note=note)), now)
        if self.alive:
            self._tell(Reseed(do.mode))

    def _replace(self, text: str) -> None:
        seed, self.seed = self.seed, None
        self.conversation.messages[:] = [ConversationMessage("user", text)] if seed is None else seed.messages
        if seed is not None and seed.model is not None:
            self.conversation.model = seed.model

    def _rewind(self, ref: str) -> str:
        place = self._place(ref)
        number = number_of(ref) or 0
        if place is not None:
            del self.conversation.messages[place:]
        self.carried = tuple(item for item in self.carried if (number_of(item.ref) or 0) < number)
        return f"before #{number}"

    def compacted(self, messages: Sequence[ConversationMessage], now: int) -> list[SessionEffect]:
        """The shorter conversation is there."""
        asked = self.pending.pop(Overlay.RESEEDING, None)
        if asked is None:
            return []
        before = len(self.conversation.messages)
        self.conversation.messages[:] = messages
        note = f"{before} messages became {len(messages)}"
        self._publish(Reseeded(at=now, mode=ReseedMode.COMPACT, by=asked.by, note=note), now)
        if self.alive:
            self._tell(Reseed(ReseedMode.COMPACT))
        self._take_up(now)
        return self._done(now)

    def not_compacted(self, why: str, now: int) -> list[SessionEffect]:
        """The conversation stays as it was."""
        if self.pending.pop(Overlay.RESEEDING, None) is None:
            return []
        text = f"the conversation was not compacted: {why}"
        self._publish(Notice(at=now, level=Level.ERROR, code="not_compacted", text=text), now)
        self._take_up(now)
        return self._done(now)

    def _take_up(self, now: int) -> None:
        """Mail that came while the conversation was being changed begins its turn."""
        if self.phase_is_live and self.turn is None and not self.paused and self.mailbox.waits and not self.pending:
            self._open_turn(now)
