"""`watchfloor run`: a program as a session, in the terminal as well as in the consoles."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from console.cli.targets import operator
from tests.sockets.cli_kit import PATIENCE_S, Program, appears, gone, letter, until
from watchfloor.harness.process import members

LOOP = "echo begun; touch begun; while :; do sleep 0.05; done"
STATE = Path("/proc/self/stat")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


class Running:
    """A `watchfloor run` that listens."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    async def says(self) -> str:
        """The next line on its standard error."""
        assert self.process.stderr is not None
        return (await asyncio.wait_for(self.process.stderr.readline(), PATIENCE_S)).decode().rstrip("\n")

    async def ends(self) -> tuple[int, str, str]:
        """Its status and what it printed."""
        output, errors = await asyncio.wait_for(self.process.communicate(), PATIENCE_S)
        assert b"Traceback" not in errors
        return self.process.returncode or 0, output.decode(), errors.decode()


@asynccontextmanager
async def running(program: Program, *words: str) -> AsyncIterator[Running]:
    process = await program.start("run", *words, cwd=program.home)
    assert process.stderr is not None
    try:
        first = (await asyncio.wait_for(process.stderr.readline(), PATIENCE_S)).decode()
        assert first.startswith("listening on ws://127.0.0.1:"), first
        yield Running(process, first.removeprefix("listening on ").strip())
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def _pid(folder: Path) -> int:
    return int(await appears(folder / "pid"))


async def test_its_output_is_ours_and_exit_hands_on_its_status(program: Program) -> None:
    script = "printf 'out\\n'; printf 'err\\n' >&2; exit 3"
    async with running(program, "--exit", "--", "sh", "-c", script) as run:
        assert await run.ends() == (3, "out\n", "err\n")


async def test_a_program_that_is_killed_ends_as_in_a_shell(program: Program) -> None:
    async with running(program, "--exit", "--", "sh", "-c", "kill -9 $$") as run:
        assert (await run.ends())[0] == 128 + signal.SIGKILL


async def test_output_is_passed_on_byte_by_byte(program: Program) -> None:
    script = "printf 'no end of line \\033[31m\\377'"
    async with program.running("run", "--exit", "--", "sh", "-c", script) as process:
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert output == b"no end of line \x1b[31m\xff"


async def test_a_program_that_is_not_there(program: Program) -> None:
    done = await program.process("run", "--", "no-such-program")
    assert (done.code, done.out, done.err) == (127, "", "watchfloor: there is no program 'no-such-program'\n")


