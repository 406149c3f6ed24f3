"""The agent with every control: it publishes the site, one release a turn, and asks before it acts."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from console.demo.project import NOTES
from console.demo.stage import Mail, Stage, forget
from console.demo.texts import pieces, reason
from watchfloor.harness.base import MailItem
from watchfloor.harness.run import ALLOW_ONCE, DENY, Run
from watchfloor.protocol.model import Option
from watchfloor.words import Lifecycle, OptionKind, Scope

FIRST: Final = 3
"""The first release of a demo."""
SCHEDULE: Final = "schedule"
"""Who wakes the agent for the next release."""
SESSION: Final = "allow-session"
_PREVIEW: Final = "mkdir -p preview && cp build/site.tar preview/site.tar"
_AGAIN_S = 5.0


class Deploy:
    """One release a turn; between two of them it is idle until the schedule, or an operator, wakes it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._number = FIRST
        self._under_way = False
        self._known = False
        self._read: set[str] = set()
        self._allowed: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, run: Run, mail: Mail) -> str:
        if self._timer is not None:
            self._timer.cancel()
        begins = not any(message.role == "assistant" for message in run.messages)
        if begins:
            await self._introduce(run)
        wanted = await self._heed(run, mail)
        if wanted and not begins and not self._under_way:
            result = f"Release {self._number} comes with the schedule."
        else:
            result = await self._release(run)
        forget(run)
        self._ring_in(self._stage.reserve(), run.session_id)
        return result

    async def _introduce(self, run: Run) -> None:
        """An empty conversation: nothing that was allowed before is remembered."""
        self._allowed.clear()
        if self._known:
            await run.say(f"My conversation is empty. I go on with release {self._number} and take nothing as allowed.")
        else:
            await run.say("I publish the site from this folder: look, build, ask, copy.")
        self._known = True

    # --- the schedule

    def _ring_in(self, seconds: float, session: str) -> None:
        self._timer = self._stage.later(seconds, lambda: self._ring(session))

    def _ring(self, session: str) -> None:
        match self._stage.lifecycle(session):
            case Lifecycle.IDLE:
                ref = self._stage.post(session, f"It is time for release {self._number}.", SCHEDULE)
                if ref is not None:
                    self._read.add(ref)
            case Lifecycle.PAUSED:
                self._ring_in(_AGAIN_S, session)
            case _:
                return

    # --- mail

    async def _heed(self, run: Run, mail: Mail) -> bool:
        """Do what operators ask for; True if there was anything."""
        fresh = [item for item in mail if item.ref not in self._read]
        for item in fresh:
            await self._note(run, item)
            self._read.add(item.ref)
        return bool(fresh)

    async def _note(self, run: Run, item: MailItem) -> None:
        await run.say(f"Understood, {item.by}. I would like to keep that in {NOTES}.")
        text = f"{self._stage.text(NOTES)}{item.text}\n"
        outcome = await self._stage.edit(run, NOTES, text, gate=True, about="the words of the last message")
        await run.say(f"It stands in {NOTES} now." if outcome.ok else "Then I keep no note of it and go on.")

    async def _pause(self, run: Run, seconds: float) -> None:
        await self._heed(run, await self._stage.rest(run, seconds))

    # --- a release

    async def _release(self, run: Run) -> str:
        number, stage = self._number, self._stage
        self._under_way = True
        # The very first request must not keep anybody waiting.
        rest_s = 0.0 if number == FIRST else 2.5
        rng = stage.rng(f"deploy/{number}")
        why = reason(rng)
        if number > FIRST:
            await self._build(run, number, why)
        run.progress(f"release {number}: looking")
        for command in ("ls -l build content", "wc -c build/site.tar"):
            await stage.shell(run, command)
            await self._pause(run, rest_s)
        await stage.read(run, "content/changelog.md")
        published = await self._publish(run, number, why)
        await self._look_around(
            run, f"cmp build/site.tar release/site-{number}.tar" if published else "ls release || true"
        )
        if number % 2:
            await self._preview(run)
        else:
            await self._tidy(run)
        self._number += 1
        self._under_way = False
        return f"Release {number} is published." if published else f"Release {number} was not published."

    async def _look_around(self, run: Run, check: str) -> None:
        """Something to do until the next request may be asked."""
        looks = (check, "wc -w content/*.md", "grep -c . content/*.md", "ls -l content")
        steps = [partial(self._stage.shell, run, look) for look in looks]
        await self._heed(run, await self._stage.fill(run, self._stage.reserve(), steps))

    async def _build(self, run: Run, number: int, why: str) -> None:
        await self._think(
            run, f"Release {number} is due because {why}. The pages have to be packed before anything else."
        )
        await self._pause(run, 2.0)
        log = "content/changelog.md"
        line = f"Release {number}: {why}.\n"
        if line not in self._stage.text(log):
            await self._stage.edit(run, log, self._stage.text(log) + line, gate=False)
        await self._stage.shell(run, "python3 tools/pack.py")
        await self._pause(run, 2.0)

    async def _think(self, run: Run, text: str) -> None:
        async with run.stream("reasoning") as out:
            for piece in pieces(text, 6):
                await out.write(piece)
                await run.sleep(0.1)

    async def _publish(self, run: Run, number: int, why: str) -> bool:
        tar = f"release/site-{number}.tar"
        run.progress(f"release {number}: ready")
        outcome = await self._stage.shell(
            run, f"mkdir -p release && cp build/site.tar {tar}", gate=True, about=f"publish, because {why}"
        )
        if outcome.ok:
            await self._stage.shell(run, "ls -l release")
            size = (self._stage.workspace / tar).stat().st_size
            await run.say(f"{tar} is there, {size} bytes.")
        else:
            await run.say(f"{tar} was not made. I go on without it.")
        return outcome.ok

    async def _preview(self, run: Run) -> None:
        if _PREVIEW in self._allowed:
            await self._stage.shell(run, _PREVIEW)
            await run.say("The preview is renewed; that was allowed for this session.")
            return
        session = Option(
            id=SESSION,
            label="Allow for this session",
            kind=OptionKind.ALLOW,
            scope=Scope.SESSION,
            grants=(f"shell: {_PREVIEW}",),
        )
        outcome = await self._stage.shell(
            run, _PREVIEW, gate=True, options=(ALLOW_ONCE, session, DENY), about="renew the preview"
        )
        if outcome.option == SESSION:
            self._allowed.add(_PREVIEW)
        await run.say("The preview is renewed." if outcome.ok else "The preview stays as it is.")

    async def _tidy(self, run: Run) -> None:
        outcome = await self._stage.shell(run, "rm -rf build preview", gate=True, about="start the next build clean")
        if not outcome.ok:
            await run.say("build and preview stay; the next build writes over them.")
            return
        await run.say("build and preview are gone; the next build makes them anew.")
