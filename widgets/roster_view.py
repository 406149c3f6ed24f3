"""What the roster reads: the sessions, as a view."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from watchfloor.text import Clean
from widgets.tones import Tone


class RosterRow(Protocol):
    """One session as a line. Every text is one line; an empty text leaves its cell empty."""

    @property
    def glyph(self) -> Clean: ...  # the state as one cell
    @property
    def state(self) -> Clean: ...  # the state as a word, or the overlay over it ("pausing")
    @property
    def tone(self) -> Tone: ...
    @property
    def name(self) -> Clean: ...
    @property
    def tree(self) -> Clean: ...  # drawn before the name, such as "├ "
    @property
    def source(self) -> Clean: ...
    @property
    def attempt(self) -> Clean: ...
    @property
    def needs(self) -> Clean: ...  # how many open requests, own and descendants'
    @property
    def wait(self) -> Clean: ...  # the longest wait among them, such as "2:14"
    @property
    def last(self) -> Clean: ...
    @property
    def rate(self) -> Clean: ...  # bars, the newest last; as many of them are shown as there is room for
    @property
    def usage(self) -> Clean: ...
    @property
    def can(self) -> Clean: ...  # letters of the advertised capabilities, fixed width
    @property
    def demo(self) -> bool: ...
    @property
    def marked(self) -> bool: ...
    @property
    def more(self) -> Clean: ...  # how many lines are put away below it, such as "+3"


class RosterRows(Protocol):
    """The sessions in the order in which they are shown.

    `version(key)` changes whenever anything that `row` returns for that key changes.
    `index` returns None for a key that is not shown.
    """

    def __len__(self) -> int: ...
    def key(self, i: int, /) -> Hashable: ...
    def index(self, key: Hashable, /) -> int | None: ...
    def row(self, i: int, /) -> RosterRow: ...
    def version(self, key: Hashable, /) -> int: ...
