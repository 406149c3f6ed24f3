"""The page on hosting agents: each program on it runs as it stands there, or is an example, which is run."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.sockets.test_function_examples import example

ROOT = Path(__file__).parents[2]
ACP_AGENT = [sys.executable, str(ROOT / "tests" / "peers" / "acp_agent.py")]
FUNCTION, FORMS, PROGRAM, ACP, PYDANTIC_AI, SUPERVISOR, STORED, OWN = range(8)


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "agents.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (FUNCTION, "approval.py"),
        (FORMS, "forms.py"),
        (ACP, "acp_agent.py"),
        (PYDANTIC_AI, "pydantic_ai_agent.py"),
        (SUPERVISOR, "supervisor.py"),
        (STORED, "stored_agent.py"),
        (OWN, "own_harness.py"),
    ],
)
def test_what_is_said_to_be_an_example_is_all_of_it(block: int, name: str) -> None:
    tree = ast.parse((ROOT / "examples" / name).read_text(encoding="utf-8"))
    assert isinstance(tree.body[0], ast.Expr), "it begins with what it is about"
    assert ast.dump(ast.parse(blocks()[block])) == ast.dump(ast.Module(tree.body[1:], tree.type_ignores))


def test_there_are_no_others() -> None:
    assert len(blocks()) == 8


async def test_the_program_runs(tmp_path: Path) -> None:
    script = tmp_path / "counter.py"
    script.write_text(blocks()[PROGRAM])
    async with example(str(script), tmp_path) as client:
        await client.until(lambda: any("step 3" in event.text for event in client.events("tool_output", "counter")))


async def test_the_agent_of_the_agent_client_protocol_runs(tmp_path: Path) -> None:
    async with example("acp_agent.py", tmp_path, *ACP_AGENT) as client:
        await client.until(lambda: "agent" in client.sessions)
        await client.do("send", "agent", text="run echo x >> out\nsay done")
        request = await client.request(None)
        await client.decide(request, "approve", option="once")
        await client.until(lambda: client.sessions["agent"].get("result") is not None)
        assert (tmp_path / "out").read_text() == "x\n"
        assert client.sessions["agent"]["result"]["final_message"] == "done "
