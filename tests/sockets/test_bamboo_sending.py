"""Messages to bamboo sessions, their runs ended, and sessions deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from console.connectors.bamboo import sending
from tests.peers.bamboo_deciding import error
from tests.peers.bamboo_desk import BambooDesk, desk
from tests.peers.bamboo_http import Reply
from tests.peers.bamboo_server import ANCIENT_LINE, NEW_LINE, OLD_LINE, FakeBamboo, fake_bamboo
from tests.sockets.bamboo_kit import ASK_NAME, LONG, SAY, TOUCH, Fault, begin, called, native, send
from watchfloor.protocol.events import Delta, Mail, MailState, Message, Notice, Speaker
from watchfloor.protocol.frames import DoDelete, DoInterrupt, DoSend
from watchfloor.words import Lifecycle, OutcomeKind, Overlay, Primitive, StopReason


@pytest.fixture(params=[OLD_LINE, NEW_LINE])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeBamboo]:
    async with fake_bamboo(request.param) as made:
        yield made


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "STARTS_S", 1.0)


def mails(seen: BambooDesk, id: str) -> list[tuple[str, str]]:
    return [(mail.ref, mail.state.value) for mail in seen.of(id, Mail)]


async def idle(server: FakeBamboo, seen: BambooDesk) -> str:
    session = server.world.create("Worker")
    await seen.until(lambda: session.id in seen.sessions)
    return session.id


async def test_a_message_is_stored_and_then_run_each_time(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        for number in (1, 2):
            done = await send(seen, id, {"say": f"Answer {number}."})
            assert (done.outcome, done.reason) == (OutcomeKind.APPLIED, None)
            assert (done.info["ref"], done.info["delivery"]) == (f"#{number}", "started")
            assert done.info["turn"] == server.world.sessions[id].last_run
            await native(seen, id, "completed")
            await seen.until(lambda number=number: f"Answer {number}." in [m.text for m in seen.of(id, Message)])  # type: ignore[misc]
        assert mails(seen, id) == [("#1", "sent"), ("#1", "consumed"), ("#2", "sent"), ("#2", "consumed")]
        said = [message for message in seen.of(id, Message) if message.role is Speaker.OPERATOR]
        assert len(said) == 2
        result = seen.summary(id).result
        assert result is not None
        assert result.stop_reason is StopReason.END_TURN
        await seen.until(lambda: (usage := seen.summary(id).usage) is not None and usage.turns == 2)
    chats = [asked.headers["idempotency-key"] for asked in called(server, "/chat")]
    assert len(set(chats)) == 2
    assert len(called(server, "/execute")) == 2


async def test_a_message_to_a_run_is_given_to_its_next_round(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, {"gate": "one", "call": "Read", "args": {}, "id": "call_1"}, SAY)
        await native(seen, session.id, "running")
        done = await seen.do(session.id, DoSend(text="Be brief."))
        assert (done.outcome, done.info["delivery"]) == (OutcomeKind.APPLIED, "steered")
        assert mails(seen, session.id) == [("#1", "sent")]
        server.world.gate("one").set()
        await seen.until(lambda: mails(seen, session.id) == [("#1", "sent"), ("#1", "consumed")])
    assert called(server, "/chat") == []
    assert called(server, "/execute") == []


async def test_a_message_for_later_waits_for_the_end_of_the_run(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, {"gate": "one", **SAY})
        await native(seen, session.id, "running")
        first = session.run
        done = await send(seen, session.id, {"say": "Later."}, queue=True)
        assert (done.outcome, done.info["delivery"]) == (OutcomeKind.APPLIED, "queued")
        server.world.gate("one").set()
        await seen.until(lambda: "Later." in [message.text for message in seen.of(session.id, Message)])
        await seen.until(lambda: mails(seen, session.id)[-1:] == [("#1", "consumed")])
        assert session.last_run != first


async def test_a_message_while_something_is_asked_answers_nothing(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, ASK_NAME, SAY)
        await seen.asked(session.id)
        done = await seen.do(session.id, DoSend(text="Never mind."))
        assert (done.outcome, done.info["delivery"]) == (OutcomeKind.APPLIED, "queued")
        assert "after what is asked has been decided" in (done.reason or "")
        assert len(seen.open(session.id)) == 1
        assert (await seen.answer(session.id, "blue")).outcome is OutcomeKind.APPLIED
        await native(seen, session.id, "completed")
        await seen.until(lambda: mails(seen, session.id) == [("#1", "sent"), ("#1", "consumed")])
    assert called(server, "/execute") == []


async def test_stored_and_not_started_is_said_as_such() -> None:
    async with fake_bamboo(NEW_LINE) as server, desk(server.url) as seen:
        id = await idle(server, seen)
        server.executes = False
        done = await send(seen, id, SAY)
        assert done.outcome is OutcomeKind.APPLIED
        assert (done.info["stored"], done.info["started"], done.info["delivery"]) == (True, False, "queued")
        assert (done.reason or "").startswith("stored, not started: Session authority conflict")
        assert [notice.code for notice in seen.of(id, Notice)] == ["stored_not_started"]
        assert mails(seen, id) == [("#1", "sent")]
        server.executes = True
        server.world.start(server.world.sessions[id])
        await seen.until(lambda: mails(seen, id) == [("#1", "sent"), ("#1", "consumed")])


@pytest.mark.parametrize(
    "reply", [Reply(500, {"error": "broken"}), error(404, "Session not found"), error(400, "no model")]
)
async def test_whatever_keeps_a_stored_message_from_running(server: FakeBamboo, reply: Reply) -> None:
    server.faults.append(Fault("/execute", reply))
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        done = await send(seen, id, SAY)
        assert (done.outcome, done.info["started"]) == (OutcomeKind.APPLIED, False)
        assert (done.reason or "").startswith("stored, not started: ")


async def test_nothing_left_to_run_and_nothing_begins_is_not_started(server: FakeBamboo) -> None:
    server.faults.append(Fault("/execute", Reply(200, {"status": "completed"})))
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        done = await send(seen, id, SAY)
        assert (done.outcome, done.info["started"]) == (OutcomeKind.APPLIED, False)


async def test_a_message_whose_run_is_not_known_is_never_run_twice(server: FakeBamboo) -> None:
    server.after.append(Fault("/execute", lost=True))
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        done = await send(seen, id, SAY)
        assert (done.outcome, done.info["stored"]) == (OutcomeKind.UNKNOWN, True)
        assert (done.reason or "").startswith("stored; whether it runs is not known")
        await native(seen, id, "completed")
        await seen.until(lambda: mails(seen, id)[-1:] == [("#1", "consumed")])
    assert len(called(server, "/execute")) == 1
    assert [message["role"] for message in server.world.sessions[id].messages] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (error(400, "bad"), OutcomeKind.INVALID),
        (error(401, "Unauthorized"), OutcomeKind.NOT_PERMITTED),
        (error(409, "workspace conflict"), OutcomeKind.REFUSED),
        (error(413, "too large"), OutcomeKind.INVALID),
        (error(503, "later"), OutcomeKind.REFUSED),
        (error(500, "Failed to persist chat session"), OutcomeKind.UNKNOWN),
        (Reply(lost=True), OutcomeKind.UNKNOWN),
    ],
)
async def test_a_message_that_was_not_stored(server: FakeBamboo, reply: Reply, outcome: OutcomeKind) -> None:
    server.faults.append(Fault("/chat", reply))
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        done = await send(seen, id, SAY)
        assert done.outcome is outcome
        assert mails(seen, id) == []
    assert called(server, "/execute") == []
    assert len(called(server, "/chat")) == 1


async def test_a_message_to_a_session_that_is_gone_makes_no_new_one(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        # Deleted, and nobody was told.
        del server.world.sessions[id]
        done = await send(seen, id, SAY)
        assert done.outcome is OutcomeKind.STALE_TARGET
        await seen.until(lambda: id not in seen.sessions)
    assert called(server, "/chat") == []
    assert server.world.sessions == {}


async def test_a_message_to_a_run_of_a_server_that_takes_none_is_stored() -> None:
    async with fake_bamboo(ANCIENT_LINE) as server, desk(server.url) as seen:
        session = begin(server, {"gate": "one", **SAY})
        await native(seen, session.id, "running")
        done = await seen.do(session.id, DoSend(text="And this."))
        assert (done.outcome, done.info["delivery"]) == (OutcomeKind.APPLIED, "queued")
        assert len(called(server, "/chat")) == 1


# --- ends


async def test_an_interrupted_run_ends_cancelled_and_the_session_takes_more(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, LONG)
        await seen.until(lambda: seen.of(session.id, Delta))
        run = seen.summary(session.id).turn
        done = await seen.do(session.id, DoInterrupt(), turn=run)
        assert (done.outcome, done.info["exact"]) == (OutcomeKind.APPLIED, server.world.new)
        await native(seen, session.id, "cancelled")
        summary = seen.summary(session.id)
        assert (summary.lifecycle, summary.turn, summary.pending) == (Lifecycle.IDLE, None, None)
        assert summary.result is not None
        assert summary.result.stop_reason is StopReason.CANCELLED
        assert [notice.code for notice in seen.of(session.id, Notice)] == ["interrupted"]
        assert Primitive.INTERRUPT in summary.blocked
        assert (await send(seen, session.id, SAY)).info["delivery"] == "started"
        await native(seen, session.id, "completed")
    (sent, *_) = called(server, "/stop")
    assert sent.headers.get("bamboo-run-id") == (run if server.world.new else None)


async def test_a_command_that_does_not_give_way_is_being_interrupted(server: FakeBamboo) -> None:
    server.world.gives_way_s = 0.5
    async with desk(server.url) as seen:
        session = begin(server, {"shell": "sleep 60", "id": "call_sleep"}, SAY)
        await seen.decide(session.id, "allow_once")
        await seen.until(lambda: session.working)
        done = await seen.do(session.id, DoInterrupt())
        assert done.outcome is OutcomeKind.APPLIED
        summary = seen.summary(session.id)
        assert summary.lifecycle is Lifecycle.RUNNING
        assert summary.pending is not None
        assert (summary.pending.overlay, summary.pending.by) == (Overlay.INTERRUPTING, "ann")
        await native(seen, session.id, "cancelled")
        assert seen.summary(session.id).pending is None


async def test_another_run_than_the_operator_saw_is_not_ended(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, LONG)
        await native(seen, session.id, "running")
        done = await seen.do(session.id, DoInterrupt(), turn="another-run")
        assert done.outcome is OutcomeKind.STALE_TARGET
    assert called(server, "/stop") == []


async def test_the_newer_server_ends_no_other_run_than_the_one_named() -> None:
    async with fake_bamboo(NEW_LINE) as server, desk(server.url) as seen:
        session = begin(server, LONG)
        await native(seen, session.id, "running")
        # Another run has begun, and that has not been told.
        session.run = session.last_run = "the-next-run"
        done = await seen.do(session.id, DoInterrupt())
        assert done.outcome is OutcomeKind.STALE_TARGET
        assert "current cancellable owner" in (done.reason or "")
        assert not session.stopping


async def test_what_waits_for_a_person_cannot_be_interrupted(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        session = begin(server, TOUCH, SAY)
        await seen.asked(session.id)
        done = await seen.do(session.id, DoInterrupt())
        assert (done.outcome, done.reason) == (
            OutcomeKind.INVALID,
            "it waits for a decision, and the server ends only what runs: decide it",
        )
    assert called(server, "/stop") == []


async def test_nothing_is_offered_that_the_server_has_not(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        advertised = {primitive.value for primitive in seen.capabilities(id).advertised()}
        assert advertised == {"send", "interrupt", "approve", "answer", "delete"}


async def test_a_tree_is_deleted_with_its_root(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        root = server.world.create("Root", subagent_count=1)
        child = server.world.create("Child", parent_session_id=root.id)
        other = server.world.create("Other")
        await seen.until(lambda: len(seen.sessions) == 3)
        assert seen.summary(root.id).controls["delete"] == "Delete with its 1 child"
        done = await seen.do(root.id, DoDelete())
        assert (done.outcome, done.info["sessions"]) == (OutcomeKind.APPLIED, 2)
        await seen.until(lambda: set(seen.sessions) == {other.id})
        assert child.id not in server.world.sessions
        gone = await seen.do(root.id, DoDelete())
        assert gone.outcome is OutcomeKind.STALE_TARGET


async def test_a_deletion_that_was_not_told_is_found_out(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        del server.world.sessions[id]
        done = await seen.do(id, DoDelete())
        assert done.outcome is OutcomeKind.STALE_TARGET
        await seen.until(lambda: id not in seen.sessions)


async def test_a_sent_message_is_mail_before_it_is_read(server: FakeBamboo) -> None:
    async with desk(server.url) as seen:
        id = await idle(server, seen)
        for number in range(1, 6):
            await send(seen, id, SAY)
            await seen.until(lambda number=number: len(seen.of(id, Message)) == 2 * number)  # type: ignore[misc]
            await seen.until(lambda: (seen.summary(id).lifecycle, seen.summary(id).turn) == (Lifecycle.IDLE, None))
        states = [mail.state for mail in seen.of(id, Mail)]
        assert states == [MailState.SENT, MailState.CONSUMED] * 5
