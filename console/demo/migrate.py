"""The agent that can only be allowed or denied: it asks for scripts, long and short, and runs them."""

from __future__ import annotations

from functools import partial

from console.demo.project import ORDERS
from console.demo.scripts import job
from console.demo.stage import Mail, Stage, forget, last_line
from watchfloor.harness.run import Run
from watchfloor.protocol.events import ToolStatus


class Migrate:
    """One script after the other, for ever."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._number = 0

    async def __call__(self, run: Run, mail: Mail) -> None:
        stage = self._stage
        await run.say("I keep the tables in db up to date. Each script waits for somebody to read it.")
        while True:
            task = job(self._number)
            outcome = await stage.shell(run, task.script, gate=True, about=task.why)
            if outcome.ok:
                await run.say(f"Done: {task.why}.")
            elif outcome.status is ToolStatus.DECLINED:
                await run.say(f"Not done. It stays open that {task.why}.")
            else:
                await run.say(f"It did not work ({last_line(outcome.value)}). It stays open that {task.why}.")
            self._number += 1
            forget(run)
            looks = (task.look if outcome.ok else "ls db", "find db -type f", "ls -l data", f"wc -l {ORDERS}")
            await stage.fill(run, stage.reserve(), [partial(stage.shell, run, look) for look in looks])
