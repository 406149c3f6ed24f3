"""Records what a real app-server says: `python -m tests.peers.codex_recorder` writes tests/fixtures/codex/.

Each recording is a list of lines, each with a way (">" from the client, "<" from the server) and a frame. Paths and
ports are those of no machine.
"""

from __future__ import annotations

import asyncio
import json
import platform
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.peers import codex_mcp
from tests.peers.codex_binary import CodexServer, binary, codex_server
from tests.peers.codex_client import CodexClient, Frame, codex_client, script
from tests.peers.model_server import model_server

FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "codex"
MCP: Final = (
    f"\n[mcp_servers.forms]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(codex_mcp.__file__)}]\n"
)
ASK: Final[Frame] = {"run": "touch made", "ask": "it has to be there"}
LONG: Final[Frame] = {"run": "echo begun; sleep 60", "with": {"yield_time_ms": 500}}
SLOW: Final[Frame] = {"say": "slowly, slowly, and still more slowly", "over_s": 30}
APPROVAL: Final = "item/commandExecution/requestApproval"
DONE: Final = "turn/completed"


class Stage:
    """A server and a client on it, for one scene."""

    def __init__(self, server: CodexServer, client: CodexClient) -> None:
        self.server = server
        self.client = client

    async def begin(self, *steps: Frame, **settings: object) -> str:
        thread = await self.client.thread(self.server.work, **settings)
        await self.client.turn(thread, script(*steps))
        return thread

    async def decide(self, method: str, result: Frame, since: int = 0) -> None:
        request = await self.client.told(method, since=since)
        await self.client.answer(request, result)


Scene = Callable[[Stage], Awaitable[None]]


async def approve(stage: Stage) -> None:
    thread = await stage.begin({"think": "let me see", **ASK}, {"say": "done"})
    await stage.decide(APPROVAL, {"decision": "accept"})
    await stage.client.told(DONE, thread)


async def decline(stage: Stage) -> None:
    thread = await stage.begin(ASK, {"say": "without it"})
    await stage.decide(APPROVAL, {"decision": "decline"})
    await stage.client.told(DONE, thread)


async def cancel(stage: Stage) -> None:
    thread = await stage.begin(ASK, {"say": "never said"})
    await stage.decide(APPROVAL, {"decision": "cancel"})
    await stage.client.told(DONE, thread)


async def files(stage: Stage) -> None:
    thread = await stage.begin({"write": {"new.txt": "one\ntwo"}}, {"say": "written"}, sandbox="read-only")
    await stage.decide("item/fileChange/requestApproval", {"decision": "acceptForSession"})
    await stage.client.told(DONE, thread)


async def files_cancelled(stage: Stage) -> None:
    thread = await stage.begin({"write": {"new.txt": "one"}}, {"say": "never said"}, sandbox="read-only")
    await stage.decide("item/fileChange/requestApproval", {"decision": "cancel"})
    await stage.client.told(DONE, thread)


async def question(stage: Stage) -> None:
    options = [{"label": "eu", "description": "Europe"}, {"label": "us", "description": "America"}]
    asked = {"id": "region", "header": "Region", "question": "Which one?", "options": options}
    plan = {"mode": "plan", "settings": {"model": "m", "reasoning_effort": None, "developer_instructions": ""}}
    thread = await stage.client.thread(stage.server.work)
    call = {"call": "request_user_input", "with": {"questions": [asked]}}
    await stage.client.turn(thread, script(call, {"say": "thanks"}), collaborationMode=plan)
    await stage.decide("item/tool/requestUserInput", {"answers": {"region": {"answers": ["eu"]}}})
    await stage.client.told(DONE, thread)


async def forms(stage: Stage) -> None:
    order = {"call": "order", "in": "mcp__forms", "with": {"what": "tea"}}
    thread = await stage.begin(order, {"call": "form", "in": "mcp__forms"}, {"say": "ordered"})
    yes: Frame = {"action": "accept", "content": {}, "_meta": None}
    for answer in (yes, yes, {**yes, "content": {"seat": "aisle", "bags": 2}}):
        await _next(stage, "mcpServer/elicitation/request", answer)
    await stage.client.told(DONE, thread)


async def _next(stage: Stage, method: str, answer: Frame) -> None:
    """Answer the newest request of this method that has no answer yet."""
    answered = {frame["id"] for way, frame in stage.client.frames if way == ">" and "result" in frame}

    def open_(frame: Frame) -> bool:
        return frame.get("method") == method and frame.get("id") not in answered

    await stage.client.answer(await stage.client.until(open_), answer)


async def interrupt(stage: Stage) -> None:
    thread = await stage.begin(LONG, SLOW)
    turn = (await stage.client.told("turn/started", thread))["params"]["turn"]["id"]
    await stage.client.told("item/agentMessage/delta", thread)
    await stage.client.call("turn/interrupt", threadId=thread, turnId=turn)
    await stage.client.told(DONE, thread)
    await stage.client.call("thread/backgroundTerminals/list", threadId=thread)
    await stage.client.call("thread/backgroundTerminals/clean", threadId=thread)
    await stage.client.until(lambda frame: _ended(frame, "commandExecution"))


def _ended(frame: Frame, kind: str) -> bool:
    return frame.get("method") == "item/completed" and frame["params"]["item"]["type"] == kind


async def interrupt_waiting(stage: Stage) -> None:
    thread = await stage.begin(ASK, {"say": "never said"})
    await stage.client.told(APPROVAL, thread)
    turn = (await stage.client.told("turn/started", thread))["params"]["turn"]["id"]
    await stage.client.call("turn/interrupt", threadId=thread, turnId=turn)
    await stage.client.told("serverRequest/resolved", thread)


