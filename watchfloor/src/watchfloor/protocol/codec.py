"""Bytes to frames and back.

Reading validates the bytes directly (pydantic's own JSON reader, no intermediate tree). Only when that
fails is the frame read a second time, slowly: by `json.loads` with lone surrogates replaced, a list of
events item by item, and summaries and requests field by field, so that a bad one costs no more than itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from watchfloor.errors import ProtocolError
from watchfloor.protocol.events import AnyEvent, Event, Raw
from watchfloor.protocol.frames import (
    AnyClientFrame,
    AnyHostFrame,
    ClientFrame,
    Frame,
    HostFrame,
    UnknownFrame,
)
from watchfloor.protocol.model import RequestModel, RequestRef, Summary

MAX_RECEIVE: Final = 16 * 1024 * 1024
"""Bytes that a client accepts in one frame."""
SPLIT_AT: Final = 256 * 1024
"""Bytes at which a host begins a new frame."""
KEEP_RAW: Final = 4096
"""Characters that are kept of something that could not be read."""
MAX_DIGITS: Final = 4000
"""Digits of an integer that are still read as a number (Python's own limit is 4300)."""
MAX_PLACE: Final = 100
"""Characters of the place of a fault that its reason names."""

_PLACE: Final[dict[str, int | None]] = {"seq": 1, "pos": 1, "attempt": None, "at": None}
"""The fields that say where an event belongs, with the least value that each may have."""

_UNREAD_REF: Final = {"kind": "approval", "asked_at": 0, "digest": ""}
"""What stands in for the fields of a listed request that cannot be read."""

_WHEN_USED: Final = ConfigDict(defer_build=True)
"""A console reads no frames of clients, and a host none of hosts."""
_HOST: TypeAdapter[HostFrame | UnknownFrame] = TypeAdapter(AnyHostFrame, config=_WHEN_USED)
_CLIENT: TypeAdapter[ClientFrame | UnknownFrame] = TypeAdapter(AnyClientFrame, config=_WHEN_USED)
_EVENT: TypeAdapter[Event] = TypeAdapter(AnyEvent, config=_WHEN_USED)
_SUMMARY: TypeAdapter[Summary] = TypeAdapter(Summary)


@dataclass(frozen=True, slots=True)
class Bad:
    """Something received that could not be read: why, and the start of it.

    `session` names the session of a bad summary, and `fields` what of it is left out. `mended`: nothing is left out,
    but some characters of the frame were no text and were replaced.
    """

    reason: str
    raw: str
    session: str | None = None
    fields: tuple[str, ...] = ()
    mended: bool = False


class Decoded(NamedTuple):
    """A frame, and what of it had to be left out."""

    frame: HostFrame | UnknownFrame
    bad: tuple[Bad, ...] = ()


def encode(frame: Frame) -> bytes:
    """The frame as JSON in UTF-8, set fields only. Raises ProtocolError where a text holds lone surrogates."""
    try:
        return frame.model_dump_json(exclude_unset=True).encode()
    except (ValueError, UnicodeError) as error:
        raise ProtocolError(f"a {type(frame).__name__} frame cannot be written: {error}") from None


def decode_host(raw: bytes) -> Decoded:
    """Read a host's frame. Raises ProtocolError when nothing of it can be used."""
    try:
        return Decoded(_HOST.validate_json(raw))
    except ValidationError:
        return _read_slowly(raw)


def decode_client(raw: bytes) -> ClientFrame | UnknownFrame:
    """Read a client's frame. Raises ProtocolError when it cannot be used."""
    try:
        # Strictly: what a command asks for is never guessed, as "yes" would be for true.
        return _CLIENT.validate_json(raw, strict=True)
    except ValidationError as error:
        raise ProtocolError(_reason(error), raw) from None


def about(raw: bytes) -> str | None:
    """What the answer to an unreadable frame is about: the frame's id, else its type; None where it shows neither."""
    try:
        tree, _ = _load(raw)
    except ProtocolError:
        return None
    names = (tree.get("id"), tree.get("type")) if isinstance(tree, dict) else ()
    return next((name for name in names if isinstance(name, str) and name), None)


def _read_slowly(raw: bytes) -> Decoded:
    tree, mended = _load(raw)
    if not isinstance(tree, dict):
        raise ProtocolError(f"a frame must be a JSON object, this is {_json_type(tree)}", raw)
    bad: list[Bad] = []
    if mended:
        bad.append(Bad(mended, raw[:KEEP_RAW].decode("utf-8", "replace"), mended=True))
    if tree.get("type") in ("events", "page") and isinstance(tree.get("events"), list):
        tree = {**tree, "events": [_event(item, bad) for item in tree["events"]]}
        tree["events"] = [event for event in tree["events"] if event is not None]
    elif tree.get("type") == "sessions" and isinstance(tree.get("sessions"), list):
        summaries = [_summary(item, bad) for item in tree["sessions"]]
        tree = {**tree, "sessions": [summary for summary in summaries if summary is not None]}
    elif tree.get("type") == "request":
        tree = {**tree, "request": _request(tree, bad)}
    try:
        return Decoded(_HOST.validate_python(tree), tuple(bad))
    except ValidationError as error:
        raise ProtocolError(_reason(error), raw) from None


def _event(item: JsonValue, bad: list[Bad]) -> Event | None:
    """One event of a frame; a bad one becomes a `raw` event in its place, or None where even that is impossible."""
    try:
        return _EVENT.validate_python(item)
    except ValidationError as error:
        reason = _reason(error)
    bad.append(Bad(reason, _show(item)))
    if not isinstance(item, dict):
        return None
    # What of its place can be read is kept, so that the hole it leaves is filled and cursors can pass it.
    place = {name: item[name] for name, least in _PLACE.items() if _is_int(item.get(name), least)}
    try:
        return Raw.model_validate({"at": 0, **place, "data": _show(item), "note": f"unreadable event: {reason}"})
    except ValidationError:
        return None


def _summary(item: JsonValue, bad: list[Bad]) -> Summary | None:
    """One summary of a frame, without those of its fields that cannot be read; None where that leaves nothing."""
    try:
        return _SUMMARY.validate_python(item)
    except ValidationError as error:
        wrong, reason = _wrong(error), _reason(error)
    name = item.get("id") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(name, str):
        bad.append(Bad(reason, _show(item)))
        return None
    good: dict[str, Any] = {field: value for field, value in item.items() if field not in wrong}
    if "requests" in wrong and isinstance(item["requests"], list):
        # One that is listed badly still waits for a human.
        good["requests"] = [ref for ref in map(_ref, item["requests"]) if ref is not None]
    bad.append(Bad(reason, _show(item), name, tuple(sorted(wrong.difference(good)))))
    try:
        return _SUMMARY.validate_python(good)
    except ValidationError:
        return None


def _ref(item: JsonValue) -> RequestRef | None:
    try:
        return RequestRef.model_validate(item)
    except ValidationError:
        pass
    try:
        return RequestRef.model_validate({**_UNREAD_REF, "id": item["id"] if isinstance(item, dict) else None})
    except (KeyError, ValidationError):
        return None


def _request(tree: dict[str, Any], bad: list[Bad]) -> Any:
    """The request of a frame, without what of it cannot be read: it still waits, and whoever shows it says why not."""
    item = tree.get("request")
    try:
        return RequestModel.model_validate(item)
    except ValidationError as error:
        wrong, reason = _wrong(error), _reason(error)
    subject = item.get("subject") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(subject, dict) or not isinstance(subject.get("id"), str):
        return item
    good = {"asked_at": 0, "digest": "", **{field: value for field, value in item.items() if field not in wrong}}
    if "subject" in wrong:
        good["subject"] = {name: subject[name] for name in ("id", "kind") if isinstance(subject.get(name), str)}
    bad.append(Bad(reason, _show(item)))
    return good


def _wrong(error: ValidationError) -> set[str]:
    """The fields in which something could not be read."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    return {str(one["loc"][0]) for one in errors if one["loc"]}


def _is_int(value: JsonValue, least: int | None) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)


def _load(raw: bytes) -> tuple[Any, str]:
    """The frame as a tree, and what had to be replaced for that; "" where nothing had to."""
    mended = ""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        mended = f"not UTF-8 at byte {error.start}: replaced"
        text = raw.decode("utf-8", "replace")
    # NaN, the infinities and endless integers become text: what needs a number there fails alone, not its batch.
    try:
        tree = json.loads(text, parse_constant=str, parse_int=_int)
        whole = _replace_surrogates(tree)
    except RecursionError:
        raise ProtocolError("nested too deeply", raw) from None
    except ValueError as error:
        raise ProtocolError(f"not JSON: {error}", raw) from None
    return whole, mended or ("lone surrogates: replaced" if whole != tree else "")


def _int(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits


def _replace_surrogates(tree: Any) -> Any:
    match tree:
        case str():
            return tree if tree.isascii() else tree.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_replace_surrogates(item) for item in tree]
        case dict():
            return {_replace_surrogates(key): _replace_surrogates(value) for key, value in tree.items()}
        case _:
            return tree


def _show(item: JsonValue) -> str:
    try:
        return json.dumps(item, ensure_ascii=True)[:KEEP_RAW]
    except RecursionError:
        return ""


def _json_type(tree: Any) -> str:
    match tree:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"


def _reason(error: ValidationError) -> str:
    """The first fault, with its place, in one line."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    known = [e for e in errors if not any(part in ("UnknownFrame", "UnknownEvent", "UnknownDo") for part in e["loc"])]
    first = (known or errors)[0]
    place = ".".join(str(part) for part in first["loc"] if not (isinstance(part, str) and "[" in part))
    # Names of members come from outside, and may be as long and as deep as the frame.
    place = place if len(place) <= MAX_PLACE else place[:MAX_PLACE] + "…"
    return f"{place}: {first['msg']}" if place else first["msg"]
