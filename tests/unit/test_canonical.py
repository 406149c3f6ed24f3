"""The canonical form: what it is, what has none, and the digests that other languages are held to."""

from __future__ import annotations

import hashlib
import json
import math
import re
import types
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchfloor.canonical import MAX_DEPTH, MAX_INTEGER, canonical, digest, stringify_numbers, subject_digest
from watchfloor.errors import CanonicalError

VECTORS = json.loads((Path(__file__).parents[2] / "docs" / "protocol" / "digest-vectors.json").read_text("utf-8"))

Value: TypeAlias = Any
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
integers = st.integers(-MAX_INTEGER, MAX_INTEGER)


def trees(leaves: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4))


values = trees(st.none() | st.booleans() | integers | text)


def nested(depth: int) -> Value:
    """So many lists inside each other."""
    value: Value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def by_the_rules(value: Value) -> str:
    """The form again, written from the rules and with none of the library's means."""
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value:d}"
        case str():
            written = (short.get(c) or (f"\\u00{ord(c):02x}" if ord(c) < 32 else c) for c in value)
            return f'"{"".join(written)}"'
        case list():
            return f"[{','.join(map(by_the_rules, value))}]"
        case dict():
            keys = sorted(value, key=lambda key: [ord(c) for c in key])
            return f"{{{','.join(f'{by_the_rules(key)}:{by_the_rules(value[key])}' for key in keys)}}}"
    raise AssertionError(value)


# ---------------------------------------------------------------------------------------------- vectors


def test_there_are_ten_vectors_with_names_of_their_own() -> None:
    assert len({vector["name"] for vector in VECTORS}) == len(VECTORS) == 10


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Value]) -> None:
    assert canonical(vector["subject"]).decode() == vector["canonical"]
    assert subject_digest(vector["subject"]) == vector["digest"]
    assert vector["digest"] == "sha256:" + hashlib.sha256(vector["canonical"].encode()).hexdigest()


# ---------------------------------------------------------------------------------------------- the form


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-0, "0"),
        (-1, "-1"),
        (MAX_INTEGER, "9007199254740991"),
        (-MAX_INTEGER, "-9007199254740991"),
        ("", '""'),
        ("/\x7f", '"/\x7f"'),
        ("\x00\x1f\x1b", '"\\u0000\\u001f\\u001b"'),
        ('\b\t\n\f\r\v"\\', '"\\b\\t\\n\\f\\r\\u000b\\"\\\\"'),
        ("\u2028\u2029\ufeff\x80", '"\u2028\u2029\ufeff\x80"'),
        ("\U0001f600", '"\U0001f600"'),
        ([], "[]"),
        ({}, "{}"),
        ([1, [2, []], {"a": {}}], '[1,[2,[]],{"a":{}}]'),
        ({"b": 1, "a": 2, "B": 3, "": 4, "ab": 5}, '{"":4,"B":3,"a":2,"ab":5,"b":1}'),
        ({"\U00010000": 1, "\uffff": 2, "\ud7ff": 3}, '{"\ud7ff":3,"\uffff":2,"\U00010000":1}'),
    ],
)
def test_form(value: Value, form: str) -> None:
    assert canonical(value) == form.encode()


@given(values)
def test_the_form_follows_the_rules(value: Value) -> None:
    assert canonical(value).decode() == by_the_rules(value)


@given(values)
def test_it_reads_back_as_the_same_value(value: Value) -> None:
    assert json.loads(canonical(value)) == value


@given(st.dictionaries(text, values, max_size=6).flatmap(lambda d: st.tuples(st.just(d), st.permutations(list(d)))))
def test_the_order_in_which_keys_came_is_nothing(drawn: tuple[dict[str, Value], list[str]]) -> None:
    subject, order = drawn
    assert subject_digest({key: subject[key] for key in order}) == subject_digest(subject)


@given(values, values)
def test_different_values_have_different_forms(one: Value, other: Value) -> None:
    # Python holds 1 == True and so on, JSON does not.
    if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
        assert canonical(one) != canonical(other)


def test_true_is_not_one() -> None:
    assert len({digest(value) for value in (True, 1, "1", "true", [1], {"1": 1}, None, 0, False, "")}) == 10


def test_subclasses_count_as_what_they_are() -> None:
    class Level(IntEnum):
        HIGH = 2

    class Word(StrEnum):
        ALLOW = "allow"

    assert canonical({Word.ALLOW: [Level.HIGH, Word.ALLOW]}) == b'{"allow":[2,"allow"]}'


def test_any_mapping_is_a_subject_and_unknown_fields_count() -> None:
    subject = {"id": "r", "later": [1]}
    assert subject_digest(types.MappingProxyType(subject)) == digest(subject)
    assert subject_digest({"id": "r"}) != digest(subject)


