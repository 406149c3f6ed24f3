"""Starts a program on the terminal that its standard streams are.

Run as a script, in a process that has begun a session of its own, with nothing but the standard library: it makes the
terminal the session's own, so that the program can be interrupted from it, and becomes the program.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios

CANNOT = 126


def sized(terminal: int, columns: int, rows: int) -> None:
    """Tell the terminal how large it is."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main(argv: list[str]) -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - the program that was asked for
    except OSError as error:
        print(f"cannot run {argv[0]!r}: {error.strerror}", file=sys.stderr)
        sys.exit(CANNOT)


if __name__ == "__main__":
    main(sys.argv[1:])
