"""Errors, as operators read them."""

from __future__ import annotations

from watchfloor.errors import one_line


def test_an_error_is_one_line_that_can_be_written() -> None:
    assert one_line(ValueError("a\n b\udcff")) == "ValueError: a b?"
    assert one_line(KeyError()) == "KeyError"
    assert one_line(ExceptionGroup("outer", [ExceptionGroup("inner", [OSError("gone")])])) == "OSError: gone"
    assert len(one_line(ValueError("x" * 1000))) == 300
