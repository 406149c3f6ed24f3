"""The command line, whole, against a host in this process whose agents really act."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from console.cli.main import main
from watchfloor.harness.base import Decided, MailItem
from watchfloor.harness.function import FULL_CONTROL, FunctionHarness, Run
from watchfloor.harness.run import ALLOW_ONCE, DENY
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host
from watchfloor.protocol.model import Capabilities, Option, Subject
from watchfloor.words import OptionKind, Scope

T = TypeVar("T")

PATIENCE_S = 60.0
ANN, BOB, EYE = "token-of-ann", "token-of-bob", "token-of-eye"

ALWAYS = Option(id="always", label="Always", kind=OptionKind.ALLOW, scope=Scope.SESSION, persists=True)
ONCE = Option(id="once", label="Once", kind=OptionKind.ALLOW)
NO = Option(id="no", label="No", kind=OptionKind.DENY)
NEVER = Option(id="never", label="Never", kind=OptionKind.DENY, scope=Scope.SESSION, persists=True)


@dataclass(frozen=True, slots=True)
class Done:
    """What a command line printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def record(self) -> dict[str, Any]:
        (only,) = self.records
        return only


class Program:
    """The command line under an environment of its own; `home` holds all that it writes."""

    def __init__(self, home: Path, **variables: str) -> None:
        self.home = home
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("WATCHFLOOR_", "XDG_"))}
        self.env: dict[str, str] = {
            **ours,
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "WATCHFLOOR_RUNTIME_DIR": str(home / "run"),
            **variables,
        }

    def but(self, **variables: str) -> Program:
        """The same with other variables."""
        other = Program(self.home)
        other.env = {**self.env, **variables}
        return other

    async def start(self, *words: str, **rest: Any) -> asyncio.subprocess.Process:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "console.cli.main", *words, env=self.env, **{**pipes, **rest}
        )

    @asynccontextmanager
    async def running(self, *words: str, **rest: Any) -> AsyncIterator[asyncio.subprocess.Process]:
        """A command line that goes on until the test ends it; a test that fails leaves nothing behind."""
        process = await self.start(*words, **rest)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def process(self, *words: str, stdin: str = "") -> Done:
        """Run a command line to its end, as a program of its own."""
        process = await self.start(*words)
        try:
            output, errors = await asyncio.wait_for(process.communicate(stdin.encode()), PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return self._checked(Done(process.returncode or 0, output.decode(), errors.decode()))

    async def __call__(self, *words: str, stdin: str = "") -> Done:
        """The same in a thread of this process, which saves its start; one at a time."""
        return self._checked(await asyncio.wait_for(asyncio.to_thread(self._inside, words, stdin), PATIENCE_S))

    def _inside(self, words: Sequence[str], stdin: str) -> Done:
        output, errors = io.StringIO(), io.StringIO()
        before = logging.getLogger().handlers.copy()
        with (
            patch.dict(os.environ, self.env, clear=True),
            patch("sys.stdin", io.StringIO(stdin)),
            redirect_stdout(output),
            redirect_stderr(errors),
        ):
            try:
                code = main(words)
            finally:
                logging.getLogger().handlers[:] = before
        return Done(code, output.getvalue(), errors.getvalue())

    def _checked(self, done: Done) -> Done:
        assert "Traceback" not in done.err, done.err
        assert not (self.home / "state" / "watchfloor" / "watchfloor.log").exists(), "a fault of our own was logged"
        return done

    def audit(self) -> list[dict[str, Any]]:
        """All lines of all audit files."""
        files = sorted((self.home / "state" / "watchfloor" / "audit").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def writes(
    folder: Path, options: Sequence[Option] = (ALLOW_ONCE, DENY), capabilities: Capabilities = FULL_CONTROL
) -> FunctionHarness:
    """An agent that writes the file `done` for each message, once that is approved."""

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        text = "".join(item.text for item in mail)
        file = folder / "done"
        args = {"file": "done", "text": text}
        outcome = await run.tool("write", args, lambda: file.write_text(text), cwd=str(folder), options=options)
        return outcome.status.value

    return FunctionHarness(agent, capabilities=capabilities)


def asks(answers: list[Any]) -> FunctionHarness:
    """An agent that asks which branch to take, and keeps the answers."""

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        answer = await run.ask("Which branch?", ("main", "next"), free_text=True)
        answers.append((answer.option, answer.text))
        return "thanks"

    return FunctionHarness(agent)


def decides(subject: Callable[[Run], Subject], decisions: list[Any]) -> FunctionHarness:
    """An agent that asks for a decision on a subject of any kind, and keeps what was decided."""

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        end = await run._desk.request(subject(run), None)
        decisions.append((end.option, end.kind) if isinstance(end, Decided) else end)
        return "thanks"

    return FunctionHarness(agent)


def observed() -> FunctionHarness:
    """An agent that advertises nothing."""

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        await run.say("I am only watched")
        return "said"

    return FunctionHarness(agent, capabilities=Capabilities())


@asynccontextmanager
async def hosting(tokens: Mapping[str, Principal] | None = None, **rest: Any) -> AsyncIterator[Host]:
    async with Host(name="test", tokens=tokens, **rest) as host:
        await host.serve()
        yield host


async def until(found: Callable[[], T | None]) -> T:
    """What `found` finds, once it does: of what another program does nobody tells us."""
    async with asyncio.timeout(PATIENCE_S):
        while (it := found()) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return it


async def asked(host: Host, session: str) -> str:
    """The id of the session's open request, once there is one."""
    return await until(lambda: next((ref.id for ref in host.core.session(session).requests.refs()), None))


async def appears(path: Path) -> str:
    """The text of a file, once it is there and holds any."""
    return await until(lambda: path.read_text() or None if path.exists() else None)


def letter(pid: int) -> str:
    """The state of a process as the process table has it. Raises FileNotFoundError."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def gone(pid: int) -> bool | None:
    """True once the process has ended, even where nobody has asked how; None before."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        return True if letter(pid) in "ZX" else None
    except FileNotFoundError:
        return None  # no process table here, or it ended this moment
