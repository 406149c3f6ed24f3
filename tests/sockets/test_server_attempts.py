"""How a host runs attempts: starts that fail or hang, harnesses that break, stops that nobody hears."""

from __future__ import annotations

import asyncio

import pytest

from tests.sockets.host_kit import PATIENCE_S, Script, until
from tests.unit.host.puppet import approval
from watchfloor.errors import ContractError, StaleTarget, WatchfloorError
from watchfloor.harness.base import Stop, Wake
from watchfloor.host.serving.server import Host
from watchfloor.host.sessions.session import SessionCore
from watchfloor.protocol.events import Child, LifecycleChanged, Notice
from watchfloor.words import Lifecycle


def by(host: Host, session: str, what: str) -> SessionCore:
    """An operator's operation, without the wire."""
    core = host.core.session(session)
    handled = getattr(core, what)("robin", host.now())
    host.perform(host.core.apply(handled.effects))
    return core


def events(host: Host, session: str) -> list[object]:
    host.perform(host.core.flush(host.now()))
    return list(host.core.log.read(session, limit=5000))


async def test_a_start_that_fails_fails_the_session_and_can_be_retried() -> None:
    script = Script("start")
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        core = await host.wait(session)
        assert core.lifecycle is Lifecycle.FAILED
        assert core.error == "could not be started: RuntimeError: no such model"
        script.faults.clear()
        by(host, session, "resume")
        await until(lambda: script.attempts and script.attempts[0].told)
        wake = script.attempts[0].told[0]
        assert isinstance(wake, Wake)
        assert [item.text for item in wake.mail] == ["go"]
        assert (script.attempts[0].spec.attempt, core.attempt) == (2, 2)


async def test_a_harness_that_breaks_on_a_signal_fails_its_session_alone() -> None:
    async with Host() as host:
        broken, sound = Script("intervene"), Script()
        bad = host.add(broken, name="bad", text="go")
        good = host.add(sound, name="good", text="go")
        core = await host.wait(bad)
        assert core.lifecycle is Lifecycle.FAILED
        assert core.error == "the harness could not take Wake: RuntimeError: what is that"
        await until(lambda: broken.attempts[0].closed == 1)
        assert host.core.session(good).lifecycle is Lifecycle.RUNNING


async def test_a_start_that_hangs_can_be_killed() -> None:
    script = Script("hang at start")
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        await script.begun.wait()
        host.stop(session, kill=True)
        core = await host.wait(session)
        assert core.lifecycle is Lifecycle.STOPPED
        assert script.attempts == []


async def test_a_stop_that_nobody_hears_is_followed_by_a_kill_and_then_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watchfloor.host.sessions.session.KILL_MS", 50)
    script = Script("deaf", grace_s=0.05)
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        await until(lambda: script.attempts and script.attempts[0].told)
        host.stop(session, reason="enough")
        core = await host.wait(session)
        assert (core.lifecycle, core.why) == (Lifecycle.STOPPED, "by watchfloor: enough")
        stops = [signal for signal in script.attempts[0].told if isinstance(signal, Stop)]
        assert stops == [Stop(reason="enough"), Stop(kill=True, reason="enough")]
        assert any(isinstance(event, Notice) for event in events(host, session))
        await until(lambda: script.attempts[0].closed == 1)


async def test_nothing_is_told_to_an_attempt_that_is_over() -> None:
    script = Script()
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        await until(lambda: script.attempts and script.attempts[0].told)
        attempt = script.attempts[0]
        by(host, session, "pause")
        attempt.port.stopped()
        await until(lambda: attempt.closed)
        assert [type(signal) for signal in attempt.told] == [Wake]


async def test_the_port_of_an_older_attempt_is_of_no_use() -> None:
    script = Script()
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        await until(lambda: script.attempts)
        old = script.attempts[0]
        host.stop(session)
        await host.wait(session)
        with pytest.raises(StaleTarget):
            old.port.ask(approval(host.core.session(session)))
        by(host, session, "resume")
        await until(lambda: len(script.attempts) == 2)
        for call in (old.port.checkpoint, old.port.resumed, old.port.started, lambda: old.port.end("w")):
            with pytest.raises(StaleTarget):
                call()
        assert (old.port.attempt, script.attempts[1].port.attempt) == (1, 2)
        assert old.port.session_id == session


