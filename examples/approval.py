"""An agent that writes a file once an operator has approved it.

python examples/approval.py  then, in another terminal:
watchfloor                   which finds it; press `a` to approve, `d` to deny
"""

import asyncio
from contextlib import suppress
from pathlib import Path

from watchfloor import FunctionHarness, Host, MailItem, Run

FILE = Path("greeting.txt").absolute()


async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
    text = mail[-1].text
    outcome = await run.tool("write", {"file": str(FILE), "text": text}, lambda: FILE.write_text(text))
    return f"wrote {FILE.name}" if outcome.ok else f"wrote nothing: {outcome.note or 'denied'}"


async def main() -> None:
    async with Host(name="approval example") as host:
        host.add(FunctionHarness(agent), name="writer", text="Hello from the floor")
        print("listening on", await host.serve(), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