async def test_what_is_there_and_is_no_program(program: Program, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    for what, why in ((script, "it is not executable; chmod +x makes it so"), (tmp_path, "it is a folder")):
        done = await program.process("run", "--", str(what))
        assert (done.code, done.out) == (126, "")
        assert done.err == f"watchfloor: {str(what)!r} cannot be run: {why}\n"


async def test_a_program_that_cannot_be_started(program: Program, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF is not what this is")
    broken.chmod(0o755)
    done = await program.process("run", "--exit", "--", str(broken))
    assert done.code == 126
    assert re.search(rf"^watchfloor: .*{broken}.*Exec format error$", done.err, re.MULTILINE)


async def _flooded(program: Program, folder: Path) -> asyncio.subprocess.Process:
    """A `run --exit` whose program has ended, and whose output nobody has read."""
    script = "head -c 1000000 /dev/zero | tr '\\0' x; touch done; exit 3"
    process = await program.start("run", "--exit", "--", "sh", "-c", script, cwd=folder)
    await until(lambda: True if (folder / "done").exists() else None)
    await until(lambda: None if any((folder / "run").iterdir()) else True)
    return process


async def test_a_reader_that_is_slow_gets_all_of_the_output(program: Program, tmp_path: Path) -> None:
    process = await _flooded(program, tmp_path)
    await asyncio.sleep(6)  # longer than any grace that is given to what hangs
    assert not gone(process.pid)
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert output == b"x" * 1_000_000
    assert process.returncode == 3


async def test_ctrl_c_ends_what_waits_for_its_reader(program: Program, tmp_path: Path) -> None:
    process = await _flooded(program, tmp_path)
    process.send_signal(signal.SIGINT)
    assert await until(lambda: gone(process.pid)), "though nobody has read it"
    _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 130
    assert re.search(rb"watchfloor: \d+ bytes of output were not written: nobody read them\n$", errors)
    assert b"Traceback" not in errors


async def test_a_disk_that_is_full_is_said_and_the_status_is_the_programs(program: Program) -> None:
    handle = os.open("/dev/full", os.O_WRONLY)
    async with program.running("run", "--exit", "--", "sh", "-c", "echo one; exit 3", stdout=handle) as process:
        os.close(handle)
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 3
    said = "watchfloor: the program's output can no longer be written: No space left on device"
    assert errors.decode().splitlines()[1:] == [said]


async def test_an_interpreter_that_is_not_there_is_said(program: Program, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = await program.process("run", "--exit", "--", str(script))
    assert done.code == 126
    said = f"watchfloor: cannot run {str(script)!r}: the interpreter that it names does not exist"
    assert done.err.splitlines()[1:] == [said]


async def test_consoles_find_it_by_name_until_it_ends(program: Program, tmp_path: Path) -> None:
    async with running(program, "--name", "looper", "--", "sh", "-c", LOOP) as run:
        await appears_empty(tmp_path / "begun")
        record = (await program("sessions", "looper", "--json")).record
        assert (record["source"], record["session"], record["lifecycle"]) == ("looper", "looper", "running")
        assert record["capabilities"] == ["pause", "resume", "stop"]
        (file,) = (tmp_path / "run").iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        run.process.send_signal(signal.SIGINT)
        assert (await run.ends())[0] == 130
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_script_is_called_by_its_own_name_unless_another_is_given(program: Program, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(LOOP)
    async with running(program, "--", "env", "A=1", "sh", "job.sh"), running(program, "--", "sh", "job.sh"):
        for name in ("job.sh", "job.sh-2"):
            record = (await program("sessions", name, "--json")).record
            assert (record["source"], record["name"]) == (name, "job.sh")
    async with running(program, "--name", "nightly", "--", "sh", "job.sh"):
        assert (await program("sessions", "nightly", "--json")).record["name"] == "nightly"


async def test_where_it_cannot_be_found_it_says_so_and_runs_all_the_same(program: Program, tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    done = await program.process("run", "--exit", "--", "echo", "hello")
    assert (done.code, done.out) == (0, "hello\n")
    first, second = done.err.splitlines()
    assert first.startswith("listening on ws://")
    assert second.startswith(f"consoles will not find this host by themselves: {tmp_path / 'run'}: ")


async def test_without_its_token_nobody_gets_in(program: Program) -> None:
    async with running(program, "--", "sh", "-c", LOOP) as run:
        stranger = program.but(WATCHFLOOR_RUNTIME_DIR=str(program.home / "elsewhere"))
        done = await stranger("sessions", run.url)
    assert done.code == 7
    assert "wants a token (401)" in done.err


async def test_who_ends_it_is_not_told_how_to_start_the_program_again(program: Program) -> None:
    async with running(program, "--", "sh", "-c", LOOP) as run:
        run.process.send_signal(signal.SIGTERM)
        code, _, err = await run.ends()
    assert code == 143
    assert "starts it again" not in err


@pytest.mark.skipif(not STATE.exists(), reason="there is no process table to look at")
async def test_pause_stops_the_process_and_resume_lets_it_go_on(program: Program, tmp_path: Path) -> None:
    script = f"echo $$ > pid; {LOOP}"
    async with running(program, "--name", "looper", "--", "sh", "-c", script) as run:
        pid = await _pid(tmp_path)
        paused = await program("pause", "looper", "looper", "--wait", "10", "--json")
        assert (paused.code, paused.record["effect"]) == (0, "seen")
        assert letter(pid) == "T"
        resumed = await program("resume", "looper", "looper", "--wait", "10", "--json")
        assert (resumed.code, resumed.record["effect"]) == (0, "seen")
        assert letter(pid) in "RS"
        await program("pause", "looper", "looper", "--wait", "10")
        run.process.send_signal(signal.SIGINT)
        assert (await run.ends())[0] == 130
        assert await until(lambda: gone(pid))


async def test_it_stays_after_the_end_and_can_be_run_again(program: Program, tmp_path: Path) -> None:
    script = "echo line >> lines; exit 4"
    async with running(program, "--name", "once", "--", "sh", "-c", script) as run:
        await appears(tmp_path / "lines")

        async def lifecycle() -> str:
            return str((await program("sessions", "once", "--json")).record["lifecycle"])

        while await lifecycle() != "failed":
            pass
        again = await program("resume", "once", "once", "--wait", "10", "--json")
        assert (again.code, again.record["effect"]) == (0, "seen")
        await until(lambda: True if (tmp_path / "lines").read_text() == "line\nline\n" else None)
        while await lifecycle() != "failed":
            pass
        assert (await program("sessions", "once", "--json")).record["attempt"] == 2
        run.process.send_signal(signal.SIGINT)
        assert (await run.ends())[0] == 130


async def test_it_says_how_the_program_ended_and_what_can_be_done_about_it(program: Program) -> None:
    async with running(program, "--name", "job", "--", "sh", "-c", "echo done >&2; exit 3") as run:
        again = f"r in a console (or watchfloor resume {run.url} job) starts it again; Ctrl-C leaves"
        assert await run.says() == "done"
        assert await run.says() == f"watchfloor: ended with status 3; {again}"
        assert (await program("resume", run.url, "job")).code == 0, "the command does what the line says"
        assert await run.says() == "watchfloor: started again (attempt 2)"
        assert await run.says() == "done"
        assert await run.says() == f"watchfloor: ended with status 3; {again}"
        run.process.send_signal(signal.SIGINT)
        assert await run.ends() == (130, "", ""), "and nothing more"


async def test_it_says_who_stopped_the_program_and_what_killed_it(program: Program, tmp_path: Path) -> None:
    async with running(program, "--name", "job", "--", "sh", "-c", f"echo $$ > pid; {LOOP}") as run:
        pid = await _pid(tmp_path)
        assert (await program("stop", "job", "job", "--reason", "lunch")).code == 0
        assert re.match(r"watchfloor: stopped by \S+: lunch; r in a console ", await run.says())
        (tmp_path / "pid").unlink()
        assert (await program("resume", "job", "job")).code == 0
        assert await run.says() == "watchfloor: started again (attempt 2)"
        again = await _pid(tmp_path)
        assert again != pid
        os.kill(again, signal.SIGTERM)
        assert (await run.says()).startswith("watchfloor: killed by SIGTERM; r in a console ")


async def test_it_says_who_paused_and_resumed_the_program(program: Program, tmp_path: Path) -> None:
    async with running(program, "--name", "job.sh", "--", "sh", "-c", f"echo $$ > pid; {LOOP}") as run:
        await _pid(tmp_path)
        for verb, says in (("pause", "paused"), ("resume", "resumed"), ("pause", "paused"), ("resume", "resumed")):
            assert (await program(verb, "job.sh", "job.sh", "--wait", "10")).code == 0, "by its name, not by its id"
            assert await run.says() == f"watchfloor: {says} by {operator()}"


async def test_what_nobody_can_start_again_is_not_offered(program: Program) -> None:
    async with running(program, "--observe", "--", "sh", "-c", "exit 3") as run:
        assert await run.says() == "watchfloor: ended with status 3; Ctrl-C leaves"
    async with running(program.but(WATCHFLOOR_RUNTIME_DIR=__file__), "--", "sh", "-c", "exit 3") as run:
        assert (await run.says()).startswith("consoles will not find this host")
        assert await run.says() == "watchfloor: ended with status 3; Ctrl-C leaves"


async def test_a_program_that_cannot_be_started_and_stays(program: Program, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF is not what this is")
    broken.chmod(0o755)
    async with running(program, "--", str(broken)) as run:
        assert re.match(rf"watchfloor: .*{broken}.*Exec format error; r in a console ", await run.says())


@pytest.mark.parametrize("watched", [False, True])
async def test_after_the_end_one_ctrl_c_leaves_at_once(program: Program, watched: bool) -> None:
    async def leaves() -> float:
        """How many seconds it takes."""
        async with running(program, "--name", "job", "--", "sh", "-c", "exit 3") as run, AsyncExitStack() as stack:
            await run.says()
            if watched:
                console = await stack.enter_async_context(program.running("events", "job", "--follow", "--json"))
                assert console.stdout is not None
                assert await asyncio.wait_for(console.stdout.readline(), PATIENCE_S)
            run.process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            assert (await run.ends())[0] == 130
            return time.monotonic() - begun

    # A grace time or a time-out would be waited for each time; a busy machine is not that busy for long.
    for _ in range(5):
        if await leaves() < 3:
            return
    pytest.fail("no grace time and no time-out is to be waited for")


async def test_a_note_never_stands_in_the_midst_of_a_line(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "terminal"
    with file.open("wb") as terminal:
        words = ("run", "--", "sh", "-c", "printf 'no end of line'")
        async with program.running(*words, stdout=terminal, stderr=terminal) as process:
            text = await until(lambda: text if "Ctrl-C" in (text := file.read_text()) else None)
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.wait(), PATIENCE_S)
    assert "\nno end of line\nwatchfloor: ended with status 0; " in text


async def test_a_message_is_a_line_on_its_input(program: Program, tmp_path: Path) -> None:
    script = 'read line; echo "got $line"; read line; echo "got $line" > got'
    async with running(program, "--stdin", "--exit", "--name", "reader", "--", "sh", "-c", script) as run:
        assert (await program("send", "reader", "reader", "first line")).code == 0
        assert (
            await program(
                "send",
                "reader",
                "reader",
                "-",
            )
        ).code == 2, "nothing was given"
        sent = await program("send", "reader", "reader", "-", stdin="s3cret\n")
        assert sent.code == 0
        assert (await run.ends())[:2] == (0, "got first line\n")
    assert (tmp_path / "got").read_text() == "got s3cret\n"


async def test_observed_it_offers_nothing(program: Program) -> None:
    async with running(program, "--observe", "--name", "looper", "--", "sh", "-c", LOOP):
        assert (await program("sessions", "looper", "--json")).record["capabilities"] == []
        done = await program("stop", "looper", "looper")
        assert done.code == 3
        assert "observe only" in done.err


async def test_the_second_ctrl_c_kills_what_ignores_the_first(program: Program, tmp_path: Path) -> None:
    script = f"trap '' TERM; echo $$ > pid; {LOOP}"
    async with running(program, "--name", "stubborn", "--", "sh", "-c", script) as run:
        pid = await _pid(tmp_path)
        await appears_empty(tmp_path / "begun")
        run.process.send_signal(signal.SIGINT)
        await until_stopping(program)
        run.process.send_signal(signal.SIGINT)
        assert (await run.ends())[0] == 130
        assert await until(lambda: gone(pid))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_it_never_outlives_us(program: Program, tmp_path: Path, number: signal.Signals, code: int) -> None:
    async with running(program, "--", "sh", "-c", f"echo $$ > pid; {LOOP}") as run:
        pid = await _pid(tmp_path)
        run.process.send_signal(number)
        assert (await run.ends())[0] == code
        assert await until(lambda: gone(pid))


FAMILY = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        time.sleep(60)
with open("pid.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid.new", "pid")
while True:
    time.sleep(60)
"""


@pytest.mark.skipif(not STATE.exists(), reason="there is no process table to look at")
async def test_killed_it_takes_its_program_along(program: Program, tmp_path: Path) -> None:
    async with running(program, "--", sys.executable, "-c", FAMILY) as run:
        session = await _pid(tmp_path)
        await until(lambda: True if len(members(session)) == 3 else None)
        assert len(_reapers(tmp_path)) == 1
        run.process.kill()
        assert await until(lambda: None if members(session) else True)
    assert await until(lambda: None if _reapers(tmp_path) else True), "and nothing watches any longer"


async def test_nothing_watches_over_a_program_that_has_ended(program: Program, tmp_path: Path) -> None:
    async with running(program, "--", "sh", "-c", "exit 3") as run:
        await run.says()
        assert await until(lambda: None if _reapers(tmp_path) else True)


def _reapers(folder: Path) -> list[Path]:
    """The processes that watch over programs of these tests: they have the environment of who started them."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"reaper.py" in (place / "cmdline").read_bytes() and bytes(folder) in (place / "environ").read_bytes():
                found.append(place)
    return found


async def test_a_terminal_that_nobody_reads_does_not_hold_up_the_host(program: Program, tmp_path: Path) -> None:
    script = "echo $$ > pid; exec yes 'a line that fills every pipe'"
    async with program.running("run", "--name", "flood", "--", "sh", "-c", script, cwd=tmp_path):
        await _pid(tmp_path)
        # Nothing has read its standard output: the pipe to us is full by now, and stays so.
        stopped = await program("stop", "flood", "flood", "--kill", "--wait", "10", "--json")
        assert (stopped.code, stopped.record["effect"]) == (0, "seen")


async def appears_empty(path: Path) -> None:
    await until(lambda: True if path.exists() else None)


async def until_stopping(program: Program) -> None:
    """Until the host says that the session is being stopped."""
    async with asyncio.timeout(PATIENCE_S):
        while "stopping" not in (await program("sessions", "stubborn")).out:
            pass
