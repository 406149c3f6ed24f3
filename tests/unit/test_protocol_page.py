"""The protocol page, its schema and its table say what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from watchfloor.protocol import events, frames
from watchfloor.protocol.model import Subject
from watchfloor.protocol.schema import schema
from watchfloor.words import EXIT_CODE, TABLE, Cell, Op, Primitive, Row, Verdict

PAGE = Path(__file__).parents[2] / "docs" / "protocol" / "README.md"
SCHEMA = PAGE.with_name("schema.json")
VECTORS = PAGE.with_name("digest-vectors.json")


def cell_text(cell: Cell) -> str:
    """One cell of the table, as the page prints it."""
    if cell.verdict is Verdict.ERROR:
        return f"error: {cell.why}"
    words = [] if cell.verdict is Verdict.OK else [cell.verdict.value]
    words += [cell.delivery.value.upper()] if cell.delivery else []
    words += [f"*{', '.join(state.value for state in cell.to)}*"] if cell.to else []
    words += sorted(consequence.value for consequence in cell.also)
    return "; ".join(words) or "ok"


def state_table() -> str:
    lines = ["| state | " + " | ".join(op.value for op in Op) + " |", "| --- " * (len(Op) + 1) + "|"]
    lines += [f"| {row.value} | " + " | ".join(cell_text(TABLE[row][op]) for op in Op) + " |" for row in Row]
    return "\n".join(lines)


def test_the_state_table_of_the_page_is_the_table_of_the_code() -> None:
    found = re.search(r"<!-- state table -->\n(.*?)\n?<!-- /state table -->", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert found.group(1).strip() == state_table(), f"put this into {PAGE.name}:\n{state_table()}"


def test_the_schema_beside_the_page_is_the_schema_of_the_code() -> None:
    assert json.loads(SCHEMA.read_text()) == schema(), "run: watchfloor schema > docs/protocol/schema.json"


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text()), ids=lambda vector: vector["name"])
def test_the_subjects_of_the_vectors_are_such_as_hosts_send(vector: dict[str, Any]) -> None:
    assert Subject.model_validate(vector["subject"]).id == vector["subject"]["id"]


@pytest.mark.parametrize("word", sorted(frames.HOST_TYPES | frames.CLIENT_TYPES | events.EVENT_KINDS | set(EXIT_CODE)))
def test_the_page_names_every_frame_event_and_outcome(word: str) -> None:
    assert f"`{word}`" in PAGE.read_text()


@pytest.mark.parametrize("primitive", Primitive)
def test_the_page_names_every_primitive(primitive: Primitive) -> None:
    assert re.search(rf"`{primitive.value}\b", PAGE.read_text())


def test_every_state_has_every_operation() -> None:
    assert set(TABLE) == set(Row)
    assert all(set(cells) == set(Op) for cells in TABLE.values())
