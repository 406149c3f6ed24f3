"""Workers of a real aion server: one that stops to answer, one that offers everything, and one that offers nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.connectors.aion import offers
from tests.fixtures.aion.peer import PEERS, Peer
from tests.live.aion_kit import Console, console, needs_aion, server
from tests.live.aion_kit import begin as begin_there
from watchfloor.protocol.events import Notice, RequestResolved
from watchfloor.protocol.frames import DoAct, DoApprove, DoBudget, DoPause, DoResume, DoSend, DoStop
from watchfloor.words import OutcomeKind, Primitive, RequestState

APPLIED = OutcomeKind.APPLIED
WORKER = Path(os.environ.get("AION_SCRIPTED_WORKER", PEERS / "aion-worker" / "bin" / "scripted-worker"))
EVERYTHING = "inject,cancel,pause,budget,approve"
FIVE = {Primitive.SEND, Primitive.STOP, Primitive.PAUSE, Primitive.RESUME, Primitive.BUDGET, Primitive.APPROVE}
pytestmark = [pytest.mark.live, needs_aion]
needs_worker = pytest.mark.skipif(
    not WORKER.is_file(), reason="no worker that says itself what it offers: see tests/fixtures/aion/README.md"
)


async def test_a_worker_that_stops_to_answer_is_shown_as_blocked_until_it_is_restarted() -> None:
    with server("scripted") as peer:
        async with console(peer) as seen:
            mute = await seen.begin("say ready\nmute\nsleep 300")
            other = await seen.begin("say ready\nuntil finish\nsay thank you")
            for id in (mute, other):
                await seen.until(lambda id=id: "ready" in seen.texts(id))  # type: ignore[misc]
            lost = await seen.do(mute, DoSend(text="hello"))
            assert lost.outcome is OutcomeKind.UNKNOWN
            assert "do not repeat" in (lost.reason or "")
            await seen.until(lambda: all(set(seen.told[id]["blocked"]) == {"send", "stop"} for id in (mute, other)))
            assert (await seen.do(other, DoSend(text="finish"))).outcome is OutcomeKind.INVALID
            assert (await seen.do(other, DoAct(act=offers.RESTART_WORKER, fields={}))).outcome is APPLIED
            await seen.until(lambda: not seen.told[other]["blocked"])
            await seen.until(lambda: any(event.code == "new_agent" for event in seen.of(other, Notice)))
            await seen.reads(other, "running")
            await seen.until(lambda: seen.texts(other).count("ready") == 2)
            assert (await seen.do(other, DoSend(text="please finish"))).outcome is APPLIED
            await seen.reads(other, "completed")


@contextmanager
def worker(peer: Peer, queue: str, offered: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of our own on a queue; it runs its agent inside itself and offers what it is told to."""
    document = peer.home / "documents" / "plain.awl"
    surface = peer.home / f"{queue}-{uuid.uuid4().hex[:6]}.json"
    found = json.loads(peer.run("worker", "agent", str(document), "--task-queue", queue, "--check"))
    surface.write_text(json.dumps(found))
    words = [str(WORKER), queue, str(surface), f"127.0.0.1:{peer.liminal}", "default", offered]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


async def begin(seen: Console, script: str, queue: str) -> str:
    body = {"namespace": "default", "workflow_type": "plain", "input": {"script": script, "queue": queue}}
    started = await asyncio.to_thread(seen.peer.post, "/workflows/start", body)
    workflow = started["workflow_id"]
    await seen.until(lambda: any(f"/{workflow}/" in id for id in seen.agents()))
    return next(id for id in seen.agents() if f"/{workflow}/" in id)


@needs_worker
async def test_all_five_primitives_reach_an_agent_and_its_question_is_decided() -> None:
    with server("plain") as peer:
        async with console(peer) as seen:
            id = await begin(seen, "long", "open")
            await seen.until(lambda: "NO_LIVE_POLLERS" in (seen.told[id].get("why") or ""))
            with worker(peer, "open", EVERYTHING):
                await seen.reads(id, "waiting")
                assert set(seen.capabilities(id).advertised()) == FIVE
                (request,) = seen.summary(id).requests
                assert seen.requests[request.id].read().actions[0].text == "deploy to staging"
                for do in (DoPause(), DoResume(), DoBudget(tokens=20_000, turns=12)):
                    assert (await seen.do(id, do)).outcome is APPLIED
                deny = DoApprove(request=request.id, option="deny", digest=request.digest, note="not on a Friday")
                assert (await seen.do(id, deny)).outcome is APPLIED
                await seen.until(lambda: seen.of(id, RequestResolved))
                (resolved,) = seen.of(id, RequestResolved)
                assert (resolved.state, resolved.option, resolved.by) == (RequestState.RESOLVED, "deny", "ann")
                assert (await seen.do(id, DoStop(reason="start over"))).outcome is APPLIED
                await seen.until(lambda: seen.told[id].get("attempt") == 2)


@needs_worker
async def test_an_agent_whose_worker_offers_nothing_is_only_watched() -> None:
    with server("plain") as peer, worker(peer, "sealed", ""):
        async with console(peer) as seen:
            id = await begin(seen, "nap", "sealed")
            await seen.reads(id, "running")
            assert seen.capabilities(id).advertised() == ()
            assert (seen.summary(id).why or "").startswith("observe only")
            assert (await seen.do(id, DoSend(text="hello"))).outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
            await seen.reads(id, "completed")


@needs_worker
async def test_a_worker_that_dies_leaves_its_attempt_to_the_next_one_with_other_rights() -> None:
    with server("plain") as peer:
        async with console(peer) as seen:
            with worker(peer, "open", EVERYTHING) as first:
                id = await begin(seen, "long", "open")
                await seen.reads(id, "waiting")
                first.kill()
                await seen.reads(id, "starting")
                assert seen.capabilities(id).advertised() == ()
            with worker(peer, "open", "inject,cancel"):
                await seen.until(lambda: any(event.code == "new_agent" for event in seen.of(id, Notice)))
                await seen.until(lambda: len(seen.capabilities(id).advertised()) == 2)
                await seen.until(lambda: [event.state for event in seen.of(id, RequestResolved)])
                assert seen.summary(id).attempt == 1
                (withdrawn,) = seen.of(id, RequestResolved)
                assert withdrawn.state is RequestState.WITHDRAWN


async def test_an_agent_that_outlives_its_attempts_is_said_and_can_be_ended() -> None:
    with server("hasty") as peer:
        async with console(peer) as seen:
            started = await asyncio.to_thread(begin_there, peer, "say ready\nuntil never", type="hasty")
            await seen.until(lambda: any(f"/{started}/" in id for id in seen.agents()))
            (id,) = [id for id in seen.agents() if f"/{started}/" in id]
            await seen.reads(id, "failed")
            await seen.until(lambda: "at work" in (seen.told[id].get("why") or ""))
            assert "ready" in seen.texts(id)
            done = await seen.do(id, DoAct(act=f"{offers.CANCEL_ATTEMPT}1", fields={}))
            assert done.outcome is APPLIED
            await seen.until(lambda: "attempt 1" not in (seen.told[id].get("why") or ""))
