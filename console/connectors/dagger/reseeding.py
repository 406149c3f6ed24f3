"""Replacing an agent's conversation: a value is built on the engine, read back, and only then given to the agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.connectors.dagger import queries, rebuild
from console.connectors.dagger.agents import Agent
from console.connectors.dagger.graph import Graph, Refused
from console.connectors.dagger.reading import Json, down, text
from console.connectors.dagger.rebuild import CannotRebuild, Step, answer, prompt, spoken
from console.connectors.dagger.session import Session
from console.connectors.dagger.transcript import Turn, turns
from watchfloor.protocol.frames import DoReseed
from watchfloor.words import ReseedMode

Refusal = CannotRebuild
_MUST_WAIT = (
    "the new conversation ends with a message to the agent, and an idle agent would read as running and never answer: "
    "pause it first, then resume it"
)


@dataclass(frozen=True, slots=True)
class Built:
    """A conversation on the engine. `target` are the digests of its messages, None where it was not read."""

    id: str
    target: tuple[str, ...] | None = None
    model: str = ""


async def build(session: Session, agent: Agent, do: DoReseed) -> Built:
    """The conversation that the command asks for; the agent still has its own.

    Raises CannotRebuild for what cannot be had, Refused for an error of the engine, and ConnectionFailed.
    """
    match do.mode:
        case ReseedMode.CLEAR:
            built = await _chain(session, agent, [], [])
        case ReseedMode.MODEL:
            return await _model(session.graph, agent, do.to or "")
        case ReseedMode.REPLACE:
            if not (do.text and do.text.strip()):
                raise CannotRebuild("say what the new conversation begins with")
            built = await _chain(session, agent, [[prompt(do.text)]], None)
        case ReseedMode.REWIND:
            before = await _read(session, agent)
            try:
                kept = rebuild.kept(before, do.to or "")
            except ValueError as reason:
                raise CannotRebuild(str(reason)) from None
            if rebuild.pending(kept) and agent.state == "IDLE":
                raise CannotRebuild(_MUST_WAIT)
            return await _chain(session, agent, rebuild.steps(kept, session.abilities), kept)
        case _:
            summary = (do.text or "").strip() or await _summary(session.graph, agent)
            built = await _chain(session, agent, [[prompt(rebuild.SUMMARISE), answer(summary)]], None)
    if do.mode is ReseedMode.REPLACE and agent.state == "IDLE":
        raise CannotRebuild(_MUST_WAIT)
    return built


async def _chain(session: Session, agent: Agent, groups: list[list[Step]], wanted: Sequence[Turn] | None) -> Built:
    """The agent's conversation, emptied, with these steps; held against what was wanted."""
    graph, id = session.graph, ""
    for number, group in enumerate(groups or [[]]):
        fields, types, values = rebuild.chain(group, empty=number == 0)
        if number == 0:
            data = await graph.ask(queries.snapshot(fields, types), {"id": agent.id, **values})
            id = rebuild.id_at_end(down(data, "node", "snapshot"))
        else:
            data = await graph.ask(queries.conversation(fields, types), {"llm": id, **values})
            id = rebuild.id_at_end(data.get("node"))
        if not id:
            raise CannotRebuild("the engine gave the new conversation no id")
    if not session.abilities.reads_messages:
        return Built(id)
    read = await graph.ask(queries.conversation(queries.messages(session.abilities)), {"llm": id})
    target = tuple(turn.digest for turn in spoken(turns(down(read, "node", "messages"))))
    if wanted is not None and target != tuple(turn.digest for turn in wanted):
        raise CannotRebuild("the engine built another conversation than was asked for; the agent keeps its own")
    return Built(id, target)


async def _model(graph: Graph, agent: Agent, model: str) -> Built:
    if not model:
        raise CannotRebuild("name the model")
    document = queries.snapshot("withModel(model: $model) { id model }", "$model: String!")
    data = await graph.ask(document, {"id": agent.id, "model": model})
    changed = down(data, "node", "snapshot", "withModel")
    return Built(text(down(changed, "id")), model=text(down(changed, "model")) or model)


async def _read(session: Session, agent: Agent) -> list[Turn]:
    data = await session.graph.ask(queries.transcript(session.abilities), {"id": agent.id})
    return turns(down(data, "node", "snapshot", "messages"))


async def _summary(graph: Graph, agent: Agent) -> str:
    """What the agent's own model makes of the conversation, asked on a branch of it."""
    variables: Json = {"id": agent.id, "prompt": rebuild.SUMMARISE}
    field = "withPrompt(prompt: $prompt) { loop(maxSteps: 1) { hasPending lastReply } }"
    try:
        data = await graph.ask(queries.snapshot(field, "$prompt: String!"), variables, waits=True)
    except Refused as refusal:
        raise CannotRebuild(f"the model gave no summary: {refusal}") from None
    after = down(data, "node", "snapshot", "withPrompt", "loop")
    summary = text(down(after, "lastReply")).strip()
    if not summary or summary == "(no reply)" or down(after, "hasPending") is True:
        raise CannotRebuild("the model gave no summary: it called a tool instead, or said nothing")
    return summary
