"""What is streamed: numbered, closed by its whole, cut where it has no end."""

from __future__ import annotations

import pytest

from tests.unit.host.glass import Glass
from tests.unit.host.rows import drive
from watchfloor.errors import ContractError
from watchfloor.host.sessions.streams import ITEM_TEXT
from watchfloor.protocol.events import Delta, Event, Message, Raw, Reasoning, ToolOutput, ToolResult, ToolStatus
from watchfloor.words import Row


def test_a_streamed_item_is_numbered_by_code_points_and_closed_by_its_whole() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.forget()
    for piece in ("né", "\N{GRINNING FACE}", "!"):
        puppet.take(puppet.core.stream("i1", "message", piece, 1))
    assert [(delta.offset, delta.text) for delta in puppet.of(Delta)] == [(0, "né"), (2, "\N{GRINNING FACE}"), (3, "!")]
    assert [(d.offset, d.text) for d in puppet.core.streams.so_far(9)] == [(0, "né\N{GRINNING FACE}!")]
    puppet.take(puppet.core.emit(Message(at=0, item="i1", text="né\N{GRINNING FACE}!"), 2))
    assert puppet.core.streams.so_far(9) == []


@pytest.mark.parametrize("of", ["message", "reasoning", "tool_output", "plan", "diff"])
def test_an_item_that_is_cut_off_is_closed_before_the_result(of: str) -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.take(puppet.core.stream("i1", of, "half a", 1))
    puppet.forget()
    puppet.end_turn()
    events = [e for e in puppet.events if e.item == "i1"]
    assert len(events) == 1
    assert getattr(events[0], "cut", True)
    assert "half a" in events[0].model_dump_json()
    kinds = [e.model_dump()["kind"] for e in puppet.events]
    assert kinds.index("result") == 1


def test_only_streamable_things_are_streamed() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    with pytest.raises(ContractError):
        puppet.core.stream("i1", "result", "x", 1)


# --- items without end


@pytest.mark.parametrize("of", ["message", "reasoning", "tool_output", "plan", "diff"])
@pytest.mark.parametrize("piece", [1_000, 64_000, 3_000_000])
def test_an_item_without_end_is_cut_and_costs_no_more_memory(of: str, piece: int) -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.forget()
    written = 0
    while written < 3_000_000:
        puppet.take(puppet.core.stream("i1", of, "é" * piece, 1))
        written += piece
    text = "".join(delta.text for delta in puppet.of(Delta))
    assert text == "é" * ITEM_TEXT
    (so_far,) = puppet.core.streams.so_far(9)
    assert (so_far.offset, so_far.text) == (0, text)
    puppet.forget()
    puppet.end_turn()
    (whole,) = [event for event in puppet.events if event.item == "i1"]
    assert (whole.data if isinstance(whole, Raw) else getattr(whole, "text", None)) == text
    assert isinstance(whole, Raw) or getattr(whole, "cut", False)
    # The next item begins anew.
    puppet.forget()
    puppet.take(puppet.core.stream("i2", of, "x", 1))
    assert [(delta.offset, delta.text) for delta in puppet.of(Delta)] == [(0, "x")]


def test_pieces_without_text_cost_nothing() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    for _ in range(100):
        puppet.core.stream("i1", "message", "", 1)
    puppet.core.stream("i1", "message", "a", 1)
    assert [(delta.offset, delta.text) for delta in puppet.core.streams.so_far(9)] == [(0, "a")]


@pytest.mark.parametrize(
    "event",
    [
        Message(at=1, item="i1", text="😀" * (ITEM_TEXT + 1)),
        Reasoning(at=1, text="x" * (2 * ITEM_TEXT)),
        ToolOutput(at=1, item="i1", text="x" * (2 * ITEM_TEXT)),
        ToolResult(at=1, call="c", status=ToolStatus.OK, text="x" * (2 * ITEM_TEXT)),
    ],
    ids=lambda event: str(event.kind),
)
def test_a_whole_item_without_end_is_cut_as_well_and_reaches_the_clients(event: Event) -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    glass.watch("c")
    glass.apply(session.stream("i1", "message", "half", glass.now))
    glass.apply(session.emit(event, glass.now))
    glass.flush()
    got = glass.events("c")[-1]
    assert type(got) is type(event)
    assert isinstance(got, Message | Reasoning | ToolOutput | ToolResult)
    assert (len(got.text), got.cut) == (ITEM_TEXT, True)
    (session_log,) = [e for e in glass.core.log.read("s1", limit=5000) if e.seq == got.seq]
    assert session_log == got


def test_what_fits_is_not_cut() -> None:
    puppet = drive(Row.RUNNING, pending=False)
    puppet.forget()
    text = "x" * ITEM_TEXT
    puppet.take(puppet.core.stream("i1", "message", text, 1))
    puppet.take(puppet.core.emit(Message(at=0, item="i1", text=text), 2))
    (whole,) = puppet.of(Message)
    assert (whole.text, whole.cut) == (text, False)
