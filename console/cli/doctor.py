"""`watchfloor doctor`: what this installation is, what it stands on, and what of that is not in order."""

from __future__ import annotations

import asyncio
import locale
import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console import looks
from console.audit import Audit, verify
from console.cli import logs, out
from console.cli.checking import Checked, checked
from console.cli.exits import OK, USAGE
from console.cli.targets import known, local_places, operator
from console.config import STILL, Config
from console.places import config_path, state_folder
from console.version import VERSION
from watchfloor import runtime
from watchfloor.errors import ConfigError, StorageError, WatchfloorError
from watchfloor.text import Clean, cell_width, clean_line, cut
from watchfloor.words import EXIT_CODE, Contact, OutcomeKind

if TYPE_CHECKING:
    from console.hub import Hub

_PACKAGES: Final = ("watchfloor", "textual", "rich", "websockets", "pydantic", "httpx")
_EXTRAS: Final = ("textual-serve",)
_LEAST: Final = (80, 24)
_DIALS_S: Final = 10.0
_AREA: Final = 10


class Level(StrEnum):
    """How a finding is to be taken. A fault has to be mended before the console is of use there."""

    OK = "ok"
    NOTE = "note"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `status`: what the program ends with for it, 0 for what is no fault."""

    area: str
    level: Level
    text: str
    status: int = OK


def doctor(args: Namespace) -> int:
    """Tell all findings; returns 0 where nothing is a fault, else 2, or what the dialling came to (7 or 8)."""
    findings = [*_versions(), *_paths(), *_terminal()]
    try:
        found = checked()
    except WatchfloorError as fault:
        found = Checked(None, (str(fault),), (), ())
    findings += _config(found)
    findings += _notified(found, tried=args.notify)
    findings += _sources(found, dial=args.dial)
    findings += _audit()
    findings += _journal(found)
    if args.json:
        for finding in findings:
            out.record(asdict(finding))
    else:
        width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None
        for finding in findings:
            _print(finding, width)
    faults = [finding for finding in findings if finding.level is Level.FAULT]
    if not args.json:
        count = len(faults)
        many = "nothing has" if not count else "one thing has" if count == 1 else f"{count} things have"
        out.line(Clean(f"{many} to be mended"))
    # What is wrong here comes before what is wrong elsewhere.
    return next((fault.status for fault in sorted(faults, key=lambda fault: fault.status != USAGE)), OK)


def _print(finding: Finding, width: int | None) -> None:
    for at, line in enumerate(finding.text.split("\n")):
        level = finding.level.value if at == 0 else ""
        text = clean_line(f"{level:<6}{finding.area if at == 0 else '':<{_AREA}}{line}")
        # A path is of no use without its end: such lines are left to the terminal to wrap.
        out.line(text if width is None or cell_width(text) <= width or "/" in text else cut(text, width))


def _ok(area: str, text: str) -> Finding:
    return Finding(area, Level.OK, text)


def _note(area: str, text: str) -> Finding:
    return Finding(area, Level.NOTE, text)


def _fault(area: str, text: str, status: int = USAGE) -> Finding:
    return Finding(area, Level.FAULT, text, status)


# --- what this is --------------------------------------------------------------------------


def _versions() -> Iterator[Finding]:
    yield _ok("version", f"watchfloor {VERSION}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    found = [(name, _installed(name)) for name in _PACKAGES]
    yield _ok("packages", ", ".join(f"{name} {version}" for name, version in found if version))
    for name in (name for name, version in found if version is None):
        yield _fault("packages", f"{name} is missing: install watchfloor-console again")
    for name in _EXTRAS:
        version = _installed(name)
        yield (
            _ok("extras", f"{name} {version}")
            if version
            else _note("extras", f"without {name}: `watchfloor web` needs watchfloor-console[web]")
        )


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _paths() -> Iterator[Finding]:
    places: tuple[tuple[str, Callable[[], Path]], ...] = (
        ("config", config_path),
        ("state", state_folder),
        ("log", logs.log_path),
        ("runtime", runtime.folder),
    )
    for what, place in places:
        try:
            path = place()
        except WatchfloorError as fault:
            yield _fault("paths", f"{what}: {fault}")
            continue
        yield _writable(what, path)


def _writable(what: str, path: Path) -> Finding:
    """Can the file or folder be made or written where it is to be?"""
    folder = path if what in ("state", "runtime") else path.parent
    nearest = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path("/"))
    there = "" if path.exists() else " (not there yet)"
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return _fault("paths", f"{what}: {path}: {nearest} cannot be written to")
    return _ok("paths", f"{what}: {path}{there}")


# --- the terminal --------------------------------------------------------------------------


def _terminal() -> Iterator[Finding]:
    area = "terminal"
    term = os.environ.get("TERM", "")
    drawn = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not drawn:
        yield _note(area, "input, output and errors are not all a terminal: no console can be drawn here")
    else:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
        small = columns < _LEAST[0] or rows < _LEAST[1]
        text = f"{columns}x{rows}" + (f": {_LEAST[0]}x{_LEAST[1]} or more reads better" if small else "")
        yield _note(area, text) if small else _ok(area, text)
    if term in ("", "dumb"):
        # Where nothing can be drawn anyhow it is nobody's fault.
        told = _fault if drawn else _note
        yield told(area, f"TERM is {term!r}: it must name a terminal that can place its text, as xterm-256color")
    else:
        yield _ok(area, f"TERM={term}, {_colours(term)}")
    if looks.colourless():
        yield _note(area, "NO_COLOR is set: no colour is used, whatever the theme")
    if os.environ.get(STILL):
        yield _note(area, f"{STILL} is set: nothing moves")
    encoding = (sys.stdout.encoding or locale.getpreferredencoding()).lower()
    if encoding.replace("-", "") == "utf8":
        yield _ok(area, "UTF-8")
    else:
        yield _note(area, f"{encoding} instead of UTF-8: glyphs are drawn in ASCII; set LC_ALL=C.UTF-8")
    yield from _around()


def _colours(term: str) -> str:
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return "16 million colours"
    return "256 colours" if "256" in term else "16 colours: themes look coarse; COLORTERM=truecolor says more"


def _around() -> Iterator[Finding]:
    """What stands between the console and the terminal."""
    if os.environ.get("TMUX"):
        wants = "copying needs `set -s set-clipboard on`, a quick escape `set -s escape-time 10`"
        yield _note("terminal", f"inside tmux: {wants}")
    elif os.environ.get("STY"):
        yield _note("terminal", "inside screen: colours and copying depend on it; tmux passes on more")
    if os.environ.get("SSH_CONNECTION"):
        yield _note("terminal", "over ssh: what is copied goes through the terminal, where that lets it")


# --- configuration, sources, audit ---------------------------------------------------------


def _config(found: Checked) -> Iterator[Finding]:
    yield from (_fault("config", fault) for fault in found.file)
    config = found.config
    if config is not None and not found.file:
        if not config.path.exists():
            yield _ok("config", "no file: the defaults hold; `watchfloor config init` writes one")
        else:
            changed = f", {len(config.keys)} keys changed" if config.keys else ""
            yield _ok("config", f"in order{changed}")
        if config.read_only:
            yield _note("config", "read_only is set: no intervention leaves a console")
    yield from (_fault("themes", fault) for fault in found.themes)
    if config is not None and not found.file and not found.themes:
        folder = looks.themes_folder(config.path)
        yield _ok("themes", f"{config.theme or 'the usual one'} of {', '.join(looks.names(folder))}")
        yield from _pale(folder)


def _notified(found: Checked, *, tried: bool) -> Iterator[Finding]:
    if found.config is None or found.file:
        return
    from console.cli.link import now_ms
    from console.cli.notified import notified

    if tried:
        logs.keep()
    levels = {True: Level.OK, False: Level.FAULT, None: Level.NOTE}
    for told in notified(found.config, now=now_ms(), tried=tried):
        status = USAGE if told.sound is False else OK
        yield Finding("notify", levels[told.sound], told.text, status)


def _pale(folder: Path) -> Iterator[Finding]:
    """What of the operator's own themes can hardly be read, in use or not: one is put on by its name at any time."""
    from themes.contrast import unreadable

    for name in looks.own(folder):
        for pair in unreadable(looks.theme(name, folder))[:3]:
            said = f"{pair.over} on {pair.ground} has a contrast of {pair.ratio:.1f} to 1, {pair.least:g} reads well"
            yield _note("themes", f"{name}: {said}")


