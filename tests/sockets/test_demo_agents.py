"""What the other agents of the demo do with what operators decide."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from console.demo.texts import CITIES
from tests.sockets.demo_kit import FAST, NEVER, Operator, demo
from watchfloor.protocol.events import Notice, Progress, ToolCall
from watchfloor.protocol.frames import DoInterrupt, DoPause, DoResume, DoSend, DoStop
from watchfloor.protocol.model import RequestModel
from watchfloor.words import Lifecycle, OutcomeKind, RequestKind


async def becomes(operator: Operator, session: str, lifecycle: Lifecycle) -> None:
    await operator.until(lambda: operator.summaries[session].lifecycle is lifecycle)


# --- migrate -------------------------------------------------------------------------------


async def test_a_long_script_runs_as_it_stands_on_the_request(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        await operator.decides(await operator.is_asked("migrate"), "allow")
        await operator.hears("migrate", "Done: the tables")
        tables = {path.stem: path.read_text().splitlines() for path in (tmp_path / "db/tables").glob("*.tsv")}
        assert set(tables) == {city.lower() for city in CITIES}
        orders = (tmp_path / "data/orders.csv").read_text().splitlines()[1:]
        assert sum(map(len, tables.values())) == len(orders)


async def test_a_denied_script_does_not_run_and_the_next_one_is_asked_for(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        request = await operator.is_asked("migrate")
        await operator.decides(request, "deny")
        await operator.hears("migrate", "Not done.")
        assert not (tmp_path / "db/tables").exists()
        assert (await operator.is_asked("migrate")).read().actions[0].text == "rm -rf db/tmp"


async def test_a_script_that_fails_is_told_as_failed(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        # The archive has nothing to copy where no report was allowed.
        while "db/archive" not in str((await operator.is_asked("migrate")).read().actions[0].text):
            await operator.decides(await operator.is_asked("migrate"), "deny")
        await operator.decides(await operator.is_asked("migrate"), "allow")
        await operator.hears("migrate", "It did not work (exit status 1)")
        await operator.is_asked("migrate")


# --- triage --------------------------------------------------------------------------------


async def question(operator: Operator) -> tuple[RequestModel, str]:
    """The question about a ticket, and the ticket's name."""
    request = await operator.is_asked("triage", RequestKind.QUESTION)
    return request, request.read().fields[0].label.partition(":")[0]


