"""Looking at a journal from outside: by the verb, as an operator does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.cli.main import main
from console.journal.handing import handed
from console.journal.journal import JOURNAL
from console.journal.records import Heard, TrailRow
from console.journal.store import Store
from tests.unit.journal.kit import NOW, events, heard, message, page, request, seqs
from watchfloor.protocol.frames import Events

TOKEN = "sk-" + "a1B2c3D4" * 5


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A journal where the console has it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "watchfloor" / JOURNAL
    store = Store(path)
    said = Events(session="s", epoch="e", events=[message(4, f"the key is {TOKEN}")])
    raw = b'{"type":"events","session":"t","epoch":"e","events":[{"kind":"hologram","at":1,"seq":1,"depth":[1,{}]}]}'
    what = handed(Events.model_validate_json(raw), raw)
    assert what is not None
    new = Heard("other", NOW + 5_000, what)
    store.write([heard(events([1, 2])), heard(page([1, 2, 3])), heard(said), heard(request("r1")), new])
    store.write([], [TrailRow("c1", "h", "s", NOW, {"primitive": "pause", "outcome": "applied"})])
    store.close()
    return path  # type: ignore[return-value]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["journal", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_stats(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "stats")
    assert code == 0
    assert "5 events, 1 requests, 1 commands" in out
    assert [line.split()[:3] for line in out.splitlines()[2:]] == [["h", "1", "4"], ["other", "1", "1"]]
    _, out, _ = run(capsys, "stats", "--json")
    told = json.loads(out)
    assert (told["events"], told["sources"][1]["from"]) == (5, NOW + 5_000)


def test_export_is_masked_unless_raw_and_whole_as_it_came(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "export")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["type"] for line in lines] == ["event"] * 5 + ["request", "command"]
    assert [line["event"]["seq"] for line in lines[:5]] == [1, 2, 3, 4, 1]
    assert lines[4]["event"] == {"kind": "hologram", "at": 1, "seq": 1, "depth": [1, {}]}
    assert lines[6] == {
        "type": "command", "at": NOW, "source": "h", "session": "s", "id": "c1", "primitive": "pause",
        "outcome": "applied",
    }  # fmt: skip
    assert TOKEN not in out
    assert "masked" in lines[3]["event"]["text"]
    _, out, _ = run(capsys, "export", "--raw")
    assert TOKEN in out
    _, out, _ = run(capsys, "export", "--source", "other")
    assert len(out.splitlines()) == 1
    _, out, _ = run(capsys, "export", "--session", "s")
    assert len(out.splitlines()) == 6
    code, out, err = run(capsys, "export", "--source", "nosuch", "--session", "s")
    assert (code, out) == (0, "")
    assert err.endswith("journal.db holds nothing of source 'nosuch' and session 's'\n")


def test_check_finds_what_is_missing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check")
    assert (code, "is in order: 5 events in 4 frames" in out) == (0, True)
    store = Store(path)
    store._db.execute("UPDATE frames SET raw = X'00', form = 1 WHERE id = 1")
    store._db.execute("DELETE FROM frames WHERE id = 2")
    store._db.execute("UPDATE events SET seq = 40 WHERE frame = 3")
    store.close()
    code, out, _ = run(capsys, "check", "--json")
    faults = json.loads(out)["faults"]
    assert code == 2
    assert "a frame of the journal cannot be read" in faults[0]
    assert faults[1] == "frame 3 lacks event 40"
    assert faults[2] == "1 events have lost the frame that brought them"
    assert faults[3].startswith("1 events are here that do not count as received")


def test_prune(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "prune", "--days", "0")
    assert code == 0
    assert "let go of 5 events, 0 requests and 1 commands" in out
    _, out, _ = run(capsys, "stats")
    assert "0 events, 1 requests" in out


def test_what_can_be_read_of_a_damaged_file_makes_a_new_one(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(path)
    for seq in range(5, 300):
        store.write([heard(Events(session="s", epoch="e", events=[message(seq, os.urandom(400).hex())]))])
    store.close()
    whole = path.read_bytes()
    middle = len(whole) // 2 // 4_096 * 4_096
    path.write_bytes(whole[:middle] + b"\xff" * 8_192 + whole[middle + 8_192 :])
    damaged = path.read_bytes()
    code, out, err = run(capsys, "check")
    assert code == 2
    assert "is not in order" in out or "is damaged" in err
    into = path.with_name("saved.db")
    code, out, _ = run(capsys, "check", "--rebuild", str(into))
    assert code == 0
    assert path.read_bytes() == damaged
    store = Store(into)
    saved = seqs(store.events("h", "s", "e"))
    assert 200 < len(saved) < 299
    assert f"{len(saved) + 1} events of" in out
    store.close()
    code, _, err = run(capsys, "check", "--rebuild", str(into))
    assert (code, "left as it is" in err) == (2, True)
    code, _, _ = run(capsys, "check", "--file", str(into))
    assert code == 0


def test_files_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for what in ("stats", "check", "prune", "export"):
        code, _, err = run(capsys, what)
        assert (code, "does not exist" in err) == (2, True)
        text = tmp_path / "text"
        text.write_text("dear diary\n" * 30)
        code, _, err = run(capsys, what, "--file", str(text))
        assert (code, "is not a database of Watchfloor" in err) == (2, True)
        assert text.read_text() == "dear diary\n" * 30
