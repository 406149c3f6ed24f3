"""The demo as a process of its own: served to this machine, or started by the console and ending with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import ssl
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from console.demo.process import DemoProcess
from tests.sockets.cli_kit import PATIENCE_S, Program, gone, until
from watchfloor import runtime
from watchfloor.client import ClientCore
from watchfloor.connector import Target
from watchfloor.dial import dial
from watchfloor.errors import Denied, Unreachable

NAMED = 8
PEM = Path(__file__).parents[1] / "fixtures" / "loopback.pem"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, TMPDIR=str(tmp_path))


@asynccontextmanager
async def serving(program: Program, *words: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`watchfloor demo --serve`, and its URL."""
    process = await program.start("demo", "--serve", "127.0.0.1:0", *words, stdin=asyncio.subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        first = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode()
        assert first.startswith(("listening on ws://127.0.0.1:", "listening on wss://127.0.0.1:")), first
        yield process, first.removeprefix("listening on ").strip()
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.communicate(), PATIENCE_S)


def _files(folder: str) -> set[Path]:
    return {path for path in Path(folder).rglob("*") if path.is_file()}


def _workspaces(folder: Path) -> list[Path]:
    return list(folder.glob("watchfloor-demo-*"))


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def _token_files(folder: Path, token: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]


async def _lifeline(program: Program, *words: str) -> asyncio.subprocess.Process:
    """The demo as the console starts it."""
    return await program.start("demo", "--serve", "127.0.0.1:0", "--until-stdin-ends", *words)


