"""What the author of an agent gets wrong: said at once, by its kind, and with what to do; nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.kit import Writer, built, says, writes
from watchfloor import Agent, ExecuteRequest, FunctionHarness, Host, MailItem, NotSuspended, Run
from watchfloor.errors import NotPossible, StorageInUse, StorageReadOnly, WatchfloorError
from watchfloor.words import Lifecycle


def at_once(run: Run, mail: tuple[MailItem, ...]) -> str:
    return "not async"


async def takes_nothing() -> str:
    return "nothing"


async def echo(run: Run, mail: tuple[MailItem, ...]) -> str:
    return mail[-1].text


class Smaller:
    capabilities = None


WRONG: Any = {"nothing": takes_nothing, "none": None, "text": "x", "function": echo, "class": FunctionHarness}
WRONG |= {"number": 5, "tokens": {"secret": "ann"}}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: FunctionHarness(WRONG["nothing"]), r"takes_nothing\(\) .*cannot be called with a Run and its mail"),
        (lambda: FunctionHarness(WRONG["none"]), "an async function of a Run and its mail, not NoneType"),
        (lambda: Agent.builder().function(WRONG["text"]), "an async function of a Turn and its mail, not str"),
        (lambda: Agent.builder().tool(WRONG["text"]), "a tool is a function, not str"),
        (lambda: Host().add(WRONG["function"], name="x"), r"FunctionHarness\(echo\) makes one of an async function"),
        (lambda: Host().add(WRONG["class"], name="x"), r"not its class: FunctionHarness\(\.\.\.\)"),
        (lambda: Host().add(FunctionHarness(echo), name="x", text=WRONG["number"]), "a message is a text, not int"),
        (lambda: Host(tokens=WRONG["tokens"]), r"whom they admit: \{token: Principal\("),
        (lambda: Host().add(Smaller(), name="x"), r"smaller seam is added as Streamed\(\.\.\.\)"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_agent(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make()


async def test_a_function_that_is_not_async_says_so() -> None:
    async with Host() as host:
        session = host.add(FunctionHarness(at_once), name="x", text="go")  # type: ignore[arg-type]
        core = await host.wait(session)
        assert core.lifecycle is Lifecycle.FAILED
        assert (
            core.error == "ContractError: at_once returned str at once, and must be an async function: write async def"
        )


async def test_options_that_cannot_be_told_apart_are_asked_of_nobody() -> None:
    async def asks(run: Run, mail: tuple[MailItem, ...]) -> str:
        return str(await run.ask("Which?", options=["red", "blue", "red"]))

    async with Host() as host:
        core = await host.wait(host.add(FunctionHarness(asks), name="x", text="go"))
        assert "two of the options are 'red'" in str(core.error)


async def test_nothing_is_added_to_a_host_that_has_ended() -> None:
    async with Host() as host:
        pass
    with pytest.raises(WatchfloorError, match="the host has ended"):
        host.add(FunctionHarness(echo), name="x", text="go")


async def test_a_session_that_is_not_there_is_named() -> None:
    async with Host() as host:
        with pytest.raises(KeyError) as fault:
            host.send("nobody", "x")
        assert str(fault.value) == "this host runs no session 'nobody'"


@pytest.mark.parametrize(
    ("verb", "kind", "says"),
    [
        (lambda live: live.send("  "), NotPossible, "there is no text"),
        (lambda live: live.budget(tokens=-1), NotPossible, "no less than 0"),
        (lambda live: live.budget(), NotPossible, "needs tokens or turns"),
        (lambda live: live.reseed("text"), TypeError, "a Snapshot, or ConversationMessages"),
    ],
)
async def test_what_no_live_agent_takes(verb: Callable[[Any], None], kind: type[Exception], says: str) -> None:
    async with Host() as host:
        live = host.live(host.add(FunctionHarness(echo), name="x"))
        with pytest.raises(kind, match=says):
            verb(live)
        assert await live.send("still there").response == "still there"


async def test_what_cannot_be_run(tmp_path: Path) -> None:
    agent = built(tmp_path).function(says).build()
    session = agent.open("s")
    await agent.run(session, "hi")
    wrong: Any = "s"
    with pytest.raises(TypeError, match=r"`agent\.open\(id\)` opens one"):
        await agent.run(wrong, "hi")
    with pytest.raises(TypeError, match="a message is a text, not NoneType"):
        await agent.run(session, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an ExecuteRequest is executed"):
        await agent.execute(session, wrong)
    with pytest.raises(StorageInUse, match="already by this one"):
        built(tmp_path).function(says).build()
    (tmp_path / "file").touch()
    with pytest.raises(StorageReadOnly, match="name another data_folder"):
        built(tmp_path / "file" / "folder").function(says).build()
    assert [message.text for message in agent.session_history("s")] == ["hi", "you said hi"]


async def test_an_answer_that_was_given_waits_for_its_run(tmp_path: Path) -> None:
    agent = built(tmp_path, Writer()).function(writes).build()
    await agent.run(agent.open("s"), "hi")
    await agent.answer("s", "allow")
    with pytest.raises(NotSuspended, match="it was answered, and goes on by `resume`"):
        await agent.answer("s", "allow")


@pytest.mark.parametrize("how", ["run", "stream", "execute", "session"])
async def test_what_others_did_to_a_session_meanwhile_is_not_lost(tmp_path: Path, how: str) -> None:
    agent = built(tmp_path).function(says).build()
    stale = agent.open("s")
    await agent.run(agent.open("s"), "one")
    await agent.run(agent.open("s"), "two")
    match how:
        case "run":
            await agent.run(stale, "three")
        case "stream":
            await agent.run_stream(stale, "three").wait()
        case "execute":
            await agent.execute(stale, ExecuteRequest.build().input("three").done())
        case _:
            stale.add_user("three")
            await agent.run_session(stale)
    history = agent.session_history("s")
    refs = [message.ref for message in history if message.role == "user"]
    assert len(set(refs)) == 3
    texts = [message.text for message in history]
    assert texts == ["one", "you said one", "two", "you said two", "three", "you said three"]
