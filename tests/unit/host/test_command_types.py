"""No member of a command is guessed: a value of another type, and one that says nothing, change nothing."""

from __future__ import annotations

import json
from typing import Any, Final, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from tests.unit.host.glass import Glass
from tests.unit.host.puppet import FULL, approval
from watchfloor.protocol import frames
from watchfloor.protocol.frames import Command, Error, ErrorCode, Outcome
from watchfloor.protocol.model import BudgetOptions, NoOptions, ReseedOptions
from watchfloor.words import OutcomeKind, ReseedMode

ALL: Final = FULL.model_copy(
    update={
        "budget": BudgetOptions(tokens=True, turns=True),
        "reseed": ReseedOptions(modes=tuple(ReseedMode)),
        "notify": NoOptions(),
    }
)
DOS: Final = {kind.model_fields["primitive"].default: kind for kind in get_args(get_args(frames.Do)[0])}
WHOLE: Final[dict[str, dict[str, Any]]] = {
    "send": {"text": "x", "priority": "normal", "reply_to": "#1"},
    "pause": {"interrupt": False},
    "stop": {"kill": False, "reason": "late"},
    "reseed": {"mode": "clear", "to": "#1", "text": "x"},
    "fork": {"name": "again"},
    "budget": {"tokens": 5, "turns": 5},
    "approve": {"request": "r1", "option": "yes", "digest": "sha256:0", "note": "x", "automatic": False},
    "answer": {"request": "r1", "digest": "sha256:0", "option": "yes", "text": "x", "fields": {"a": 1}},
    "notify": {"subscriber": "s2", "on": ["idle"]},
    "act": {"act": "x", "fields": {"a": 1}},
}
VALUES: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["yes", "true", "1", "", " ", "clear", "normal", "idle"]),
    st.lists(st.integers(0, 2) | st.text(max_size=2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(0, 2), max_size=2),
)
MEMBERS: Final = [
    *((name, ("do", member)) for name, kind in DOS.items() for member in kind.model_fields if member != "primitive"),
    *(("resume", (member,)) for member in ("id", "session", "attempt", "turn", "do")),
    ("resume", ("do", "primitive")),
]


def fits(name: str, place: tuple[str, ...], value: Any) -> bool:
    """Is the value of the type that the schema names, without any conversion?"""
    if place == ("do", "primitive"):
        return isinstance(value, str)
    model = DOS[name] if place[0] == "do" and len(place) == 2 else Command
    info: FieldInfo = model.model_fields[place[-1]]
    adapter: TypeAdapter[Any] = TypeAdapter(info.annotation or Any)
    try:
        told = adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return False
    return bool(json.loads(adapter.dump_json(told)) == value)


def test_every_primitive_has_its_whole_command_here() -> None:
    assert {name for name, kind in DOS.items() if len(kind.model_fields) > 1} == set(WHOLE)
    for name, whole in WHOLE.items():
        assert set(whole) == set(DOS[name].model_fields) - {"primitive"}


@pytest.mark.parametrize(("name", "place"), MEMBERS, ids=lambda it: it if isinstance(it, str) else ".".join(it))
@given(value=VALUES)
@settings(max_examples=40)
def test_a_value_of_another_type_is_refused_and_changes_nothing(name: str, place: tuple[str, ...], value: Any) -> None:
    if fits(name, place, value):
        return
    glass = Glass()
    core = glass.add(capabilities=ALL)
    glass.add("s2")
    glass.ask("s1", approval(core))
    glass.connect("c")
    glass.got["c"].clear()
    before = (core.lifecycle, core.pending.copy(), core.budget.tokens, glass.core.log.head("s1"), len(glass.rest))
    command: dict[str, Any] = {"type": "command", "id": "k1", "session": "s1"}
    command["do"] = {"primitive": name, **WHOLE.get(name, {})}
    *path, last = place
    (command["do"] if path else command)[last] = value
    glass.take(glass.core.receive("c", json.dumps(command).encode(), glass.now))
    (answer,) = glass.got["c"]
    assert isinstance(answer, Error)
    assert (answer.code, answer.fatal) == (ErrorCode.MALFORMED, False)
    assert answer.about == ("command" if place == ("id",) else "k1")
    assert "command" in answer.message
    assert before == (core.lifecycle, core.pending, core.budget.tokens, glass.core.log.head("s1"), len(glass.rest))


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
@pytest.mark.parametrize("priority", ["normal", "queue", "interrupt"])
def test_a_message_that_says_nothing_is_invalid(text: str, priority: str) -> None:
    glass = Glass()
    core = glass.add(capabilities=ALL)
    glass.connect("c")
    sent = core.mailbox.letters()
    outcome = glass.command("c", "s1", {"primitive": "send", "text": text, "priority": priority})
    assert isinstance(outcome, Outcome)
    assert (outcome.outcome, outcome.reason) == (OutcomeKind.INVALID, "there is no text to send: write one")
    assert core.mailbox.letters() == sent


@pytest.mark.parametrize(
    ("do", "says"),
    [
        ({"primitive": "reseed", "mode": "replace", "text": "  "}, "needs the text"),
        ({"primitive": "reseed", "mode": "model", "to": " "}, "needs its name"),
        ({"primitive": "budget"}, "needs tokens or turns"),
        ({"primitive": "notify", "subscriber": ""}, "runs no session"),
    ],
)
def test_a_command_that_says_nothing_is_invalid(do: dict[str, Any], says: str) -> None:
    glass = Glass()
    glass.add(capabilities=ALL, running=False)
    glass.connect("c")
    outcome = glass.command("c", "s1", do)
    assert outcome.outcome is OutcomeKind.INVALID
    assert says in (outcome.reason or "")
