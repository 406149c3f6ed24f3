"""How the console looked is kept from one time to the next, whatever has become of its file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.kept_view import View, load, save

TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.builds(View, **{name: TEXTS for name in View._fields if name != "reverse"}, reverse=st.booleans()))
def test_what_is_saved_is_loaded(tmp_path: Path, view: View) -> None:
    save(tmp_path / "state" / "view.json", view)
    assert load(tmp_path / "state" / "view.json") == view
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["view.json"]


@pytest.mark.parametrize(
    "held",
    [
        b"", b"{", b"[]", b"null", b'"sort"', b"\xff\xfe", b"[" * 100_000, b'{"sort": 3, "reverse": "yes", "later": 1}',
        b'{"filter": "' + b"x" * 10_000 + b'"}',
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_the_usual(tmp_path: Path, held: bytes) -> None:
    (tmp_path / "view.json").write_bytes(held)
    assert load(tmp_path / "view.json") == View()


def test_a_file_that_is_not_there_is_the_usual(tmp_path: Path) -> None:
    assert load(tmp_path / "view.json") == View()


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the place of the folder")
    save(tmp_path / "state" / "view.json", View(sort="name"))
    assert (tmp_path / "state").read_text() == "a file in the place of the folder"
    save(tmp_path / "view.json", View(filter="\ud800"))  # which nobody types
    assert load(tmp_path / "view.json") == View()


def test_what_cannot_be_kept_leaves_nothing_behind(tmp_path: Path) -> None:
    taken = tmp_path / "view.json"
    (taken / "by a folder").mkdir(parents=True)
    save(taken, View(filter="state:failed"))
    assert [path.name for path in tmp_path.iterdir()] == ["view.json"]
