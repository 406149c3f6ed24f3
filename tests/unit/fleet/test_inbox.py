"""The inbox: all that waits, in the right order, told in full, with a cursor that is on a request and not on a line."""

from __future__ import annotations

import time
from typing import Any

import pytest

from console.fleet.decisions.inbox import Inbox, Shown
from console.fleet.decisions.risk.model import RiskKind, RiskLevel
from console.fleet.facts import RequestKey
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import Clean
from watchfloor.words import Contact


def ask(host: ScriptedHost, id: str, text: str = "make test", **rest: Any) -> RequestKey:
    host.now += 1_000
    return host.ask(id, **{"text": text, **rest})


def ids(inbox: Inbox) -> list[str]:
    return [inbox.key(at).request for at in range(len(inbox))]


def filled(host: ScriptedHost) -> Inbox:
    host.session()
    ask(host, "plain1")
    ask(host, "danger1", "rm -rf build")
    ask(host, "outside", "touch ../../x")
    ask(host, "plain2", "make lint")
    ask(host, "danger2", "curl x | sh")
    inbox = Inbox(host.fleet)
    inbox.refresh()
    return inbox


def shown(inbox: Inbox, host: ScriptedHost, at: int = 0) -> Shown:
    return inbox.row(at, host.now).shown


def test_the_riskiest_come_first_and_of_those_the_longest_waiting(host: ScriptedHost) -> None:
    assert ids(filled(host)) == ["danger1", "danger2", "outside", "plain1", "plain2"]


def test_all_sources_and_children_are_in_one_list(host: ScriptedHost) -> None:
    other = ScriptedHost(name="there", ahead=3_600_000)
    host.session("top")
    host.session("child", parent="top")
    host.session("grandchild", parent="child", name="deep")
    other.fleet = host.fleet
    other.contact(Contact.LIVE)
    other.welcome()
    other.session("far")
    first = ask(host, "a", session="grandchild")
    other.now = host.now + 1_000
    second = ask(other, "b", session="far")
    inbox = Inbox(host.fleet)
    inbox.refresh()
    assert [inbox.key(at) for at in range(len(inbox))] == [first, second], "by one clock, whatever the sources' say"
    row = inbox.row(0, host.now)
    assert (row.name, row.path, row.source) == ("deep", ("top", "child"), "here")


def test_a_line_tells_what_is_asked_how_risky_it_is_and_what_happens_when(host: ScriptedHost) -> None:
    host.session()
    ask(host, "r1", "rm -rf build", deadline=host.now + 61_000, at_deadline="no")
    host.wait(3_000)
    inbox = Inbox(host.fleet)
    inbox.refresh()
    row = inbox.row(0, host.now)
    assert (row.line, row.level, row.kinds) == ("rm -rf build", RiskLevel.HIGH, (RiskKind.DESTRUCTIVE,))
    assert (row.risk, row.waiting, row.deadline, row.left_ms) == ("high: destructive", "0:03", "in 0:57: Deny", 57_000)
    assert row.whole
    assert row.unknown == ""
    assert row.open


@pytest.mark.parametrize("text", ["make\ntest", "x" * 5_000, "ls \u200b", "\tls"])
def test_what_a_line_does_not_show_whole_is_not_decided_from_it(host: ScriptedHost, text: str) -> None:
    host.session()
    ask(host, "r1", text)
    inbox = Inbox(host.fleet)
    inbox.refresh()
    assert not inbox.row(0, host.now).whole


def test_a_masked_secret_is_not_shown_and_its_line_decides_nothing(host: ScriptedHost) -> None:
    key = "-".join(("sk", "ant", "a1b2c3d4" * 5))
    host.session()
    ask(host, "r1", f"deploy {key}")
    inbox = Inbox(host.fleet)
    inbox.refresh()
    row = inbox.row(0, host.now)
    assert "a1b2c3d4" not in row.line
    assert not row.whole


def test_what_is_not_fully_known_stands_above_what_is_harmless(host: ScriptedHost) -> None:
    host.session()
    ask(host, "plain")
    ask(host, "part", complete=False)
    inbox = Inbox(host.fleet)
    inbox.refresh()
    assert ids(inbox) == ["part", "plain"]
    assert "only a part" in inbox.row(0, host.now).unknown


def test_the_place_counts_what_is_listed(host: ScriptedHost) -> None:
    inbox = filled(host)
    assert inbox.place() is None
    inbox.move(1)
    assert inbox.place() == (1, 5)
    inbox.move(3)
    assert inbox.place() == (4, 5)
    inbox.filter("danger")
    assert (len(inbox), inbox.total) == (0, 5), "ids are no words that are looked for"
    inbox.filter("high")
    assert (ids(inbox), inbox.place()) == (["danger1", "danger2"], None)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("destructive", ["danger1"]),
        ("LINT", ["plain2"]),
        ("here high", ["danger1", "danger2"]),
        ("network-to-shell", ["danger2"]),
        ("nothing like it", []),
        ("  ", ["danger1", "danger2", "outside", "plain1", "plain2"]),
    ],
)
def test_words_filter(host: ScriptedHost, words: str, found: list[str]) -> None:
    inbox = filled(host)
    inbox.filter(words)
    assert ids(inbox) == found


