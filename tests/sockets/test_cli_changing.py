"""The verbs that change what a session remembers, may use, or is, against a real host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sockets.cli_kit import Program, hosting, until
from tests.sockets.host_kit import PATIENCE_S
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness, Run
from watchfloor.host.serving.server import Host
from watchfloor.words import Lifecycle


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "home")


async def repeats(run: Run, mail: tuple[MailItem, ...]) -> str:
    run.usage(input_tokens=10)
    await run.checkpoint()
    return f"{run.model}: {mail[-1].text}"


async def talked(host: Host, *texts: str) -> str:
    session = host.add(FunctionHarness(repeats, model="small"), name="parrot", id="parrot")
    for text in texts:
        host.send(session, text)
        async with asyncio.timeout(PATIENCE_S):
            await host.wait(session)
    return session


async def _echo(run: Run, mail: tuple[MailItem, ...]) -> str:
    return "heard"


def remembered(host: Host, session: str) -> list[str]:
    return [message.text for message in host.core.session(session).conversation.messages]


async def test_what_a_session_remembers(host: Host, program: Program, tmp_path: Path) -> None:
    session = await talked(host, "one", "two")
    url = host.url
    done = await program("reseed", url, session, "--mode", "rewind", "--to", "2", "--wait", "30", "--json")
    assert (done.code, done.record["outcome"], done.record["effect"]) == (0, "applied", "seen")
    assert remembered(host, session) == ["one", "small: one"]

    text = tmp_path / "story.txt"
    text.write_text("once upon a time\n", "utf-8")
    assert (await program("reseed", url, session, "--mode", "replace", "--file", str(text))).code == 0
    assert remembered(host, session) == ["once upon a time"]
    done = await program("reseed", url, session, "--mode", "replace", "--file", "-", stdin="from here\n")
    assert (done.code, remembered(host, session)) == (0, ["from here"])
    assert (await program("reseed", url, session, "--mode", "model", "--to", "large")).code == 0
    assert host.core.session(session).conversation.model == "large"

    done = await program("reseed", url, session, "--mode", "rewind", "--to", "#9")
    assert done.code == 6
    assert done.err.endswith("watchfloor: invalid: the conversation has no message #9\n")
    done = await program("reseed", url, session, "--mode", "compact")
    assert done.code == 3
    assert "does not offer reseed compact" in done.err


async def test_a_session_is_found_by_its_name_where_one_alone_has_it(host: Host, program: Program) -> None:
    ids = [host.add(FunctionHarness(_echo), name="the writer") for _ in range(2)]
    done = await program("send", host.url, "the writer", "x")
    assert (done.code, done.out) == (2, "")
    assert done.err == (f"watchfloor: 2 sessions are called the writer: name one by its id, {ids[0]} or {ids[1]}\n")
    host.add(FunctionHarness(_echo), name="reader.sh", id="reader-sh")
    record = (await program("send", host.url, "reader.sh", "hello", "--wait", "10", "--json")).record
    assert (record["outcome"], record["session"]) == ("applied", "reader-sh")
    done = await program("notify", host.url, ids[0], "reader.sh")
    assert done.code == 0, done.err
    # What is an id is meant as one, whatever others are called.
    host.add(FunctionHarness(_echo), name="reader-sh", id="other")
    assert (await program("stop", host.url, "reader-sh", "--json")).record["session"] == "reader-sh"


async def test_a_session_that_is_not_there_is_told_with_what_was_meant(host: Host, program: Program) -> None:
    host.add(FunctionHarness(_echo), name="reader.sh", id="reader-sh")
    done = await program("pause", host.url, "raeder.sh")
    assert (done.code, done.err) == (
        4,
        "watchfloor: stale_target: there is no session raeder.sh; did you mean reader-sh?\n",
    )
    assert (await program("pause", host.url, "zzz")).err.endswith("there is no session zzz\n")


async def test_a_fork_is_named_in_the_outcome_and_can_be_deleted(host: Host, program: Program) -> None:
    session = await talked(host, "one")
    record = (await program("fork", host.url, session, "--name", "twin", "--wait", "30", "--json")).record
    assert (record["outcome"], record["effect"], record["info"]["session"]) == ("applied", "seen", "twin")
    assert remembered(host, "twin") == ["one", "small: one"]

    done = await program("delete", host.url, "twin")
    says = "twin would be gone for good: say --yes to delete it; see watchfloor delete --help"
    assert (done.code, done.err) == (2, f"watchfloor: {says}\n")
    assert "twin" in host.core.roster
    done = await program("delete", host.url, "twin", "--yes", "--wait", "30", "--json")
    assert (done.code, done.record["effect"]) == (0, "seen")
    assert "twin" not in host.core.roster


async def test_a_budget_and_what_a_session_says_that_has_used_it_up(host: Host, program: Program) -> None:
    session = await talked(host)
    done = await program("budget", host.url, session, "--tokens", "5", "--wait", "30", "--json")
    assert (done.code, done.record["effect"], done.record["info"]) == (0, "seen", {"tokens": 5})
    host.send(session, "go")
    await until(lambda: host.core.session(session).lifecycle is Lifecycle.PAUSED or None)
    done = await program("resume", host.url, session)
    assert done.code == 6
    assert "the budget of 5 tokens is used up (10): raise it first" in done.err
    assert (await program("budget", host.url, session, "--tokens", "50")).code == 0
    assert (await program("resume", host.url, session)).code == 0
    await until(lambda: host.core.session(session).last_words() == "small: go" or None)


async def test_one_session_tells_another(host: Host, program: Program) -> None:
    session = await talked(host, "one")
    boss = host.add(FunctionHarness(repeats), name="boss", id="boss")
    assert (await program("notify", host.url, session, boss, "--on", "idle")).code == 0
    await until(lambda: host.core.session(boss).last_words() or None)
    assert "parrot is now idle. Its final reply:" in host.core.session(boss).last_words()
    done = await program("notify", host.url, boss, session)
    assert done.code == 6
    assert "that closes a circle: parrot tells boss tells parrot" in done.err
    assert (await program("notify", host.url, session, boss, "--on", "none")).code == 0
    assert host.core.session(session).subscribers == {}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("reseed", "--mode", "rewind"), "--mode rewind needs --to"),
        (("reseed", "--mode", "model"), "--mode model needs --to"),
        (("reseed", "--mode", "clear", "--to", "#1"), "--mode clear takes no --to"),
        (("reseed", "--mode", "replace"), "--mode replace needs --file"),
        (("reseed", "--mode", "compact", "--file", "x"), "--mode compact takes no --file"),
        (("reseed", "--mode", "replace", "--file", "/nowhere/at/all"), "cannot be read: No such file"),
        (("budget",), "say how much: --tokens N, --turns N, or both"),
    ],
)
async def test_what_does_not_go_together_is_said_before_anything_is_sent(
    host: Host, program: Program, words: tuple[str, ...], says: str
) -> None:
    done = await program(words[0], host.url, "parrot", *words[1:])
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1


async def test_files_that_hold_no_such_text(host: Host, program: Program, tmp_path: Path) -> None:
    for name, data, says in (
        ("empty", b"\n", "is empty"),
        ("bytes", b"\xff\xfe", "is not UTF-8"),
        ("long", b"x" * 600_000, "is longer than 512 KiB"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        done = await program("reseed", host.url, "parrot", "--mode", "replace", "--file", str(path))
        assert (done.code, says in done.err) == (2, True), done.err


async def test_the_messages_to_a_session_and_what_came_of_them(host: Host, program: Program) -> None:
    session = await talked(host, "one", "two\x1b[31m")
    url = host.url
    sent = await program("send", url, session, "three", "--reply-to", "#1", "--json")
    ref = sent.record["info"]["ref"]
    assert ref == "#3"
    done = await program("mailbox", url, "parrot", "--ref", ref, "--wait", "30", "--json")
    assert done.code == 0
    known = {name: done.record[name] for name in ("session", "ref", "state", "text", "response", "reply_to", "error")}
    assert known == {
        "session": session, "ref": "#3", "state": "consumed", "text": "three", "response": "small: three",
        "reply_to": "#1", "error": None,
    }  # fmt: skip
    listed = (await program("mailbox", url, session)).out.splitlines()
    assert listed[0].split() == ["REF", "STATE", "DELIVERY", "BY", "TEXT"]
    assert [line.split()[:3] for line in listed[1:]] == [[f"#{n}", "consumed", "started"] for n in (1, 2, 3)]
    assert "\x1b" not in "".join(listed)
    told = (await program("mailbox", url, session, "--ref", "3")).out
    assert told.splitlines()[1:] == ["  three", "response:", "  small: three"]

    host.add(FunctionHarness(_echo), name="quiet", id="quiet")
    assert "nobody has sent quiet a message" in (await program("mailbox", url, "quiet")).err
    unknown = await program("mailbox", url, session, "--ref", "#9")
    assert (unknown.code, unknown.out) == (4, "")
    assert "#9" in unknown.err
    nobody = await program("mailbox", url, "parot")
    assert (nobody.code, "did you mean parrot?" in nobody.err) == (4, True)
