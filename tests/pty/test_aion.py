"""Agents of an aion server in a real terminal, from the keys of the console to the agent."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tests.fixtures.aion.peer import Peer
from tests.live.aion_kit import PROGRAM, begin, server, url
from tests.peers.aion_server import AionServer
from tests.peers.aion_world import Axes, Flow
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, open_box, press_until, select

T = TypeVar("T")
SIZE = (130, 40)
KEYS = {"s": "send", "p": "pause", "r": "resume", "x": "interrupt", "X": "stop", "b": "budget", "R": "reseed"}
RUNS = r"running +└ work #0"


class Elsewhere:
    """A stand-in on an event loop of its own, beside the terminal."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.server = AionServer()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SLOW_S)

    def do(self, function: Callable[[], T]) -> T:
        async def called() -> T:
            return function()

        return self.run(called())


@contextmanager
def stand_in() -> Iterator[Elsewhere]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    elsewhere = Elsewhere(loop)
    try:
        elsewhere.run(elsewhere.server.__aenter__())
        yield elsewhere
    finally:
        elsewhere.run(elsewhere.server.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass(frozen=True)
class Agent:
    """An agent that waits to be told something, and what the server keeps of what it was told."""

    url: str
    heard: Callable[[], str]


@contextmanager
def waiting_agent() -> Iterator[Agent]:
    """On a real server where there is one, else on the stand-in."""
    if PROGRAM is None:
        with stand_in() as elsewhere:
            yield _on_stand_in(elsewhere)
        return
    with server("scripted") as peer:
        workflow = begin(peer, "say ready\nuntil finish\nsay thank you")
        yield Agent(url(peer), lambda: _kept(peer, workflow))


def _on_stand_in(elsewhere: Elsewhere) -> Agent:
    world = elsewhere.server.world

    def start() -> tuple[Flow, Axes]:
        flow = world.flow()
        axes = flow.work()
        flow.say(axes, "ready")

        def retried(flow: Flow, event: dict[str, Any]) -> None:
            """A cancelled attempt is followed by another one."""
            if event["type"] == "ActivityFailed" and event["data"]["attempt"] == 1:
                flow.retry(axes)

        world.history_listeners.append(retried)
        return flow, axes

    flow, _ = elsewhere.do(start)
    return Agent(elsewhere.server.url, lambda: json.dumps([*flow.history, *map(list, flow.transcripts.values())]))


def _kept(peer: Peer, workflow: str) -> str:
    found = [peer.post("/workflows/history", {"namespace": "default", "workflow_id": workflow, "limit": 500})]
    run = found[0]["events"][0]["data"]["run_id"]
    axes = {"namespace": "default", "workflow_id": workflow, "run_id": run, "activity_id": 0}
    found += [peer.post("/workflows/transcript", {**axes, "attempt": number}) for number in (1, 2)]
    return json.dumps(found)


def _shows(terminal: Terminal, what: str) -> bool:
    return re.search(what, terminal.screen(), re.MULTILINE) is not None


def test_an_agent_is_steered_and_cancelled(env: dict[str, str]) -> None:
    with waiting_agent() as agent, console(env, "connect", agent.url, size=SIZE) as terminal:
        terminal.wait_for(re.compile(RUNS), SLOW_S)
        select(terminal, "work #0")
        open_box(terminal, "s", "Steer this attempt")
        terminal.press("look twice", "enter")
        terminal.wait_for("heard (normal): look twice", SLOW_S)
        assert agent.heard().count("heard (normal): look twice") == 1

        press_until(terminal, "X", partial(_shows, terminal, "stop work #0"))
        press_until(terminal, "y", lambda: "cancelled" in agent.heard())
        terminal.wait_for(re.compile(RUNS), SLOW_S)
        terminal.wait_until(lambda: agent.heard().count("ActivityStarted") == 2, SLOW_S)
        assert agent.heard().count('"text": "look twice"') == 1, "it was said once, and to the first attempt alone"


def test_nothing_reaches_an_agent_whose_worker_advertises_nothing(env: dict[str, str]) -> None:
    with stand_in() as elsewhere:
        server = elsewhere.server

        def start() -> None:
            flow = server.world.flow()
            flow.say(flow.work(primitives=()), "nobody tells me anything")

        elsewhere.do(start)
        with console(env, "connect", server.url, size=SIZE) as terminal:
            terminal.wait_for(re.compile(RUNS), SLOW_S)
            select(terminal, "work #0")
            terminal.wait_for("observe only")
            for key, what in KEYS.items():
                # A key that comes together with the one before it counts as pasted.
                press_until(
                    terminal, key, partial(_shows, terminal, f"{key} {what}: this session can only be observed")
                )
                # Had it opened anything, this would be taken by it.
                terminal.press("y")
        assert not server.interventions


def test_a_transcript_is_followed_until_one_reads_back_and_no_draft_reaches_another_agent(env: dict[str, str]) -> None:
    """Checks 12, 25 and 26."""
    with stand_in() as elsewhere:
        server = elsewhere.server

        def start() -> None:
            flow = server.world.flow()
            first = flow.work(0)
            for number in range(60):
                flow.say(first, f"line {number}")
            flow.say(flow.work(1), "me too")

        elsewhere.do(start)
        with console(env, "connect", server.url, size=SIZE) as terminal:
            terminal.wait_for("work #1", SLOW_S)
            select(terminal, "work #0")
            terminal.press("enter")
            terminal.wait_for("X Cancel this attempt")
            terminal.wait_for("line 59")
            terminal.press("pageup")
            terminal.wait_for("not following")
            terminal.press("escape")
            terminal.wait_for(re.compile(r"└ work #1"))

            # A key that acts is no key while one writes, and what acts asks before it does.
            open_box(terminal, "s", "send to work #0")
            terminal.press("Xhalf a thought")
            terminal.wait_for("Xhalf a thought")
            terminal.press("escape")
            terminal.wait_until(lambda: not _shows(terminal, "send to work #0"))
            select(terminal, "work #1")
            press_until(terminal, "s", partial(_shows, terminal, "send to work #1"))
            assert "half a thought" not in terminal.screen()
            terminal.press("escape")
            terminal.wait_until(lambda: not _shows(terminal, "send to work #1"))
        assert not server.interventions
