"""Answers to questions: what fits, what goes on record, and what nobody but the agent may ever learn."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from tests.unit.host.glass import Glass
from tests.unit.host.puppet import Puppet, question
from tests.unit.host.rows import drive
from watchfloor.harness.base import Decided
from watchfloor.host.effects import Tell
from watchfloor.host.sessions.requests import NOTE
from watchfloor.protocol.events import RequestResolved
from watchfloor.protocol.frames import Outcome, RequestFrame
from watchfloor.protocol.model import Choice, FieldType, FormField, Option
from watchfloor.words import OptionKind, OutcomeKind, Row

BRANCH = Option(id="main", label="main", kind=OptionKind.ANSWER)


def running() -> Puppet:
    return drive(Row.RUNNING, pending=False)


COLOUR = FormField(
    name="colour",
    type=FieldType.CHOICE,
    choices=(Choice(value="r", label="red"), Choice(value="g", label="green")),
)
FORM = (
    COLOUR,
    FormField(name="note", type=FieldType.TEXT, required=False),
    FormField(name="copies", type=FieldType.NUMBER, default=1),
    FormField(name="sure", type=FieldType.BOOL),
    FormField(name="tags", type=FieldType.MANY, choices=COLOUR.choices, required=False),
)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"colour": "r", "sure": True}, None),
        ({"colour": "g", "sure": False, "note": "n", "copies": 2.5, "tags": ["r", "g"]}, None),
        ({"colour": "r"}, "required: sure"),
        ({"colour": "blue", "sure": True}, "one of r, g"),
        ({"colour": "r", "sure": 1}, "true or false"),
        ({"colour": "r", "sure": True, "copies": "two"}, "a number"),
        ({"colour": "r", "sure": True, "copies": True}, "a number"),
        ({"colour": "r", "sure": True, "note": 3}, "a text"),
        ({"colour": "r", "sure": True, "tags": ["blue"]}, "a list of r, g"),
        ({"colour": "r", "sure": True, "tags": "r"}, "a list of r, g"),
        ({"colour": "r", "sure": True, "size": 3}, "no field 'size'"),
    ],
)
def test_fields_are_checked(fields: dict[str, object], fault: str | None) -> None:
    puppet = running()
    request = puppet.ask(question(puppet.core, fields=FORM))
    handled = puppet.answer(request, fields=fields)
    if fault is None:
        assert handled.applied
        told = next(s for s in puppet.told if isinstance(s, Decided))
        assert told.fields == fields
    else:
        assert handled.outcome is OutcomeKind.INVALID
        assert fault in (handled.reason or "")
        assert puppet.core.requests


def test_a_question_with_options_and_free_text() -> None:
    free = COLOUR.model_copy(update={"free_text": True})
    options = (
        Option(id="r", label="red", kind=OptionKind.ANSWER),
        Option(id="g", label="green", kind=OptionKind.ANSWER),
    )
    for answer in ({"option": "r"}, {"text": "mauve"}, {"fields": {"colour": "mauve"}}):
        puppet = running()
        assert puppet.answer(puppet.ask(question(puppet.core, fields=(free,), options=options)), **answer).applied
        assert any(isinstance(s, Decided) for s in puppet.told)


@pytest.mark.parametrize(
    ("fields", "options", "answer"),
    [
        ((COLOUR,), (), {"text": "mauve"}),
        (FORM, (), {"text": "anything"}),
        ((), (BRANCH,), {"text": "develop"}),
        ((), (BRANCH,), {}),
        ((), (), {"text": "x", "fields": {}}),
        ((COLOUR, FORM[3]), (Option(id="r", label="red", kind=OptionKind.ANSWER),), {"option": "r"}),
    ],
)
def test_answers_that_do_not_fit(
    fields: tuple[FormField, ...], options: tuple[Option, ...], answer: dict[str, object]
) -> None:
    puppet = running()
    request = puppet.ask(question(puppet.core, fields=fields, options=options))
    assert puppet.answer(request, **answer).outcome is OutcomeKind.INVALID
    assert puppet.core.requests


def test_an_open_question_takes_words_and_remembers_them() -> None:
    puppet = running()
    request = puppet.ask(question(puppet.core))
    assert puppet.answer(request, text="the blue one").applied
    second = puppet.answer(request, text="no, the red one")
    assert second.decided is not None
    assert second.decided.note == "the blue one"


@pytest.mark.parametrize(
    ("field", "answer", "empty"),
    [
        (None, {"text": ""}, True),
        (FormField(name="f", type=FieldType.TEXT), {"text": ""}, True),
        (FormField(name="f", type=FieldType.TEXT), {"fields": {"f": ""}}, True),
        (FormField(name="f", type=FieldType.TEXT, default="x"), {"fields": {"f": ""}}, True),
        (FormField(name="f", type=FieldType.SECRET), {"text": ""}, True),
        (FormField(name="f", type=FieldType.SECRET), {"fields": {"f": ""}}, True),
        (COLOUR.model_copy(update={"free_text": True}), {"text": ""}, True),
        (COLOUR.model_copy(update={"free_text": True}), {"fields": {"colour": ""}}, True),
        (FormField(name="f", type=FieldType.TEXT), {"text": " "}, False),
        (FormField(name="f", type=FieldType.TEXT, required=False), {"text": ""}, False),
        (FormField(name="f", type=FieldType.TEXT, required=False), {"fields": {"f": ""}}, False),
        (FormField(name="f", type=FieldType.SECRET, required=False), {"fields": {"f": ""}}, False),
        (
            FormField(name="f", type=FieldType.CHOICE, free_text=True, choices=(Choice(value="", label="none"),)),
            {"fields": {"f": ""}},
            False,
        ),
    ],
)
def test_where_words_are_required_none_are_no_answer(
    field: FormField | None, answer: dict[str, object], empty: bool
) -> None:
    puppet = running()
    handled = puppet.answer(puppet.ask(question(puppet.core, fields=(field,) if field else ())), **answer)
    assert handled.applied is not empty
    if empty:
        assert handled.outcome is OutcomeKind.INVALID
        assert "must not be empty" in (handled.reason or "")
        assert puppet.core.requests


# --- what goes on record


def test_an_answer_by_fields_is_on_record_and_the_agent_gets_the_values() -> None:
    puppet = running()
    request = puppet.ask(question(puppet.core, fields=FORM))
    fields = {"colour": "g", "sure": True, "note": 'say "hi"\n', "copies": 2.5, "tags": ["r", "é"]}
    assert not puppet.answer(request, fields=fields).applied
    fields["tags"] = ["r", "g"]
    assert puppet.answer(request, fields=fields).applied
    wanted = 'colour: "g"; sure: true; note: "say \\"hi\\"\\n"; copies: 2.5; tags: ["r", "g"]'
    (resolved,) = puppet.of(RequestResolved)
    assert (resolved.note, resolved.option, resolved.option_kind) == (wanted, None, OptionKind.ANSWER)
    decision = puppet.requests[-1].decision
    assert decision is not None
    assert decision.note == wanted
    late = puppet.answer(request, fields=fields)
    assert late.outcome is OutcomeKind.ALREADY_DECIDED
    assert late.decided == decision
    (told,) = [s for s in puppet.told if isinstance(s, Decided)]
    assert (told.fields, told.note) == (fields, None)


def test_an_answer_in_words_is_on_record() -> None:
    puppet = running()
    puppet.answer(puppet.ask(question(puppet.core)), text="the blue one")
    assert [event.note for event in puppet.of(RequestResolved)] == ["the blue one"]


@pytest.mark.parametrize(
    ("field", "value", "wanted"), [(COLOUR, "g", "g"), (FORM[3], True, "true"), (FORM[4], ["r", "g"], '["r", "g"]')]
)
def test_the_value_of_an_only_field_is_on_record_without_its_name(
    field: FormField, value: JsonValue, wanted: str
) -> None:
    puppet = running()
    assert puppet.answer(puppet.ask(question(puppet.core, fields=(field,))), fields={field.name: value}).applied
    assert [event.note for event in puppet.of(RequestResolved)] == [wanted]


@pytest.mark.parametrize("answer", [{"text": "ü" * 10_000}, {"fields": {"f": "ü" * 10_000}}])
def test_the_record_of_an_answer_is_bounded_the_answer_is_not(answer: dict[str, object]) -> None:
    puppet = running()
    field = FormField(name="f", type=FieldType.TEXT)
    puppet.answer(puppet.ask(question(puppet.core, fields=(field,))), **answer)
    (resolved,) = puppet.of(RequestResolved)
    assert len(resolved.note or "") == NOTE
    assert (resolved.note or "").endswith("ü…")
    (told,) = [s for s in puppet.told if isinstance(s, Decided)]
    assert told.text == "ü" * 10_000 or told.fields == {"f": "ü" * 10_000}


# --- secrets

RED = Option(id="r", label="red", kind=OptionKind.ANSWER)
PIN = FormField(name="pin", type=FieldType.SECRET)
SECRET = "hunter2"


@pytest.mark.parametrize(
    ("fields", "answer", "record"),
    [
        ((PIN,), {"text": SECRET}, None),
        ((PIN,), {"fields": {"pin": SECRET}}, None),
        ((FORM[1], PIN), {"fields": {"note": "n", "pin": SECRET}}, 'note: "n"'),
        ((COLOUR, PIN), {"option": "r", "fields": {"pin": SECRET}}, None),
        # What fits nowhere is not repeated either.
        ((PIN,), {"option": SECRET}, False),
        ((PIN, FORM[1]), {"text": SECRET}, False),
        ((FORM[3], PIN), {"fields": {"sure": "x", "pin": SECRET}}, False),
        ((PIN,), {"fields": {"pin": [SECRET]}}, False),
    ],
)
def test_the_answer_to_a_secret_field_is_told_to_the_agent_and_to_nobody_else(
    fields: tuple[FormField, ...],
    answer: dict[str, object],
    record: str | bool | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    glass = Glass()
    session = glass.add()
    request = glass.ask("s1", question(session, fields=fields, options=(RED,)))
    for who in ("ann", "bob"):
        glass.connect(who)
        glass.watch(who, start="start")
    do = {"primitive": "answer", "request": "q1", "digest": request.digest, **answer}
    outcomes = [glass.command(who, "s1", do).outcome for who in ("ann", "bob")]
    told = [effect.signal for effect in glass.rest if isinstance(effect, Tell) and isinstance(effect.signal, Decided)]
    if record is False:
        assert outcomes == [OutcomeKind.INVALID] * 2
        assert told == []
    else:
        assert outcomes == [OutcomeKind.APPLIED, OutcomeKind.ALREADY_DECIDED]
        assert SECRET in (told[0].text, *(told[0].fields or {}).values())
        resolved = glass.of("ann", RequestFrame)[-1].request.decision
        assert resolved is not None
        assert resolved.note == record
        assert glass.of("bob", Outcome)[-1].decided == resolved
    glass.connect("late")
    glass.watch("late", start="start")
    seen = [frame.model_dump_json() for conn in ("ann", "bob", "late") for frame in glass.got[conn]]
    seen += [event.model_dump_json() for event in glass.core.log.read("s1", limit=5000)]
    assert SECRET not in json.dumps(seen)
    assert SECRET not in repr(glass.rest)
    assert SECRET not in caplog.text
