"""The least that can be done with a stream of events: receive each frame, and let pydantic validate it.

    python -m benchmarks.bare URL

Prints `took EVENTS SECONDS CPU_SECONDS` when the sender has sent everything. What the console takes in is measured
against this loop, which keeps nothing: its models are plain ones, for the kinds of event that are sent and no others.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol


class _Placed(BaseModel):
    at: int
    seq: int
    pos: int
    attempt: int


class Delta(BaseModel):
    kind: Literal["delta"]
    at: int
    item: str
    offset: int
    text: str


class Output(_Placed):
    kind: Literal["tool_output"]
    call: str
    text: str


class Call(_Placed):
    kind: Literal["tool_call"]
    call: str
    name: str
    arguments: dict[str, Any]


class Message(_Placed):
    kind: Literal["message"]
    item: str
    role: str
    text: str


class Lifecycle(_Placed):
    kind: Literal["lifecycle"]
    lifecycle: str


class Opened(_Placed):
    kind: Literal["request_opened"]
    request: str
    request_kind: str
    digest: str
    text: str


class Resolved(_Placed):
    kind: Literal["request_resolved"]
    request: str
    state: str
    option_kind: str
    by: str


Event = Annotated[
    Delta | Output | Call | Message | Lifecycle | Opened | Resolved,
    Field(discriminator="kind"),
]


class Events(BaseModel):
    type: Literal["events"]
    session: str
    epoch: str
    events: list[Event]


class Summary(BaseModel):
    id: str


class Sessions(BaseModel):
    type: Literal["sessions"]
    sessions: list[Summary]


class Other(BaseModel):
    type: Literal["welcome", "profiles", "watching", "request"]


FRAME: TypeAdapter[Events | Sessions | Other] = TypeAdapter(
    Annotated[Events | Sessions | Other, Field(discriminator="type")]
)


async def take(url: str) -> tuple[int, float, float]:
    """How many events came, in how many seconds, and in how many of the processor."""
    validate = FRAME.validate_json
    events, since, cpu = 0, 0.0, 0.0
    async with connect(
        url, subprotocols=[Subprotocol("watchfloor.v1")], compression=None, ping_interval=None, max_size=2**24
    ) as ws:
        await ws.send(json.dumps({"type": "hello", "client": "bare", "version": "1"}))
        await ws.send(json.dumps({"type": "watch", "session": "*"}))
        gc.collect()
        gc.freeze()
        while True:
            frame = validate(await ws.recv(decode=False))
            if isinstance(frame, Events):
                if not events:
                    since, cpu = time.monotonic(), time.process_time()
                events += len(frame.events)
            elif isinstance(frame, Sessions) and frame.sessions[-1].id == "the-end":
                return events, time.monotonic() - since, time.process_time() - cpu


if __name__ == "__main__":
    taken, took, spent = asyncio.run(take(sys.argv[1]))
    print(f"took {taken} {took:.3f} {spent:.3f}")
