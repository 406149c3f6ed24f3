"""What the session screen tells of a session besides the facts of the fleet screen: traits in words, who is below it,
its attempts, and its mail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from console.fleet.facts import SessionKey
from console.fleet.state import Session
from console.fleet.store import Store
from console.fleet.views.facts import FactRow, fact_rows
from console.fleet.views.mail import letters
from console.fleet.views.wording import TONE_OF, masked, name_of, one_line
from watchfloor.text import Clean, clean_line, numeral
from watchfloor.words import Lifecycle

MAIL_SHOWN: Final = 8
_RUNS: Final = (Lifecycle.STARTING, Lifecycle.RUNNING, Lifecycle.WAITING)
CHILDREN_SHOWN: Final = 8
_DEEPEST: Final = 6
_MAIL_LINES: Final = 2

_TRAITS: Final[Mapping[str, Mapping[Any, str]]] = MappingProxyType(
    {
        "approval_target": {
            "oldest": "a decision goes to what was asked first",
            "all_pending": "a decision settles all that is pending at once",
        },
        "resume_approves": {True: "resume approves what is pending"},
        "send_approves": {True: "a message approves what is pending"},
        "send_drops_requests": {True: "a message withdraws open requests"},
        "send_interrupts": {True: "a message interrupts the turn that runs"},
        "stop_leaves_requests": {True: "stop leaves its requests open"},
        "stop_leaves_process": {True: "stop leaves its process alive"},
        "stop_cuts_step": {True: "stop ends it in the midst of its step"},
        "pause_is_barrier": {False: "a call in flight still runs after a pause"},
        "pause_drops_mail": {True: "a pause at once discards messages that wait unread"},
        "reader": {
            "exclusive": "only one reader at a time: attaching takes it from another",
            "splits": "readers share the events among them: each sees a part",
        },
        "requests": {
            "derived": "requests are inferred: one may be missing",
            "lost": "requests made while nobody was connected are lost",
        },
        "effects": {
            "partial": "some effects leave no trace",
            "none": "effects of commands cannot be seen",
        },
        "ends_with_client": {True: "it ends when this console disconnects"},
    }
)


def detail_rows(
    store: Store, key: SessionKey, now: int, *, attempts: Sequence[int], attempt: int | None, read_only: bool = False
) -> list[FactRow]:
    """All that is known of a session at the local time `now`; `attempts` are those that the transcript has, `attempt`
    the only one that it shows."""
    session = store.sessions.get(key)
    if session is None:
        return []
    rows = fact_rows(store, key, now, read_only=read_only)
    rows += _traits(store, session)
    rows += _attempts(session, attempts, attempt)
    rows += _children(store, session)
    rows += _mail(session)
    return rows


def _listed(label: str, texts: Sequence[str]) -> list[FactRow]:
    return [(Clean("" if at else label), Clean(text), "plain") for at, text in enumerate(texts)]


def _traits(store: Store, session: Session) -> list[FactRow]:
    profile = store.profile(session)
    traits = profile.traits if profile is not None else {}
    words = [says[traits[name]] for name, says in _TRAITS.items() if name in traits and traits[name] in says]
    return _listed("traits", words)


def _attempts(session: Session, attempts: Sequence[int], shown: int | None) -> list[FactRow]:
    if len(attempts) < 2:
        return []
    words = []
    for attempt in attempts:
        now = "runs now" if session.lifecycle in _RUNS else session.lifecycle.value
        notes = [now] if attempt == session.attempt else ["over, read only"]
        notes += ["shown alone"] if attempt == shown else []
        words.append(f"{numeral(attempt)}: {', '.join(notes)}")
    return _listed("attempts", words)


def _children(store: Store, session: Session) -> list[FactRow]:
    """Those below it, each behind its parent, with a dash for each step down."""
    rows: list[FactRow] = []
    below = list(_below(store, session.key, 0, {session.key}))
    for child, depth in below[:CHILDREN_SHOWN]:
        found = store.sessions[child]
        waits = ", waits for you" if found.open_requests() else ""
        text = f"{'- ' * depth}{found.lifecycle.value}{waits}: {name_of(found)}"
        rows.append((Clean("" if rows else "below"), Clean(text), TONE_OF[found.lifecycle], 1))
    if len(below) > CHILDREN_SHOWN:
        rows.append((Clean(""), Clean(f"and {numeral(len(below) - CHILDREN_SHOWN)} more"), "quiet"))
    return rows


def _below(store: Store, key: SessionKey, depth: int, seen: set[SessionKey]) -> Iterator[tuple[SessionKey, int]]:
    for child in sorted(store.children.get(key, ())):
        if child not in seen:
            # A source may name a session as its own parent.
            seen.add(child)
            yield child, depth
            if depth < _DEEPEST:
                yield from _below(store, child, depth + 1, seen)


def _mail(session: Session) -> list[FactRow]:
    """The newest messages by their refs: what became of each, and what it answers."""
    rows: list[FactRow] = []
    for letter in letters(session.log.entries())[:MAIL_SHOWN]:
        words = [letter.words] if letter.words else []
        words += [f"from {letter.by}"] if letter.by else []
        words += [f"answers {clean_line(letter.reply_to)}"] if letter.reply_to else []
        text = masked(one_line(letter.error or letter.text))
        said = f"{clean_line(letter.ref)} {', '.join(words)}" + (f": {text}" if text else "")
        rows.append((Clean("" if rows else "mail"), Clean(said), letter.tone, _MAIL_LINES))
    return rows
