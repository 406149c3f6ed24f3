"""Items that are being streamed: what a late joiner must be given, and what to close when their maker ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from watchfloor.errors import ContractError
from watchfloor.host.given import given
from watchfloor.protocol.events import Delta, Event, Message, Raw, Reasoning, ToolOutput

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

    def append(self, item: str, of: str, text: str, at: int, call: str | None = None) -> Delta:
        """Extend an item, opening it where it is new. Raises ContractError when `of` is no streamable kind."""
        if of not in _OF:
            raise ContractError(f"{of!r} cannot be streamed, only {', '.join(_OF)}")
        open_ = self._open.setdefault(item, _Open(_OF[of], call))
        delta = _delta(item, open_, at, open_.length, text)
        open_.parts.append(text)
        open_.length += len(text)
        return delta

    def close(self, item: str) -> None:
        """The whole item was published."""
        self._open.pop(item, None)

    def so_far(self, at: int) -> list[Delta]:
        """One delta from offset 0 for every open item."""
        return [_delta(item, open_, at, 0, "".join(open_.parts)) for item, open_ in self._open.items()]

    def cut(self, at: int) -> list[Event]:
        """Close every open item as it stands."""
        events = [_whole(item, open_, at) for item, open_ in self._open.items()]
        self._open.clear()
        return events


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
