"""The small parts of the function harness."""

from __future__ import annotations

import pytest

from watchfloor.errors import CanonicalError
from watchfloor.harness.calls import MAX_TEXT, new_id, plain, result_text, sound


def test_sound_text_is_left_alone() -> None:
    assert sound("h\u00e9llo \U0001f600") == "h\u00e9llo \U0001f600"
    assert sound("a\ud800b") == "a?b"


def test_a_plain_copy_shares_nothing_and_knows_only_json() -> None:
    value: dict[str, list[object]] = {"a": [1, 2.5, None, True, ("x",)]}
    copy = plain(value)
    assert copy == {"a": [1, 2.5, None, True, ["x"]]}
    value["a"].append("later")
    assert len(copy["a"]) == 5
    with pytest.raises(CanonicalError, match=r"\$\.a"):
        plain({"a": {1, 2}})


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("as is", "as is"), (b"a\xff", "a\ufffd"), ({"n": 1}, '{"n": 1}'), (range(2), '"range(0, 2)"')],
)
def test_the_text_of_a_result(value: object, text: str) -> None:
    assert result_text(value) == (text, False)


def test_a_long_result_is_cut() -> None:
    text, cut = result_text("x" * (MAX_TEXT + 1))
    assert (len(text), cut) == (MAX_TEXT, True)


def test_ids_are_never_the_same() -> None:
    assert len({new_id("call") for _ in range(1000)}) == 1000