async def test_a_request_that_breaks_the_contract_is_refused_to_its_author() -> None:
    script = Script()
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        await until(lambda: script.attempts)
        request = approval(host.core.session(session)).model_copy(update={"digest": "sha256:0"})
        with pytest.raises(ContractError, match="digest"):
            script.attempts[0].port.ask(request)
        assert not host.core.session(session).requests


async def test_a_child_names_its_parent_and_the_parent_tells_of_it() -> None:
    parent, child = Script(), Script()
    async with Host() as host:
        session = host.add(parent, name="lead", cwd="/srv", demo=True, text="go")
        await until(lambda: parent.attempts)
        born = parent.attempts[0].port.spawn(child, name="Test Runner", text="run the tests")
        assert born == "test-runner"
        await until(lambda: child.attempts and child.attempts[0].told)
        assert any(isinstance(e, Child) and e.session == born for e in events(host, session))
        entry = host.core.roster.get(born)
        assert entry is not None
        assert (entry.fixed["parent"], entry.fixed["demo"], entry.fixed["cwd"]) == (session, True, "/srv")


async def test_ids_are_made_from_names_and_never_twice() -> None:
    async with Host() as host:
        ids = [host.add(Script(), name=name) for name in ("Deploy EU", "deploy eu", "Ü / ?", "")]
        assert ids == ["deploy-eu", "deploy-eu-2", "session", "session-2"]
        assert host.add(Script(), name="x", id="any id\n") == "any id\n"
        with pytest.raises(ValueError, match="already"):
            host.add(Script(), name="x", id="deploy-eu")


async def test_waiting_until_a_session_has_settled() -> None:
    script = Script()
    async with Host() as host:
        session = host.add(script, name="x")
        assert (await host.wait(session)).lifecycle is Lifecycle.IDLE
        handled = host.core.session(session).send("go", "robin", host.now())
        host.perform(host.core.apply(handled.effects))
        waiting = asyncio.create_task(host.wait(session))
        await until(lambda: script.attempts and script.attempts[0].told)
        assert not waiting.done()
        script.attempts[0].end_turn()
        async with asyncio.timeout(PATIENCE_S):
            assert (await waiting).lifecycle is Lifecycle.IDLE


async def test_a_session_can_be_removed_when_nothing_runs() -> None:
    script = Script()
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        await until(lambda: script.attempts)
        with pytest.raises(WatchfloorError, match="stop it first"):
            host.remove(session)
        host.stop(session)
        await host.wait(session)
        host.remove(session)
        with pytest.raises(KeyError):
            host.core.session(session)
        with pytest.raises(StaleTarget):
            script.attempts[0].port.checkpoint()


async def test_closing_ends_what_runs_even_if_it_will_not_go() -> None:
    polite, rude, hanging = Script(), Script("close"), Script("hang at start")
    async with Host() as host:
        for script in (polite, rude, hanging):
            host.add(script, name="x", text="go")
        await until(lambda: polite.attempts and rude.attempts)
        await hanging.begun.wait()
    assert polite.attempts[0].closed == rude.attempts[0].closed == 1
    assert [task for task in asyncio.all_tasks() if "attempt" in task.get_name()] == []


async def test_every_state_that_a_session_went_through_is_in_its_log() -> None:
    script = Script()
    async with Host() as host:
        session = host.add(script, name="x", text="go")
        await until(lambda: script.attempts and script.attempts[0].told)
        script.attempts[0].end_turn()
        host.stop(session)
        await host.wait(session)
        states = [e.lifecycle.value for e in events(host, session) if isinstance(e, LifecycleChanged)]
        assert states == ["starting", "running", "idle", "idle", "stopped"]