def _sources(found: Checked, *, dial: bool) -> Iterator[Finding]:
    yield from (_fault("sources", fault) for fault in found.sources)
    config = found.config
    if config is None or found.file:
        yield _note("sources", "not looked at: the configuration has to be mended first")
        if dial:
            yield _note("dialled", "nothing was dialled: the configuration has to be mended first")
        return
    for source in (source for source in config.sources if source.nth not in found.unfit):
        token = "with a token" if source.token_env or source.token_file else "without a token"
        yield _ok("sources", f"{source.name}: {source.url}, {token}")
    local = local_places(config)
    for place in local:
        yield _ok("sources", f"{place.target.name}: {place.target.url}, a host on this machine")
    if not config.sources and not local:
        yield _note("sources", "none: the console opens on its demo; `watchfloor connect URL` opens yours")
    elif dial and not found.sources:
        yield from asyncio.run(_dialled(config))
    elif dial:
        yield _note("dialled", "nothing was dialled: a source has to be mended first")


async def _dialled(config: Config) -> list[Finding]:
    """What became of a try to reach each source. Nothing is sent but the greeting."""
    from console.cli.link import now_ms
    from console.hub import Hub

    hub = Hub(clock=now_ms, audit=Audit(state_folder() / "audit", clock=now_ms), by=operator(), read_only=True)
    targets = [place.target for place in known(config)]
    sources = hub.fleet.sources
    logs.keep()

    def met(name: str) -> bool:
        source = sources[name]
        return source.listed or source.contact in (Contact.LOST, Contact.REFUSED)

    try:
        hub.start(targets)
        await hub.until(lambda: all(met(target.name) for target in targets), _DIALS_S)
        return [_reached(hub, target.name) for target in targets]
    finally:
        await hub.close()


