"""An agent that works in steps, so that it can be paused, steered and asked to stop.

python examples/steering.py  then, in another terminal:
watchfloor                   which finds it; press `s` to send it another place, `p` and `r` to pause and resume
"""

import asyncio
from contextlib import suppress

from watchfloor import FunctionHarness, Host, MailItem, Run


async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
    places = [item.text for item in mail]
    answer = await run.ask("How many rounds?", ["1", "3"], free_text=True)
    rounds = int(answer.option or answer.text or 0)
    for number in range(rounds):
        # Between two rounds a pause lands, and what operators sent meanwhile is taken in.
        places += [item.text for item in await run.checkpoint()]
        run.progress(f"round {number + 1} of {rounds}")
        await run.say(f"Looking at {', '.join(places)}")
        await run.sleep(0.5)
    return f"{rounds} rounds over {len(places)} places"


async def main() -> None:
    async with Host(name="steering example") as host:
        host.add(FunctionHarness(agent), name="patrol", text="the north gate")
        print("listening on", await host.serve(), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
