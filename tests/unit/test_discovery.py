"""What an open console makes of hosts that come, go and come back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from console import discovery
from console.cli.targets import local_place
from console.discovery import ENDED, Discovery, Folder, Place
from watchfloor import runtime
from watchfloor.connector import Target
from watchfloor.runtime import LocalHost

A, B = "ws://127.0.0.1:1001", "ws://127.0.0.1:1002"
T = "t"


class Told:
    """Sources that write down what they are told, shortest form first."""

    def __init__(self, *live: str) -> None:
        self.live = set(live)
        self.taken = set(live)
        self.targets: dict[str, Target] = {}
        self.lines: list[str] = []

    def has(self, name: str) -> bool:
        return name in self.targets or name in self.taken

    def heard(self, name: str) -> bool:
        return name in self.live

    def start(self, targets: Sequence[Target]) -> None:
        for target in targets:
            assert not self.has(target.name)
            self.targets[target.name] = target
            self.lines.append(f"start {target.name} {target.url} {target.token}")

    def replace(self, target: Target) -> None:
        self.lines.append(f"replace {target.name} {target.url} {target.token}")

    def let_go(self, name: str, why: str) -> None:
        self.live.discard(name)
        self.lines.append(f"let go {name}: {why}")

    def retry(self, name: str) -> None:
        self.lines.append(f"retry {name}")

    def news(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


def host(name: str, url: str = A, token: str | None = T, life: int = 1) -> LocalHost:
    """A host in one of its lives."""
    return LocalHost(url, token, name, os.getpid(), Path(f"/run/{name}-{url[-1]}-{life}.json"))


def by_url(
    name: str, url: str = A, token: str | None = None, *, borrows: bool = True, path: Path | None = None
) -> Place:
    return Place(Target(name, url, token), borrows=borrows, path=path)


def test_a_host_that_appears_is_a_source_once() -> None:
    told, found = Told(), Discovery([], adopt=local_place)
    found.update(told, [])
    assert told.news() == []
    found.update(told, [host("build")])
    found.update(told, [host("build")])
    assert told.news() == [f"start build {A} t"]
    assert told.targets["build"].user, "as one that was there from the start"


def test_two_hosts_of_one_name_are_two_sources() -> None:
    told, found = Told("build"), Discovery([local_place(host("build"))], adopt=local_place)
    found.update(told, [host("build"), host("build", B)])
    assert told.news() == [f"start build:1002 {B} t"]


def test_the_demo_of_the_console_keeps_its_name() -> None:
    told, found = Told("demo"), Discovery([], adopt=local_place)
    found.update(told, [host("demo")])
    assert told.news() == [f"start demo:1001 {A} t"]


def test_a_host_that_ends_is_let_go_once_and_comes_back_in_its_place() -> None:
    told, found = Told("build"), Discovery([local_place(host("build"))], adopt=local_place)
    found.update(told, [])
    found.update(told, [])
    assert told.news() == [f"let go build: {ENDED}"]
    found.update(told, [host("build", B, "other", life=2)])
    assert told.news() == [f"replace build {B} other"]
    found.update(told, [host("build", B, "other", life=2)])
    assert told.news() == []


def test_one_that_is_back_before_anybody_looked_takes_its_place_too() -> None:
    told, found = Told(), Discovery([local_place(host("build"))], adopt=local_place)
    found.update(told, [host("build", B, "other", life=2)])
    assert told.news() == [f"replace build {B} other"]


def test_one_that_is_back_at_the_same_address_is_dialled_at_once() -> None:
    place = local_place(host("build", token=None))
    told, found = Told(), Discovery([place], adopt=local_place)
    found.update(told, [host("build", token=None, life=2)])
    assert told.news() == ["retry build"], "a connector that remembers how far it was goes on"
    found.update(told, [])
    found.update(told, [host("build", token=None, life=3)])
    assert told.news() == [f"let go build: {ENDED}", f"replace build {A} None"]


def test_a_host_that_is_still_heard_is_not_pushed_out_by_one_of_its_name() -> None:
    told, found = Told("build"), Discovery([local_place(host("build"))], adopt=local_place)
    found.update(told, [host("build", B, life=2)])
    assert told.news() == [f"let go build: {ENDED}", f"start build:1002 {B} t"]


def test_another_host_at_an_old_address_is_not_the_old_host() -> None:
    told, found = Told(), Discovery([local_place(host("build"))], adopt=local_place)
    found.update(told, [host("other")])
    assert told.news() == [f"let go build: {ENDED}", f"start other {A} t"]


def test_each_of_two_of_one_name_keeps_its_own_place() -> None:
    places = [local_place(host("build")), local_place(host("build", B))._replace(target=Target("build-2", B, "t"))]
    told, found = Told(), Discovery(places, adopt=local_place)
    found.update(told, [host("build", B, "new", life=2)])
    assert told.news() == [f"let go build: {ENDED}", f"replace build-2 {B} new"]


def test_a_source_with_a_url_of_its_own_is_never_let_go_and_takes_the_new_token() -> None:
    told, found = Told(), Discovery([by_url("farm")], adopt=local_place)
    found.update(told, [host("run", token="one")])
    assert told.news() == [f"replace farm {A} one"], "and no second source at the same address"
    found.update(told, [])
    assert told.news() == []
    found.update(told, [host("run", token="two", life=2)])
    assert told.news() == [f"replace farm {A} two"]
    found.update(told, [host("run", token=None, life=3)])
    assert told.news() == ["retry farm"], "a host that publishes no token takes none away"


def test_a_token_that_was_given_is_kept() -> None:
    told, found = Told(), Discovery([by_url("farm", token="mine", borrows=False)], adopt=local_place)
    found.update(told, [host("run", token="theirs")])
    assert told.news() == ["retry farm"]
    named = Discovery([local_place(host("run"), "mine")])
    named.update(told, [host("run", B, "theirs", life=2)])
    assert told.news() == [f"replace run {B} mine"]


def test_without_leave_to_add_others_are_left_alone() -> None:
    told, found = Told("build"), Discovery([local_place(host("build"))])
    found.update(told, [host("build"), host("other", B)])
    assert told.news() == []


# --- the folder ----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "run"
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", str(where))
    return where


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that the files were read."""
    real, times = runtime.hosts, list[int]()

    def hosts() -> list[LocalHost]:
        times.append(1)
        return real()

    monkeypatch.setattr(runtime, "hosts", hosts)
    return times


