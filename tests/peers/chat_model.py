"""A model that does what it is told: a model server on loopback that speaks the chat completions API.

The newest user message that holds `do: [step, …]` is the script; each answer takes the next step, counted by the
assistant's turns since then. Steps: `{"run": "command"}` calls the shell tool, `{"say": "text"}` says something.
Without a script, and where no tools are offered (titles and the like), it says "ok".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

Json = dict[str, Any]

SHELLS = ("terminal", "bash", "shell")
_numbers = count(1)


def answer(asked: Json) -> Json:
    """The assistant's message to a request."""
    tools = [tool["function"]["name"] for tool in asked.get("tools") or ()]
    step = _step(asked.get("messages", ())) if tools else {}
    if "run" not in step:
        return {"role": "assistant", "content": step.get("say", "ok")}
    shell = next(name for name in SHELLS if name in tools)
    call = {"name": shell, "arguments": json.dumps({"command": step["run"]})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{next(_numbers)}", "type": "function", "function": call}],
    }


def _step(messages: list[Json]) -> Json:
    for at in range(len(messages) - 1, -1, -1):
        text = _text(messages[at].get("content"))
        if messages[at].get("role") == "user" and "do: " in text:
            steps, _ = json.JSONDecoder().raw_decode(text[text.rindex("do: ") + 4 :])
            done = sum(message.get("role") == "assistant" for message in messages[at + 1 :])
            return dict(steps[done]) if done < len(steps) else {}
    return {}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content) if isinstance(content, list) else ""


def _body(asked: Json) -> tuple[str, bytes]:
    message = answer(asked)
    reason = "tool_calls" if "tool_calls" in message else "stop"
    base = {"id": f"chat-{next(_numbers)}", "created": 0, "model": asked.get("model", "scripted")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        whole = {**base, "object": "chat.completion", "usage": usage, "choices": [choice]}
        return "application/json", json.dumps(whole).encode()
    for at, call in enumerate(message.get("tool_calls", ())):
        call["index"] = at
    chunks: list[Json] = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": usage},
    ]
    lines = [json.dumps({**base, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return "text/event-stream", "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, one request."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((line for line in head.lower().split("\r\n") if line.startswith("content-length:")), ":0")
        data = await reader.readexactly(int(length.partition(":")[2]))
        if head.startswith("POST") and "/chat/completions" in head.split("\r\n")[0]:
            kind, body = _body(json.loads(data))
            status = "200 OK"
        elif "/models" in head.split("\r\n")[0]:
            models = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
            status, kind, body = "200 OK", "application/json", json.dumps(models).encode()
        else:
            status, kind, body = "404 Not Found", "application/json", b"{}"
        line = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(line.encode() + body)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def chat_model() -> AsyncIterator[str]:
    """Serve; gives the base URL."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
