"""What facts make of sources, sessions and requests, told by a scripted host through the intake."""

from __future__ import annotations

from typing import Any

from console.fleet.apply import Fleet
from console.fleet.facts import RequestKey, SessionKey
from console.fleet.store import KEEP_ENDED
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.protocol import frames as f
from watchfloor.protocol import model as m
from watchfloor.protocol.events import Message
from watchfloor.words import Contact, Continuity, Lifecycle, OptionKind, Primitive, RequestState


def key(session: str) -> SessionKey:
    return SessionKey("here", session)


# --- sessions ------------------------------------------------------------------------------


def test_a_summary_is_whole_first_and_then_a_change() -> None:
    host = ScriptedHost()
    host.session("s1", cwd="/srv", labels={"team": "eu"})
    host.summary("s1", lifecycle="idle", turn=None)
    session = host.at()
    assert (session.lifecycle, session.turn, session.cwd, session.attempt) == (Lifecycle.IDLE, None, "/srv", 1)
    assert session.labels == {"team": "eu"}


def test_the_first_summary_after_a_welcome_is_whole_again() -> None:
    host = ScriptedHost()
    host.session("s1", blocked={"pause": "busy"}, why="working")
    host.welcome()
    host.summary("s1", name="s1", lifecycle="running")
    session = host.at()
    assert session.blocked == {}
    assert session.why is None


def test_an_unknown_parent_gets_a_placeholder() -> None:
    host = ScriptedHost()
    changes = host.summary("child", name="child", parent="boss")
    assert changes.structure
    assert host.at("boss").placeholder
    assert host.fleet.children == {key("boss"): {key("child")}}
    host.summary("boss", name="Boss", lifecycle="idle")
    assert not host.at("boss").placeholder
    assert host.at("boss").name == "Boss"


def test_a_placeholder_goes_with_its_last_child() -> None:
    host = ScriptedHost()
    host.summary("child", name="child", parent="boss")
    host.tell(f.Gone(sessions=("child",)))
    assert host.fleet.sessions == {}
    assert host.fleet.children == {}


def test_a_parent_that_goes_leaves_a_placeholder_to_its_children() -> None:
    host = ScriptedHost()
    host.session("boss", name="Boss")
    host.session("child", parent="boss")
    host.tell(f.Gone(sessions=("boss",)))
    assert host.at("boss").placeholder
    assert host.at("boss").name == "Boss"
    host.summary("child", parent=None)
    assert set(host.fleet.sessions) == {key("child")}


def test_sessions_that_are_not_listed_again_are_gone() -> None:
    host = ScriptedHost()
    host.session("s1")
    host.session("s2")
    host.welcome()
    changes = host.tell(f.Sessions(sessions=(m.Summary.model_validate({"id": "s2", "name": "s2"}),), listed=True))
    assert set(host.fleet.sessions) == {key("s2")}
    assert changes.structure
    assert host.fleet.sources["here"].listed


def test_events_of_a_gone_session_do_not_bring_it_back() -> None:
    host = ScriptedHost()
    host.session("s1")
    host.tell(f.Gone(sessions=("s1",)))
    host.events("s1", {"kind": "message", "text": "late"})
    assert host.fleet.sessions == {}
    host.summary("s1", name="again")
    assert host.at("s1").name == "again"


def test_a_circle_of_parents_does_no_harm() -> None:
    host = ScriptedHost()
    host.summary("a", name="a", parent="b")
    host.summary("b", name="b", parent="a")
    host.summary("c", name="c", parent="c")
    host.tell(f.Gone(sessions=("a",)), f.Gone(sessions=("b",)), f.Gone(sessions=("c",)))
    assert all(session.placeholder for session in host.fleet.sessions.values())


# --- events --------------------------------------------------------------------------------


def test_changes_count_lines_at_the_end_and_name_what_was_rewritten() -> None:
    host = ScriptedHost()
    host.session("s1")
    changes = host.events("s1", {"kind": "message", "text": "a"}, {"kind": "message", "text": "b"})
    assert changes.appended == {key("s1"): (2, 0)}
    assert changes.rewritten == set()
    changes = host.events("s1", {"kind": "delta", "item": "i", "offset": 0, "text": "he"})
    assert changes.appended == {key("s1"): (1, 0)}
    changes = host.events("s1", {"kind": "delta", "item": "i", "offset": 2, "text": "y"})
    assert changes.appended == {key("s1"): (0, 0)}
    assert changes.rewritten == {key("s1")}
    merged = host.events("s1", {"kind": "message", "text": "hey", "item": "i"})
    merged.merge(host.events("s1", {"kind": "message", "text": "c"}))
    assert merged.appended == {key("s1"): (1, 0)}
    assert [e.text for e in host.at().log.entries()] == ["a", "b", "hey", "c"]


