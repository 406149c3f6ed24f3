"""`watchfloor host FILE.toml`, and `run` with a host that stands: real processes, found as a console finds them."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.sockets.cli_kit import PATIENCE_S, Program
from watchfloor.client import ClientCore
from watchfloor.connector import Target
from watchfloor.dial import dial
from watchfloor.host.principals import Principal, Principals
from watchfloor.host.serving.handshake import Door
from watchfloor.host.serving.server import Host
from watchfloor.words import PROTOCOL, Role

PEM = Path(__file__).parents[1] / "fixtures" / "loopback.pem"
ACP = Path(__file__).parents[1] / "peers" / "acp_agent.py"

FILE = f"""
name = "floor"
log = "floor.db"

[[agent]]
name = "counter"
command = ["sh", "-c", "echo one; echo two"]

[[agent]]
name = "typed"
command = ["{sys.executable}", "-c", "print('tty', __import__('os').isatty(1)); print('got', input())"]
stdin = true
pty = true

[[agent]]
name = "echo"
kind = "function"
object = "mine:echo"
text = "hello"

[[agent]]
name = "acp"
kind = "acp"
command = ["{sys.executable}", "{ACP}"]
"""
MINE = "async def echo(run, mail):\n    return 'heard ' + mail[-1].text\n\n\nwrong = 5\n"
OWN = """
[[agent]]
name = "own"
kind = "harness"
object = "own_harness:counter"
text = "2"

[[agent]]
name = "whole"
kind = "harness"
object = "own_harness:whole"
text = "enough"
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "floor.toml").write_text(FILE)
    return Program(tmp_path)


