"""Which open requests ask for the very same, and which of them may be decided together with others.

Two requests are alike where everything that a decision is about is equal: each action word for word, where it runs, and
each option as offered. Sessions and ids differ, and so do their digests: a decision still names the digest of each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console.fleet.decisions.decide import option_deny, option_once, undecidable
from console.fleet.decisions.former import in_doubt, standing, state_words
from console.fleet.decisions.presence import taken_by
from console.fleet.decisions.risk.actions import request_risks
from console.fleet.facts import OptionFact, RequestFact, RequestKey
from console.fleet.gate import Greyed, Hidden, can, unoffered
from console.fleet.state import Request, Session
from console.fleet.store import Store
from console.fleet.views.wording import name_of
from watchfloor.text import NOTHING, Clean, clean_line, numeral
from watchfloor.words import OptionKind, Primitive, RequestKind, RequestState

NOT_TOGETHER: Final = "one by one only"


def identity(session: Session, fact: RequestFact | None) -> str | None:
    """What is equal for requests that ask for the very same; None: it cannot be told, so that it is like no other.

    Nothing can be said of what is not known whole, and of what holds characters that had to be made visible: other
    characters may have been shown the same.
    """
    if fact is None or unknown(fact):
        return None
    cwd = session.cwd if session.cwd is not None else ""
    asked = {
        "kind": fact.kind,
        "actions": [[a.tool, a.text, a.cwd if a.cwd is not None else cwd, a.diff] for a in fact.actions],
        "fields": [
            [f.name, f.type, f.label, f.free_text, f.required, [[c.value, c.label, c.note] for c in f.choices]]
            for f in fact.fields
        ],
        "options": [
            [o.id, o.label, o.kind, o.scope, list(o.grants), o.persists, o.note, o.then, o.confirm]
            for o in fact.options
        ],
        "per_action": fact.per_action,
        "at_deadline": fact.at_deadline,
    }
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def alike(store: Store, key: RequestKey) -> list[RequestKey]:
    """The open requests that ask for the very same as this one, itself among them, the longest waiting first."""
    wanted = _identity(store, key)
    if wanted is None:
        return [key] if key in store.requests and store.requests[key].open else []
    return [request.key for request in store.queue.requests if _identity(store, request.key) == wanted]


def _identity(store: Store, key: RequestKey) -> str | None:
    request, session = store.requests.get(key), store.sessions.get(key.owner)
    return identity(session, request.fact) if request is not None and session is not None else None


def unknown(fact: RequestFact) -> Clean:
    """Why what it asks is not known whole; empty: it is."""
    if fact.fault is not None or not fact.sound:
        return Clean(f"not to be trusted: {fact.fault or 'its digest is not that of its text'}")
    if fact.too_large:
        return Clean("not fully known: more of it than can be shown")
    if any(not action.complete for action in fact.actions):
        return Clean("not fully known: its source gave only a part of it")
    if fact.unknown_count:
        return Clean(f"not fully known: it has {fact.strange}")
    if any(not action.text and not action.diff for action in fact.actions):
        return Clean("not fully known: an action without a text")
    if fact.kind is RequestKind.APPROVAL and not fact.actions:
        return Clean("not fully known: it names no action")
    if any(action.hidden for action in fact.actions):
        return Clean("not fully known: it holds characters that cannot be seen")
    return NOTHING


@dataclass(frozen=True, slots=True)
class Planned:
    """One line of the table that stands before a batch: what would be decided, by which digest and option.

    `why` says why it is left out; empty: it goes along.
    """

    key: RequestKey
    name: Clean
    line: Clean
    digest: str
    option: OptionFact | None
    why: Clean

    @property
    def goes(self) -> bool:
        return not self.why


def preflight(
    store: Store, keys: Sequence[RequestKey], kind: OptionKind, now: int, *, read_only: bool = False
) -> tuple[Planned, ...]:
    """What deciding these requests together would do to each, in the order given. `kind`: allow or deny."""
    return tuple(_planned(store, key, kind, now, read_only) for key in dict.fromkeys(keys))


def still(store: Store, planned: Planned, kind: OptionKind, now: int, *, read_only: bool = False) -> Clean:
    """Why a line of the table is no longer what was agreed to; empty: it is."""
    again = _planned(store, planned.key, kind, now, read_only)
    if again.why:
        return again.why
    if again.digest != planned.digest or again.option != planned.option:
        return Clean("it has changed since")
    return NOTHING


def _planned(store: Store, key: RequestKey, kind: OptionKind, now: int, read_only: bool) -> Planned:
    request, session = store.requests.get(key), store.sessions.get(key.owner)
    if request is None or session is None:
        return Planned(key, clean_line(key.session), clean_line(key.request), "", None, Clean("it is gone"))
    fact = request.fact
    option = None
    if fact is not None:
        option = option_once(fact) if kind is OptionKind.ALLOW else option_deny(fact)
    line = fact.actions[0].line if fact is not None and fact.actions else NOTHING
    why = _decidable(store, session, request, now, read_only)
    if not why and option is None:
        why = Clean(f"it offers no way to {kind.value} just this once")
    if not why and kind is not OptionKind.DENY:
        why = one_by_one(session, request)
    return Planned(key, name_of(session), line, request.digest, option, why)


def _decidable(store: Store, session: Session, request: Request, now: int, read_only: bool) -> Clean:
    """Why no decision of ours can go out now."""
    if not request.open:
        return Clean("it has ended")
    if (never := undecidable(session, request.fact)) is not None:
        return Clean(never.reason)
    if request.kind is not RequestKind.APPROVAL:
        return Clean(f"a question: {NOT_TOGETHER}")
    control = can(store, session.key, Primitive.APPROVE, now, read_only=read_only)
    if isinstance(control, Greyed):
        return Clean(control.reason)
    if isinstance(control, Hidden):
        return unoffered(store.profile(session), Primitive.APPROVE)
    if (first := standing(store, request.key, now)) is not None:
        return Clean(state_words(first))
    profile = store.profile(session)
    if profile is not None and profile.traits.get("approval_target", "by_id") != "by_id":
        return Clean(f"its source takes no decision by id: {NOT_TOGETHER}")
    if in_doubt(store, request.key, now) is not None:
        return Clean(f"a decision of yours may have been taken: {NOT_TOGETHER}")
    if other := taken_by(store, request):
        return Clean(f"claimed by {other}: {NOT_TOGETHER}")
    return NOTHING


def one_by_one(session: Session, request: Request) -> Clean:
    """Why a request is approved by itself only: it is risky, or not known whole. Empty: it may go with others."""
    fact = request.fact
    if fact is None:
        return Clean("its text has not come yet")
    if why := unknown(fact):
        return Clean(f"{why}: {NOT_TOGETHER}")
    if request.state is RequestState.UNCONFIRMED:
        return Clean(f"unconfirmed: {NOT_TOGETHER}")
    found = [risk for risks in request_risks(fact, session.cwd) for risk in risks]
    if found:
        more = f" and {numeral(len(found) - 1)} more" if len(found) > 1 else ""
        return Clean(f"risky ({found[0].kind.value}: {found[0].reason}{more}): {NOT_TOGETHER}")
    return NOTHING
