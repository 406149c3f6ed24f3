"""Is the stand-in what a real aion server is? Everything that was recorded of one is asked of it again.

Where the two differ, the stand-in is wrong.
"""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.peers.aion_server import AionServer
from tests.peers.aion_world import FIXTURES, Json, recording

NAMES = sorted(path.stem for path in FIXTURES.glob("*.jsonl"))
READS = ("/workflows/history", "/workflows/transcript", "/workflows/transcripts", "/workflows/event")
SERVED = ("/whoami", "/build", "/namespaces", "/workflows/list", "/workflows/attempts", "/workflows/intervene",
          "/workflows/cancel", "/workflows/signal", "/workflows/reopen", *READS)  # fmt: skip
WORK = ("talk", "steer", "retry", "gate", "family", "loop", "caps", "failures", "restart", "primitives", "acp", "quiet")


async def ask(client: httpx.AsyncClient, request: Json) -> httpx.Response:
    given = {"content": request["text"].encode()} if "text" in request else {}
    if "body" in request:
        given = {"content": json.dumps(request["body"]).encode()}
    headers = {"content-type": "application/json", **request.get("headers", {})} if given else {}
    return await client.request(request["method"], request["path"], headers=headers, **given)


def test_there_are_recordings() -> None:
    assert len(NAMES) == 19


@pytest.mark.parametrize("name", WORK)
async def test_what_is_read_of_it_is_what_was_recorded(name: str) -> None:
    lines = [line for line in recording(name) if line["kind"] == "http" and line["response"]["status"] == 200]
    final = {_subject(line): line for line in lines if line["request"]["path"] in READS}
    async with AionServer() as server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
        server.world.load(name)
        compared = 0
        for line in final.values():
            if not _whole(server, line):
                continue
            answer = await ask(client, line["request"])
            assert answer.status_code == 200
            assert _sizeless(answer.json()) == _sizeless(line["response"]["body"]), line["request"]
            compared += 1
        assert compared >= 2


def _sizeless(body: Any) -> str:
    """Without the sizes of what was left out: names of folders are shorter in the recordings than they were."""
    return re.sub(r'"size_bytes": \d+', "", json.dumps(body, sort_keys=True))


def _subject(line: Json) -> str:
    body = dict(line["request"].get("body") or {})
    return f"{line['request']['path']} {json.dumps(body, sort_keys=True)}"


def _whole(server: AionServer, line: Json) -> bool:
    """Does the recording hold all that this answer is about, as it stood at its end?"""
    asked, answer = line["request"]["body"], line["response"]["body"]
    flow = server.world.flows.get(asked["workflow_id"])
    if flow is None:
        return False
    match line["request"]["path"]:
        case "/workflows/history":
            return bool(answer["head_seq"] == len(flow.history))
        case "/workflows/transcript":
            kept = flow.transcripts.get((asked["run_id"], asked["activity_id"], asked["attempt"]), [])
            return bool(answer["head_seq"] == len(kept))
        case "/workflows/transcripts":
            rows = {(row["run_id"], row["activity_id"], row["attempt"]): row["head"] for row in answer["streams"]}
            kept_of = {axes: len(kept) for axes, kept in flow.transcripts.items() if axes[0] == asked["run_id"]}
            return rows == kept_of
        case _:
            return True


async def test_the_same_is_refused_in_the_same_way() -> None:
    async with AionServer() as server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
        server.world.namespaces = ["default"]
        compared = 0
        for line in recording("surface"):
            if line["kind"] != "http" or not _answers(line):
                continue
            answer = await ask(client, line["request"])
            recorded = line["response"]
            got = (answer.status_code, answer.headers.get("content-type"), _code(answer.text))
            wanted = (recorded["status"], recorded["content_type"], _code(json.dumps(recorded.get("body", ""))))
            assert got == wanted, line["request"]
            compared += 1
        assert compared >= 30


def _answers(line: Json) -> bool:
    """Is it a route that the stand-in has, or one that nobody has?"""
    path, method, status = line["request"]["path"], line["request"]["method"], line["response"]["status"]
    if path == "/namespaces" and method == "POST":
        return False
    return path in SERVED or (status in (404, 405) and "body" not in line["response"]) or path == "/events/stream"


def _code(text: str) -> tuple[Any, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return None, None
    return (body.get("code"), body.get("error_type")) if isinstance(body, dict) else (None, None)


async def test_an_attempt_is_intervened_on_with_the_recorded_answers() -> None:
    asked = [line for line in recording("steer") if line.get("request", {}).get("path") == "/workflows/intervene"]
    async with AionServer() as server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
        server.world.load("steer")
        (flow,) = server.world.flows.values()
        flow.live = {(flow.run, 0, 1): ("InjectMessage", "Cancel")}
        for line in asked:
            answer = await ask(client, line["request"])
            assert (answer.status_code, answer.json()) == (line["response"]["status"], line["response"]["body"])
        assert len(asked) >= 10


@pytest.mark.parametrize("name", ["surface", "auth"])
async def test_the_same_first_frames_are_refused_in_the_same_way(name: str) -> None:
    token = "a-token" if name == "auth" else None
    sockets: dict[int, list[Json]] = {}
    for line in recording(name):
        if line["kind"] == "ws":
            sockets.setdefault(line["socket"], []).append(line)
    async with AionServer(token=token) as server:
        compared = 0
        for lines in sockets.values():
            sent = [line["body"] for line in lines if line["event"] == "send"]
            got = [line["body"] for line in lines if line["event"] == "receive"]
            close = [line for line in lines if line["event"] == "close"]
            if not sent or not got or "error" not in got[0] or "cluster" in json.dumps(sent[0]):
                continue
            headers = {"authorization": f"Bearer {token}"} if token else {}
            url = f"ws://127.0.0.1:{server.port}/events/stream"
            async with connect(url, additional_headers=headers) as socket:
                await socket.send(sent[0] if isinstance(sent[0], str) else json.dumps(sent[0]))
                assert json.loads(await socket.recv())["error"]["code"] == got[0]["error"]["code"]
                with pytest.raises(ConnectionClosed):
                    await socket.recv()
                assert (socket.close_code, socket.close_reason) == (close[0]["code"], close[0]["reason"])
            compared += 1
        assert compared >= (7 if name == "surface" else 1)


async def test_every_transcript_is_sent_from_after_the_cursor_and_the_socket_stays_open() -> None:
    async with AionServer() as server:
        flow = server.world.flow()
        axes = flow.work()
        for text in ("one", "two", "three"):
            flow.say(axes, text)
        arm = {"namespace": "default", "workflow_id": flow.id, "run_id": flow.run, "activity_id": 0, "attempt": 1}
        async with connect(f"ws://127.0.0.1:{server.port}/events/stream") as socket:
            await socket.send(json.dumps({"subscription": {"transcript": arm | {"after_seq": 1}}}))
            first = json.loads(await socket.recv())
            assert (first["kind"], first["event"]["store_seq"], first["event"]["kind"]["text"]) == (
                "activity_event", 2, "three"
            )  # fmt: skip
            flow.complete(axes)
            flow.end()
            flow.say(axes, "late")
            assert json.loads(await socket.recv())["event"]["kind"]["text"] == "late"
