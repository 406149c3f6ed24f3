"""Does an answer fit the question, and what of it goes on record? An answer to a secret field is never repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from watchfloor.host.quoting import shown
from watchfloor.protocol.frames import DoAnswer
from watchfloor.protocol.model import FieldType, FormField, Subject

_IN_WORDS: Final = frozenset({FieldType.TEXT, FieldType.SECRET})
_EMPTY: Final = "must not be empty"


def check_answer(subject: Subject, do: DoAnswer) -> str | None:
    """What is wrong with the answer, in words, or None."""
    given = [name for name in ("option", "text", "fields") if getattr(do, name) is not None]
    if not given:
        return "an answer needs an option, a text or fields"
    if len(given) > 1 and "option" not in given:
        return "an answer is a text or fields, not both"
    if do.text is not None and not takes_text(subject):
        return "this question takes no free text"
    if do.text == "" and (not subject.fields or subject.fields[0].required):
        return f"the answer {_EMPTY}"
    by_option = _by_option(subject, do)
    if do.fields is None and not by_option:
        return None
    return check_fields(subject.fields, {**by_option, **(do.fields or {})}, "the question")


def _by_option(subject: Subject, do: DoAnswer) -> dict[str, JsonValue]:
    """The field whose choice the option stands for, if there is one."""
    for field in subject.fields:
        if any(choice.value == do.option for choice in field.choices):
            return {field.name: do.option}
    return {}


def record(subject: Subject, do: DoAnswer) -> str | None:
    """What was answered in words, for the record; None where nothing of it may be told.

    A text stands as it is, also that of a question's only field; other fields as `name: value` with the value in JSON.
    """
    secret = {field.name for field in subject.fields if field.type is FieldType.SECRET}
    if do.text is not None:
        return None if secret else do.text
    given = do.fields or {}
    if len(subject.fields) == 1 and not secret and len(given) == 1:
        (value,) = given.values()
        return (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) or None
    told = [(name, value) for name, value in given.items() if name not in secret]
    return "; ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in told) or None


def takes_text(subject: Subject) -> bool:
    """Can the whole question be answered in words? So it is with at most one field, if that takes words."""
    if not subject.fields:
        return not subject.options
    if len(subject.fields) > 1:
        return False
    field = subject.fields[0]
    return field.type in _IN_WORDS or (field.type is FieldType.CHOICE and field.free_text)


def check_fields(fields: tuple[FormField, ...], given: Mapping[str, JsonValue], whose: str) -> str | None:
    """What is wrong with the values that were given for the fields of `whose`, in words, or None."""
    known = {field.name: field for field in fields}
    for name, value in given.items():
        field = known.get(name)
        if field is None:
            return f"{whose} has no field '{shown(name)}'"
        fault = _check_value(field, value)
        if fault is not None:
            return f"field {name!r}: {fault}"
    missing = [f.name for f in fields if f.required and f.default is None and f.name not in given]
    return f"required: {', '.join(missing)}" if missing else None


def _check_value(field: FormField, value: JsonValue) -> str | None:
    values = [choice.value for choice in field.choices]
    match field.type:
        case FieldType.TEXT | FieldType.SECRET:
            if not isinstance(value, str):
                return "must be a text"
            return _EMPTY if value == "" and field.required else None
        case FieldType.BOOL:
            return None if isinstance(value, bool) else "must be true or false"
        case FieldType.NUMBER:
            return None if isinstance(value, int | float) and not isinstance(value, bool) else "must be a number"
        case FieldType.CHOICE:
            if isinstance(value, str) and value in values:
                return None
            if isinstance(value, str) and field.free_text:
                return _EMPTY if value == "" and field.required else None
            return f"must be one of {', '.join(values)}"
        case FieldType.MANY:
            if isinstance(value, list) and all(isinstance(v, str) and (field.free_text or v in values) for v in value):
                return None
            return f"must be a list of {', '.join(values)}"
