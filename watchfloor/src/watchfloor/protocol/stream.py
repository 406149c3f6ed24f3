"""Frames of events read without a model for each: most of what a host sends while its agents work.

What is read so is what the models would read. Whatever is not plainly that (a member that is not known here, a value of
another type, text that is no text) is left to them: they bear more, and say what is wrong.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from watchfloor.protocol.events import AnyEvent, Event

Plain: TypeAlias = dict[str, Any]
"""The members of an event as they came, checked; one that was left out is as the model has it."""

MOST_NUMBER: Final = 2**53 - 1
_BEGINS: Final = b'{"type":"events",'
_EVENT: TypeAdapter[Event] = TypeAdapter(AnyEvent, config=ConfigDict(defer_build=True))
_ANY: Final = object
_ALL: Final[dict[str, type]] = {
    "kind": str, "seq": int, "pos": int, "attempt": int, "at": int, "turn": str, "item": str, "key": str, "author": str,
}  # fmt: skip
_FIELDS: Final[dict[str, dict[str, type]]] = {
    "delta": {**_ALL, "of": str, "offset": int, "text": str, "call": str},
    "message": {**_ALL, "role": str, "text": str, "cut": bool},
    "reasoning": {**_ALL, "text": str, "cut": bool},
    "tool_call": {**_ALL, "call": str, "name": str, "arguments": _ANY, "text": str, "cwd": str, "gated": bool},
    "tool_output": {**_ALL, "call": str, "stream": str, "text": str, "cut": bool},
    "tool_result": {
        **_ALL, "call": str, "status": str, "text": str, "exit_code": int, "duration_ms": int, "cut": bool,
    },
}  # fmt: skip
"""Members of the kinds that are read here, and their types."""
_NEEDED: Final[dict[str, frozenset[str]]] = {
    "delta": frozenset({"at", "item", "offset", "text"}),
    "message": frozenset({"at", "text"}),
    "reasoning": frozenset({"at", "text"}),
    "tool_call": frozenset({"at", "call", "name"}),
    "tool_output": frozenset({"at", "text"}),
    "tool_result": frozenset({"at", "call", "status"}),
}
_NESTED: Final = (dict, list)
_OF: Final = frozenset({"message", "reasoning", "tool_output", "plan", "diff"})


class Stream(NamedTuple):
    """Events of one session. Those of kinds that are not read here are models. `seqs` and `poss`: the numbers and
    positions of those that have any, `keys`: by number, how the source names them; `pieces`: nothing but pieces of
    streamed items.

    `members`: how many the objects of the frame have together, `colons`: how many there are in it with those in its
    texts, unless an id holds one. What came has more where a member stood twice in an object.
    """

    session: str
    epoch: str
    events: list[Plain | Event]
    seqs: list[int]
    poss: list[int]
    keys: dict[int, str] | None
    members: int
    colons: int
    pieces: bool


def read_stream(raw: bytes) -> Stream | None:
    """The events of a frame; None where the models have to look at it."""
    if not raw.startswith(_BEGINS):
        return None
    try:
        tree = from_json(raw)
    except ValueError:
        return None
    session, epoch, events = tree.get("session"), tree.get("epoch"), tree.get("events")
    if type(session) is not str or type(epoch) is not str or type(events) is not list:
        return None
    if len(tree) != 4 or tree["type"] != "events":
        return None
    seqs: list[int] = []
    poss: list[int] = []
    keys: dict[int, str] | None = None
    members, texts, pieces = 4, 0, True
    for place, event in enumerate(events):
        if type(event) is not dict:
            return None
        members += len(event)
        named = event.get("kind")
        if named == "delta" and len(event) == 5:
            # What nearly all pieces have, and no more.
            offset = event.get("offset")
            if (
                type(event.get("text")) is type(event.get("item")) is str
                and type(event.get("at")) is type(offset) is int
            ):
                if offset < 0:
                    return None
                continue
        kind: str = named if type(named) is str else ""
        fields = _FIELDS.get(kind)
        if fields is None:
            pieces = False
            within, some = inside(event)
            members += within - len(event)
            texts += some
            try:
                events[place] = _EVENT.validate_python(event)
            except ValidationError:
                return None
        elif kind == "delta":
            if not _is_piece(event, fields):
                return None
            if "seq" not in event and "pos" not in event:
                continue
        else:
            pieces = False
            if not _is_plain(event, kind, fields):
                return None
            if (text := event.get("text")) is not None:
                texts += text.count(":")
            if (arguments := event.get("arguments")) is not None:
                within, some = inside(arguments)
                members += within
                texts += some
        seq, pos = event.get("seq"), event.get("pos")
        if seq is not None:
            if type(seq) is not int or not 0 < seq <= MOST_NUMBER:
                return None
            seqs.append(seq)
            if (key := event.get("key")) is not None:
                keys = keys or {}
                keys[seq] = key
        if pos is not None:
            if type(pos) is not int or pos < 1:
                return None
            poss.append(pos)
    # The constructor of a named tuple takes twice as long as the tuple's own.
    return tuple.__new__(Stream, (session, epoch, events, seqs, poss, keys, members, members + texts, pieces))


def _is_piece(event: Plain, fields: dict[str, type]) -> bool:
    for name, value in event.items():
        if type(value) is not fields.get(name):
            return False
    offset = event.get("offset")
    return (
        offset is not None
        and offset >= 0
        and "text" in event
        and "item" in event
        and "at" in event
        and event.get("of", "message") in _OF
    )


def _is_plain(event: Plain, kind: str, fields: dict[str, type]) -> bool:
    for name, value in event.items():
        wanted = fields.get(name)
        if type(value) is not wanted and wanted is not _ANY:
            return False
    return event.keys() >= _NEEDED[kind]


def inside(value: object) -> tuple[int, int]:
    """How many members the objects in a JSON value have together, and how many colons its texts."""
    kind = type(value)
    if kind is str:
        return 0, value.count(":")  # type: ignore[attr-defined]
    members = colons = 0
    if kind is dict:
        members = len(value)  # type: ignore[arg-type]
        value = value.values()  # type: ignore[attr-defined]
    elif kind is not list:
        return 0, 0
    for item in value:  # type: ignore[attr-defined]
        if type(item) is str:
            colons += item.count(":")
        elif type(item) in _NESTED:
            more, some = inside(item)
            members += more
            colons += some
    return members, colons
