"""The verbs that open the console: bare, `connect`, `demo` (which serves instead with `--serve`)."""

from __future__ import annotations

import gc
import locale
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from console.cli.exits import USAGE, Fail
from console.cli.targets import known, named, operator
from console.config import Config, load
from console.demo.process import DemoProcess
from watchfloor.connector import Target


def bare(args: Namespace) -> int:
    """Open on what is configured and what runs on this machine; on the demo where there is nothing."""
    config = load()
    targets = known(config)
    return _open(args, config, targets, None if targets else DemoProcess(user=operator()))


def connect(args: Namespace) -> int:
    """Open on the hosts that were named."""
    config = load()
    return _open(args, config, named(args, config, args.urls), None)


def demo(args: Namespace) -> int:
    """Open on the demo alone, or serve it."""
    if args.serve is not None:
        from console.cli.serve import demo as serve_demo

        return serve_demo(args)
    if args.token_file is not None:
        raise Fail("--token-file belongs to demo --serve; the console's own demo has a token of its own", USAGE)
    process = DemoProcess(user=operator(), agents=args.agents, rate=args.rate, seed=args.seed)
    return _open(args, load(), [], process)


def _open(args: Namespace, config: Config, targets: Sequence[Target], process: DemoProcess | None) -> int:
    if reason := _unfit():
        raise Fail(f"{reason}; for scripts there are the verbs sessions, requests and events", USAGE)
    if not _utf8():
        config = replace(config, ascii=True)
    # What is loaded now stays: looking for garbage in it costs a sixth of the way to the first frame. The application
    # takes the collector over once it is up.
    gc.disable()
    from console.app import run
    from console.cli import logs

    logs.keep()
    try:
        return run(targets=targets, config=config, demo=process, read_only=args.read_only or config.read_only)
    finally:
        if process is not None:
            process.stop()


def _unfit() -> str | None:
    """Why no console can be drawn here; None where one can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "the console needs a terminal on its input and output"
    if os.environ.get("TERM", "dumb") == "dumb":
        return "the console needs a terminal that can place its text, and TERM says that this one cannot"
    return None


def _utf8() -> bool:
    return (sys.stdout.encoding or locale.getpreferredencoding()).lower().replace("-", "") == "utf8"
