"""A small MCP server on standard input and output: one tool that does as it is told, one that asks with a form."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

PATIENCE_S = 6
"""Seconds that an order of patience takes, in silence."""

FORM = {
    "type": "object",
    "properties": {
        "seat": {"type": "string", "title": "Seat", "enum": ["window", "aisle"]},
        "bags": {"type": "integer", "title": "Bags", "minimum": 0},
        "meal": {"type": "boolean", "title": "Meal", "default": True},
        "note": {"type": "string", "title": "Note"},
    },
    "required": ["seat"],
}
TOOLS = [
    {"name": name, "description": name, "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}}}
    for name in ("order", "form")
]


def reply(id: object, result: object) -> None:
    say({"id": id, "result": result})


def say(frame: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def main() -> None:
    called: object = None
    for line in sys.stdin:
        frame = json.loads(line)
        id, params = frame.get("id"), frame.get("params") or {}
        match frame.get("method"):
            case None:
                reply(called, text(json.dumps(frame.get("result") or frame.get("error"))))
            case "initialize":
                about = {"name": "forms", "version": "1"}
                version = params["protocolVersion"]
                reply(id, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
            case "tools/list":
                reply(id, {"tools": TOOLS})
            case "tools/call" if params["name"] == "form":
                called = id
                asked = {"message": "Which flight?", "requestedSchema": FORM}
                say({"id": "form-1", "method": "elicitation/create", "params": asked})
            case "tools/call":
                if (params.get("arguments") or {}).get("what") == "patience":
                    time.sleep(PATIENCE_S)
                reply(id, text(f"ordered {json.dumps(params.get('arguments'))}"))
            case _ if id is not None:
                reply(id, {})
            case _:
                pass


if __name__ == "__main__":
    main()
