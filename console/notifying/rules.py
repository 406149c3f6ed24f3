"""What the operator wants to be told, and how: the section `[notify]` of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from console.files import expanded
from console.toml_reader import TomlReader, short
from watchfloor.errors import ConfigError

ESCALATES_S: Final = 300
AWAY_S: Final = 60
_AT: Final = ("notify",)
_KEYS: Final = (
    "terminal",
    "desktop",
    "command",
    "webhook",
    "webhook_secret_file",
    "details",
    "quiet",
    "quiet_for",
    "escalate_after_s",
    "away_after_s",
)
_TERMINALS: Final = ("none", "osc9", "osc777")
_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_DAY: Final = 24 * 60


class Channel(StrEnum):
    """A way in which an operator is told."""

    BELL = "bell"
    TERMINAL = "terminal"
    DESKTOP = "desktop"
    COMMAND = "command"
    WEBHOOK = "webhook"


ALL: Final = frozenset(Channel)


@dataclass(frozen=True, slots=True)
class Quiet:
    """Hours of the day: minutes from midnight, the end excluded; the end may lie before the beginning."""

    begins: int
    ends: int

    def holds(self, minute: int) -> bool:
        """Is this minute of the day one of them?"""
        return (minute - self.begins) % _DAY < (self.ends - self.begins) % _DAY


@dataclass(frozen=True, slots=True)
class Rules:
    """What is told, and how.

    `details`: tell what an agent asks, not only that it does. In the hours `quiet` the channels of `quiet_for` tell
    nothing. What nobody has answered `escalate_after_s` seconds after it was heard of is told once more (0: it is not).
    New requests are told when the operator has been away for `away_after_s` seconds, or the terminal has lost the focus
    (0: at once); the bell rings for them at once in any case, unless it is turned off.
    """

    terminal: str = "none"
    desktop: bool = False
    command: tuple[str, ...] = ()
    webhook: str = ""
    webhook_secret: Path | None = None
    details: bool = False
    quiet: Quiet | None = None
    quiet_for: frozenset[Channel] = ALL
    escalate_after_s: int = ESCALATES_S
    away_after_s: int = AWAY_S

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Those that are in use, the bell left out."""
        used = {
            Channel.TERMINAL: self.terminal != "none",
            Channel.DESKTOP: self.desktop,
            Channel.COMMAND: bool(self.command),
            Channel.WEBHOOK: bool(self.webhook),
        }
        return tuple(channel for channel, is_used in used.items() if is_used)

    def silent(self, channel: Channel, minute: int) -> bool:
        """Does the channel tell nothing in this minute of the day?"""
        return self.quiet is not None and channel in self.quiet_for and self.quiet.holds(minute)


def read_rules(reader: TomlReader, table: object) -> Rules:
    """The rules of the section; what is wrong with it is left with the reader."""
    if not isinstance(table, dict):
        reader.fault(_AT, "write what notifies you below a line [notify]")
        return Rules()
    reader.unknown_keys(table, _KEYS, _AT)
    webhook = reader.text_at(table, _AT, "webhook")
    if webhook is not None and (wrong := webhook_fault(webhook)):
        reader.fault((*_AT, "webhook"), wrong)
        webhook = None
    secret = reader.text_at(table, _AT, "webhook_secret_file")
    if secret is not None and "webhook" not in table:
        reader.fault((*_AT, "webhook_secret_file"), "there is no webhook whose messages it could sign")
    return Rules(
        terminal=reader.word(table, _AT, "terminal", _TERMINALS) or "none",
        desktop=reader.flag(table, "desktop", False, _AT),
        command=_command(reader, table),
        webhook=webhook or "",
        webhook_secret=_beside(reader, secret) if secret is not None else None,
        details=reader.flag(table, "details", False, _AT),
        quiet=_quiet(reader, table),
        quiet_for=_quiet_for(reader, table),
        escalate_after_s=reader.whole(table, "escalate_after_s", 0, ESCALATES_S, _AT),
        away_after_s=reader.whole(table, "away_after_s", 0, AWAY_S, _AT),
    )


def webhook_fault(url: str) -> str | None:
    """Why nothing can be posted to this URL; None where it can be tried. What is told does not go out in the clear."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or " " in url:
        return f"{short(url)!r} is not a URL of the web; write it as https://HOST/PATH"
    if "@" in parts.netloc:
        return "a URL must not hold a user or a password; sign what is sent: webhook_secret_file"
    if parts.scheme == "http" and not _here(host):
        return "it would be sent in the clear: write https://, or http:// to 127.0.0.1"
    return None


def _here(host: str) -> bool:
    from ipaddress import ip_address  # only this pays for it

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _command(reader: TomlReader, table: Mapping[str, Any]) -> tuple[str, ...]:
    value = table.get("command", [])
    sound = isinstance(value, list) and all(isinstance(word, str) and "\0" not in word for word in value)
    if not sound or ("command" in table and (not value or not value[0])):
        says = 'write the program and its arguments as a list, ["/usr/local/bin/page-me", "--now"]; no shell reads it'
        reader.fault((*_AT, "command"), says)
        return ()
    return tuple(value)


def _quiet(reader: TomlReader, table: Mapping[str, Any]) -> Quiet | None:
    text = reader.text_at(table, _AT, "quiet")
    if text is None:
        return None
    match = _HOURS.fullmatch(text.replace(" ", ""))
    if match is None:
        reader.fault((*_AT, "quiet"), f'{short(text)!r} are no hours; write them as "22:00-07:00"')
        return None
    hours = [int(part) for part in match.groups()]
    quiet = Quiet(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])
    if quiet.begins == quiet.ends:
        reader.fault((*_AT, "quiet"), "it ends when it begins: leave it out, or name other hours")
        return None
    return quiet


def _quiet_for(reader: TomlReader, table: Mapping[str, Any]) -> frozenset[Channel]:
    value = table.get("quiet_for", list(Channel))
    names = [channel.value for channel in Channel]
    if not isinstance(value, list) or not all(isinstance(name, str) and name in names for name in value):
        reader.fault((*_AT, "quiet_for"), f"it must be a list of these: {', '.join(names)}")
        return ALL
    return frozenset(Channel(name) for name in value)


def _beside(reader: TomlReader, file: str) -> Path | None:
    """A relative file lies beside the configuration that names it."""
    try:
        return reader.where.parent / expanded(file)
    except ConfigError as fault:
        reader.fault((*_AT, "webhook_secret_file"), str(fault))
        return None
