"""Agent functions on a real host: reseeding, forks, budgets, news and deleting, from a client and from the program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.sockets.host_kit import PATIENCE_S, until
from tests.sockets.plain_client import PlainClient
from watchfloor.harness.base import ConversationMessage, MailItem
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.host.serving.server import Host
from watchfloor.protocol.frames import DoNotify, DoReseed
from watchfloor.words import Lifecycle, OutcomeKind, ReseedMode


async def parrot(run: Run, mail: tuple[MailItem, ...]) -> str:
    """Says with how many messages, and by which model, it answers."""
    run.usage(input_tokens=10)
    return f"{len(run.messages)} messages, {run.model}"


async def shorter(messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
    if any(message.text == "never forget this" for message in messages):
        raise ValueError("it must not be forgotten")
    return [ConversationMessage("system", f"there were {len(messages)}")]


async def settled(host: Host, session: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await host.wait(session)


async def opened(host: Host) -> PlainClient:
    client = PlainClient(host.url, name="ann")
    await client.open()
    return client


async def test_a_client_reseeds_forks_and_deletes() -> None:
    async with Host() as host:
        await host.serve(announce=False)
        session = host.add(FunctionHarness(parrot, model="small", compact=shorter), name="parrot", text="one")
        await settled(host, session)
        client = await opened(host)
        profile = client.profiles[client.sessions[session]["profile"]]["capabilities"]
        assert set(profile["reseed"]["modes"]) == {mode.value for mode in ReseedMode}

        async def said(text: str) -> str:
            host.send(session, text)
            await settled(host, session)
            return host.core.session(session).last_words()

        assert await said("two") == "3 messages, small"
        assert (await client.command(session, "reseed", mode="model", to="large"))["outcome"] == "applied"
        assert await said("three") == "5 messages, large"
        assert (await client.command(session, "reseed", mode="rewind", to="2"))["outcome"] == "applied"
        assert await said("two again") == "3 messages, large"
        assert (await client.command(session, "reseed", mode="compact"))["outcome"] == "applied"
        await settled(host, session)
        assert [m.text for m in host.core.session(session).conversation.messages] == ["there were 4"]
        assert (await client.command(session, "reseed", mode="replace", text="once upon a time"))[
            "outcome"
        ] == "applied"

        fork = (await client.command(session, "fork", name="twin"))["info"]["session"]
        await client.until(lambda: fork in client.sessions)
        twin = client.sessions[fork]
        assert (twin["name"], twin["labels"]["forked_from"], twin["native_state"]) == ("twin", session, "never started")
        assert (await client.command(fork, "send", text="and then"))["outcome"] == "applied"
        await settled(host, fork)
        assert host.core.session(fork).last_words() == "2 messages, large"
        assert len(host.core.session(session).conversation.messages) == 1

        refused = await client.command(session, "reseed", mode="rewind", to="#77")
        assert (refused["outcome"], refused["reason"]) == ("invalid", "the conversation has no message #77")
        assert (await client.command(fork, "delete"))["outcome"] == "applied"
        await client.until(lambda: fork not in client.sessions)
        assert (await client.command(fork, "send", text="hello"))["outcome"] == "stale_target"
        assert session in host.core.roster
        await client.ws.close()


async def test_a_conversation_that_cannot_be_compacted_stays() -> None:
    async with Host() as host:
        session = host.add(FunctionHarness(parrot, compact=shorter), name="parrot", text="never forget this")
        await settled(host, session)
        handled = host.command(session, DoReseed(mode=ReseedMode.COMPACT))
        assert handled.outcome is OutcomeKind.APPLIED
        await settled(host, session)
        assert host.core.session(session).conversation.messages[0].text == "never forget this"


async def test_a_budget_suspends_and_raised_it_goes_on() -> None:
    calls: list[list[str]] = []

    async def spender(run: Run, mail: tuple[MailItem, ...]) -> str:
        calls.append([item.text for item in mail])
        for step in range(4):
            run.usage(input_tokens=10)
            await run.checkpoint()
            await run.say(f"step {step}")
        return "done"

    async with Host() as host:
        await host.serve(announce=False)
        session = host.add(FunctionHarness(spender), name="spender")
        client = await opened(host)
        assert (await client.command(session, "budget", tokens=25))["info"] == {"tokens": 25}
        assert (await client.command(session, "send", text="go"))["outcome"] == "applied"
        await client.until(lambda: client.sessions[session]["lifecycle"] == "paused")
        summary = client.sessions[session]
        assert summary["why"] == "the budget of 25 tokens is used up (30)"
        assert summary["result"]["stop_reason"] == "limit_reached"
        assert "raise it first" in summary["blocked"]["resume"]
        assert (await client.command(session, "resume"))["outcome"] == "invalid"
        assert (await client.command(session, "budget", tokens=500))["outcome"] == "applied"
        assert (await client.command(session, "resume"))["outcome"] == "applied"
        await settled(host, session)
        assert host.core.session(session).last_words() == "done"
        assert calls == [["go"], ["go"]]
        await client.ws.close()


async def test_a_supervisor_hears_of_its_workers() -> None:
    heard: list[tuple[str | None, str]] = []

    async def boss(run: Run, mail: tuple[MailItem, ...]) -> None:
        heard.extend((item.event, item.by) for item in mail)

    async def worker(run: Run, mail: tuple[MailItem, ...]) -> str:
        if mail[0].text == "break":
            raise RuntimeError("no disk")
        return "found it"

    async with Host() as host:
        supervisor = host.add(FunctionHarness(boss), name="boss")
        good = host.add(FunctionHarness(worker), name="good")
        bad = host.add(FunctionHarness(worker), name="bad")
        for session in (good, bad):
            assert host.command(session, DoNotify(subscriber=supervisor)).outcome is OutcomeKind.APPLIED
        host.send(good, "go")
        host.send(bad, "break")
        await until(lambda: len(heard) == 2)
        assert sorted(heard, key=str) == [("failed", bad), ("idle", good)]
        circle = host.command(supervisor, DoNotify(subscriber=good))
        assert circle.reason == "that closes a circle: good tells boss tells good"


async def test_what_is_still_being_compacted_does_not_keep_a_host_from_ending() -> None:
    async def never(messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
        await asyncio.Event().wait()
        return messages

    async with Host() as host:
        session = host.add(FunctionHarness(parrot, compact=never), name="parrot", text="one")
        await settled(host, session)
        host.command(session, DoReseed(mode=ReseedMode.COMPACT))
        assert not host.core.session(session).settled
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await host.wait(session)
    assert host.core.session(session).lifecycle is Lifecycle.IDLE
