"""The audit file: what operators asked for through this console, and what became of it.

One file for each console instance, one JSON object a line, appended only. Each line carries the SHA-256 of the line
before, so that a line that was changed, removed or put in between is found by `verify`; lines cut off at the end
leave no trace, which is why the file belongs on a disk that its operator cannot rewrite where that matters.
Texts are masked before they are written, and an answer's words are never written at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from watchfloor.text import clean, redact

What = Literal["requested", "outcome", "effect"]

_LONGEST_TEXT: Final = 2000
"""Characters of one text that are kept; the rest is in the journal of whoever received it."""
_EXACT: Final = frozenset(
    {"source", "session", "request", "option", "digest", "primitive", "outcome", "effect", "turn"}
)
"""Fields that name or bind something: kept as they are, since a masked digest or id proves nothing."""


class Audit:
    """The audit of one console instance. Never raises: `fault` says what keeps it from being written.

    `folder` is made at need, readable by its user alone. `clock` gives milliseconds since 1970 UTC. With `required`,
    whoever submits must not go on while there is a fault.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], int], required: bool = False) -> None:
        self.required = required
        self._clock = clock
        self._secrets: tuple[str, ...] = ()
        stamp = datetime.fromtimestamp(clock() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        self._stem = f"{stamp}-{os.getpid()}"
        self._path = folder / f"{self._stem}.jsonl"
        self._handle: int | None = None
        self._size = 0
        self._n = 0
        self._prev: str | None = None
        self._lost = 0
        self._fault: str | None = None

    @property
    def path(self) -> Path:
        return self._path

    @property
    def fault(self) -> str | None:
        """Why the last line could not be written, in one line with the path; None while all is well."""
        return self._fault

    @property
    def lost(self) -> int:
        """Lines that could not be written since the last one that was."""
        return self._lost

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these credentials of ours in everything that is written from now on."""
        self._secrets = tuple({*self._secrets, *secrets})

    def open(self) -> bool:
        """Create the file, so that a fault shows before the first intervention. True when it can be written."""
        try:
            self._open()
        except OSError as error:
            self._fail(error)
            return False
        self._fault = None
        return True

    def write(self, what: What, command: str, fields: Mapping[str, Any]) -> bool:
        """Append a line about the command with this id; None values are left out. True when it stands in the file."""
        line = {"n": self._n + 1, "at": self._clock(), "prev": self._prev, "what": what, "id": command}
        if self._lost:
            line["lost"] = self._lost
        for name, value in fields.items():
            if value is not None:
                line[name] = value if name in _EXACT else self._mask(value)
        raw = json.dumps(line, ensure_ascii=True, separators=(",", ":"), default=str).encode("ascii")
        try:
            self._append(self._open(), raw + b"\n")
        except OSError as error:
            self._lost += 1
            self._fail(error)
            return False
        self._n += 1
        self._prev = _hash(raw)
        self._lost = 0
        self._fault = None
        return True

    def close(self) -> None:
        """Put everything on the disk; a file without a line is removed."""
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            os.fsync(self._handle)
        with contextlib.suppress(OSError):
            os.close(self._handle)
        self._handle = None
        if self._n == 0:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _open(self) -> int:
        if self._handle is not None:
            return self._handle
        folder = self._path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        again = 1
        while self._handle is None:
            try:
                self._handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                # A second instance of this process within one second.
                again += 1
                self._path = folder / f"{self._stem}-{again}.jsonl"
        return self._handle

    def _append(self, handle: int, raw: bytes) -> None:
        written = 0
        try:
            while written < len(raw):
                written += os.write(handle, raw[written:])
        except OSError:
            # A full disk may take half a line; without it the chain goes on once there is room again.
            if written:
                os.ftruncate(handle, self._size)
            raise
        self._size += len(raw)

    def _fail(self, error: OSError) -> None:
        self._fault = f"{self._path}: {error.strerror or error}"

    def _mask(self, value: Any) -> Any:
        match value:
            case str():
                masked, _ = redact(clean(value), self._secrets)
                return masked if len(masked) <= _LONGEST_TEXT else f"{masked[:_LONGEST_TEXT]}… ({len(masked)})"
            case Mapping():
                return {str(key): self._mask(item) for key, item in value.items()}
            case list() | tuple() | set() | frozenset():
                return [self._mask(item) for item in value]
            case _:
                return value


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify` found: `lines` that hang together, and the first `fault`, which names its line; None = whole."""

    lines: int
    fault: str | None


def verify(path: Path) -> Verified:
    """Check the chain of an audit file from its first line. Raises OSError when it cannot be read."""
    prev: str | None = None
    lines = 0
    with path.open("rb") as file:
        for n, stored in enumerate(file, 1):
            raw = stored.rstrip(b"\n")
            if fault := _fault_of(raw, n, prev):
                return Verified(lines, f"line {n}: {fault}")
            if len(raw) == len(stored):
                return Verified(lines, f"line {n}: it is cut off")
            prev = _hash(raw)
            lines = n
    return Verified(lines, None)


def _fault_of(raw: bytes, n: int, prev: str | None) -> str | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return "it is not JSON"
    if not isinstance(line, dict) or line.get("n") != n:
        return f"it should be number {n}"
    if line.get("prev") != prev:
        return "it does not follow the line before: one of the two was changed"
    return None


def _hash(raw: bytes) -> str:
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"
