"""What a request card reads: one request, as a view."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from watchfloor.text import Clean
from widgets.tones import Segment, Tone


class CardFlag(Protocol):
    """A place in a line of an action, in code points, that is risky, and why."""

    @property
    def line(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def reason(self) -> Clean: ...  # "" where it was said before
    @property
    def tone(self) -> Tone: ...


class CardAction(Protocol):
    """One action that waits for approval."""

    @property
    def does(self) -> Clean: ...  # what the lines are, in a word such as "runs"
    @property
    def tool(self) -> Clean: ...
    @property
    def lines(self) -> Sequence[Clean]: ...  # the exact text, one item a line
    @property
    def cwd(self) -> Clean: ...  # "" where the source does not say
    @property
    def size(self) -> Clean: ...  # such as "1 line, 28 chars"
    @property
    def complete(self) -> bool: ...  # False: the source gave only a part of the text
    @property
    def flagged(self) -> Sequence[CardFlag]: ...  # in the order of the text


class CardField(Protocol):
    """One thing that a question asks for."""

    @property
    def label(self) -> Clean: ...
    @property
    def kind(self) -> Clean: ...  # such as "choice", "text", "secret"
    @property
    def choices(self) -> Sequence[Clean]: ...
    @property
    def value(self) -> Clean: ...  # what the operator has entered so far; masked for a secret


class CardOption(Protocol):
    """One way to decide, with the key that does it. Never built from an agent's words alone."""

    @property
    def key(self) -> Clean: ...
    @property
    def label(self) -> Clean: ...
    @property
    def note(self) -> Clean: ...  # what happens then
    @property
    def tone(self) -> Tone: ...  # "failed" for what destroys
    @property
    def enabled(self) -> bool: ...  # False: drawn grey; the note says why


class CardView(Protocol):
    """One request. `key` names it; `digest` names its content and is compared, never parsed."""

    @property
    def key(self) -> Hashable: ...
    @property
    def digest(self) -> str: ...
    @property
    def digest_short(self) -> Clean: ...
    @property
    def title(self) -> Sequence[Clean]: ...  # whose request, where, since when
    @property
    def actions(self) -> Sequence[CardAction]: ...
    @property
    def fields(self) -> Sequence[CardField]: ...
    @property
    def unknown(self) -> Sequence[Clean]: ...  # what else is decided about, raw, one item a line
    @property
    def strange(self) -> Clean: ...  # how much that is, such as "3 members this console does not know"; "" for nothing
    @property
    def description(self) -> Sequence[Clean]: ...  # the agent's own words, drawn as such
    @property
    def flags(self) -> Sequence[Segment]: ...  # risks and doubts found by the console
    @property
    def options(self) -> Sequence[CardOption]: ...
    @property
    def open(self) -> bool: ...  # False: no option is drawn, `ending` stands in their place
    @property
    def ending(self) -> Clean: ...  # how it ended and by whom
    @property
    def deadline(self) -> Clean: ...  # when and how it ends by itself, or ""
    @property
    def presence(self) -> Clean: ...  # who else looks at it, or takes it, or ""
    @property
    def armed(self) -> Clean: ...  # whether a key counts already, such as "armed in 0.3 s"
