"""Frames as a host sends them, for the tests of the journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from console.journal.handing import handed
from console.journal.records import Heard
from watchfloor.connector import Received
from watchfloor.protocol.codec import decode_host, encode
from watchfloor.protocol.events import Event, Message
from watchfloor.protocol.frames import Events, Gap, HostFrame, Page, RequestFrame

NOW = 1_700_000_000_000


def message(seq: int, text: str = "", *, key: str | None = None) -> Message:
    return Message.model_validate(
        {"seq": seq, "pos": seq, "at": NOW + seq, "text": text or f"line {seq}", **({"key": key} if key else {})}
    )


def events(numbers: Iterable[int], session: str = "s", epoch: str = "e") -> Events:
    return Events(session=session, epoch=epoch, events=[message(seq) for seq in numbers])


def page(numbers: Sequence[int], session: str = "s", epoch: str = "e") -> Page:
    return Page(
        id="p",
        session=session,
        epoch=epoch,
        events=[message(seq) for seq in numbers],
        first=numbers[0],
        last=numbers[-1],
        more=False,
    )


def gap(first: int, last: int, session: str = "s", epoch: str = "e") -> Gap:
    return Gap(session=session, epoch=epoch, from_seq=first - 1, to_seq=last)


def request(name: str, state: str = "open", session: str = "s") -> RequestFrame:
    frame = decode_host(
        b'{"type":"request","session":"%s","request":{"subject":{"id":"%s"},"digest":"d","asked_at":1,"state":"%s"}}'
        % (session.encode(), name.encode(), state.encode())
    ).frame
    assert isinstance(frame, RequestFrame)
    return frame


def heard(frame: HostFrame, source: str = "h", at: int = NOW) -> Heard:
    what = handed(frame, encode(frame))
    assert what is not None
    return Heard(source, at, what)


def received(*frames: HostFrame) -> list[Received]:
    return [Received(frame, encode(frame)) for frame in frames]


def seqs(found: Iterable[Event]) -> list[int | None]:
    return [event.seq for event in found]
