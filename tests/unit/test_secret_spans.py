"""Where secrets stand is told by the same rules by which they are masked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from watchfloor.text import Clean, clean, redact, secret_spans

KEY = "-".join(("sk", "ant", "a1b2c3d4" * 5))


def test_the_hint_of_a_secret_is_not_part_of_it() -> None:
    text = Clean(f"use {KEY} now")
    ((start, end),) = secret_spans(text)
    assert text[:start] == "use sk-ant-"
    assert text[end:] == " now"


@given(st.lists(st.sampled_from([KEY, "password=hunter22x ", "own-token", " ", "\n", "x", "--token "]), max_size=12))
def test_as_many_are_found_as_are_masked_and_none_of_them_is_left(pieces: list[str]) -> None:
    text = clean("".join(pieces))
    spans = secret_spans(text, ["own-token"])
    masked, count = redact(text, ["own-token"])
    assert len(spans) == count
    at = 0
    for start, end in spans:
        assert at <= start < end <= len(text)
        assert text[at:start] in masked
        at = end
    assert masked.endswith(text[at:])
