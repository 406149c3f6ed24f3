"""An agent of Pydantic AI, hosted. Needs the extra: pip install 'watchfloor[pydantic-ai]'

python examples/pydantic_ai_agent.py  then, in another terminal:
watchfloor                            which finds it; press `a` to let it deploy, `d` to deny

Its model is a function, so that it runs without a provider; put the name of a model of yours in its place.
"""

import asyncio
from contextlib import suppress

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from watchfloor import Host
from watchfloor.harness.pydantic_ai import PydanticAiHarness

agent = Agent(TestModel(custom_output_text="All done."), instructions="You deploy what you are told to.")


@agent.tool_plain(requires_approval=True)
def deploy(place: str) -> str:
    """Deploy to a place."""
    return f"deployed to {place}"


async def main() -> None:
    async with Host(name="pydantic-ai example") as host:
        host.add(PydanticAiHarness(agent), name="deployer", text="Deploy the site")
        print("listening on", await host.serve(), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
