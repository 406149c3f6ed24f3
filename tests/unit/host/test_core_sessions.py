"""What clients hear of sessions: greeting, summaries, patches, requests, beats."""

from __future__ import annotations

import pytest

from tests.unit.host.glass import OBSERVER, Glass
from tests.unit.host.puppet import FULL, approval
from watchfloor.host.clients.roster import supported
from watchfloor.host.principals import Principal
from watchfloor.protocol.events import Intervention, Message, RequestOpened
from watchfloor.protocol.frames import (
    Beat,
    Error,
    ErrorCode,
    Gone,
    Hello,
    Profiles,
    RequestFrame,
    Sessions,
    Watch,
    Welcome,
)
from watchfloor.protocol.model import (
    Act,
    Action,
    ActOptions,
    BudgetOptions,
    Capabilities,
    NoOptions,
    PauseOptions,
    RequestModel,
    ReseedOptions,
    SendOptions,
    Subject,
    Summary,
    Usage,
)
from watchfloor.words import Lifecycle, OutcomeKind, RequestKind, ReseedMode, Role


def changed(frame: Sessions) -> dict[str, object]:
    """The fields of a patch with one session."""
    (summary,) = frame.sessions
    return {name: getattr(summary, name) for name in summary.model_fields_set if name != "id"}


def test_a_host_without_sessions_says_so() -> None:
    glass = Glass()
    glass.connect("c")
    welcome, profiles, sessions = glass.got["c"]
    assert isinstance(welcome, Welcome)
    assert profiles == Profiles(profiles={})
    assert (welcome.protocol, welcome.host.name, welcome.pos, welcome.heartbeat_s) == ("watchfloor.v1", "test", 0, 15)
    assert (welcome.role, welcome.now) == (Role.OPERATOR, glass.now)
    assert sessions == Sessions(sessions=(), listed=True)


def test_the_greeting_lists_everything_whole_then_the_open_requests() -> None:
    glass = Glass()
    first = glass.add("s1", parent=None, labels={"team": "a"}, cwd="/srv", demo=True)
    glass.add("s2", running=False)
    request = glass.ask("s1", approval(first))
    glass.connect("c")
    welcome, profiles, sessions, asked = glass.got["c"]
    assert isinstance(welcome, Welcome)
    assert isinstance(profiles, Profiles)
    assert isinstance(sessions, Sessions)
    assert sessions.listed
    one, two = sessions.sessions
    assert set(Summary.model_fields) == one.model_fields_set
    assert (one.name, one.labels, one.cwd, one.demo) == ("S1", {"team": "a"}, "/srv", True)
    assert (one.lifecycle, one.attempt, one.turn) == (Lifecycle.WAITING, 1, "t1")
    assert one.requests[0].digest == request.digest
    assert one.head == glass.core.log.head("s1") == welcome.pos
    assert one.epoch
    assert (two.lifecycle, two.native_state, two.controls) == (Lifecycle.IDLE, "never started", {"resume": "Start"})
    assert one.profile == two.profile
    assert profiles.profiles[str(one.profile)].capabilities == FULL
    assert isinstance(asked, RequestFrame)
    assert asked.request.digest == request.digest