def test_a_new_epoch_starts_anew() -> None:
    host = ScriptedHost()
    host.session("s1")
    host.events("s1", {"kind": "message", "text": "old"})
    host.summary("s1", epoch="e2", head=0)
    told = ["another log begins here: the one before was known up to event 1"]
    assert [e.text for e in host.at().log.entries()] == told
    host.events("s1", {"kind": "message", "text": "stray"}, epoch="e1")
    assert [e.text for e in host.at().log.entries()] == told
    host.seqs["s1"] = 0
    host.events("s1", {"kind": "message", "text": "new"}, epoch="e2")
    assert [e.text for e in host.at().log.entries()] == [*told, "new"]
    assert str(host.at().track.state(0)) == "whole"


def test_a_key_drops_replays_of_a_source_without_numbers() -> None:
    host = ScriptedHost()
    host.session("s1", traits={"replay": "key"})
    host.events("s1", {"kind": "message", "text": "a", "key": "k1"}, {"kind": "message", "text": "b", "key": "k2"})
    host.events("s1", {"kind": "message", "text": "a", "key": "k1"}, {"kind": "message", "text": "c", "key": "k3"})
    assert [e.text for e in host.at().log.entries()] == ["a", "b", "c"]
    assert host.at().track.state(host.now).word is Continuity.ARRIVAL_ORDER


def test_followed_from_the_head_on_is_the_tail_only() -> None:
    host = ScriptedHost()
    host.pos = 40
    host.welcome()
    host.session("s1", head=20)
    host.tell(f.Watching(session="*", from_pos=40, through=40))
    host.seqs["s1"] = 20
    host.events("s1", {"kind": "message", "text": "a"})
    assert str(host.at().track.state(host.now)) == "tail only, from 21"
    # One that is born later is followed whole, or its beginning is a gap.
    host.session("s2")
    host.seqs["s2"] = 1
    host.events("s2", {"kind": "message", "text": "second"})
    assert str(host.at("s2").track.state(host.now)) == "gap 1"


def test_what_lagged_is_a_gap_until_the_history_fills_it() -> None:
    host = ScriptedHost()
    host.session("s1")
    host.tell(f.Watching(session="*", from_pos=0, through=0))
    host.events("s1", {"kind": "message", "text": "a"})
    host.tell(f.Lagged(session="s1", epoch="e1", from_seq=1, to_seq=3))
    host.seqs["s1"] = 3
    host.events("s1", {"kind": "message", "text": "d"})
    assert str(host.at().track.state(host.now)) == "gap 2-3"
    page: list[Any] = [_message(2, "b"), _message(3, "c")]
    host.tell(f.Page(id="h", session="s1", epoch="e1", events=page, first=2, last=3, more=False))
    assert str(host.at().track.state(host.now)) == "whole"
    assert [e.text for e in host.at().log.entries()] == ["a", "b", "c", "d"]


def test_what_is_gone_for_good_says_so() -> None:
    host = ScriptedHost()
    host.session("s1")
    host.tell(f.Watching(session="*", from_pos=0, through=9), f.Gap(session="s1", epoch="e1", from_seq=0, to_seq=7))
    host.seqs["s1"] = 7
    host.events("s1", {"kind": "message", "text": "a"})
    assert str(host.at().track.state(host.now)) == "beyond retention: 1-7 no longer kept"


def test_a_gap_that_stays_is_noticed_by_time_alone() -> None:
    host = ScriptedHost()
    host.session("s1")
    host.tell(f.Watching(session="*", from_pos=0, through=0))
    host.summary("s1", head=2)
    assert not host.wait(1_000)
    assert key("s1") in host.wait(10_000).sessions
    assert str(host.at().track.state(host.now)) == "gap 1-2"


def test_contact_lost_with_a_source_that_replays_nothing_is_a_gap_of_unknown_size() -> None:
    host = ScriptedHost()
    host.session("s1", traits={"replay": "none"})
    host.events("s1", {"kind": "message", "text": "a"})
    host.contact(Contact.LOST)
    host.contact(Contact.LIVE)
    assert host.at().track.state(host.now).word is Continuity.GAP_UNKNOWN


def _message(seq: int, text: str) -> Message:
    return Message(seq=seq, pos=seq, at=1, text=text)


# --- sources -------------------------------------------------------------------------------


def test_lost_contact_keeps_the_last_known_state() -> None:
    host = ScriptedHost()
    host.session("s1")
    lost_at = host.now
    host.contact(Contact.LOST, tries=1)
    host.wait(5_000)
    host.contact(Contact.CONNECTING, tries=2)
    source = host.fleet.sources["here"]
    assert source.lost_since == lost_at
    assert host.at().lifecycle is Lifecycle.RUNNING
    host.contact(Contact.LIVE)
    assert source.lost_since is None


def test_how_far_behind() -> None:
    host = ScriptedHost()
    host.session("s1")
    source = host.fleet.sources["here"]
    host.tell(f.Beat(now=host.there, pos=900))
    assert source.behind == 0
    host.tell(f.Watching(session="*", from_pos=0, through=900))
    assert source.behind == 900
    host.pos = 899
    host.events("s1", {"kind": "message", "text": "a"})
    assert source.behind == 0