def _stdin(process: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    assert process.stdin is not None
    return process.stdin


async def _request(program: Program, url: str, session: str) -> dict[str, str]:
    """An open request of a session, once there is one."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = [r for r in (await program("requests", url, "--json")).records if r["session"] == session]
            if found:
                return {"id": found[0]["request"], "digest": found[0]["digest"], "cwd": found[0]["actions"][0]["cwd"]}


async def test_what_is_approved_by_command_line_happens_and_the_second_is_told(program: Program) -> None:
    async with serving(program, "--seed", "7") as (_, url):
        sessions = (await program("sessions", url, "--json")).records
        assert len(sessions) >= NAMED
        assert any(record["capabilities"] == [] for record in sessions), "somebody is only observed"
        request = await _request(program, url, "deploy")
        before = _files(request["cwd"])
        words = ("approve", url, "deploy", request["id"], "--digest", request["digest"], "--wait", "10")
        first = await program(*words)
        assert first.code == 0, first.err
        assert "effect seen" in first.out
        second = await program(*words)
        assert second.code == 5
        assert "already approved by " in second.err
        assert "release" in {path.parent.name for path in _files(request["cwd"]) - before}


async def test_its_folder_goes_with_it_and_it_needs_no_input(program: Program, tmp_path: Path) -> None:
    async with serving(program) as (process, url):
        assert _workspaces(tmp_path)
        assert (await program("sessions", url)).code == 0
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 130
        assert process.stderr is not None
        (note,) = (await process.stderr.read()).decode().splitlines()
        assert note.startswith("anybody on this machine may operate it: --token-file F ")
    assert not _workspaces(tmp_path)
    assert not list((tmp_path / "run").iterdir()), "nor can it be found any more"


async def test_more_agents_are_copies_of_the_streamer(program: Program) -> None:
    async with serving(program, "--agents", "12", "--rate", "200") as (_, url):
        names = [record["name"] for record in (await program("sessions", url, "--json")).records]
    assert len([name for name in names if name.startswith("narrator")]) == 5


async def test_it_is_served_with_tls(program: Program) -> None:
    async with serving(program, "--tls-cert", str(PEM), "--tls-key", str(PEM)) as (_, url):
        assert url.startswith("wss://127.0.0.1:")
        target = Target("demo", url)
        link = await dial(target, core := ClientCore(target), tls=ssl.create_default_context(cafile=PEM))
        assert core.welcome is not None
        await link.close()


async def test_served_with_a_token_it_wants_it(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("t0ken\n")
    async with serving(program, "--token-file", str(file)) as (process, url):
        stranger = program.but(WATCHFLOOR_RUNTIME_DIR=str(tmp_path / "elsewhere"))
        assert (await stranger("sessions", url)).code == 7
        assert (await stranger("sessions", url, "--token-file", str(file))).code == 0
        assert (await program("sessions", url)).code == 0, "its own user has the runtime file"
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 130
        assert process.stderr is not None
        assert await process.stderr.read() == b"", "it is not open to anybody"


async def test_it_is_found_by_its_name_while_it_serves(program: Program, tmp_path: Path) -> None:
    async with serving(program) as (process, url):
        records = (await program("sessions", "demo", "--json")).records
        assert {record["source"] for record in records} == {"demo"}
        (file,) = (tmp_path / "run").iterdir()
        assert url in file.read_text()
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), PATIENCE_S)
    assert not list((tmp_path / "run").iterdir())


async def test_the_console_starts_one_of_its_own_and_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    demo = DemoProcess(user="ann")
    try:
        target = await demo.start()
        assert target.name == "demo"
        assert target.url not in {host.url for host in runtime.hosts()}, "it is the console's own"
        assert target.token is not None
        assert not _token_files(tmp_path, target.token), "the token is on no disk"
        assert set(_workspaces(tmp_path)) == set(_entries(tmp_path))
        link = await dial(target, ClientCore(target))
        await link.close()
        with pytest.raises(Denied):
            await dial(replace(target, token=None), ClientCore(target))
    finally:
        await asyncio.to_thread(demo.stop)
    with pytest.raises(Unreachable):
        await dial(target, ClientCore(target))
    assert not _workspaces(tmp_path)
    demo.stop()


async def test_a_demo_that_cannot_start_says_why(tmp_path: Path) -> None:
    demo = DemoProcess(user="ann", agents=10**9)
    with pytest.raises(Unreachable, match=r"the demo did not start: watchfloor: .*'1000000000' is not a whole number"):
        await demo.start()


async def test_it_ends_with_the_console_even_if_that_is_killed(tmp_path: Path) -> None:
    console = textwrap.dedent(
        """
        import asyncio, sys
        from console.demo.process import DemoProcess
        async def main():
            demo = DemoProcess(user="ann")
            target = await demo.start()
            print(demo._process.pid, target.url, flush=True)
            await asyncio.sleep(3600)
        asyncio.run(main())
        """
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", console, stdout=asyncio.subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
    pid = int(line.split()[0])
    process.kill()
    await process.communicate()

    assert await until(lambda: gone(pid))
    assert not _workspaces(tmp_path)


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (b"", 0, ""),
        (b"half-a-tok", 0, ""),
        (b"\n", 2, "the first line of standard input must be the token"),
        (b"two words\n", 2, "the first line of standard input must be the token"),
        (b"t" * 100_000, 2, "the first line of standard input must be the token"),
    ],
)
async def test_its_token_is_the_first_line_of_its_input(
    program: Program, tmp_path: Path, given: bytes, code: int, says: str
) -> None:
    process = await _lifeline(program)
    output, errors = await asyncio.wait_for(process.communicate(given), PATIENCE_S)
    assert (process.returncode, output) == (code, b"")
    assert says in errors.decode()
    assert "Traceback" not in errors.decode()
    assert not _workspaces(tmp_path)


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_ended_while_it_starts_it_leaves_no_folder(
    program: Program, tmp_path: Path, number: signal.Signals | None
) -> None:
    process = await _lifeline(program)
    _stdin(process).write(b"t0ken\n")
    await until(lambda: _workspaces(tmp_path) or None)
    if number is None:
        _stdin(process).close()
    else:
        process.send_signal(number)
    assert await asyncio.wait_for(process.wait(), PATIENCE_S) == (0 if number is None else 128 + number)
    assert not _workspaces(tmp_path)


async def test_told_again_while_it_winds_down_it_ends_in_order(program: Program, tmp_path: Path) -> None:
    async with serving(program) as (process, _):
        while process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                # Not by `send_signal`, which may take the status off the process table before the event loop does.
                os.kill(process.pid, signal.SIGTERM)
            await asyncio.sleep(0.005)
        # The very last signal may find it with nothing left to wind down.
        assert process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM)
    assert not _workspaces(tmp_path)
    assert not _entries(tmp_path / "run")


async def test_what_a_killed_demo_leaves_behind_goes_with_its_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    demo, other = DemoProcess(user="ann"), DemoProcess(user="ann")
    try:
        await other.start()
        (lived_in,) = _workspaces(tmp_path)
        await demo.start()
        process = demo._process
        assert process is not None
        process.kill()
        process.wait()
        assert len(_workspaces(tmp_path)) == 2
        await asyncio.to_thread(demo.stop)
        assert _workspaces(tmp_path) == [lived_in], "that of another demo stays"
        assert list(lived_in.iterdir())
    finally:
        await asyncio.to_thread(demo.stop)
        await asyncio.to_thread(other.stop)
    assert not _workspaces(tmp_path)


async def test_a_demo_removes_what_others_left_behind_and_nothing_else(program: Program, tmp_path: Path) -> None:
    left = tmp_path / "watchfloor-demo-abcd_123"
    left.mkdir(mode=0o700)
    (left / "file").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    link = tmp_path / "watchfloor-demo-abcd_124"
    link.symlink_to(elsewhere)
    shared = tmp_path / "watchfloor-demo-abcd_125"
    shared.mkdir(mode=0o755)
    notes = tmp_path / "watchfloor-demo-notes"
    notes.mkdir(mode=0o700)
    async with serving(program):
        assert not left.exists()
        assert link.is_symlink()
        assert (elsewhere / "file").exists()
        assert shared.exists()
        assert notes.exists()
