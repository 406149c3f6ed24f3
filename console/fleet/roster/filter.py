"""The filter of the roster: `state:waiting source:codex cap:pause label:team=web text`, each of which `-` turns round.

All terms have to hold; of values parted by commas one has to. Words of a list are told by their beginnings, everything
else by any part, and case makes no difference. A text with blanks or a colon stands in double quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple, TypeAlias

from console.fleet.state import Session
from console.fleet.store import Store
from console.fleet.views.wording import name_of
from watchfloor.text import clean_line
from watchfloor.words import Lifecycle, Primitive

Holds: TypeAlias = Callable[[Store, Session, str], bool]


class FilterError(ValueError):
    """What is written is no filter; the text says why, in words for the operator."""


class Term(NamedTuple):
    """One condition: a key ("" for a bare text), and its values as they were written, one of which has to hold."""

    key: str
    values: tuple[str, ...]
    negated: bool


class Filter(NamedTuple):
    """What was written, and the terms that it stands for."""

    text: str
    terms: tuple[Term, ...]

    def accepts(self, store: Store, session: Session) -> bool:
        """Is the session among those that are looked for?"""
        for term in self.terms:
            holds = _KEYS[term.key].holds
            if any(holds(store, session, value) for value in term.values) is term.negated:
                return False
        return True


class _Key(NamedTuple):
    holds: Holds
    words: tuple[str, ...] = ()
    """The values that there are; none: any text."""


def _begins(word: str, value: str) -> bool:
    return word.startswith(value)


def _state(store: Store, session: Session, value: str) -> bool:
    if value.startswith("!"):
        return not _begins(session.lifecycle.value, value[1:])
    return _begins(session.lifecycle.value, value)


def _source(store: Store, session: Session, value: str) -> bool:
    return value in store.sources[session.key.source].shown.casefold()


def _cap(store: Store, session: Session, value: str) -> bool:
    profile = store.profile(session)
    return profile is not None and any(_begins(primitive.value, value) for primitive in profile.primitives)


def _label(store: Store, session: Session, value: str) -> bool:
    name, equals, wanted = value.partition("=")
    for label, given in session.labels.items():
        if label.casefold() == name and (not equals or wanted in given.casefold()):
            return True
    return False


def _name(store: Store, session: Session, value: str) -> bool:
    return value in name_of(session).casefold()


def _id(store: Store, session: Session, value: str) -> bool:
    return value in session.key.session.casefold()


def _cwd(store: Store, session: Session, value: str) -> bool:
    return session.cwd is not None and value in session.cwd.casefold()


_IS: Final[Mapping[str, Callable[[Session], bool]]] = {
    "asking": lambda session: bool(session.open_requests()),
    "child": lambda session: session.parent is not None,
    "demo": lambda session: session.demo,
    "mine": lambda session: session.owned,
}


def _is(store: Store, session: Session, value: str) -> bool:
    return any(holds(session) for word, holds in _IS.items() if _begins(word, value))


def _text(store: Store, session: Session, value: str) -> bool:
    if _name(store, session, value) or _id(store, session, value) or _source(store, session, value):
        return True
    texts = (session.last.text if session.last is not None else None, session.cwd, session.why, session.error)
    if any(text is not None and value in text.casefold() for text in texts):
        return True
    return any(value in name.casefold() or value in given.casefold() for name, given in session.labels.items())


_KEYS: Final[Mapping[str, _Key]] = {
    "": _Key(_text),
    "state": _Key(_state, tuple(lifecycle.value for lifecycle in Lifecycle)),
    "source": _Key(_source),
    "cap": _Key(_cap, tuple(primitive.value for primitive in Primitive)),
    "label": _Key(_label),
    "name": _Key(_name),
    "id": _Key(_id),
    "cwd": _Key(_cwd),
    "is": _Key(_is, tuple(_IS)),
}

KEYS: Final[tuple[str, ...]] = tuple(key for key in _KEYS if key)
"""What can stand before a colon."""


def parse(text: str) -> Filter:
    """The filter that was written; one without terms accepts everything. Raises FilterError."""
    return Filter(text.strip(), tuple(_term(word, quoted) for word, quoted in _words(text)))


def _words(text: str) -> list[tuple[str, int]]:
    """The words, quotes taken off, and from which character of each on it was quoted (its length: nowhere)."""
    found: list[tuple[str, int]] = []
    word, quoted_from, inside, begun = "", -1, False, False
    for char in text:
        if char == '"':
            if not inside and quoted_from < 0:
                quoted_from = len(word)
            inside, begun = not inside, True
        elif char.isspace() and not inside:
            if begun:
                found.append((word, quoted_from if quoted_from >= 0 else len(word)))
            word, quoted_from, begun = "", -1, False
        else:
            word, begun = word + char, True
    if inside:
        raise FilterError('a " is still open')
    if begun:
        found.append((word, quoted_from if quoted_from >= 0 else len(word)))
    return found


def _term(word: str, quoted_from: int) -> Term:
    negated = word.startswith("-") and quoted_from > 0
    body, quoted_from = (word[1:], quoted_from - 1) if negated else (word, quoted_from)
    colon = body.find(":", 0, quoted_from)
    if colon < 0:
        if not body:
            raise FilterError("- what? a word has to follow" if negated else "there is nothing between the quotes")
        return Term("", (body.casefold(),), negated)
    key, rest = body[:colon].casefold(), body[colon + 1 :]
    if key not in KEYS:
        raise FilterError(f'{clean_line(key)}: there is no such key; there are {_listed(KEYS)}; a text stands in ""')
    whole = quoted_from == colon + 1
    values = tuple(value.casefold() for value in ((rest,) if whole else rest.split(",")) if value)
    words = _KEYS[key].words
    if not values:
        raise FilterError(f"{key}: " + (f"one of {_listed(words)}" if words else "a text has to follow"))
    for value in values:
        plain = value[1:] if key == "state" and value.startswith("!") else value
        if words and not any(_begins(one, plain) for one in words):
            raise FilterError(f"{key}: {clean_line(plain)} is none of {_listed(words)}")
    return Term(key, values, negated)


def _listed(words: Collection[str]) -> str:
    return ", ".join(words)
