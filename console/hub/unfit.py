"""What cannot be taken up, in one line, however often a source sends it."""

from __future__ import annotations

import logging
import traceback

from console.fleet.facts import FaultFact
from watchfloor.text import Clean, clean_line

_log = logging.getLogger(__name__)


def unfit(source: str, fault: Exception) -> FaultFact:
    """What arrived and could not be taken up, for the log and for the count of the source."""
    reason = f"it could not be taken up: {type(fault).__name__}: {first_line(fault)}"
    at = traceback.extract_tb(fault.__traceback__)[-1:]
    # One line and no more, however often a source does it.
    _log.warning("%s: %s (%s)", source, reason, ", ".join(f"{place.filename}:{place.lineno}" for place in at))
    return FaultFact(source, clean_line(reason), Clean(""))


def first_line(fault: Exception) -> str:
    return str(fault).partition("\n")[0]
