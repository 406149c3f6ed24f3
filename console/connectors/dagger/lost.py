"""What was found out after the answer to a verb was lost. Nothing is sent again for it: only looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from console.connectors.dagger.agents import Agent
from console.connectors.dagger.ledger import Sent
from console.connectors.dagger.reading import down
from console.connectors.dagger.rebuild import spoken
from console.connectors.dagger.session import HERE, Session
from watchfloor.protocol.events import Level, Notice
from watchfloor.words import Primitive, ReseedMode

CODE: Final = "lost_answer"
DONE: Final = "the conversation was replaced"
UNBORN: Final = "an agent that never ran cannot be seen: a new one may wait there, and shows once it starts"


@dataclass(frozen=True, slots=True)
class Lost:
    """A verb of `by` whose answer was lost.

    `text` is what was sent, and `highest` the highest number of a message before that. `subscriber` is who was to be
    told. `before` is what the conversation was, and `target` what it should be, as digests; `model` is its model.
    """

    primitive: Primitive
    handle: str
    by: str
    at: int
    text: str = ""
    highest: int = 0
    subscriber: str = ""
    mode: ReseedMode = ReseedMode.REPLACE
    before: tuple[str, ...] | None = None
    target: tuple[str, ...] | None = None
    model: str = ""


async def look(session: Session, lost: Lost, *, late: bool = False) -> bool:
    """Say on the session what is there now. True: there is no more to find out.

    `late`: it was said before that a message did not arrive; only that it did is news. Raises ConnectionFailed where
    that cannot be read now.
    """
    if lost.handle == HERE:
        _say(session, lost, UNBORN)
        return True
    agent = session.agents[lost.handle]
    if not late:
        await session.poll([lost.handle])
    if agent.over or agent.id is None:
        reason = agent.why_over if agent.over else agent.unreachable
        _say(session, lost, f"what became of it cannot be found out: {reason}")
        return True
    match lost.primitive:
        case Primitive.SEND | Primitive.ANSWER:
            words, settled = await _message(session, agent, lost, late=late)
        case Primitive.RESEED:
            words, settled = await _conversation(session, agent, lost), True
        case Primitive.NOTIFY:
            words, settled = _subscription(session, lost), True
        case Primitive.FORK:
            words, settled = UNBORN, True
        case _:
            words, settled = f"it reads {agent.state or 'nothing'} now", True
    if words:
        _say(session, lost, words)
    return settled


def _say(session: Session, lost: Lost, words: str) -> None:
    what = lost.primitive.value if lost.primitive is not Primitive.ACT else "the start of an agent"
    note = f"the answer to {what} was lost; nothing was sent again: {words}"
    key = f"{lost.handle}/lost/{lost.primitive.value}/{lost.at}/{words[:40]}"
    session.mirror.emit(lost.handle, Notice(at=0, key=key, level=Level.WARNING, code=CODE, text=note))


async def _message(session: Session, agent: Agent, lost: Lost, *, late: bool) -> tuple[str, bool]:
    before = lost.highest
    unsure = await session.find_refs(agent)
    new = [f"#{n}" for n in range(before + 1, agent.ledger.highest + 1) if f"#{n}" not in agent.ledger.entries]
    if not new:
        if unsure:
            return f"whether it arrived cannot be told: {unsure}", True
        return "" if late else f"no message #{before + 1} is there, so it has not arrived so far", False
    conversation = await session.follow(agent)
    read = [turn.ref for turn in conversation if turn.ref in new and turn.said == lost.text]
    mine = read[0] if read else new[0] if len(new) == 1 and not late else ""
    if not mine:
        told = f"{len(new)} messages came in since, {new[0]} to {new[-1]}: which is this one cannot be told"
        return ("", False) if late else (told, True)
    id = await session.message_id(agent, mine)
    sent = Sent(lost.handle, mine, id, lost.text, lost.by, lost.at, presumed=not read)
    session.sent(agent, sent)
    session.mirror.emit(agent.handle, sent.mail())
    for known in agent.ledger.read(agent.transcript.refs):
        session.mirror.emit(agent.handle, known.mail())
    if read:
        return f"it arrived as {mine}{' after all' if late else ''}", True
    return f"one message came in since, {mine}: it is this one unless others write", True


async def _conversation(session: Session, agent: Agent, lost: Lost) -> str:
    if lost.model:
        done = down(agent.read, "snapshot", "model") == lost.model
        return DONE if done else "the model is another one than was to be set"
    if lost.target is None:
        return "this engine does not show conversations"
    now, target, before = tuple(t.digest for t in spoken(await session.follow(agent))), lost.target, lost.before
    if now == target:
        return DONE
    # What came to it since stands behind; a rewound conversation begins like the one that it was made of.
    if before and now[: len(before)] == before:
        return "the conversation is still the one from before"
    if target and now[: len(target)] == target and before is not None:
        return f"{DONE}, and went on since"
    return "the conversation is neither the one from before nor just the one that was to be set"


def _subscription(session: Session, lost: Lost) -> str:
    seen = session.roster.agents.get(lost.handle)
    if seen is not None and lost.subscriber in seen.subscribers:
        return "telemetry shows the subscription"
    return "telemetry shows no such subscription, and older engines show none at all"
