"""An agent that asks with a form: fields of several sorts, answered together.

python examples/forms.py     then, in another terminal:
watchfloor                   which finds it; press `i` to open its question, then `o` to fill in the form
"""

import asyncio
from contextlib import suppress

from watchfloor import Choice, FieldType, FormField, FunctionHarness, Host, MailItem, Run

FIELDS = (
    FormField(
        name="city", type=FieldType.CHOICE, choices=(Choice(value="c", label="Cork"), Choice(value="g", label="Galway"))
    ),
    FormField(name="boxes", type=FieldType.NUMBER, label="How many boxes?"),
    FormField(name="express", type=FieldType.BOOL, required=False),
    FormField(name="note", type=FieldType.TEXT, label="For the driver", required=False),
)


async def agent(run: Run, mail: tuple[MailItem, ...]) -> str:
    answer = await run.ask("Where does the order go?", fields=FIELDS)
    if not answer.answered:
        return "nobody said where"
    speed = "express" if answer.fields.get("express") else "in its turn"
    return f"{answer.fields['boxes']} boxes to {answer.fields['city']}, {speed}"


async def main() -> None:
    async with Host(name="forms example") as host:
        host.add(FunctionHarness(agent), name="shipper", text="Send the order")
        print("listening on", await host.serve(), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
