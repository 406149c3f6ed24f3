"""Two operators on one host: each sees on the card who else is at it, and the first answer still wins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from console.fleet.facts import RequestKey
from console.fleet.state import Request
from console.hub import Hub
from tests.screens.live import Console, colleague, decide, watching
from tests.screens.widget_kit import lines
from tests.sockets.cli_kit import hosting, writes
from watchfloor.host.core import HostCore
from watchfloor.host.serving.server import Host
from watchfloor.protocol.frames import Claim, Error, ErrorCode, Looking

WAIT_S = 20.0


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


def _asked(hub: Hub) -> Request:
    (request,) = hub.fleet.queue.requests
    return request


def _key(console: Console) -> RequestKey:
    return _asked(console.app.hub).key


def _card(console: Console) -> str:
    return "\n".join(lines(console.card))


async def test_each_sees_who_else_is_at_the_card_and_who_takes_it(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    async with watching(host, tmp_path) as console, colleague(host, tmp_path) as bob:
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.armed()
        await console.until(lambda: bob.fleet.queue.requests, "bob has it")
        await console.until(lambda: _asked(bob).looking == ("ann (unverified)",), "bob hears that ann looks")
        bob.attend(_key(console))
        await console.until(lambda: "bob (unverified) looks at this card" in _card(console), "it stands on the card")
        await console.press("c")
        await console.until(lambda: _asked(bob).claimed_by == "ann (unverified)", "bob hears that ann takes it")
        await console.until(lambda: "you have claimed it" in _card(console), "it stands on the card")
        bob.claim(_key(console))
        await console.until(lambda: "bob (unverified) has claimed it" in _card(console), "bob has taken it over")
        await console.press("c")
        await console.until(lambda: "you have claimed it" in _card(console), "taken back")
        await console.press("c")
        await console.until(lambda: not _asked(bob).claimed_by, "let go of")
        await console.press("escape")
        await console.until(lambda: not _asked(bob).looking, "the card is closed")
        # Nothing of this was a lock.
        await console.press("i", "c")
        await decide(bob, "writer", "allow")
        await console.until(lambda: (tmp_path / "done").exists(), "bob's answer counts")


async def test_a_console_that_only_watches_tells_nobody_that_it_does(host: Host, tmp_path: Path) -> None:
    host.add(writes(tmp_path), name="writer", text="hello")
    async with watching(host, tmp_path, read_only=True) as console, colleague(host, tmp_path) as bob:
        await console.knows("writer")
        await console.asked("writer")
        await console.press("i")
        await console.until(console.carded, "the card is open")
        await console.press("c")
        assert "not claimed: this console only watches" in console.notice
        bob.attend(_key(console))
        await console.until(lambda: "looks at this card" in _card(console), "it hears of others")
        assert _asked(bob).looking == ()


async def test_an_older_host_is_told_once_and_never_again(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    answer = HostCore._answer

    def older(self: HostCore, client: Any, frame: Any, now: int) -> Any:
        if not isinstance(frame, Looking | Claim):
            return answer(self, client, frame, now)
        told.append(frame.type)
        message = f"this host does not answer '{frame.type}'"
        return [client.send(Error(code=ErrorCode.UNSUPPORTED, message=message, about=frame.type))]

    monkeypatch.setattr(HostCore, "_answer", older)
    host.add(writes(tmp_path), name="writer", text="hello")
    async with watching(host, tmp_path) as console:
        await console.knows("writer")
        await console.asked("writer")
        source = console.app.hub.fleet.sources["local"]
        await console.press("i")
        await console.until(lambda: source.alone, "the host has said no")
        await console.press("escape", "i", "c")
        assert "not claimed: its host does not tell other operators" in console.notice
        await console.press("escape")
        console.app.hub.attend(None)
        assert told == ["looking"]
        assert (source.error_count, source.fault_count) == (0, 0)
