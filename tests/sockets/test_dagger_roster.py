"""Which agents of a Dagger session are shown, and what is said of them."""

from __future__ import annotations

import pytest

from console.connectors.dagger.session import HERE
from tests.peers.dagger_conversation import Conversation, said
from tests.peers.dagger_desk import Desk, desk
from tests.peers.dagger_engine import in_state
from tests.peers.dagger_server import DaggerServer
from watchfloor.connector import Record, Target
from watchfloor.errors import ConnectionLost, Denied, NotAHost, Unreachable
from watchfloor.protocol.events import LifecycleChanged
from watchfloor.protocol.frames import DoAct, DoPause, DoSend
from watchfloor.protocol.model import RequestsTrait, SessionKind
from watchfloor.words import Lifecycle, OutcomeKind


@pytest.mark.parametrize("beta", [14, 21])
async def test_those_that_run_are_found_with_what_is_known_of_them(beta: int) -> None:
    async with DaggerServer(beta) as server:
        chief = await in_state(server.engine, "RUNNING", "chief")
        worker = server.engine.spawn("worker", Conversation("echo", "acme", "high"))
        worker.parent = chief
        worker.send("hello")
        await worker.until(lambda it: it.state == "IDLE" and it.mail[0].answer.done())
        async with desk(server) as seen:
            # Listed at once, for the command line looks once only.
            shown = seen.summary(worker.handle)
            assert (shown.name, shown.parent, shown.owned, shown.attempt) == ("worker", chief.handle, False, None)
            await seen.reads(worker.handle, "idle")
            await seen.until(lambda: seen.summary(worker.handle).labels.get("model"))
            shown = seen.summary(worker.handle)
            assert (shown.labels["model"], shown.labels["provider"]) == ("echo", "acme")
            assert shown.labels["context"] == "16 of 200,000 tokens"
            await seen.until(lambda: seen.summary(worker.handle).usage is not None)
            await seen.until(lambda: seen.texts(worker.handle) == ["hello", "echo: hello"])
            await seen.until(lambda: getattr(seen.summary(worker.handle).usage, "turns", 0) == 1)
            usage = seen.summary(worker.handle).usage
            assert usage is not None
            assert (usage.input_tokens, usage.output_tokens) == (24, 5)
            assert seen.summary(worker.handle).mailbox.refs == 1
            assert (await seen.reads(chief.handle, "running")).native_state == "RUNNING"
            assert seen.traits(chief.handle).requests is RequestsTrait.DERIVED
            group = seen.summary(HERE)
            assert (group.kind, group.name) == (SessionKind.GROUP, f"Dagger {server.engine.version}")


@pytest.mark.parametrize("beta", [14, 21])
async def test_an_agent_that_comes_later_and_moves_is_shown_moving(beta: int) -> None:
    async with DaggerServer(beta) as server, desk(server) as seen:
        agent = server.engine.spawn("late", Conversation("held"))
        agent.send("go")
        assert (await seen.reads(agent.handle, "running")).name == "late"
        agent.pause(True)
        await seen.reads(agent.handle, "paused")
        agent.resume()
        await seen.reads(agent.handle, "running")
        server.engine.models.release()
        await seen.reads(agent.handle, "idle")
        changes = [event.lifecycle.value for event in seen.of(agent.handle, LifecycleChanged)]
        assert changes[-3:] == ["paused", "running", "idle"]


async def test_a_relaunch_is_the_same_agent_in_another_span() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "STOPPED", "phoenix")
        stopped = await seen.reads(agent.handle, "stopped")
        assert stopped.why == "a client stopped it"
        await seen.until(lambda: seen.summary(agent.handle).blocked.get("pause") == "it is stopped")
        await seen.until(lambda: seen.summary(agent.handle).controls.get("resume") == "Relaunch")
        agent.resume()
        await seen.reads(agent.handle, "running")
        assert len(seen.source.session.roster.agents[agent.handle].spans) == 2
        assert [id for id in seen.told if id != HERE] == [agent.handle]


