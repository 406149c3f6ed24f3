"""The file of a recording: one JSON object a line, readable without this program.

    {"watchfloor": "recording", "version": 1, "source": "build", "at": 1767225600000}
    {"at": 1767225600012, "frame": {"type": "welcome", ...}}
    {"at": 1767225612000, "contact": "lost", "why": "..."}
    {"at": 1767225613000, "unreadable": {"reason": "...", "raw": "..."}}

`at` is when it came, in milliseconds since 1970 UTC by the recorder's clock. A frame stands as it came. A file that was
cut off in the middle of a line is read up to there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from console.recording.scrubber import scrubbed
from watchfloor.errors import ConfigError

if TYPE_CHECKING:
    from console.connectors.supervisor import Item

VERSION: Final = 1
LONGEST: Final = 64 * 1024**2
"""Bytes of the longest line that is read."""
_FRAME: Final = b',"frame":'


class Recorder:
    """Writes a recording. The file is made, and must not be there; it is readable by its owner alone.

    With `scrub` known forms of tokens are masked in every text, and `secrets` with them. Raises OSError.
    """

    def __init__(self, path: Path, source: str, at: int, *, scrub: bool = True, secrets: Sequence[str] = ()) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = open(handle, "wb")  # noqa: SIM115 - it is closed by `close`
        self._scrub = scrub
        self._secrets = tuple(secrets)
        self.frames = 0
        self.masked = 0
        """Frames in which something was masked."""
        self._put({"watchfloor": "recording", "version": VERSION, "source": source, "at": at, "scrubbed": scrub})
        self._file.flush()

    def take(self, items: Sequence[Item], at: int) -> None:
        """Write what arrived."""
        for item in items:
            frame, bad = getattr(item, "frame", None), getattr(item, "bad", None)
            if frame is not None:
                from watchfloor.protocol.codec import encode

                self._frame(getattr(item, "raw", None) or encode(frame), at)
            elif bad:
                self._put({"at": at, "unreadable": self._clean({"reason": bad.reason, "raw": bad.raw})})
            elif (contact := getattr(item, "contact", None)) is not None:
                self._put({"at": at, "contact": contact.value, **({"why": item.why} if item.why else {})})  # type: ignore[union-attr]
        self._file.flush()

    def close(self) -> None:
        """Put everything on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _frame(self, raw: bytes, at: int) -> None:
        self.frames += 1
        if self._scrub:
            try:
                tree = json.loads(raw.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                self._put({"at": at, "unreadable": {"reason": "it is no JSON", "raw": ""}})
                return
            clean = scrubbed(tree, self._secrets)
            if clean is not tree:
                self.masked += 1
                raw = json.dumps(_digested(clean), separators=(",", ":")).encode("ascii")
        # A line break can only stand between two parts of a frame.
        self._file.write(b'{"at":%d%b%b}\n' % (at, _FRAME, raw.replace(b"\n", b" ").replace(b"\r", b" ")))

    def _clean(self, value: Any) -> Any:
        return scrubbed(value, self._secrets) if self._scrub else value

    def _put(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n")


def _digested(tree: Any) -> Any:
    """A request whose text was masked is bound by another digest, else whoever plays it would call it forged."""
    from watchfloor.canonical import digest
    from watchfloor.errors import CanonicalError

    request = tree.get("request") if isinstance(tree, dict) and tree.get("type") == "request" else None
    if not isinstance(request, dict) or "subject" not in request:
        return tree
    try:
        return {**tree, "request": {**request, "digest": digest(request["subject"])}}
    except CanonicalError:
        return tree


@dataclass(frozen=True, slots=True)
class Mark:
    """Where one line of a recording stands. `asks`: it is the frame of a request that waits."""

    at: int
    offset: int
    length: int
    asks: bool


class Tape:
    """A recording that is open for reading: its lines in order, each with its time; times never go back.

    With `marks` it is not looked through: they are those of the same file. Raises ConfigError where the file is none,
    OSError where it cannot be read.
    """

    def __init__(self, path: Path, marks: Sequence[Mark] | None = None) -> None:
        self.path = path
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115 - it is closed by `close`
        try:
            self.source = self._header(self._file.readline(LONGEST))
            self.marks: Sequence[Mark] = list(self._marks()) if marks is None else marks
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def begins(self) -> int:
        """When its first line came; 0 where there is none."""
        return self.marks[0].at if self.marks else 0

    @property
    def ends(self) -> int:
        """When its last line came; 0 where there is none."""
        return self.marks[-1].at if self.marks else 0

    def _header(self, line: bytes) -> str:
        try:
            header = json.loads(line)
        except (ValueError, RecursionError):
            header = None
        if not isinstance(header, dict) or header.get("watchfloor") != "recording":
            raise ConfigError(f"{self.path} is no recording: make one with watchfloor record URL FILE")
        if header.get("version") != VERSION:
            raise ConfigError(f"{self.path} is of a version that is not known here: update watchfloor")
        return str(header.get("source", ""))

    def _marks(self) -> Iterator[Mark]:
        latest = 0
        offset = self._file.tell()
        while line := self._file.readline(LONGEST):
            if line.endswith(b"\n") and line.startswith(b'{"at":'):
                head = line[6:30].split(b",", 1)[0]
                latest = max(latest, int(head)) if head.isdigit() else latest
                yield Mark(latest, offset, len(line), _asks(line))
            offset += len(line)

    def line(self, mark: Mark) -> tuple[bytes | None, dict[str, Any]]:
        """What stands there: the bytes of a frame, or else what was noted."""
        self._file.seek(mark.offset)
        line = self._file.read(mark.length)
        at = line.find(_FRAME, 0, 40)
        if at >= 0:
            return line[at + len(_FRAME) : -2], {}
        try:
            noted = json.loads(line)
        except (ValueError, RecursionError):
            noted = {"unreadable": {"reason": "a line of the recording cannot be read", "raw": ""}}
        return None, noted if isinstance(noted, dict) else {}


def _asks(line: bytes) -> bool:
    """Does it hold a request that waits? Told by its bytes: a whole recording is looked through for it."""
    if b'"request"' not in line[:200] or b'"type"' not in line[:100]:
        return False
    try:
        frame = json.loads(line).get("frame")
    except (ValueError, RecursionError, AttributeError):
        return False
    if not isinstance(frame, dict) or frame.get("type") != "request" or not isinstance(frame.get("request"), dict):
        return False
    return bool(frame["request"].get("state", "open") == "open")