def _reached(hub: Hub, name: str) -> Finding:
    source = hub.fleet.sources[name]
    if source.listed:
        count = sum(key.source == name and not one.placeholder for key, one in hub.fleet.sessions.items())
        host = f"{source.host} {source.host_version}".strip()
        return _ok("dialled", f"{source.shown}: {host}, {_many(count, 'session')}, we are {source.role.value}")
    if source.contact is Contact.REFUSED:
        return _fault("dialled", f"{source.shown}: refused: {source.why}", EXIT_CODE[OutcomeKind.NOT_PERMITTED])
    why = source.why or f"it did not list its sessions within {_DIALS_S:g} s"
    return _fault("dialled", f"{source.shown}: {why}", EXIT_CODE[OutcomeKind.UNDELIVERED])


def _audit() -> Iterator[Finding]:
    try:
        folder = state_folder() / "audit"
        files = sorted(folder.glob("*.jsonl"))
    except (ConfigError, OSError) as fault:
        yield _fault("audit", str(fault))
        return
    if not files:
        yield _ok("audit", f"{folder}: nothing is written down yet")
        return
    lines, broken = 0, False
    for file in files:
        try:
            found = verify(file)
        except OSError as error:
            yield _fault("audit", f"{file}: it cannot be read: {error.strerror or error}")
            broken = True
            continue
        lines += found.lines
        if found.fault is not None:
            yield _fault("audit", f"{file}: {found.fault}")
            broken = True
    if not broken:
        yield _ok("audit", f"{folder}: {_many(len(files), 'file')}, {_many(lines, 'line')}, all of which hang together")


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _journal(found: Checked) -> Iterator[Finding]:
    """What is kept of the sources; looked at as a whole by `watchfloor journal check`."""
    from console.journal.file import open_journal
    from console.journal.journal import JOURNAL
    from console.journal.reading import stats

    try:
        path = state_folder() / JOURNAL
    except ConfigError as fault:
        yield _fault("journal", str(fault))
        return
    if found.config is not None and found.config.journal_days == 0:
        yield _note("journal", "nothing is kept: journal_days = 0")
    if not path.exists():
        yield _ok("journal", f"{path}: nothing is kept yet")
        return
    try:
        db = open_journal(path, read_only=True)
        try:
            kept = stats(db)
        finally:
            db.close()
    except StorageError as fault:
        yield _fault("journal", str(fault))
        return
    many = f"{_many(kept.events, 'event')} of {_many(len(kept.sources), 'source')} in {kept.bytes / 1024**2:,.1f} MB"
    yield _ok("journal", f"{path}: {many}")
