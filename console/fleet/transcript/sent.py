"""What an operator has sent to a session before, for writing it once more."""

from __future__ import annotations

from typing import Final

from console.fleet.state import Session
from console.fleet.store import Store
from console.fleet.views.wording import masked
from watchfloor.text import Clean, clean_line
from watchfloor.words import OutcomeKind, Primitive

RECALLED: Final = 50


def sent_before(store: Store, session: Session, by: str) -> tuple[str, ...]:
    """The messages of this operator to the attempt that is shown, oldest first, each text once: those that its mailbox
    tells of, also from other consoles and from before this one was opened, then those of this console. What was not
    delivered, or came back cut, is none of them, nor what looks as if it held a secret: it is not shown again."""
    name = clean_line(by)
    texts: dict[str, None] = {}
    log = session.log
    for at in range(len(log)):
        fact, text = log.entry(at).fact, log.entry(at).text
        if fact.kind != "mail" or fact.attempt != session.attempt or fact.data.get("by") != name:
            continue
        if text and fact.data.get("mail_state") != "error" and not fact.data.get("cut"):
            texts[text] = None
    for trail in store.trails.values():
        if trail.primitive is not Primitive.SEND or trail.target != session.key or not trail.intent.text:
            continue
        if trail.intent.attempt == session.attempt and trail.outcome is not OutcomeKind.UNDELIVERED:
            texts.pop(trail.intent.text, None)
            texts[trail.intent.text] = None
    return tuple(text for text in texts if masked(Clean(text)) == text)[-RECALLED:]
