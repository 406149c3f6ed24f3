"""The folder that a demo works in, which goes with the demo.

Whoever lives in such a folder holds a lock on it. What was left behind by a demo that was killed is locked by nobody,
and removed by the next one, or by the console that had started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PREFIX: Final = "watchfloor-demo-"
_OURS: Final = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A new folder, readable by its user alone, until the end of the context. Raises OSError where none can be made."""
    sweep()
    path, handle = _make()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def sweep() -> None:
    """Remove the folders of this user in which nobody lives any more. Raises nothing."""
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).iterdir():
            if _OURS.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    _remove_if_left(path)


def _make() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Somebody who swept just now may have taken it for one that was left behind.
        if os.fstat(handle).st_nlink and path.exists():
            return path, handle
        os.close(handle)


def _remove_if_left(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        info = os.fstat(handle)
        if info.st_uid == os.getuid() and stat.S_IMODE(info.st_mode) == stat.S_IRWXU:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(handle)
