"""What an operator can do with a Dagger agent, and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from console.connectors.dagger.session import HERE
from tests.peers.dagger_conversation import Block, Conversation, Origin, Turn, said
from tests.peers.dagger_desk import desk
from tests.peers.dagger_engine import in_state
from tests.peers.dagger_runtime import Runtime
from tests.peers.dagger_server import DaggerServer
from watchfloor.protocol.events import Mail, Message, Notice, Reasoning, Reseeded, Speaker, ToolCall, ToolResult
from watchfloor.protocol.frames import (
    DoAct,
    DoAnswer,
    DoFork,
    DoNotify,
    DoPause,
    DoReseed,
    DoResume,
    DoSend,
    DoStop,
)
from watchfloor.words import Delivery, Lifecycle, OutcomeKind, Overlay, ReseedMode

APPLIED, INVALID = OutcomeKind.APPLIED, OutcomeKind.INVALID


async def addressed(seen: Any, agent: Runtime) -> str:
    """Wait until an agent is shown as it is and can be told something; its handle."""
    handle = agent.handle
    await seen.until(lambda: seen.told.get(handle, {}).get("native_state") == agent.state)
    await seen.until(lambda: "send" not in seen.summary(handle).blocked)
    return handle


async def test_a_message_is_followed_from_its_ref_to_its_answer() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("worker", Conversation("tools"))
        agent.resume()
        handle = await addressed(seen, agent)
        sent = await seen.do(handle, DoSend(text="look"))
        assert (sent.outcome, sent.info["ref"]) == (APPLIED, "#1")
        await seen.until(lambda: seen.texts(handle) == ["look", "echo: look"])
        assert seen.mail(handle, "#1")[-1] == "consumed"
        last = seen.of(handle, Mail)[-1]
        assert (last.delivery, last.by, last.text) == (Delivery.STARTED, "ann", "look")
        assert [message.role for message in seen.of(handle, Message)] == [Speaker.OPERATOR, Speaker.ASSISTANT]
        assert [thought.text for thought in seen.of(handle, Reasoning)] == ["let me look"]
        call, result = seen.of(handle, ToolCall)[0], seen.of(handle, ToolResult)[0]
        assert (call.name, call.arguments, call.call) == ("checks", {"name": "ci"}, result.call)
        await seen.until(lambda: seen.source.session.agents[handle].ledger.entries["#1"].response == "echo: look")
        assert len(seen.source.session.awaiting) == 0


async def test_messages_queue_at_a_paused_agent_and_are_read_when_it_goes_on() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await addressed(seen, await in_state(server.engine, "PAUSED"))
        sent = await seen.do(handle, DoSend(text="later", reply_to="#1"))
        assert sent.info == {"ref": "#2", "delivery": "queued"}
        await seen.until(lambda: seen.mail(handle, "#2") == ["sent"])
        await seen.until(lambda: seen.summary(handle).mailbox.queued == 1)
        assert server.engine.agents[handle].mail[1].reply_to == "#1"
        await seen.do(handle, DoResume())
        server.engine.models.release(2)
        await seen.until(lambda: "echo: later" in seen.texts(handle))
        await seen.until(lambda: seen.summary(handle).mailbox.queued == 0)
        assert seen.mail(handle, "#2")[-1] == "consumed"
        assert seen.summary(handle).mailbox.refs == 2


async def test_the_wait_for_an_answer_can_be_given_up_and_taken_up_again() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await addressed(seen, await in_state(server.engine, "PAUSED"))
        await seen.do(handle, DoSend(text="later"))
        session = seen.source.session
        sent = session.agents[handle].ledger.entries["#2"]
        assert len(session.awaiting) == 1
        session.awaiting.end(sent)
        assert len(session.awaiting) == 0
        session.awaiting.begin(session.graph, sent)
        await seen.do(handle, DoResume())
        server.engine.models.release(2)
        await seen.until(lambda: sent.response == "echo: later")


async def test_a_pause_at_once_discards_mail_and_says_of_each_message_that_it_did() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await addressed(seen, await in_state(server.engine, "PAUSED"))
        await seen.do(handle, DoSend(text="one"))
        await seen.do(handle, DoSend(text="two"))
        # What the console's gate asks the operator about before it sends such a pause.
        await seen.until(lambda: seen.summary(handle).mailbox.queued == 2)
        assert seen.traits(handle).pause_drops_mail
        assert (await seen.do(handle, DoPause(interrupt=True))).outcome is APPLIED
        await seen.until(lambda: seen.mail(handle, "#3")[-1] == "error")
        errors = {mail.ref: mail.error for mail in seen.of(handle, Mail) if mail.error}
        assert set(errors) == {"#2", "#3"}
        assert "interrupted before consuming" in str(errors["#2"])


async def test_a_failed_agent_keeps_its_mail_until_it_is_retried() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await addressed(seen, await in_state(server.engine, "FAILED"))
        await seen.do(handle, DoSend(text="more"))
        await seen.until(lambda: seen.mail(handle, "#2") == ["sent"])
        await seen.do(handle, DoResume())
        server.engine.models.release(2)
        await seen.until(lambda: "echo: more" in seen.texts(handle))
        await seen.until(lambda: seen.source.session.agents[handle].ledger.entries["#2"].response == "echo: more")


async def test_pausing_and_stopping_show_until_they_have_landed() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        handle = await addressed(seen, await in_state(server.engine, "RUNNING"))
        paused = await seen.do(handle, DoPause())
        assert paused.info["state"] == "running"
        await seen.until(lambda: (now := seen.summary(handle).pending) and now.overlay is Overlay.PAUSING)
        assert seen.summary(handle).controls["resume"] == "Call the pause off"
        await seen.do(handle, DoResume())
        await seen.until(lambda: seen.summary(handle).pending is None)
        stopping = await seen.start(handle, DoStop())
        await seen.until(lambda: (now := seen.summary(handle).pending) and now.overlay is Overlay.STOPPING)
        assert stopping not in seen.outcomes
        server.engine.models.release(2)
        assert (await seen.outcome(stopping)).outcome is APPLIED
        await seen.reads(handle, "stopped")
        await seen.until(lambda: seen.summary(handle).pending is None)
        again = await seen.do(handle, DoStop())
        assert again.info["noop"] is True


async def test_what_the_engine_forbids_is_said_in_its_words() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "PAUSED")
        handle = await addressed(seen, agent)
        # It goes on without the console's having heard of it.
        seen.source.session.roster.agents.pop(handle)
        agent.resume()
        refused = await seen.do(handle, DoReseed(mode=ReseedMode.CLEAR))
        assert refused.outcome is INVALID
        assert "mid-turn" in (refused.reason or "") or "a turn runs" in (refused.reason or "")


def talk() -> Conversation:
    """A conversation with a tool call, and a message from another agent."""
    return Conversation(
        turns=(
            said("You help.", role="SYSTEM"),
            said("check", Origin("USER", "", "#1")),
            Turn(
                "ASSISTANT",
                (Block("THINKING", "hm"), Block("TOOL_CALL", call_id="c1", tool="ci", arguments='{"a":1}')),
            ),
            Turn("USER", (Block("TOOL_RESULT", "red", call_id="c1", errored=True),)),
            said("it is red", role="ASSISTANT"),
            said("done here", Origin("EVENT", "scout", "#2")),
            said("good", role="ASSISTANT"),
        )
    )


async def reseeded(server: DaggerServer, do: DoReseed, *, state: str = "idle") -> tuple[Runtime, Any, list[str]]:
    """Reseed an agent with that conversation; the agent, the outcome, and the texts of the conversation after it."""
    async with desk(server) as seen:
        agent = server.engine.spawn("writer", talk())
        agent.resume()
        if state == "paused":
            agent.pause(False)
        handle = await addressed(seen, agent)
        await seen.until(lambda: seen.texts(handle)[-1:] == ["good"])
        done = await seen.do(handle, do)
        if done.outcome is APPLIED and do.mode is not ReseedMode.MODEL:
            await seen.until(lambda: seen.of(handle, Reseeded))
            told = seen.of(handle, Reseeded)[0]
            assert (told.mode, told.by) == (do.mode, "ann")
            assert seen.summary(handle).pending is None
        return agent, done, [turn.text for turn in agent.conversation.turns]


@pytest.mark.parametrize("beta", [14, 21])
async def test_rewinding_takes_back_what_came_after(beta: int) -> None:
    async with DaggerServer(beta) as server:
        agent, done, texts = await reseeded(server, DoReseed(mode=ReseedMode.REWIND, to="-2"))
        assert done.outcome is APPLIED, done.reason
        assert agent.conversation.turns == talk().turns[:5]
        assert texts[-1] == "it is red"


async def test_rewinding_to_a_message_goes_on_before_it() -> None:
    async with DaggerServer() as server:
        agent, done, texts = await reseeded(server, DoReseed(mode=ReseedMode.REWIND, to="#2"))
        assert (done.outcome, agent.state, texts[-1]) == (APPLIED, "IDLE", "it is red")


async def test_rewinding_to_what_asks_for_an_answer_needs_a_paused_agent() -> None:
    async with DaggerServer() as server:
        _, done, _ = await reseeded(server, DoReseed(mode=ReseedMode.REWIND, to="-1"))
        assert done.outcome is INVALID
        assert "reseed" not in [verb for verb, _ in server.engine.verbs]
        assert "pause it first" in (done.reason or "")
    async with DaggerServer() as server:
        agent, done, texts = await reseeded(server, DoReseed(mode=ReseedMode.REWIND, to="-1"), state="paused")
        assert (done.outcome, agent.state, texts[-1]) == (APPLIED, "PAUSED", "done here")
        agent.resume()
        await agent.until(lambda it: it.state == "IDLE")
        assert agent.conversation.last_reply == "echo: done here"


@pytest.mark.parametrize("to", ["-8", "-0", "#9", "nonsense", ""])
async def test_rewinding_to_nowhere_changes_nothing(to: str) -> None:
    async with DaggerServer() as server:
        agent, done, _ = await reseeded(server, DoReseed(mode=ReseedMode.REWIND, to=to))
        assert (done.outcome, agent.conversation) == (INVALID, talk())
        assert done.reason


async def test_the_model_is_changed_and_the_conversation_kept() -> None:
    async with DaggerServer() as server:
        agent, done, _ = await reseeded(server, DoReseed(mode=ReseedMode.MODEL, to="tools"))
        assert (done.outcome, agent.conversation.model) == (APPLIED, "tools")
        assert agent.conversation.turns == talk().turns


async def test_clearing_keeps_the_system_prompt() -> None:
    async with DaggerServer() as server:
        _, done, texts = await reseeded(server, DoReseed(mode=ReseedMode.CLEAR))
        assert (done.outcome, texts) == (APPLIED, ["You help."])


async def test_replacing_begins_with_what_was_written() -> None:
    async with DaggerServer() as server:
        do = DoReseed(mode=ReseedMode.REPLACE, text="begin anew")
        _, done, texts = await reseeded(server, do, state="paused")
        assert (done.outcome, texts) == (APPLIED, ["You help.", "begin anew"])
    async with DaggerServer() as server:
        _, done, _ = await reseeded(server, do)
        assert done.outcome is INVALID


@pytest.mark.parametrize("text", [None, "CI is red."])
async def test_compacting_leaves_a_summary(text: str | None) -> None:
    async with DaggerServer() as server:
        agent, done, texts = await reseeded(server, DoReseed(mode=ReseedMode.COMPACT, text=text))
        assert (done.outcome, len(texts), agent.conversation.pending) == (APPLIED, 3, False)
        assert texts[2] == text if text else texts[2].startswith("echo: Summarise")


async def test_what_the_engine_builds_wrongly_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.peers.dagger_graph._origin", lambda given: None)
    async with DaggerServer() as server:
        agent, done, _ = await reseeded(server, DoReseed(mode=ReseedMode.REWIND, to="-2"))
        assert (done.outcome, agent.conversation) == (INVALID, talk())
        assert "another conversation" in (done.reason or "")


async def test_a_conversation_that_another_client_cut_is_told_so() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("writer", talk())
        agent.resume()
        handle = await addressed(seen, agent)
        await seen.until(lambda: seen.texts(handle)[-1:] == ["good"])
        agent.reseed(Conversation())
        agent.send("anew")
        await seen.until(lambda: seen.texts(handle)[-1:] == ["echo: anew"])
        note = seen.of(handle, Reseeded)[0].note or ""
        assert note == "7 of 7 messages are gone; another client did that"


async def test_a_fork_goes_on_from_the_conversation() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = server.engine.spawn("trunk", talk())
        agent.resume()
        handle = await addressed(seen, agent)
        forked = await seen.do(handle, DoFork(name="branch"))
        new = str(forked.info["session"])
        shown = await seen.reads(new, "idle")
        assert (shown.name, shown.owned) == ("branch", True)
        assert server.engine.agents[new].conversation.turns == talk().turns


@pytest.mark.parametrize("beta", [14, 21])
async def test_an_agent_is_told_of_another(beta: int) -> None:
    async with DaggerServer(beta) as server, desk(server) as seen:
        worker = await addressed(seen, await in_state(server.engine, "IDLE", "worker"))
        chief = await addressed(seen, await in_state(server.engine, "IDLE", "chief"))
        done = await seen.do(worker, DoNotify(subscriber=chief))
        assert (done.outcome, done.info) == (APPLIED, {"on": ["idle", "failed"]})
        assert (await seen.do(worker, DoNotify(subscriber=worker))).outcome is INVALID
        unknown = await seen.do(worker, DoNotify(subscriber=chief, on=("asleep",)))
        assert (unknown.outcome, "asleep" in (unknown.reason or "")) == (INVALID, True)
        assert (await seen.do(worker, DoNotify(subscriber="nobody"))).outcome is OutcomeKind.STALE_TARGET
        server.engine.models.release(9)
        await seen.do(worker, DoSend(text="work"))
        await seen.until(lambda: any("now idle" in text for text in seen.texts(chief)))
        event = next(message for message in seen.of(chief, Message) if "now idle" in message.text)
        assert (event.role, event.author) == (Speaker.SYSTEM, "worker")


async def test_an_agent_that_waits_for_input_asks_and_is_answered() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "IDLE", "asker")
        handle = await addressed(seen, agent)
        agent.awaits_input = True
        agent._move()
        await seen.reads(handle, "waiting")
        await seen.until(lambda: seen.summary(handle).requests)
        assert seen.capabilities(handle).answer is not None
        asked = seen.requests[seen.summary(handle).requests[0].id]
        server.engine.models.release(9)
        done = await seen.do(
            handle, DoAnswer(request=str(asked.subject["id"]), digest=asked.digest, fields={"text": "yes"})
        )
        assert done.outcome is APPLIED, done.reason
        await seen.until(lambda: not seen.summary(handle).requests)
        await seen.until(lambda: "echo: yes" in seen.texts(handle))
        assert seen.capabilities(handle).answer is None


async def test_an_answer_that_is_not_the_last_word_is_shown_by_itself() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        agent = await in_state(server.engine, "PAUSED")
        handle = await addressed(seen, agent)
        await seen.do(handle, DoSend(text="which one?"))
        agent.mail[1].answer.set_result("the second")
        await seen.until(lambda: "#2 was answered: the second" in [n.text for n in seen.of(handle, Notice)])


async def test_the_session_itself_takes_acts_only() -> None:
    async with DaggerServer() as server, desk(server) as seen:
        assert (await seen.do(HERE, DoPause())).outcome is OutcomeKind.CAPABILITY_NOT_SUPPORTED
        empty = await seen.do(HERE, DoAct(act="attach", fields={"agent": " "}))
        assert empty.outcome is INVALID
        assert seen.summary(HERE).lifecycle is Lifecycle.IDLE


async def test_many_agents_are_read_together() -> None:
    async with DaggerServer() as server:
        agents = [await in_state(server.engine, "IDLE", f"agent {n}") for n in range(60)]
        async with desk(server) as seen:
            await seen.until(lambda: all("send" not in seen.summary(a.handle).blocked for a in agents))
            polls = [asked for asked in server.wire if asked["request"]["query"].startswith("query Poll")]
            assert len(polls) < 12
            assert (await seen.do(agents[59].handle, DoPause())).outcome is APPLIED
            await seen.reads(agents[59].handle, "paused")