def test_a_new_request_moves_no_cursor(host: ScriptedHost) -> None:
    inbox = filled(host)
    inbox.move(1)
    inbox.move(3)
    selected = inbox.selected
    ask(host, "worse", "rm -rf /")
    inbox.refresh()
    assert inbox.selected == selected
    assert inbox.place() == (5, 6)


def test_what_ends_under_the_cursor_keeps_its_line_until_the_operator_goes_on(host: ScriptedHost) -> None:
    inbox = filled(host)
    inbox.move(1)
    painted = shown(inbox, host)
    host.decide("danger1", "no", by="bob")
    inbox.refresh()
    row = inbox.row(0, host.now)
    assert ids(inbox)[0] == "danger1"
    assert row.ending.startswith("denied by bob")
    assert not row.open
    assert inbox.target(painted) == "the request has ended"
    inbox.move(1)
    assert inbox.selected is not None
    assert inbox.selected.request == "danger2"
    assert "danger1" not in ids(inbox)


def test_what_ends_elsewhere_leaves_the_list(host: ScriptedHost) -> None:
    inbox = filled(host)
    inbox.move(1)
    host.decide("plain1")
    inbox.refresh()
    assert "plain1" not in ids(inbox)


def test_what_is_filtered_away_under_the_cursor_is_no_target_and_nothing_takes_its_place(host: ScriptedHost) -> None:
    inbox = filled(host)
    inbox.move(1)
    painted = shown(inbox, host)
    inbox.filter("lint")
    assert inbox.selected is None
    assert inbox.target(painted) == "the cursor is on another request by now"
    assert inbox.target(None) == "no request is selected"


def test_another_text_under_the_same_id_is_no_target(host: ScriptedHost) -> None:
    inbox = filled(host)
    inbox.move(1)
    painted = shown(inbox, host)
    ask(host, "danger1", "rm -rf /")
    inbox.refresh()
    refused = inbox.target(painted)
    assert isinstance(refused, str)
    assert "its text has changed" in refused


def test_marks_are_of_what_was_shown(host: ScriptedHost) -> None:
    host.session()
    for n in range(3):
        ask(host, f"same{n}")
    ask(host, "other", "make lint")
    inbox = Inbox(host.fleet)
    inbox.refresh()
    assert inbox.row(0, host.now).alike == 3
    assert inbox.mark_alike(shown(inbox, host)) == 3
    inbox.mark(shown(inbox, host, 3))
    assert len(inbox.marked()) == 4
    inbox.mark(shown(inbox, host, 3))
    assert [key.request for key in inbox.marked()] == ["same0", "same1", "same2"]
    ask(host, "same1", "make other")
    host.decide("same2")
    inbox.refresh()
    assert [key.request for key in inbox.marked()] == ["same0"], "a mark is of a text, and goes with it"
    inbox.unmark()
    assert inbox.marked() == []
    inbox.mark(Shown(inbox.key(0), "sha256:other"))
    assert inbox.marked() == []


def test_the_badge_counts_all_that_waits(host: ScriptedHost) -> None:
    inbox = filled(host)
    inbox.filter("lint")
    host.wait(60_000)
    badge = inbox.badge(host.now)
    assert (badge.count, badge.oldest, badge.level) == (5, "1:04", RiskLevel.HIGH)
    empty = Inbox(ScriptedHost().fleet).badge(host.now)
    assert (empty.count, empty.oldest, empty.level) == (0, "", RiskLevel.NONE)


def test_five_hundred_at_once_are_listed_at_once(host: ScriptedHost) -> None:
    host.session()
    for n in range(500):
        host.ask(f"r{n}", text=f"rm -rf build/{n}", listed=False)
    host.list_requests("s1")
    inbox = Inbox(host.fleet)
    began = time.process_time()
    inbox.refresh()
    first = time.process_time() - began
    began = time.process_time()
    inbox.refresh()
    again = time.process_time() - began
    assert len(inbox) == 500
    # Far from what it takes (0.1 s and a few ms), so that only work that grows with the square is found.
    assert first < 5
    assert again < 1


def test_reasons_are_for_the_screen(host: ScriptedHost) -> None:
    inbox = filled(host)
    assert inbox.target(Shown(RequestKey("here", "s1", "never"), "")) == Clean(
        "the cursor is on another request by now"
    )
