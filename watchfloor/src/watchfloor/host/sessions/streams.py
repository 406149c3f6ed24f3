"""Items that are being streamed: what a late joiner must be given, and what to close when their maker ends.

An item is at most `ITEM_TEXT` long, whatever its maker writes: the rest of it is not streamed, and not in the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from watchfloor.errors import ContractError
from watchfloor.protocol.events import Delta, Event, Message, Raw, Reasoning, ToolOutput, ToolResult
from watchfloor.protocol.given import given

ITEM_TEXT: Final = 1_000_000
"""Code points of one item's text. Even where each takes four bytes the whole fits into a frame."""

Of = Literal["message", "reasoning", "tool_output", "plan", "diff"]
_OF: Final[dict[str, Of]] = {name: name for name in get_args(Of)}


@dataclass(slots=True)
class _Open:
    of: Of
    call: str | None
    length: int = 0
    parts: list[str] = field(default_factory=list)


class Streams:
    """The open items of one session, by item id."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def append(self, item: str, of: str, text: str, at: int, call: str | None = None) -> Delta | None:
        """Extend an item, opening it where it is new; None where it is full.

        Raises ContractError when `of` is no streamable kind.
        """
        if of not in _OF:
            raise ContractError(f"{of!r} cannot be streamed, only {', '.join(_OF)}")
        open_ = self._open.setdefault(item, _Open(_OF[of], call))
        if open_.length == ITEM_TEXT:
            return None
        text = text[: ITEM_TEXT - open_.length]
        delta = _delta(item, open_, at, open_.length, text)
        if text:
            open_.parts.append(text)
            open_.length += len(text)
        return delta

    def close(self, item: str) -> None:
        """The whole item was published."""
        self._open.pop(item, None)

    def so_far(self, at: int) -> list[Delta]:
        """One delta from offset 0 for every open item."""
        return [_delta(item, open_, at, 0, "".join(open_.parts)) for item, open_ in self._open.items()]

    def cut(self, at: int, *items: str) -> list[Event]:
        """Close every open item as it stands, or only these."""
        cut = {item: open_ for item, open_ in self._open.items() if not items or item in items}
        for item in cut:
            self.close(item)
        return [_whole(item, open_, at) for item, open_ in cut.items()]


def within(event: Event) -> Event:
    """The event with its text cut to what an item may hold, and marked so."""
    if isinstance(event, Message | Reasoning | ToolOutput | ToolResult) and len(event.text) > ITEM_TEXT:
        return event.model_copy(update={"text": event.text[:ITEM_TEXT], "cut": True})
    return event


def _delta(item: str, open_: _Open, at: int, offset: int, text: str) -> Delta:
    return Delta(at=at, item=item, of=open_.of, offset=offset, text=text, **given(call=open_.call))


def _whole(item: str, open_: _Open, at: int) -> Event:
    text = "".join(open_.parts)
    match open_.of:
        case "message":
            return Message(at=at, item=item, text=text, cut=True)
        case "reasoning":
            return Reasoning(at=at, item=item, text=text, cut=True)
        case "tool_output":
            return ToolOutput(at=at, item=item, text=text, cut=True, **given(call=open_.call))
        case _:
            # A plan or a diff that is not whole has no form of its own.
            return Raw(at=at, item=item, data=text, note=f"{open_.of}, ended before it was whole")
