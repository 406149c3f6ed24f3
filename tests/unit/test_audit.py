"""The audit file: appended, chained, private, without secrets, and honest about what it could not write."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.audit import Audit, sealed, verify

NOW = 1_700_000_000_000


def _audit(folder: Path, **rest: Any) -> Audit:
    return Audit(folder, clock=lambda: NOW, **rest)


def _lines(audit: Audit) -> list[dict[str, Any]]:
    return [json.loads(line) for line in audit.path.read_text().splitlines()]


def _three(folder: Path) -> Audit:
    audit = _audit(folder)
    for n in range(3):
        assert audit.write("requested", f"c{n}", {"by": "ann", "session": "s1", "primitive": "pause"})
    return audit


def test_a_line_says_who_asked_for_what(tmp_path: Path) -> None:
    audit = _audit(tmp_path / "audit")
    audit.write("requested", "c1", {"by": "ann", "session": "s1", "primitive": "stop", "reason": "too slow"})
    audit.write("outcome", "c1", {"outcome": "applied", "reason": None, "info": {"ref": "#1"}})

    first, second = _lines(audit)
    assert first.pop("self").startswith("sha256:")
    assert first == {
        "n": 1,
        "at": NOW,
        "prev": None,
        "what": "requested",
        "id": "c1",
        "by": "ann",
        "session": "s1",
        "primitive": "stop",
        "reason": "too slow",
    }
    assert second["n"] == 2
    assert second["info"] == {"ref": "#1"}
    assert "reason" not in second
    assert verify(audit.path).lines == 2
    assert verify(audit.path).fault is None


def test_the_file_is_private_and_named_by_time_and_process(tmp_path: Path) -> None:
    audit = _audit(tmp_path / "state" / "audit")
    assert audit.open()
    assert stat.S_IMODE(audit.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(audit.path.parent.stat().st_mode) == 0o700
    assert audit.path.name == f"20231114T221320Z-{os.getpid()}.jsonl"


def test_two_instances_never_share_a_file(tmp_path: Path) -> None:
    first, second = _audit(tmp_path), _audit(tmp_path)
    assert first.write("requested", "a", {})
    assert second.write("requested", "b", {})
    assert first.path != second.path
    assert verify(first.path).lines == verify(second.path).lines == 1


def test_a_file_without_a_line_is_removed(tmp_path: Path) -> None:
    empty, used = _audit(tmp_path), _audit(tmp_path)
    assert empty.open()
    assert used.write("requested", "a", {})
    empty.close()
    used.close()
    assert list(tmp_path.iterdir()) == [used.path]


@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_changed_line_is_found(tmp_path: Path, line: int) -> None:
    audit = _three(tmp_path)
    lines = audit.path.read_text().splitlines(keepends=True)
    lines[line] = lines[line].replace('"by":"ann"', '"by":"bob"')
    audit.path.write_text("".join(lines))
    found = verify(audit.path)
    assert (found.lines, found.fault) == (line, f"line {line + 1}: it was changed")


@pytest.mark.parametrize("line", [0, 1])
def test_a_line_that_was_written_anew_with_a_hash_of_its_own_is_found_by_the_next(tmp_path: Path, line: int) -> None:
    audit = _three(tmp_path)
    lines = audit.path.read_bytes().splitlines(keepends=True)
    forged = json.loads(lines[line])
    del forged["self"]
    forged["by"] = "bob"
    lines[line] = sealed(json.dumps(forged, separators=(",", ":")).encode()) + b"\n"
    audit.path.write_bytes(b"".join(lines))
    assert verify(audit.path).fault == (
        f"line {line + 2}: it does not follow the line before: one of the two was written anew"
    )


@pytest.mark.parametrize("line", [0, 1])
def test_a_removed_line_is_found(tmp_path: Path, line: int) -> None:
    audit = _three(tmp_path)
    lines = audit.path.read_text().splitlines(keepends=True)
    del lines[line]
    audit.path.write_text("".join(lines))
    assert verify(audit.path).fault == (
        f"line {line + 1}: it is number {line + 2}: line {line + 1} is missing before it"
    )


def test_moved_and_repeated_lines_are_found(tmp_path: Path) -> None:
    audit = _three(tmp_path)
    one, two, three = audit.path.read_text().splitlines(keepends=True)
    audit.path.write_text(one + three + two)
    assert verify(audit.path).fault == "line 2: it is number 3: line 2 is missing before it"
    audit.path.write_text(one + two + two + three)
    assert verify(audit.path).fault == "line 3: it is number 2: it was moved here, or stands here again"


def test_a_torn_end_is_found_and_told_from_a_touched_line(tmp_path: Path) -> None:
    audit = _three(tmp_path)
    raw = audit.path.read_bytes()
    for cut in (1, 20):
        audit.path.write_bytes(raw[:-cut])
        found = verify(audit.path)
        assert (found.lines, found.fault, found.torn) == (2, "line 3: it is cut off", True)


@given(data=st.data())
def test_any_change_of_any_byte_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    audit = _three(tmp_path_factory.mktemp("audit"))
    raw = bytearray(audit.path.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != raw[at]))
    raw[at] = byte
    audit.path.write_bytes(bytes(raw))
    assert verify(audit.path).fault is not None


@given(data=st.data())
def test_any_other_order_and_any_subset_but_a_shorter_end_is_found(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    audit = _audit(tmp_path_factory.mktemp("audit"))
    for n in range(5):
        audit.write("requested", f"c{n}", {})
    lines = audit.path.read_bytes().splitlines(keepends=True)
    kept = data.draw(st.lists(st.sampled_from(range(5)), max_size=7))
    audit.path.write_bytes(b"".join(lines[n] for n in kept))
    whole = kept == list(range(len(kept)))
    assert (verify(audit.path).fault is None) is whole


def test_the_first_line_names_the_ends_of_the_files_before(tmp_path: Path) -> None:
    first = _three(tmp_path)
    second = _audit(tmp_path)
    second.write("requested", "x", {})
    second.write("requested", "y", {})
    one, two = _lines(second)
    assert one["after"] == {first.path.name: [3, verify(first.path).hashes[-1]]}
    assert "after" not in two
    assert "after" not in _lines(first)[0]


@given(text=st.text(max_size=200))
def test_any_text_keeps_the_chain_whole_and_the_file_plain(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    audit = _audit(tmp_path_factory.mktemp("audit"))
    audit.write("requested", text, {"by": text, "reason": text, "session": text, "info": {text: [text]}})
    audit.write("outcome", text, {})
    assert audit.path.read_bytes().isascii()
    assert len(audit.path.read_bytes().splitlines()) == 2
    assert verify(audit.path).lines == 2
    assert _lines(audit)[0]["session"] == text, "what names a session is kept exactly"


def test_secrets_are_masked(tmp_path: Path) -> None:
    key = "-".join(("sk", "ant", "a1b2c3d4" * 5))
    audit = _audit(tmp_path)
    audit.hide(["our-own-token"])
    audit.write("requested", "c", {"text": f"use {key}", "note": "with our-own-token"})
    audit.write("outcome", "c", {"info": {"note": ["our-own-token"]}})
    written = audit.path.read_text()
    assert "a1b2c3d4" not in written
    assert "our-own-token" not in written


def test_a_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    audit = _audit(tmp_path)
    audit.write("requested", "c", {"text": "x" * 5000})
    (line,) = _lines(audit)
    assert line["text"].endswith("… (5000)")
    assert len(line["text"]) < 2100


def test_a_fault_is_told_and_the_lines_that_were_lost_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.write_text("a file in the way")
    audit = _audit(folder)
    assert not audit.open()
    assert not audit.write("requested", "c1", {})
    assert not audit.write("outcome", "c1", {})
    assert str(audit.path) in (audit.fault or "")
    assert audit.lost == 2

    folder.unlink()
    assert audit.write("requested", "c2", {})
    assert audit.fault is None
    assert audit.lost == 0
    (line,) = _lines(audit)
    assert line["lost"] == 2
    assert line["n"] == 1


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = _audit(tmp_path)
    assert audit.write("requested", "c1", {})
    real = os.write
    calls = 0

    def half(handle: int, raw: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(28, "No space left on device")
        return real(handle, raw[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        assert not audit.write("requested", "c2", {})
    assert audit.fault == f"No space left on device: {audit.path}"

    assert audit.write("requested", "c3", {})
    assert [line["id"] for line in _lines(audit)] == ["c1", "c3"]
    assert verify(audit.path).fault is None
