"""Where our own log goes: into one file that its user can read, and never onto the terminal."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from console.places import state_folder
from watchfloor.errors import ConfigError
from watchfloor.text import clean, redact


def log_path() -> Path:
    """Where the log is. Raises ConfigError where that is not known."""
    return state_folder() / "watchfloor.log"


def keep() -> None:
    """Send warnings and worse of every part of the program to the log. A second call changes nothing."""
    root = logging.getLogger()
    if not any(isinstance(handler, _LogFile) for handler in root.handlers):
        root.addHandler(_LogFile())
        # What Python itself would print of them is for us, and not for whoever operates.
        logging.captureWarnings(True)


class _LogFile(logging.Handler):
    """Appends to the log, made when there is something to write. Known forms of secrets are masked."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        form = f"%(asctime)s {os.getpid()} %(levelname)s %(name)s: %(message)s"
        self.setFormatter(logging.Formatter(form, datefmt="%Y-%m-%d %H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            append(self.format(record))
        except (OSError, ConfigError):
            # There is no other place for it: the terminal belongs to the console, or to somebody's script.
            return


def append(text: str) -> None:
    """Append to the log, cleaned and masked. Raises OSError where it cannot be written, ConfigError where to is
    not known."""
    masked, _ = redact(clean(text))
    path = log_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(masked + "\n")
