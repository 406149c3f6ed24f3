"""Every state of a Dagger agent and every verb, through the connector, as the engine's table has them."""

from __future__ import annotations

import pytest

from console.connectors.dagger.session import HERE
from tests.peers.dagger_cells import TABLE, Told, check
from tests.peers.dagger_desk import Desk, desk
from tests.peers.dagger_server import DaggerServer
from watchfloor.protocol.events import Mail
from watchfloor.protocol.frames import Do, DoAct, DoPause, DoReseed, DoResume, DoSend, DoStop
from watchfloor.words import Delivery, OutcomeKind, ReseedMode

VERBS: dict[str, Do] = {
    "send": DoSend(text="more"),
    "pause": DoPause(),
    "pause.interrupt": DoPause(interrupt=True),
    "resume": DoResume(),
    "stop": DoStop(),
    "stop.kill": DoStop(kill=True),
    "reseed": DoReseed(mode=ReseedMode.CLEAR),
}


class Console:
    """A client of the engine that is the connector."""

    own_words = True

    def __init__(self, server: DaggerServer, seen: Desk) -> None:
        self._server, self._seen = server, seen

    async def do(self, verb: str, handle: str) -> Told:
        seen = self._seen
        # Telemetry shows an agent before it is found out how to address it.
        await self.state(handle)
        await seen.until(lambda: "send" not in seen.summary(handle).blocked)
        outcome = await seen.do(handle, VERBS[verb])
        if outcome.outcome is not OutcomeKind.APPLIED:
            return Told(outcome.reason or outcome.outcome.value)
        if verb != "send":
            return Told()
        ref = str(outcome.info["ref"])
        told: list[Delivery] = []

        def delivered() -> bool:
            told[:] = [mail.delivery for mail in seen.of(handle, Mail) if mail.ref == ref and mail.delivery is not None]
            return bool(told)

        await seen.until(delivered)
        return Told(delivery=told[0].value.upper())

    async def state(self, handle: str) -> str:
        wanted = self._server.engine.agents[handle].state
        await self._seen.until(lambda: self._seen.told.get(handle, {}).get("native_state") == wanted)
        shown = self._seen.summary(handle)
        assert shown.lifecycle.value == wanted.lower()
        return wanted


@pytest.mark.parametrize("beta", [14, 21])
@pytest.mark.parametrize("state", list(TABLE))
async def test_every_state_and_verb(state: str, beta: int) -> None:
    async with DaggerServer(beta) as server, desk(server) as seen:
        client = Console(server, seen)
        for verb in VERBS:
            agent = None
            if state == "NEVER_STARTED":
                # Nothing shows an agent that never ran, so it is one that this console has started.
                made = await seen.do(HERE, DoAct(act="spawn", fields={"name": "fresh", "model": "held"}))
                agent = server.engine.agents[str(made.info["session"])]
            server.engine.verbs.clear()
            await check(server.engine, client, state, verb, agent)
            sent = [done for done in server.engine.verbs if done[0] == verb.partition(".")[0]]
            refused_here = TABLE[state][verb]["verdict"] == "error"
            assert len(sent) == (0 if refused_here else 1), "each verb is sent once, and none that the state forbids"
    assert {*VERBS, "wait"} == set(TABLE[state])
