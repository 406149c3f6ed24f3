"""What is printed where nobody takes it: what was done counts, and what went wrong is said."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sockets.cli_kit import ANN, PATIENCE_S, Program, asked, hosting, writes
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host

FULL = "the output could not be written: No space left on device"
CLOSED = "the output could not be written: Bad file descriptor"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with hosting({ANN: Principal("ann")}) as host:
        host.add(writes(tmp_path), name="writer", text="hello")
        await asked(host, "writer")
        yield host


@pytest.fixture
def ann(tmp_path: Path) -> Program:
    return Program(tmp_path, WATCHFLOOR_TOKEN=ANN)


async def shell(program: Program, redirected: str, *words: str) -> tuple[int, str]:
    """A command line whose streams a shell redirects; its status and what it says on standard error."""
    line = f"exec {shlex.join([sys.executable, '-m', 'console.cli.main', *words])} {redirected}"
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", line, env=program.env, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert b"Traceback" not in errors
    assert b"fault of this program" not in errors
    return process.returncode or 0, errors.decode()


@pytest.mark.parametrize("json", [(), ("--json",)])
@pytest.mark.parametrize(("redirected", "says"), [(">/dev/full", FULL), (">&-", CLOSED)])
async def test_an_intervention_ends_with_what_became_of_it(
    host: Host, ann: Program, redirected: str, says: str, json: tuple[str, ...]
) -> None:
    code, errors = await shell(ann, redirected, "pause", host.url, "writer", *json)
    assert (code, errors) == (0, f"watchfloor: {says}; pause writer: applied\n")
    code, errors = await shell(ann, redirected, "stop", host.url, "nobody", "--json")
    assert code == 4
    assert errors.startswith(f"watchfloor: {says}; stop nobody: stale_target (")


async def test_a_reader_that_left_does_not_change_what_was_done(host: Host, ann: Program) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    async with ann.running("pause", host.url, "writer", stdout=writing) as process:
        os.close(writing)
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0
    assert errors.decode() == "watchfloor: the output could not be written: Broken pipe; pause writer: applied\n"


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
async def test_what_cannot_be_told_changes_nothing_either(host: Host, ann: Program, redirected: str) -> None:
    line = f"{redirected} >/dev/null"
    assert await shell(ann, line, "pause", host.url, "writer") == (0, "")
    assert await shell(ann, line, "stop", host.url, "nobody") == (4, "")


@pytest.mark.parametrize("words", [("sessions",), ("requests",), ("events",), ("events", "--json")])
async def test_what_lists_says_that_it_could_not(host: Host, ann: Program, words: tuple[str, ...]) -> None:
    verb, *rest = words
    assert await shell(ann, ">/dev/full", verb, host.url, *rest) == (1, f"watchfloor: {FULL}\n")


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("schema",), ("config", "path")])
async def test_so_does_what_asks_no_host(ann: Program, words: tuple[str, ...]) -> None:
    assert await shell(ann, ">/dev/full", *words) == (1, f"watchfloor: {FULL}\n")
    assert await shell(ann, ">&-", *words) == (1, f"watchfloor: {CLOSED}\n")


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        ((b"x\xff",), b"", "the text is not UTF-8"),
        ((b"-",), b"x\xff", "UTF-8"),
        ((b"-",), b"", "nothing was given on standard input"),
    ],
)
async def test_a_text_that_is_none_is_refused_before_it_is_sent(
    host: Host, ann: Program, words: tuple[bytes, ...], stdin: bytes, says: str
) -> None:
    line = [os.fsencode(sys.executable), b"-m", b"console.cli.main", b"send", host.url.encode(), b"writer"]
    process = await asyncio.create_subprocess_exec(
        *line, *words, env=ann.env, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await asyncio.wait_for(process.communicate(stdin), PATIENCE_S)
    assert process.returncode == 2
    assert says in errors.decode()
    assert errors.count(b"\n") == 1