async def failure(stage: Stage) -> None:
    thread = await stage.begin({"fail": 500})
    await stage.client.told(DONE, thread)
    since = len(stage.client.frames)
    await stage.client.turn(thread, script({"say": "well again"}))
    await stage.client.told(DONE, thread, since)


async def reseeds(stage: Stage) -> None:
    client = stage.client
    thread = await stage.begin({"say": "one"})
    first = await client.told(DONE, thread)
    since = len(client.frames)
    await client.turn(thread, script({"say": "two"}))
    second = await client.told(DONE, thread, since)
    assert first != second
    await client.call("thread/revert", threadId=thread, beforeTurnId=second["params"]["turn"]["id"])
    await client.told("thread/reverted", thread)
    await client.call("thread/settings/update", threadId=thread, model="another")
    await client.told("thread/settings/updated", thread)
    since = len(client.frames)
    await client.call("thread/compact/start", threadId=thread)
    await client.told(DONE, thread, since)
    fork = await client.call("thread/fork", threadId=thread, excludeTurns=True)
    await client.call("thread/name/set", threadId=fork["thread"]["id"], name="a fork")
    await client.call("thread/archive", threadId=fork["thread"]["id"])
    await client.call("thread/unarchive", threadId=fork["thread"]["id"])
    await client.call("thread/delete", threadId=fork["thread"]["id"])
    await client.told("thread/deleted")


async def queue(stage: Stage) -> None:
    client = stage.client
    thread = await stage.begin({"run": "sleep 1"}, {"say": "first"})
    text = {"type": "text", "text": script({"say": "second"}), "text_elements": []}
    await client.call("thread/queue/add", threadId=thread, input=[text], clientUserMessageId="m-1")
    await client.call("thread/queue/list", threadId=thread)
    await client.until(lambda frame: _ended(frame, "agentMessage") and frame["params"]["item"]["text"] == "second")
    said = next(n for n, (_, frame) in enumerate(client.frames) if '"text": "second"' in json.dumps(frame))
    await client.told(DONE, thread, said)


async def goal(stage: Stage) -> None:
    client = stage.client
    thread = await stage.begin({"say": "one"})
    await client.told(DONE, thread)
    since = len(client.frames)
    objective = script({"say": "on it", "wait_s": 1})
    await client.call("thread/goal/set", threadId=thread, objective=objective, origin="user")
    await client.told("turn/started", thread, since)
    await client.call("thread/goal/set", threadId=thread, status="paused", origin="user")
    await client.told(DONE, thread, since)
    await client.call("thread/goal/clear", threadId=thread, origin="user")
    await client.told("thread/goal/cleared", thread)


async def sub_agent(stage: Stage) -> None:
    task = script({"say": "small work done"}, about="a small work")
    spawn = {"call": "spawn_agent", "in": "multi_agent_v1", "with": {"message": task}}
    thread = await stage.begin(spawn, {"run": "sleep 1"}, {"say": "delegated"})
    await stage.client.told(DONE, thread)


async def joined(stage: Stage) -> None:
    """What a client is told that comes while a request is open."""
    async with codex_client(stage.server.port, name="first") as first:
        thread = await first.thread(stage.server.work)
        await first.turn(thread, script(ASK, {"say": "done"}))
        await first.told(APPROVAL, thread)
        client = stage.client
        await client.call("thread/list", limit=10)
        await client.call("thread/resume", threadId=thread, excludeTurns=True)
        await client.call("thread/items/list", threadId=thread, sortDirection="desc", limit=100)
        await client.call("thread/turns/list", threadId=thread, limit=100)
        await stage.decide(APPROVAL, {"decision": "decline"})
        await client.told(DONE, thread)


SCENES: Final[tuple[Scene, ...]] = (
    approve,
    decline,
    cancel,
    files,
    files_cancelled,
    question,
    forms,
    interrupt,
    interrupt_waiting,
    failure,
    reseeds,
    queue,
    goal,
    sub_agent,
    joined,
)


async def record(scene: Scene, program: Path) -> list[tuple[str, Frame]]:
    """What one scene says."""
    with TemporaryDirectory(prefix="codex-", ignore_cleanup_errors=True) as folder:
        more = MCP if scene is forms else ""
        async with (
            model_server() as model,
            codex_server(program, Path(folder), model.url, more=more) as server,
            codex_client(server.port, name="watchfloor") as client,
        ):
            await scene(Stage(server, client))
            frames = list(client.frames)
        raw = json.dumps(frames, ensure_ascii=False)
        for real, said in ((folder, "/srv/codex"), (str(Path.cwd()), "/srv"), (sys.executable, "python3")):
            raw = raw.replace(real, said)
        for real, said in _noise():
            raw = raw.replace(real, said)
    raw = re.sub(r'("installationId": )"[^"]*"', r'\1"00000000-0000-0000-0000-000000000000"', raw)
    raw = raw.replace(f'"serverName": "{platform.node()}"', '"serverName": "host"')
    recorded: list[tuple[str, Frame]] = json.loads(raw)
    return recorded


def _noise() -> list[tuple[str, str]]:
    """What shells of this machine say by themselves."""
    return [(json.dumps("pyenv: cannot rehash: " + str(Path.home() / ".pyenv/shims") + " isn't writable\n")[1:-1], "")]


async def main() -> None:
    program = binary()
    assert program is not None, "run make peer-codex first"
    FOLDER.mkdir(parents=True, exist_ok=True)
    for scene in SCENES:
        frames = await record(scene, program)
        lines = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in frames]
        (FOLDER / f"{scene.__name__}.jsonl").write_text("\n".join(lines) + "\n")
        sys.stdout.write(f"{scene.__name__}: {len(lines)} frames\n")


if __name__ == "__main__":
    asyncio.run(main())
