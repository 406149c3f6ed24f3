"""What became of a message: its delivery and its answer, as the program that sent it waits for them."""

from __future__ import annotations

import asyncio

import pytest

from tests.sockets.host_kit import PATIENCE_S, until
from watchfloor.errors import NotDelivered
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.serving.server import Host
from watchfloor.host.sessions.mailbox import NoSuchRef
from watchfloor.protocol.frames import DoInterrupt, DoPause, DoResume, DoSend, DoStop
from watchfloor.words import Delivery, Lifecycle


class Desk:
    """An agent that works until it may go on, and then does what its newest message says."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.turns = 0

    async def __call__(self, run: Run, mail: tuple[MailItem, ...]) -> str:
        self.turns += 1
        while not self.go.is_set():
            mail = (*mail, *await run.checkpoint())
            await run.sleep(0.002)
        if mail and mail[-1].text == "break":
            raise RuntimeError("no disk")
        for item in mail:
            if item.text.startswith("ask "):
                await run.reply(item, f"the answer to {item.text[4:]}")
                await run.reply(item.ref, "a second answer, which comes too late")
        return "last words"


async def soon(host: Host, session: str, ref: str) -> str:
    async with asyncio.timeout(PATIENCE_S):
        return await host.response(session, ref)


async def test_an_answer_is_the_reply_or_else_the_last_words_of_the_turn() -> None:
    desk = Desk()
    async with Host() as host:
        session = host.add(FunctionHarness(desk), name="desk", id="desk")
        first = host.send(session, "hello")
        assert await host.delivery(session, first) is Delivery.STARTED
        asked = host.send(session, "ask me")
        assert await host.delivery(session, "2") is Delivery.STEERED
        waiting = [asyncio.create_task(soon(host, session, ref)) for ref in (first, asked, "#2")]
        queued = host.command(session, DoSend.model_validate({"text": "later", "priority": "queue"})).info["ref"]
        assert await host.delivery(session, str(queued)) is Delivery.QUEUED
        assert not any(task.done() for task in waiting)
        desk.go.set()
        assert await asyncio.gather(*waiting) == ["last words", "the answer to me", "the answer to me"]
        assert await soon(host, session, str(queued)) == "last words"
        assert await soon(host, session, first) == "last words"  # as often as anybody asks
        assert host.message(session, "#2").state.value == "consumed"


@pytest.mark.parametrize("how", ["interrupt", "stop"])
async def test_a_message_whose_turn_was_ended_is_never_answered(how: str) -> None:
    async with Host() as host:
        session = host.add(FunctionHarness(Desk()), name="desk", text="hello")
        await until(lambda: host.core.session(session).lifecycle is Lifecycle.RUNNING)
        waiting = asyncio.create_task(soon(host, session, "#1"))
        host.command(session, DoInterrupt() if how == "interrupt" else DoStop(kill=True))
        with pytest.raises(NotDelivered) as caught:
            await waiting
        assert caught.value.permanent
        assert caught.value.reason == ("interrupted" if how == "interrupt" else "stopped")
        assert await host.delivery(session, "#1") is Delivery.STARTED


async def test_one_that_waits_in_a_failed_session_is_answered_once_that_was_resumed() -> None:
    desk = Desk()
    async with Host() as host:
        session = host.add(FunctionHarness(desk), name="desk", text="break")
        desk.go.set()
        await until(lambda: host.core.session(session).lifecycle is Lifecycle.FAILED)
        with pytest.raises(NotDelivered, match="failed") as caught:
            await soon(host, session, "#1")
        assert caught.value.permanent
        ref = host.send(session, "and now?")
        assert await host.delivery(session, ref) is Delivery.QUEUED
        with pytest.raises(NotDelivered, match="no disk") as caught:
            await soon(host, session, ref)
        assert not caught.value.permanent
        host.command(session, DoResume())
        assert await soon(host, session, ref) == "last words"
        # The retry took the first one up as well, and came to its end this time.
        assert await soon(host, session, "#1") == "last words"


async def test_what_is_dropped_before_it_is_read_is_not_delivered() -> None:
    async with Host() as host:
        session = host.add(FunctionHarness(Desk()), name="desk", text="hello")
        await until(lambda: host.core.session(session).lifecycle is Lifecycle.RUNNING)
        host.command(session, DoPause())
        ref = host.send(session, "after the pause was asked for")
        assert await host.delivery(session, ref) is Delivery.QUEUED
        waiting = asyncio.create_task(soon(host, session, ref))
        await until(lambda: host.core.session(session).lifecycle is Lifecycle.PAUSED)
        host.command(session, DoStop(kill=True))
        with pytest.raises(NotDelivered, match="stopped"):
            await waiting


async def test_what_is_not_there_cannot_be_waited_for() -> None:
    async with Host() as host:
        session = host.add(FunctionHarness(Desk()), name="desk")
        with pytest.raises(NoSuchRef, match="none was sent"):
            await host.response(session, "#1")
        with pytest.raises(KeyError):
            await host.delivery("nobody", "#1")
        host.command(session, DoPause())
        ref = host.send(session, "never read")
        waiting = asyncio.create_task(soon(host, session, ref))
        await asyncio.sleep(0)
        host.remove(session)
        with pytest.raises(NotDelivered, match="gone"):
            await waiting