@asynccontextmanager
async def serving(
    program: Program, *words: str, says: str = "listening on "
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The verb as a process of its own, and what it said first."""
    process = await program.start(*words, cwd=program.home)
    assert process.stderr is not None
    try:
        first = (await asyncio.wait_for(process.stderr.readline(), PATIENCE_S)).decode().strip()
        assert first.startswith(says), first + (await process.stderr.read()).decode()
        yield process, first.removeprefix(says)
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.communicate(), PATIENCE_S)


async def seen(program: Program, url: str, holds: dict[str, str]) -> None:
    """Until the sessions are in these states."""

    async def look() -> bool | None:
        done = await program("sessions", url, "--json")
        states = {record["session"]: record["lifecycle"] for record in done.records}
        return True if holds.items() <= states.items() else None

    async with asyncio.timeout(PATIENCE_S):
        while not await look():  # noqa: ASYNC110 - another process brings it about
            await asyncio.sleep(0.05)


async def test_a_file_brings_up_agents_of_every_kind(program: Program) -> None:
    async with serving(program, "host", "floor.toml") as (_, url):
        await seen(program, url, {"counter": "completed", "typed": "running", "echo": "idle", "acp": "idle"})
        await program("send", url, "typed", "abc")
        await seen(program, url, {"typed": "completed"})
        said = (await program("events", url, "--json", "--session", "typed")).out
        assert "tty True" in said
        assert "got abc" in said
        heard = (await program("events", url, "--json", "--session", "echo")).out
        assert "heard hello" in heard
    # What the log has comes back, and is not sent again.
    async with serving(program, "host", "floor.toml") as (_, url):
        await seen(program, url, {"counter": "completed", "echo": "idle"})
        again = (await program("events", url, "--json", "--session", "echo")).out
        assert again.count("heard hello") == heard.count("heard hello") > 0


async def test_run_joins_the_host_that_stands(program: Program) -> None:
    async with serving(program, "host", "floor.toml") as (_, url):
        async with serving(
            program, "run", "--name", "extra", "--", "sh", "-c", "echo hi; sleep 60", says="joined "
        ) as (_, joined):
            where, _, session = joined.partition(" as ")
            assert where == url
            assert session.startswith("extra-")
            await seen(program, url, {session: "running"})
            done = await program("stop", url, session, "--wait", "30", "--json")
            assert done.record["outcome"] == "applied"
            await seen(program, url, {session: "stopped"})
        async with serving(program, "run", "--serve", "127.0.0.1:0", "--", "sleep", "60") as (_, own):
            assert own != url


async def test_a_program_that_has_joined_finds_the_host_that_is_started_anew(program: Program) -> None:
    words = ("run", "--name", "extra", "--", "sleep", "60")
    async with AsyncExitStack() as stack:
        async with serving(program, "host", "floor.toml") as (_, url):
            _, joined = await stack.enter_async_context(serving(program, *words, says="joined "))
            session = joined.partition(" as ")[2]
            await seen(program, url, {session: "running"})
        async with serving(program, "host", "floor.toml") as (_, elsewhere):
            assert elsewhere != url
            await seen(program, elsewhere, {session: "running"})


async def test_run_joins_the_host_that_is_named(program: Program) -> None:
    async with serving(program, "run", "--name", "first", "--", "sleep", "60") as (_, url):
        words = ("run", "--join", url, "--name", "second", "--", "sleep", "60")
        async with serving(program, *words, says="joined ") as (_, joined):
            await seen(program, url, {joined.partition(" as ")[2]: "running"})
    done = await program.process("run", "--join", url, "--", "touch", str(program.home / "started"))
    assert done.code == 8
    assert not (program.home / "started").exists()


async def test_run_on_a_terminal(program: Program) -> None:
    code = "import os; print([os.isatty(n) for n in range(3)])"
    done = await program.process("run", "--pty", "--exit", "--", sys.executable, "-c", code)
    assert (done.code, done.out.strip()) == (0, "[True, True, True]")


async def test_a_harness_of_ones_own_is_served_by_a_file(program: Program) -> None:
    example = (Path(__file__).parents[2] / "examples" / "own_harness.py").read_text()
    (program.home / "own_harness.py").write_text(f"{example}\n\ncounter = Counter()\nwhole = Streamed(Counter())\n")
    (program.home / "floor.toml").write_text(OWN)
    async with serving(program, "host", "floor.toml") as (_, url):
        await seen(program, url, {"own": "idle", "whole": "completed"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "floor.toml:1: it names no agent"),
        ("[[agent]]\nname='a'\n", "floor.toml:1: agent 1: program needs a command"),
        (
            "[[agent]]\nname='a'\nkind='acp'\ncommand=['x']\npty=true\n",
            "floor.toml:5: agent 1: pty: it is for programs only",
        ),
        ("[[agent]]\nname='a'\nkind='function'\nobject='mine'\n", "needs an object of Python"),
        ("[[agent]]\nname='a'\nkind='function'\nobject='nowhere:x'\n", "nowhere cannot be imported"),
        ("[[agent]]\nname='a'\nkind='function'\nobject='mine:x'\n", "mine has no 'x'"),
        (
            "[[agent]]\nname='a'\nkind='function'\nobject='mine:wrong'\n",
            "floor.toml: a: mine:wrong: an agent is an async function of a Run and its mail, not int",
        ),
        (
            "[[agent]]\nname='a'\nkind='pydantic_ai'\nobject='mine:wrong'\n",
            "mine:wrong: an agent of Pydantic AI is wanted, not int",
        ),
        ("[[agent]]\nname='a'\nkind='harness'\nobject='mine:echo'\n", "mine:echo: a harness is named, as in counter ="),
        (
            "nam='x'\n[[agent]]\nname='a'\ncommand=['x']\n",
            "floor.toml:1: nam: there is no such key; did you mean name?",
        ),
        ("[[agent]]\nname='a'\ncommand=['x']\n[[agent]]\nname='a'\ncommand=['x']\n", "the name 'a' is taken"),
        ("serve='there'\n[[agent]]\nname='a'\ncommand=['x']\n", "serve: "),
        ("serve='0.0.0.0:0'\n[[agent]]\nname='a'\ncommand=['x']\n", "0.0.0.0 is reached from other machines"),
        ("tls_cert='c'\n[[agent]]\nname='a'\ncommand=['x']\n", "tls_cert and tls_key come together"),
        ("tls_cert='c'\ntls_key='k'\n[[agent]]\nname='a'\ncommand=['x']\n", "there is no such file"),
        ("[[token]]\nname='x'\n[[agent]]\nname='a'\ncommand=['x']\n", "it needs the file that holds the token"),
        ("log='mine.py'\n[[agent]]\nname='a'\ncommand=['x']\n", "is not a database of Watchfloor"),
        ("[[agent]", "it is not TOML"),
    ],
)
async def test_what_is_wrong_with_a_file_is_said(
    program: Program, text: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Inside of this process, which must not keep what the verb imports.
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    (program.home / "floor.toml").write_text(text)
    # What would listen heeds signals, as a process of its own alone can.
    call = program.process if "0.0.0.0" in text else program  # noqa: S104
    done = await call("host", str(program.home / "floor.toml"))
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err


async def test_a_host_with_tls_and_tokens_of_files(program: Program) -> None:
    (program.home / "ann.token").write_text("token-of-ann\n")
    (program.home / "eye.token").write_text("token-of-eye\n")
    for name in ("ann", "eye"):
        (program.home / f"{name}.token").chmod(0o600)
    tokens = "".join(
        f"[[token]]\nname = '{name}'\nrole = '{role}'\nfile = '{name}.token'\n"
        for name, role in (("ann", "operator"), ("eye", "observer"))
    )
    (program.home / "floor.toml").write_text(
        f"tls_cert = '{PEM}'\ntls_key = '{PEM}'\n{tokens}[[agent]]\nname = 'a'\ncommand = ['sleep', '60']\n"
    )
    async with serving(program, "host", "floor.toml") as (_, url):
        assert url.startswith("wss://127.0.0.1:")
        target = Target("floor", url, token="token-of-eye")
        link = await dial(target, core := ClientCore(target), tls=ssl.create_default_context(cafile=PEM))
        assert core.welcome is not None
        assert (core.welcome.principal, core.welcome.role) == ("eye", Role.OBSERVER)
        await link.close()
        done = await program("sessions", url, "--json")
        assert done.code == 8
        assert "is not trusted" in done.err


@pytest.mark.parametrize(
    ("tokens", "tls", "insecure", "refused"),
    [
        (None, True, False, "give the host tokens"),
        ({"t": Principal()}, False, False, "for TLS"),
        ({"t": Principal()}, True, False, None),
        (None, False, True, None),
    ],
)
def test_other_machines_are_served_by_a_token_and_tls_or_expressly(
    tokens: dict[str, Principal] | None, tls: bool, insecure: bool, refused: str | None
) -> None:
    host = Host(tokens=tokens)
    why = host.unsafe("192.0.2.1", tls=tls, insecure=insecure)
    assert (why is None) if refused is None else (why is not None and refused in why)
    assert host.unsafe("127.0.0.1") is None


def test_other_machines_may_call_a_host_by_its_address_and_not_by_any_name() -> None:
    door = Door(Principals(), beyond=True, hosts=("floor.example",))
    for name, admitted in (("192.0.2.1:7340", True), ("floor.example", True), ("evil.example", False)):
        headers = [("Host", name), ("Sec-WebSocket-Protocol", PROTOCOL)]
        assert isinstance(door.admit(headers), Principal) is admitted


async def test_run_serves_other_machines_only_by_a_token_that_they_can_have(program: Program) -> None:
    words = (
        "run",
        "--serve",
        "0.0.0.0:0",
        "--tls-cert",
        str(PEM),
        "--tls-key",
        str(PEM),
        "--",
        "touch",
        str(program.home / "started"),
    )
    done = await program.process(*words)
    assert (done.code, done.out) == (2, "")
    assert "give it by --token-file" in done.err
    assert not (program.home / "started").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("demo",), "give the host tokens"),
        (("demo", "--token-file", "T"), "for TLS"),
        (("bridge", "codex+ws://127.0.0.1:9"), "for TLS"),
        (
            ("bridge", "codex+ws://127.0.0.1:9", "--tls-cert", str(PEM), "--tls-key", str(PEM)),
            "give it by --serve-token-file",
        ),
        (("bridge", "codex+ws://127.0.0.1:9", "--tls-cert", str(PEM)), "--tls-cert and --tls-key come together"),
        (("demo", "--tls-key", "none", "--tls-cert", str(PEM), "--token-file", "T"), "there is no such file"),
    ],
)
async def test_what_serves_other_machines_keeps_the_same_rules(
    program: Program, words: tuple[str, ...], says: str
) -> None:
    token = program.home / "ann.token"
    token.touch(mode=0o600)
    token.write_text("token-of-ann\n")
    told = [str(token) if word == "T" else word for word in words]
    done = await program.process(told[0], *told[1:], "--serve", "0.0.0.0:0")
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err


async def test_what_a_file_names_no_more_is_listed_read_and_deleted(program: Program) -> None:
    file = program.home / "floor.toml"
    old = "[[agent]]\nname = 'old'\ncommand = ['sh', '-c', 'echo said by the old one']\n"
    new = "[[agent]]\nname = 'new'\ncommand = ['true']\n"
    file.write_text(f"log = 'floor.db'\n{old}{new}")
    async with serving(program, "host", "floor.toml") as (_, url):
        await seen(program, url, {"old": "completed", "new": "completed"})
    file.write_text(f"log = 'floor.db'\n{new}")
    async with serving(program, "host", "floor.toml") as (_, url):
        await seen(program, url, {"old": "completed", "new": "completed"})
        (listed,) = [one for one in (await program("sessions", url, "--json")).records if one["session"] == "old"]
        assert listed["capabilities"] == ["delete"]
        assert "said by the old one" in (await program("events", url, "--session", "old")).out
        assert (await program("resume", url, "old")).code == 3
        unmeant = await program("delete", url, "old")
        assert (unmeant.code, "say --yes" in unmeant.err) == (2, True)
        done = await program("delete", url, "old", "--yes", "--wait", "10")
        assert (done.code, "effect seen" in done.out) == (0, True), done.err
    async with serving(program, "host", "floor.toml") as (_, url):
        assert [one["session"] for one in (await program("sessions", url, "--json")).records] == ["new"]
