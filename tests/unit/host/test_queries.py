"""What a host answers to questions, and how much of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.host.glass import OBSERVER, Glass
from watchfloor.harness.base import ConversationMessage
from watchfloor.host.clients import queries
from watchfloor.host.sessions.mailbox import REMEMBERED
from watchfloor.protocol.frames import Error, ErrorCode, Query, Reply
from watchfloor.protocol.model import Capabilities, Result, Traits
from watchfloor.words import StopReason


def ask(glass: Glass, what: str, session: str | None = "s1", **args: Any) -> Any:
    """The data of the reply."""
    reply = answer(glass, what, session, **args)
    assert isinstance(reply, Reply), reply
    return reply.data


def refused(glass: Glass, what: str, session: str | None = "s1", **args: Any) -> tuple[ErrorCode, str]:
    error = answer(glass, what, session, **args)
    assert isinstance(error, Error)
    assert error.about == "q1"
    return error.code, error.message


def answer(glass: Glass, what: str, session: str | None, **args: Any) -> object:
    if "c" not in glass.got:
        glass.connect("c")
    glass.frames("c")
    glass.send("c", Query(id="q1", what=what, session=session, args=args))
    return glass.got["c"][-1]


def talked(messages: int = 3) -> Glass:
    glass = Glass()
    core = glass.add()
    core.conversation.messages[:] = [
        ConversationMessage("user" if n % 2 else "assistant", f"text {n}", f"#{n}" if n % 2 else None)
        for n in range(1, messages + 1)
    ]
    return glass


# --- the conversation


def test_a_snapshot_is_what_the_session_remembers() -> None:
    glass = talked()
    glass.core.session("s1").conversation.model = "large"
    assert ask(glass, "snapshot") == {
        "messages": [
            {"n": 1, "role": "user", "text": "text 1", "ref": "#1"},
            {"n": 2, "role": "assistant", "text": "text 2"},
            {"n": 3, "role": "user", "text": "text 3", "ref": "#3"},
        ],
        "total": 3,
        "more": False,
        "model": "large",
    }


def test_a_long_one_is_read_from_its_end_page_by_page() -> None:
    glass = talked(1234)
    seen: list[int] = []
    before = 9999
    while True:
        data = ask(glass, "snapshot", limit=400, before=before)
        seen = [message["n"] for message in data["messages"]] + seen
        if not data["more"]:
            break
        before = seen[0]
    assert seen == list(range(1, 1235))
    assert len(ask(glass, "snapshot")["messages"]) == queries.USUAL
    assert len(ask(glass, "snapshot", limit=9999)["messages"]) == queries.MOST
    assert ask(glass, "snapshot", before=1)["messages"] == []


def test_long_texts_are_cut_and_a_reply_that_is_too_large_says_that_there_is_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    glass = talked(0)
    messages = glass.core.session("s1").conversation.messages
    messages += [ConversationMessage("user", "x" * (queries.TEXT + 1)) for _ in range(40)]
    (last,) = ask(glass, "snapshot", limit=1)["messages"]
    assert (len(last["text"]), last["cut"]) == (queries.TEXT, True)
    monkeypatch.setattr(queries, "LARGEST", 200_000)
    data = ask(glass, "snapshot")
    assert data["more"]
    assert [message["n"] for message in data["messages"]] == list(range(41 - len(data["messages"]), 41))
    assert 2 < len(data["messages"]) < 13


def test_what_is_no_text_does_not_break_a_reply() -> None:
    glass = talked(0)
    glass.core.session("s1").conversation.messages.append(ConversationMessage("user", "half \ud83d"))
    assert ask(glass, "snapshot")["messages"][0]["text"] == "half \ufffd"


# --- mail


def test_messages_and_what_became_of_each() -> None:
    glass = Glass()
    core = glass.add()
    glass.apply(core.send("joins", "ann", glass.now, reply_to="#1").effects)
    result = Result(text="all done", stop_reason=StopReason.END_TURN, session_id="s1")
    _, effects = core.checkpoint(glass.now)
    glass.apply(effects)
    glass.apply(core.turn_ended(result, glass.now))
    glass.apply(core.pause("ann", glass.now).effects)
    glass.apply(core.send("waits", "bob", glass.now).effects)
    data = ask(glass, "messages")
    assert [(m["ref"], m["state"], m.get("response")) for m in data["messages"]] == [
        ("#1", "consumed", "all done"),
        ("#2", "consumed", "all done"),
        ("#3", "queued", None),
    ]
    assert (data["more"], data["queued"], data["refs"]) == (False, 1, 3)
    assert data["messages"][1] == {
        "ref": "#2", "state": "consumed", "delivery": "steered", "by": "ann", "at": glass.now, "text": "joins",
        "response": "all done", "reply_to": "#1",
    }  # fmt: skip
    assert [m["ref"] for m in ask(glass, "messages", after="#1", limit=1)["messages"]] == ["#2"]
    assert [m["ref"] for m in ask(glass, "mailbox")["messages"]] == ["#3"]
    for ref in ("#2", "2", 2):
        assert ask(glass, "message", ref=ref)["text"] == "joins"
    glass.apply(core.stop("ann", glass.now).effects)
    glass.apply(core.stopped(glass.now))
    assert ask(glass, "message", ref="#3")["error"] == "stopped"
    assert ask(glass, "message", ref="#3")["state"] == "error"


@pytest.mark.parametrize("ref", ["#9", "0", "nine", "", "#" + "9" * 99])
def test_a_ref_that_is_not_there(ref: str) -> None:
    code, message = refused(talked(), "message", ref=ref)
    assert code is ErrorCode.NOT_FOUND
    assert "#1 to #1" in message
    assert "none was sent" in refused(_silent(), "message", ref="#1")[1]


def _silent() -> Glass:
    glass = Glass()
    glass.add(running=False)
    return glass


def test_old_messages_are_forgotten_and_waiting_ones_never() -> None:
    glass = Glass()
    core = glass.add()
    glass.apply(core.pause("x", glass.now).effects)
    for number in range(REMEMBERED + 20):
        glass.apply(core.send(f"{number}", "x", glass.now).effects)
    assert ask(glass, "message", ref="#2")["state"] == "queued"
    assert ask(glass, "message", ref="#1")["state"] == "consumed"  # its turn is not over
    assert len(ask(glass, "messages", limit=500)["messages"]) == 500
    glass.apply(core.stopped(glass.now))
    glass.apply(core.send("more", "x", glass.now).effects)
    assert refused(glass, "message", ref="#2")[0] is ErrorCode.NOT_FOUND


# --- the log, and what cannot be asked


def test_stored_sessions_are_those_of_the_log() -> None:
    glass = talked()
    glass.add("s2")
    glass.flush()
    glass.core.remove("s2")
    found = {one["session"]: one for one in ask(glass, "stored", None)["sessions"]}
    assert {id: one["live"] for id, one in found.items()} == {"s1": True, "s2": False}
    assert found["s2"]["head"] == glass.core.log.head("s2") > 0
    page = ask(glass, "stored", None, limit=1)
    assert (len(page["sessions"]), page["more"]) == (1, True)


@pytest.mark.parametrize(
    ("what", "session", "args", "code"),
    [
        ("snapshot", "nobody", {}, ErrorCode.NOT_FOUND),
        ("snapshot", None, {}, ErrorCode.NOT_FOUND),
        ("snapshot", "s1", {"limit": 0}, ErrorCode.MALFORMED),
        ("snapshot", "s1", {"limit": True}, ErrorCode.MALFORMED),
        ("snapshot", "s1", {"before": "x"}, ErrorCode.MALFORMED),
        ("message", "s1", {}, ErrorCode.MALFORMED),
        ("message", "s1", {"ref": ["#1"]}, ErrorCode.MALFORMED),
        ("messages", "s1", {"after": "#7"}, ErrorCode.NOT_FOUND),
        ("messages", "foreign", {}, ErrorCode.UNSUPPORTED),
        ("weather\x1b", "s1", {}, ErrorCode.UNSUPPORTED),
    ],
)
def test_questions_without_an_answer(what: str, session: str | None, args: dict[str, Any], code: ErrorCode) -> None:
    glass = talked()
    glass.core.mirror("foreign", capabilities=Capabilities(), traits=Traits(), now=glass.now)
    found, message = refused(glass, what, session, **args)
    assert found is code
    assert "\x1b" not in message


def test_who_may_only_watch_may_ask() -> None:
    glass = talked()
    glass.connect("c", OBSERVER)
    assert ask(glass, "snapshot")["total"] == 3
