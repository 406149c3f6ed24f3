"""The mailbox as it is read: what became of each message, and which answers which."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from console.fleet.facts import SessionKey
from console.fleet.views.mail import LetterRows, letter_lines, letters
from tests.unit.fleet.scripted import SOURCE, ScriptedHost

KEY = SessionKey(SOURCE, "s1")


def told(*events: dict[str, Any]) -> LetterRows:
    host = ScriptedHost()
    host.session()
    host.events("s1", *({"kind": "mail", **event} for event in events))
    return LetterRows(letters(host.fleet.sessions[KEY].log.entries()), UTC)


def test_what_is_heard_later_completes_a_message_and_moves_it_nowhere() -> None:
    rows = told(
        {"ref": "#1", "state": "sent", "delivery": "queued", "text": "first", "by": "ann", "at": 5_000},
        {"ref": "#2", "state": "sent", "text": "second", "reply_to": "#1", "at": 6_000},
        {"ref": "#1", "state": "consumed", "at": 9_000},
    )
    assert [rows.key(at) for at in range(len(rows))] == ["#2", "#1"]
    assert [text for text, _ in rows.row(1)] == ["#1", "00:00:05", "consumed", "queued", "ann", "", "first"]
    assert rows.letters[1].answered == ("#2",)
    assert rows.letters[0].reply_to == "#1"


def test_an_error_stands_beside_the_text_and_not_in_its_place() -> None:
    rows = told(
        {"ref": "#1", "state": "sent", "text": "first"}, {"ref": "#1", "state": "error", "error": "it was stopped"}
    )
    letter = rows.letters[0]
    assert (letter.text, letter.error, letter.tone) == ("first", "it was stopped", "failed")
    said = {str(label): text for label, text, *_ in letter_lines(letter, UTC)}
    assert said["why"] == "it was stopped"
    assert said["text"] == "first"
    assert said["became"] == "it was not carried out"


def test_secrets_in_messages_are_masked() -> None:
    secret = "ghp_" + "a1B2" * 9
    rows = told({"ref": "#1", "state": "sent", "text": f"use {secret}"})
    shown = [*(text for text, _ in rows.row(0)), *(text for _, text, *_ in letter_lines(rows.letters[0], UTC))]
    assert not any(secret in text for text in shown)
