"""What sessions have to do with each other: forks, news, and deleting one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.host.glass import Glass
from tests.unit.host.puppet import FULL, approval
from watchfloor.harness.base import ConversationMessage, Wake
from watchfloor.host.clients.between import cyclic_wait
from watchfloor.host.effects import EndAttempt, Forget, ForkSession, Tell
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import Intervention, Mail
from watchfloor.protocol.model import BudgetOptions, NoOptions, Result
from watchfloor.words import Lifecycle, OutcomeKind, StopReason

EVERYTHING = FULL.model_copy(
    update={
        "fork": NoOptions(),
        "notify": NoOptions(),
        "delete": NoOptions(),
        "budget": BudgetOptions(tokens=True, turns=True),
    }
)


def floor(*ids: str, running: bool = True) -> Glass:
    glass = Glass()
    for id in ids:
        glass.add(id, capabilities=EVERYTHING, running=running)
    glass.connect("c")
    return glass


def notify(glass: Glass, session: str, subscriber: str, *on: str) -> Any:
    return glass.command("c", session, {"primitive": "notify", "subscriber": subscriber, "on": list(on)})


def ends_turn(glass: Glass, session: str, text: str = "done") -> None:
    core = glass.core.session(session)
    result = Result(text=text, stop_reason=StopReason.END_TURN, session_id=session)
    glass.apply(core.turn_ended(result, glass.now))


def news(glass: Glass, session: str) -> list[str]:
    """What the session was told of others: its mail that is news, by its first line."""
    core: SessionCore = glass.core.session(session)
    return [letter.item.text.split("\n")[0] for letter in core.mailbox.letters() if letter.item.event is not None]


# --- news


def test_a_subscriber_hears_when_the_other_comes_to_rest() -> None:
    glass = floor("worker", "boss")
    assert notify(glass, "worker", "boss", "idle", "failed").outcome is OutcomeKind.APPLIED
    assert news(glass, "boss") == []
    ends_turn(glass, "worker", "42 tests pass")
    assert news(glass, "boss") == ["WORKER is now idle. Its final reply:"]
    letter = glass.core.session("boss").mailbox.letters()[-1]
    assert (letter.item.by, letter.item.event) == ("worker", "idle")
    assert letter.item.text.endswith("42 tests pass")
    assert letter.delivery.value == "steered"


def test_a_failure_is_news_of_its_own() -> None:
    glass = floor("worker", "boss")
    notify(glass, "worker", "boss", "failed")
    ends_turn(glass, "worker")
    assert news(glass, "boss") == []
    glass.apply(glass.core.session("worker").failed("no disk", glass.now))
    assert news(glass, "boss") == ["WORKER failed: no disk"]


@pytest.mark.parametrize(
    ("state", "delivery"),
    [("running", "steered"), ("idle", "started"), ("paused", "queued"), ("failed", "queued"), ("never", "started")],
)
def test_how_the_news_reaches_its_subscriber(state: str, delivery: str) -> None:
    glass = floor("worker")
    boss = glass.add("boss", capabilities=EVERYTHING, running=state != "never")
    match state:
        case "idle":
            ends_turn(glass, "boss")
        case "paused":
            ends_turn(glass, "boss")
            glass.apply(boss.pause("x", glass.now).effects)
        case "failed":
            glass.apply(boss.failed("x", glass.now))
    notify(glass, "worker", "boss", "idle")
    ends_turn(glass, "worker")
    letter = boss.mailbox.letters()[-1]
    assert (letter.item.event, letter.delivery.value) == ("idle", delivery)
    if state == "idle":
        assert boss.lifecycle is Lifecycle.RUNNING
        wakes = [e.signal for e in glass.rest if isinstance(e, Tell) and isinstance(e.signal, Wake)]
        assert wakes[-1].mail[-1].event == "idle"


@pytest.mark.parametrize("how", ["stopped", "completed"])
def test_a_subscriber_that_is_over_is_not_started_again(how: str) -> None:
    glass = floor("worker", "boss")
    boss = glass.core.session("boss")
    notify(glass, "worker", "boss", "idle")
    if how == "stopped":
        glass.apply(boss.stopped(glass.now))
    else:
        glass.apply(boss.completed(Result(stop_reason=StopReason.END_TURN, session_id="boss"), glass.now))
    ends_turn(glass, "worker")
    assert news(glass, "boss") == []
    assert not boss.alive


def test_a_state_that_is_reached_already_is_told_at_once() -> None:
    glass = floor("worker", "boss")
    ends_turn(glass, "worker", "all done")
    notify(glass, "worker", "boss", "idle")
    assert news(glass, "boss") == ["WORKER is now idle. Its final reply:"]
    notify(glass, "worker", "boss", "failed")
    assert len(news(glass, "boss")) == 1


def test_who_has_done_nothing_has_no_news() -> None:
    glass = floor("boss")
    worker = glass.add("worker", capabilities=EVERYTHING, running=False)
    notify(glass, "worker", "boss", "idle")
    assert news(glass, "boss") == []
    glass.apply(worker.send("go", "x", glass.now).effects)
    glass.apply(worker.started(glass.now))
    ends_turn(glass, "worker")
    assert len(news(glass, "boss")) == 1
    for _ in range(3):
        glass.apply(worker.pause("x", glass.now).effects)
        glass.apply(worker.resume("x", glass.now).effects)
    assert worker.lifecycle is Lifecycle.IDLE
    assert len(news(glass, "boss")) == 1


def test_subscribing_again_replaces_and_with_nothing_ends_it() -> None:
    glass = floor("worker", "boss")
    notify(glass, "worker", "boss", "idle")
    notify(glass, "worker", "boss", "failed")
    ends_turn(glass, "worker")
    assert news(glass, "boss") == []
    assert notify(glass, "worker", "boss").info == {"subscriber": "boss", "on": []}
    assert notify(glass, "worker", "boss").info["noop"] is True
    glass.apply(glass.core.session("worker").failed("x", glass.now))
    assert news(glass, "boss") == []


@pytest.mark.parametrize(
    ("subscriber", "on", "why"),
    [
        ("worker", ("idle",), "not told of itself"),
        ("nobody", ("idle",), "runs no session 'nobody'"),
        ("boss", ("tired",), "'tired'"),
        ("deaf", ("idle",), "deaf takes no messages"),
    ],
)
def test_subscriptions_that_cannot_be(subscriber: str, on: tuple[str, ...], why: str) -> None:
    glass = floor("worker", "boss")
    glass.add("deaf", capabilities=EVERYTHING.model_copy(update={"send": None}))
    outcome = notify(glass, "worker", subscriber, *on)
    assert outcome.outcome is OutcomeKind.INVALID
    assert why in outcome.reason
    assert glass.core.session("worker").subscribers == {}


def test_a_circle_is_refused_by_the_names_in_it() -> None:
    glass = floor("a", "b", "c1", "d")
    notify(glass, "a", "b", "idle")
    notify(glass, "b", "c1", "idle")
    notify(glass, "b", "d", "idle")
    outcome = notify(glass, "c1", "a", "idle")
    assert outcome.outcome is OutcomeKind.INVALID
    assert outcome.reason == "that closes a circle: a tells b tells c1 tells a"
    assert notify(glass, "d", "c1", "idle").outcome is OutcomeKind.APPLIED
    notify(glass, "b", "c1")
    assert "a tells b tells d tells c1 tells a" in notify(glass, "c1", "a", "idle").reason


def test_who_is_gone_is_forgotten() -> None:
    glass = floor("worker", "boss")
    notify(glass, "worker", "boss", "idle")
    glass.core.remove("boss")
    ends_turn(glass, "worker")
    assert glass.core.session("worker").subscribers == {}


def test_a_chain_of_waits_that_would_close_is_found() -> None:
    assert cyclic_wait({}, "a", "b") is None
    assert cyclic_wait({"b": ["c"], "c": ["b"]}, "a", "b") is None
    assert cyclic_wait({"b": ["d", "c"], "c": ["a"]}, "a", "b") == ["a", "b", "c", "a"]
    assert cyclic_wait({}, "a", "a") == ["a", "a"]


# --- forks


def test_a_fork_begins_with_what_was_remembered() -> None:
    glass = floor("worker")
    worker = glass.core.session("worker")
    worker.conversation.messages[:] = [ConversationMessage("user", "hello", "#1")]
    worker.conversation.model = "large"
    outcome = glass.command("c", "worker", {"primitive": "fork", "name": "second try"})
    assert outcome.info == {"session": "second-try", "name": "second try"}
    (fork,) = [effect for effect in glass.rest if isinstance(effect, ForkSession)]
    assert fork == ForkSession("worker", "second-try", "second try", tuple(worker.conversation.messages), "large")
    assert worker.lifecycle is Lifecycle.RUNNING
    unnamed = glass.command("c", "worker", {"primitive": "fork"})
    assert unnamed.info == {"session": "worker-fork", "name": "WORKER (fork)"}


# --- deleting


def test_an_idle_session_is_deleted_with_its_attempt() -> None:
    glass = floor("worker")
    ends_turn(glass, "worker")
    glass.watch("c")
    outcome = glass.command("c", "worker", {"primitive": "delete"})
    assert outcome.outcome is OutcomeKind.APPLIED
    effects = [effect for effect in glass.rest if isinstance(effect, EndAttempt | Forget)]
    assert effects == [EndAttempt("worker", 1), Forget("worker")]
    assert [e.primitive for e in glass.events("c") if isinstance(e, Intervention)] == ["delete"]


@pytest.mark.parametrize("state", ["running", "waiting", "paused", "starting"])
def test_what_runs_is_stopped_first(state: str) -> None:
    glass = floor("worker", running=state != "starting")
    core = glass.core.session("worker")
    match state:
        case "waiting":
            glass.ask("worker", approval(core))
        case "paused":
            ends_turn(glass, "worker")
            glass.apply(core.pause("x", glass.now).effects)
        case "starting":
            glass.apply(core.send("go", "x", glass.now).effects)
    assert core.lifecycle.value == state
    outcome = glass.command("c", "worker", {"primitive": "delete"})
    assert (outcome.outcome, outcome.reason) == (OutcomeKind.INVALID, f"the session is {state}: stop it first")
    assert core.blocked()["delete"] == "stop it first"
    assert not any(isinstance(effect, Forget) for effect in glass.rest)


@pytest.mark.parametrize("state", ["never started", "stopped", "failed", "completed"])
def test_what_does_not_run_can_go_and_its_mail_ends(state: str) -> None:
    glass = floor("worker", running=state != "never started")
    core = glass.core.session("worker")
    result = Result(stop_reason=StopReason.END_TURN, session_id="worker")
    match state:
        case "stopped":
            glass.apply(core.stopped(glass.now))
        case "failed":
            glass.apply(core.failed("x", glass.now))
            glass.apply(core.send("queued", "x", glass.now).effects)
        case "completed":
            glass.apply(core.completed(result, glass.now))
    glass.watch("c", start="start")
    assert "delete" not in core.blocked()
    assert glass.command("c", "worker", {"primitive": "delete"}).outcome is OutcomeKind.APPLIED
    errors = [e.error for e in glass.events("c") if isinstance(e, Mail) and e.ref == "#2"]
    assert errors == ([None, "deleted"] if state == "failed" else [])