def test_many_sessions_are_listed_in_parts_and_the_last_says_that_it_is_the_last() -> None:
    glass = Glass()
    for number in range(600):
        glass.add(f"s{number}", running=False, labels={"long": "x" * 500})
    glass.connect("c")
    frames = glass.of("c", Sessions)
    assert len(frames) > 1
    assert [frame.listed for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert len({summary.id for frame in frames for summary in frame.sessions}) == 600


@pytest.mark.parametrize(
    ("principal", "claimed", "name"),
    [
        (Principal(), "sam", "sam (unverified)"),
        (Principal(), "", "somebody (unverified)"),
        (Principal(), "a\n  b" + "x" * 99, "a b" + "x" * 61 + " (unverified)"),
        (Principal("ada"), "sam", "ada"),
    ],
)
def test_who_somebody_is(principal: Principal, claimed: str, name: str) -> None:
    glass = Glass()
    glass.connect("c", principal, hello=False)
    glass.send("c", Hello(client="x", version="1", name=claimed))
    assert glass.of("c", Welcome)[0].principal == name


def test_agents_that_dial_in_are_not_taken() -> None:
    glass = Glass()
    glass.connect("c", Principal("a", Role.AGENT))
    assert glass.of("c", Error)[0].code is ErrorCode.UNSUPPORTED
    assert glass.closed == {"c": 1008}


def test_a_second_hello_is_an_error_and_no_more() -> None:
    glass = Glass()
    glass.connect("c")
    glass.send("c", Hello(client="x", version="1"))
    assert not glass.of("c", Error)[0].fatal
    assert not glass.closed


def test_a_new_session_is_told_whole_and_with_its_profile_first() -> None:
    glass = Glass()
    glass.connect("c")
    glass.frames("c")
    glass.add("s1", capabilities=Capabilities(stop=None))
    glass.flush()
    profiles, sessions = glass.got["c"]
    assert isinstance(profiles, Profiles)
    assert isinstance(sessions, Sessions)
    assert not sessions.listed
    assert sessions.sessions[0].model_fields_set == set(Summary.model_fields)
    glass.frames("c")
    glass.add("s2", capabilities=Capabilities(stop=None))
    glass.flush()
    assert len(glass.of("c", Profiles)) == 0


def test_a_patch_holds_what_changed() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    glass.frames("c")
    glass.apply(session.begin("w", "search", glass.now))
    glass.flush()
    assert changed(glass.of("c", Sessions)[0]).keys() == {"in_flight"}
    glass.frames("c")
    glass.ask("s1", approval(session))
    glass.flush()
    sessions, request = glass.got["c"]
    assert isinstance(sessions, Sessions)
    assert isinstance(request, RequestFrame)
    assert changed(sessions).keys() == {"requests", "blocked"}


def test_a_field_that_goes_back_to_nothing_is_told() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    glass.frames("c")
    glass.apply(session.interrupt("x", glass.now).effects)
    glass.apply(session.interrupted(glass.now))
    glass.flush()
    assert changed(glass.of("c", Sessions)[0])["turn"] is None


def test_head_usage_and_last_come_once_a_second() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    glass.frames("c")
    for number in range(10):
        glass.say("s1", f"message {number}")
        glass.apply(session.note_usage(Usage(input_tokens=number), glass.now))
        glass.tick(100)
    assert [f for f in glass.of("c", Sessions) if "head" in changed(f)] == glass.of("c", Sessions)
    assert len(glass.of("c", Sessions)) == 1
    due = glass.core.next_due()
    assert due is None or due > glass.now
    glass.say("s1", "the last word")
    glass.flush()
    glass.tick(1_000)
    fields = changed(glass.of("c", Sessions)[-1])
    assert fields.keys() == {"head", "last"}
    assert fields["head"] == glass.core.log.head("s1")
    assert getattr(fields["last"], "text", None) == "the last word"


def last_of(glass: Glass, conn: str) -> tuple[str, str]:
    """Kind and text of what the session said last, as a client that comes now is told."""
    glass.connect(conn)
    (summary,) = glass.of(conn, Sessions)[-1].sessions
    assert summary.last is not None
    return summary.last.kind, summary.last.text


def test_the_state_is_the_last_word_only_where_nothing_else_was_said() -> None:
    glass = Glass()
    session = glass.add(running=False)
    glass.connect("c")
    glass.command("c", "s1", {"primitive": "pause"})
    glass.tick(1_000)
    assert last_of(glass, "d") == ("intervention", "pause by c (unverified): applied")
    glass.apply(session.resume("x", glass.now).effects)
    glass.tick(1_000)
    assert last_of(glass, "e") == ("lifecycle", "idle")
    glass.apply(session.send("go", "test", glass.now).effects)
    glass.apply(session.started(glass.now))
    request = glass.ask("s1", approval(session))
    glass.tick(1_000)
    assert last_of(glass, "f") == ("request_opened", "asks shell make migrate")
    approve = {"primitive": "approve", "request": "r1", "option": "no", "digest": request.digest}
    glass.command("c", "s1", approve)
    glass.apply(session.failed("boom", glass.now))
    glass.tick(1_000)
    # A failure tells its request, its state and its mail how they ended; who decided is still worth more.
    assert last_of(glass, "g") == ("request_resolved", "denied by c (unverified)")


def test_what_was_asked_is_not_the_last_word_once_it_is_decided_and_a_rule_is_told_from_a_hand() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    request = glass.ask("s1", approval(session))
    glass.watch("c")
    glass.flush()
    glass.frames("c")
    approve = {"primitive": "approve", "request": "r1", "option": "no", "digest": request.digest, "automatic": True}
    glass.command("c", "s1", approve)
    glass.flush()
    told = [changed(frame)["last"] for frame in glass.of("c", Sessions) if "last" in changed(frame)]
    assert [getattr(last, "kind", "") for last in told] == ["request_resolved"], "within the same second"
    decision = glass.of("c", RequestFrame)[-1].request.decision
    assert decision is not None
    assert decision.automatic
    taken = [event for event in glass.events("c") if isinstance(event, Intervention) and event.primitive == "approve"]
    assert [event.automatic for event in taken] == [True]


def test_what_is_asked_by_arguments_alone_is_named_as_well() -> None:
    glass = Glass()
    glass.add()
    actions = (Action(tool="shell", arguments={"command": "touch a", "deep": True}), Action(tool="shell"))
    subject = Subject(session="s1", attempt=1, id="r1", kind=RequestKind.APPROVAL, actions=actions)
    glass.ask("s1", RequestModel.ask(subject, asked_at=1))
    glass.tick(1_000)
    assert last_of(glass, "c") == ("request_opened", "asks shell command: touch a, deep: true (and 1 more)")


def test_what_is_urgent_does_not_wait_for_the_second() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c")
    glass.frames("c")
    for _ in range(3):
        glass.apply(session.pause("x", glass.now).effects)
        glass.flush()
        glass.apply(session.resume("x", glass.now).effects)
        glass.flush()
    assert ["pending" in changed(f) for f in glass.of("c", Sessions)] == [True] * 6


def test_a_request_is_told_to_everybody_and_again_when_it_ends() -> None:
    glass = Glass()
    session = glass.add()
    glass.connect("c1")
    glass.connect("c2", OBSERVER)
    request = glass.ask("s1", approval(session))
    glass.flush()
    outcome = glass.command(
        "c1", "s1", {"primitive": "approve", "request": "r1", "option": "no", "digest": request.digest}
    )
    assert outcome.outcome is OutcomeKind.APPLIED
    for conn in ("c1", "c2"):
        assert [f.request.state.value for f in glass.of(conn, RequestFrame)] == ["open", "resolved"]
        decision = glass.of(conn, RequestFrame)[-1].request.decision
        assert decision is not None
        assert decision.by == "c1 (unverified)"


def test_new_things_are_told_before_the_events_that_speak_of_them() -> None:
    glass = Glass()
    glass.connect("c")
    glass.watch("c")
    glass.frames("c")
    glass.ask("s1", approval(glass.add()))
    glass.flush()
    kinds = [type(frame).__name__ for frame in glass.got["c"]]
    assert kinds == ["Profiles", "Sessions", "RequestFrame", "Events"]
    assert any(isinstance(event, RequestOpened) for event in glass.events("c"))


def test_beats_come_to_everybody_who_said_hello() -> None:
    glass = Glass()
    glass.connect("c")
    glass.connect("mute", hello=False)
    glass.tick()
    glass.frames("c")
    assert glass.core.next_due() == glass.now + 10_000
    glass.tick(10_000)
    assert glass.core.next_due() == glass.now + 5_000
    glass.tick(4_999)
    assert glass.of("c", Beat) == []
    glass.tick(1)
    assert glass.of("c", Beat) == [Beat(now=glass.now, pos=0)]
    assert glass.of("mute", Beat) == []


def test_a_session_that_was_removed_is_gone() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c", "s1")
    glass.core.remove("s1")
    assert glass.core.wants_flush
    glass.flush()
    assert glass.of("c", Gone) == [Gone(sessions=("s1",))]
    glass.connect("later")
    assert glass.of("later", Sessions)[0].sessions == ()
    with pytest.raises(KeyError):
        glass.core.session("s1")


def test_an_id_is_taken_once() -> None:
    glass = Glass()
    glass.add()
    with pytest.raises(ValueError, match="already"):
        glass.add()


def test_only_what_the_host_can_do_is_advertised() -> None:
    offered = Capabilities(
        send=SendOptions(),
        pause=PauseOptions(interrupt=True),
        fork=NoOptions(),
        budget=BudgetOptions(tokens=True),
        notify=NoOptions(),
        delete=NoOptions(),
        reseed=ReseedOptions(modes=(ReseedMode.REPLACE, ReseedMode.CLEAR)),
        act=ActOptions(acts=(Act(id="dance", label="Dance"),)),
        teleport={},  # type: ignore[call-arg]
    )
    kept = supported(offered)
    expected = {**offered.model_dump(exclude_none=True), "act": None}
    del expected["teleport"]
    assert kept == Capabilities.model_validate(expected)
    assert kept.unknown() == ()
    assert kept.act is None
    assert supported(Capabilities(reseed=ReseedOptions())).reseed is None
    assert supported(FULL) == FULL


def test_an_attempt_may_advertise_something_else() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.frames("c")
    glass.take(glass.core.advertise("s1", FULL, glass.now))
    glass.flush()
    assert glass.got["c"] == []
    glass.take(glass.core.advertise("s1", Capabilities(approve=NoOptions(), act=ActOptions()), glass.now))
    glass.flush()
    profiles, sessions = glass.got["c"]
    assert isinstance(profiles, Profiles)
    assert isinstance(sessions, Sessions)
    fields = changed(sessions)
    assert fields.keys() == {"profile", "blocked"}
    assert fields["blocked"] == {"approve": "no open request"}
    assert profiles.profiles[str(fields["profile"])].capabilities == Capabilities(approve=NoOptions())


def test_nothing_is_told_to_who_left() -> None:
    glass = Glass()
    glass.add()
    glass.connect("c")
    glass.watch("c")
    glass.frames("c")
    glass.core.disconnect("c")
    glass.say("s1", "hello?")
    glass.flush()
    glass.send("c", Watch(session="*"))
    assert glass.got["c"] == []


def test_texts_with_lone_surrogates_do_not_stop_the_host() -> None:
    glass = Glass()
    session = glass.add("s1", cwd="/srv/\udcff")
    glass.connect("c")
    glass.watch("c", start="start")
    glass.say("s1", "caf\udce9")
    glass.apply(session.failed("broke at \ud800", glass.now))
    glass.flush()
    messages = [event.text for event in glass.events("c") if isinstance(event, Message)]
    assert messages == ["caf\ufffd"]
    assert glass.of("c", Sessions)[0].sessions[0].cwd == "/srv/\ufffd"
    assert glass.of("c", Sessions)[-1].sessions[0].error == "broke at \ufffd"
