"""A supervisor whose children do the work, and which is told when each of them is done.

python examples/supervisor.py  then, in another terminal:
watchfloor                     which finds it; press `a` to let a child write, `d` to deny
"""

import asyncio
from contextlib import suppress
from pathlib import Path

from watchfloor import FunctionHarness, Host, MailItem, Run

PARTS = ("walls", "roof")
FOLDER = Path.cwd()


async def build(run: Run, mail: tuple[MailItem, ...]) -> str:
    file = FOLDER / f"{run.name}.txt"
    outcome = await run.tool("write", {"file": str(file)}, lambda: file.write_text(mail[-1].text))
    return f"{run.name} {'built' if outcome.ok else 'not built'}"


async def supervise(run: Run, mail: tuple[MailItem, ...]) -> str:
    if mail[-1].event is None:
        for part in PARTS:
            host.live(run.spawn(build, part, f"Build the {part}")).notify(host.live(run.session_id))
        return f"{len(PARTS)} children are at work"
    return "; ".join(item.text.rpartition("\n")[2] for item in mail)


async def main() -> None:
    async with host:
        host.add(FunctionHarness(supervise), name="supervisor", text="Build a house")
        print("listening on", await host.serve(), flush=True)
        await asyncio.Event().wait()


host = Host(name="supervisor example")

if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
