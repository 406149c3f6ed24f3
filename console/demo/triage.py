"""The agent that asks: where a ticket belongs (options, or in words), and what goes into the summary (a form)."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic import JsonValue

from console.demo.project import TICKETS
from console.demo.stage import Mail, Stage, forget
from watchfloor.harness.run import Answer, Run
from watchfloor.protocol.model import Choice, FieldType, FormField

QUEUES: Final = ("billing", "shipping", "website")
SUMMARY: Final = f"{TICKETS}/summary.txt"
_TONES: Final = ("short", "friendly", "formal")
_FORM: Final = (
    FormField(name="title", type=FieldType.TEXT, label="Title of the summary"),
    FormField(
        name="queues",
        type=FieldType.MANY,
        label="Which queues it covers",
        choices=tuple(Choice(value=queue, label=queue) for queue in QUEUES),
    ),
    FormField(
        name="tone",
        type=FieldType.CHOICE,
        label="How it is written",
        choices=tuple(Choice(value=tone, label=tone) for tone in _TONES),
        default="short",
    ),
    FormField(name="most", type=FieldType.NUMBER, label="Most tickets of each queue", default=5),
    FormField(name="numbers", type=FieldType.BOOL, label="With the numbers of the tickets", required=False),
)


class Triage:
    """Two tickets, then a summary, for ever; each answer is carried out in the folder of the tickets."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._asked = 0
        self._waiting: list[str] = []

    async def __call__(self, run: Run, mail: Mail) -> None:
        stage = self._stage
        if not mail:
            await run.say("I sort the tickets. Where I am not sure I ask.")
        while True:
            for item in mail:
                await run.say(f"Thank you, {item.by}. I keep in mind: {item.text}")
            if self._asked % 3 == 2:
                await self._summary(run)
            else:
                await self._sort(run)
            self._asked += 1
            forget(run)
            looks = (f"ls {TICKETS}", f"wc -l {TICKETS}/*.txt", f"grep -h '^About:' {TICKETS}/*.txt")
            mail = await stage.fill(run, stage.reserve(), [partial(stage.shell, run, look) for look in looks])

    # --- one ticket

    async def _sort(self, run: Run) -> None:
        name = self._longest_waiting()
        text = await self._stage.read(run, f"{TICKETS}/{name}")
        about = next((line.removeprefix("About: ") for line in text.splitlines() if line.startswith("About: ")), "")
        answer = await run.ask(f"{name}: {about}. Who takes it?", QUEUES, free_text=True)
        self._waiting.remove(name)
        if answer.option is not None:
            await self._hand_over(run, name, answer.option)
        elif answer.text is not None:
            await self._stage.edit(run, f"{TICKETS}/{name}", f"{text}\nAnswer: {answer.text}\n", gate=False)
            await run.say(f"Your words stand under {name} now.")
            self._waiting.append(name)
        else:
            await run.say(f"Then {name} waits.")
            self._waiting.append(name)

    def _longest_waiting(self) -> str:
        """When all tickets are sorted they come back, as new ones would."""
        folder = self._stage.workspace / TICKETS
        if not self._waiting:
            for queue in QUEUES:
                for path in sorted((folder / queue).glob("ticket-*.txt")):
                    path.rename(folder / path.name)
            self._waiting = sorted(path.name for path in folder.glob("ticket-*.txt"))
            self._stage.rng(f"triage/{self._asked}").shuffle(self._waiting)
        return self._waiting[0]

    async def _hand_over(self, run: Run, name: str, queue: str) -> None:
        def call() -> str:
            folder = self._stage.workspace / TICKETS
            (folder / queue).mkdir(exist_ok=True)
            (folder / name).rename(folder / queue / name)
            return f"{TICKETS}/{queue}/{name}"

        cwd = str(self._stage.workspace)
        await run.tool("move", None, call, gate=False, text=f"{TICKETS}/{name} to {queue}", cwd=cwd)
        await run.say(f"{name} went to {queue}, as you said.")

    # --- the summary

    async def _summary(self, run: Run) -> None:
        answer = await run.ask("What goes into the summary of this week?", fields=_FORM)
        if not answer.answered:
            await run.say("Then there is no summary this time.")
            return
        await self._stage.edit(run, SUMMARY, self._summarised(answer), gate=False)
        await run.say(f"The summary stands in {SUMMARY}: {answer.fields.get('title')}.")

    def _summarised(self, answer: Answer) -> str:
        given: dict[str, JsonValue] = {field.name: answer.fields.get(field.name, field.default) for field in _FORM}
        queues, most = given["queues"], given["most"]
        lines = [f"{given['title']}", f"Tone: {given['tone']}", ""]
        for queue in queues if isinstance(queues, list) else []:
            tickets = sorted((self._stage.workspace / TICKETS / str(queue)).glob("ticket-*.txt"))
            # What is no sensible number (JSON of some writers has an infinite one) asks for all of them.
            count = int(most) if isinstance(most, int | float) and abs(most) < 1000 else len(tickets)
            numbers = [path.stem for path in tickets[: max(0, count)]] if given["numbers"] else []
            lines.append(f"{queue}: {len(tickets)} tickets" + (f" ({', '.join(numbers)})" if numbers else ""))
        return "".join(f"{line}\n" for line in lines)
