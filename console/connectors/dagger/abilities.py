"""What an engine can do, as its schema says: the agents' interface is experimental and changes with every version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from console.connectors.dagger.reading import Json, items, obj, text
from watchfloor.protocol.model import (
    Act,
    ActOptions,
    Capabilities,
    FieldType,
    FormField,
    NoOptions,
    PauseOptions,
    ReseedOptions,
    SendOptions,
    StopOptions,
)
from watchfloor.words import ReseedMode

TYPES: Final = ("Query", "Agent", "AgentMessage", "LLM", "LLMMessage", "LLMMessageOrigin", "LLMContentBlock")
PARTS: Final = (
    *(f'{name}: __type(name: "{name}") {{ fields {{ name args {{ name }} }} }}' for name in TYPES),
    'states: __type(name: "AgentState") { enumValues { name } }',
)
ASK: Final = f"query Abilities {{ {' '.join(PARTS)} }}"
"""The query whose answer `Abilities.read` takes: small, where the whole schema of an engine is megabytes."""
ASK_EACH: Final = tuple(f"query Abilities {{ {part} }}" for part in PARTS)
"""The same in parts: an engine answers nothing at all where one of the types is missing."""

SPAWN: Final = "spawn"
ATTACH: Final = "attach"


@dataclass(frozen=True, slots=True)
class Abilities:
    """`fields`: type -> field -> its arguments. `states`: the words that an agent's state can be."""

    fields: Mapping[str, Mapping[str, frozenset[str]]]
    states: frozenset[str]

    @classmethod
    def read(cls, data: Json) -> Abilities:
        """From the answer to `ASK`."""
        fields = {
            name: {
                text(obj(field).get("name")): frozenset(
                    text(obj(argument).get("name")) for argument in items(obj(field).get("args"))
                )
                for field in items(obj(data.get(name)).get("fields"))
            }
            for name in TYPES
        }
        states = items(obj(data.get("states")).get("enumValues"))
        return cls(fields, frozenset(text(obj(state).get("name")) for state in states))

    def has(self, field: str, *arguments: str) -> bool:
        """Is there such a field, as `Agent.send`, with all these arguments?"""
        type_name, _, name = field.partition(".")
        found = self.fields.get(type_name, {}).get(name)
        return found is not None and found.issuperset(arguments)

    def all(self, *fields: str) -> bool:
        return all(self.has(field) for field in fields)

    def of(self, type_name: str, *wanted: str) -> list[str]:
        """Those of the wanted fields that the type has."""
        return [name for name in wanted if self.has(f"{type_name}.{name}")]

    # --- what follows

    @property
    def knows_agents(self) -> bool:
        return self.has("Query.node", "id") and self.all("Agent.id", "Agent.handle", "Agent.state")

    @property
    def by_handle(self) -> bool:
        """Can an agent be addressed by the handle that telemetry names?"""
        return self.has("Query.llm", "model") and self.has("LLM.agent", "handle", "name")

    @property
    def reads_messages(self) -> bool:
        return self.all("Agent.snapshot", "LLM.messages", "LLMMessage.role", "LLMMessage.content")

    @property
    def looks_up(self) -> bool:
        """Can a message be found by its number?"""
        return self.has("Agent.message", "ref") and self.has("AgentMessage.ref")

    @property
    def spawns(self) -> bool:
        return self.has("LLM.spawn", "name")

    def modes(self) -> tuple[ReseedMode, ...]:
        """The ways in which a conversation can be replaced."""
        if not (self.has("Agent.reseed", "conversation") and self.all("Agent.snapshot", "LLM.id")):
            return ()
        empties, prompts = self.has("LLM.withoutMessageHistory"), self.has("LLM.withPrompt", "prompt")
        answers = self.has("LLM.withResponse", "content")
        possible = {
            ReseedMode.CLEAR: empties,
            ReseedMode.MODEL: self.has("LLM.withModel", "model") and self.has("LLM.model"),
            ReseedMode.REPLACE: empties and prompts,
            ReseedMode.REWIND: empties and prompts and answers and self.reads_messages and self._rebuilds,
            ReseedMode.COMPACT: empties and prompts and answers and self._answers_once,
        }
        return tuple(mode for mode in ReseedMode if possible[mode])

    @property
    def _rebuilds(self) -> bool:
        return self.has("LLM.withToolResult", "callId", "content", "errored")

    @property
    def _answers_once(self) -> bool:
        return self.has("LLM.loop", "maxSteps") and self.all("LLM.lastReply", "LLM.hasPending")

    @property
    def answers(self) -> bool:
        """Can an agent come to wait for input, and be given it?"""
        return self.has("Agent.send", "message") and "WAITING_INPUT" in self.states

    def of_agent(self, *, waits: bool = False) -> Capabilities:
        """What an agent advertises. `waits`: for input."""
        modes, replies = self.modes(), self.has("Agent.send", "replyTo")
        offered: dict[str, object] = {
            "send": SendOptions(replies=replies) if self.has("Agent.send", "message") else None,
            "pause": PauseOptions(interrupt=self.has("Agent.pause", "interrupt")) if self.has("Agent.pause") else None,
            "resume": NoOptions() if self.has("Agent.resume") else None,
            "stop": StopOptions(kill=self.has("Agent.stop", "kill")) if self.has("Agent.stop") else None,
            "reseed": ReseedOptions(modes=modes) if modes else None,
            "fork": NoOptions() if self.spawns and self.has("Agent.snapshot") else None,
            "notify": NoOptions() if self.has("Agent.notify", "subscriber", "on") else None,
            "answer": NoOptions() if waits and self.answers else None,
        }
        return Capabilities.model_validate({name: value for name, value in offered.items() if value is not None})

    def of_session(self) -> Capabilities:
        """What the row of the whole session advertises."""
        acts: list[Act] = []
        if self.has("Query.llm") and self.spawns:
            fields = [FormField(name="name", type=FieldType.TEXT, label="its name", required=False)]
            if self.has("Query.llm", "model"):
                fields.append(FormField(name="model", type=FieldType.TEXT, label="its model", required=False))
            if self.has("LLM.withSystemPrompt", "prompt"):
                fields.append(FormField(name="system", type=FieldType.TEXT, label="system prompt", required=False))
            effect = "a new agent, which waits for its first message"
            acts.append(Act(id=SPAWN, label="New agent", effect=effect, fields=tuple(fields)))
        known = FormField(name="agent", type=FieldType.TEXT, label="its handle or id")
        name = FormField(name="name", type=FieldType.TEXT, label="its name", required=False)
        effect = "shows an agent that telemetry has not named yet; nothing changes there"
        acts.append(Act(id=ATTACH, label="Show an agent", effect=effect, fields=(known, name)))
        return Capabilities(act=ActOptions(acts=tuple(acts)))
