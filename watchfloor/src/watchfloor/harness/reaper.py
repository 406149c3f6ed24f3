"""Ends a program whose host was killed and could no longer do so itself.

Run as a script, in a process of its own, with nothing but the standard library. Its standard input is held open by the
host: on it come the number of the program's session, with a line end, and one more byte once the program is over. If
the input ends without that byte, the host is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
HAS_PROCESS_TABLE = os.path.exists("/proc/self/stat")
DEAD = frozenset("ZXx")


def table() -> Iterator[tuple[int, str, int, int, int]]:
    """Every process: its number, the letter of its state, its parent, group and session."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:  # ended between the listing and the reading
            continue
        # The name in brackets may hold anything, brackets and spaces too.
        state, parent, group, session = stat[stat.rindex(b")") + 2 :].split(maxsplit=4)[:4]
        yield int(name), state.decode(), int(parent), int(group), int(session)


def end(session: int) -> None:
    """End everything in the session: SIGTERM, and SIGCONT since a stopped process takes nothing else, then SIGKILL."""
    _send(session, signal.SIGTERM)
    _send(session, signal.SIGCONT)
    for number, patience_s in ((None, GRACE_S), (signal.SIGKILL, GRACE_S)):
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if number is not None:
                _send(session, number)
            if not _groups(session):
                return
            time.sleep(0.02)


def _groups(session: int) -> set[int]:
    """The process groups of the session in which something lives."""
    if HAS_PROCESS_TABLE:
        return {group for _, state, _, group, of in table() if of == session and state not in DEAD}
    try:
        os.killpg(session, 0)
    except OSError:
        return set()
    return {session}


def _send(session: int, number: signal.Signals) -> None:
    for group in _groups(session):
        try:
            os.killpg(group, number)
        except OSError:  # gone
            continue


def main() -> None:
    line, whole, over = sys.stdin.buffer.read().partition(b"\n")
    if whole and not over:
        end(int(line))


if __name__ == "__main__":
    main()