def test_the_clock_of_a_host_may_differ() -> None:
    host = ScriptedHost(ahead=90_000)
    assert host.fleet.sources["here"].ahead_ms == 90_000


def test_faults_are_kept_and_counted() -> None:
    host = ScriptedHost()
    changes = host.tell(f.UnknownFrame.model_validate({"type": "weather", "rain": True}))
    source = host.fleet.sources["here"]
    assert source.fault_count == 1
    assert "weather" in source.faults[0].reason
    assert changes.sources == {"here"}


# --- requests ------------------------------------------------------------------------------


def test_a_listed_request_is_unread_until_its_text_comes() -> None:
    host = ScriptedHost()
    host.session("s1")
    ref = m.RequestRef(id="r1", kind="approval", asked_at=5, digest="sha256:x")  # type: ignore[arg-type]
    host.summary("s1", requests=[ref])
    request = host.request(RequestKey("here", "s1", "r1"))
    assert (request.state, request.open, request.fact) == (RequestState.UNREAD, True, None)
    host.ask("r1")
    assert (request.state, request.digest) == (RequestState.OPEN, host.asked["r1"].digest)


def test_what_has_ended_never_opens_again() -> None:
    host = ScriptedHost()
    host.session("s1")
    asked = host.ask("r1")
    opened = host.asked["r1"]
    host.decide("r1", "no")
    host.tell(f.RequestFrame(session="s1", request=opened))
    request = host.request(asked)
    assert not request.open
    assert request.decision is not None
    assert (request.decision.by, request.decision.kind) == ("ann", OptionKind.DENY)


def test_an_event_may_tell_the_end_before_the_request_does() -> None:
    host = ScriptedHost()
    host.session("s1")
    asked = host.ask("r1")
    resolved = {"kind": "request_resolved", "request": "r1", "state": "resolved", "option": "no", "option_kind": "deny"}
    host.events("s1", {**resolved, "by": "bob"})
    request = host.request(asked)
    assert not request.open
    assert request.decision is not None
    assert request.decision.by == "bob"


def test_why_a_request_was_withdrawn_comes_with_its_event() -> None:
    host = ScriptedHost()
    host.session("s1")
    asked = host.ask("r1")
    host.decide("r1", None, state="withdrawn")
    host.events("s1", {"kind": "request_resolved", "request": "r1", "state": "withdrawn", "why": "interrupted"})
    request = host.request(asked)
    assert (request.state, request.ended_why) == (RequestState.WITHDRAWN, "interrupted")


def test_a_request_that_is_no_longer_listed_is_dead_though_nobody_says_how() -> None:
    host = ScriptedHost()
    host.session("s1")
    asked = host.ask("r1")
    changes = host.summary("s1", requests=[])
    assert asked in changes.requests
    assert not host.request(asked).open
    assert "does not say how" in host.request(asked).ended_why


def test_the_requests_of_a_gone_session_are_dead() -> None:
    host = ScriptedHost()
    host.session("s1")
    asked = host.ask("r1")
    changes = host.tell(f.Gone(sessions=("s1",)))
    assert asked in changes.requests
    assert not host.request(asked).open


def test_only_so_many_ended_requests_are_remembered() -> None:
    host = ScriptedHost()
    host.session("s1")
    ended = [
        {"kind": "request_resolved", "request": f"r{i}", "state": "resolved", "option": "yes", "by": "ann"}
        for i in range(KEEP_ENDED + 50)
    ]
    asked = host.ask("open")
    host.events("s1", *ended)
    assert len(host.fleet.requests) == KEEP_ENDED + 1
    assert host.request(asked).open
    assert RequestKey("here", "s1", "r0") not in host.fleet.requests
    assert len(host.at().requests) == KEEP_ENDED + 1


def test_presence_is_shown_on_the_request() -> None:
    host = ScriptedHost()
    host.session("s1")
    asked = host.ask("r1")
    changes = host.tell(f.Presence(session="s1", request="r1", looking=("ann",), claimed_by="ann"))
    assert changes.requests == {asked}
    assert (host.request(asked).looking, host.request(asked).claimed_by) == (("ann",), "ann")


def test_a_profile_may_come_after_its_sessions() -> None:
    host = ScriptedHost()
    host.summary("s1", name="s1", profile="p1")
    assert host.fleet.profile(host.at()) is None
    changes = host.tell(f.Profiles(profiles={"p1": m.Profile(capabilities=m.Capabilities(resume=m.NoOptions()))}))
    assert key("s1") in changes.sessions
    profile = host.fleet.profile(host.at())
    assert profile is not None
    assert profile.primitives == {Primitive.RESUME}


def test_an_empty_batch_changes_nothing() -> None:
    assert not Fleet().apply([], 0)
