"""What the drawer asks an operator: plain descriptions, without the toolkit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

from watchfloor.text import NOTHING, Clean
from widgets.tones import Segment, Tone


class Choice(NamedTuple):
    """One thing to choose. `value` goes back exactly as it is; `key` is the printable key that chooses it at once.

    `also` holds further keys that do, not shown. `blocked` says why it cannot be chosen; "" where it can. `kept`: once
    chosen it is what stands there when the same is asked again.
    """

    value: str
    key: Clean
    label: Clean
    details: tuple[Clean, ...] = ()
    tone: Tone = "plain"
    blocked: Clean = NOTHING
    also: str = ""
    kept: bool = True


class TextBox(NamedTuple):
    """A line of text to be written. `check` says what is wrong with it, or "". A secret one shows no character.
    `anew`: what is left from before is selected, so that what is typed stands in its place. `past`: texts that can be
    brought back, oldest first."""

    secret: bool = False
    anew: bool = False
    past: tuple[str, ...] = ()
    check: Callable[[str], Clean] = lambda text: NOTHING


class Answer(NamedTuple):
    """What the operator gave: the values of what was chosen, or a text."""

    values: tuple[str, ...] = ()
    text: str = ""


Then: TypeAlias = Callable[[Answer], None]
Drafts: TypeAlias = Sequence[Hashable]
"""What texts belong to that were written and not sent; see `Ask.draft`."""


class Ask(NamedTuple):
    """One question to the operator, with either choices or a text box; with neither it is only read.

    `title` says what it is about and to whom it goes, `about` what it will do; `live` as well, read again all the time
    as the session changes. `cursor`: the choices can be walked through and taken by enter; without it only their keys
    count, so that no enter that was typed ahead decides. `many`: several can be marked. `ended` is asked again all the
    time; once it gives a reason nothing can be given any more, but the drawer stays: keys that were meant for it must
    not fall through to what lies below. `name` lets the screen tell one question from another. `draft` names what a
    text left unsent belongs to: the same question asked again begins with it, until somebody says that it was sent.
    `needed`: of several at least one has to be marked. `anywhere`: may be given even where nothing can be read.
    `picks`: a choice's key only puts the cursor on it, and only while nothing else is typed; enter takes it. `at`: the
    value of the choice that the cursor begins on; "" for none. `back`: asks again for what was asked before this.
    """

    title: tuple[Segment, ...]
    then: Then
    about: tuple[Segment, ...] = ()
    live: Callable[[], tuple[Segment, ...]] = lambda: ()
    choices: tuple[Choice, ...] = ()
    cursor: bool = False
    many: bool = False
    needed: bool = False
    text: TextBox | None = None
    enter: Clean = Clean("sends")
    ended: Callable[[], Clean] = lambda: NOTHING
    name: str = ""
    draft: Hashable = None
    anywhere: bool = False
    picks: bool = False
    at: str = ""
    back: Callable[[], None] | None = None
