"""What a session remembers, changed by keys: chosen, previewed, agreed to, and then sent as it was agreed to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from console.fleet.facts import Intent
from tests.screens.stage import SMALL
from tests.screens.staged import ALLOW, DENY, Stage, staged
from watchfloor.words import Contact, OutcomeKind, Primitive, ReseedMode

ALL: Mapping[str, Any] = {"reseed": {"modes": [mode.value for mode in ReseedMode]}, "send": {}}
TALK: tuple[Mapping[str, Any], ...] = (
    {"kind": "mail", "ref": "#1", "state": "sent", "text": "Index the manuals"},
    {"kind": "mail", "ref": "#1", "state": "consumed"},
    {"kind": "message", "role": "assistant", "text": "done"},
    {"kind": "mail", "ref": "#2", "state": "sent", "text": "Now the letters"},
    {"kind": "mail", "ref": "#2", "state": "consumed"},
    {"kind": "message", "role": "assistant", "text": "done as well"},
)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        await begin(stage)
        yield stage


async def begin(stage: Stage, capabilities: Mapping[str, Any] = ALL, **rest: Any) -> None:
    stage.host.session("s1", capabilities, **{"lifecycle": "idle", "attempt": 3, **rest})
    stage.host.events("s1", *TALK)
    stage.host.summary("s1", head=len(TALK))
    await stage.show()


async def press(stage: Stage, *keys: str) -> None:
    """Press keys with so much time between them that each counts."""
    for key in keys:
        await stage.show(ms=1_000)
        await stage.press(key)


async def write(stage: Stage, text: str) -> None:
    await stage.console.type(text)
    await stage.press("enter")


def asked(stage: Stage) -> tuple[ReseedMode | None, str | None, str | None, int | None]:
    """The one command that was sent, by what it asks for."""
    (sent,) = stage.sent
    assert sent.primitive is Primitive.RESEED
    return sent.mode, sent.to, sent.text, sent.attempt


async def test_the_ways_that_a_session_offers_are_listed_with_what_they_do(stage: Stage) -> None:
    assert "R reseed" in stage.console.footer
    await press(stage, "R")
    asking = stage.console.asking
    assert "what s1 (local), attempt 3 remembers" in asking
    assert "it remembers 4 messages in 6 events" in asking
    for words in (
        "it begins anew; the whole conversation is forgotten",
        "it goes on before a message, which is forgotten with all that follows it",
        "it goes on with a summary; what that leaves out is forgotten",
        "it goes on with another model; nothing is forgotten",
    ):
        assert words in asking
    assert not stage.sent


async def test_only_what_is_offered_is_listed(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await begin(stage, {"reseed": {"modes": ["compact", "model"]}})
        await press(stage, "R")
        assert "compact it" in stage.console.asking
        assert "clear it" not in stage.console.asking
        await press(stage, "c")
        assert "compact it" in stage.console.asking, "no key of what is not there"


async def test_a_session_that_can_only_be_cleared_is_asked_about_at_once(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await begin(stage, {"reseed": {"modes": ["clear"]}})
        assert "R clear" in stage.console.footer
        await press(stage, "R")
        assert "clear s1 (local), attempt 3?" in stage.console.asking
        assert "the agent forgets the whole conversation" in stage.console.asking
        assert "it remembers 4 messages in 6 events" in stage.console.asking
        await press(stage, "y")
        assert asked(stage) == (ReseedMode.CLEAR, None, None, 3)


@pytest.mark.parametrize(
    ("key", "mode", "says"),
    [
        ("c", ReseedMode.CLEAR, "the agent forgets the whole conversation"),
        ("s", ReseedMode.COMPACT, "the agent forgets what the summary leaves out"),
    ],
)
async def test_what_needs_nothing_else_is_confirmed(stage: Stage, key: str, mode: ReseedMode, says: str) -> None:
    await press(stage, "R", key)
    assert f"{mode.value} s1 (local), attempt 3?" in stage.console.asking
    assert says in stage.console.asking
    assert not stage.sent
    await press(stage, "y")
    assert asked(stage) == (mode, None, None, 3)


async def test_a_key_typed_ahead_confirms_nothing(stage: Stage) -> None:
    await stage.show(ms=1_000)
    await stage.press("R")
    await stage.press("c")
    assert "what s1" in stage.console.asking, "not armed yet"
    await stage.show(ms=1_000)
    await stage.press("c")
    await stage.press("y")
    assert "clear s1" in stage.console.asking
    assert not stage.sent


async def test_leaving_changes_nothing(stage: Stage) -> None:
    await press(stage, "R", "c", "escape")
    assert stage.console.asking == ""
    assert not stage.sent


async def test_going_back_to_a_message_says_which_and_what_is_lost(stage: Stage) -> None:
    await press(stage, "R", "r")
    asking = stage.console.asking
    assert "#2  Now the letters" in asking
    assert "forgets it and what follows: 2 messages in 2 events" in asking
    assert "#1  Index the manuals" in asking
    assert asking.index("#2") < asking.index("#1"), "the newest first"
    await press(stage, "2")
    asking = stage.console.asking
    assert "rewind s1 (local), attempt 3?" in asking
    assert "the agent forgets that message and all that follows it" in asking
    assert "it goes on before #1  Index the manuals" in asking
    assert "forgotten: 4 messages in 5 events" in asking
    await press(stage, "y")
    assert asked(stage) == (ReseedMode.REWIND, "#1", None, 3)


async def test_the_preview_grows_with_what_is_said_meanwhile(stage: Stage) -> None:
    await press(stage, "R", "r", "1")
    assert "forgotten: 2 messages in 2 events" in stage.console.asking
    stage.host.events("s1", {"kind": "message", "role": "assistant", "text": "one more"})
    await stage.show()
    assert "forgotten: 3 messages in 3 events" in stage.console.asking


async def test_a_message_that_is_not_listed_is_named_by_its_ref(stage: Stage) -> None:
    await press(stage, "R", "r", "o")
    await write(stage, "-2")
    assert "before -2" in stage.console.asking
    assert "how much that takes away is not known here" in stage.console.asking
    await press(stage, "y")
    assert asked(stage) == (ReseedMode.REWIND, "-2", None, 3)


async def test_a_ref_that_is_known_not_to_exist_is_refused_with_those_that_do(stage: Stage) -> None:
    await press(stage, "R", "r", "o")
    await write(stage, "#9")
    assert "ref of the message" in stage.console.asking, "nothing is confirmed"
    assert "there is no message #9 to go back to; there are: #2, #1" in stage.console.asking
    assert not stage.sent


async def test_a_ref_may_be_written_without_its_mark(stage: Stage) -> None:
    await press(stage, "R", "r", "o")
    await write(stage, "1")
    assert "it goes on before #1  Index the manuals" in stage.console.asking
    await press(stage, "y")
    assert asked(stage) == (ReseedMode.REWIND, "#1", None, 3)


async def test_where_no_message_was_read_that_is_said_and_none_is_taken(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("s1", ALL, lifecycle="idle")
        stage.host.events("s1", {"kind": "message", "role": "assistant", "text": "hello"})
        stage.host.summary("s1", head=1)
        await stage.show()
        await press(stage, "R", "r")
        assert "it has read no message of its mailbox" in stage.console.asking
        await write(stage, "#1")
        assert "there is no message #1 to go back to" in stage.console.asking
        assert not stage.sent


async def test_where_no_message_is_known_its_ref_is_asked_for(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("s1", ALL, lifecycle="idle")
        await stage.show()
        await press(stage, "R", "r")
        assert "ref of the message" in stage.console.asking


async def test_another_model_loses_nothing_and_is_confirmed(stage: Stage) -> None:
    stage.host.summary("s1", labels={"model": "small"})
    await press(stage, "R", "m")
    assert "now: small" in stage.console.asking
    await write(stage, "large")
    asking = stage.console.asking
    assert "change the model of s1 (local), attempt 3?" in asking
    assert "it goes on with large; nothing is forgotten" in asking
    await press(stage, "y")
    assert asked(stage) == (ReseedMode.MODEL, "large", None, 3)


async def test_a_key_behind_a_text_confirms_nothing(stage: Stage) -> None:
    await press(stage, "R", "m")
    await write(stage, "large")
    await stage.show(ms=400)
    await stage.press("y")
    assert "you were writing just now" in stage.console.asking
    assert not stage.sent


async def test_a_text_takes_the_place_of_the_conversation(stage: Stage) -> None:
    await press(stage, "R", "t", "w")
    await stage.console.type("From here")
    await stage.press("ctrl+j")
    await write(stage, "on: go")
    asking = stage.console.asking
    assert "replace the conversation of s1 (local), attempt 3?" in asking
    assert "it begins anew with 2 lines, 16 characters:" in asking
    assert "it remembers 4 messages in 6 events" in asking
    await press(stage, "y")
    assert asked(stage) == (ReseedMode.REPLACE, None, "From here\non: go", 3)


async def test_a_text_that_was_not_sent_is_there_again(stage: Stage) -> None:
    await press(stage, "R", "t", "w")
    await write(stage, "From here")
    await press(stage, "escape")
    await press(stage, "R", "t", "w", "enter")
    await press(stage, "y")
    assert asked(stage)[2] == "From here"
    await press(stage, "R", "t", "w")
    await stage.press("enter")
    assert "nothing is written" in stage.console.asking, "what was sent is forgotten"


async def test_a_file_takes_the_place_of_the_conversation(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "begin with this.md"
    path.write_text("Read the manuals.\nThen stop.\n", encoding="utf-8")
    await press(stage, "R", "t", "f")
    await write(stage, str(path))
    assert "it begins anew with 2 lines, 28 characters:" in stage.console.asking
    assert "Read the manuals." in stage.console.asking
    await press(stage, "y")
    assert asked(stage) == (ReseedMode.REPLACE, None, "Read the manuals.\nThen stop.", 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * (600 * 1024), "is longer than 512 KiB"),
        (b"x" * (2 * 1024 * 1024), "larger than 1 MB"),
    ],
)
async def test_a_file_that_cannot_be_taken_is_refused_where_it_is_named(
    stage: Stage, tmp_path: Path, content: bytes | None, says: str
) -> None:
    path = tmp_path / "f"
    if content is not None:
        path.write_bytes(content)
    await press(stage, "R", "t", "f")
    await write(stage, str(path))
    assert says in stage.console.asking
    assert not stage.sent


async def test_queued_mail_and_what_hangs_is_told(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await begin(stage, {**ALL, "approve": {}}, lifecycle="paused", mailbox={"queued": 2, "refs": 4})
        stage.host.ask("r1", attempt=3, options=(ALLOW, DENY))
        await press(stage, "R", "c")
        asking = stage.console.asking
        assert "2 queued messages stay in its mailbox" in asking
        assert "the suspended turn is given up" in asking
        assert "its open requests are withdrawn" in asking


async def test_what_its_source_forbids_is_refused_with_the_reason(stage: Stage) -> None:
    stage.host.summary("s1", blocked={"reseed": "a turn is running"})
    await press(stage, "R")
    assert stage.said == "R reseed: a turn is running"
    assert stage.console.asking == ""


async def test_what_becomes_forbidden_while_it_is_asked_is_refused(stage: Stage) -> None:
    await press(stage, "R", "c")
    stage.host.summary("s1", blocked={"reseed": "a turn is running"})
    await press(stage, "y")
    assert stage.said == "a turn is running"
    assert not stage.sent


async def test_another_attempt_ends_what_is_asked(stage: Stage) -> None:
    await press(stage, "R", "c")
    stage.host.summary("s1", attempt=4)
    await stage.show()
    assert "attempt 4 has begun: nothing can be sent any more" in stage.console.asking
    await press(stage, "y")
    assert not stage.sent


async def test_a_lost_source_is_said(stage: Stage) -> None:
    stage.host.contact(Contact.LOST)
    await press(stage, "R")
    assert "contact with local was lost" in stage.said


async def test_a_session_that_names_no_way_is_refused(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await begin(stage, {"reseed": {"modes": []}})
        await press(stage, "R")
        assert "R reseed: " in stage.said
        assert stage.console.asking == ""


async def test_where_it_does_not_fit_nothing_is_taken(tmp_path: Path) -> None:
    async with staged(tmp_path, SMALL) as stage:
        await begin(stage)
        await press(stage, "R", "c")
        await stage.console.pilot.resize_terminal(38, 10)
        await press(stage, "y")
        assert not stage.sent


async def test_a_text_that_did_not_arrive_is_kept(stage: Stage) -> None:
    async def lost(trail: Any, **_: float) -> None:
        stage.sent.append(trail.intent)
        changes = stage.host.fleet.settle(trail.id, OutcomeKind.UNDELIVERED, trail.reason, stage.clock.now)
        stage.console.app.take(changes)

    stage.console.app.hub.dispatch = lost  # type: ignore[method-assign]
    await press(stage, "R", "t", "w")
    await write(stage, "From here")
    await press(stage, "y")
    sent: list[Intent] = stage.sent
    assert [one.text for one in sent] == ["From here"]
    await press(stage, "R", "t", "w", "enter")
    assert "it begins anew with 1 line, 9 characters:" in stage.console.asking
