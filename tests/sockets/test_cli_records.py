"""What the listing verbs print: whole for programs, aligned and harmless for people."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from console.fleet.views.row import LETTERS
from tests.sockets.cli_kit import PATIENCE_S, Done, Program, asked, hosting, observed, writes
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness, Run
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.serving.server import Host

HOSTILE = "\x1b]0;owned\x07\u202egnp.exe\x9b31m"
KEY = "-".join(("sk", "ant", "a1b2c3d4" * 5))


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def talks(*lines: str) -> FunctionHarness:
    """An agent that says these lines, and for each message what it says."""

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        for line in lines or [item.text for item in mail]:
            await run.say(line)
        return "said"

    return FunctionHarness(agent)


def _harmless(done: Done) -> bool:
    text = done.out + done.err
    return not any(char in text for char in "\x1b\x07\x9b\u202e")


async def test_a_session_as_json(host: Host, program: Program, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="The writer", id="writer", text="x")
    request = await asked(host, "writer")
    record = (await program("sessions", host.url, "--json")).record
    digest = host.core.session("writer").requests.refs()[0].digest
    assert record.pop("requests")[0].items() >= {"id": request, "kind": "approval", "digest": digest}.items()
    assert record.pop("blocked").keys() >= {"reseed"}
    assert record.pop("head") > 0
    assert record == {
        "source": host.url.removeprefix("ws://"),
        "session": "writer",
        "parent": None,
        "attempt": 1,
        "name": "The writer",
        "lifecycle": "waiting",
        "capabilities": [
            "send",
            "pause",
            "resume",
            "interrupt",
            "stop",
            "reseed",
            "fork",
            "budget",
            "approve",
            "answer",
            "notify",
            "delete",
        ],
        "acts": [],
    }


async def test_sessions_for_people(host: Host, program: Program, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="x")
    host.add(observed(), name="watched", text="x")
    await asked(host, "writer")
    await host.wait("watched")
    lines = (await program("sessions", host.url)).out.splitlines()
    assert lines[0].split() == ["STATE", "SESSION", "NAME", "TRY", "NEEDS", "CAN", "LAST"]
    assert lines[1].split()[:5] == ["waiting", "writer", "writer", "1", "1"]
    assert lines[2].split()[:2] == ["idle", "watched"]
    assert "observe only" in lines[2]
    assert lines[1].index("spxrXaoR") == lines[2].index("observe only")


async def test_of_a_session_that_failed_the_table_says_why(host: Host, program: Program) -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        raise ValueError("the disk\nis full")

    host.add(FunctionHarness(agent), name="writer", text="go")
    await host.wait("writer")
    (line,) = (await program("sessions", host.url)).out.splitlines()[1:]
    assert line.split()[0] == "failed"
    assert line.endswith("the disk is full")


async def test_the_letters_of_its_column_are_explained(program: Program) -> None:
    text = " ".join((await program.process("sessions", "--help")).out.split())
    for primitive, letter in LETTERS:
        assert f"{letter} {primitive.value}" in text


async def test_events_are_found_by_the_name_of_a_session(host: Host, program: Program) -> None:
    host.add(talks("hello"), name="The writer", id="writer", text="go")
    await host.wait("writer")
    found = (await program("events", host.url, "--session", "The writer", "--json")).records
    assert found == (await program("events", host.url, "--session", "writer", "--json")).records != []
    done = await program("events", host.url, "--session", "writr")
    assert (done.code, done.err) == (4, "watchfloor: there is no session writr; did you mean writer?\n")


async def test_nothing_is_told_as_nothing(host: Host, program: Program) -> None:
    for verb, says in (("sessions", "has no sessions"), ("requests", "nothing waits for a human")):
        done = await program(verb, host.url)
        assert (done.code, done.out) == (0, "")
        assert says in done.err
        done = await program(verb, host.url, "--json")
        assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("verb", ["sessions", "requests", "events"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
async def test_hostile_text_cannot_act_and_secrets_are_masked(
    host: Host, program: Program, tmp_path: Path, verb: str, form: tuple[str, ...]
) -> None:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        await run.say(f"{HOSTILE} {KEY}")
        await run.tool(HOSTILE, {HOSTILE: KEY}, lambda: None, cwd=f"/{HOSTILE}", about=f"{HOSTILE} {KEY}")
        return "done"

    host.add(FunctionHarness(agent), name=HOSTILE, id=f"id-{HOSTILE}", text="go")
    await asked(host, f"id-{HOSTILE}")
    done = await program(verb, host.url, *form)
    assert done.code == 0, done.err
    assert _harmless(done)
    assert "a1b2c3d4" not in done.out
    if form:
        assert done.records[0]["session"] == f"id-{HOSTILE}", "an id is kept exactly, to be used again"


async def test_an_action_is_shown_whole(host: Host, program: Program) -> None:
    command = "\n".join(f"step {n} of a long command" for n in range(300))

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        await run.tool("shell", {"command": command}, lambda: None, text=command, cwd="/srv")
        return "done"

    host.add(FunctionHarness(agent), name="long", text="go")
    await asked(host, "long")
    text = (await program("requests", host.url)).out
    assert "".join(f"    {line}\n" for line in command.split("\n")) in text
    assert "shell in /srv" in text
    record = (await program("requests", host.url, "--json")).record
    assert record["actions"][0]["text"].startswith(command + "\n")


async def test_events_of_all_sessions_in_the_order_of_the_log(host: Host, program: Program) -> None:
    for name in ("a", "b"):
        host.add(talks("one", "two"), name=name, text="go")
        await host.wait(name)
    records = (await program("events", host.url, "--json")).records
    pos = [record["event"]["pos"] for record in records]
    assert pos == list(range(1, len(pos) + 1))
    assert {record["session"] for record in records} == {"a", "b"}
    said = [
        r["event"]["text"] for r in records if r["event"]["kind"] == "message" and r["event"]["role"] == "assistant"
    ]
    assert said == ["one", "two"] * 2

    later = (await program("events", host.url, "--json", "--after-pos", str(pos[3]))).records
    assert [record["event"]["pos"] for record in later] == pos[4:]
    few = (await program("events", host.url, "--json", "--after-pos", "2", "--count", "3")).records
    assert [record["event"]["pos"] for record in few] == [3, 4, 5]
    beyond = await program("events", host.url, "--json", "--after-pos", str(pos[-1]))
    assert (beyond.code, beyond.out) == (0, "")


async def test_events_of_one_session_over_many_pages(host: Host, program: Program) -> None:
    host.add(talks(*[f"line {n}" for n in range(2500)]), name="long", text="go")
    host.add(talks("other"), name="other", text="go")
    await host.wait("long")
    records = (await program("events", host.url, "--session", "long", "--json")).records
    seq = [record["event"]["seq"] for record in records]
    assert seq == list(range(1, len(seq) + 1))
    assert len(seq) > 2500
    assert {record["session"] for record in records} == {"long"}
    assert len({record["epoch"] for record in records}) == 1
    rest = (await program("events", host.url, "--session", "long", "--after", str(seq[-2]), "--json")).records
    assert [record["event"]["seq"] for record in rest] == seq[-1:]
    first = (await program("events", host.url, "--session", "long", "--count", "2", "--json")).records
    assert [record["event"]["seq"] for record in first] == [1, 2]


async def test_events_that_the_host_no_longer_keeps_are_told(program: Program) -> None:
    async with hosting(log=MemoryLog(lambda: "epoch", keep=50)) as host:
        host.add(talks(*[f"line {n}" for n in range(200)]), name="long", text="go")
        await host.wait("long")
        one = await program("events", host.url, "--session", "long", "--json")
        every = await program("events", host.url, "--json")
    assert one.records[0]["event"]["seq"] > 1
    assert "are gone" in one.err
    assert "are gone" in every.err


async def test_events_of_a_session_that_is_not_there(host: Host, program: Program) -> None:
    done = await program("events", host.url, "--session", "nobody")
    assert (done.code, done.out) == (4, "")
    assert done.err == "watchfloor: there is no session nobody\n"
    usage = await program("events", host.url, "--after", "3")
    assert usage.code == 2
    assert "name it with --session" in usage.err


@pytest.mark.parametrize("which", [(), ("--session", "talker")], ids=["all", "one"])
async def test_following_misses_and_doubles_nothing_and_ends_with_ctrl_c(
    host: Host, program: Program, which: tuple[str, ...]
) -> None:
    host.add(talks(), name="talker", text="before")
    await host.wait("talker")
    said: list[str] = []
    seqs: list[int] = []
    sent = False
    follow = program.running("events", host.url, *which, "--json", "--follow")
    async with follow as process, asyncio.timeout(PATIENCE_S):
        assert process.stdout is not None
        while "third" not in said:
            record = json.loads(await process.stdout.readline())
            event = record["event"]
            seqs.append(event["seq"])
            if event["kind"] == "message" and event["role"] == "assistant":
                said.append(event["text"])
            if not sent and "before" in said:
                sent = True
                for text in ("second", "third"):
                    await program("send", host.url, "talker", text)
                    await host.wait("talker")
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
    assert process.returncode == 130
    assert errors == b""
    assert said == ["before", "second", "third"]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_following_goes_on_after_the_host_came_back(program: Program) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE_S):
        first = await stack.enter_async_context(Host(name="one"))
        port = int((await first.serve()).rpartition(":")[2])
        first.add(talks(), name="talker", text="before")
        await first.wait("talker")
        process = await stack.enter_async_context(program.running("events", first.url, "--json", "--follow"))
        assert process.stdout is not None
        while b'"before"' not in await process.stdout.readline():
            pass
        await first.close()
        second = await stack.enter_async_context(Host(name="two"))
        second.add(talks(), name="talker", text="after")
        await second.wait("talker")
        await second.serve(port=port)
        while b'"after"' not in await process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert b"trying again" in errors


async def test_following_so_many_events_ends_by_itself(host: Host, program: Program) -> None:
    host.add(talks("one"), name="talker", text="go")
    await host.wait("talker")
    done = await program("events", host.url, "--follow", "--count", "2", "--json")
    assert done.code == 0
    assert len(done.records) == 2


async def test_a_reader_that_leaves_ends_it_quietly(host: Host, program: Program) -> None:
    host.add(talks(*[f"line {n} {'x' * 500}" for n in range(3000)]), name="long", text="go")
    await host.wait("long")
    async with program.running("events", host.url, "--json") as process, asyncio.timeout(PATIENCE_S):
        assert process.stdout is not None
        assert process.stderr is not None
        await process.stdout.readline()
        process.stdout._transport.close()  # type: ignore[attr-defined]
        assert await process.stderr.read() == b""
        assert await process.wait() == 141
