"""The entry of `watchfloor`: reads the command line and hands it to the module that the verb needs, and to no other."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from console.cli import exits, out


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (that of the process, unless given); returns the exit status. Raises nothing but SystemExit 0,
    from `--help` and `--version`."""
    out.prepare()
    words = sys.argv[1:] if argv is None else argv
    return exits.guarded(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    if sys.platform == "win32":
        raise exits.Fail("Windows is not supported; use it in WSL", exits.USAGE)
    if not words:
        _loads_the_console()
        # To read a command line takes a while, and the first frame need not wait for that of an empty one.
        from console.cli.start import bare

        return bare()
    from console.cli.parser import parse

    args = parse(words)
    module, _, name = str(args.handler).partition(":")
    if module == "start":
        _loads_the_console()
    handler: Callable[..., int] = getattr(import_module(f"console.cli.{module}"), name)
    return handler(args)


def _loads_the_console() -> None:
    # What is loaded stays: to look for garbage in it takes a tenth of the time that it takes to load. The console takes
    # the collector over once it is up.
    gc.disable()


if __name__ == "__main__":
    sys.exit(main())
