"""What is printed: safe for every terminal, whole for every program."""

from __future__ import annotations

import json

import pytest

from console.cli import out
from watchfloor.text import clean_line


def test_a_record_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    fields = {"id": "\x1b[31m\u202ename\n", "n": 1, "none": None, "list": ["é"]}
    out.record(fields)
    said = capsys.readouterr().out
    assert said.isascii()
    assert said.count("\n") == 1
    assert all(char.isprintable() for char in said.rstrip("\n"))
    assert json.loads(said) == fields


def test_a_document_is_ascii_too(capsys: pytest.CaptureFixture[str]) -> None:
    out.document({"a": "\x9b\u2028"})
    said = capsys.readouterr().out
    assert said.isascii()
    assert json.loads(said) == {"a": "\x9b\u2028"}


def test_columns_are_aligned_by_cells(capsys: pytest.CaptureFixture[str]) -> None:
    out.table(("A", "B"), [(clean_line("日本"), clean_line("x")), (clean_line("ab"), clean_line("y"))])
    assert capsys.readouterr().out == "A     B\n日本  x\nab    y\n"


def test_one_wide_cell_does_not_move_the_other_lines_apart(capsys: pytest.CaptureFixture[str]) -> None:
    wide = clean_line("n" * 400)
    out.table(("A", "B"), [(wide, clean_line("x")), (clean_line("a"), clean_line("y"))])
    heading, first, second = capsys.readouterr().out.splitlines()
    assert first == f"{wide}  x"
    assert second.index("y") == heading.index("B") < 60


def test_the_last_column_is_cut_where_the_line_ends(capsys: pytest.CaptureFixture[str]) -> None:
    out.table(("A", "B"), [(clean_line("1"), clean_line("x" * 50))], width=10)
    assert capsys.readouterr().out == "A  B\n1  xxxxxx…\n"


def test_failures_and_notes_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    out.fail("one\ntwo\x1b")
    out.note("three\x07")
    assert capsys.readouterr() == ("", "watchfloor: one\nwatchfloor: two␛\nthree␇\n")
