"""`watchfloor record` and `watchfloor replay`: what a source sends, kept in a file, and shown again from it."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console.cli import out
from console.cli.exits import OK, USAGE, Fail
from console.cli.link import attached, now_ms
from console.cli.targets import named
from console.config import load
from console.files import expanded
from watchfloor.connector import Record, Target
from watchfloor.text import clean_line

if TYPE_CHECKING:
    from console.connectors.supervisor import Item
    from console.recording.tape import Recorder

UNWRITTEN: Final = 1


def record(args: Namespace) -> int:
    """Record a source until Ctrl-C. Raises Fail, and what a connection fails with."""
    from console.recording.tape import Recorder

    path = expanded(args.file)
    config = load()
    (place,) = named(args, config, [args.url])
    secrets = [place.target.token] if place.target.token is not None else []
    try:
        recorder = Recorder(path, place.target.name, now_ms(), scrub=not args.raw, secrets=secrets)
    except FileExistsError:
        raise Fail(f"{path} exists already and is left as it is", USAGE) from None
    except OSError as error:
        raise Fail(f"{path} cannot be written: {error.strerror or error}", USAGE) from None
    ended = ""
    try:
        asyncio.run(_record(args, recorder))
    except KeyboardInterrupt:
        ended = ", ended by Ctrl-C"
    finally:
        _finish(recorder, path)
    masked = f", secrets masked in {recorder.masked:,} of them" if recorder.masked else ""
    out.note(f"{path}: {recorder.frames:,} frames{masked}{ended}")
    return OK


def _finish(recorder: Recorder, path: Path) -> None:
    try:
        recorder.close()
    except OSError as error:
        raise Fail(f"{path} cannot be written: {error.strerror or error}", UNWRITTEN) from None
    if not recorder.frames:
        # Nothing was recorded: there is nothing to be kept.
        path.unlink(missing_ok=True)


async def _record(args: Namespace, recorder: Recorder) -> None:
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(items: Sequence[Item]) -> None:
        try:
            recorder.take(items, now_ms())
        except (OSError, ValueError) as error:
            if not failed.done():
                failed.set_exception(Fail(f"{args.file} cannot be written: {error}", UNWRITTEN))

    async with attached(args, intervenes=False, record=Record.ALL, on_items=take, past=not args.from_now):
        until = "until Ctrl-C" if args.seconds is None else f"for {args.seconds:g} s, or until Ctrl-C"
        out.note(f"recording into {args.file}, {until}")
        done, _ = await asyncio.wait({failed}, timeout=args.seconds)
        for one in done:
            one.result()


def replay(args: Namespace) -> int:
    """Show a recording in the console. Raises Fail, ConfigError."""
    from console.cli.start import play
    from console.recording.connector import lend
    from console.recording.player import Player
    from console.recording.tape import Tape

    path = expanded(args.file)
    try:
        tape = Tape(path)
    except OSError as error:
        raise Fail(f"{path} cannot be read: {error.strerror or error}", USAGE) from None
    try:
        player = Player(tape, time.monotonic, speed=args.speed)
        return play(args, Target(name=clean_line(tape.source or path.name), url=lend(player)), player)
    finally:
        tape.close()
