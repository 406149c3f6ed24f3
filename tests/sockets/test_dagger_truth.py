"""A Dagger session that breaks in odd places: what is shown is what is known, and no more."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from console.connectors.dagger import connector, feed
from console.connectors.dagger.lost import CODE
from console.connectors.dagger.session import HERE
from tests.peers.dagger_conversation import Conversation
from tests.peers.dagger_desk import Desk, desk
from tests.peers.dagger_engine import Engine, in_state
from tests.peers.dagger_runtime import Mail, Runtime
from tests.peers.dagger_server import DaggerServer
from watchfloor.errors import ConnectionLost
from watchfloor.protocol.events import Mail as MailEvent
from watchfloor.protocol.events import Notice
from watchfloor.protocol.frames import DoAct, DoFork, DoPause, DoSend
from watchfloor.words import Lifecycle, OutcomeKind, Overlay

APPLIED, UNKNOWN, UNDELIVERED = OutcomeKind.APPLIED, OutcomeKind.UNKNOWN, OutcomeKind.UNDELIVERED


async def ready(seen: Desk, agent: Runtime) -> str:
    await seen.until(lambda: seen.told.get(agent.handle, {}).get("native_state") == agent.state)
    await seen.until(lambda: "send" not in seen.summary(agent.handle).blocked)
    return agent.handle


async def found(seen: Desk, handle: str, words: str) -> str:
    """What was said after an answer was lost, once it has these words."""

    def said() -> list[str]:
        return [n.text for n in seen.of(handle, Notice) if n.code == CODE and words in n.text]

    await seen.until(said)
    return said()[0]


# --- telemetry


async def test_telemetry_that_ends_is_no_end_of_a_session_that_answers() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "still here")
        handle = await ready(seen, agent)
        server.engine.telemetry.close()
        await seen.until(lambda: any("although the session answers" in text for text in seen.notices(HERE)))
        agent.pause(True)
        await seen.reads(handle, "paused")
        assert not seen.over
        assert seen.summary(HERE).lifecycle is Lifecycle.IDLE


async def test_telemetry_that_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PAST_S", 0.3)
    async with DaggerServer() as server:
        server.mute = True
        async with desk(server) as seen:
            await seen.until(lambda: any("telemetry gives no answer" in text for text in seen.notices(HERE)))
            made = await seen.do(HERE, DoAct(act="spawn", fields={"name": "mine"}))
            await seen.reads(str(made.info["session"]), "idle")


async def test_rows_that_come_twice_and_in_another_order_tell_the_same() -> None:
    async with DaggerServer() as server:
        chief = await in_state(server.engine, "RUNNING", "chief")
        worker = server.engine.spawn("worker", Conversation("held"))
        worker.parent = chief
        worker.send("go")
        await worker.until(lambda it: it.state == "RUNNING")
        assert worker.span is not None
        server.engine.telemetry.end(server.engine.telemetry.span("done long ago", worker.span.id))
        for rows in (server.engine.telemetry.traces, server.engine.telemetry.logs):
            told = [row for _, row in rows.rows]
            rows.rows[:] = list(enumerate([*reversed(told), *told, *reversed(told)], 1))
        async with desk(server) as seen:
            shown = await seen.reads(worker.handle, "running")
            assert (shown.name, shown.parent) == ("worker", chief.handle)
            await ready(seen, worker)
            assert seen.summary(worker.handle).in_flight == ()


async def test_a_handle_that_cannot_be_sent_harms_no_other() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        server.engine.telemetry.span("agent: odd", handle="half \ud800", agent="odd")
        fine = await in_state(server.engine, "IDLE", "fine")
        await ready(seen, fine)
        await seen.until(lambda: "odd" in [fields.get("name") for fields in seen.told.values()])
        odd = seen.by_name("odd")
        assert odd.lifecycle is Lifecycle.UNKNOWN
        assert "half a character" in (odd.why or "")
        assert (await seen.do(fine.handle, DoSend(text="half \ud800"))).outcome is OutcomeKind.INVALID
        assert server.engine.verbs == []


# --- the schema


async def test_a_type_that_the_engine_lacks_takes_no_other_along() -> None:
    async with DaggerServer(without=("LLMMessage.origin", "LLMMessageOrigin")) as server, desk(server) as seen:
        handle = await ready(seen, await in_state(server.engine, "IDLE"))
        server.engine.models.release(5)
        assert (await seen.do(handle, DoSend(text="hello"))).info["ref"] == "#1"
        await seen.until(lambda: seen.texts(handle)[-1:] == ["echo: hello"])


async def test_a_message_that_was_sent_is_sent_although_its_number_cannot_be_read() -> None:
    async with DaggerServer(without=("AgentMessage.ref",)) as server, desk(server) as seen:
        agent = await in_state(server.engine, "IDLE")
        handle = await ready(seen, agent)
        server.engine.models.release(5)
        sent = await seen.do(handle, DoSend(text="hello"))
        assert (sent.outcome, "message" in sent.info) == (APPLIED, True)
        await seen.until(lambda: seen.texts(handle)[-1:] == ["echo: hello"])
        assert [mail.text for mail in agent.mail] == ["hello"]


# --- agents


async def test_another_session_behind_the_same_connection_is_noticed() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "of the old one")
        handle = await ready(seen, agent)
        server.engine = Engine()
        await seen.until(lambda: seen.over)
        assert isinstance(seen.fault, ConnectionLost)
        assert "another session" in str(seen.fault)
        assert seen.summary(handle).lifecycle is Lifecycle.UNKNOWN, "nothing is known of it until it is looked for"
        await seen.close()
        fresh = await in_state(server.engine, "IDLE", "of the new one")
        await seen.connect()
        await ready(seen, fresh)
        gone = await seen.reads(handle, "stopped")
        assert "another one" in (gone.why or "")
        agent.end()


async def test_an_agent_that_never_ran_is_known_by_its_mailbox() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        quiet = server.engine.spawn("quiet")
        told = await seen.do(HERE, DoAct(act="attach", fields={"agent": quiet.handle}))
        assert told.info == {"session": quiet.handle, "seen": True}
        await seen.reads(quiet.handle, "idle")
        await seen.close()
        # Over a lost connection as well: it may be another session that answers then.
        await seen.connect()
        await seen.reads(quiet.handle, "idle")


async def test_a_state_that_is_not_known_here_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING", "dreamer")
        handle = await ready(seen, agent)
        answer = server.answer

        async def dreams(body: bytes) -> tuple[int, Any]:
            status, told = await answer(body)
            if "query Poll" in json.loads(body)["query"]:
                told["data"]["a0"]["state"] = "DREAMING"
            return status, told

        monkeypatch.setattr(server, "answer", dreams)
        shown = await seen.reads(handle, "unknown")
        assert (shown.native_state, shown.why) == ("DREAMING", "the engine calls it DREAMING, which is not known here")


async def test_a_pause_that_somebody_else_called_off_is_not_pending_for_ever() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "RUNNING")
        handle = await ready(seen, agent)
        await seen.do(handle, DoPause())
        await seen.until(lambda: (now := seen.summary(handle).pending) and now.overlay is Overlay.PAUSING)
        agent.send("more")
        agent.resume()
        server.engine.models.release()
        await seen.until(lambda: seen.summary(handle).pending is None)
        assert agent.state == "RUNNING"
        assert any("called the pause off" in text for text in seen.notices(handle))


async def test_messages_of_others_are_named_by_their_number_once_they_are_read() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("worker")
        agent.send("from elsewhere")
        await seen.until(lambda: "echo: from elsewhere" in seen.texts(agent.handle))
        await seen.do(agent.handle, DoSend(text="from here"))
        await seen.until(lambda: seen.mail(agent.handle, "#2")[-1:] == ["consumed"])
        told = [(mail.ref, mail.text) for mail in seen.of(agent.handle, MailEvent) if mail.state.value == "consumed"]
        assert told == [("#1", "from elsewhere"), ("#2", "from here")]
        assert seen.summary(agent.handle).mailbox.queued == 0


async def test_what_an_agent_had_not_read_ends_with_its_session() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await ready(seen, await in_state(server.engine, "PAUSED"))
        await seen.do(handle, DoSend(text="too late"))
        await server.end_session()
        await seen.reads(handle, "stopped")
        await seen.until(lambda: seen.mail(handle, "#2")[-1:] == ["error"])
        assert seen.of(handle, MailEvent)[-1].error
        assert seen.summary(handle).mailbox.queued == 0


# --- answers that get lost


async def test_a_message_whose_number_cannot_be_asked_for_was_not_sent() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await ready(seen, await in_state(server.engine, "IDLE"))
        server.faults.swallow.append("message")
        done = await seen.do(handle, DoSend(text="hello"))
        assert (done.outcome, server.engine.verbs) == (UNDELIVERED, [])


async def test_a_message_that_arrives_late_is_found_and_not_sent_again() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "IDLE")
        handle = await ready(seen, agent)
        server.faults.swallow.append("send")
        assert (await seen.do(handle, DoSend(text="slow"))).outcome is UNKNOWN
        await found(seen, handle, "has not arrived so far")
        server.engine.models.release(5)
        agent.send("slow")
        assert "it arrived as #1 after all" in await found(seen, handle, "after all")
        await seen.until(lambda: seen.mail(handle, "#1")[-1:] == ["consumed"])
        assert len(agent.mail) == 1


async def test_a_message_of_somebody_else_is_not_kept_for_ours() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "PAUSED")
        handle = await ready(seen, agent)
        sent = agent.send

        def another(text: str, reply_to: str = "") -> Mail:
            return sent("of somebody else")

        agent.send = another  # type: ignore[assignment, method-assign]
        server.faults.lose.append("send")
        assert (await seen.do(handle, DoSend(text="mine"))).outcome is UNKNOWN
        await found(seen, handle, "unless others write")
        server.engine.models.release(5)
        agent.resume()
        await seen.until(lambda: any("#2 is of somebody else" in text for text in seen.notices(handle)))
        assert "#2" not in seen.source.session.agents[handle].ledger.entries


async def test_what_was_lost_with_its_session_is_not_guessed() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await ready(seen, await in_state(server.engine, "IDLE"))
        server.faults.lose.append("send")
        server.faults.falls = True
        assert (await seen.do(handle, DoSend(text="lost with all"))).outcome is UNKNOWN
        await seen.until(lambda: seen.over)
        await seen.close()
        server.faults.down = False
        server.engine = Engine()
        await seen.connect()
        said = await found(seen, handle, "cannot be found out")
        assert "another one answers" in said


async def test_an_error_instead_of_a_message_is_no_proof_that_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await ready(seen, await in_state(server.engine, "IDLE"))
        answer, asked = server.answer, 0

        async def fails(body: bytes) -> tuple[int, Any]:
            nonlocal asked
            if "query LookUp" in json.loads(body)["query"]:
                asked += 1
                if asked > 1:
                    return 200, {"data": None, "errors": [{"message": "out of memory [traceparent:00-00]"}]}
            return await answer(body)

        monkeypatch.setattr(server, "answer", fails)
        server.faults.lose.append("send")
        assert (await seen.do(handle, DoSend(text="hello"))).outcome is UNKNOWN
        assert "cannot be told: out of memory" in await found(seen, handle, "whether it arrived")


@pytest.mark.parametrize("verb", ["spawn", "fork"])
async def test_a_new_agent_is_there_although_it_cannot_be_read(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with DaggerServer() as server, desk(server) as seen:
        trunk = await ready(seen, await in_state(server.engine, "IDLE"))
        answer = server.answer

        async def breaks(body: bytes) -> tuple[int, Any]:
            if "query Identity" in json.loads(body)["query"]:
                raise ConnectionAbortedError
            return await answer(body)

        monkeypatch.setattr(server, "answer", breaks)
        if verb == "spawn":
            done = await seen.do(HERE, DoAct(act="spawn", fields={"name": "new"}))
        else:
            done = await seen.do(trunk, DoFork(name="new"))
        assert done.outcome is APPLIED
        assert done.info["id"] in {f"agent-{handle}" for handle in server.engine.agents}


async def test_many_messages_are_counted_with_few_questions() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("popular", Conversation("held"))
        agent.pause(False)
        for n in range(3_000):
            agent.send(f"message {n}")
        await seen.do(HERE, DoAct(act="attach", fields={"agent": agent.handle}))
        await seen.until(lambda: seen.summary(agent.handle).mailbox.refs == 3_000)
        asked = [one for one in server.wire if one["request"]["query"].startswith("query LookUp")]
        assert len(asked) < 50


async def test_many_conversations_hold_up_no_roster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "SPOKEN_S", 0.05)
    async with DaggerServer() as server:
        agent = await in_state(server.engine, "PAUSED")
        go_on = server.faults.hold["Transcript"] = asyncio.Event()
        async with desk(server) as seen:
            await seen.reads(agent.handle, "paused")
            assert seen.texts(agent.handle) == []
            go_on.set()
            await seen.until(lambda: "second" in seen.texts(agent.handle))


async def test_agents_at_rest_are_read_by_turns() -> None:
    async with DaggerServer() as server:
        engine = server.engine
        for n in range(300):
            agent = engine.spawn(f"resting {n}")
            agent.span = engine.telemetry.span(f"agent: {agent.name}", handle=agent.handle, agent=agent.name)
        async with desk(server) as seen:
            await seen.until(lambda: sum(1 for fields in seen.told.values() if fields.get("lifecycle")) == 301)
            busy = await in_state(engine, "RUNNING", "busy")
            await ready(seen, busy)
            before = len(server.wire)
            last = engine.agents[list(engine.agents)[299]]
            last.pause(False)
            # It has not told of that, but its turn comes.
            engine.telemetry.logs.rows.pop()
            await seen.reads(last.handle, "paused")
            polls = [one["request"] for one in server.wire[before:] if one["request"]["query"].startswith("query Poll")]
            assert polls
