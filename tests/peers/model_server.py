"""A model that does what it is told: a model server on loopback that speaks the responses API.

The newest user message that holds `do: [step, …]` is the script; each answer takes the next step, counted by the tool
results since then. Without a script it says what it was told. Steps:

    {"say": "text", "over_s": 2}             say something, in pieces over that time
    {"think": "text", "say": "text"}         a summary of reasoning first
    {"run": "command", "ask": "why"}         run a command; with `ask` outside the sandbox, which needs an approval
    {"type": "text"}                         type into the command that was started last and still runs
    {"write": {"path": "text"}}              add files by a patch
    {"call": "tool", "in": "namespace", "with": {…}}
    {"fail": 500}                            answer with this HTTP status
    {"wait_s": 3, …}                         before the rest of the step

Messages that came after the script are repeated in what it says, in brackets, so that a test sees that they arrived;
it then says it at once.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final

PIECE: Final = 12
"""Characters of a streamed text that come together."""
_MARK: Final = "do: "
_RUNNING: Final = re.compile(r"running with session ID (\d+)")

Json = dict[str, Any]


class ModelServer:
    """`asked` keeps the body of every request for an answer, oldest first."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self._came = asyncio.Event()
        self.port = 0
        self._numbers = count(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def asked_again(self, before: int) -> None:
        """Wait until more than so many answers were asked for."""
        while len(self.asked) <= before:
            self._came.clear()
            await self._came.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:")), 0
            )
            body = await reader.readexactly(length)
            if head.startswith("POST") and head.split()[1].endswith("/responses"):
                await self._answer(json.loads(body), writer)
            else:
                _whole(writer, 200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
            await writer.drain()
        writer.close()

    async def _answer(self, body: Json, writer: asyncio.StreamWriter) -> None:
        self.asked.append(body)
        self._came.set()
        step, later = _step(body.get("input") or [])
        await asyncio.sleep(step.get("wait_s", 0))
        if "fail" in step:
            _whole(writer, step["fail"], {"error": {"message": "as scripted", "type": "server_error", "code": "boom"}})
            return
        if later and "say" in step:
            step = {**step, "say": f"{step['say']} [{' | '.join(later)}]", "over_s": 0}
        items = list(self._items(step))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        response: Json = {"id": self._id("resp"), "object": "response", "model": body.get("model"), "output": []}
        _event(writer, "response.created", response=response)
        for index, item in enumerate(items):
            async for kind, fields in _pieces(item, step.get("over_s", 0.0)):
                _event(writer, kind, output_index=index, **fields)
                await writer.drain()
        tokens = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
        details: Json = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        done = {**response, "status": "completed", "output": items, "usage": {**tokens, **details}}
        _event(writer, "response.completed", response=done)

    def _id(self, kind: str) -> str:
        return f"{kind}_{next(self._numbers):06d}"

    def _items(self, step: Json) -> Iterator[Json]:
        if "think" in step:
            summary = [{"type": "summary_text", "text": step["think"]}]
            yield {"type": "reasoning", "id": self._id("rs"), "summary": summary, "content": []}
        if "say" in step:
            content = [{"type": "output_text", "text": step["say"], "annotations": []}]
            yield {"type": "message", "id": self._id("msg"), "role": "assistant", "content": content}
        if (call := _call(step)) is not None:
            name, arguments = call
            named = {"namespace": step["in"]} if "in" in step else {}
            identity = {"type": "function_call", "id": self._id("fc"), "call_id": self._id("call")}
            yield {**identity, "name": name, "arguments": json.dumps(arguments), **named}


def _call(step: Json) -> tuple[str, Json] | None:
    if "write" in step:
        lines = ["*** Begin Patch"]
        for path, text in step["write"].items():
            lines += [f"*** Add File: {path}", *(f"+{line}" for line in text.splitlines())]
        lines.append("*** End Patch")
        patch = "\n".join(lines)
        return "exec_command", {"cmd": f"apply_patch <<'END'\n{patch}\nEND", **step.get("with", {})}
    if "run" in step:
        asks = {"sandbox_permissions": "require_escalated", "justification": step["ask"]} if "ask" in step else {}
        return "exec_command", {"cmd": step["run"], **asks, **step.get("with", {})}
    if "type" in step:
        return "write_stdin", {"session_id": step.get("session", 0), "chars": step["type"]}
    if "call" in step:
        return step["call"], step.get("with", {})
    return None


def _step(history: Any) -> tuple[Json, list[str]]:
    """The step that is due, and what was said since the script began."""
    script: list[Json] | None = None
    later: list[str] = []
    done, last = 0, ""
    for item in history if isinstance(history, list) else [{"role": "user", "content": history}]:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            done += 1
        elif kind == "message" and item.get("role") == "user":
            last = _text(item.get("content"))
            found = _script(last)
            if found is not None:
                script, done, later = found, 0, []
            else:
                later.append(last[-80:])
    if script is None:
        return {"say": f"you said: {last[-80:]}"}, []
    step = script[done] if done < len(script) else {"say": "the script is done"}
    running = _RUNNING.findall(json.dumps(history)) if "type" in step else []
    return ({**step, "session": int(running[-1])} if running else step), later


def _script(said: str) -> list[Json] | None:
    """The script in a message; a server may have escaped it as markup."""
    _, mark, rest = html.unescape(said).partition(_MARK)
    if not mark:
        return None
    try:
        script, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return None
    return script if isinstance(script, list) else None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


async def _pieces(item: Json, over_s: float) -> AsyncIterator[tuple[str, Json]]:
    """The events by which an item comes."""
    yield "response.output_item.added", {"item": {**item, **_BLANK.get(item["type"], {})}}
    match item["type"]:
        case "message":
            text = item["content"][0]["text"]
            parts = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
            for part in parts:
                yield "response.output_text.delta", {"item_id": item["id"], "content_index": 0, "delta": part}
                await asyncio.sleep(over_s / len(parts))
        case "reasoning":
            place = {"item_id": item["id"], "summary_index": 0}
            yield "response.reasoning_summary_part.added", {**place, "part": {"type": "summary_text", "text": ""}}
            yield "response.reasoning_summary_text.delta", {**place, "delta": item["summary"][0]["text"]}
        case "function_call":
            yield "response.function_call_arguments.delta", {"item_id": item["id"], "delta": item["arguments"]}
    yield "response.output_item.done", {"item": item}


_BLANK: Final[dict[str, Json]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
}


def _event(writer: asyncio.StreamWriter, kind: str, **fields: Any) -> None:
    writer.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())


def _whole(writer: asyncio.StreamWriter, status: int, body: Json) -> None:
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n"
    writer.write(head.encode() + b"connection: close\r\n\r\n" + text)


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    """A model server on a free port of loopback."""
    model = ModelServer()
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0, limit=1 << 24)
    model.port = server.sockets[0].getsockname()[1]
    try:
        yield model
    finally:
        server.close()
