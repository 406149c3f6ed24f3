"""What `watchfloor doctor` finds of the ways in which an operator is notified, and a test alert by each of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from typing import NamedTuple

from console.config import Config
from console.notifying.alerts import trial
from console.notifying.keeper import way
from console.notifying.posts import NotTold
from console.notifying.programs import DESKTOP, desktop_program
from console.notifying.rules import Channel, Rules
from console.notifying.terminal import sequence
from console.notifying.webhook import read_secret
from watchfloor.errors import ConfigError


class Told(NamedTuple):
    """One thing that was found. `sound` None: it is in order as it is, but worth a thought."""

    sound: bool | None
    text: str


def notified(config: Config, *, now: int, tried: bool) -> Iterator[Told]:
    """How the operator is notified. `tried`: each channel tells a test alert, the terminal where there is one."""
    rules = config.notify or Rules()
    if not rules.channels:
        yield Told(True, "by the bell alone; [notify] in the configuration names other ways")
    for channel in rules.channels:
        yield _looked_at(channel, rules)
    if tried:
        hidden = ["WATCHFLOOR_TOKEN", *(source.token_env for source in config.sources if source.token_env)]
        yield from asyncio.run(_tried(rules, now, hidden))


def _looked_at(channel: Channel, rules: Rules) -> Told:
    match channel:
        case Channel.TERMINAL:
            inside = ", inside tmux: needs `set -g allow-passthrough on`" if os.environ.get("TMUX") else ""
            return Told(None if inside else True, f"terminal: {rules.terminal}{inside}")
        case Channel.DESKTOP:
            program = desktop_program()
            return Told(bool(program), f"desktop: {program or f'{DESKTOP} is not installed'}")
        case Channel.COMMAND:
            found = shutil.which(rules.command[0])
            return Told(bool(found), f"command: {found or f'{rules.command[0]} is not a program that can be run'}")
        case Channel.WEBHOOK:
            return _webhook(rules)
        case Channel.BELL:
            return Told(True, "bell")


def _webhook(rules: Rules) -> Told:
    # Whoever knows the URL can post to it: its path may be as good as a token.
    host = "/".join(rules.webhook.split("/", 3)[:3])
    if rules.webhook_secret is None:
        return Told(None, f"webhook: {host}, unsigned: webhook_secret_file names a secret to sign with")
    try:
        read_secret(rules.webhook_secret)
    except ConfigError as fault:
        return Told(False, f"webhook: {fault}")
    return Told(True, f"webhook: {host}, signed")


async def _tried(rules: Rules, now: int, hidden: Collection[str]) -> list[Told]:
    alert = trial(now)
    found: list[Told] = []
    for channel in (Channel.BELL, *rules.channels):
        if channel in (Channel.BELL, Channel.TERMINAL):
            if sys.stdout.isatty():
                tmux = bool(os.environ.get("TMUX"))
                sys.stdout.write("\a" if channel is Channel.BELL else sequence(rules.terminal, alert, tmux=tmux))
                sys.stdout.flush()
                found.append(Told(True, f"{channel.value}: tried: did you see or hear it?"))
            else:
                found.append(Told(None, f"{channel.value}: not tried: the output is not a terminal"))
            continue
        made = way(channel, rules, lambda: now, hidden)
        assert made is not None  # noqa: S101 - the others are told through the terminal
        try:
            await made.tell(alert)
            found.append(Told(True, f"{channel.value}: a test alert was told"))
        except NotTold as fault:
            found.append(Told(False, f"{channel.value}: {fault}"))
        finally:
            await made.close()
    return found
