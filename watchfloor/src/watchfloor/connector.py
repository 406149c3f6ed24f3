"""The seam between the console and a system that runs agents.

A connector translates a foreign system into watchfloor.v1: it yields host frames and takes client frames.
The native one passes frames through. Third parties add connectors by the entry point group
`watchfloor.connectors`: each entry point names a `ConnectorFactory`.

Importing this module loads no models: a console names its targets before it pays for them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from watchfloor.protocol.codec import Bad
    from watchfloor.protocol.frames import ClientFrame, HostFrame, UnknownFrame
    from watchfloor.protocol.stream import Stream

ENTRY_POINTS: Final = "watchfloor.connectors"


class Record(StrEnum):
    """Which sessions a connection follows by itself."""

    ALL = "all"
    WATCHED = "watched"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a source is and how to greet it. `token` never appears in a repr."""

    name: str
    url: str
    token: str | None = field(default=None, repr=False)
    client: str = "watchfloor"
    version: str = "0"
    user: str = ""
    """The name that a client without a token goes by."""
    record: Record = Record.ALL
    start_at_head: bool = False
    """Follow from now on only, instead of everything that the host keeps."""
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict, repr=False)
    """How far sessions were received before: the epoch, and the number up to which nothing is missing. A connector that
    can go on there does, where every session is followed; another one tells everything again."""


class Received(NamedTuple):
    """One frame and what it came as. `raw` is what the journal keeps; None where the connector made the frame up.

    `bad` lists what of the frame could not be read.
    """

    frame: HostFrame | UnknownFrame
    raw: bytes | None = None
    bad: tuple[Bad, ...] = ()


class Streamed(Received):
    """Events that were read without models. `frame` reads them once more, with them: whoever can does with `stream`."""

    __slots__ = ()

    @classmethod
    def of(cls, stream: Stream, raw: bytes) -> Streamed:
        """What came as `raw`."""
        return tuple.__new__(cls, (stream, raw, ()))

    @property
    def stream(self) -> Stream:
        """The events."""
        return self[0]  # type: ignore[return-value]

    @property
    def frame(self) -> HostFrame | UnknownFrame:
        """The same with a model for each."""
        from watchfloor.protocol.codec import decode_host

        return decode_host(self.raw or b"").frame


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A frame of which nothing could be used."""

    bad: Bad


Arrival = Received | Unreadable


class Link(Protocol):
    """One living connection."""

    def batches(self) -> AsyncIterator[Sequence[Arrival]]:
        """What arrives, in order, a batch at a time; the batches leave the event loop room to breathe.

        Ends when the server closes in good order; raises `watchfloor.errors.ConnectionLost` otherwise.
        """
        ...

    async def send(self, frame: ClientFrame) -> None:
        """Hand a frame to the source. Raises ConnectionLost when it certainly did not leave."""
        ...

    async def close(self) -> None: ...


class Connector(Protocol):
    """One source, across its connections: what must outlive a connection (cursors, commands in flight) lives here."""

    @property
    def target(self) -> Target: ...

    async def connect(self) -> Link:
        """Dial, greet, resume where the last link ended, recall commands without an outcome.

        Raises a subclass of `watchfloor.errors.ConnectionFailed`; its `retry` says whether to try again.
        """
        ...


class ConnectorFactory(Protocol):
    """Makes connectors for the URL schemes that it names."""

    @property
    def schemes(self) -> frozenset[str]: ...

    def __call__(self, target: Target) -> Connector: ...


Clock = Callable[[], int]
"""Milliseconds since 1970 UTC."""
