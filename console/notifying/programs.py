"""Programs that tell: the desktop's own, and the operator's. Neither goes through a shell."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from html import escape
from typing import Final

from console.notifying.alerts import TITLE, Alert
from console.notifying.posts import NotTold

DESKTOP: Final = "notify-send"
DESKTOP_S: Final = 5.0
COMMAND_S: Final = 30.0


def desktop_program() -> str | None:
    """Where the program is that tells the desktop; None where there is none."""
    return shutil.which(DESKTOP)


class Desktop:
    """Tells the desktop by `notify-send`."""

    def __init__(self, wait_s: float = DESKTOP_S) -> None:
        self._wait_s = wait_s

    async def tell(self, alert: Alert) -> None:
        if (program := desktop_program()) is None:
            raise NotTold(f"{DESKTOP} is not installed")
        urgency = "critical" if alert.kind == "unanswered" else "normal"
        # Many desktops read the body as markup: text of agents must not become bold, or a link.
        argv = [program, f"--app-name={TITLE}", f"--urgency={urgency}", "--", TITLE, escape(alert.text, quote=False)]
        await _run(argv, b"", dict(os.environ), self._wait_s)

    async def close(self) -> None:
        return


class Hook:
    """Runs a program of the operator's for each alert: what is told is in its environment, and as JSON its input.

    `hidden`: names of variables that it is not handed, since they hold tokens.
    """

    def __init__(self, argv: Sequence[str], hidden: Collection[str] = (), wait_s: float = COMMAND_S) -> None:
        self._argv = tuple(argv)
        self._hidden = frozenset(hidden)
        self._wait_s = wait_s

    async def tell(self, alert: Alert) -> None:
        env = {name: value for name, value in os.environ.items() if name not in self._hidden}
        env |= {
            "WATCHFLOOR_ALERT_ID": alert.id,
            "WATCHFLOOR_ALERT_KIND": alert.kind,
            "WATCHFLOOR_ALERT_AGENTS": str(alert.agents),
            "WATCHFLOOR_ALERT_REQUESTS": str(alert.requests),
            "WATCHFLOOR_ALERT_TEXT": alert.text,
        }
        await _run(self._argv, json.dumps(alert.data()).encode() + b"\n", env, self._wait_s)

    async def close(self) -> None:
        return


async def _run(argv: Sequence[str], given: bytes, env: Mapping[str, str], wait_s: float) -> None:
    """Run it to its end. Raises NotTold where it cannot be started, fails, or takes longer than `wait_s` seconds."""
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.PIPE, stdout=nowhere, stderr=nowhere, env=env, start_new_session=True
        )
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise NotTold(f"it cannot be started: {reason}") from None
    try:
        async with asyncio.timeout(wait_s):
            await process.communicate(given)
    except TimeoutError:
        raise NotTold(f"it did not end within {wait_s:g} s, and was ended") from None
    finally:
        if process.returncode is None:
            # It leads a group of its own: what it has started ends with it.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise NotTold(f"it ended with status {process.returncode}")