async def test_a_failed_agent_says_why() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "FAILED", "unlucky")
        shown = await seen.reads(agent.handle, "failed")
        await seen.until(lambda: seen.summary(agent.handle).error == "the model is out of order")
        assert shown.why == "the model is out of order"
        await seen.until(lambda: seen.summary(agent.handle).controls.get("resume") == "Retry")


async def test_work_below_an_agent_is_in_flight_while_it_runs() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "busy")
        await seen.reads(agent.handle, "running")
        assert agent.span is not None
        call = server.engine.telemetry.span("checks: ci", agent.span.id)
        await seen.until(lambda: [w.name for w in seen.summary(agent.handle).in_flight] == ["checks: ci"])
        server.engine.telemetry.end(call)
        await seen.until(lambda: seen.summary(agent.handle).in_flight == ())


async def test_idle_is_no_proof_that_an_agent_exists() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        told = await seen.do(HERE, DoAct(act="attach", fields={"agent": "nobody", "name": "ghost"}))
        assert (told.outcome, told.info) == (OutcomeKind.APPLIED, {"session": "nobody", "seen": False})
        await seen.until(lambda: seen.told.get("nobody", {}).get("native_state") == "IDLE")
        ghost = await seen.reads("nobody", "unknown")
        assert "never was" in (ghost.why or "")
        assert set(ghost.blocked) == {"pause", "resume", "stop", "reseed", "fork", "notify"}
        assert (await seen.do("nobody", DoPause())).outcome is OutcomeKind.INVALID
        refused = await seen.do("nobody", DoSend(text="anybody there?"))
        assert refused.outcome is OutcomeKind.STALE_TARGET
        assert "has no runtime" in (refused.reason or "")
        assert [verb for verb, _ in server.engine.verbs] == ["send"]


@pytest.mark.parametrize("by_id", [True, False])
async def test_an_agent_is_addressed_by_handle_or_id(by_id: bool) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("quiet")
        agent.pause(False)
        agent.send("unread")
        who = f"agent-{agent.handle}" if by_id else agent.handle
        await seen.do(HERE, DoAct(act="attach", fields={"agent": who}))
        shown = await seen.reads(agent.handle, "paused")
        assert shown.name == "quiet"


async def test_an_agent_that_this_console_starts_is_ours() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        fields = {"name": "mine", "model": "echo", "system": "You help."}
        made = await seen.do(HERE, DoAct(act="spawn", fields={**fields}))
        handle = str(made.info["session"])
        shown = await seen.reads(handle, "idle")
        assert (shown.owned, shown.name, shown.controls["resume"]) == (True, "mine", "Start")
        await seen.until(lambda: seen.texts(handle) == ["You help."])
        await seen.do(handle, DoSend(text="hi"))
        await seen.until(lambda: seen.texts(handle) == ["You help.", "hi", "echo: hi"])


async def test_the_end_of_the_session_stops_all() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "caught out")
        await seen.reads(agent.handle, "running")
        await server.end_session()
        shown = await seen.reads(agent.handle, "stopped")
        await seen.until(lambda: seen.over)
        assert seen.fault is None
        assert (shown.why, seen.summary(HERE).lifecycle) == ("the session ended", Lifecycle.STOPPED)
        assert set(seen.summary(agent.handle).blocked) >= {"send", "resume"}


async def test_lost_contact_is_no_end() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "far away")
        await seen.reads(agent.handle, "running")
        server.faults.down = True
        server.drop()
        await seen.until(lambda: seen.over)
        assert isinstance(seen.fault, ConnectionLost)
        assert seen.summary(agent.handle).lifecycle is Lifecycle.RUNNING
        await seen.close()
        server.faults.down = False
        await seen.connect()
        agent.pause(True)
        await seen.reads(agent.handle, "paused")
        assert seen.texts(agent.handle).count("second") == 1


