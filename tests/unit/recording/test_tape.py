"""The file of a recording, and what plays it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.connectors.supervisor import ContactChange, Item
from console.recording.player import Player
from console.recording.scrubber import TOO_DEEP, scrubbed
from console.recording.tape import Recorder, Tape
from tests.unit.journal.kit import NOW, events, received
from watchfloor.canonical import digest
from watchfloor.connector import Received, Unreadable
from watchfloor.errors import ConfigError
from watchfloor.protocol.codec import Bad, decode_host
from watchfloor.words import Contact

TOKEN = "sk-" + "a1B2c3D4" * 5


def request(name: str, text: str = "ls", state: str = "open") -> Received:
    subject = {"id": name, "session": "s", "kind": "approval", "actions": [{"tool": "sh", "text": text}]}
    body = {"subject": subject, "digest": digest(subject), "asked_at": 1, "state": state}
    raw = json.dumps({"type": "request", "session": "s", "request": body}).encode()
    return Received(decode_host(raw).frame, raw)


def recorded(path: Path, *lines: tuple[int, Sequence[Item]], scrub: bool = True) -> Path:
    recorder = Recorder(path, "build", NOW, scrub=scrub, secrets=["my own token"])
    for at, items in lines:
        recorder.take(items, NOW + at)
    recorder.close()
    return path


_OPEN: list[Tape] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while _OPEN:
        _OPEN.pop().close()


def opened(path: Path) -> Tape:
    _OPEN.append(Tape(path))
    return _OPEN[-1]


class Time:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def player(path: Path, **how: float) -> tuple[Player, Time]:
    time = Time()
    it = Player(opened(path), time, **how)
    time.s += 50
    it.begin()
    it.begin()
    return it, time


def places(played: Sequence[object]) -> list[int]:
    return [mark.at - NOW for mark in played]  # type: ignore[attr-defined]


# --- the file


def test_frames_stand_as_they_came_and_all_lines_are_json(tmp_path: Path) -> None:
    raw = b'{"type":"events",\n "session":"s","epoch":"e",\r\n"events":[{"kind":"hologram","at":1,"seq":1}]}'
    path = recorded(
        tmp_path / "r",
        (5, [Received(decode_host(raw).frame, raw)]),
        (6, [ContactChange(Contact.LOST, "gone"), Unreadable(Bad("odd", "\x00{"))]),
    )
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert lines[0] == {"watchfloor": "recording", "version": 1, "source": "build", "at": NOW, "scrubbed": True}
    assert lines[1]["frame"]["events"] == [{"kind": "hologram", "at": 1, "seq": 1}]
    assert lines[2:] == [
        {"at": NOW + 6, "contact": "lost", "why": "gone"},
        {"at": NOW + 6, "unreadable": {"reason": "odd", "raw": "\x00{"}},
    ]
    tape = opened(path)
    assert (tape.source, tape.begins, tape.ends) == ("build", NOW + 5, NOW + 6)
    frame, _ = tape.line(tape.marks[0])
    assert frame == raw.replace(b"\n", b" ").replace(b"\r", b" ")
    assert path.stat().st_mode & 0o077 == 0


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r")
    with pytest.raises(FileExistsError):
        Recorder(path, "build", NOW)


def test_a_recording_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r", (1, received(events([1]))), (2, received(events([2]))))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert len(opened(path).marks) == 1
    path.write_bytes(whole + b"nonsense\n" + b'{"at":x,"frame":{}}\n')
    tape = opened(path)
    assert [mark.at for mark in tape.marks] == [NOW + 1, NOW + 2, NOW + 2]


@pytest.mark.parametrize("data", [b"", b"dear diary\n", b'{"watchfloor":"log"}\n', b"\xff\xfe\n", b"[" * 9_999])
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "r"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="no recording"):
        Tape(path)
    path.write_bytes(b'{"watchfloor":"recording","version":9}\n')
    with pytest.raises(ConfigError, match="version"):
        Tape(path)


def test_secrets_are_scrubbed_and_what_binds_stays_true(tmp_path: Path) -> None:
    lines: list[tuple[int, Sequence[Item]]] = [
        (1, [request("r1", f"curl -H 'Authorization: Bearer {TOKEN}' and my own token")]),
        (2, [request("r2")]),
        (3, [Unreadable(Bad("odd", f"key {TOKEN}"))]),
    ]
    path = recorded(tmp_path / "r", *lines)
    data = path.read_bytes().decode()
    assert TOKEN not in data
    assert "my own token" not in data
    tape = opened(path)
    first, second = (json.loads(tape.line(mark)[0] or b"") for mark in tape.marks[:2])
    assert first["request"]["digest"] == digest(first["request"]["subject"])
    assert tape.line(tape.marks[1])[0] == request("r2").raw, "what holds no secret stands as it came"
    assert second["request"]["subject"]["id"] == "r2"
    assert TOKEN in recorded(tmp_path / "raw", *lines, scrub=False).read_text()


def test_ids_and_digests_are_not_scrubbed() -> None:
    value = {"id": TOKEN, "session": TOKEN, "digest": TOKEN, "text": TOKEN, "list": [1, None, TOKEN], "ok": "fine"}
    clean = scrubbed(value)
    assert (clean["id"], clean["session"], clean["digest"], clean["ok"]) == (TOKEN, TOKEN, TOKEN, "fine")
    assert TOKEN not in clean["text"] + clean["list"][2]
    assert clean["list"][:2] == [1, None]
    same = {"a": ["b", {"c": 1.5}]}
    assert scrubbed(same) is same


# --- the player


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return recorded(
        tmp_path / "r",
        (0, received(events([1]))),
        (1_000, received(events([2]))),
        (2_000, [request("r1")]),
        (2_500, [request("r1", state="resolved")]),
        (4_000, [request("r2")]),
        (9_000, received(events([3]))),
    )


def test_it_plays_in_the_time_in_which_it_was_recorded(path: Path) -> None:
    it, time = player(path)
    assert places(it.due()) == [0]
    assert it.wait_s() == pytest.approx(1.0)
    time.s += 2.2
    assert places(it.due()) == [1_000, 2_000]
    assert it.wait_s() == pytest.approx(0.3)
    assert (it.at, it.words()[:8].count(":")) == (NOW + 2_200, 2)
    time.s += 100
    assert places(it.due()) == [2_500, 4_000, 9_000]
    assert (it.wait_s(), it.ended, it.at) == (None, True, NOW + 9_000)
    assert it.words().endswith("at its end")


def test_it_plays_faster_and_pauses_where_it_is(path: Path) -> None:
    it, time = player(path, speed=10.0)
    time.s += 0.1
    assert places(it.due()) == [0, 1_000]
    it.toggle()
    time.s += 100
    assert (places(it.due()), it.wait_s(), it.at) == ([], None, NOW + 1_000)
    assert it.words().endswith("x10, paused")
    it.toggle()
    it.faster(0.1)
    assert it.wait_s() == pytest.approx(1.0)
    assert it.moved.is_set()
    for _ in range(40):
        it.faster(2)
    assert it.speed == 4096.0


def test_it_steps_line_by_line(path: Path) -> None:
    it, time = player(path)
    it.due()
    it.step()
    assert (places(it.due()), it.paused) == ([1_000], True)
    it.step()
    assert places(it.due()) == [2_000]
    time.s += 100
    assert places(it.due()) == []
    for _ in range(9):
        it.step()
        it.due()
    assert it.ended


def test_it_goes_to_the_next_request_and_stands_there(path: Path) -> None:
    it, _ = player(path)
    assert it.next_request()
    assert (places(it.due()), it.paused) == ([0, 1_000, 2_000], True)
    assert it.next_request()
    assert places(it.due()) == [2_500, 4_000], "one that was resolved does not wait"
    assert not it.next_request()


def test_it_goes_back_and_plays_what_was_before_at_once(path: Path) -> None:
    it, _ = player(path)
    it.go_to(NOW + 5_000)
    assert (places(it.due()), it.again) == ([0, 1_000, 2_000, 2_500, 4_000], 0)
    it.go_to(NOW + 1_500)
    assert (places(it.due()), it.again, it.at) == ([0, 1_000], 1, NOW + 1_500)
    it.go_to(0)
    assert (it.at, places(it.due())) == (NOW, [0])
    it.go_to(NOW * 2)
    assert it.at == NOW + 9_000


@given(
    times=st.lists(st.integers(0, 5_000), max_size=30),
    waits=st.lists(st.floats(0, 3, allow_nan=False), max_size=30),
    speed=st.sampled_from([0.25, 1.0, 3.0, 1000.0]),
)
def test_each_line_is_played_once_in_order_and_not_too_early(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], waits: list[float], speed: float
) -> None:
    lines = [(at, received(events([number]))) for number, at in enumerate(sorted(times), 1)]
    it, time = player(recorded(tmp_path_factory.mktemp("r") / "r", *lines), speed=speed)
    played: list[object] = []
    for wait_s in waits:
        time.s += wait_s
        due = it.due()
        assert all(mark.at <= it.at for mark in due)
        played += due
    time.s += 1e6
    while due := it.due():
        played += due
    assert played == it.tape.marks
    it.tape.close()


def test_what_is_too_deep_to_be_looked_through_is_left_out(tmp_path: Path) -> None:
    deep: object = TOKEN
    for _ in range(700):
        deep = {"x": deep}
    assert scrubbed(deep) == TOO_DEEP
    assert scrubbed({"x": {"y": TOKEN}}) != TOO_DEEP