# ---------------------------------------------------------------------------------------------- what has no form


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.5, "$: a number that is not an integer must be written as a string"),
        ({"a": [1, {"b": 2.0}]}, "$.a[1].b: a number that is not an integer must be written as a string"),
        ([math.nan], "$[0]: a number that is not an integer must be written as a string"),
        ({"a": MAX_INTEGER + 1}, "$.a: an integer beyond 2^53 - 1 must be written as a string"),
        ([-MAX_INTEGER - 1], "$[0]: an integer beyond 2^53 - 1 must be written as a string"),
        ([10**6000], "$[0]: an integer beyond 2^53 - 1 must be written as a string"),
        ({"a b": [0, "x\ud800y"]}, '$["a b"][1]: a lone surrogate (U+D800)'),
        ({"a": {"\udc9b": 1}}, "$.a: a key with a lone surrogate (U+DC9B)"),
        ({"a": {1: 2}}, "$.a: a key is not a string but int"),
        ({None: 2}, "$: a key is not a string but NoneType"),
        ({True: 2}, "$: a key is not a string but bool"),
        ({"a": (1, 2)}, "$.a: not a JSON value but tuple"),
        ([b"bytes"], "$[0]: not a JSON value but bytes"),
        ([{1}], "$[0]: not a JSON value but set"),
        (Decimal(1), "$: not a JSON value but Decimal"),
        ({"\x1b[2J\u202e": 0.5}, '$["\\u001b[2J\\u202e"]: a number that is not an integer must be written as a string'),
        ({"\x7f": 0.5}, '$["\\u007f"]: a number that is not an integer must be written as a string'),
        ({"k" * 50: 0.5}, f'$["{"k" * 40}..."]: a number that is not an integer must be written as a string'),
    ],
)
@pytest.mark.parametrize("function", [canonical, digest])
def test_refused(function: Callable[[object], object], value: Value, message: str) -> None:
    with pytest.raises(CanonicalError, match=f"^{re.escape(message)}$"):
        function(value)


def test_depth_is_bounded() -> None:
    assert canonical(nested(MAX_DEPTH)) == b"[" * 64 + b"]" * 64
    assert canonical([nested(MAX_DEPTH - 1), 1, "x"])
    with pytest.raises(CanonicalError, match=r"^\$(\[0\]){64}: more than 64 levels deep$"):
        canonical(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("function", [canonical, stringify_numbers])
def test_no_depth_exhausts_the_stack(function: Callable[[object], object]) -> None:
    endless: list[Value] = []
    endless.append(endless)
    mapping: dict[str, Value] = {}
    mapping["self"] = mapping
    for value in (nested(200_000), endless, mapping):
        with pytest.raises(CanonicalError, match=r"more than 64 levels deep$"):
            function(value)


def form_or_refusal(value: Value) -> tuple[bytes | None, str]:
    try:
        return canonical(value), ""
    except CanonicalError as error:
        return None, str(error)


@given(trees(st.floats() | st.integers() | st.text(st.characters(), max_size=4) | st.binary(max_size=2) | st.none()))
def test_a_value_has_a_form_or_a_refusal(value: Value) -> None:
    form, refusal = form_or_refusal(value)
    assert refusal.startswith("$: ") or refusal[:2] in ("$[", "$.") if form is None else json.loads(form) == value


@given(st.text(st.characters(), min_size=1, max_size=60))
def test_a_refusal_can_be_printed_anywhere(key: str) -> None:
    _, refusal = form_or_refusal({key: 0.5})
    assert refusal
    assert refusal.isascii()
    assert refusal.isprintable()


# ---------------------------------------------------------------------------------------------- numbers of a host


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, 0),
        (True, True),
        (False, False),
        (MAX_INTEGER, MAX_INTEGER),
        (-MAX_INTEGER, -MAX_INTEGER),
        (MAX_INTEGER + 1, "9007199254740992"),
        (-MAX_INTEGER - 1, "-9007199254740992"),
        (2**70, "1180591620717411303424"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.5e16, "1.5e+16"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (math.nan, "NaN"),
        (-math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_numbers_become_strings(number: float, written: int | str) -> None:
    result = stringify_numbers({"a": [number]})
    assert result == {"a": [written]}
    assert type(result["a"][0]) is type(written)


@given(trees(st.none() | st.booleans() | st.integers() | st.floats() | text))
def test_whatever_numbers_there_were_a_form_exists_afterwards(value: Value) -> None:
    result = stringify_numbers(value)
    assert canonical(result)
    assert stringify_numbers(result) == result


@given(values)
def test_a_value_that_has_a_form_stays(value: Value) -> None:
    assert canonical(stringify_numbers(value)) == canonical(value)


@given(st.floats(allow_nan=False))
def test_a_float_reads_back(number: float) -> None:
    back = float(stringify_numbers(number))
    assert back == number
    assert math.copysign(1, back) == math.copysign(1, number)


def test_tuples_become_lists_and_the_value_itself_is_left_alone() -> None:
    value = {"a": (1.5, [2.5]), 3: b"x"}
    assert stringify_numbers(value) == {"a": ["1.5", ["2.5"]], 3: b"x"}
    assert value == {"a": (1.5, [2.5]), 3: b"x"}


def test_an_integer_too_long_to_write_is_refused_with_its_place() -> None:
    with pytest.raises(CanonicalError, match=r"^\$\.a\[1\]: an integer with too many digits to be written$"):
        stringify_numbers({"a": [0, 10**6000]})
