"""A parent that looks after two guides, and its children, which write them and ask with the difference each time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from console.demo.project import GUIDES
from console.demo.stage import Mail, Stage, forget
from console.demo.texts import advice
from watchfloor.harness.function import FunctionHarness
from watchfloor.harness.run import Run
from watchfloor.protocol.events import ToolStatus
from watchfloor.protocol.model import Capabilities, NoOptions, SendOptions

CHILD: Final = Capabilities(send=SendOptions(), interrupt=NoOptions(), approve=NoOptions())
_LONGEST = 40  # lines of a guide
_LOOK_S = 12.0


class Docs:
    """Starts an editor for each guide, passes mail on to them, and watches how the guides grow."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._children: dict[str, str] = {}
        self._words: dict[str, int] = {}

    async def __call__(self, run: Run, mail: Mail) -> None:
        stage = self._stage
        for guide in GUIDES:
            if guide not in self._children:
                editor = FunctionHarness(Editor(stage, guide), capabilities=CHILD, starts_itself=True)
                self._children[guide] = run.spawn(editor, f"{run.name}-{Path(guide).stem}")
        await run.say(f"Two editors work for me, on {' and '.join(GUIDES)}.")
        while True:
            for item in mail:
                await self._pass_on(run, item.text)
            forget(run)
            mail = await stage.rest(run, _LOOK_S)
            await stage.shell(run, f"wc -w {' '.join(GUIDES)}")
            self._compare(run)

    async def _pass_on(self, run: Run, text: str) -> None:
        guide = next((g for g in GUIDES if Path(g).stem in text.lower()), GUIDES[0])
        child = self._children[guide]
        if self._stage.post(child, text, run.name) is None:
            await run.say(f"{child} takes no messages now; it was not passed on.")
        else:
            await run.say(f"Passed on to {child}.")

    def _compare(self, run: Run) -> None:
        for guide in GUIDES:
            words = len(self._stage.text(guide).split())
            before = self._words.get(guide, words)
            if words != before:
                run.progress(
                    f"{guide} has {words} words, {abs(words - before)} {'more' if words > before else 'fewer'}"
                )
            self._words[guide] = words


class Editor:
    """Writes a guide, one sentence at a time. A message is a sentence to add."""

    def __init__(self, stage: Stage, guide: str) -> None:
        self._stage = stage
        self._guide = guide
        self._number = 0

    async def __call__(self, run: Run, mail: Mail) -> None:
        stage, guide = self._stage, self._guide
        while True:
            for item in mail:
                await run.say(f"A sentence from {item.by}.")
                await self._offer(
                    run, f"{stage.text(guide)}{' '.join(item.text.split())}\n", "the words of the message"
                )
            if not mail:
                await self._offer(run, self._next(), "a sentence that I find missing")
                self._number += 1
            forget(run)
            mail = await stage.rest(run, stage.reserve())

    def _next(self) -> str:
        """The guide with a sentence of ours: added at its end, or in the place of an old one where it is long."""
        rng = self._stage.rng(f"{self._guide}/{self._number}")
        lines = self._stage.text(self._guide).splitlines(keepends=True)
        new = next((s for s in (f"{advice(rng)}\n" for _ in range(20)) if s not in lines[-1:]), "\n")
        if self._number % 3 == 1 or len(lines) >= _LONGEST:
            lines[rng.randrange(2, len(lines))] = new
        else:
            lines.append(new)
        return "".join(lines)

    async def _offer(self, run: Run, text: str, about: str) -> None:
        outcome = await self._stage.edit(run, self._guide, text, gate=True, about=about)
        if outcome.ok:
            await run.say(f"{self._guide} is changed.")
        elif outcome.status is ToolStatus.DECLINED:
            await run.say(f"{self._guide} stays as it is.")
        else:
            await run.say(f"Not written: {outcome.value}.")
