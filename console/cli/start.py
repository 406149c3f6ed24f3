"""The verbs that open the console: bare, `connect`, `demo` (which serves instead with `--serve`)."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from console.cli.exits import USAGE, Fail
from console.cli.targets import known, local_place, named, operator
from console.config import Config, load
from console.demo.process import DemoProcess
from console.discovery import Discovery, Place

if TYPE_CHECKING:
    from argparse import Namespace

    from console.recording.player import Player
    from watchfloor.connector import Target

PLAYS: Final = "this is a recording: nothing here happens now, and nothing can be done about it"
NO_HOST: Final = "no host found here: this is the demo; watchfloor connect URL opens yours"


def bare(args: Namespace | None = None) -> int:
    """Open on what is configured and what runs on this machine; on the demo where there is nothing. None: no more was
    said than that."""
    config = load()
    places = known(config)
    discovery = Discovery(places, adopt=local_place)
    if places:
        return _open(args, config, places, None, discovery)
    return _open(args, config, [], DemoProcess(user=operator()), discovery, ground=NO_HOST)


def connect(args: Namespace) -> int:
    """Open on the hosts that were named."""
    config = load()
    places = named(args, config, args.urls)
    return _open(args, config, places, None, Discovery(places))


def demo(args: Namespace) -> int:
    """Open on the demo alone, or serve it."""
    if args.serve is not None:
        from console.cli.serve import demo as serve_demo

        return serve_demo(args)
    if args.token_file is not None:
        raise Fail("--token-file belongs to demo --serve; the console's own demo has a token of its own", USAGE)
    if args.tls_cert is not None or args.insecure:
        raise Fail("--tls-cert, --tls-key and --insecure belong to demo --serve", USAGE)
    process = DemoProcess(user=operator(), agents=args.agents, rate=args.rate, seed=args.seed)
    return _open(args, load(), [], process, None)


def play(args: Namespace, target: Target, player: Player) -> int:
    """Open on a recording, which cannot be acted on."""
    args.read_only = True
    return _open(args, load(), [Place(target)], None, None, ground=PLAYS, player=player)


def _open(
    args: Namespace | None,
    config: Config,
    places: Sequence[Place],
    process: DemoProcess | None,
    discovery: Discovery | None,
    *,
    ground: str = "",
    player: Player | None = None,
) -> int:
    browser = args is not None and bool(args.browser)
    if not browser and (reason := _unfit()):
        raise Fail(f"{reason}; for scripts there are the verbs sessions, requests and events", USAGE)
    if not browser and not _utf8():
        config = replace(config, ascii=True)
    # A key waits for the next frame. The toolkit waits for a sixtieth of a second between two, which is more than it
    # takes to paint one.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from console.cli import logs
    from console.opening import run

    logs.keep()
    try:
        return run(
            targets=[place.target for place in places],
            config=config,
            demo=process,
            read_only=config.read_only or (args is not None and bool(args.read_only)),
            discovery=discovery,
            ground=ground,
            browser=browser,
            player=player,
        )
    finally:
        if process is not None:
            process.stop()


def _unfit() -> str | None:
    """Why no console can be drawn here; None where one can."""
    # The toolkit draws on standard error.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return "the console needs a terminal on its input, its output and its standard error"
    if os.environ.get("TERM", "dumb") == "dumb":
        return "the console needs a terminal that can place its text, and TERM says that this one cannot"
    return None


def _utf8() -> bool:
    return (sys.stdout.encoding or locale.getpreferredencoding()).lower().replace("-", "") == "utf8"
