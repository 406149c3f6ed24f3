"""What a source says twice where it may be said once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from watchfloor.protocol import events as e
from watchfloor.protocol.model import Summary


class _Twice(Exception):
    pass


def member_twice(raw: bytes) -> str:
    """The name of a member that stands twice in an object of this frame; "" where none does, or it cannot be read.

    Readers differ in which of the two they take, so that two people may read two requests in one.
    """
    try:
        json.loads(raw, object_pairs_hook=_once)
    except _Twice as found:
        return str(found)
    except (ValueError, RecursionError):
        pass
    return ""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return whole


def sessions_twice(summaries: Sequence[Summary]) -> list[str]:
    """Ids that one frame gives to several sessions: each of them is told whole, with a log of its own."""
    whole = [summary.id for summary in summaries if "epoch" in summary.model_fields_set]
    if len(set(whole)) == len(whole):
        return []
    seen: set[str] = set()
    return [id for id in whole if id in seen or seen.add(id)]  # type: ignore[func-returns-value]


def unknown_kinds(events: Sequence[e.Event]) -> tuple[int, str]:
    """How many events are of a kind that is not known here, and that of the last."""
    kinds = [event.kind for event in events if type(event) is e.UnknownEvent]
    return len(kinds), kinds[-1] if kinds else ""
