"""Older events are asked for by pages, and each answer reaches whoever asked."""

from __future__ import annotations

import asyncio

import pytest

from console.fleet.facts import SessionKey
from console.hub.pages import PAGE, Pages
from console.intake import Intake
from tests.unit.test_watching import Scene, key, scene  # noqa: F401 - a fixture
from watchfloor.connector import Received
from watchfloor.errors import ConnectionLost, ProtocolError
from watchfloor.protocol import frames as f
from watchfloor.protocol.events import Message

HERE = SessionKey("here", "a")


def page(id: str, *seqs: int, more: bool = True, epoch: str = "e") -> f.Page:
    events = [Message(at=1, seq=seq, text=str(seq)) for seq in seqs]
    return f.Page(id=id, session="a", epoch=epoch, events=events, first=min(seqs), last=max(seqs), more=more)  # type: ignore[arg-type]


def take(pages: Pages, frame: f.HostFrame, source: str = "here") -> None:
    pages.take(source, frame, Intake(source, lambda: 1).frame(frame))


async def test_a_page_reaches_whoever_asked_for_it() -> None:
    pages = Pages()
    frame, first = pages.ask(HERE, "e", 100)
    other, second = pages.ask(HERE, "e", 50)
    assert (frame.before, frame.limit, frame.session, frame.epoch) == (100, PAGE, "a", "e")
    assert frame.id != other.id
    take(pages, page(other.id, 48, 49, more=False))
    assert not first.done()
    found = await second
    assert ([event.seq for event in found.events], found.more, found.epoch) == ([48, 49], False, "e")


async def test_only_its_own_source_answers_and_only_once() -> None:
    pages = Pages()
    frame, found = pages.ask(HERE, "e", 100)
    take(pages, page(frame.id, 1), source="elsewhere")
    assert not found.done()
    take(pages, page(frame.id, 1))
    take(pages, page(frame.id, 2))
    assert [event.seq for event in (await found).events] == [1]


async def test_a_refusal_tells_its_reason() -> None:
    pages = Pages()
    frame, found = pages.ask(HERE, "e", 100)
    take(pages, f.Error(code=f.ErrorCode.NOT_FOUND, message="the epoch is e2 now", about=frame.id))
    with pytest.raises(ProtocolError, match="the epoch is e2 now"):
        await found


async def test_what_nobody_waits_for_is_forgotten() -> None:
    pages = Pages()
    frame, found = pages.ask(HERE, "e", 100)
    pages.forget(frame)
    take(pages, page(frame.id, 1))
    assert not found.done()


# --- through the hub -----------------------------------------------------------------------


async def asked(scene: Scene) -> f.History:  # noqa: F811
    frames = scene.connector.links[-1].sent
    await scene.until(lambda: any(isinstance(frame, f.History) for frame in frames))
    return next(frame for frame in frames if isinstance(frame, f.History))


async def test_the_hub_asks_the_source_and_hands_the_page_over(scene: Scene) -> None:  # noqa: F811
    await scene.greet("a")
    asking = asyncio.create_task(scene.hub.older(key("a"), 100, wait_s=30))
    frame = await asked(scene)
    assert (frame.session, frame.before) == ("a", 100)
    scene.connector.links[-1].incoming.put_nowait([Received(page(frame.id, 98, 99))])
    found = await asking
    assert [event.text for event in found.events] == ["98", "99"]


async def test_a_page_that_never_comes_is_given_up(scene: Scene) -> None:  # noqa: F811
    await scene.greet("a")
    with pytest.raises(TimeoutError):
        await scene.hub.older(key("a"), 100, wait_s=0.01)


async def test_a_source_that_is_not_there_is_told(scene: Scene) -> None:  # noqa: F811
    with pytest.raises(ConnectionLost):
        await scene.hub.older(SessionKey("nobody", "a"), 100, wait_s=1)
