"""Where the operator's files are, and the text of one of them."""

from __future__ import annotations

import os
from pathlib import Path

from console.files import expanded, read
from watchfloor.errors import ConfigError


def config_path() -> Path:
    """Where the configuration is: `WATCHFLOOR_CONFIG`, else below the user's configuration folder.

    Raises ConfigError where that is not known.
    """
    if named := os.environ.get("WATCHFLOOR_CONFIG"):
        return expanded(named)
    return _base("XDG_CONFIG_HOME", "~/.config") / "watchfloor" / "config.toml"


def state_folder() -> Path:
    """Where this console keeps what it writes: audit files and its log. Raises ConfigError where that is not known."""
    return _base("XDG_STATE_HOME", "~/.local/state") / "watchfloor"


def text_of(where: Path, *, must_exist: bool) -> str:
    """What the file holds; "" for one that does not exist and need not. Raises ConfigError where it cannot be read."""
    raw = b""
    try:
        raw = read(where)
        return raw.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if must_exist:
            raise ConfigError(f"{where}: there is no such file; `watchfloor config init` writes one") from None
        return ""
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{where}:{line}: it is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{where}: it cannot be read: {error.strerror or error}") from None


def _base(variable: str, otherwise: str) -> Path:
    named = os.environ.get(variable)
    # Relative folders in these variables are to be ignored, by the convention that defines them.
    if named and Path(named).is_absolute():
        return Path(named)
    try:
        return Path(otherwise).expanduser()
    except RuntimeError:
        raise ConfigError(f"your home folder is not known: set HOME, or {variable}") from None
