"""Questions with fields: those of the agent, and the forms of MCP servers. And what is sent for an answer."""

from __future__ import annotations

from typing import Any, Final

from console.connectors.web.reading import Json, each, flag, part, text, texts
from watchfloor.protocol.frames import DoAnswer
from watchfloor.protocol.model import Choice, FieldType, FormField, JsonObject


def questions_of(params: Json) -> tuple[FormField, ...]:
    """The fields for the agent's questions."""
    return tuple(_question(question) for question in each(params, "questions"))


def _question(question: Json) -> FormField:
    options = each(question, "options")
    header, asks = text(question, "header") or "", text(question, "question") or ""
    secret = flag(question, "isSecret") is True
    rest: dict[str, Any] = {"label": f"{header}: {asks}" if header and asks else asks or header}
    if options and not secret:
        rest["choices"] = tuple(_choice(option) for option in options)
        rest["free_text"] = flag(question, "isOther") is True
    kind = FieldType.SECRET if secret else FieldType.CHOICE if options else FieldType.TEXT
    return FormField(name=text(question, "id") or "", type=kind, **rest)


def _choice(option: Json) -> Choice:
    label, note = text(option, "label") or "", text(option, "description")
    return Choice(value=label, label=label, note=note) if note else Choice(value=label, label=label)


def answers_to(fields: tuple[FormField, ...], do: DoAnswer) -> JsonObject:
    """The answer to the agent's questions; one that is not required and was left out is left out there too."""
    given = _given(fields, do)
    return {name: {"answers": [str(part) for part in _as_list(value)]} for name, value in given.items()}


def content_of(fields: tuple[FormField, ...], do: DoAnswer) -> JsonObject:
    """The content of an MCP server's form, its defaults filled in."""
    defaults = {field.name: field.default for field in fields if field.default is not None}
    return {**defaults, **_given(fields, do)}


def _given(fields: tuple[FormField, ...], do: DoAnswer) -> JsonObject:
    if do.fields is not None:
        return dict(do.fields)
    if do.text is not None and fields:
        return {fields[0].name: do.text}
    return {}


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


_PLAIN: Final = {
    "string": FieldType.TEXT,
    "boolean": FieldType.BOOL,
    "number": FieldType.NUMBER,
    "integer": FieldType.NUMBER,
}


def fields_of(schema: Json) -> tuple[FormField, ...] | None:
    """The fields of a form (a JSON schema of plain properties); None where one of them cannot be shown as a field."""
    required = texts(schema, "required")
    fields = []
    for name, given in part(schema, "properties").items():
        field = _field(name, part(given), required=name in required)
        if field is None:
            return None
        fields.append(field)
    # What has to be given comes first: the server hands the properties out in no order that means anything.
    return tuple(sorted(fields, key=lambda field: not field.required))


def _field(name: str, schema: Json, *, required: bool) -> FormField | None:
    kind = text(schema, "type")
    choices = _choices(schema)
    if kind == "array":
        choices = _choices(part(schema, "items"))
        found = FieldType.MANY if choices else None
    elif choices:
        found = FieldType.CHOICE
    else:
        found = _PLAIN.get(kind or "")
    if found is None:
        return None
    rest: dict[str, Any] = {"choices": choices} if choices else {}
    default = schema.get("default")
    if isinstance(default, str | int | float | bool | list):
        rest["default"] = default
    return FormField(name=name, type=found, label=_label(name, schema), required=required, **rest)


def _choices(schema: Json) -> tuple[Choice, ...]:
    titled = each(schema, "oneOf") or each(schema, "anyOf")
    if titled:
        pairs = [(text(one, "const"), text(one, "title")) for one in titled]
        return tuple(Choice(value=value, label=label or value) for value, label in pairs if value is not None)
    values, names = texts(schema, "enum"), texts(schema, "enumNames")
    labels = names if len(names) == len(values) else values
    return tuple(Choice(value=value, label=label) for value, label in zip(values, labels, strict=True))


def _label(name: str, schema: Json) -> str:
    title, description = text(schema, "title") or name, text(schema, "description")
    limits = [
        f"{word} {schema[key]}"
        for key, word in (("minimum", "at least"), ("maximum", "at most"), ("minLength", "no shorter than"),
                          ("maxLength", "no longer than"), ("format", "as"))
        if key in schema
    ]  # fmt: skip
    if text(schema, "type") == "integer":
        limits.insert(0, "a whole number")
    told = f"{title}: {description}" if description else title
    return f"{told} ({', '.join(limits)})" if limits else told
