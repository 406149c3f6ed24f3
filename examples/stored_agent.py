"""An agent whose sessions are stored: it suspends where it asks, and goes on once it was answered, also days later.

python examples/stored_agent.py "Hello from the floor"
"""

import asyncio
import sys
from pathlib import Path

from watchfloor import Agent, MailItem, Turn

FILE = Path("greeting.txt")


async def think(turn: Turn, mail: tuple[MailItem, ...]) -> str:
    outcome = await turn.call("write", {"text": mail[-1].text}, key="write")
    return "written" if outcome.ok else f"not written: {outcome.note}"


def write(text: str) -> str:
    return f"{FILE.write_text(text)} characters"


async def main() -> None:
    agent = Agent.builder().data_folder("sessions").tool(write).function(think).build()
    session = agent.open("greeting")
    if session.pending is None:
        await agent.run(session, " ".join(sys.argv[1:]))
    while session.pending is not None:
        action = session.pending.read().actions[0]
        print(f"{action.tool} {action.arguments}: allow, allow_session or deny?", flush=True)
        await agent.answer(session.id, (await asyncio.to_thread(sys.stdin.readline)).strip())
        await agent.resume(session)
    print(session.messages[-1].text)


if __name__ == "__main__":
    asyncio.run(main())
