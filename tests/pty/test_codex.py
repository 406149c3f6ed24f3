"""The console in a real terminal on Codex threads: what is approved happens, what is denied does not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.live.codex_kit import Peer, needs_codex, peer
from tests.peers.codex_client import script
from tests.peers.codex_server import FakeCodex, fake_codex
from tests.pty.elsewhere import elsewhere
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, hit, press_until

CARD = re.compile(r"^ \d+ of \d+  \S", re.MULTILINE)
"""The head of a card."""


def card(terminal: Terminal, about: str) -> None:
    """Open the card of the only request, and wait until it counts keys."""
    terminal.wait_for("1 needs you", SLOW_S)
    press_until(terminal, "i", lambda: CARD.search(terminal.screen()) and about in terminal.screen())
    terminal.wait_for(re.compile(r"^ +armed(  |$)", re.MULTILINE))


async def ask(live: Peer, name: str, word: str) -> None:
    """A new thread that asks whether a file may be made."""
    thread = await live.other.thread(live.work)
    step = {"run": f"touch {live.work / name}", "ask": "it has to be there"}
    since = len(live.other.frames)
    await live.other.turn(thread, script(step, {"say": word}))
    await live.other.told("item/commandExecution/requestApproval", thread, since)


async def ended(live: Peer, since: int) -> None:
    await live.other.told("turn/completed", since=since)


@pytest.mark.live
@needs_codex
def test_a_command_of_a_real_thread_is_approved_and_another_denied(env: dict[str, str]) -> None:
    with elsewhere() as away:
        live = away.run(away.stack.enter_async_context(peer()))
        away.run(ask(live, "approved", "it is there"))
        with console(env, "connect", live.url, size=(140, 40)) as terminal:
            card(terminal, "touch")
            assert not (live.work / "approved").exists()
            since = len(live.other.frames)
            hit(terminal, "a", "approved by")
            terminal.wait_until((live.work / "approved").exists, what="the file")
            terminal.wait_for("effect seen")
            away.run(ended(live, since))
            terminal.press("escape")
            since = len(live.other.frames)
            away.run(ask(live, "denied", "then without it"))
            card(terminal, "denied")
            hit(terminal, "d", "denied by")
            terminal.wait_for("effect seen")
            away.run(ended(live, since))
            assert not (live.work / "denied").exists()


async def waiting(server: FakeCodex, thread: str) -> int:
    server.thread(thread, info={"name": "worker"})
    await server.begin_turn(thread)
    return await server.ask_command(thread)


async def settle(server: FakeCodex, thread: str, number: int, status: str) -> Any:
    answer = await server.answered(number)
    await server.end_command(thread, status)
    await server.end_turn(thread)
    return answer


@pytest.mark.parametrize(
    ("key", "decision", "status", "word"),
    [("a", "accept", "completed", "approved by"), ("d", "decline", "declined", "denied by")],
)
def test_a_key_is_the_decision_that_the_server_gets(
    env: dict[str, str], key: str, decision: str, status: str, word: str
) -> None:
    with elsewhere() as away:
        server = away.run(away.stack.enter_async_context(fake_codex()))
        number = away.run(waiting(server, "t1"))
        with console(env, "connect", server.url, size=(140, 40)) as terminal:
            card(terminal, "make")
            press_until(terminal, key, lambda: away.call(lambda: number in server.answers))
            assert away.run(settle(server, "t1", number, status)) == {"decision": decision}
            terminal.wait_for(word)
            terminal.wait_for("effect seen")


def test_a_wrong_token_is_told_with_what_to_do(env: dict[str, str]) -> None:
    with elsewhere() as away:
        server = away.run(away.stack.enter_async_context(fake_codex(token="right")))
        with console(env, "connect", server.url, size=(140, 40)) as terminal:
            terminal.wait_for("refused", SLOW_S)
            terminal.wait_for("check the token")


def test_a_request_that_its_killed_server_took_along_takes_no_key(env: dict[str, str]) -> None:
    with elsewhere() as away:
        server = away.run(away.stack.enter_async_context(fake_codex()))
        away.run(waiting(server, "t1"))
        with console(env, "connect", server.url, size=(140, 40)) as terminal:
            card(terminal, "make")
            away.run(server.restart())
            terminal.wait_for("the request is withdrawn", SLOW_S)
            hit(terminal, "a", "a approve: nothing waits for approval")
            assert (server.answers, server.late) == ({}, [])


def test_what_a_newer_server_asks_is_shown_as_such_and_takes_no_key(env: dict[str, str]) -> None:
    with elsewhere() as away:
        server = away.run(away.stack.enter_async_context(fake_codex()))
        server.thread("t1", info={"name": "worker"})
        away.run(server.begin_turn("t1"))
        away.run(server.ask("t1", "item/hologram/requestApproval", itemId="h1"))
        with console(env, "connect", server.url, size=(140, 40)) as terminal:
            terminal.wait_for("1 needs you", SLOW_S)
            press_until(terminal, "i", lambda: "answer it in another client" in terminal.screen())
            terminal.press("a")
            hit(terminal, "d", "it offers no option to deny")
            assert (server.answers, server.late) == ({}, [])
