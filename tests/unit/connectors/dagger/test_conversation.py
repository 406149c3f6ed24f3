"""Conversations: what of one is news, what stays when it is rewound, and what was sent into it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.connectors.dagger import rebuild
from console.connectors.dagger.ledger import Ledger, Sent, Stage
from console.connectors.dagger.rebuild import CannotRebuild, kept, pending, steps
from console.connectors.dagger.transcript import Transcript, Turn, tokens, turns
from tests.peers.dagger_server import schema_of
from tests.unit.connectors.dagger.test_queries import TALK, block, read
from watchfloor.protocol.events import MailState, Message, Notice, Raw, Reseeded, ToolCall, ToolStatus
from watchfloor.words import Delivery, ReseedMode

CAN = read(schema_of(21))


def turn(role: str, *blocks: dict[str, object], ref: str = "", kind: str = "USER", agent: str = "") -> Turn:
    origin: Any = {"kind": kind, "agentName": agent, "ref": ref, "replyTo": ""} if ref or agent else None
    raw: Any = {"role": role, "content": list(blocks), "origin": origin}
    return Turn(raw)


def said(text: str, role: str = "USER", ref: str = "") -> Turn:
    return turn(role, block("TEXT", text=text), ref=ref)


def texts(events: list[Any]) -> list[str]:
    return [event.text for event in events if isinstance(event, Message)]


def test_only_what_is_new_is_told() -> None:
    told = Transcript("h")
    first = [said("a", ref="#1"), said("b", "ASSISTANT")]
    assert texts(told.take(first)) == ["a", "b"]
    assert told.take(first) == []
    assert texts(told.take([*first, said("c")])) == ["c"]
    assert (told.turns, told.refs, told.said("b"), told.said("a")) == (1, frozenset({"#1"}), True, False)


def test_the_same_words_said_again_after_a_cut_are_news() -> None:
    told = Transcript("h")
    before = told.take([said("a"), said("b", "ASSISTANT"), said("again")])
    told.reseeded(ReseedMode.REWIND, "ann")
    cut = told.take([said("a"), said("b", "ASSISTANT")])
    assert [type(event) for event in cut] == [Reseeded]
    assert (cut[0].mode, cut[0].by) == (ReseedMode.REWIND, "ann")  # type: ignore[attr-defined]
    after = told.take([said("a"), said("b", "ASSISTANT"), said("again")])
    assert texts(after) == ["again"]
    keys = [event.key for event in [*before, *cut, *after]]
    assert len(keys) == len(set(keys))


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=6))
def test_every_change_of_a_conversation_can_be_followed(states: list[list[str]]) -> None:
    told, shown = Transcript("h"), [""] * 0
    for conversation in states:
        events = told.take([said(text) for text in conversation])
        for event in events:
            if isinstance(event, Reseeded):
                gone = int((event.note or "").split()[0]) if (event.note or "")[0].isdigit() else 0
                shown = shown[: len(shown) - gone]
            elif isinstance(event, Message):
                shown.append(event.text)
        assert shown == conversation


def test_blocks_of_every_kind() -> None:
    told = Transcript("h").take(
        [
            turn("ASSISTANT", block("TOOL_CALL", toolName="ci", callId="c", arguments='{"a": 1}'), agent="scout"),
            turn("ASSISTANT", block("TOOL_CALL", toolName="ci", arguments="{broken")),
            turn("USER", block("TOOL_RESULT", text="no", callId="c", errored=True)),
            turn("USER", block("IMAGE"), block("HOLOGRAM", text="x"), block("TEXT")),
        ]
    )
    call, odd, result, image, unknown = told
    assert isinstance(call, ToolCall)
    assert (call.arguments, call.author, getattr(odd, "arguments", "")) == ({"a": 1}, "scout", "{broken")
    assert getattr(result, "status", None) is ToolStatus.ERROR
    assert isinstance(image, Notice)
    assert isinstance(unknown, Raw)


def test_what_is_no_conversation_is_an_empty_one() -> None:
    assert turns(None) == turns([7, "x"]) == []
    assert tokens({"inputTokens": -3, "outputTokens": True, "cachedTokenReads": 5}) == (5, 0)


# --- rewinding

FOUR = [said("a", ref="#1"), said("b", "ASSISTANT"), said("c", ref="#2"), said("d", "ASSISTANT")]


@pytest.mark.parametrize(("to", "left"), [("-1", 3), ("-4", 0), ("#1", 0), ("2", 2)])
def test_what_stays(to: str, left: int) -> None:
    talk = [
        said("s", "SYSTEM"),
        said("a", ref="#1"),
        said("b", "ASSISTANT"),
        said("c", ref="#2"),
        said("d", "ASSISTANT"),
    ]
    assert len(kept(talk, to)) == left


@pytest.mark.parametrize("to", ["-5", "-0", "-x", "#3", "", "-", "-²"])
def test_there_must_be_such_a_place(to: str) -> None:
    with pytest.raises(ValueError, match=r"messages to take back|is not part"):
        kept(FOUR, to)


def test_a_long_conversation_is_built_in_pieces() -> None:
    talk = rebuild.spoken(turns(TALK))
    groups = steps(talk, CAN)
    assert [len(group) for group in groups] == [20, 20]
    assert [step.field for step in groups[0][:4]] == ["withPrompt", "withResponse", "withToolResult", "withResponse"]
    fields, types, values = rebuild.chain(groups[0], empty=True)
    assert fields.startswith("withoutMessageHistory { withPrompt(prompt: $v0, origin: $v1) { withResponse(")
    assert len(values) == types.count("$") == fields.count("$")
    assert rebuild.id_at_end({"withoutMessageHistory": {"withPrompt": {"id": "llm-1"}}}) == "llm-1"
    assert rebuild.id_at_end(None) == ""


@pytest.mark.parametrize(
    "odd",
    [
        turn("USER", block("IMAGE")),
        turn("USER"),
        turn("ASSISTANT", block("TEXT"), block("AUDIO")),
        turn("USER", block("TEXT", text="x"), block("TOOL_RESULT")),
        turn("NARRATOR", block("TEXT")),
        turn("USER", block("TOOL_RESULT", text="see", content=[{"kind": "IMAGE", "text": ""}])),
    ],
)
def test_what_cannot_be_built_again_is_said(odd: Turn) -> None:
    with pytest.raises(CannotRebuild, match="put back"):
        steps([said("a"), odd], CAN)


def test_who_sent_a_message_is_not_dropped_silently() -> None:
    can = read(schema_of(21, without=("LLM.withPrompt.origin",)))
    with pytest.raises(CannotRebuild, match="who sent"):
        steps([said("a", ref="#1")], can)
    assert steps([said("a")], can)


def test_who_owes_an_answer() -> None:
    assert pending([said("a")])
    assert not pending([said("a"), said("b", "ASSISTANT")])
    assert not pending([])


# --- the ledger


def sent(ref: str) -> Sent:
    return Sent("h", ref, f"m{ref}", "text", "ann", 1)


def test_how_a_message_goes() -> None:
    ledger = Ledger()
    ledger.add(mail := sent("#3"))
    assert (ledger.highest, ledger.next_ref(2), ledger.waiting) == (3, "#5", [mail])
    assert ledger.delivered(mail, "QUEUED")
    assert not ledger.delivered(mail, "QUEUED")
    assert not ledger.delivered(mail, "BEAMED")
    assert (mail.mail().state, mail.mail().delivery) == (MailState.SENT, Delivery.QUEUED)
    assert ledger.read(frozenset({"#3", "#9"})) == [mail]
    assert (ledger.highest, ledger.waiting, mail.stage) == (9, [], Stage.READ)
    ledger.answered(mail, "done")
    assert (mail.response, ledger.open) == ("done", [])
    assert not ledger.failed(mail, "too late")
    assert mail.mail().state is MailState.CONSUMED


def test_a_message_that_is_still_queued_has_not_failed() -> None:
    ledger = Ledger()
    ledger.add(mail := sent("#1"))
    assert not ledger.failed(mail, 'agent "x" failed before consuming this message')
    assert mail.stage is Stage.WAITS
    assert ledger.failed(mail, 'agent "x" was stopped before consuming this message')
    assert (mail.mail().state, mail.mail().error) == (MailState.ERROR, mail.error)
    keys = {mail.mail().key, sent("#1").mail().key}
    assert len(keys) == 2
