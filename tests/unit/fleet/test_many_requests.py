"""What a key press costs does not grow with the number of requests that wait."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from console.fleet.changes import Changes
from console.fleet.evidence import KEEP_SEEN
from console.fleet.facts import RequestKey
from console.fleet.needs import needs_by_session, next_request, open_requests, place_of
from console.fleet.store import KEEP_ENDED_TEXT
from console.fleet.views.card import card
from console.fleet.views.facts import fact_rows
from console.fleet.views.roster import RosterView
from tests.unit.fleet.scripted import ScriptedHost
from tests.unit.fleet.viewing import GLYPHS, KEYS, status
from watchfloor.protocol import model as m
from watchfloor.words import Primitive, RequestKind


def asking(requests: int) -> ScriptedHost:
    """A session that asks so many things at times in no order."""
    host = ScriptedHost()
    host.session("s1")
    refs = [
        m.RequestRef(id=f"r{i}", kind=RequestKind.APPROVAL, asked_at=host.there - i * 7_919 % 100_003, digest="d")
        for i in range(requests)
    ]
    host.summary("s1", requests=refs)
    return host


def press(host: ScriptedHost, rows: RosterView, shown: RequestKey) -> RequestKey:
    """What a key that goes to the next request asks the fleet."""
    following = next_request(host.fleet, shown)
    assert following is not None
    card(host.fleet, following, host.now, keys=KEYS)
    status(host.fleet, host.now, GLYPHS)
    fact_rows(host.fleet, following.owner, host.now)
    rows.refresh(Changes(sessions={following.owner}, requests={following}), host.now)
    rows.row(0)
    return following


def calls(requests: int) -> int:
    """Functions that a key press calls."""
    host = asking(requests)
    rows = RosterView(host.fleet, GLYPHS)
    rows.refresh(None, host.now)
    shown = press(host, rows, open_requests(host.fleet)[0].key)
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        press(host, rows, shown)
    finally:
        sys.setprofile(None)
    return count


def test_a_key_press_does_not_look_at_every_request() -> None:
    assert calls(2_000) < calls(20) + 50


@pytest.mark.parametrize("requests", [1, 2, 500])
def test_all_of_them_can_be_reached(requests: int) -> None:
    host = asking(requests)
    rows = RosterView(host.fleet, GLYPHS)
    at = open_requests(host.fleet)[0].key
    reached = []
    for _ in range(requests):
        reached.append(at)
        at = press(host, rows, at)
    assert len(set(reached)) == requests
    assert at == reached[0]
    assert [host.request(key).asked_at for key in reached] == sorted(host.request(key).asked_at for key in reached)


def test_the_order_follows_what_happens() -> None:
    host = asking(3)
    first = open_requests(host.fleet)[0].key
    host.summary("s1", requests=[])
    assert open_requests(host.fleet) == host.at().open_requests() == []
    assert place_of(host.fleet, first) is None
    host.ask("late")
    assert [request.key.request for request in open_requests(host.fleet)] == ["late"]
    host.decide("late")
    assert next_request(host.fleet) is None


def test_the_order_is_by_one_clock() -> None:
    host = asking(1)
    other = ScriptedHost(name="there", ahead=-100_000)
    other.fleet = host.fleet
    other.contact(other.fleet.sources["here"].contact)
    other.welcome()
    other.session("s1")
    theirs = other.ask("x")  # its clock is behind, so it only looks older
    assert [request.key.source for request in open_requests(host.fleet)] == ["here", "there"]
    other.ahead = 100_000
    other.welcome()
    assert [request.key.source for request in open_requests(host.fleet)] == ["there", "here"]
    assert place_of(host.fleet, theirs) == 0


def nested(host: ScriptedHost, depth: int) -> None:
    """Sessions below each other, each of which asks something."""
    ref = m.RequestRef(id="r", kind=RequestKind.APPROVAL, asked_at=host.there, digest="d")
    for i in range(depth):
        host.summary(f"s{i}", parent=f"s{i - 1}" if i else None, requests=[ref])


def test_children_may_be_nested_as_deep_as_a_source_likes(host: ScriptedHost) -> None:
    nested(host, 3_000)
    needs = needs_by_session(host.fleet)
    assert [needs[host.at(f"s{i}").key].count for i in (0, 1, 2_999)] == [3_000, 2_999, 1]
    rows = RosterView(host.fleet, GLYPHS)
    rows.refresh(None, host.now)
    assert len(rows) == 3_000
    assert max(len(rows.row(i).tree) for i in range(3_000)) < 60


@pytest.mark.parametrize("size", [1, 2, 5])
def test_in_a_circle_of_parents_each_waits_for_all(host: ScriptedHost, size: int) -> None:
    ref = m.RequestRef(id="r", kind=RequestKind.APPROVAL, asked_at=host.there, digest="d")
    for i in range(size):
        host.summary(f"s{i}", parent=f"s{(i + 1) % size}", requests=[ref])
    host.summary("below", parent="s0", requests=[ref])
    needs = needs_by_session(host.fleet)
    assert {needs[host.at(f"s{i}").key].count for i in range(size)} == {size + 1}
    assert needs[host.at("below").key].count == 1


def test_the_text_of_ended_requests_is_bounded(host: ScriptedHost) -> None:
    host.session("s1")
    for i in range(100):
        host.ask(f"r{i}", text="x" * 250_000)
        host.decide(f"r{i}")
    kept = [request for request in host.fleet.requests.values() if request.fact is not None]
    assert KEEP_ENDED_TEXT // 2 < sum(request.text_size for request in kept) <= KEEP_ENDED_TEXT
    assert RequestKey("here", "s1", "r99") in host.fleet.requests
    assert RequestKey("here", "s1", "r0") not in host.fleet.requests
    assert "r0" not in host.at().requests


def test_what_is_remembered_for_one_command_is_bounded(host: ScriptedHost) -> None:
    host.session("s1")
    trail = host.send(Primitive.SEND)
    mails = ({"kind": "mail", "ref": f"#{i}", "state": "sent"} for i in range(2_000))
    calls = ({"kind": "tool_output", "call": f"c{i}", "text": "x"} for i in range(2_000))
    host.events("s1", *mails, *calls)
    assert len(trail.evidence.mail) == len(trail.evidence.calls) == KEEP_SEEN
    assert "#1999" in trail.evidence.mail
