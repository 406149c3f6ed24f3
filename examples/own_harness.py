"""A harness of one's own, in the smaller seam: a machine that counts, can be interrupted, and ends where it is told to.

    python examples/own_harness.py

Send it a number, or "enough", which ends it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from watchfloor import Host, OneResult, Streamed
from watchfloor.harness.base import AttemptSpec, Interrupt, Signal, Stop, Wake
from watchfloor.protocol.events import Event, Message, ResultEvent
from watchfloor.protocol.model import Capabilities, NoOptions, Result, SendOptions, StopOptions
from watchfloor.words import StopReason


class Attempt:
    def __init__(self, spec: AttemptSpec) -> None:
        self.capabilities = Counter.capabilities
        self.told: asyncio.Queue[Event | None] = asyncio.Queue()
        self.result = OneResult()
        self.session = spec.session_id
        self.work: asyncio.Task[None] | None = None

    @property
    async def events(self) -> AsyncIterator[Event]:
        while (event := await self.told.get()) is not None:
            yield event

    async def intervene(self, signal: Signal) -> None:
        match signal:
            case Wake(mail=mail) if mail and mail[-1].text == "enough":
                self.over(Result(text="counted", stop_reason=StopReason.END_TURN, session_id=self.session))
            case Wake(mail=mail):
                self.work = asyncio.create_task(self.count(mail[-1].text if mail else "1"))
            case Interrupt() if self.work is not None:
                self.work.cancel()
            case Stop():
                await self.close()
                self.over(None)

    async def count(self, text: str) -> None:
        reason = StopReason.END_TURN
        try:
            for number in range(1, int(text) + 1):
                self.told.put_nowait(Message(at=0, text=str(number)))
                await asyncio.sleep(0.1)
        except (asyncio.CancelledError, ValueError) as error:
            reason = StopReason.CANCELLED if isinstance(error, asyncio.CancelledError) else StopReason.ERROR
        self.told.put_nowait(ResultEvent(at=0, result=Result(stop_reason=reason, session_id=self.session)))

    def over(self, result: Result | None) -> None:
        self.result.give(result)
        self.told.put_nowait(None)

    async def wait_result(self) -> Result | None:
        return await self.result.wait()

    async def close(self) -> None:
        if self.work is not None:
            self.work.cancel()
            await asyncio.wait({self.work})


class Counter:
    capabilities = Capabilities(send=SendOptions(), interrupt=NoOptions(), stop=StopOptions(kill=True))

    async def start(self, spec: AttemptSpec) -> Attempt:
        return Attempt(spec)


async def main() -> None:
    async with Host(name="own harness") as host:
        host.add(Streamed(Counter()), name="counter", text="1000")
        print("listening on", await host.serve(), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
