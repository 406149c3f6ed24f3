"""Requests decided from the command line: what is approved really happens, once, and only as it was read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from console.audit import verify
from console.cli.parser import _parser
from tests.sockets.cli_kit import (
    ALWAYS,
    ANN,
    BOB,
    EYE,
    NEVER,
    NO,
    ONCE,
    Program,
    appears,
    asked,
    asks,
    decides,
    hosting,
    observed,
    writes,
)
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness, Run
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host
from watchfloor.protocol.model import Action, FieldType, FormField, Option, Subject
from watchfloor.words import OptionKind, RequestKind, Role

OTHER_DIGEST = "sha256:" + "0" * 64
TOKENS = {ANN: Principal("ann"), BOB: Principal("bob"), EYE: Principal("eye", Role.OBSERVER)}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with hosting(TOKENS) as host:
        host.add(writes(tmp_path), name="writer", text="hello")
        await asked(host, "writer")
        yield host


@pytest.fixture
def ann(tmp_path: Path) -> Program:
    return Program(tmp_path, WATCHFLOOR_TOKEN=ANN)


async def test_what_is_approved_happens_and_the_second_approver_is_told_who(
    host: Host, ann: Program, tmp_path: Path
) -> None:
    request = await asked(host, "writer")
    listed = (await ann("requests", host.url, "--json")).record
    assert (listed["session"], listed["request"], listed["decidable"]) == ("writer", request, True)
    assert listed["actions"][0]["cwd"] == str(tmp_path)
    assert not (tmp_path / "done").exists()

    words = ("approve", host.url, "writer", request, "--digest", listed["digest"])
    first = await ann.process(*words, "--wait", "10", "--json")
    assert first.code == 0, first.err
    assert await appears(tmp_path / "done") == "hello"
    record = first.record
    assert set(record) == {"id", "outcome", "reason", "info", "session", "attempt", "request", "effect"}
    assert (record["outcome"], record["effect"]) == ("applied", "seen")
    assert (record["session"], record["attempt"], record["request"]) == ("writer", 1, request)

    bob = ann.but(WATCHFLOOR_TOKEN=BOB)
    second = await bob.process(*words)
    assert second.code == 5
    assert "approved by ann" in second.err
    as_json = (await bob("deny", host.url, "writer", request, "--current", "--json")).record
    assert as_json["outcome"] == "already_decided"
    assert "ann" in as_json["reason"]


async def test_of_two_at_once_exactly_one_decides(host: Host, ann: Program, tmp_path: Path) -> None:
    request = await asked(host, "writer")
    digest = (await ann("requests", host.url, "--json")).record["digest"]
    bob = ann.but(WATCHFLOOR_TOKEN=BOB)
    words = ("writer", request, "--digest", digest, "--json")
    both = await asyncio.gather(ann.process("approve", host.url, *words), bob.process("deny", host.url, *words))
    assert sorted(done.code for done in both) == [0, 5]
    winner = "ann" if both[0].code == 0 else "bob"
    assert winner in both[1 if winner == "ann" else 0].record["reason"]


async def test_what_is_denied_does_not_happen_and_the_agent_is_told_why(
    host: Host, ann: Program, tmp_path: Path
) -> None:
    request = await asked(host, "writer")
    denied = await ann(
        "deny", host.url, "writer", request, "--current", "--note", "not today", "--wait", "10", "--json"
    )
    assert denied.code == 0, denied.err
    assert denied.record["effect"] == "seen"
    await host.wait("writer")
    assert not (tmp_path / "done").exists()
    told = (await ann("events", host.url, "--session", "writer", "--json")).records
    assert any(r["event"].get("note") == "not today" for r in told)


async def test_a_denial_is_called_so_wherever_it_is_told(host: Host, ann: Program, tmp_path: Path) -> None:
    request = await asked(host, "writer")
    denied = await ann("deny", host.url, "writer", request, "--current", "--wait", "10")
    assert denied.out.startswith(f"deny {request}: applied, ")
    assert "effect seen" in denied.out
    [file] = (tmp_path / "state").rglob("*.jsonl")
    [asked_for] = [line for line in map(json.loads, file.read_text().splitlines()) if line["what"] == "requested"]
    assert (asked_for["primitive"], asked_for["option_kind"]) == ("approve", "deny")
    await host.wait("writer")
    told = (await ann("events", host.url, "--session", "writer")).out
    assert "denied by ann" in told
    assert "deny  by ann: applied" in told
    assert "approve" not in told
    trail = (await ann("events", host.url, "--session", "writer", "--json")).records
    [taken] = [record["event"] for record in trail if record["event"]["kind"] == "intervention"]
    assert (taken["primitive"], taken["option_kind"]) == ("approve", "deny")


async def test_another_digest_is_stale(host: Host, ann: Program, tmp_path: Path) -> None:
    request = await asked(host, "writer")
    done = await ann("approve", host.url, "writer", request, "--digest", OTHER_DIGEST)
    assert done.code == 4
    assert "digest differs" in done.err
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("approve", "writer", "req_none", "--current"), 4, "no request req_none is known"),
        (("approve", "nobody", "req_none", "--current"), 4, "there is no session nobody"),
        (("pause", "nobody"), 4, "there is no session nobody"),
        (("pause", "writer", "--attempt", "7"), 4, "attempt 7 is not the one that runs"),
        (("interrupt", "writer", "--turn", "t99"), 4, "turn t99 is over"),
        (("send", "writer", ""), 6, "there is no text to send"),
    ],
)
async def test_what_is_not_there_any_more(
    host: Host, ann: Program, words: tuple[str, ...], code: int, says: str
) -> None:
    verb, *rest = words
    done = await ann(verb, host.url, *rest)
    assert done.code == code
    assert says in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


VERBS: dict[str, tuple[str, ...]] = {
    "send": ("hello",),
    "pause": (),
    "interrupt": (),
    "resume": (),
    "stop": (),
    "reseed": ("--mode", "clear"),
    "fork": (),
    "budget": ("--turns", "3"),
    "delete": ("--yes",),
    "act": ("archive", "--field", "name=x"),
    "notify": ("other",),
    "approve": ("req_1", "--current"),
    "deny": ("req_1", "--digest", OTHER_DIGEST),
    "answer": ("req_1", "--text", "yes", "--current"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_tells_a_session_that_is_not_there_by_its_status(host: Host, ann: Program, verb: str) -> None:
    done = await ann(verb, host.url, "nosuch", *VERBS[verb])
    assert (done.code, done.out) == (4, "")
    assert done.err == "watchfloor: stale_target: there is no session nosuch\n"


def test_no_verb_is_left_out() -> None:
    verbs = _parser()[1].items()
    interventions = {verb for verb, parser in verbs if parser.get_default("handler") == "verbs:intervene"}
    assert interventions == set(VERBS)


async def test_an_observer_may_only_watch(host: Host, ann: Program) -> None:
    request = await asked(host, "writer")
    eye = ann.but(WATCHFLOOR_TOKEN=EYE)
    assert (await eye("sessions", host.url, "--json")).record["session"] == "writer"
    done = await eye("approve", host.url, "writer", request, "--current", "--json")
    assert done.code == 7
    assert done.record["outcome"] == "not_permitted"


async def test_read_only_holds_for_the_verbs_as_well(host: Host, ann: Program) -> None:
    done = await ann("pause", host.url, "writer", "--read-only")
    assert done.code == 7
    assert "this console only watches" in done.err
    assert ann.audit() == []


async def test_what_is_not_advertised_is_refused_before_it_is_sent(ann: Program) -> None:
    async with hosting(TOKENS) as host:
        host.add(observed(), name="watched", text="go")
        done = await ann("pause", host.url, "watched", "--json")
    assert done.code == 3
    assert done.record["outcome"] == "capability_not_supported"
    assert ann.audit() == [], "it never passed the gate"


@pytest.mark.parametrize(
    ("verb", "options", "words", "code", "says"),
    [
        ("approve", (ONCE, ALWAYS, NO), (), 0, "applied"),
        (
            "approve",
            (ALWAYS, NO),
            (),
            6,
            "no option that allows just this, once; name one with --option: always (allow",
        ),
        ("approve", (ALWAYS, NO), ("--option", "always"), 0, "applied"),
        ("approve", (ONCE, NO), ("--option", "no"), 6, "no denies; use deny"),
        ("approve", (ONCE, NO), ("--option", "maybe"), 6, "maybe is not an option; there are: once, no"),
        ("deny", (ONCE, NO), (), 0, "applied"),
        (
            "deny",
            (ONCE, NO, NEVER),
            (),
            6,
            "several options that deny; name one with --option: no (deny, once), never (deny",
        ),
        ("deny", (ONCE, NO, NEVER), ("--option", "never"), 0, "applied"),
        ("deny", (ONCE, NEVER), (), 6, "no option that denies just this; name one with --option: never (deny"),
        ("deny", (ONCE,), (), 6, "the request has no option that denies"),
        ("deny", (ONCE, NO), ("--option", "once"), 6, "once does not deny; use approve"),
        ("answer", (ONCE, NO), ("--text", "yes"), 6, "the request is an approval, not a question"),
    ],
)
async def test_an_option_is_taken_only_where_no_other_can_be_meant(
    ann: Program, tmp_path: Path, verb: str, options: Any, words: tuple[str, ...], code: int, says: str
) -> None:
    async with hosting(TOKENS) as host:
        host.add(writes(tmp_path, options), name="writer", text="hello")
        request = await asked(host, "writer")
        done = await ann(verb, host.url, "writer", request, "--current", *words)
        assert done.code == code, done.err
        assert says in done.out + done.err
        if code:
            assert await asked(host, "writer") == request, "it is still open"


def _question(run: Run) -> Subject:
    return Subject(
        session=run.session_id,
        attempt=run.attempt,
        id="q-1",
        kind=RequestKind.QUESTION,
        options=(
            Option(id="yes", label="Yes", kind=OptionKind.ANSWER),
            Option(id="skip", label="Rather not", kind=OptionKind.DENY),
        ),
    )


def _cut_action(run: Run) -> Subject:
    action = Action(tool="shell", text="rm -r bui", complete=False)
    return Subject(
        session=run.session_id,
        attempt=run.attempt,
        id="a-1",
        kind=RequestKind.APPROVAL,
        actions=(action,),
        options=(ONCE, NO),
    )


async def test_a_question_is_declined_where_it_can_be(ann: Program) -> None:
    decisions: list[Any] = []
    async with hosting(TOKENS) as host:
        host.add(decides(_question, decisions), name="asker", text="go")
        request = await asked(host, "asker")
        words = ("deny", host.url, "asker", request, "--current")
        noted = await ann(*words, "--note", "not now")
        assert noted.code == 6
        assert "a question is declined without a note" in noted.err
        done = await ann(*words, "--wait", "10", "--json")
        assert (done.code, done.record["outcome"]) == (0, "applied"), done.err
        await host.wait("asker")
        assert decisions == [("skip", OptionKind.DENY)]
        host.add(asks([]), name="other", text="go")
        done = await ann("deny", host.url, "other", await asked(host, "other"), "--current")
        assert done.code == 6
        assert "the request has no option that denies" in done.err


async def test_what_cannot_be_read_whole_is_approved_only_knowingly(ann: Program) -> None:
    decisions: list[Any] = []
    async with hosting(TOKENS) as host:
        host.add(decides(_cut_action, decisions), name="cut", text="go")
        request = await asked(host, "cut")
        words = ("approve", host.url, "cut", request, "--current")
        for option in ((), ("--option", "once")):
            done = await ann(*words, *option)
            assert done.code == 6
            assert "gave only a part of the action: the rest cannot be read; --incomplete takes it" in done.err
        assert await asked(host, "cut") == request, "it is still open"
        done = await ann(*words, "--incomplete")
        assert done.code == 0, done.err
        await host.wait("cut")
        assert decisions == [("once", OptionKind.ALLOW)]
        host.add(decides(_cut_action, decisions), name="denied", text="go")
        assert (await ann("deny", host.url, "denied", await asked(host, "denied"), "--current")).code == 0


async def test_questions_are_answered_by_option_text_and_fields(ann: Program) -> None:
    answers: list[Any] = []
    async with hosting(TOKENS) as host:
        for index, (words, stdin) in enumerate(
            [
                (("--option", "main"), ""),
                (("--text", "release-7"), ""),
                (("--fields", "-"), '{"answer": "next"}'),
            ]
        ):
            host.add(asks(answers), name=f"asker-{index}", text="go")
            request = await asked(host, f"asker-{index}")
            (field,) = (await ann("requests", host.url, "--json")).record["fields"]
            stdin = stdin.replace("answer", field["name"])
            done = await ann(
                "answer", host.url, f"asker-{index}", request, *words, "--current", "--wait", "10", stdin=stdin
            )
            assert done.code == 0, done.err
            await host.wait(f"asker-{index}")
        elsewhere = await ann("answer", host.url, "asker-0", "req_none", "--text", "x", "--current")
    assert answers == [("main", None), (None, "release-7"), ("next", None)]
    assert elsewhere.code == 4


async def test_the_fields_of_a_question_are_given_one_by_one(ann: Program) -> None:
    answers: list[Any] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        fields = [
            FormField(name="city", type=FieldType.TEXT),
            FormField(name="boxes", type=FieldType.NUMBER),
            FormField(name="express", type=FieldType.BOOL),
        ]
        answers.append((await run.ask("Where to?", fields=fields)).fields)
        return "thanks"

    async with hosting(TOKENS) as host:
        host.add(FunctionHarness(agent), name="asker", text="go")
        request = await asked(host, "asker")
        words = ("answer", host.url, "asker", request, "--current", "--field", "city=Cork=1", "--field", "express=yes")
        wrong = await ann(*words, "--field", "boxes=many")
        assert (wrong.code, wrong.err) == (6, "watchfloor: invalid: the field boxes wants a number\n")
        done = await ann(*words, "--field", "boxes=3")
        assert done.code == 0, done.err
        await host.wait("asker")
    assert answers == [{"city": "Cork=1", "boxes": 3, "express": True}]


async def test_the_audit_tells_the_whole_story_without_the_answers(ann: Program, tmp_path: Path) -> None:
    answers: list[Any] = []
    async with hosting(TOKENS) as host:
        host.add(asks(answers), name="asker", text="go")
        request = await asked(host, "asker")
        await ann(
            "answer", host.url, "asker", request, "--text", "s3cret-answer", "--current", "--wait", "10", "--id", "c-1"
        )
    lines = ann.audit()
    assert [line["what"] for line in lines] == ["requested", "outcome", "effect"]
    assert {line["id"] for line in lines} == {"c-1"}
    first = lines[0]
    assert (first["session"], first["primitive"], first["request"]) == ("asker", "answer", request)
    assert first["digest"].startswith("sha256:")
    assert "s3cret-answer" not in str(lines)
    assert ANN not in str(lines)
    (file,) = (tmp_path / "state" / "watchfloor" / "audit").glob("*.jsonl")
    assert verify(file).fault is None
    assert verify(file).lines == 3


async def test_a_known_id_is_never_executed_twice(host: Host, ann: Program) -> None:
    first = await ann("send", host.url, "writer", "more", "--id", "c-7", "--json")
    again = await ann("send", host.url, "writer", "more", "--id", "c-7", "--json")
    assert first.code == again.code == 0
    assert first.record["info"]["ref"] == again.record["info"]["ref"]
    other = await ann("send", host.url, "writer", "something else", "--id", "c-7")
    assert other.code == 6


async def test_who_repeats_a_decision_learns_what_became_of_it(host: Host, ann: Program) -> None:
    request = await asked(host, "writer")
    digest = (await ann("requests", host.url, "--json")).record["digest"]
    words = ("approve", host.url, "writer", request, "--digest", digest, "--json")
    first = await ann(*words, "--id", "d-1")
    again = await ann(*words, "--id", "d-1")
    assert (first.code, again.code) == (0, 0)
    assert again.record["outcome"] == "applied"
    assert again.record["info"]["repeated"] is True
    assert (await ann(*words, "--id", "d-2")).code == 5
    assert (await ann(*words)).code == 5


async def test_an_audit_that_cannot_be_written_is_said_and_blocks_where_that_is_asked_for(
    host: Host, ann: Program, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    mute = ann.but(XDG_STATE_HOME=str(tmp_path / "file"))
    done = await mute("send", host.url, "writer", "one")
    assert done.code == 0
    assert "the audit cannot be written: " in done.err

    config = tmp_path / "config" / "watchfloor" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('audit = "required"\n')
    done = await mute("send", host.url, "writer", "two")
    assert done.code == 8
    assert 'audit = "required"' in done.err
    sent = host.core.session("writer").mailbox
    assert "two" not in str(sent)
