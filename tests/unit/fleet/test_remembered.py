"""What a session remembers, told from its events: what a reseed would take away, and where it can go back to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from console.fleet.facts import SessionKey
from console.fleet.log import KEEP
from console.fleet.remembered import Remembered, remembered
from tests.unit.fleet.scripted import SOURCE, ScriptedHost

SAYS: Mapping[str, Any] = {"kind": "message", "role": "assistant", "text": "done"}
CALL: Mapping[str, Any] = {"kind": "tool_call", "call": "c", "name": "shell", "text": "ls"}


def sent(n: int, text: str = "") -> Mapping[str, Any]:
    return {"kind": "mail", "ref": f"#{n}", "state": "sent", "text": text or f"message {n}"}


def read(n: int, **rest: Any) -> Mapping[str, Any]:
    return {"kind": "mail", "ref": f"#{n}", "state": "consumed", **rest}


def told(*events: Mapping[str, Any]) -> Remembered:
    host = ScriptedHost()
    host.session()
    host.events("s1", *events)
    host.summary("s1", head=len(events))
    return remembered(host.fleet.sessions[SessionKey(SOURCE, "s1")], host.now)


def refs(found: Remembered) -> list[tuple[str, str, int, int]]:
    return [(one.ref, one.text, one.messages, one.events) for one in found.heard]


def test_a_session_without_events_remembers_nothing() -> None:
    assert told() == Remembered()


def test_messages_and_events_are_counted_from_each_message_that_was_read() -> None:
    found = told(sent(1), read(1), CALL, SAYS, sent(2), read(2, text="as it was read"), SAYS, SAYS)
    assert (found.messages, found.events, found.whole) == (5, 8, True)
    assert refs(found) == [("#2", "as it was read", 3, 3), ("#1", "message 1", 5, 7)]


def test_mail_that_waits_is_no_part_of_the_conversation() -> None:
    found = told(sent(1), read(1), sent(2))
    assert found.messages == 1
    assert [one.ref for one in found.heard] == ["#1"]


def test_what_a_source_tells_as_mail_and_as_a_message_counts_once() -> None:
    asks = {"kind": "message", "role": "user", "text": "go"}
    assert told(sent(1), read(1), asks, SAYS).messages == 2
    assert told(asks, SAYS, asks, SAYS).messages == 4


def test_a_result_is_a_message_where_nothing_else_was_said() -> None:
    result = {"kind": "result", "result": {"text": "done", "stop_reason": "end_turn", "session_id": "s1"}}
    assert told(sent(1), read(1), result, sent(2), read(2), result).messages == 4
    assert told(sent(1), read(1), SAYS, result, sent(2), read(2), SAYS, result).messages == 4


@pytest.mark.parametrize("mode", ["clear", "replace", "compact"])
def test_what_was_forgotten_before_is_not_counted(mode: str) -> None:
    found = told(sent(1), read(1), SAYS, {"kind": "reseeded", "mode": mode, "by": "ann"}, sent(2), read(2), SAYS)
    assert (found.messages, found.events) == (2, 3)
    assert [one.ref for one in found.heard] == ["#2"]


def test_after_a_rewind_what_it_took_away_is_gone() -> None:
    back = {"kind": "reseeded", "mode": "rewind", "by": "ann", "note": "before #2"}
    found = told(sent(1), read(1), SAYS, sent(2), read(2), SAYS, back)
    assert (found.messages, found.unsure) == (2, False)
    assert [one.ref for one in found.heard] == ["#1"]


def test_after_a_rewind_to_nobody_knows_where_the_numbers_are_not_sure() -> None:
    found = told(sent(1), read(1), SAYS, {"kind": "reseeded", "mode": "rewind"})
    assert (found.messages, found.unsure) == (2, True)


def test_another_model_forgets_nothing() -> None:
    assert told(sent(1), read(1), SAYS, {"kind": "reseeded", "mode": "model", "note": "large"}).messages == 2


def test_where_the_beginning_is_not_in_memory_there_is_more_than_is_counted() -> None:
    assert not told(*[SAYS] * (KEEP + 10)).whole
    assert told({"kind": "reseeded", "mode": "clear"}, SAYS).whole


def test_where_events_are_missing_there_is_more_than_is_counted() -> None:
    host = ScriptedHost()
    host.session()
    host.events("s1", SAYS, SAYS)
    host.summary("s1", head=9)
    host.now += 60_000
    assert not remembered(host.fleet.sessions[SessionKey(SOURCE, "s1")], host.now).whole
