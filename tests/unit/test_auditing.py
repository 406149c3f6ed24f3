"""All audit files together: one that was cut short, written anew or removed is found by those after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.audit import Audit
from console.auditing import Entry, check, entries, figures, files, heads

NOW = 1_700_000_000_000


def _file(folder: Path, later_s: int, count: int) -> Path:
    audit = Audit(folder, clock=lambda: NOW + 1000 * later_s)
    for n in range(count):
        assert audit.write("requested", f"{later_s}-{n}", {"by": "ann", "primitive": "pause"})
    audit.close()
    return audit.path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in range(3):
        _file(tmp_path, n, 4)
    return tmp_path


def _faults(folder: Path, **rest: Any) -> dict[str, str]:
    return {one.file: one.fault for one in check(folder, **rest) if one.fault is not None}


def test_whole_files_are_whole(folder: Path) -> None:
    assert _faults(folder) == {}
    assert [one.lines for one in check(folder)] == [4, 4, 4]
    assert [entry.text("id") for entry in entries(folder)][:5] == ["0-0", "0-1", "0-2", "0-3", "1-0"]
    assert check(folder / "none") == []


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_file_that_was_cut_short_is_found_by_a_later_one(folder: Path, kept: int) -> None:
    first = files(folder)[0]
    first.write_bytes(b"".join(first.read_bytes().splitlines(keepends=True)[:kept]))
    fault = _faults(folder)[first.name]
    assert fault.startswith(f"its end is missing: it has {kept} lines, and had 4, as ")


def test_a_file_that_is_gone_is_found_by_a_later_one(folder: Path) -> None:
    first = files(folder)[0]
    first.unlink()
    assert _faults(folder)[first.name].startswith("it is gone; ")


def test_a_file_that_was_written_anew_as_a_whole_is_found_by_a_later_one(folder: Path) -> None:
    first = files(folder)[0]
    first.unlink()
    audit = Audit(folder, clock=lambda: NOW)
    for n in range(4):
        audit.write("requested", f"0-{n}", {"by": "mallory"})
    audit.path.rename(first)
    assert _faults(folder)[first.name].startswith("line 4: it is not the one that ")


def test_a_file_that_grew_since_is_whole(folder: Path) -> None:
    running = Audit(folder, clock=lambda: NOW + 9_000)
    running.write("requested", "a", {})
    _file(folder, 10, 1)
    running.write("requested", "b", {})
    assert _faults(folder) == {}


def test_the_last_file_needs_heads_that_were_kept_elsewhere(folder: Path) -> None:
    kept = heads(folder)
    last = files(folder)[-1]
    assert kept[last.name].n == 4
    last.write_bytes(b"".join(last.read_bytes().splitlines(keepends=True)[:2]))
    assert _faults(folder) == {}, "nothing after it says how long it was"
    assert _faults(folder, kept=kept)[last.name] == (
        "its end is missing: it has 2 lines, and had 4, as what was kept says"
    )


@given(cuts=st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_any_cut_of_any_file_but_the_last_is_found(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("audit")
    paths = [_file(folder, n, 4) for n in range(3)]
    for path, cut in zip(paths, cuts, strict=True):
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:cut]))
    faults = _faults(folder)
    # A first line that is gone says nothing any more of the files before.
    for at, path in enumerate(paths[:-1]):
        if cuts[at] < 4 and any(cuts[after] > 0 for after in range(at + 1, 3)):
            assert path.name in faults
        elif cuts[at] == 4:
            assert path.name not in faults


# --- figures -------------------------------------------------------------------------------


def _entry(**fields: Any) -> Entry:
    return Entry("f", fields)


def _asked(id: str, kind: str | None = "allow", **rest: Any) -> Entry:
    return _entry(what="requested", id=id, primitive="approve", option_kind=kind, **rest)


def test_figures_tell_how_requests_were_decided() -> None:
    found = figures(
        [
            _asked("a", waited_ms=1_000),
            _asked("b", "deny", waited_ms=5_000),
            _asked("c", waited_ms=9_000),
            _asked("d", waited_ms=1, policy="tests"),
            _entry(what="requested", id="e", primitive="answer"),
            _entry(what="requested", id="p", primitive="pause"),
            _entry(what="outcome", id="a", outcome="applied"),
            _entry(what="outcome", id="b", outcome="already_decided"),
            _entry(what="outcome", id="p", outcome="applied"),
            _entry(what="refused", id="x"),
        ]
    )
    assert found.kinds == {"allow": 3, "deny": 1, "answer": 1}
    assert found.outcomes == {"applied": 1, "already_decided": 1}
    assert (found.decisions, found.automatic, found.early) == (5, 1, 1)
    assert (found.median_ms, found.slowest_ms) == (5_000, 9_000)
    assert found.denied == 0.2


def test_figures_of_nothing_say_nothing() -> None:
    found = figures([])
    assert (found.decisions, found.median_ms, found.slowest_ms, found.denied) == (0, None, None, None)


@given(st.lists(st.dictionaries(
    st.sampled_from(["what", "id", "primitive", "waited_ms", "option_kind", "policy", "outcome"]),
    st.one_of(st.none(), st.integers(), st.text(max_size=5), st.booleans(), st.sampled_from(
        ["requested", "outcome", "approve", "refused"])),
)))  # fmt: skip
def test_any_lines_give_figures(lines: list[dict[str, Any]]) -> None:
    found = figures(Entry("f", line) for line in json.loads(json.dumps(lines)))
    assert found.decisions >= found.automatic
    assert found.median_ms is None or 0 <= found.median_ms <= (found.slowest_ms or 0)
