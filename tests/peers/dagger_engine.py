"""One session of a stand-in Dagger engine."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Final

from tests.peers.dagger_conversation import Conversation, Models, said
from tests.peers.dagger_runtime import Refused, Runtime
from tests.peers.dagger_telemetry import Telemetry

VERSIONS: Final = {14: "v1.0.0-beta.14", 21: "v1.0.0-beta.21"}


class Engine:
    """The agents of a session, its conversations by id, its models and its telemetry. `beta` is 14 or 21."""

    def __init__(self, beta: int = 21) -> None:
        self.beta = beta
        self.version = VERSIONS[beta]
        self.models = Models()
        self.telemetry = Telemetry(controlled=beta >= 21)
        self.agents: dict[str, Runtime] = {}
        self.addressed: dict[str, Runtime] = {}
        """What was asked for by a handle that the session does not have."""
        self.conversations: dict[str, Conversation] = {}
        self.verbs: list[tuple[str, str]] = []
        """Each verb that was carried out, with the handle of its agent."""
        self.asked = asyncio.Event()
        """Set, and replaced, with each verb."""
        self._entropy = itertools.count(1)
        # Entropy differs from session to session, and so must what stands in for it.
        self._session = next(_SESSIONS)

    def keep(self, conversation: Conversation) -> Conversation:
        self.conversations[conversation.id] = conversation
        return conversation

    def note(self, verb: str, handle: str) -> None:
        self.verbs.append((verb, handle))
        self.asked.set()
        self.asked = asyncio.Event()

    def new_handle(self) -> str:
        return f"h{self._session:05d}{next(self._entropy):019d}"

    def spawn(self, name: str = "", conversation: Conversation | None = None, handle: str = "") -> Runtime:
        """A new agent, which has not started."""
        if handle and handle in self.agents:
            raise Refused(f'agent "{name}" already has a runtime entry in this session')
        handle = handle or self.new_handle()
        runtime = Runtime(self, name or f"agent-{handle[-8:]}", handle, self.keep(conversation or Conversation()))
        self.agents[handle] = runtime
        return runtime

    def restore(self, runtime: Runtime, state: str, error: str) -> None:
        """Bring a new agent into the state in which it was left."""
        match state:
            case "RUNNING" | "WAITING_INPUT":
                raise Refused(f'agent "{runtime.name}" cannot be re-hydrated as {state}')
            case "PAUSED":
                runtime.pause(False)
            case "STOPPED":
                runtime.seal("EXPLICIT")
            case "FAILED":
                runtime._fail(error)
        if runtime.span is None:
            runtime.span = self.telemetry.span(f"agent: {runtime.name}", handle=runtime.handle, agent=runtime.name)

    def end(self) -> None:
        """The session's main client has gone."""
        for runtime in self.agents.values():
            runtime.end()
        self.telemetry.close()


def _sessions() -> Iterator[int]:
    yield from itertools.count(1)


_SESSIONS: Final = _sessions()


async def in_state(engine: Engine, state: str, name: str = "subject") -> Runtime:
    """An agent that is in the given state of the table, with a conversation of two turns where it ever ran.

    Its steps are held. A running one is in a step, with one message consumed; a paused one is suspended in its turn; a
    failed or stopped one has pending input.
    """
    if state == "NEVER_STARTED":
        return engine.spawn(name, Conversation("held"))
    told = (said("first"), said("echo: first", role="ASSISTANT"))
    runtime = engine.spawn(name, Conversation("broken" if state == "FAILED" else "held", turns=told))
    if state == "IDLE":
        runtime.resume()
        return runtime
    runtime.send("second")
    held = engine.models.waiting
    await runtime.until(lambda agent: engine.models.waiting > held or agent.state == "FAILED")
    match state:
        case "PAUSED":
            runtime.pause(True)
            await runtime.until(lambda agent: agent.state == "PAUSED")
        case "STOPPED":
            await runtime.stop(True)
        case "FAILED":
            runtime.conversation = Conversation("held", turns=runtime.conversation.turns)
        case _:
            pass
    if runtime.state != state:
        raise AssertionError(f"it is {runtime.state} instead of {state}")
    return runtime
