"""Random walks: a console and another client at the same Dagger agents. In the end the console shows what is so."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from tests.peers.dagger_conversation import Conversation
from tests.peers.dagger_desk import Desk, desk
from tests.peers.dagger_engine import Engine
from tests.peers.dagger_runtime import Refused, Runtime
from tests.peers.dagger_server import DaggerServer
from watchfloor.protocol.events import Mail, MailState, Message, Reseeded
from watchfloor.protocol.frames import Do, DoPause, DoReseed, DoResume, DoSend, DoStop
from watchfloor.words import OutcomeKind, ReseedMode

STEPS = 40
VERB_OF = {"send": "send", "pause": "pause", "resume": "resume", "stop": "stop", "reseed": "reseed"}


def ours(step: int) -> list[Do]:
    """What the console may do."""
    return [
        DoSend(text=f"ours {step}"),
        DoSend(text=f"ours {step}"),
        DoPause(),
        DoPause(interrupt=True),
        DoResume(),
        DoStop(kill=True),
        DoReseed(mode=ReseedMode.CLEAR),
        DoReseed(mode=ReseedMode.REWIND, to="-1"),
    ]


def theirs(engine: Engine, step: int) -> list[Callable[[Runtime], object]]:
    """What another client, or the model, may do."""
    return [
        lambda agent: agent.send(f"theirs {step}"),
        lambda agent: agent.pause(False),
        lambda agent: agent.pause(True),
        lambda agent: agent.resume(),
        lambda agent: agent.reseed(Conversation("held")),
        lambda agent: engine.models.release(),
        lambda agent: engine.models.release(),
    ]


def shown(seen: Desk, handle: str) -> list[str]:
    """The conversation as the log tells it."""
    texts: list[str] = []
    for event in seen.events[handle]:
        if isinstance(event, Reseeded):
            gone = (event.note or "").split()[0]
            texts = texts[: len(texts) - int(gone)] if gone.isdigit() else texts
        elif isinstance(event, Message):
            texts.append(event.text)
    return texts


@pytest.mark.parametrize("seed", range(4))
async def test_the_console_ends_with_what_is_so(seed: int) -> None:
    chance = random.Random(seed)
    async with DaggerServer() as server, desk(server) as seen:
        engine = server.engine
        agents = [engine.spawn(f"agent {n}", Conversation("held")) for n in range(3)]
        for agent in agents:
            agent.resume()
        handles = [agent.handle for agent in agents]
        await seen.until(lambda: all("send" not in seen.told.get(h, {}).get("blocked", {"send": ""}) for h in handles))
        done: dict[str, str] = {}
        for step in range(STEPS):
            agent = chance.choice(agents)
            if chance.random() < 0.5:
                do = chance.choice(ours(step))
                done[await seen.start(agent.handle, do)] = VERB_OF[do.primitive]
            else:
                try:
                    chance.choice(theirs(engine, step))(agent)
                except Refused:
                    continue
            if chance.random() < 0.3:
                await seen.until(lambda: all(id in seen.outcomes for id in done))
            else:
                await asyncio.sleep(0)
        await seen.until(lambda: all(id in seen.outcomes for id in done))
        for agent in agents:
            agent.resume()
        engine.models.release(500)
        for agent in agents:
            await agent.until(lambda it: it.state == "IDLE")
        for agent in agents:
            await seen.reads(agent.handle, "idle")
            said = [turn.text for turn in agent.conversation.turns]
            await seen.until(lambda: shown(seen, agent.handle) == said)  # noqa: B023 - waited for at once
            waiting = {mail.ref for mail in seen.of(agent.handle, Mail)}
            await seen.until(lambda: waiting <= _ended(seen, agent.handle))  # noqa: B023 - waited for at once
        assert seen.fault is None
        for verb in set(VERB_OF.values()):
            applied = sum(1 for id, word in done.items() if word == verb and _applied(seen, id))
            sent = sum(1 for word, _ in engine.verbs if word == verb)
            assert applied <= sent <= sum(1 for word in done.values() if word == verb), "nothing is sent twice"


def _applied(seen: Desk, id: str) -> bool:
    return seen.outcomes[id].outcome is OutcomeKind.APPLIED


def _ended(seen: Desk, handle: str) -> set[str]:
    """The messages that were read, or will never be."""
    return {mail.ref for mail in seen.of(handle, Mail) if mail.state is not MailState.SENT}