async def test_an_answer_by_option_and_one_in_words_are_carried_out(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        request, ticket = await question(operator)
        assert [option.id for option in request.read().options] == ["billing", "shipping", "website"]
        await operator.answers(request, option="shipping")
        await operator.hears("triage", f"{ticket} went to shipping")
        assert (tmp_path / "tickets/shipping" / ticket).exists()
        assert not (tmp_path / "tickets" / ticket).exists()

        request, ticket = await question(operator)
        await operator.answers(request, text="ask Ada, she knows")
        await operator.hears("triage", f"Your words stand under {ticket}")
        assert (tmp_path / "tickets" / ticket).read_text().endswith("Answer: ask Ada, she knows\n")


async def test_a_form_is_filled_into_the_summary(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        tickets = []
        for _ in range(2):
            request, ticket = await question(operator)
            await operator.answers(request, option="billing")
            tickets.append(ticket.removesuffix(".txt"))
        form = await operator.is_asked("triage", RequestKind.QUESTION)
        assert [field.name for field in form.read().fields] == ["title", "queues", "tone", "most", "numbers"]
        refused = await operator.answers(form, fields={"title": "Week 1", "queues": ["nowhere"]})
        assert refused.outcome is OutcomeKind.INVALID
        fields = {"title": "Week 1", "queues": ["billing", "website"], "tone": "formal", "numbers": True}
        assert (await operator.answers(form, fields=fields)).outcome is OutcomeKind.APPLIED
        await operator.hears("triage", "tickets/summary.txt: Week 1")
        assert (tmp_path / "tickets/summary.txt").read_text().splitlines() == [
            "Week 1",
            "Tone: formal",
            "",
            f"billing: 2 tickets ({', '.join(sorted(tickets))})",
            "website: 0 tickets",
        ]


async def test_a_message_takes_up_again_what_an_interrupt_ended(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        _, ticket = await question(operator)
        await operator.does("triage", DoInterrupt())
        await becomes(operator, "triage", Lifecycle.IDLE)
        await operator.does("triage", DoSend(text="be quick"))
        await operator.hears("triage", "I keep in mind: be quick")
        assert (await question(operator))[1] == ticket


# --- docs and its children -----------------------------------------------------------------


async def test_a_child_asks_with_the_difference_and_writes_exactly_that(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        for guide, option in (("guide", "allow"), ("faq", "deny")):
            path = tmp_path / f"docs/{guide}.md"
            before = path.read_text()
            request = await operator.is_asked(f"docs-{guide}")
            action = request.read().actions[0]
            assert (action.tool, action.text, action.cwd) == ("edit", f"docs/{guide}.md", str(tmp_path))
            added = [line[1:] for line in (action.diff or "").splitlines()[2:] if line.startswith("+")]
            assert len(added) == 1
            await operator.decides(request, option)
            await operator.hears(f"docs-{guide}", f"docs/{guide}.md ")
            assert path.read_text() == before + ("".join(f"{line}\n" for line in added) if option == "allow" else "")


async def test_a_file_that_was_changed_after_the_request_is_left_alone(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        request = await operator.is_asked("docs-guide")
        (tmp_path / "docs/guide.md").write_text("mine now\n")
        await operator.decides(request, "allow")
        await operator.hears("docs-guide", "Not written: docs/guide.md was changed meanwhile")
        assert (tmp_path / "docs/guide.md").read_text() == "mine now\n"


async def test_the_parent_passes_a_message_on_to_the_child_that_it_names(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        await operator.does("docs", DoSend(text="Say in the FAQ that glass is never stacked."))
        await operator.hears("docs", "Passed on to docs-faq.")
        await operator.decides(await operator.is_asked("docs-faq"), "deny")
        await operator.hears("docs-faq", "A sentence from docs.")
        await operator.until(lambda: len(operator.asked("docs-faq")) == 2)
        await operator.decides(await operator.is_asked("docs-faq"), "allow")
        await operator.hears("docs-faq", "docs/faq.md is changed.")
        assert (tmp_path / "docs/faq.md").read_text().endswith("Say in the FAQ that glass is never stacked.\n")


async def test_a_parent_that_starts_anew_keeps_its_children(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        before = set(operator.summaries)
        await operator.does("docs", DoStop())
        await becomes(operator, "docs", Lifecycle.STOPPED)
        await operator.does("docs", DoResume())
        await operator.until(lambda: len(operator.said("docs")) == 2)
        assert set(operator.summaries) == before


# --- those that ask nobody -----------------------------------------------------------------


async def test_the_one_that_fails_works_when_it_is_retried(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        await becomes(operator, "indexer", Lifecycle.FAILED)
        summary = operator.summaries["indexer"]
        assert summary.attempt == 1
        assert summary.error == (
            "IndexLocked: index/lock was left by an earlier run. It is removed now; nothing was indexed"
        )
        assert summary.controls["resume"] == "Retry (attempt 2)"
        assert not (tmp_path / "index/words.txt").exists()
        await operator.does("indexer", DoResume())
        await becomes(operator, "indexer", Lifecycle.COMPLETED)
        summary = operator.summaries["indexer"]
        assert summary.attempt == 2
        assert summary.result is not None
        assert summary.result.text.startswith("Attempt 2 worked: ")
        words = [line.split() for line in (tmp_path / "index/words.txt").read_text().splitlines()]
        text = " ".join(path.read_text().lower() for path in (tmp_path / "library").glob("*.txt"))
        assert {word: int(count) for count, word in words}["lund"] == text.count("lund")


async def test_the_watcher_sees_what_others_change(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        await operator.until(lambda: "docs/guide.md" in [event.text for event in operator.of("checksums", ToolCall)])
        # The look at the next file: the one at the guide is over.
        await operator.until(lambda: operator.of("checksums", ToolCall)[-1].text != "docs/guide.md")
        await operator.decides(await operator.is_asked("docs-guide"), "allow")
        await operator.until(lambda: "docs/guide.md has changed" in [e.text for e in operator.of("checksums", Notice)])


async def test_the_one_that_can_only_be_paused_pauses_and_goes_on(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=NEVER) as operator:
        await operator.does("checksums", DoPause())
        await becomes(operator, "checksums", Lifecycle.PAUSED)
        await operator.does("checksums", DoResume())
        await becomes(operator, "checksums", Lifecycle.RUNNING)


async def test_the_observed_one_gets_through_its_rows_and_begins_again(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        await operator.until(lambda: len(operator.said("legacy-etl")) >= 3)
        reading, total, again = operator.said("legacy-etl")[:3]
        assert reading == again == "Reading data/orders.csv."
        orders = [line.split(",") for line in (tmp_path / "data/orders.csv").read_text().splitlines()[1:]]
        cents = sum(int(count) * int(price) for _, _, count, price, _ in orders)
        assert total.startswith(f"{len(orders):,} rows, {cents // 100:,} in all; ")
        assert len(operator.of("legacy-etl", Progress)) >= len(orders) // 40


# --- the streamer and the program ----------------------------------------------------------


async def test_a_message_with_a_city_changes_what_the_streamer_reads(tmp_path: Path) -> None:
    async with demo(tmp_path, rate=200, tempo=NEVER) as operator:
        await operator.does("narrator", DoSend(text="only Lund, please"))
        await operator.hears("narrator", "the orders of Lund only")

        def later() -> list[str]:
            said = operator.said("narrator")
            return said[said.index("From here on the orders of Lund only.") + 1 :]

        await operator.until(lambda: len(later()) >= 10)
        assert all(" for Lund, " in sentence for sentence in later())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no process table to read")
async def test_a_pause_stops_the_program_itself_and_its_end_is_that_of_the_demo(tmp_path: Path) -> None:
    async with demo(tmp_path, tempo=FAST) as operator:
        await operator.until(lambda: operator.of("linecount", Notice))
        pid = int(operator.of("linecount", Notice)[0].text.rpartition("process ")[2].rstrip(")"))
        await operator.does("linecount", DoPause())
        await becomes(operator, "linecount", Lifecycle.PAUSED)
        assert state(pid) == "T"
        await operator.does("linecount", DoResume())
        await becomes(operator, "linecount", Lifecycle.RUNNING)
        seen = len(operator.events["linecount"])
        await operator.until(lambda: len(operator.events["linecount"]) > seen + 1)
        assert state(pid) in "RS"
    assert pid not in {int(name) for name in os.listdir("/proc") if name.isdigit()}


def state(pid: int) -> str:
    """The letter of the process table."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
