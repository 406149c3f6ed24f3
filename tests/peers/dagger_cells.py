"""Holds a client of a Dagger engine against the table of states and verbs, cell by cell."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tests.peers.dagger_conversation import Models
from tests.peers.dagger_engine import Engine, in_state
from tests.peers.dagger_runtime import Mail, Refused, Runtime
from tests.peers.dagger_server import FIXTURES

TABLE: Final[dict[str, dict[str, dict[str, Any]]]] = json.loads(
    (FIXTURES / "transitions.json").read_text(encoding="utf-8")
)["states"]
CELLS: Final = tuple((state, verb) for state, verbs in TABLE.items() for verb in verbs)
NAMES: Final = [f"{state}-{verb}" for state, verb in CELLS]


@dataclass(frozen=True)
class Told:
    """What a client made of the engine's answer."""

    error: str = ""
    delivery: str = ""


class Client(Protocol):
    """Somebody who speaks with the engine. `own_words`: what the state forbids it says itself, without asking."""

    own_words: bool

    async def do(self, verb: str, handle: str) -> Told:
        """Carry out a verb of the table; messages say "more", reseeding empties the conversation. Returns when the
        engine has answered; for a send, when its delivery is decided."""
        ...

    async def state(self, handle: str) -> str:
        """The state, read in a request of its own."""
        ...


async def check(engine: Engine, client: Client, state: str, verb: str, agent: Runtime | None = None) -> None:
    """One cell: the answer, the state after it, the state once the step has ended, and what became of the mail.

    `agent`: one that the client has started, for the state of one that never ran.
    """
    cell = TABLE[state][verb]
    engine.models = Models()
    agent = agent or await in_state(engine, state, f"{state.lower()} {verb}")
    if state in ("RUNNING", "PAUSED", "FAILED"):
        agent.send("waits")
    consumed, queued = list(agent.consumed), list(agent.mailbox)
    assert bool(consumed) == (state in ("RUNNING", "PAUSED")), "one message was read by the turn"
    task = asyncio.create_task(client.do(verb, agent.handle))
    # A message that joins a turn is told to have been delivered when the turn has read it.
    held_back = cell["verdict"] == "blocks" or cell.get("delivery") == "STEERED"
    if held_back:
        await until_asked(engine, agent, verb)
        assert not task.done(), "it answers although the step has not ended"
    else:
        told = await task
        assert bool(told.error) == (cell["verdict"] == "error"), told
        assert client.own_words or cell.get("says", "") in told.error
        assert told.delivery == cell.get("delivery", "")
    await settle(agent, cell["at_once"])
    assert await client.state(agent.handle) == cell["at_once"]
    engine.models.release(5)
    if cell.get("until", "step") == "step":
        await settle(agent, cell["lands"])
    if held_back and cell.get("until", "step") != "step":
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    elif held_back:
        told = await task
        assert (told.error, told.delivery) == ("", cell.get("delivery", ""))
    assert await client.state(agent.handle) == cell["lands"]
    for mails, fate in ((consumed, cell.get("consumed")), (queued, cell.get("queued"))):
        for mail in mails:
            assert fate is None or dropped(mail) == (fate == "dropped"), (fate, mail)


def dropped(mail: Mail) -> bool:
    return mail.answer.done() and isinstance(mail.answer.exception(), Refused)


async def settle(agent: Runtime, state: str) -> None:
    await agent.until(lambda it: it.state == state)


async def until_asked(engine: Engine, agent: Runtime, verb: str) -> None:
    """The engine has the verb, although it has not answered it."""
    word = verb.partition(".")[0]
    async with asyncio.timeout(30):
        while not any(done == (word, agent.handle) for done in engine.verbs):
            await engine.asked.wait()
