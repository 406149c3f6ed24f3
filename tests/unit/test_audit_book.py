"""The audit files as one list: each line in words, cleaned, found by its words, and vouched for or not."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from console.audit import Audit
from console.audit_book import KEEP, AuditBook, Telling, details
from console.auditing import Entry
from watchfloor.text import is_plain

NOON = 1_764_000_000_000


def audit(folder: Path, at: int = NOON) -> Audit:
    return Audit(folder, clock=lambda: at)


def filled(folder: Path, count: int = 3, at: int = NOON, by: str = "ann") -> Path:
    one = audit(folder, at)
    for n in range(count):
        one.write("requested", f"c{n}", {"by": by, "primitive": "approve", "source": "farm", "session": f"s{n}"})
    one.close()
    return one.path


def lines(book: AuditBook) -> list[tuple[str, bool]]:
    return [(str(line.told.where), not line.fault) for line in book.read().lines]


def test_a_line_says_who_did_what_where_and_what_was_said(tmp_path: Path) -> None:
    one = audit(tmp_path)
    asked = {"by": "ann", "source": "farm", "session": "deploy", "request": "r1", "primitive": "approve"}
    ruled = {**asked, "option_kind": "deny", "policy": "machine", "risks": ["force-push"], "note": "automatically"}
    one.write("requested", "1234567890", ruled)
    one.write("outcome", "1234567890", {"outcome": "already_decided", "decided_by": "bob"})
    one.write("effect", "another", {"effect": "seen"})
    one.write("requested", "c2", {**asked, "second_key": "look twice"})
    one.close()
    third, stray, second, first = (line.told for line in AuditBook(tmp_path, UTC).read().lines)
    assert first.line == (
        "2025-11-24 16:00:00  requested  policy machine  deny  farm deploy r1  automatically; risky: force-push"
    )
    assert second.line == (
        "2025-11-24 16:00:00  outcome  policy machine  already decided (deny)  farm deploy r1  decided by bob"
    )
    assert stray.line == "2025-11-24 16:00:00  effect  seen  another"
    assert "second key for policy look twice" in third.said


def test_the_newest_come_first_of_all_files_and_are_found_by_their_words(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    filled(tmp_path, 1, NOON + 60_000, by="bob")
    pages = AuditBook(tmp_path, UTC).read()
    assert (pages.total, [line.place for line in pages.lines]) == (3, [1, 2, 1])
    assert [line.told.by for line in pages.lines if line.holds(["bob", "farm"])] == ["bob"]
    assert all(line.holds([]) for line in pages.lines)
    assert pages.broken == ()


def test_behind_what_was_touched_nothing_is_vouched_for_and_before_it_all_is(tmp_path: Path) -> None:
    path = filled(tmp_path)
    book = AuditBook(tmp_path, UTC)
    assert [whole for _, whole in lines(book)] == [True] * 3
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(kept[0] + kept[1].replace(b'"ann"', b'"eve"', 1) + kept[2])
    assert lines(book) == [("farm s2", False), ("farm s1", False), ("farm s0", True)]
    (broken,) = book.read().broken
    assert (broken.vouched, broken.fault) == (1, "line 2: it was changed")


def test_a_file_that_was_written_anew_is_vouched_for_in_no_line(tmp_path: Path) -> None:
    path = filled(tmp_path)
    filled(tmp_path, 1, NOON + 60_000)
    path.unlink()
    again = filled(tmp_path, by="eve")
    assert again == path
    assert lines(AuditBook(tmp_path, UTC))[1:] == [("farm s2", False), ("farm s1", False), ("farm s0", False)]
    path.unlink()
    (gone,) = AuditBook(tmp_path, UTC).read().broken
    assert "it is gone" in str(gone.fault)


def test_what_stays_as_it_was_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    book = AuditBook(tmp_path, UTC)
    first = book.read()
    assert book.read() is first
    read: list[str] = []
    take = AuditBook._take

    def told_of(self: AuditBook, path: Path, stamp: object) -> Any:
        read.append(path.name)
        return take(self, path, stamp)

    monkeypatch.setattr(AuditBook, "_take", told_of)
    newer = filled(tmp_path, 1, NOON + 60_000)
    assert book.read().total == 4
    assert read == [newer.name]


def test_of_many_lines_the_newest_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    path = filled(tmp_path, 1)
    line = path.read_bytes()
    path.write_bytes(line * (KEEP + 10))
    pages = AuditBook(tmp_path, UTC).read()
    assert (len(pages.lines), pages.total) == (KEEP, KEEP + 10)
    assert len({line.key for line in pages.lines}) == KEEP


HOSTILE = "\x1b]0;x\x07\u202erm\u200b\n\x9b2J" + " ghp_" + "a1B2" * 9


def test_a_file_that_somebody_else_has_written_cannot_act_on_the_terminal() -> None:
    fields = {"what": HOSTILE, "id": HOSTILE, "at": 10**30, "by": HOSTILE, HOSTILE: HOSTILE, "risks": [HOSTILE, 1]}
    for what in (HOSTILE, "requested", "outcome", "effect"):
        entry = Entry("f", json.loads(json.dumps({**fields, "what": what, "option": {"a": HOSTILE}})))
        made = Telling(UTC).tell(entry)
        assert is_plain(made.line)
        assert "\n" not in made.line
        assert made.when == "at no time"
        assert all(is_plain(part) and "\n" not in part for pair in details(entry) for part in pair)
        assert "ghp_a1B2" not in str(details(entry)) + made.line


def test_the_details_hold_every_member_what_matters_first_and_its_seals_last(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    (line,) = AuditBook(tmp_path, UTC).read().lines
    names = [str(name) for name, _ in details(line.entry)]
    assert set(names) == set(line.entry.fields)
    assert names[:3] == ["what", "at", "by"]
    assert set(names[-2:]) == {"prev", "self"}
