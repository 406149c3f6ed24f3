"""What was found out after the answer to a verb was lost. Nothing is sent again for it: only looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from console.connectors.dagger.agents import Agent
from console.connectors.dagger.ledger import Sent
from console.connectors.dagger.reading import down
from console.connectors.dagger.rebuild import spoken
from console.connectors.dagger.session import Session
from watchfloor.protocol.events import Level, Notice
from watchfloor.words import Primitive, ReseedMode

CODE: Final = "lost_answer"


@dataclass(frozen=True, slots=True)
class Lost:
    """A verb of `by` whose answer was lost.

    `text` is what was sent, and `highest` the highest number of a message before that. `subscriber` is who was to be
    told. `target` is what the conversation should be, as digests, and `model` its model.
    """

    primitive: Primitive
    handle: str
    by: str
    at: int
    text: str = ""
    highest: int = 0
    subscriber: str = ""
    mode: ReseedMode = ReseedMode.REPLACE
    target: tuple[str, ...] | None = None
    model: str = ""


async def look(session: Session, lost: Lost) -> None:
    """Say on the session what is there now. Raises ConnectionFailed where that cannot be read now."""
    agent = session.agents[lost.handle]
    await session.poll([lost.handle])
    match lost.primitive:
        case Primitive.SEND | Primitive.ANSWER:
            words = await _message(session, agent, lost)
        case Primitive.RESEED:
            words = await _conversation(session, agent, lost)
        case Primitive.NOTIFY:
            words = _subscription(session, lost)
        case Primitive.FORK:
            words = "an agent that never ran cannot be seen: a new one may wait there, and shows once it starts"
        case _:
            words = f"it reads {agent.state or 'nothing'} now"
    note = f"the answer to {lost.primitive.value} was lost; nothing was sent again: {words}"
    key = f"{lost.handle}/lost/{lost.primitive.value}/{lost.at}"
    session.mirror.emit(lost.handle, Notice(at=0, key=key, level=Level.WARNING, code=CODE, text=note))


async def _message(session: Session, agent: Agent, lost: Lost) -> str:
    if not session.abilities.looks_up:
        return "this engine finds no message by its number"
    before = lost.highest
    await session.find_refs(agent)
    new = [f"#{n}" for n in range(before + 1, agent.ledger.highest + 1) if f"#{n}" not in agent.ledger.entries]
    if not new:
        return f"no message #{before + 1} is there, so it did not arrive"
    conversation = await session.follow(agent)
    read = [turn.ref for turn in conversation if turn.ref in new and turn.said == lost.text]
    mine = read[0] if read else new[0] if len(new) == 1 else ""
    if not mine:
        return f"{len(new)} messages came in since, {new[0]} to {new[-1]}: which is this one cannot be told"
    id = await session.message_id(agent, mine)
    sent = Sent(lost.handle, mine, id, lost.text, lost.by, lost.at)
    session.sent(agent, sent)
    session.mirror.emit(agent.handle, sent.mail())
    for known in agent.ledger.read(agent.transcript.refs):
        session.mirror.emit(agent.handle, known.mail())
    return f"it arrived as {mine}" if read else f"one message came in since, {mine}: it is this one unless others write"


async def _conversation(session: Session, agent: Agent, lost: Lost) -> str:
    if lost.model:
        done = down(agent.read, "snapshot", "model") == lost.model
    else:
        conversation = await session.follow(agent)
        done = lost.target is not None and tuple(turn.digest for turn in spoken(conversation)) == lost.target
    return "the conversation was replaced" if done else "the conversation is not the one that was to be set"


def _subscription(session: Session, lost: Lost) -> str:
    seen = session.roster.agents.get(lost.handle)
    if seen is not None and lost.subscriber in seen.subscribers:
        return "telemetry shows the subscription"
    return "telemetry shows no such subscription, and older engines show none at all"
