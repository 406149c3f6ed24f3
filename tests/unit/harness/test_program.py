"""Programs as sessions: how they end, and what an operator's hand does to their processes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.unit.harness.fake_port import FakePort
from tests.unit.harness.programs import eventually, launched, python, shell, state
from watchfloor.errors import AgentError
from watchfloor.harness import process, program
from watchfloor.harness.base import MailArrived, Pause, Resume, Stop, Wake
from watchfloor.harness.program import ProgramHarness
from watchfloor.protocol.events import Notice, ToolOutput
from watchfloor.words import Primitive, StopReason

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the tests read the process table")

TICKER = "import time\nn = 0\nwhile True:\n    print(n); n += 1; time.sleep(0.01)"
STUBBORN = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('ready')\nwhile True: time.sleep(60)"
POLITE = (
    "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(0))\nprint('ready')\nwhile True: time.sleep(60)"
)

IN_GROUPS = """
import os, time
for _ in range(2):
    if os.fork() == 0:
        os.setpgid(0, 0)
os.write(1, b"%d\\n" % os.getpid())
time.sleep(60)
"""
WITH_A_STRANGER = """
import os, time
if os.fork() == 0:
    os.setsid()
    print(os.getpid())
    time.sleep(60)
time.sleep(0.3)
"""


class Witness(FakePort):
    """Looks at the process table at the moment in which a pause is reported."""

    def __init__(self) -> None:
        super().__init__()
        self.pids: list[int] = []
        self.seen: list[str] = []

    def paused(self) -> None:
        self.seen = [state(pid) for pid in self.pids]
        super().paused()


def pids(port: FakePort) -> list[int]:
    return [int(word) for word in port.output().split() if word.isdigit()]


# --- how they end


async def test_exit_status_0_completes() -> None:
    port = FakePort()
    await launched(shell("echo hello; echo done"), port)
    await port.until_log("completed")
    assert port.log == ["started", "completed"]
    assert port.output() == "hello\ndone\n"
    assert port.result is not None
    assert port.result.model_dump() == {
        "text": "exit status 0",
        "cut": False,
        "final_message": "done",
        "stop_reason": StopReason.END_TURN,
        "session_id": "s1",
    }


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("echo oops >&2; exit 3", "exit status 3"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("kill -40 $$", "killed by signal 40"),
    ],
)
async def test_any_other_end_fails_and_says_how(source: str, error: str) -> None:
    port = FakePort()
    await launched(shell(source), port)
    await port.until_log("failed")
    assert port.error == error
    assert port.result is not None
    assert port.result.stop_reason is StopReason.ERROR
    assert port.result.text == error


async def test_a_relaunch_is_another_process() -> None:
    harness = ProgramHarness(shell("echo $$"))
    seen = []
    for attempt in (1, 2):
        port = FakePort(attempt=attempt)
        session = await harness.start(port.spec(), port)
        await port.until_log("completed")
        assert pids(port) == [session.pid]
        seen.append(session.pid)
    assert len(set(seen)) == 2


@pytest.mark.parametrize(
    ("argv", "cwd", "reason"),
    [
        (["/nowhere/agent"], None, "cannot run '/nowhere/agent': there is no such program"),
        (["no-such-program-at-all"], None, "cannot run 'no-such-program-at-all': there is no such program"),
        (["/dev/null"], None, "cannot run '/dev/null': it is not an executable file"),
        (["true"], "/nowhere", "cannot run 'true' in '/nowhere': there is no such folder"),
        (["a\0b"], None, "cannot run 'a\\x00b': embedded null byte"),
        ([], None, "no program was given"),
    ],
)
async def test_what_cannot_be_started_says_why_in_one_line(argv: list[str], cwd: str | None, reason: str) -> None:
    port = FakePort()
    with pytest.raises(AgentError) as caught:
        await launched(argv, port, cwd=cwd)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)
    assert port.log == []


async def test_a_script_without_its_interpreter_says_so(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    with pytest.raises(AgentError, match="the interpreter that it names does not exist"):
        await launched([str(script)], FakePort())


async def test_a_file_that_is_no_program_says_so(tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_bytes(b"\x00\x01\x02")
    script.chmod(0o755)
    with pytest.raises(AgentError, match=r"cannot run .*: Exec format error"):
        await launched([str(script)], FakePort())


# --- pause and resume


async def test_a_pause_is_reported_once_the_process_table_shows_all_of_it_stopped() -> None:
    port = Witness()
    session = await launched(shell("sleep 60 & echo $! $$; while :; do sleep 0.01; echo tick; done"), port)
    await port.until(lambda: "tick" in port.output())
    port.pids = pids(port)
    assert session.pid in port.pids
    await session.intervene(Pause())
    await port.until_log("paused")
    assert port.seen == ["T", "T"]
    await session.intervene(Resume())
    assert port.log[-2:] == ["resumed", "checkpoint"]
    assert state(session.pid) in {"R", "S", "D"}
    before = port.output().count("tick")
    await port.until(lambda: port.output().count("tick") > before + 3)
    await session.intervene(Stop(kill=True))
    await port.until_log("stopped")


async def test_a_shell_with_job_control_cannot_hide_its_jobs_from_a_pause() -> None:
    port = Witness()
    session = await launched(python(IN_GROUPS), port)
    await port.until(lambda: len(pids(port)) == 4)
    port.pids = pids(port)
    await session.intervene(Pause())
    await port.until_log("paused")
    assert port.seen == ["T"] * 4
    await session.intervene(Stop())
    await port.until_log("stopped")


async def test_a_shell_that_starts_programs_without_end_stops_every_time() -> None:
    # Caught between the making of a child and its first program it would be deaf to the signal for ever.
    port = Witness()
    session = await launched(shell("echo $$; while :; do /bin/true; done"), port)
    await port.until(lambda: pids(port))
    port.pids = pids(port)
    for _ in range(25):
        port.log.clear()
        await session.intervene(Pause())
        await port.until_log("paused")
        assert port.seen == ["T"]
        await session.intervene(Resume())
    await session.close()


async def test_a_resume_overtakes_a_pause() -> None:
    port = FakePort()
    session = await launched(python(TICKER), port)
    await port.until(lambda: port.output())
    await session.intervene(Pause())
    await session.intervene(Resume())
    before = port.output()
    await port.until(lambda: len(port.output()) > len(before))
    assert state(session.pid) != "T"
    await session.intervene(Pause())
    await port.until_log("paused")
    assert state(session.pid) == "T"
    await session.close()


async def test_a_paused_program_that_is_killed_by_somebody_else_has_failed() -> None:
    port = FakePort()
    session = await launched(python(TICKER), port)
    await port.until(lambda: port.output())
    await session.intervene(Pause())
    await port.until_log("paused")
    os.kill(session.pid, signal.SIGKILL)
    await port.until_log("failed")
    assert port.error == "killed by SIGKILL"


# --- stop


async def test_a_stop_lets_the_program_end_in_its_own_way() -> None:
    port = FakePort()
    session = await launched(python(POLITE), port)
    await port.until(lambda: port.output() == "ready\n")
    await session.intervene(Stop())
    await port.until_log("stopped")
    assert port.result is not None
    assert (port.result.text, port.result.stop_reason) == ("exit status 0", StopReason.CANCELLED)


async def test_a_paused_program_can_be_stopped_in_its_own_way() -> None:
    port = FakePort()
    session = await launched(python(POLITE), port)
    await port.until(lambda: port.output() == "ready\n")
    await session.intervene(Pause())
    await port.until_log("paused")
    await session.intervene(Stop())
    await port.until_log("stopped")
    assert port.result is not None
    assert port.result.text == "exit status 0"


async def test_a_stop_overtakes_a_pause() -> None:
    port = FakePort()
    session = await launched(python(POLITE), port, grace_s=3600)
    await port.until(lambda: port.output() == "ready\n")
    await session.intervene(Pause())
    await session.intervene(Stop())
    await port.until_log("stopped")
    assert port.log == ["started", "stopped"]
    assert port.result is not None
    assert port.result.text == "exit status 0"


async def test_a_program_that_ignores_the_stop_is_killed_after_its_grace_time() -> None:
    port = FakePort()
    session = await launched(python(STUBBORN), port, grace_s=0.1)
    await port.until(lambda: port.output() == "ready\n")
    asked = asyncio.get_running_loop().time()
    await session.intervene(Stop())
    await port.until_log("stopped")
    assert asyncio.get_running_loop().time() - asked >= 0.1
    assert port.result is not None
    assert port.result.text == "killed by SIGKILL"


async def test_a_kill_waits_for_nothing_also_when_a_stop_was_asked_for_before() -> None:
    port = FakePort()
    session = await launched(python(STUBBORN), port, grace_s=3600)
    await port.until(lambda: port.output() == "ready\n")
    await session.intervene(Stop())
    await session.intervene(Stop(kill=True))
    await port.until_log("stopped")
    assert port.result is not None
    assert port.result.text == "killed by SIGKILL"


async def test_grandchildren_are_stopped_too_even_those_that_refuse() -> None:
    port = FakePort()
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(60)"
    inner = shlex.join([sys.executable, "-S", "-u", "-c", stubborn])
    session = await launched(shell(f"{inner} & sleep 60 & echo $!; wait"), port, grace_s=0.1)
    await port.until(lambda: len(pids(port)) == 2)
    await session.intervene(Stop())
    await port.until_log("stopped")


async def test_what_a_program_leaves_behind_is_ended_and_named() -> None:
    port = FakePort()
    await launched(shell("sleep 60 & sleep 60 & echo started"), port)
    await port.until_log("completed")
    assert "ending 2 processes that the program left behind" in [notice.text for notice in port.all(Notice)]


async def test_a_program_is_not_over_before_what_it_left_behind_is(tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); open('up', 'w').close(); time.sleep(60)"
    source = f"{shlex.join(python(stubborn))} >/dev/null 2>&1 & echo $!; while [ ! -e up ]; do sleep 0.01; done"
    port = FakePort()
    await launched(shell(source), port, grace_s=0.1, cwd=str(tmp_path))
    await port.until_log("completed")
    (left,) = pids(port)
    assert state(left) in {"", "Z"}


async def test_a_process_that_left_the_session_does_not_hold_up_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "_DRAIN_S", 0.1)
    port = FakePort()
    await launched(python(WITH_A_STRANGER), port)
    await port.until_log("completed")
    (stranger,) = pids(port)
    assert state(stranger) == "S"  # it is nobody's any more: not ours to end
    os.kill(stranger, signal.SIGKILL)


async def test_closing_ends_everything_without_a_word() -> None:
    port = FakePort()
    session = await launched(python(STUBBORN), port, grace_s=0.1)
    await port.until(lambda: port.output() == "ready\n")
    await session.intervene(Pause())
    await port.until_log("paused")
    await session.close()
    assert state(session.pid) == ""
    assert port.log == ["started", "paused"]


async def test_closing_that_nobody_waits_for_kills() -> None:
    port = FakePort()
    session = await launched(python(STUBBORN), port, grace_s=3600)
    await port.until(lambda: port.output() == "ready\n")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await session.close()
    await eventually(lambda: state(session.pid) == "")


async def test_an_event_loop_that_is_torn_down_takes_the_program_with_it() -> None:
    def run() -> int:
        async def main() -> int:
            port = FakePort()
            session = await launched(python(STUBBORN), port)
            await port.until(lambda: port.output() == "ready\n")
            return session.pid

        return asyncio.run(main())

    pid = await asyncio.to_thread(run)
    assert state(pid) == ""


async def test_without_a_process_table_a_pause_is_reported_after_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HAS_PROCESS_TABLE", False)
    monkeypatch.setattr(process, "_UNKILLABLE_S", 0.1)
    port = FakePort()
    session = await launched(shell(f"{shlex.join(python(STUBBORN))} & wait"), port, grace_s=0.1)
    await port.until(lambda: port.output() == "ready\n")
    await session.intervene(Pause())
    await port.until_log("paused")
    await eventually(lambda: state(session.pid) == "T")
    await session.intervene(Resume())
    await session.intervene(Stop())
    await port.until_log("stopped")


# --- input, surroundings


async def test_a_message_is_a_line_on_the_input() -> None:
    port = FakePort()
    session = await launched(python("for line in open(0): print('got', repr(line))"), port, stdin=True)
    await session.intervene(Wake("t1", port.mail("hello w\u00f6rld")))
    await port.until(lambda: port.output() == "got 'hello w\u00f6rld\\n'\n")
    port.post("second")
    await session.intervene(MailArrived())
    await port.until(lambda: "second" in port.output())
    await session.close()


async def test_mail_for_a_paused_program_waits_until_it_goes_on() -> None:
    port = FakePort()
    session = await launched(python("for line in open(0): print(line)"), port, stdin=True)
    await session.intervene(Pause())
    await port.until_log("paused")
    port.post("later")
    await session.intervene(MailArrived())
    assert len(port.mailbox) == 1
    await session.intervene(Resume())
    await port.until(lambda: "later" in port.output())
    await session.close()


async def test_mail_that_the_program_does_not_take_is_named() -> None:
    port = FakePort()
    session = await launched(shell("exec 0<&-; echo closed; sleep 60"), port, stdin=True)
    await port.until(lambda: port.output() == "closed\n")
    port.post("anybody?")
    await session.intervene(MailArrived())
    await port.until(lambda: any(notice.code == "input" for notice in port.all(Notice)))
    assert port.all(Notice)[-1].text == "message #1 was not handed over: the program reads no input any more"
    await session.close()


async def test_a_message_larger_than_the_pipe_does_not_block_anything_else() -> None:
    port = FakePort()
    session = await launched(
        python("import sys,time\nprint('up')\ntime.sleep(0.1)\nprint(len(sys.stdin.readline()))"), port, stdin=True
    )
    await port.until(lambda: port.output() == "up\n")
    await session.intervene(Wake("t1", port.mail("x" * 1_000_000)))
    await port.until_log("completed")
    assert port.output() == "up\n1000001\n"


async def test_without_stdin_the_input_is_empty() -> None:
    port = FakePort()
    await launched(["cat"], port)
    await port.until_log("completed")


async def test_the_environment_and_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WATCHFLOOR_TOKEN", "secret")
    monkeypatch.setenv("SOMETHING", "inherited")
    show = "echo [$WATCHFLOOR_TOKEN] [$SOMETHING] [$GIVEN]; pwd"
    port = FakePort()
    await launched(shell(show), port, cwd=str(tmp_path))
    await port.until_log("completed")
    assert port.output() == f"[] [inherited] []\n{tmp_path}\n"
    port = FakePort()
    mark = {name: value for name, value in os.environ.items() if name.startswith("WATCHFLOOR_TEST")}
    await launched(shell(show), port, env={"GIVEN": "yes", **mark})
    await port.until_log("completed")
    assert port.output().startswith("[] [] [yes]\n")
    port = FakePort()
    await ProgramHarness(shell("pwd")).start(port.spec(cwd=str(tmp_path)), port)
    await port.until_log("completed")
    assert port.output() == f"{tmp_path}\n"


def test_what_is_advertised() -> None:
    always = {Primitive.PAUSE, Primitive.RESUME, Primitive.STOP}
    plain = ProgramHarness(["true"], grace_s=2)
    assert set(plain.capabilities.advertised()) == always
    assert set(ProgramHarness(["true"], stdin=True).capabilities.advertised()) == {*always, Primitive.SEND}
    assert ProgramHarness(["true"], stdin=True, observe=True).capabilities.advertised() == ()
    assert plain.starts_itself
    assert plain.grace_s == 2


async def test_the_first_event_tells_what_runs() -> None:
    port = FakePort()
    session = await launched(shell("echo 'a b'"), port)
    await port.until_log("completed")
    assert port.all(Notice)[0].text == f"""/bin/sh -c 'echo '"'"'a b'"'"''  (process {session.pid})"""
    assert [type(event) for event in port.events] == [Notice, ToolOutput]
