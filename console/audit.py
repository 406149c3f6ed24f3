"""The audit file: what operators asked for through this console, and what became of it.

One file for each console instance, one JSON object a line, appended only. Each line carries its own SHA-256 and that
of the line before, so that a line that was changed, removed, moved or put in between is found by `verify`. The first
line names the last line of each file before it, by which `console.auditing` finds what was cut off the end of those.
Whoever may write all of these files may make them anew from some line on: the heads belong to where nobody can do that,
wherever that matters. Texts are masked before they are written, and an answer's words are never written at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from watchfloor.text import clean, redact

What = Literal["requested", "outcome", "effect", "refused", "revealed"]
"""Asked for; what its source said; what was seen of it. A key that came too early; a masked text that was shown."""

AFTER: Final = 50
"""Files before its own whose last lines the first line of a file names, the newest first."""

_LONGEST_TEXT: Final = 2000
"""Characters of one text that are kept; the rest is in the journal of whoever received it."""
_EXACT: Final = frozenset(
    {"source", "session", "request", "option", "digest", "primitive", "outcome", "effect", "turn", "after", "risks"}
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
        import json  # nothing is written before the first frame

        line: dict[str, Any] = {"n": self._n + 1, "at": self._clock(), "prev": self._prev, "what": what, "id": command}
        if self._lost:
            line["lost"] = self._lost
        if not self._n and (before := self._before()):
            line["after"] = before
        for name, value in fields.items():
            if value is not None:
                line[name] = value if name in _EXACT else self._mask(value)
        raw = sealed(json.dumps(line, ensure_ascii=True, separators=(",", ":"), default=str).encode("ascii"))
        try:
            self._append(self._open(), raw + b"\n")
        except OSError as error:
            self._lost += 1
            self._fail(error)
            return False
        self._n += 1
        self._prev = hash_of(raw)
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

    def _before(self) -> dict[str, list[Any]]:
        """The newest files beside this one: the number and the hash of the last whole line of each."""
        with contextlib.suppress(OSError):
            self._open()  # only then it is certain which file is our own
            beside = sorted(path for path in self._path.parent.glob("*.jsonl") if path != self._path)[-AFTER:]
            return {path.name: [head.n, head.hash] for path in beside if (head := head_of(path)) is not None}
        return {}

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
        # What is the matter first: a path is long, and a bar cuts what stands behind.
        self._fault = f"{error.strerror or error}: {self._path}"

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


class Head(NamedTuple):
    """The last whole line of a file: its number, and its hash, by which everything before it is bound."""

    n: int
    hash: str


class Verified(NamedTuple):
    """What `verify` found: `lines` that hang together, and the first `fault`, which names its line; None = whole.

    `hashes` are those of the lines that hang together, in their order. `torn`: the fault is that of a file whose end is
    missing, as after a crash, and not of one whose lines were touched.
    """

    lines: int
    fault: str | None
    hashes: tuple[str, ...] = ()
    torn: bool = False


def verify(path: Path) -> Verified:
    """Check the chain of an audit file from its first line. Raises OSError when it cannot be read."""
    hashes: list[str] = []
    with path.open("rb") as file:
        for n, stored in enumerate(file, 1):
            raw = stored.rstrip(b"\n")
            torn = len(raw) == len(stored)
            fault = "it is cut off" if torn else _fault_of(raw, n, hashes[-1] if hashes else None)
            if fault is not None:
                return Verified(n - 1, f"line {n}: {fault}", tuple(hashes), torn)
            hashes.append(hash_of(raw))
    return Verified(len(hashes), None, tuple(hashes))


def head_of(path: Path) -> Head | None:
    """The last whole line of a file; None where there is none that can be told. Raises OSError."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        lines = file.read().split(b"\n")[:-1]
    if not lines or (line := _read(lines[-1])) is None:
        return None
    return Head(line["n"], hash_of(lines[-1]))


_TAIL: Final = 1_048_576
_SEAL: Final = b',"self":"'


def sealed(raw: bytes) -> bytes:
    """A line with its own hash as its last member."""
    return raw[:-1] + _SEAL + hash_of(raw).encode("ascii") + b'"}'


def _unsealed(raw: bytes) -> tuple[bytes, str]:
    body, _, seal = raw.rpartition(_SEAL)
    return body + b"}", seal.removesuffix(b'"}').decode("ascii", "replace")


def _fault_of(raw: bytes, n: int, prev: str | None) -> str | None:
    line = _read(raw)
    if line is None:
        return "it is no line of an audit"
    body, seal = _unsealed(raw)
    if seal != hash_of(body):
        return "it was changed"
    found = line["n"]
    if found > n:
        gone = f"line {n} is" if found == n + 1 else f"lines {n} to {found - 1} are"
        return f"it is number {found}: {gone} missing before it"
    if found < n:
        return f"it is number {found}: it was moved here, or stands here again"
    if line.get("prev") != prev:
        return "it does not follow the line before: one of the two was written anew"
    return None


def _read(raw: bytes) -> dict[str, Any] | None:
    import json

    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    numbered = isinstance(line, dict) and type(line.get("n")) is int and line["n"] > 0
    return line if numbered else None


def hash_of(raw: bytes) -> str:
    import hashlib

    return f"sha256:{hashlib.sha256(raw).hexdigest()}"
