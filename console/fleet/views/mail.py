"""The mailbox of a session: each message by its ref, what became of it, what it answers and what answers it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final

from console.fleet.log import LogEntry
from console.fleet.views.facts import FactRow
from console.fleet.views.wording import Segment, Tone, clock_time, masked, one_line
from watchfloor.text import NOTHING, Clean, clean_line

ERROR: Final = "error"
_SAYS: Final[Mapping[str, str]] = {
    "sent": "it waits to be read",
    "consumed": "the agent has read it",
    ERROR: "it was not carried out",
}
_REACHED: Final[Mapping[str, str]] = {
    "started": "it began a turn",
    "steered": "it joined the turn that ran",
    "queued": "it waited for the turn to end",
}


@dataclass(frozen=True, slots=True)
class Letter:
    """One message. `ref` goes back to the source exactly as it is. `at`: when it was sent, in milliseconds by the
    source's clock. `error`: why it was not delivered. `answered`: the refs of those that answer it."""

    ref: str
    at: int
    state: str = ""
    delivery: str = ""
    by: Clean = NOTHING
    reply_to: str = ""
    text: Clean = NOTHING
    error: Clean = NOTHING
    attempt: int | None = None
    answered: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What became of it, in short."""
        return ", ".join(word for word in (self.state, self.delivery) if word)

    @property
    def tone(self) -> Tone:
        return "failed" if self.state == ERROR else "plain"


def letters(entries: Iterable[LogEntry]) -> list[Letter]:
    """The messages that these events tell of, the newest first."""
    found: dict[str, Letter] = {}
    for entry in entries:
        fact, data = entry.fact, entry.fact.data
        if fact.kind != "mail":
            continue
        ref = str(data.get("ref") or fact.head)
        before = found.get(ref) or Letter(ref, fact.at, attempt=fact.attempt)
        state = str(data.get("mail_state") or before.state)
        failed = state == ERROR
        found[ref] = replace(
            before,
            state=state,
            delivery=str(data.get("delivery") or before.delivery),
            by=data.get("by") or before.by,
            reply_to=str(data.get("reply_to") or before.reply_to),
            text=before.text if failed else entry.text or before.text,
            error=entry.text if failed else before.error,
        )
    answers: dict[str, list[str]] = {}
    for letter in found.values():
        if letter.reply_to:
            answers.setdefault(letter.reply_to, []).append(letter.ref)
    return [replace(one, answered=tuple(answers.get(one.ref, ()))) for one in reversed(found.values())]


class LetterRows:
    """The messages as rows of a list."""

    def __init__(self, letters: Sequence[Letter], tz: tzinfo | None) -> None:
        self.letters = letters
        self._tz = tz

    def __len__(self) -> int:
        return len(self.letters)

    def key(self, place: int) -> Hashable:
        return self.letters[place].ref

    def row(self, place: int) -> Sequence[Segment]:
        """Ref, time, state, delivery, sender, what it answers, text."""
        letter = self.letters[place]
        return (
            (clean_line(letter.ref), "plain"),
            (clock_time(letter.at, self._tz), "quiet"),
            (Clean(letter.state), letter.tone if letter.state != "sent" else "attention"),
            (Clean(letter.delivery), "quiet"),
            (letter.by, "plain"),
            (clean_line(letter.reply_to), "plain"),
            (masked(one_line(letter.error or letter.text)), letter.tone),
        )


def letter_lines(letter: Letter, tz: tzinfo | None) -> list[FactRow]:
    """One message, whole."""
    who = f"{letter.by}, " if letter.by else ""
    attempt = f", attempt {letter.attempt}" if letter.attempt is not None else ""
    became = [words for words in (_SAYS.get(letter.state), _REACHED.get(letter.delivery)) if words]
    rows: list[FactRow] = [
        (Clean("message"), Clean(f"{clean_line(letter.ref)}, {who}{clock_time(letter.at, tz)}{attempt}"), "plain"),
        (Clean("became"), Clean("; ".join(became) or letter.words or "not told"), letter.tone),
    ]
    if letter.error:
        rows.append((Clean("why"), masked(letter.error), "failed"))
    if letter.reply_to:
        rows.append((Clean("answers"), clean_line(letter.reply_to), "plain"))
    if letter.answered:
        rows.append((Clean("answered"), clean_line(", ".join(letter.answered)), "plain"))
    rows.append((Clean("text"), masked(letter.text) or Clean("not told"), "plain" if letter.text else "quiet"))
    return rows
