"""A session as it is read: what is one block, what it says, and what of the past is before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.facts import SessionKey
from console.fleet.log import KEEP, SLACK
from console.fleet.transcript.prose import BodyLine, diff_lines, prose_lines
from console.fleet.transcript.transcript import Block, Transcript
from console.fleet.views.details import detail_rows
from tests.unit.fleet.scripted import ScriptedHost
from themes.loader import load_glyphs
from watchfloor.protocol import frames as f
from watchfloor.text import Clean, clean_prose
from watchfloor.words import RequestState

KEY = SessionKey("here", "s1")
_SET = load_glyphs("ascii")
GLYPHS = {**_SET.states, **_SET.overlays, **_SET.tree, **_SET.marks, "levels": _SET.levels}


def transcript(host: ScriptedHost) -> Transcript:
    made = Transcript(host.fleet, KEY, GLYPHS)
    return taken(made, host)


def taken(made: Transcript, host: ScriptedHost) -> Transcript:
    made.now = host.now
    made.take_up()
    return made


def blocks(made: Transcript) -> list[Block]:
    return [made.block(place) for place in range(len(made))]


def kinds(made: Transcript) -> list[str]:
    return [block.kind for block in blocks(made)]


def body(block: Block) -> list[str]:
    return [line.text for line in block.body]


def told(*events: Mapping[str, Any]) -> tuple[ScriptedHost, Transcript]:
    host = ScriptedHost()
    host.session()
    host.events("s1", *events)
    return host, transcript(host)


def forms(text: str) -> list[tuple[str, str]]:
    return [(line.form, line.text) for line in prose_lines(Clean(text))]


# --- messages ------------------------------------------------------------------------------


def test_the_forms_of_lines_are_recognised() -> None:
    assert forms("# Plan\ntext\n- one\n 2. two\n> said\n```py\nx = 1\n```\nend") == [
        ("heading", "Plan"),
        ("prose", "text"),
        ("item", "- one"),
        ("item", " 2. two"),
        ("quote", "> said"),
        ("fence", "py"),
        ("code", "x = 1"),
        ("prose", "end"),
    ]


def test_a_fence_that_is_not_closed_holds_the_rest() -> None:
    assert forms("```\n# no heading\n- no item") == [("code", "# no heading"), ("code", "- no item")]


def test_a_shorter_fence_does_not_close_a_longer_one() -> None:
    assert forms("````\n```\ninside\n````\nout") == [("code", "```"), ("code", "inside"), ("prose", "out")]


def test_a_diff_is_told_by_its_lines() -> None:
    assert [line.form for line in diff_lines(Clean("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same"))] == [
        "hunk",
        "hunk",
        "hunk",
        "removed",
        "added",
        "code",
    ]
    assert forms("```diff\n-old\n+new\n```") == [("fence", "diff"), ("removed", "-old"), ("added", "+new")]


@given(st.text(alphabet="ab`~#->+ \n1.@", max_size=80))
def test_nothing_that_was_written_is_lost(text: str) -> None:
    shown = "".join(line.text for line in prose_lines(clean_prose(text)))
    for word in "ab":
        assert shown.count(word) == text.count(word)


def test_pieces_of_a_message_are_one_block_until_the_whole_takes_their_place() -> None:
    host, made = told({"kind": "delta", "item": "m1", "offset": 0, "text": "Hello "})
    host.events("s1", {"kind": "delta", "item": "m1", "offset": 6, "text": "there"})
    (block,) = blocks(taken(made, host))
    assert (body(block), block.tail, block.kind) == (["Hello there"], "writing", "agent")
    host.events("s1", {"kind": "message", "item": "m1", "text": "Hello there.", "cut": True})
    (block,) = blocks(taken(made, host))
    assert (body(block), block.tail) == (["Hello there."], "cut off")


def test_a_secret_in_a_message_is_masked_in_its_form_and_in_its_source() -> None:
    _, made = told({"kind": "message", "text": "key sk-ant-REDACTED"})
    (block,) = blocks(made)
    assert "cccc" not in block.source + "".join(body(block))


# --- tools ---------------------------------------------------------------------------------

CALL = {"kind": "tool_call", "call": "c1", "name": "shell", "text": "make build"}
RESULT = {"kind": "tool_result", "call": "c1", "status": "ok", "duration_ms": 3_200}


def out(text: str, call: str | None = "c1") -> dict[str, Any]:
    return {"kind": "tool_output", "call": call, "text": text}


def test_a_call_its_output_and_its_result_are_one_block_where_the_call_stands() -> None:
    _, made = told(CALL, {"kind": "message", "text": "meanwhile"}, out("one\n"), out("two\n"), RESULT)
    assert kinds(made) == ["tool", "agent"]
    card = made.block(0)
    assert (card.title, body(card)) == ("shell  make build", ["one", "two"])
    assert card.tail.endswith("ok 3.2 s")


def test_two_calls_at_once_keep_their_outputs_apart() -> None:
    other = {**CALL, "call": "c2", "text": "make test"}
    _, made = told(
        CALL, other, out("b\n", "c2"), out("a\n"), {**RESULT, "call": "c2", "status": "error", "exit_code": 2}
    )
    first, second = blocks(made)
    assert (body(first), first.tail) == (["a"], "no result yet")
    assert (body(second), second.tone) == (["b"], "failed")
    assert "error exit 2" in second.tail


def test_a_command_of_several_lines_is_shown_to_the_letter_even_while_closed() -> None:
    _, made = told({**CALL, "text": "rm -rf a\nrm -rf b"}, out("x\n" * 40))
    card = made.block(0)
    assert [line.text for line in card.body if line.form == "exact"] == ["rm -rf a", "rm -rf b"]
    assert card.most is not None
    assert 2 < card.most < len(card.body)


def test_what_runs_is_told_with_its_time() -> None:
    host, made = told(CALL)
    host.summary("s1", in_flight=[{"id": "c1", "name": "shell", "since": host.there - 12_000}])
    assert made.block(0).tail == "no result yet"
    assert "running 0:12" in taken(made, host).block(0).tail


def test_the_same_call_of_another_attempt_is_another_block() -> None:
    _, made = told(CALL, RESULT, {**CALL, "attempt": 2})
    assert kinds(made) == ["tool", "tool"]


def test_output_without_a_call_stands_for_itself() -> None:
    _, made = told(out("line 1\n", None), out("line 2\n", None))
    assert kinds(made) == ["output", "output"]


def test_a_diff_of_a_call_belongs_to_its_card() -> None:
    _, made = told(CALL, {"kind": "diff", "call": "c1", "path": "a.py", "text": "@@ -1 +1 @@\n-x\n+y"}, RESULT)
    assert made.block(0).body[-2:] == (BodyLine("removed", Clean("-x")), BodyLine("added", Clean("+y")))
    assert "a.py" in body(made.block(0))


# --- what stands between -------------------------------------------------------------------


def test_a_retry_counts_down() -> None:
    host, made = told({"kind": "notice", "level": "warning", "text": "busy", "retrying": True, "next_at": 1_012_000})
    assert made.block(0).tail == "tries again in 0:12"
    host.now += 5_000
    assert taken(made, host).block(0).tail == "tries again in 0:07"
    host.now += 60_000
    assert taken(made, host).block(0).tail == "retrying"


def test_a_request_waits_until_it_has_ended() -> None:
    host, made = told()
    key = host.ask("r1")
    host.events("s1", {"kind": "request_opened", "request": "r1", "request_kind": "approval", "digest": "sha256:x"})
    host.now += 3_000
    block = taken(made, host).block(0)
    assert (block.title, block.tail, block.tone) == ("rm -rf build", "waits for you 0:03", "attention")
    assert block.request == key.request
    host.events("s1", {"kind": "request_resolved", "request": "r1", "state": RequestState.RESOLVED, "by": "ann"})
    block = taken(made, host).block(0)
    assert (block.tail, block.tone) == ("resolved", "plain")
    assert kinds(made) == ["asks", "decided"]


def test_every_kind_of_event_has_a_block_of_its_own() -> None:
    _, made = told(
        {"kind": "reasoning", "text": "hm"},
        {"kind": "plan", "steps": [{"text": "a", "status": "done"}, {"text": "b"}]},
        {"kind": "progress", "note": "half"},
        {"kind": "mail", "ref": "#1", "state": "consumed", "delivery": "queued", "text": "hi", "reply_to": "#0"},
        {"kind": "lifecycle", "lifecycle": "paused", "why": "asked to"},
        {"kind": "child", "session": "s2", "name": "kid"},
        {"kind": "intervention", "primitive": "pause", "command": "x", "by": "ann", "outcome": "applied"},
        {"kind": "reseeded", "mode": "clear", "by": "ann"},
        {"kind": "raw", "data": {"a": 1}},
    )
    assert kinds(made) == ["thinks", "plan", "progress", "mail", "state", "child", "by hand", "clear", "raw"]
    _, ruled = told({"kind": "intervention", "primitive": "approve", "command": "x", "by": "ann", "outcome": "applied",
                     "automatic": True})  # fmt: skip
    assert kinds(ruled) == ["policy"]
    plan, mail = made.block(1), made.block(3)
    assert [text[2:] for text in body(plan)] == ["a (done)", "b (open)"]
    assert (mail.title, mail.tail) == ("#1  answers #0", "queued consumed")


# --- blocks that stay ----------------------------------------------------------------------


def test_a_block_that_did_not_change_is_the_same_object() -> None:
    host, made = told({"kind": "message", "text": "one"}, CALL)
    before = blocks(made)
    host.events("s1", out("more\n"))
    after = blocks(taken(made, host))
    assert after[0] is before[0]
    assert after[1] is not before[1]
    assert after[1].key == before[1].key


def test_one_attempt_alone_is_shown_and_all_of_them_again() -> None:
    host, made = told({"kind": "message", "text": "first"}, {"kind": "message", "text": "second", "attempt": 2})
    assert made.attempts == [1, 2]
    made.attempt = 1
    assert [body(block) for block in blocks(taken(made, host))] == [["first"]]
    assert made.attempts == [1, 2]
    made.attempt = None
    assert len(blocks(taken(made, host))) == 2


# --- the past ------------------------------------------------------------------------------


def page(host: ScriptedHost, first: int, last: int) -> list[Any]:
    """What the intake makes of a stored page of messages."""
    events = [
        {"kind": "message", "seq": seq, "pos": seq, "at": 1, "attempt": 1, "text": f"old {seq}"}
        for seq in range(first, last + 1)
    ]
    frame = f.Page.model_validate(
        {
            "type": "page",
            "id": "p",
            "session": "s1",
            "epoch": "e1",
            "events": events,
            "first": first,
            "last": last,
            "more": True,
        }
    )
    (fact,) = host.intake.frame(frame)
    return list(fact.events)  # type: ignore[union-attr]


def long(count: int) -> tuple[ScriptedHost, Transcript]:
    host = ScriptedHost()
    host.session()
    host.events("s1", *({"kind": "message", "text": f"new {at}"} for at in range(1, count + 1)))
    return host, transcript(host)


def test_a_page_stands_before_what_is_here_and_is_counted() -> None:
    host, made = long(KEEP + SLACK + 300)
    oldest = made.oldest
    assert oldest is not None
    assert made.earlier == oldest - 1 > 0
    assert made.prepend("e1", page(host, oldest - 100, oldest + 20), more=True) == 100, (
        "what is here is not taken twice"
    )
    shown = blocks(taken(made, host))
    assert body(shown[0]) == [f"old {oldest - 100}"]
    assert [body(block)[0].split()[1] for block in shown] == [
        str(seq) for seq in range(oldest - 100, KEEP + SLACK + 301)
    ]
    assert made.earlier == oldest - 101


def test_a_page_of_another_epoch_is_not_taken() -> None:
    host, made = long(KEEP + SLACK + 300)
    assert made.prepend("e0", page(host, 1, 5), more=False) == 0
    assert made.more_before is None


def test_what_the_log_lets_go_of_stays_behind_the_pages() -> None:
    host, made = long(KEEP + SLACK + 300)
    oldest = made.oldest
    assert oldest is not None
    made.prepend("e1", page(host, oldest - 10, oldest - 1), more=True)
    taken(made, host)
    for _ in range(4):
        host.events("s1", *({"kind": "message", "text": "x"} for _ in range(SLACK)))
        taken(made, host)
    numbers = [block.key[1] for block in blocks(made) if isinstance(block.key, tuple)]
    assert numbers == list(range(oldest - 10, host.seqs["s1"] + 1))


def test_what_is_kept_of_the_past_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.fleet.transcript.transcript.KEEP_OLDER", 500)
    host, made = long(KEEP + SLACK + 300)
    oldest = made.oldest
    assert oldest is not None
    made.prepend("e1", page(host, 1, oldest - 1), more=False)
    for _ in range(20):
        host.events("s1", *({"kind": "message", "text": "x"} for _ in range(SLACK)))
        taken(made, host)
    assert len(made) < KEEP + 500 + 2 * KEEP + SLACK
    assert made.more_before
    numbers = [block.key[1] for block in blocks(made) if isinstance(block.key, tuple)]
    assert numbers == list(range(numbers[0], host.seqs["s1"] + 1)), "without a hole"


def test_a_call_that_began_in_the_past_goes_on_in_its_block() -> None:
    host, made = long(KEEP + SLACK + 300)
    oldest = made.oldest
    assert oldest is not None
    call = {**CALL, "seq": oldest - 1, "pos": oldest - 1, "at": 1, "attempt": 1}
    frame = f.Page.model_validate(
        {
            "type": "page",
            "id": "p",
            "session": "s1",
            "epoch": "e1",
            "events": [call],
            "first": 1,
            "last": 1,
            "more": True,
        }
    )
    (fact,) = host.intake.frame(frame)
    made.prepend("e1", fact.events, more=True)  # type: ignore[union-attr]
    host.events("s1", out("late\n"), RESULT)
    for _ in range(2):
        card = taken(made, host).block(0)
        assert (card.title, body(card)) == ("shell  make build", ["late"])
    assert kinds(made).count("tool") == 1


def test_another_epoch_forgets_the_past() -> None:
    host, made = long(KEEP + SLACK + 300)
    oldest = made.oldest
    assert oldest is not None
    made.prepend("e1", page(host, oldest - 10, oldest - 1), more=True)
    taken(made, host)
    host.seqs["s1"] = 0
    host.events("s1", {"kind": "message", "text": "anew"}, epoch="e2")
    remark, anew = blocks(taken(made, host))
    assert (body(remark), body(anew)) == ([], ["anew"])


# --- details -------------------------------------------------------------------------------


def details(host: ScriptedHost, **rest: Any) -> str:
    rows = detail_rows(host.fleet, KEY, host.now, attempts=rest.get("attempts", ()), attempt=rest.get("attempt"))
    return "\n".join(f"{row[0]}|{row[1]}" for row in rows)


def test_traits_are_told_in_words_and_only_where_they_matter() -> None:
    host = ScriptedHost()
    host.session(traits={"stop_leaves_process": True, "approval_target": "all_pending", "resume_approves": False})
    said = details(host)
    assert "stop leaves its process alive" in said
    assert "a decision settles all that is pending at once" in said
    assert "resume approves" not in said


def test_mail_is_told_by_its_refs_with_delivery_and_reply() -> None:
    host, _ = told(
        {"kind": "mail", "ref": "#1", "state": "sent", "delivery": "queued", "text": "first", "by": "ann"},
        {"kind": "mail", "ref": "#2", "state": "sent", "text": "second", "reply_to": "#1"},
        {"kind": "mail", "ref": "#1", "state": "consumed"},
    )
    said = details(host)
    assert "mail|#2 sent, answers #1: second" in said
    assert "#1 consumed, queued, from ann: first" in said


def test_children_and_attempts_are_listed() -> None:
    host, _ = told()
    host.session("s2", parent="s1", lifecycle="paused")
    host.session("s3", parent="s2")
    host.session("s4", parent="s1")
    host.summary("s1", attempt=2)
    said = details(host, attempts=(1, 2), attempt=1)
    assert "below|paused: s2\n|- running: s3\n|running: s4" in said
    assert "attempts|1: over, read only, shown alone" in said
    assert "|2: runs now" in said
    host.summary("s1", lifecycle="completed")
    assert "|2: completed" in details(host, attempts=(1, 2), attempt=None)
