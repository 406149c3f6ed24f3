"""Runtime files: published for the user's own consoles, trusted no further, and swept when their host is gone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from watchfloor import runtime


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "run"
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", str(where))
    return where


def _plant(place: Path, name: str, **record: object) -> Path:
    place.mkdir(mode=0o700, exist_ok=True)
    path = place / name
    path.write_text(json.dumps({"url": "ws://127.0.0.1:1", "token": None, "name": "x", "born": None, **record}))
    return path


def _pid_that_ended() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_published_host_is_found_until_it_withdraws(place: Path) -> None:
    path = runtime.publish("ws://127.0.0.1:7340", "t0ken", "build")

    (host,) = runtime.hosts()
    assert (host.url, host.token, host.name, host.pid) == ("ws://127.0.0.1:7340", "t0ken", "build", os.getpid())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert list(place.iterdir()) == [path], "no draft stays behind"

    runtime.withdraw(path)
    assert runtime.hosts() == []
    runtime.withdraw(path)


def test_the_token_is_not_in_the_repr(place: Path) -> None:
    runtime.publish("ws://127.0.0.1:7340", "t0ken", "build")
    assert "t0ken" not in repr(runtime.hosts())


def test_hosts_are_listed_by_name(place: Path) -> None:
    for name in ("b", "c", "a"):
        runtime.publish("ws://127.0.0.1:1", None, name)
    assert [host.name for host in runtime.hosts()] == ["a", "b", "c"]


def test_a_name_that_another_host_has_gets_a_number_for_as_long_as_it_is_published(place: Path) -> None:
    first, second, third = (runtime.publish(f"ws://127.0.0.1:{port}", None, "build") for port in range(1, 4))
    assert [host.name for host in runtime.hosts()] == ["build", "build-2", "build-3"]
    runtime.withdraw(first)
    assert [(host.name, host.path) for host in runtime.hosts()] == [("build-2", second), ("build-3", third)]
    runtime.publish("ws://127.0.0.1:4", None, "build")
    assert [host.name for host in runtime.hosts()] == ["build", "build-2", "build-3"]


def test_hosts_that_begin_at_once_get_different_names(place: Path) -> None:
    count = 4
    script = "from watchfloor import runtime; runtime.publish('ws://h:1', None, 'build'); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    started = [subprocess.Popen([sys.executable, "-c", script], **pipes) for _ in range(count)]  # type: ignore[call-overload]
    try:
        for process in started:
            assert process.stdout.readline() == b"\n"
        assert len({host.name for host in runtime.hosts()}) == count
    finally:
        for process in started:
            process.communicate(b"\n")


def test_a_host_whose_process_ended_is_swept(place: Path) -> None:
    dead = _plant(place, "1-dead.json", pid=_pid_that_ended())
    alive = _plant(place, "2-alive.json", pid=os.getpid())

    assert [host.path for host in runtime.hosts()] == [alive]
    assert not dead.exists()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process began")
def test_the_name_of_a_host_that_ended_is_free_before_its_parent_has_looked(place: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        _plant(place, "1-dead.json", pid=child.pid)
        os.kill(child.pid, 0)
        assert runtime.hosts() == []
        runtime.publish("ws://127.0.0.1:1", None, "x")
        assert [host.name for host in runtime.hosts()] == ["x"]
    finally:
        child.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process began")
def test_a_number_that_was_given_to_another_process_is_not_the_host(place: Path) -> None:
    other = _plant(place, "1-other.json", pid=os.getpid(), born=1)
    assert runtime.hosts() == []
    assert not other.exists()


def test_a_draft_of_a_process_that_ended_is_swept(place: Path) -> None:
    place.mkdir(mode=0o700)
    draft = place / f"{_pid_that_ended()}-abcd.new"
    draft.touch()
    assert runtime.hosts() == []
    assert not draft.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 50_000,
        "\x80",
        "{",
        "[]",
        "{}",
        '{"url": 1, "token": null, "name": "x", "pid": 1}',
        '{"url": "a", "name": "x", "pid": "1"}',
    ],
)
def test_what_cannot_be_read_is_passed_over(place: Path, text: str) -> None:
    place.mkdir(mode=0o700)
    (place / "1-a.json").write_text(text)
    (place / "notes.txt").write_text("mine")
    os.mkfifo(place / "2-b.json")
    assert runtime.hosts() == []
    assert (place / "notes.txt").exists()


def test_a_link_is_not_followed(place: Path, tmp_path: Path) -> None:
    target = _plant(tmp_path, "elsewhere.json", pid=os.getpid())
    place.mkdir(mode=0o700)
    (place / "1-a.json").symlink_to(target)
    assert runtime.hosts() == []


def test_a_folder_that_others_may_write_to_is_not_used(place: Path) -> None:
    _plant(place, "1-a.json", pid=os.getpid())
    place.chmod(0o777)

    assert runtime.hosts() == []
    with pytest.raises(runtime.RuntimeFolderError, match=f"{place}: others may write to it; run: chmod 700"):
        runtime.publish("ws://127.0.0.1:1", None, "x")


def test_a_folder_of_all_users_is_not_to_be_made_private(place: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)
    with pytest.raises(runtime.RuntimeFolderError) as caught:
        runtime.publish("ws://127.0.0.1:1", None, "x")
    assert "choose a folder of your own, as in WATCHFLOOR_RUNTIME_DIR=" in str(caught.value)
    assert "chmod" not in str(caught.value)


def test_a_folder_below_the_home_may_be_named_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", "~/x")
    assert runtime.publish("ws://127.0.0.1:1", None, "x").parent == tmp_path / "x"
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", "~no-such-user/x")
    with pytest.raises(runtime.RuntimeFolderError, match="set WATCHFLOOR_RUNTIME_DIR, or HOME"):
        runtime.publish("ws://127.0.0.1:1", None, "x")


def test_a_file_in_the_way_is_told(place: Path) -> None:
    place.write_text("")
    with pytest.raises(runtime.RuntimeFolderError, match="cannot be written"):
        runtime.publish("ws://127.0.0.1:1", None, "x")
    assert runtime.hosts() == []


def test_the_folder_is_never_a_shared_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WATCHFLOOR_RUNTIME_DIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path in runtime.folder().parents
    assert runtime.folder().parts[-2:] == ("watchfloor", "run")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert runtime.folder() == tmp_path / "cache" / "watchfloor" / "run"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    assert runtime.folder() == tmp_path / "session" / "watchfloor"
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", str(tmp_path / "named"))
    assert runtime.folder() == tmp_path / "named"


def test_no_folder_is_no_host(place: Path) -> None:
    assert runtime.hosts() == []
    assert not place.exists()


def test_the_stamp_moves_with_what_is_published_and_withdrawn(place: Path) -> None:
    assert runtime.stamp() is None
    path = runtime.publish("ws://127.0.0.1:1", None, "x")
    os.utime(place, ns=(1, 1))
    assert runtime.stamp() == 1
    runtime.hosts()
    assert runtime.stamp() == 1, "looking changes nothing"
    runtime.withdraw(path)
    assert runtime.stamp() not in (None, 1)


def test_a_host_is_up_as_long_as_its_process(place: Path) -> None:
    runtime.publish("ws://127.0.0.1:1", None, "x")
    (host,) = runtime.hosts()
    assert host.up
    assert not replace(host, pid=_pid_that_ended()).up
