"""Which session's turn the running code belongs to, so that a wait inside of a turn is known to be one."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

CURRENT: Final[ContextVar[str | None]] = ContextVar("watchfloor_session", default=None)
"""Id of the session in whose turn this code runs; None outside of turns."""
