"""The console in a real terminal on bamboo sessions: a question is answered, a command is denied."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.live.bamboo_kit import API, PROGRAMS, Live, live, needs_bamboo
from tests.peers.bamboo_server import NEW_LINE, OLD_LINE, fake_bamboo
from tests.pty.elsewhere import elsewhere
from tests.pty.harness import Terminal
from tests.pty.kit import SLOW_S, console, hit, press_until
from tests.sockets.bamboo_kit import ASK_NAME, SAY, TOUCH, begin, go_on, script

PLAN = {"call": "ExitPlanMode", "args": {"plan": "First look."}, "id": "call_plan"}


def card(terminal: Terminal, about: str) -> None:
    """Open the card of the only request, seen to its end, and wait until it counts keys."""
    terminal.wait_for("1 needs you", SLOW_S)
    press_until(terminal, "i", lambda: about in terminal.screen())
    for _ in range(20):  # its beginning first: what comes while the card is opened may have moved it on
        terminal.press("home")
        terminal.wait_until(lambda: re.search(r"^ +line 1-", terminal.screen(), re.MULTILINE), 1.2, or_fail=False)
        terminal.press("end")
        if terminal.wait_until(
            lambda: re.search(r"^ +armed(  |$)", terminal.screen(), re.MULTILINE), 1.2, or_fail=False
        ):
            return
    raise AssertionError(f"never armed:\n{terminal.screen()}")


def choose(terminal: Terminal, choice: str) -> None:
    """Answer the question of the open card by one of its choices."""
    press_until(terminal, "o", lambda: re.search(rf"\b(\d) +{re.escape(choice)}", terminal.screen()))
    found = re.search(rf"\b(\d) +{re.escape(choice)}", terminal.screen())
    assert found, terminal.screen()
    press_until(terminal, found[1], lambda: "answered by" in terminal.screen())


@pytest.mark.parametrize("line", [OLD_LINE, NEW_LINE])
def test_a_question_is_answered_and_a_command_denied(env: dict[str, str], line: str) -> None:
    with elsewhere() as away:
        server = away.run(away.stack.enter_async_context(fake_bamboo(line)))
        session = away.call(lambda: begin(server, ASK_NAME, SAY))
        with console(env, "connect", f"bamboo+{server.url}", size=(140, 40)) as terminal:
            card(terminal, "Which name?")
            choose(terminal, "green")
            terminal.wait_for("effect seen", SLOW_S)
            terminal.wait_until(lambda: session.info.get("last_run_status") == "completed", SLOW_S)
            answered = next(one for one in session.messages if one["role"] == "tool")
            assert answered["content"] == "Selected response: green"
            terminal.press("escape")
            away.call(lambda: go_on(server, session, TOUCH, SAY))
            card(terminal, "touch it")
            hit(terminal, "d", "denied by")
            terminal.wait_for("effect seen", SLOW_S)
            terminal.wait_until(lambda: session.info.get("last_run_status") == "completed", SLOW_S)
            assert server.world.ran == []


async def status(server: Live, session: str) -> str:
    """How the session says that its last run ended."""
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        info = (await client.get(f"{API}/sessions/{session}")).json()["session"]
        return "" if info["is_running"] else str(info.get("last_run_status"))


async def ask(server: Live, session: str, *steps: dict[str, Any]) -> None:
    await server.post("/chat", {"session_id": session, "message": script(*steps)})
    await server.post(f"/sessions/{session}/execute", {})


@pytest.mark.live
@needs_bamboo
@pytest.mark.parametrize("line", list(PROGRAMS) or ["none"])
def test_a_real_session_goes_on_when_answered_and_does_not_run_what_is_denied(env: dict[str, str], line: str) -> None:
    with elsewhere() as away:
        server = away.run(away.stack.enter_async_context(live(line)))
        session = away.run(server.session())
        away.run(ask(server, session, PLAN, {"say": "So be it."}))
        with console(env, "connect", f"bamboo+{server.url}", size=(140, 40)) as terminal:
            card(terminal, "Plan ready.")
            choose(terminal, "Stay in plan mode")
            terminal.wait_for("effect seen", SLOW_S)
            terminal.wait_until(lambda: away.run(status(server, session)) == "completed", SLOW_S)
            terminal.press("escape")
            file = server.work / "denied"
            away.run(ask(server, session, {"shell": f"touch {file}", "id": "call_no"}, {"say": "Not done."}))
            card(terminal, "touch")
            hit(terminal, "d", "denied by")
            terminal.wait_until(lambda: away.run(status(server, session)) == "completed", SLOW_S)
            assert not file.exists()
