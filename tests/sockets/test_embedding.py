"""A host inside of somebody's program: the program's terminal stays the program's."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import watchfloor
from watchfloor.logs import logger

FAILS = """
    import asyncio
    from watchfloor import FunctionHarness, Host

    async def agent(run, mail):
        raise LookupError("no such branch")

    async def main():
        async with Host() as host:
            await host.serve()
            session = host.add(FunctionHarness(agent), name="failing", text="go")
            print((await host.wait(session)).lifecycle)

    asyncio.run(main())
"""


def _run(*lines: str) -> tuple[str, str]:
    script = "\n".join([*lines, textwrap.dedent(FAILS)])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, done.stderr


def test_an_agent_that_fails_prints_nothing() -> None:
    assert _run() == ("failed\n", "")


def test_whoever_configures_logging_gets_its_traceback() -> None:
    output, errors = _run("import logging", "logging.basicConfig(format='%(name)s: %(message)s')")
    assert output == "failed\n"
    assert errors.startswith("watchfloor.harness.function: failing failed\nTraceback ")
    assert errors.endswith("LookupError: no such branch\n")


def test_every_logger_of_the_library_is_a_quiet_one() -> None:
    folder = Path(watchfloor.__file__).parent
    found = [path.name for path in folder.rglob("*.py") if re.search(r"\bgetLogger\b", path.read_text("utf-8"))]
    assert found == ["logs.py"]
    with pytest.raises(ValueError, match="'elsewhere' is not below 'watchfloor'"):
        logger("elsewhere")
