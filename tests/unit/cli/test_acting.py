"""Fields of an act, from the words of a command line to values of their types."""

from __future__ import annotations

from typing import Any

import pytest

from console.cli.acting import values_of
from console.fleet.facts import ChoiceFact, FieldFact, Refusal
from watchfloor.text import Clean

FIELDS = tuple(
    FieldFact(type, type, Clean(type), (ChoiceFact("a", Clean("A"), None),), False, False)
    for type in ("text", "secret", "number", "bool", "choice", "many")
)


@pytest.mark.parametrize(
    ("pairs", "values"),
    [
        ([], {}),
        ([("text", "a=b"), ("secret", "")], {"text": "a=b", "secret": ""}),
        ([("number", "3")], {"number": 3}),
        ([("number", "-2.5")], {"number": -2.5}),
        ([("bool", "Yes")], {"bool": True}),
        ([("bool", "false")], {"bool": False}),
        ([("choice", "a")], {"choice": "a"}),
        ([("many", "a"), ("many", "b")], {"many": ["a", "b"]}),
        ([("new", "1")], {"new": "1"}),
    ],
)
def test_each_value_has_the_type_of_its_field(pairs: list[tuple[str, str]], values: dict[str, Any]) -> None:
    assert values_of(FIELDS, pairs) == values


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([("number", "s3cret")], "the field number wants a number"),
        ([("number", "nan")], "the field number wants a number"),
        ([("number", "9" * 5000)], "the field number wants a number"),
        ([("bool", "maybe")], "the field bool wants yes or no"),
        ([("text", "a"), ("text", "b")], "the field text was given twice"),
    ],
)
def test_what_has_not_is_refused_without_being_repeated(pairs: list[tuple[str, str]], says: str) -> None:
    refused = values_of(FIELDS, pairs)
    assert isinstance(refused, Refusal)
    assert refused.reason == says
