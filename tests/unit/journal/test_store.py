"""The journal's file: what goes in comes out as it came, once, and what is missing is known."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.journal import schema
from console.journal.decoding import stored
from console.journal.file import open_journal, put_aside
from console.journal.handing import handed
from console.journal.records import Heard, Pruned, Retention, Said, TrailRow
from console.journal.store import Store
from tests.unit.journal.kit import NOW, events, gap, heard, message, page, request, seqs
from watchfloor.errors import StorageCorrupt, StorageForeign, StorageNewer, StorageReadOnly
from watchfloor.protocol.events import Delta, Event
from watchfloor.protocol.frames import Events

EVERYTHING = Retention(age_s=None, size=None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "journal.db")
    yield store
    store.close()


def held(store: Store, session: str = "s", epoch: str = "e") -> list[Event]:
    return store.events("h", session, epoch)


# --- what goes in


def test_events_come_back_as_they_came_also_in_another_life(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "journal.db"
    store = Store(path)
    assert store.write([heard(events([1, 2, 3])), heard(events([1], session="t"))]) == 4
    store.close()
    store = Store(path)
    assert held(store) == [message(1), message(2), message(3)]
    assert seqs(held(store, "t")) == [1]
    assert held(store, epoch="another") == []
    store.close()


def test_only_its_owner_reads_it(store: Store, tmp_path: Path) -> None:
    store.write([heard(events([1]))])
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


def test_the_bytes_of_a_frame_are_kept_as_they_came_also_what_this_version_does_not_know(store: Store) -> None:
    raw = b'{"type":"events", "session":"s","epoch":"e","events":[{"kind":"hologram","at":1,"seq":1,"depth":[1, {}]}]}'
    frame = Events.model_validate_json(raw)
    what = handed(frame, raw)
    assert what is not None
    store.write([Heard("h", NOW, what)])
    assert store._db.execute("SELECT form, raw FROM frames").fetchall() == [(0, raw)]
    assert held(store) == list(frame.events)


def test_large_frames_are_deflated_and_come_back_whole(store: Store) -> None:
    frame = Events(session="s", epoch="e", events=[message(1, "all work and no play " * 5_000)])
    store.write([heard(frame)])
    (stored,) = store._db.execute("SELECT length(raw) FROM frames").fetchone()
    assert stored < 5_000
    assert held(store) == list(frame.events)


def test_what_comes_twice_is_kept_once_and_pieces_are_not_kept(store: Store) -> None:
    delta = Delta(at=1, item="i", offset=0, text="a piece")
    assert store.write([heard(events([1, 2])), heard(events([2, 3])), heard(events([1, 2, 3]))]) == 3
    assert handed(Events(session="s", epoch="e", events=[delta]), b"") is None
    assert seqs(held(store)) == [1, 2, 3]
    assert store.stats().frames == 2, "the third brought nothing"


def test_events_that_a_source_counts_anew_are_kept_once_by_its_own_key(store: Store) -> None:
    first = Events(session="s", epoch="one", events=[message(1, key="a"), message(2, key="b")])
    again = Events(session="s", epoch="two", events=[message(1, key="b"), message(2, key="a"), message(3, key="c")])
    store.write([heard(first)])
    store.write([heard(again)])
    assert [event.key for event in held(store, epoch="two")] == ["b", "a", "c"]
    assert held(store, epoch="one") == []
    assert store.stats().frames == 1, "what brought them before is let go of"
    both = [Events(session="t", epoch="e", events=[message(seq, key="k")]) for seq in (1, 2)]
    store.write([heard(frame) for frame in both])
    assert seqs(held(store, "t")) == [2]
    assert store.stats().frames == 2


def test_ids_that_are_no_text_and_epochs_that_are_other_logs(store: Store) -> None:
    odd = "s\udcff\n" + "x" * 1_000
    raw = b'{"type":"events","session":"?","epoch":"e","events":[]}'
    store.write([Heard("h", NOW, Said(odd, "e", [1], None, raw))])
    assert list(store.places("h")) == [odd]
    store.write([heard(events([1, 2], epoch="old")), heard(events([1], epoch="new"), at=NOW + 1)])
    assert (seqs(held(store, epoch="old")), seqs(held(store, epoch="new"))) == ([1, 2], [1])
    assert store.places("h")["s"].epoch == "new"


def test_requests_and_trails_are_kept_in_their_newest_state(store: Store) -> None:
    store.write([heard(request("r1")), heard(request("r2"))], [TrailRow("c1", "h", "s", NOW, {"outcome": None})])
    store.write([heard(request("r1", "resolved"))], [TrailRow("c1", "h", "s", NOW, {"outcome": "applied"})])
    rows = store._db.execute("SELECT name, state FROM requests ORDER BY name").fetchall()
    assert rows == [(b"r1", "resolved"), (b"r2", "open")]
    assert store._db.execute("SELECT body FROM trails").fetchall() == [('{"outcome": "applied"}',)]


# --- how far


def test_a_place_stands_before_the_first_hole_and_behind_what_is_lost_for_good(store: Store) -> None:
    store.write([heard(events([1, 2, 3])), heard(events([7, 8]))])
    place = store.places("h")["s"]
    assert (place.held, place.through) == (((1, 3), (7, 8)), 3)
    store.write([heard(page([5, 6]))])
    assert store.places("h")["s"].through == 3
    store.write([heard(gap(4, 4))])
    place = store.places("h")["s"]
    assert (place.held, place.gone, place.through) == (((1, 3), (5, 8)), ((4, 4),), 8)
    assert store.places("another") == {}


def test_a_place_that_does_not_begin_at_the_start_asks_for_everything(store: Store) -> None:
    store.write([heard(events([5, 6]))])
    assert store.places("h")["s"].through == 0


def test_pages_end_before_a_hole(store: Store) -> None:
    store.write([heard(events(range(1, 11))), heard(events(range(15, 31)))])
    page = stored(store.before("h", "s", "e", 31, 5))
    assert (seqs(page.events), page.more) == ([26, 27, 28, 29, 30], True)
    page = stored(store.before("h", "s", "e", 18, 100))
    assert (seqs(page.events), page.more) == ([15, 16, 17], False)
    assert stored(store.before("h", "s", "e", 15, 5)).events == ()
    assert stored(store.before("h", "s", "e", 40, 5)).events == ()
    assert seqs(stored(store.before("h", "s", "e", 11, 100)).events) == list(range(1, 11))


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frames=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=6, unique=True), max_size=20))
def test_whatever_the_order_each_event_is_kept_once(
    tmp_path_factory: pytest.TempPathFactory, frames: list[list[int]]
) -> None:
    store = Store(tmp_path_factory.mktemp("j") / "journal.db")
    for numbers in frames:
        store.write([heard(events(numbers))])
    wanted = sorted({number for numbers in frames for number in numbers})
    assert seqs(held(store)) == wanted
    if wanted:
        there = store.places("h")["s"].held
        assert [number for first, last in there for number in range(first, last + 1)] == wanted
    store.close()


# --- two at once


def test_two_consoles_keep_each_event_once(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "journal.db"), Store(tmp_path / "journal.db")
    one.write([heard(events([1, 2]))])
    two.write([heard(events([2, 3]))])
    one.write([heard(events([3, 4]))])
    assert seqs(held(two)) == [1, 2, 3, 4]
    assert one.places("h")["s"].through == 4
    one.close()
    two.close()


# --- letting go


def test_old_frames_go_and_are_not_asked_for_again(store: Store) -> None:
    for seq in range(1, 11):
        store.write([heard(events([seq]), at=NOW + seq * 1_000)])
    store.write([heard(request("r1", "resolved")), heard(request("r2"))], [TrailRow("c", "h", "s", NOW, {})])
    pruned = store.prune(Retention(age_s=5, size=None), NOW + 11_000)
    assert pruned == Pruned(frames=5, events=5, requests=1, trails=1)
    place = store.places("h")["s"]
    assert (place.held, place.gone, place.through) == (((6, 10),), ((1, 5),), 10)
    assert seqs(held(store)) == [6, 7, 8, 9, 10]
    assert store.write([heard(events([3]))]) == 0, "what has been let go of does not come back"
    store.prune(Retention(age_s=0, size=None), NOW + 1_000_000)
    place = store.places("h")["s"]
    assert (place.held, place.gone, place.through) == ((), ((1, 10),), 10)


def test_the_file_is_held_to_its_size(store: Store) -> None:
    noise = random.Random(1).randbytes(20_000).hex()
    for seq in range(1, 101):
        store.write([heard(Events(session="s", epoch="e", events=[message(seq, noise[seq:])]))])
    before = store.stats().bytes
    store.prune(Retention(age_s=None, size=before // 2), NOW)
    stats = store.stats()
    assert before // 4 < stats.bytes <= before // 2
    assert seqs(held(store)) == list(range(101 - stats.events, 101)), "the oldest went"
    assert store.prune(EVERYTHING, NOW + 10**12) == Pruned()


# --- the file


def test_an_older_file_is_brought_up_to_date_and_a_newer_one_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.db"
    store = Store(path)
    store.write([heard(events([1]))])
    store.close()
    step = ("CREATE TABLE notes (body TEXT)", "INSERT INTO notes SELECT COUNT(*) FROM events")
    with monkeypatch.context() as newer:
        newer.setattr(schema, "STEPS", [*schema.STEPS, step])
        newer.setattr("console.journal.file.STEPS", schema.STEPS)
        store = Store(path)
        assert seqs(held(store)) == [1]
        assert store._db.execute("SELECT body FROM notes").fetchall() == [("1",)]
        store.close()
    before = path.read_bytes()
    with pytest.raises(StorageNewer, match="newer version"):
        Store(path)
    assert path.read_bytes() == before


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.db"
    Store(path).close()
    with monkeypatch.context() as newer:
        newer.setattr(schema, "STEPS", [*schema.STEPS, ("CREATE TABLE notes (body TEXT)", "SELECT nonsense")])
        newer.setattr("console.journal.file.STEPS", schema.STEPS)
        with pytest.raises(Exception, match="nonsense"):
            Store(path)
    store = Store(path)
    assert store._db.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'notes'").fetchone() == (0,)
    store.close()


def test_files_that_are_no_journal_are_refused_as_they_are(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("dear diary, " * 50)
    foreign = tmp_path / "foreign.db"
    other = sqlite3.connect(foreign)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    for path in (text, foreign):
        before = path.read_bytes()
        with pytest.raises(StorageForeign):
            Store(path)
        assert path.read_bytes() == before
    with pytest.raises(StorageReadOnly):
        Store(tmp_path)


def filled(path: Path) -> Path:
    store = Store(path)
    for seq in range(1, 200):
        store.write([heard(events([seq]))])
    store.close()
    return path


def test_a_truncated_file_is_found_and_kept_aside(tmp_path: Path) -> None:
    path = filled(tmp_path / "journal.db")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StorageCorrupt, match="damaged"):
        Store(path)
    aside = put_aside(path, "then")
    assert (aside.name, aside.read_bytes()) == ("journal.aside-then.db", whole[: len(whole) // 2])
    assert not path.exists()
    path.write_text("another")
    assert put_aside(path, "then").name == "journal.aside-then-2.db"


def test_who_only_reads_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StorageReadOnly):
        open_journal(tmp_path / "nowhere" / "journal.db", read_only=True)
    assert list(tmp_path.iterdir()) == []
    path = filled(tmp_path / "journal.db")
    db = open_journal(path, read_only=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM events")
    db.close()
