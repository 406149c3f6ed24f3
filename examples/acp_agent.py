"""Any agent of the Agent Client Protocol, hosted. Needs the extra: pip install 'watchfloor[acp]'

python examples/acp_agent.py hermes acp  then, in another terminal:
watchfloor                               which finds it; press `s` to write it a prompt, `a` and `d` when it asks
"""

import asyncio
import sys
from contextlib import suppress

from watchfloor import Host
from watchfloor.harness.acp import AcpHarness


async def main() -> None:
    async with Host(name="acp example") as host:
        host.add(AcpHarness(sys.argv[1:]), name="agent")
        print("listening on", await host.serve(), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