async def test_a_stream_that_breaks_is_resumed_where_it_was() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "steady")
        await seen.reads(agent.handle, "running")
        before = len(server.resumed)
        server.drop("/v1/")
        late = server.engine.spawn("after the break")
        late.send("go")
        await seen.until(lambda: any(fields.get("name") == "after the break" for fields in seen.told.values()))
        again = dict(server.resumed[before:])
        assert set(again) <= {"/v1/traces", "/v1/logs"}
        assert again["/v1/traces"] > 0
        assert seen.fault is None


async def test_another_session_at_the_same_address_has_none_of_the_old_agents() -> None:
    async with DaggerServer() as old, desk(old) as seen:
        agent = await in_state(old.engine, "IDLE", "forgotten")
        await seen.reads(agent.handle, "idle")
        port = old.port
        await old.close()
        await seen.until(lambda: seen.over)
        await seen.close()
        async with DaggerServer(port=port) as new:
            fresh = await in_state(new.engine, "IDLE", "fresh")
            await seen.connect()
            await seen.reads(fresh.handle, "idle")
            gone = await seen.reads(agent.handle, "stopped")
            assert "another one" in (gone.why or "")
            await seen.close()


async def test_without_telemetry_the_console_knows_its_own_agents_only() -> None:
    async with DaggerServer() as server:
        server.no_telemetry = True
        async with desk(server) as seen:
            await seen.until(lambda: any("no telemetry" in text for text in seen.notices(HERE)))
            made = await seen.do(HERE, DoAct(act="spawn", fields={"name": "mine"}))
            await seen.reads(str(made.info["session"]), "idle")


async def test_conversations_are_read_only_where_they_are_wanted() -> None:
    async with DaggerServer() as server:
        agent = server.engine.spawn("private", Conversation(turns=(said("a"), said("b", role="ASSISTANT"))))
        agent.resume()
        async with desk(server, record=Record.WATCHED) as seen:
            await seen.until(lambda: seen.told.get(agent.handle, {}).get("labels"))
            assert not [asked for asked in server.wire if "Transcript" in asked["request"]["query"]]
            await seen.watch(agent.handle)
            await seen.until(lambda: seen.texts(agent.handle) == ["a", "b"])


async def test_who_may_not_or_is_no_engine() -> None:
    async with DaggerServer() as server:
        with pytest.raises(Denied, match="token"):
            await Desk(server, token="wrong").connect()
    with pytest.raises(Unreachable):
        await Desk(server).connect()
    async with DaggerServer(without=("Agent.handle",)) as old:
        with pytest.raises(NotAHost, match=r"beta\.14"):
            await Desk(old).connect()
    assert "token-of-a-test" not in repr(Target("x", "dagger+http://x", token="token-of-a-test"))


async def test_the_past_is_shown_as_it_ended() -> None:
    async with DaggerServer() as server:
        agent = await in_state(server.engine, "PAUSED", "veteran")
        async with desk(server) as seen:
            await seen.reads(agent.handle, "paused")
            await seen.until(lambda: "second" in seen.texts(agent.handle))
            assert seen.of(agent.handle, LifecycleChanged) == [], "what was before did not happen now"
            assert agent.span is not None
            since = seen.summary(agent.handle).since
            assert since is not None
            assert since <= server.engine.telemetry.now_ns // 1_000_000


async def test_telemetry_that_is_missing_after_a_break_ends_no_agent() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "still there")
        await seen.reads(agent.handle, "running")
        await seen.close()
        server.no_telemetry = True
        await seen.connect()
        await seen.until(lambda: any("no telemetry" in text for text in seen.notices(HERE)))
        assert seen.summary(agent.handle).lifecycle is Lifecycle.RUNNING
        agent.pause(True)
        await seen.reads(agent.handle, "paused")
