"""What of a subject this console does not know. The digest covers it, so whoever decides has to see it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import BaseModel, JsonValue

from console.fleet.facts import UnknownFact
from console.intake.bounds import KEEP_ID, KEEP_LINE, line
from watchfloor.protocol.model import Action, Choice, FormField, JsonObject, Option, Subject

KEEP_UNKNOWN: Final = 20
"""Members that are shown of a subject; all are counted."""

_WITHIN: Final[Mapping[type[BaseModel], Mapping[str, type[BaseModel]]]] = {
    Subject: {"actions": Action, "fields": FormField, "options": Option},
    FormField: {"choices": Choice},
}
_COMPACT: Final = json.JSONEncoder(ensure_ascii=False)


def unknown_members(subject: JsonObject) -> tuple[tuple[UnknownFact, ...], int]:
    """The members of a subject that can be read which are not known here, as they came; and how many there are."""
    kept: list[UnknownFact] = []
    count = 0
    for name, value in _members(Subject, subject, ""):
        count += 1
        if count <= KEEP_UNKNOWN:
            kept.append(UnknownFact(line(name), line(_written(value))))
    return tuple(kept), count


def _members(model: type[BaseModel], raw: JsonValue, path: str) -> Iterator[tuple[str, JsonValue]]:
    if not isinstance(raw, dict):
        return
    within = _WITHIN.get(model, {})
    for name, value in raw.items():
        if name not in model.model_fields:
            yield f"{path}{name[: KEEP_ID + 1]}", value
        elif (inner := within.get(name)) is not None and isinstance(value, list):
            for at, one in enumerate(value):
                yield from _members(inner, one, f"{path}{name}[{at}].")


def _written(value: JsonValue) -> str:
    """The value as JSON on one line, no longer than is shown of it."""
    pieces: list[str] = []
    taken = 0
    try:
        for piece in _COMPACT.iterencode(value):
            pieces.append(piece[: KEEP_LINE + 1])
            taken += len(piece)
            if taken > KEEP_LINE:
                break
    except RecursionError:
        return "nested too deeply to be shown"
    except ValueError:
        return "a number in it is too long to be shown"
    return "".join(pieces)
