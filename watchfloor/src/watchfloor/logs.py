"""The library's loggers: silent until the program that uses the library configures logging.

Without a handler of ours Python would print every warning and every traceback of an agent on standard error, which
belongs to the program.
"""

from __future__ import annotations

import logging
from typing import Final

_ROOT: Final = "watchfloor"

logging.getLogger(_ROOT).addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """The logger of a module of the library. Raises ValueError for a name outside of it."""
    if not name.startswith(f"{_ROOT}."):
        raise ValueError(f"{name!r} is not below {_ROOT!r}")
    return logging.getLogger(name)
