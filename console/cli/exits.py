"""How the command line ends: a status that scripts can rely on, one clear line, and never a traceback."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from console.cli import out
from watchfloor.errors import AddressInUse, ConfigError, ConnectionFailed, StorageError, WatchfloorError

OK: Final = 0
BUG: Final = 1
UNWRITTEN: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


class Fail(WatchfloorError):
    """Ends the program with one line and a status."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Usage(Fail):
    """The command line asks for something that cannot be meant."""

    def __init__(self, message: str) -> None:
        super().__init__(message, USAGE)


def guarded(body: Callable[[], int]) -> int:
    """Run `body` and give the status to end with, whatever happens in it."""
    try:
        return body()
    except Fail as failure:
        code = failure.code
        reason = str(failure)
    except (ConnectionFailed, AddressInUse, ConfigError, StorageError) as failure:
        code = failure.exit_code
        reason = str(failure)
    except KeyboardInterrupt:
        return INTERRUPTED
    except out.Unwritable as failure:
        if failure.reader_left:
            return BROKEN_PIPE
        code = UNWRITTEN
        reason = str(failure)
    except Exception as error:
        code = BUG
        reason = _unexpected(error)
    out.fail(reason)
    return code


def _unexpected(error: Exception) -> str:
    """Write the whole story into the log; returns the line that says where."""
    import traceback

    from console.cli import logs  # loads `logging`; `--version` needs neither

    what = f"{type(error).__name__} (a fault of this program, not of yours)"
    at = datetime.now(UTC).isoformat(timespec="seconds")
    story = "".join(traceback.format_exception(error))
    try:
        logs.append(f"{at} {os.getpid()} unexpected: {story}")
    except ConfigError as fault:
        return f"{what}; it could not be written down: {fault}"
    except OSError as fault:
        return f"{what}; it could not be written to {logs.log_path()}: {fault.strerror or fault}"
    return f"{what}; what happened is in {logs.log_path()}"
