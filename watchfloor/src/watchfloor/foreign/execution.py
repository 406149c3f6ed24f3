"""What became of a command that a foreign system was asked to carry out, whatever its source raised."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from watchfloor.errors import CapabilityNotSupported, ConnectionFailed, ConnectionLost, StaleTarget
from watchfloor.host.effects import Handled
from watchfloor.logs import logger
from watchfloor.words import OutcomeKind

if TYPE_CHECKING:
    from watchfloor.foreign.source import ForeignSource
    from watchfloor.protocol.frames import Command

_log = logger(__name__)


async def carry_out(source: ForeignSource, command: Command, by: str, *, name: str, answers_in_s: float) -> Handled:
    """Have the source, which is called `name` in the log, carry it out; cancelled or late, the outcome is unknown."""
    try:
        async with asyncio.timeout(answers_in_s):
            return await source.execute(command, by)
    except TimeoutError:
        return Handled(OutcomeKind.UNKNOWN, reason=f"no answer within {answers_in_s:g} s")
    except asyncio.CancelledError:
        return Handled(OutcomeKind.UNKNOWN, reason="the connection ended before an answer came")
    except ConnectionLost as lost:
        return Handled(OutcomeKind.UNKNOWN, reason=str(lost))
    except ConnectionFailed as failed:
        return Handled(OutcomeKind.UNDELIVERED, reason=str(failed))
    except CapabilityNotSupported as missing:
        return Handled(OutcomeKind.CAPABILITY_NOT_SUPPORTED, reason=str(missing))
    except StaleTarget as stale:
        return Handled(OutcomeKind.STALE_TARGET, reason=str(stale))
    except Exception as fault:
        _log.exception("the connector of %r failed to carry out %s", name, command.do.primitive)
        return Handled(OutcomeKind.UNKNOWN, reason=f"the connector failed ({type(fault).__name__})")
