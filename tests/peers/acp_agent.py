"""An agent of the Agent Client Protocol that does what its prompts say: one command a line.

Run as a program. `say T`, `think T`, `plan A, B`, `run CMD` (asks first), `later CMD` (asks when the turn is over),
`free CMD` (does not ask), `edit F T` (asks to write T to F), `hang` (until it is cancelled), `deaf` (not even then),
`fault` (answers the cancel with an error), `error`, `reason R`, `crash S`, `leave`, `mute` (closes its output),
`garbage`, `long N`, `unknown`, `stderr T`, `usage`, `tools` (asks for what this client does not have), `odd` (a
permission without options), `prompts` (how many it remembers).

`--load`, `--resume`: it takes up sessions, from the file named. `--auth`: it wants a login. `--version N`: of the
protocol. `--late F`: it says nothing before the file is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import acp
from acp import RequestError, schema
from acp.interfaces import Agent, Client

OPTIONS = [
    schema.PermissionOption(option_id="once", name="Allow once", kind="allow_once"),
    schema.PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class Scripted:
    """The agent's side of the connection."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.client: Client
        self.cancelled = asyncio.Event()
        self.calls = 0
        self.prompts: list[str] = []
        self.later: list[asyncio.Task[Any]] = []

    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        resume = schema.SessionResumeCapabilities() if self.options.resume else None
        return schema.InitializeResponse(
            protocol_version=self.options.version,
            agent_capabilities=schema.AgentCapabilities(
                load_session=self.options.load is not None,
                session_capabilities=schema.SessionCapabilities(resume=resume),
            ),
            auth_methods=[schema.AuthMethodAgent(id="web", name="Log in on the web")],
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        if self.options.auth:
            raise RequestError.auth_required()
        return schema.NewSessionResponse(session_id=f"ses-{os.getpid()}")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        self._remember()
        for prompt in self.prompts:
            await self.client.session_update(session_id, acp.update_user_message_text(prompt))
        await self.client.session_update(session_id, acp.update_agent_message_text("said before"))
        return schema.LoadSessionResponse()

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> schema.ResumeSessionResponse:
        self._remember()
        return schema.ResumeSessionResponse()

    def _remember(self) -> None:
        kept = self.options.load or self.options.resume
        if not kept.exists():
            raise RequestError.resource_not_found("session")
        self.prompts = json.loads(kept.read_text())

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        self.cancelled.clear()
        text = "\n".join(block.text for block in prompt)
        self.prompts.append(text)
        if (kept := self.options.load or self.options.resume) is not None:
            kept.write_text(json.dumps(self.prompts))
        turn = _Turn(self, session_id)
        for line in text.splitlines():
            word, _sep, rest = line.partition(" ")
            does: Callable[[str], Awaitable[schema.PromptResponse | None]] | None = getattr(turn, f"do_{word}", None)
            if does is None:
                await turn.do_say(f"no such command: {word}")
            elif (answer := await does(rest)) is not None:
                return answer
        return schema.PromptResponse(stop_reason="end_turn")


class _Turn:
    def __init__(self, agent: Scripted, session: str) -> None:
        self.agent = agent
        self.session = session

    async def tell(self, update: Any) -> None:
        await self.agent.client.session_update(self.session, update)

    async def do_say(self, text: str) -> None:
        for word in text.split(" "):
            await self.tell(acp.update_agent_message_text(word + " "))

    async def do_think(self, text: str) -> None:
        await self.tell(acp.update_agent_thought_text(text))

    async def do_plan(self, text: str) -> None:
        await self.tell(acp.update_plan([acp.plan_entry(step, status="in_progress") for step in text.split(", ")]))

    def _new_call(self) -> str:
        self.agent.calls += 1
        return f"call-{self.agent.calls}"

    async def do_run(self, command: str) -> schema.PromptResponse | None:
        call = self._new_call()
        asked = schema.ToolCallUpdate(
            tool_call_id=call,
            title=command,
            kind="execute",
            status="pending",
            raw_input={"command": command},
            content=[acp.tool_content(acp.text_block("because it was asked for"))],
        )
        answer = await self.agent.client.request_permission(self.session, asked, OPTIONS)
        outcome = answer.outcome
        if isinstance(outcome, schema.DeniedOutcome):
            return schema.PromptResponse(stop_reason="cancelled")
        if outcome.option_id == "no":
            await self.tell(acp.update_tool_call(call, status="failed"))
            await self.do_say("not done")
            return None
        await self._execute(call, command)
        return None

    async def do_later(self, command: str) -> None:
        async def run() -> None:
            await asyncio.sleep(0.1)
            await self.do_run(command)

        self.agent.later.append(asyncio.create_task(run()))

    async def do_free(self, command: str) -> None:
        call = self._new_call()
        raw = {"command": command}
        await self.tell(acp.start_tool_call(call, command, kind="execute", status="pending", raw_input=raw))
        await self._execute(call, command)

    async def _execute(self, call: str, command: str) -> None:
        await self.tell(acp.update_tool_call(call, status="in_progress"))
        done = await asyncio.to_thread(subprocess.run, ["/bin/sh", "-c", command], capture_output=True, text=True)
        content = [acp.tool_content(acp.text_block(done.stdout))]
        await self.tell(acp.update_tool_call(call, status="in_progress", content=content))
        await self.tell(acp.update_tool_call(call, status="completed", content=content))

    async def do_edit(self, rest: str) -> None:
        name, _, text = rest.partition(" ")
        call = self._new_call()
        change = [acp.tool_diff_content(name, text, "")]
        await self.tell(acp.start_tool_call(call, f"Edit {name}", kind="edit", content=change))
        asked = schema.ToolCallUpdate(tool_call_id=call)
        answer = await self.agent.client.request_permission(self.session, asked, OPTIONS)
        allowed = isinstance(answer.outcome, schema.AllowedOutcome) and answer.outcome.option_id != "no"
        if allowed:
            await asyncio.to_thread(Path(name).write_text, text)
        await self.tell(acp.update_tool_call(call, status="completed" if allowed else "failed"))

    async def do_hang(self, _: str) -> schema.PromptResponse:
        await self.agent.cancelled.wait()
        return schema.PromptResponse(stop_reason="cancelled")

    async def do_deaf(self, _: str) -> None:
        await asyncio.Event().wait()

    async def do_fault(self, _: str) -> None:
        await self.agent.cancelled.wait()
        raise RequestError.internal_error({"details": "'NoneType' object has no attribute 'startswith'"})

    async def do_error(self, _: str) -> None:
        raise RequestError.internal_error({"message": "the model is gone"})

    async def do_reason(self, reason: str) -> schema.PromptResponse:
        return schema.PromptResponse.model_construct(stop_reason=cast(Any, reason))

    async def do_crash(self, status: str) -> None:
        os._exit(int(status))

    async def do_leave(self, _: str) -> schema.PromptResponse:
        asyncio.get_running_loop().call_later(0.05, os._exit, 0)
        return schema.PromptResponse(stop_reason="end_turn")

    async def do_mute(self, _: str) -> None:
        os.close(1)
        await asyncio.Event().wait()

    def _print(self, data: bytes) -> None:
        os.set_blocking(1, True)
        while data:
            data = data[os.write(1, data) :]
        os.set_blocking(1, False)

    async def do_garbage(self, _: str) -> None:
        for line in (b"hello?", b"\xff\xfe\x00", b"[1, 2]", b'{"id": [1], "result": 3}', b"[" * 100_000, b"null", b"{"):
            await asyncio.to_thread(self._print, line + b"\n")
        await asyncio.to_thread(self._print, b'{"id": 1, "error": "x"}\n{"jsonrpc": "2.0", "method": "made/up"}\n')

    async def do_long(self, size: str) -> None:
        await asyncio.to_thread(self._print, b"x" * int(size) + b"\n")

    async def do_unknown(self, _: str) -> None:
        for update in ({"sessionUpdate": "made_up", "n": 1}, {"sessionUpdate": "tool_call"}, "text", None):
            params = {"sessionId": self.session, "update": update}
            line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})
            await asyncio.to_thread(self._print, line.encode() + b"\n")

    async def do_stderr(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    async def do_usage(self, _: str) -> schema.PromptResponse:
        await self.tell(schema.UsageUpdate(session_update="usage_update", used=120, size=1000))
        usage = schema.Usage(total_tokens=15, input_tokens=10, output_tokens=5)
        return schema.PromptResponse(stop_reason="end_turn", usage=usage)

    async def do_tools(self, _: str) -> None:
        for ask in (
            self.agent.client.read_text_file(self.session, "/etc/hostname"),
            self.agent.client.create_terminal(self.session, "true"),
        ):
            try:
                await ask
            except RequestError as error:
                await self.do_say(f"refused {error.code}")

    async def do_odd(self, _: str) -> None:
        try:
            await self.agent.client.request_permission(self.session, schema.ToolCallUpdate(tool_call_id="odd"), [])
        except RequestError as error:
            await self.do_say(f"refused {error.code}")

    async def do_prompts(self, _: str) -> None:
        await self.do_say(f"{len(self.agent.prompts)} prompts")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", type=Path)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--auth", action="store_true")
    parser.add_argument("--version", type=int, default=acp.PROTOCOL_VERSION)
    parser.add_argument("--late", type=Path)
    options = parser.parse_args()
    while options.late is not None and not options.late.exists():
        time.sleep(0.01)
    asyncio.run(acp.run_agent(cast(Agent, Scripted(options)), use_unstable_protocol=True))


if __name__ == "__main__":
    main()
