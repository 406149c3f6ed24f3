"""Files that an operator names, read whole or refused in one line: none of them may hang or fill this console."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from watchfloor.errors import ConfigError

MOST: Final = 1024 * 1024
"""Bytes of the largest file that is read."""


def expanded(path: str | Path) -> Path:
    """The path with the user's folder for a leading `~`. Raises ConfigError where that is not known."""
    named = Path(path)
    try:
        return named.expanduser()
    except RuntimeError:
        who = named.parts[0]
        if who != "~":
            raise ConfigError(f"{path}: there is no user {who.removeprefix('~')!r}") from None
        raise ConfigError(f"{path}: your home folder is not known: set HOME") from None


def read(path: Path, *, private: bool = False) -> bytes:
    """What the file holds.

    Raises OSError where it cannot be read, FileNotFoundError where there is none, and ConfigError for what is no file,
    for one that is too large, and with `private` for one that others may read.
    """
    # A pipe without a writer would hang whoever opens it, and a device may do something by that.
    _check(os.stat(path), path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    with open(handle, "rb") as file:
        # Asked of the open file, so that what is checked is what is read.
        info = os.fstat(handle)
        _check(info, path)
        if private and info.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"{path}: others may read this token file; run: chmod 600 {path}")
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise _too_large(path)
    return data


def _check(info: os.stat_result, path: Path) -> None:
    mode = info.st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise ConfigError(f"{path}: it is {what}, and must be a file")
    if info.st_size > MOST:
        raise _too_large(path)


def _too_large(path: Path) -> ConfigError:
    return ConfigError(f"{path}: it is larger than 1 MB, and must be a small file")