def _names(hosts: list[LocalHost] | None) -> list[str] | None:
    return None if hosts is None else [host.name for host in hosts]


def test_the_files_are_read_only_where_something_may_have_changed(place: Path, read: list[int]) -> None:
    folder = Folder()
    looks = [_names(folder.look()) for _ in range(4)]
    assert [look for look in looks if look is not None] == [[]] * len(read)
    assert looks[-1] is None
    path = runtime.publish(A, None, "build")
    assert _names(folder.look()) == ["build"]
    _settle(folder)
    before = len(read)
    assert [folder.look() for _ in range(10)] == [None] * 10
    assert len(read) == before
    runtime.withdraw(path)
    assert _names(folder.look()) == []


def test_a_file_that_came_with_the_same_stamp_is_found_with_the_next_look(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder()
    runtime.publish(A, None, "one")
    info = place.stat()
    assert _names(folder.look()) == ["one"]
    runtime.publish(B, None, "two")
    os.utime(place, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert _names(folder.look()) == ["one", "two"]


def test_a_host_that_was_killed_is_missed_though_its_file_is_there(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder()
    runtime.publish(A, None, "build")
    _settle(folder)
    monkeypatch.setattr(runtime, "_alive", lambda pid, born: False)
    assert _names(folder.look()) == []


def _settle(folder: Folder) -> None:
    while folder.look() is not None:
        pass


async def test_it_looks_by_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "POLL_S", 0.001)
    told = Told()
    running = asyncio.create_task(Discovery([], adopt=local_place).run(told))
    try:
        path = runtime.publish(A, "t", "build")
        async with asyncio.timeout(60):
            while not told.lines:  # noqa: ASYNC110 - nobody tells us when a thread has looked
                await asyncio.sleep(0.001)
            assert told.news() == [f"start build {A} t"]
            runtime.withdraw(path)
            while not told.lines:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            assert told.news() == [f"let go build: {ENDED}"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
