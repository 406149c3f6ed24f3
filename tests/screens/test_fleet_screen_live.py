"""By keys, on a real host over a real socket: what is pressed happens there, and only that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from console.screens.flows.drawer import Drawer
from tests.screens.live import Console, Relay, colleague, decide, watching
from tests.screens.stage import SMALL
from tests.screens.widget_kit import lines
from tests.sockets.cli_kit import asks, hosting, observed, writes
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import FunctionHarness, Run
from watchfloor.harness.program import ProgramHarness
from watchfloor.host.serving.server import Host
from watchfloor.protocol.model import Choice, FieldType, FormField
from watchfloor.words import Lifecycle


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


def works() -> FunctionHarness:
    """An agent that works without end, in small steps."""

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> None:
        while True:
            for item in await run.checkpoint():
                await run.say(f"read: {item.text}")
            await run.sleep(0.01)

    return FunctionHarness(agent)


def listens() -> FunctionHarness:
    """An agent that repeats what it is told."""

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        return "heard: " + " ".join(item.text for item in mail)

    return FunctionHarness(agent)


async def test_approving_executes_the_call_and_the_trail_says_so(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    async with watching(host, tmp_path) as console:
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.armed()
        assert not (tmp_path / "done").exists()
        await console.press("a")
        await console.until(lambda: (tmp_path / "done").exists(), "the file appears")
        await console.until(lambda: "effect seen: the call" in console.trail, "the effect is shown")
        await console.until(lambda: console.trail.startswith("approve: sent "), "it has left")
        assert "acknowledged" in console.trail
        assert "approved by ann" in "\n".join(_lines(console))


async def test_denying_executes_nothing(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    async with watching(host, tmp_path) as console:
        await console.knows("writer")
        await console.asked("writer")
        await console.press("enter")
        await console.armed()
        await console.press("d")
        await console.until(lambda: "effect seen" in console.trail, "the effect is shown")
        assert "denied by ann" in "\n".join(_lines(console))
        assert not (tmp_path / "done").exists()


async def test_a_reason_reaches_the_agent(host: Host, tmp_path: Path) -> None:
    notes: list[str | None] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        outcome = await run.tool("write", {}, lambda: None)
        notes.append(outcome.note)
        return outcome.status.value

    host.add(FunctionHarness(agent), name="writer", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.armed()
        await console.press("D")
        assert "deny writer: why?" in console.asking
        await console.type("not on Friday")
        await console.press("enter")
        await console.until(lambda: notes, "the agent is told")
        assert notes == ["not on Friday"]


async def test_a_question_is_answered_by_choice(host: Host, tmp_path: Path) -> None:
    answers: list[Any] = []
    host.add(asks(answers), name="asker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("asker")
        await console.asked("asker")
        await console.press("i")
        await console.armed()
        await console.press("o")
        assert "Which branch?" in console.asking
        await _choose(console, "2")
        await console.until(lambda: answers, "the agent has its answer")
        assert answers in ([("next", None)], [(None, "next")])


async def test_a_question_is_answered_in_words(host: Host, tmp_path: Path) -> None:
    answers: list[Any] = []
    host.add(asks(answers), name="asker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("asker")
        await console.asked("asker")
        await console.press("i")
        await console.armed()
        await console.press("o")
        await _choose(console, "3")
        await console.until(lambda: "enter answers" in console.asking, "a text box opens")
        await console.type("dry run first")
        await console.press("enter")
        await console.until(lambda: answers, "the agent has its answer")
        assert answers == [(None, "dry run first")]


async def test_several_fields_are_asked_one_after_another(host: Host, tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        answer = await run.ask(
            "Set up the database",
            free_text=False,
            fields=(
                FormField(name="size", type=FieldType.NUMBER, label="Gigabytes"),
                FormField(name="wipe", type=FieldType.BOOL, label="Wipe it first?"),
                FormField(
                    name="extras",
                    type=FieldType.MANY,
                    label="Extras",
                    choices=tuple(Choice(value=v, label=v) for v in ("backup", "replica", "metrics")),
                ),
                FormField(name="password", type=FieldType.SECRET, label="Password"),
            ),
        )
        answers.append(answer.fields)
        return "thanks"

    host.add(FunctionHarness(agent), name="asker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("asker")
        await console.asked("asker")
        await console.press("i")
        await console.armed()
        await console.press("o")
        await console.type("many")
        await console.press("enter")
        await console.until(lambda: "a number is wanted" in console.asking, "what is wrong is said")
        await console.press(*["backspace"] * 4)
        await console.type("40")
        await console.press("enter")
        await console.until(lambda: "Wipe it first?" in console.asking, "the next field")
        await _choose(console, "n")
        await console.press("enter")
        await console.until(lambda: "Extras" in console.asking, "the next field")
        await _wait_armed(console)
        await console.press("1", "3", "enter")
        await console.until(lambda: "Password" in console.asking, "the next field")
        await console.type("s3cret")
        assert "s3cret" not in console.text() + console.asking
        await console.press("enter")
        await console.until(lambda: "enter sends: Gigabytes 40" in console.asking, "all of it")
        assert "Password given, not shown" in console.asking
        await _wait_armed(console)
        await console.press("enter")
        await console.until(lambda: answers, "the agent has its answers")
        assert answers == [{"size": 40, "wipe": False, "extras": ["backup", "metrics"], "password": "s3cret"}]
        await console.pilot.pause()
        assert not any("s3cret" in file.read_text() for file in (tmp_path / "audit").glob("*.jsonl"))


async def test_a_message_goes_where_the_prompt_says(host: Host, tmp_path: Path) -> None:
    host.add(listens(), name="listener")
    host.add(works(), name="worker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("listener", "worker")
        await console.state("worker", Lifecycle.RUNNING)
        await console.select("worker")
        await console.press("s")
        assert "send to worker (local)" in console.asking
        assert "now: steers the running turn" in console.asking
        await console.type("ab dsq")
        await console.press("enter")
        await console.until(lambda: "read by the agent" in console.trail, "the message is read")
        await console.select("listener")
        await console.paused()
        await console.press("s")
        assert "now: starts a turn" in console.asking
        await console.type("hi")
        await console.press("enter")
        await console.state("listener", Lifecycle.IDLE)
        await console.until(lambda: _said(console, "listener", "heard: hi"), "it answers")
        assert _said(console, "worker", "read: ab dsq")


async def test_pause_and_resume(host: Host, tmp_path: Path) -> None:
    host.add(works(), name="worker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("worker")
        await console.state("worker", Lifecycle.RUNNING)
        await console.press("p")
        await console.state("worker", Lifecycle.PAUSED)
        await console.until(lambda: "effect seen: paused" in console.trail, "the effect is shown")
        await console.press("s")
        assert "now: queues until it is resumed" in console.asking
        await console.press("escape")
        await console.paused()
        await console.press("r")
        await console.state("worker", Lifecycle.RUNNING)
        await console.until(lambda: "resume: " in console.trail and "effect seen" in console.trail, "resumed")


async def test_interrupt_ends_the_turn(host: Host, tmp_path: Path) -> None:
    host.add(works(), name="worker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("worker")
        await console.state("worker", Lifecycle.RUNNING)
        await console.until(lambda: console.session("worker").turn, "a turn runs")
        await console.press("x")
        await console.state("worker", Lifecycle.IDLE)
        await console.until(lambda: "effect seen: the turn has ended" in console.trail, "the effect is shown")


async def test_stop_is_confirmed_and_names_its_target(host: Host, tmp_path: Path) -> None:
    host.add(works(), name="worker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("worker")
        await console.state("worker", Lifecycle.RUNNING)
        await console.press("X")
        assert "stop worker (local), attempt 1?" in console.asking
        await console.press("enter", "X", "a")  # none of these is a yes
        assert "stop worker (local), attempt 1?" in console.asking
        await console.press("escape")
        assert console.asking == ""
        await console.state("worker", Lifecycle.RUNNING)
        await console.press("X")
        await _choose(console, "y")
        await console.state("worker", Lifecycle.STOPPED)
        await console.until(lambda: "effect seen: stopped" in console.trail, "the effect is shown")
        await console.until(lambda: "r Relaunch" in console.footer, "the footer follows")


async def test_what_a_stop_does_to_a_program_is_said_as_it_is(host: Host, tmp_path: Path) -> None:
    host.add(ProgramHarness(["sleep", "600"]), name="job")
    async with watching(host, tmp_path) as console:
        await console.knows("job")
        await console.state("job", Lifecycle.RUNNING)
        await console.press("X")
        assert "the step that runs is cut off: it is told to end, and killed" in " ".join(console.asking.split())
        assert "finished first" not in console.asking


async def test_clearing_the_conversation_is_confirmed(host: Host, tmp_path: Path) -> None:
    id = host.add(listens(), name="listener", text="remember this")
    async with watching(host, tmp_path) as console:
        await console.knows("listener")
        await console.state("listener", Lifecycle.IDLE)
        assert host.core.session(id).conversation.messages
        await console.press("R")
        await _choose(console, "c")
        await console.until(lambda: "clear listener (local), attempt 1?" in console.asking, "it is asked")
        assert "forgets the whole conversation" in console.asking
        await _choose(console, "y")
        await console.until(lambda: not host.core.session(id).conversation.messages, "it forgets")


async def test_going_back_to_a_message_forgets_it_and_what_follows(host: Host, tmp_path: Path) -> None:
    id = host.add(listens(), name="listener", text="the first")
    async with watching(host, tmp_path) as console:
        await console.knows("listener")
        await console.state("listener", Lifecycle.IDLE)
        await console.press("s")
        await console.type("the second")
        await console.press("enter")
        await console.until(lambda: len(host.core.session(id).conversation.messages) == 4, "it hears the second")
        await console.state("listener", Lifecycle.IDLE)
        await console.paused()
        await console.press("R")
        await _choose(console, "r")
        await console.until(lambda: "#2  the second" in console.asking, "its messages are listed")
        await _choose(console, "1")
        await console.until(lambda: "rewind listener (local), attempt 1?" in console.asking, "it is asked")
        assert "forgotten: 2 messages in" in console.asking
        await _choose(console, "y")
        await console.until(lambda: "effect seen: the conversation was rewound" in console.trail, "it is shown")
        assert [message.text for message in host.core.session(id).conversation.messages] == [
            "the first",
            "heard: the first",
        ]


async def test_a_failed_session_is_retried_under_its_own_word(host: Host, tmp_path: Path) -> None:
    tries: list[int] = []

    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
        tries.append(run.attempt)
        if run.attempt == 1:
            raise ValueError("no luck")
        return "worked"

    host.add(FunctionHarness(agent), name="fragile", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("fragile")
        await console.state("fragile", Lifecycle.FAILED)
        await console.until(lambda: "r Retry (attempt 2)" in console.footer, "the label says what it does")
        await console.press("r")
        await console.state("fragile", Lifecycle.IDLE)
        assert tries == [1, 2]


@pytest.mark.parametrize("size", [SMALL, (160, 50)])
async def test_a_session_that_advertises_nothing_has_no_control_and_each_key_says_why(
    host: Host, tmp_path: Path, size: tuple[int, int]
) -> None:
    host.add(observed(), name="watched", text="go")
    async with watching(host, tmp_path, size=size) as console:
        await console.knows("watched")
        await console.state("watched", Lifecycle.IDLE)
        head = console.session("watched").head
        assert console.footer.split() == ["?", "keys", "q", "quit"]
        for key in "aAdDospPxrRX":
            # Each by itself, not as the letters of a word.
            console.app.fleet_screen.chosen()
            await console.press(key)
            said = console.notice or console.trail
            assert said.startswith(f"{key} "), (key, said)
            assert "can only be observed" in said
            assert console.asking == ""
        assert not console.app.hub.fleet.trails
        assert console.session("watched").head == head


async def test_a_card_dies_when_somebody_else_decides_and_says_who(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    async with watching(host, tmp_path) as console, colleague(host, tmp_path) as bob:
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.armed()
        await decide(bob, "writer", "deny")
        await console.until(lambda: "denied by bob" in "\n".join(_lines(console)), "the card is dead")
        assert "Approve once" not in "\n".join(_lines(console))
        assert console.carded()
        await console.press("a")
        assert "the request has ended" in console.notice
        await console.press("escape")
        assert not console.carded()
        assert not (tmp_path / "done").exists()


async def test_whoever_decides_second_is_told_who_was_first(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    async with (
        Relay(host.url) as relay,
        watching(host, tmp_path, url=relay.url) as console,
        colleague(host, tmp_path) as bob,
    ):
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.armed()
        # The console has not heard of the decision yet when its own leaves.
        relay.hold()
        await decide(bob, "writer", "allow")
        await console.press("a")
        await console.until(lambda: "no word yet" in console.trail, "it was sent")
        relay.release()
        await console.until(lambda: "already decided" in console.trail, "the loser is told")
        await console.until(lambda: "approved by bob" in "\n".join(_lines(console)), "the card says so as well")
        assert (tmp_path / "done").read_text() == "hello"


async def test_a_console_that_only_watches_sends_nothing(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    async with watching(host, tmp_path, read_only=True) as console:
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.until(console.carded, "the card opens")
        for key in "adDspxrX":
            await console.press(key)
            assert "this console only watches" in console.notice, key
            assert console.asking == ""
        assert "approve" not in console.footer
        assert not console.app.hub.fleet.trails


async def test_leaving_says_what_goes_on(host: Host, tmp_path: Path) -> None:
    host.add(works(), name="worker", text="go")
    async with watching(host, tmp_path) as console:
        await console.knows("worker")
        await console.state("worker", Lifecycle.RUNNING)
        await console.press("q")
        assert "quit?" in console.asking
        assert "1 session goes on without it" in console.asking
        await console.press("escape")
        assert console.asking == ""
        await console.press("ctrl+c")
        assert "quit?" in console.asking
        await console.press("ctrl+c")
        await asyncio.wait_for(_ended(console), 10)
        assert console.app.return_code in (0, None)
    assert host.core.session("worker").lifecycle is Lifecycle.RUNNING


async def _ended(console: Console) -> None:
    while console.app.is_running:  # noqa: ASYNC110 - the toolkit tells nobody
        await asyncio.sleep(0.01)


def _lines(console: Console) -> list[str]:
    return lines(console.card)


def _said(console: Console, name: str, text: str) -> bool:
    log = console.session(name).log
    return any(text in entry.text for entry in log.entries())


async def _wait_armed(console: Console) -> None:
    drawer = console.app.fleet_screen.query_one(Drawer)
    await console.until(lambda: drawer.armed, "the drawer takes keys")


async def _choose(console: Console, key: str) -> None:
    await _wait_armed(console)
    await console.press(key)
