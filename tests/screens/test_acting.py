"""What only some sources can do, by keys: listed, filled in, agreed to, and sent as it was agreed to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from console.connectors.aion import offers
from tests.screens.stage import SMALL
from tests.screens.staged import Stage, staged
from watchfloor.protocol import model as m
from watchfloor.words import Contact, Primitive

FIELDS: tuple[Mapping[str, Any], ...] = (
    {"name": "branch", "type": "choice", "label": "Branch", "choices": [{"value": "main", "label": "the main one"}]},
    {
        "name": "tests",
        "type": "many",
        "label": "Tests",
        "choices": [{"value": "unit", "label": "unit"}, {"value": "pty", "label": "terminal"}],
    },
    {"name": "note", "type": "text", "label": "Note"},
    {"name": "token", "type": "secret", "label": "Token"},
    {"name": "tries", "type": "number", "label": "Tries"},
    {"name": "force", "type": "bool", "label": "Force it?", "required": False},
)
DEPLOY: Mapping[str, Any] = {"id": "deploy", "label": "Deploy it", "effect": "puts it before users", "fields": FIELDS}
ARCHIVE: Mapping[str, Any] = {"id": "archive", "label": "Archive it", "effect": "hides it", "danger": True}


def offering(*acts: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
    return {"act": {"acts": list(acts)}, **more}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        stage.host.session("s1", offering(DEPLOY, ARCHIVE, delete={}, notify={}), lifecycle="idle", attempt=2)
        await stage.show()
        yield stage


async def press(stage: Stage, *keys: str) -> None:
    """Press keys with so much time between them that each counts."""
    for key in keys:
        await stage.show(ms=1_000)
        await stage.press(key)


async def write(stage: Stage, text: str) -> None:
    await stage.console.type(text)
    await stage.press("enter")


async def test_the_acts_of_a_source_are_listed_with_what_they_do(stage: Stage) -> None:
    assert "m more" in stage.console.footer
    await press(stage, "m")
    asking = stage.console.asking
    assert "what else s1 (local), attempt 2 offers" in asking
    for words in ("1", "Deploy it", "puts it before users", "2", "Archive it", "hides it"):
        assert words in asking
    assert not stage.sent


async def test_an_act_without_fields_is_agreed_to_first(stage: Stage) -> None:
    await press(stage, "m", "2")
    asking = stage.console.asking
    assert "act on s1 (local), attempt 2?" in asking
    assert "Archive it" in asking
    assert "this destroys something" in asking
    assert not stage.sent
    await press(stage, "y")
    (sent,) = stage.sent
    assert (sent.primitive, sent.extra, sent.attempt) == (Primitive.ACT, {"act": "archive", "fields": {}}, 2)


async def test_each_kind_of_field_is_filled_in_and_shown_before_it_is_sent(stage: Stage) -> None:
    await press(stage, "m", "1")
    assert "Deploy it: s1 (local), attempt 2" in stage.console.asking
    assert "Branch (1 of 6)" in stage.console.asking
    assert "puts it before users" in stage.console.asking
    await press(stage, "1", "enter")
    await press(stage, "1", "2", "enter")
    await write(stage, "on a Monday")
    await write(stage, "hush")
    assert "hush" not in stage.console.asking
    await write(stage, "two")
    assert "a number is wanted" in stage.console.asking
    await press(stage, "ctrl+u")
    await write(stage, "3")
    await press(stage, "y", "enter")
    asking = stage.console.asking
    assert "act on s1 (local), attempt 2?" in asking
    for line in (
        "Deploy it",
        "Branch: the main one",
        "Tests: unit, terminal",
        "Note: on a Monday",
        "Token: given, not shown",
        "Tries: 3",
        "Force it?: yes",
    ):
        assert line in asking
    assert "hush" not in asking
    assert not stage.sent
    await press(stage, "y")
    (sent,) = stage.sent
    given = {
        "branch": "main", "tests": ["unit", "pty"], "note": "on a Monday", "token": "hush", "tries": 3, "force": True
    }  # fmt: skip
    assert sent.extra == {"act": "deploy", "fields": given}


async def test_a_secret_comes_neither_into_the_audit_nor_back_into_the_box(stage: Stage, tmp_path: Path) -> None:
    act = {"id": "login", "label": "Log in", "fields": [FIELDS[3]]}
    stage.host.session("s1", offering(act), lifecycle="idle", attempt=2)
    await stage.show()
    await press(stage, "m", "1")
    await write(stage, "hush")
    await press(stage, "escape", "m", "1")
    await stage.press("enter")
    assert "nothing is written" in stage.console.asking
    await write(stage, "hush2")
    await press(stage, "y")
    assert len(stage.sent) == 1
    (audit,) = (tmp_path / "audit").iterdir()
    text = audit.read_text(encoding="utf-8")
    (asked,) = [line for line in map(json.loads, text.splitlines()) if line.get("primitive") == "act"]
    assert (asked["act"], asked["fields"]) == ("login", ["token"])
    assert "hush" not in text


async def test_what_may_be_left_open_is_left_out(stage: Stage) -> None:
    act = {**DEPLOY, "fields": [{**FIELDS[2], "required": False}, FIELDS[5]]}
    stage.host.session("s1", offering(act), lifecycle="idle", attempt=2)
    await stage.show()
    await press(stage, "m", "1")
    await write(stage, "")
    await press(stage, "minus", "enter")
    assert "Note: left open" in stage.console.asking
    await press(stage, "y")
    assert [sent.extra for sent in stage.sent] == [{"act": "deploy", "fields": {}}]


async def test_an_act_that_became_another_one_is_not_sent(stage: Stage) -> None:
    await press(stage, "m", "2")
    stage.host.session("s1", offering({**ARCHIVE, "effect": "deletes it"}), lifecycle="idle", attempt=2)
    await stage.show()
    assert "its source offers this no more as it was read: nothing can be sent any more" in stage.console.asking
    await press(stage, "y")
    assert not stage.sent


async def test_two_acts_of_one_id_or_fields_of_one_name_cannot_be_asked_for(stage: Stage) -> None:
    twice = {"id": "twice", "label": "Twice", "fields": [FIELDS[2], FIELDS[2]]}
    stage.host.session("s1", offering(ARCHIVE, {**ARCHIVE, "label": "Else"}, twice), lifecycle="idle", attempt=2)
    await stage.show()
    await press(stage, "m", "1")
    assert "another of its acts has the same id" in stage.console.asking
    await press(stage, "3")
    assert "two of its fields have the same name" in stage.console.asking
    assert not stage.sent


async def test_an_act_that_is_blocked_says_why(stage: Stage) -> None:
    stage.host.summary("s1", blocked={"act": "the workflow is being read"})
    await press(stage, "m")
    assert stage.said == "m more: the workflow is being read"


async def test_a_session_without_acts_says_so(stage: Stage) -> None:
    stage.host.session("s1", {"act": {"acts": []}, "send": {}})
    await stage.show()
    await press(stage, "m")
    assert stage.said == "m more: its source offers nothing of its own"


async def test_hostile_labels_are_shown_as_they_are(stage: Stage) -> None:
    act = {"id": "[red]\x1b", "label": "[red]Do\x1b[2J it\u202e", "effect": "[link=x]y[/link]"}
    stage.host.session("s1", offering(act), lifecycle="idle")
    await stage.show()
    await press(stage, "m")
    assert "[red]Do" in stage.console.asking
    assert "[link=x]y[/link]" in stage.console.asking
    assert "\x1b" not in stage.console.asking
    assert "\u202e" not in stage.console.asking
    await press(stage, "1", "y")
    assert [sent.extra["act"] for sent in stage.sent] == ["[red]\x1b"], "the id goes back exactly as it came"


async def test_a_signal_to_a_workflow_is_sent_with_its_payload(stage: Stage) -> None:
    capabilities = offers.of_workflow("Running").model_dump(mode="json", exclude_none=True)
    stage.host.session("s1", capabilities, lifecycle="running", attempt=None)
    await stage.show()
    await press(stage, "m", "2")
    assert "Send it a signal: s1 (local)" in stage.console.asking
    assert "Name of the signal (1 of 2)" in stage.console.asking
    await write(stage, "approved")
    await write(stage, '{"by": "ops"}')
    assert 'Payload, in JSON: {"by": "ops"}' in stage.console.asking
    await press(stage, "y")
    (sent,) = stage.sent
    assert sent.extra == {"act": offers.SIGNAL, "fields": {"name": "approved", "payload": '{"by": "ops"}'}}
    assert m.Capabilities.model_validate(capabilities).act is not None


# --- delete --------------------------------------------------------------------------------


async def test_deleting_is_agreed_to_with_what_goes_with_it(stage: Stage) -> None:
    stage.host.summary("s1", mailbox={"queued": 2, "refs": 3}, controls={"delete": "Delete with its 1 child"})
    stage.host.session("below", {}, parent="s1")
    await stage.show()
    await press(stage, "delete")
    asking = stage.console.asking
    assert "delete s1 (local), attempt 2?" in asking
    assert "s1 is deleted for good" in asking
    assert "its source says: Delete with its 1 child" in asking
    assert "1 session stands below it" in asking
    assert "2 queued messages end unread" in asking
    assert not stage.sent
    await press(stage, "y")
    assert [(sent.primitive, sent.attempt) for sent in stage.sent] == [(Primitive.DELETE, 2)]


async def test_leaving_deletes_nothing(stage: Stage) -> None:
    await press(stage, "delete", "escape")
    assert stage.console.asking == ""
    assert not stage.sent


async def test_what_cannot_be_deleted_says_why(stage: Stage) -> None:
    stage.host.summary("s1", blocked={"delete": "it runs: stop it first"})
    await press(stage, "delete")
    assert stage.said == "delete delete: it runs: stop it first"


# --- notify --------------------------------------------------------------------------------


async def notify(stage: Stage) -> None:
    """Begin it as the command line does: it has no key."""
    stage.console.app.fleet_screen.action_perform("notify")
    await stage.show()


async def test_another_session_is_told_of_what_was_marked(stage: Stage) -> None:
    stage.host.session("watcher", {})
    await stage.show()
    await notify(stage)
    assert "which session is told of s1 (local), attempt 2?" in stage.console.asking
    await press(stage, "1")
    assert "watcher is told when s1 (local), attempt 2 becomes" in stage.console.asking
    await press(stage, "1", "3", "enter")
    (sent,) = stage.sent
    assert (sent.primitive, sent.extra) == (Primitive.NOTIFY, {"subscriber": "watcher", "on": ["idle", "failed"]})


async def test_a_session_that_is_not_listed_is_named_by_its_id(stage: Stage) -> None:
    await notify(stage)
    assert "id of a session" in stage.console.asking, "there is no other one"
    await write(stage, "far-away")
    await press(stage, "enter")
    assert [sent.extra for sent in stage.sent] == [{"subscriber": "far-away", "on": []}]


async def test_only_sessions_of_the_same_source_are_listed(stage: Stage) -> None:
    other = type(stage.host)(stage.console.app, stage.clock, "elsewhere")
    other.session("foreign", {})
    await stage.show()
    await notify(stage)
    assert "foreign" not in stage.console.asking


# --- everywhere ----------------------------------------------------------------------------


async def test_a_lost_source_is_said(stage: Stage) -> None:
    stage.host.contact(Contact.LOST)
    for key in ("m", "delete"):
        await press(stage, key)
        assert "contact with local was lost" in stage.said
        assert stage.console.asking == ""


async def test_where_it_does_not_fit_nothing_is_taken(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL) as stage:
        stage.host.session("s1", offering(ARCHIVE), lifecycle="idle")
        await stage.show()
        await press(stage, "m", "1")
        await stage.console.pilot.resize_terminal(38, 10)
        await press(stage, "y")
        assert not stage.sent


# --- by the command line -------------------------------------------------------------------


async def find(stage: Stage, text: str) -> None:
    """Write on the command line and take what is found first, once it was read."""
    await press(stage, "colon")
    await stage.console.type(text)
    await stage.show(ms=1_000)
    await stage.press("enter")
    await stage.console.until(lambda: stage.console.app.screen is stage.console.app.fleet_screen, "it is closed")
    await stage.show()


async def test_what_has_no_key_is_found_on_the_command_line(stage: Stage) -> None:
    await find(stage, "notify")
    assert "which session is told of s1" in stage.console.asking


async def test_an_act_of_the_source_is_found_by_its_own_name(stage: Stage) -> None:
    await find(stage, "archive")
    assert "what else s1 (local), attempt 2 offers" in stage.console.asking
