"""The verbs that change what a session remembers, may use, or is: their arguments, and what these mean."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from console.cli.exits import Usage
from watchfloor.words import ReseedMode

MODES: Final = tuple(mode.value for mode in ReseedMode)
REACHED: Final = ("idle", "completed", "failed", "stopped")
"""What a session can be told of another one."""
MOST: Final = 512 * 1024
"""Bytes of a text that is read from a file: a host takes no frame of more than 1 MiB."""


def arguments(add: Callable[[str, str], Any], number: Any) -> list[Any]:
    """Add the verbs; returns their parsers."""
    reseed = add("reseed", "replace what a session remembers")
    reseed.add_argument(
        "--mode",
        choices=MODES,
        required=True,
        help="clear: begin with an empty conversation; replace: with the text in --file; rewind: go on before the "
        "message --to; compact: have the agent put it into fewer words; model: go on with the model --to",
    )
    reseed.add_argument("--to", metavar="REF", help='with rewind a message, as in "#3" or 3; with model its name')
    reseed.add_argument("--file", metavar="F", help="with replace: the file that holds the text; - is standard input")

    fork = add("fork", "begin a new session with what a session remembers")
    fork.add_argument("--name", metavar="N", help="the new session's name")

    budget = add("budget", "set how much a session may use before it is suspended")
    budget.add_argument("--tokens", metavar="N", type=number(0), help="tokens of its attempt, in and out")
    budget.add_argument("--turns", metavar="N", type=number(0), help="turns of its attempt")

    delete = add("delete", "delete a session of which nothing runs")
    delete.add_argument("--yes", action="store_true", help="yes, it is to be gone")

    notify = add("notify", "have a session tell another one what becomes of it")
    notify.add_argument("subscriber", metavar="SUBSCRIBER", help="the id of the session that is told")
    notify.add_argument(
        "--on",
        metavar="STATES",
        type=_states,
        default=("idle", "failed"),
        help=f"when: {', '.join(REACHED)}, with commas between them; none: no more (default: idle,failed)",
    )
    return [reseed, fork, budget, delete, notify]


def _states(text: str) -> tuple[str, ...]:
    words = () if text in ("", "none") else tuple(word.strip() for word in text.split(","))
    for word in words:
        if word not in REACHED:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(REACHED)}")
    return words


def given(args: Namespace, stdin: Callable[[], str]) -> dict[str, Any]:
    """The arguments of the intent. Raises Usage for what does not go together."""
    match args.verb:
        case "reseed":
            return _reseed(args, stdin)
        case "fork":
            return {"extra": {"name": args.name} if args.name is not None else {}}
        case "budget":
            limits = {name: getattr(args, name) for name in ("tokens", "turns") if getattr(args, name) is not None}
            if not limits:
                raise Usage("say how much: --tokens N, --turns N, or both")
            return {"extra": limits}
        case "delete":
            if not args.yes:
                raise Usage(f"{args.session} would be gone for good: say --yes to delete it")
            return {}
        case "notify":
            return {"extra": {"subscriber": args.subscriber, "on": list(args.on)}}
        case _:
            return {}


def _reseed(args: Namespace, stdin: Callable[[], str]) -> dict[str, Any]:
    mode = ReseedMode(args.mode)
    if (mode in (ReseedMode.REWIND, ReseedMode.MODEL)) != (args.to is not None):
        needed = mode in (ReseedMode.REWIND, ReseedMode.MODEL)
        raise Usage(f"--mode {mode.value} needs --to" if needed else f"--mode {mode.value} takes no --to")
    if (mode is ReseedMode.REPLACE) != (args.file is not None):
        replaces = mode is ReseedMode.REPLACE
        raise Usage("--mode replace needs --file" if replaces else f"--mode {mode.value} takes no --file")
    if args.file is None:
        return {"mode": mode, "to": args.to}
    return {"mode": mode, "text": stdin() if args.file == "-" else _read(args.file)}


def _read(name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            data = file.read(MOST + 1)
        text = data.decode("utf-8").rstrip("\n")
    except OSError as fault:
        raise Usage(f"{name} cannot be read: {fault.strerror or fault}") from None
    except UnicodeDecodeError:
        raise Usage(f"{name} is not UTF-8") from None
    if len(data) > MOST:
        raise Usage(f"{name} is longer than {MOST // 1024} KiB, which no host takes")
    if not text:
        raise Usage(f"{name} is empty")
    return text
