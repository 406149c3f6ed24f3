"""Runtime files: how the consoles of a user find the hosts that this user runs on this machine.

A host publishes one small JSON file with its URL, its operator token and a name that no other host here has, readable
by its user alone, and withdraws it when it ends. Whoever lists the hosts sweeps the files of
those that died without doing so. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from watchfloor.errors import WatchfloorError

_VARIABLE: Final = "WATCHFLOOR_RUNTIME_DIR"
_INSTEAD: Final = f"choose a folder of your own, as in {_VARIABLE}=~/.cache/watchfloor/run"
_MOST: Final = 64 * 1024
_SUFFIX: Final = ".json"
_FIELDS: Final = ("url", "token", "name", "pid", "born", "stands")
_ENDED: Final = ("Z", "X")
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class RuntimeFolderError(WatchfloorError):
    """The folder of the runtime files cannot be trusted or written. The message names it and says why."""


@dataclass(frozen=True, slots=True)
class LocalHost:
    """A host of this user on this machine. `token` never appears in a repr."""

    url: str
    token: str | None = field(repr=False)
    name: str
    pid: int
    path: Path
    born: int | None = None
    """When its process began, in clock ticks since boot; None where the system does not tell."""
    stands: bool = False
    """It was brought up to be joined by others."""

    @property
    def up(self) -> bool:
        """Does its process still run? It may have withdrawn, or its file may be gone, all the same."""
        return _alive(self.pid, self.born)


def folder() -> Path:
    """Where the runtime files are: never a folder that other users share. Raises RuntimeFolderError where the home of
    the user is not known."""
    if named := os.environ.get(_VARIABLE):
        return _expanded(named)
    if session := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(session) / "watchfloor"
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "watchfloor" / "run"
    caches = _expanded("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    return caches / "watchfloor" / "run"


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise RuntimeFolderError(f"{path}: that home folder is not known: set {_VARIABLE}, or HOME") from None


def publish(url: str, token: str | None, name: str, *, stands: bool = False) -> Path:
    """Tell the consoles of this user about a host of this process; returns the file for `withdraw`.

    It goes by its name, or with a number where another host that is up has it (`build`, `build-2`), for as long as it
    is published: so every console and every script calls it the same.

    Raises:
        RuntimeFolderError: the folder belongs to somebody else, others may write to it, or the file cannot be written.
    """
    import json

    where = folder()
    pid = os.getpid()
    path = where / f"{pid}-{os.urandom(4).hex()}{_SUFFIX}"
    # Whoever lists the folder never meets half a file: it gets its name once it is whole.
    draft = path.with_suffix(".new")
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if reason := _distrust(where):
            raise RuntimeFolderError(f"{where}: {reason}")
        with _one_at_a_time(where):
            record = {"url": url, "token": token, "name": _free(name), "pid": pid, "born": _born(pid), "stands": stands}
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(record, file)
            draft.replace(path)
    except OSError as error:
        _remove(draft)
        raise RuntimeFolderError(f"{where}: the runtime file cannot be written: {error.strerror or error}") from None
    return path


def withdraw(path: Path) -> None:
    """Take back what `publish` wrote; a file that is gone already is no error."""
    _remove(path)


def stamp() -> int | None:
    """When the folder last changed, in nanoseconds by the clock of its file system; None where there is none.

    Much cheaper than `hosts`, and the same as long as nobody publishes or withdraws. Changes that follow each other
    closely may share a stamp.
    """
    try:
        return folder().stat().st_mtime_ns
    except (OSError, RuntimeFolderError):
        return None


def hosts() -> list[LocalHost]:
    """The hosts of this user that are up, by name; files of processes that ended are removed.

    Files of other users, and those that cannot be read, are passed over. Raises nothing.
    """
    found: list[LocalHost] = []
    try:
        where = folder()
        if _distrust(where):
            return []
        paths = sorted(where.iterdir())
    except (OSError, RuntimeFolderError):
        return []
    for path in paths:
        if path.suffix == ".new" and not _alive(_pid_of(path.name), None):
            _remove(path)
        if path.suffix != _SUFFIX or (record := _read(path)) is None:
            continue
        if _alive(record["pid"], record["born"]):
            found.append(LocalHost(**{name: record[name] for name in _FIELDS}, path=path))
        else:
            _remove(path)
    return sorted(found, key=lambda host: (host.name, host.url))


def _free(name: str) -> str:
    taken = {host.name for host in hosts()}
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


@contextmanager
def _one_at_a_time(where: Path) -> Iterator[None]:
    """Keep other hosts from taking the same name at the same moment, where the file system can do that."""
    import fcntl  # not on every system on which the library may be imported

    handle = os.open(where, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _distrust(where: Path) -> str | None:
    """Why the folder is not to be used: what another user may write there could pose as a host of ours."""
    info = where.stat()
    if not stat.S_ISDIR(info.st_mode):
        return "it is not a folder"
    if info.st_uid != os.getuid():
        return f"it belongs to another user: {_INSTEAD}"
    if info.st_mode & _OTHERS_WRITE and info.st_mode & stat.S_ISVTX:
        return f"it is shared by all users: {_INSTEAD}"
    if info.st_mode & _OTHERS_WRITE:
        return f"others may write to it; run: chmod 700 {where}"
    return None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        # Without waiting: a pipe in its place must not hang us.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            info = os.fstat(handle)
            if info.st_uid != os.getuid() or not stat.S_ISREG(info.st_mode):
                return None
            raw = file.read(_MOST)
        import json  # a console that finds no host does not wait for it

        record = json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    texts = isinstance(record.get("url"), str) and isinstance(record.get("name"), str)
    token, pid, born = record.get("token"), record.get("pid"), record.get("born")
    if not texts or not isinstance(token, str | None) or not isinstance(pid, int) or not isinstance(born, int | None):
        return None
    return {**record, "born": born, "stands": record.get("stands") is True}


def _alive(pid: int, born: int | None) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        # Somebody else's process has the number now; our own host could be signalled.
        return False
    fields = _stat(pid)
    # One that has ended keeps its number until its parent has looked.
    if fields and fields[0] in _ENDED:
        return False
    return born is None or _born(pid) in (None, born)


def _born(pid: int) -> int | None:
    """When the process began, in clock ticks since boot; None where the system does not tell.

    Numbers of processes are used again, most of all after a reboot, and a folder below the home outlives that.
    """
    try:
        return int(_stat(pid)[19])
    except (ValueError, IndexError):
        return None


def _stat(pid: int) -> list[str]:
    """What the system tells of the process, from its state on; empty where it tells nothing."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return []
    # The second field is the program's name, in brackets, and may itself hold blanks and brackets.
    return text.rpartition(")")[2].split()


def _pid_of(name: str) -> int:
    number = name.partition("-")[0]
    return int(number) if number.isdigit() else 0


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
