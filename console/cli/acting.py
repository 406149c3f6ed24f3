"""What only some sources can do: from an act and its fields on the command line to the values that it asks for."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Final

from console.cli.link import Link
from console.fleet.facts import FieldFact, Refusal
from console.fleet.state import Session
from watchfloor.text import clean_line
from watchfloor.words import OutcomeKind, Primitive

_WORDS: Final[Mapping[str, bool]] = {"yes": True, "true": True, "no": False, "false": False}


def offered(link: Link, session: Session) -> tuple[Mapping[str, Any], ...]:
    """The acts that the session offers now: `id`, `label`, `effect`, `danger`, and `fields` as facts."""
    profile = link.hub.fleet.profile(session)
    options = profile.options.get(Primitive.ACT, {}) if profile is not None else {}
    return tuple(options.get("acts", ()))


def record(act: Mapping[str, Any]) -> dict[str, Any]:
    """An act, as `sessions --json` lists it."""
    return {**act, "fields": [field_record(field) for field in act["fields"]]}


def field_record(field: FieldFact) -> dict[str, Any]:
    """A field of an act or a question, as it is printed."""
    return {
        "name": field.name,
        "type": field.type,
        "label": field.label,
        "choices": [{"value": c.value, "label": c.label, "note": c.note} for c in field.choices],
        "free_text": field.free_text,
        "required": field.required,
    }


def intent_of(args: Namespace, link: Link, given: Mapping[str, Any] | None) -> dict[str, Any] | Refusal:
    """The arguments of the intent. `given`: all fields, None where they come one by one.

    What the session does not offer at all is told by the gate.
    """
    session = link.session(args.session)
    acts = offered(link, session) if session is not None else ()
    found = [act for act in acts if act["id"] == args.act]
    if not found and acts:
        there = ", ".join(clean_line(act["id"]) for act in acts)
        reason = f"the session does not offer the act {clean_line(args.act)}; it offers {there}"
        return Refusal(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason)
    asked: Sequence[FieldFact] = found[0]["fields"] if found else ()
    if len(found) > 1 or len({field.name for field in asked}) != len(asked):
        return Refusal(OutcomeKind.INVALID, "its source offers two acts, or two fields, of the same name")
    values = dict(given) if given is not None else values_of(asked, args.field)
    if isinstance(values, Refusal):
        return values
    if found and found[0]["danger"] and not args.yes:
        does = found[0]["effect"] or found[0]["label"] or clean_line(args.act)
        reason = f"its source says that this destroys something ({does}); --yes does it all the same"
        return Refusal(OutcomeKind.INVALID, reason)
    return {"extra": {"act": args.act, "fields": values}}


def values_of(asked: Sequence[FieldFact], pairs: Sequence[tuple[str, str]]) -> dict[str, Any] | Refusal:
    """The values by the fields' names, each of the type that its field asks for."""
    kinds = {field.name: field.type for field in asked}
    values: dict[str, Any] = {}
    for name, text in pairs:
        kind = kinds.get(name, "text")
        if kind == "many":
            values.setdefault(name, []).append(text)
            continue
        if name in values:
            return Refusal(OutcomeKind.INVALID, f"the field {clean_line(name)} was given twice")
        value = _value(kind, text)
        if value is None:
            wants = "a number" if kind == "number" else "yes or no"
            return Refusal(OutcomeKind.INVALID, f"the field {clean_line(name)} wants {wants}")
        values[name] = value
    return values


def _value(kind: str, text: str) -> Any:
    match kind:
        case "number":
            return _number(text)
        case "bool":
            return _WORDS.get(text.casefold())
        case _:
            return text


def _number(text: str) -> int | float | None:
    for read in (int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        return value if value == value and abs(value) != float("inf") else None
    return None
