"""The messages that this console sent: the engine lists none, and tells of each only its delivery and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from watchfloor.protocol.events import Mail, MailState
from watchfloor.words import Delivery

STILL_QUEUED: Final = "failed before consuming this message"
"""The engine's answer while a failed agent has not read a message: a retry may yet."""
_DELIVERIES: Final = {"STARTED": Delivery.STARTED, "STEERED": Delivery.STEERED, "QUEUED": Delivery.QUEUED}


class Stage(StrEnum):
    WAITS = "waits"
    READ = "read"
    ANSWERED = "answered"
    FAILED = "failed"


@dataclass(slots=True)
class Sent:
    """One message. `id` is the engine's, and dies with its session; `at` is in milliseconds since 1970 UTC."""

    handle: str
    ref: str
    id: str
    text: str
    by: str
    at: int
    reply_to: str | None = None
    delivery: Delivery | None = None
    stage: Stage = Stage.WAITS
    error: str = ""
    response: str | None = None
    presumed: bool = False
    """Taken for ours by its number alone, after the answer that named it was lost."""

    def mail(self) -> Mail:
        """It as the session's log shows it now."""
        state = {Stage.WAITS: MailState.SENT, Stage.FAILED: MailState.ERROR}.get(self.stage, MailState.CONSUMED)
        delivery = self.delivery.value if self.delivery is not None else ""
        return Mail(
            at=0,
            key=f"{self.handle}/mail/{self.ref}/{state.value}/{delivery}",
            ref=self.ref,
            state=state,
            delivery=self.delivery,
            reply_to=self.reply_to,
            text=self.text,
            by=self.by,
            error=self.error or None,
        )


@dataclass(slots=True)
class Ledger:
    """The messages to one agent, by ref. `highest` is the highest number that was seen, of whoever's message."""

    entries: dict[str, Sent] = field(default_factory=dict)
    highest: int = 0

    def add(self, sent: Sent) -> None:
        self.entries[sent.ref] = sent
        self.saw(sent.ref)

    def saw(self, ref: str) -> None:
        number = ref.removeprefix("#")
        if number.isascii() and number.isdigit():
            self.highest = max(self.highest, int(number))

    def next_ref(self, step: int) -> str:
        """A number to look for, so far on."""
        return f"#{self.highest + step}"

    @property
    def waiting(self) -> list[Sent]:
        """Messages that the agent has not read, as far as is known."""
        return [sent for sent in self.entries.values() if sent.stage is Stage.WAITS]

    @property
    def ours(self) -> frozenset[str]:
        return frozenset(self.entries)

    @property
    def open(self) -> list[Sent]:
        """Messages of which there is more to hear."""
        return [sent for sent in self.entries.values() if sent.stage in (Stage.WAITS, Stage.READ)]

    def delivered(self, sent: Sent, word: str) -> bool:
        """The engine says how it was delivered. Was that news?"""
        delivery = _DELIVERIES.get(word)
        if delivery is None or sent.delivery is delivery:
            return False
        sent.delivery = delivery
        # A message that starts or steers a turn is told to have done so when the turn has read it.
        if delivery is not Delivery.QUEUED and sent.stage is Stage.WAITS:
            sent.stage = Stage.READ
        return True

    def answered(self, sent: Sent, response: str) -> None:
        sent.stage, sent.response = Stage.ANSWERED, response

    def failed(self, sent: Sent, error: str) -> bool:
        """The engine says that no answer will come. False where that may still change."""
        if STILL_QUEUED in error or sent.stage not in (Stage.WAITS, Stage.READ):
            return False
        sent.stage, sent.error = Stage.FAILED, error
        return True

    def read(self, refs: frozenset[str]) -> list[Sent]:
        """These messages are part of the conversation: those of ours of which that is news."""
        for ref in refs:
            self.saw(ref)
        news = [sent for sent in self.waiting if sent.ref in refs]
        for sent in news:
            sent.stage = Stage.READ
        return news
