"""What must not be lost, asked for nothing, or decided unread."""

from __future__ import annotations

from pathlib import Path

from console.fleet.decisions.decide import TOO_LARGE
from console.fleet.state import Trail
from console.intake.bounds import KEEP_ACTION
from tests.screens.staged import ALLOW, DENY, WIDE, Stage, staged
from watchfloor.protocol import model as m
from watchfloor.text import Clean
from watchfloor.words import Contact, OptionKind, OutcomeKind, Primitive
from widgets.text_prompt import TextPrompt

DECLINE = m.Option(id="no", label="I will not say", kind=OptionKind.DENY)


async def test_a_question_is_declined_at_once_since_an_answer_carries_no_reason(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("s1")
        branch = m.FormField(name="branch", type=m.FieldType.TEXT, label="Which branch?")
        stage.host.question("q1", fields=(branch,), options=(DECLINE,))
        await stage.show()
        await stage.press("i")
        await stage.show(1_000)
        assert "with reason" not in stage.console.footer
        await stage.press("D")
        assert stage.console.asking == ""
        assert [(intent.primitive, intent.option, intent.note) for intent in stage.sent] == [
            (Primitive.ANSWER, "no", None)
        ]


async def test_a_text_that_was_not_delivered_stands_there_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("s1")
        await stage.show()
        hub = stage.console.app.hub

        async def fails(trail: Trail, **_: float) -> None:
            stage.host.contact(Contact.LOST, "connection reset")
            stage.console.app.take(hub.fleet.settle(trail.id, OutcomeKind.UNDELIVERED, Clean("reset"), stage.clock()))

        hub.dispatch = fails  # type: ignore[method-assign]
        await stage.press("s", *"keep the column", "enter")
        await stage.show()
        assert "what you wrote is kept" in stage.said
        stage.host.contact(Contact.LIVE)
        await stage.show(2_000)
        await stage.press("s")
        assert stage.console.app.fleet_screen.query_one(TextPrompt).text == "keep the column"


async def test_a_text_that_was_sent_is_not_offered_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("s1")
        await stage.show()
        await stage.press("s", *"go on", "enter")
        await stage.show(2_000)
        await stage.press("s")
        assert len(stage.sent) == 1
        assert stage.console.app.fleet_screen.query_one(TextPrompt).text == ""


async def large(stage: Stage) -> None:
    stage.host.session("s1")
    stage.host.ask("r1", text="echo " + "x" * KEEP_ACTION, options=(ALLOW, WIDE, DENY))
    await stage.show()
    await stage.press("i", "end")
    await stage.show(1_000)


async def test_what_is_too_large_to_be_shown_whole_can_only_be_denied(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await large(stage)
        card = stage.console.card.card
        assert card is not None
        assert TOO_LARGE in [text for text, _ in card.flags]
        await stage.press("a")
        assert not stage.sent
        assert TOO_LARGE in stage.said
        await stage.press("A")
        assert TOO_LARGE in " ".join(stage.console.asking.split())
        await stage.show(1_000)
        await stage.press("1", "2")
        assert not stage.sent
        await stage.press("escape")
        await stage.show(1_000)
        await stage.press("d")
        assert [intent.option for intent in stage.sent] == ["no"]
