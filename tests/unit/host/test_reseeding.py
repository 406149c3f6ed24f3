"""Every way to replace what a session remembers, and what it does to mail, requests and state."""

from __future__ import annotations

import pytest

from tests.unit.host.puppet import BY, Puppet
from tests.unit.host.rows import drive
from watchfloor.harness.base import ConversationMessage, MailArrived, Reseed, Wake
from watchfloor.host.effects import CompactNow, Handled
from watchfloor.protocol.events import Notice, RequestResolved, Reseeded
from watchfloor.protocol.frames import DoReseed
from watchfloor.words import TABLE, Delivery, Lifecycle, Op, OutcomeKind, Overlay, ReseedMode, Row, Verdict

REMEMBERED = [
    ConversationMessage("user", "deploy", "#1"),
    ConversationMessage("assistant", "which one?"),
    ConversationMessage("user", "the blue one", "#2"),
    ConversationMessage("assistant", "done"),
]
ALL = {
    ReseedMode.CLEAR: DoReseed(mode=ReseedMode.CLEAR),
    ReseedMode.REPLACE: DoReseed(mode=ReseedMode.REPLACE, text="begin here"),
    ReseedMode.REWIND: DoReseed(mode=ReseedMode.REWIND, to="#2"),
    ReseedMode.MODEL: DoReseed(mode=ReseedMode.MODEL, to="large"),
    ReseedMode.COMPACT: DoReseed(mode=ReseedMode.COMPACT),
}
ACCEPTS = [row for row in Row if TABLE[row][Op.RESEED].verdict is Verdict.OK]
SHORT = [ConversationMessage("system", "a deploy was done")]


def reseed(puppet: Puppet, do: DoReseed) -> Handled:
    handled = puppet.core.reseed(do, BY, puppet.now)
    puppet.take(handled.effects)
    return handled


def remembering(row: Row, *, pending: bool = False) -> Puppet:
    puppet = drive(row, pending=pending)
    puppet.core.conversation.messages[:] = REMEMBERED
    return puppet


def after(mode: ReseedMode) -> list[ConversationMessage]:
    match mode:
        case ReseedMode.CLEAR:
            return []
        case ReseedMode.REPLACE:
            return [ConversationMessage("user", "begin here")]
        case ReseedMode.REWIND:
            return REMEMBERED[:2]
        case ReseedMode.MODEL:
            return REMEMBERED
        case ReseedMode.COMPACT:
            return SHORT


@pytest.mark.parametrize("pending", [False, True], ids=["nothing pending", "input pending"])
@pytest.mark.parametrize("row", ACCEPTS)
@pytest.mark.parametrize("mode", ALL)
def test_each_mode_in_each_state_that_takes_it(mode: ReseedMode, row: Row, pending: bool) -> None:
    puppet = remembering(row, pending=pending)
    core = puppet.core
    attempt, turn = core.attempt, core.turn
    assert reseed(puppet, ALL[mode]).outcome is OutcomeKind.APPLIED
    puppet.react()
    if mode is ReseedMode.COMPACT:
        overlay = core.overlay()
        assert overlay is not None
        assert (overlay.overlay, overlay.by) == (Overlay.RESEEDING, BY)
        assert not core.settled
        puppet.take(core.compacted(SHORT, puppet.now))
    queued = core.mailbox.view.queued
    assert core.conversation.messages == after(mode)
    assert core.conversation.model == ("large" if mode is ReseedMode.MODEL else None)
    (event,) = puppet.of(Reseeded)
    assert (event.mode, event.by) == (mode, BY)
    assert core.overlay() is None
    assert core.attempt == attempt
    assert not core.requests
    if turn is not None:
        assert core.turn is None
        assert puppet.mail_error("#1") == "rewound"
    if core.alive:
        assert Reseed(mode) in puppet.told
    took_up = mode is ReseedMode.COMPACT and row is Row.IDLE and pending
    if took_up:
        assert core.row() is Row.RUNNING
    else:
        assert core.row() is (Row.PAUSED if row is Row.PAUSED_OPEN else row)
        assert core.mailbox.view.queued == queued


@pytest.mark.parametrize("row", [row for row in Row if row not in ACCEPTS])
@pytest.mark.parametrize("mode", ALL)
def test_where_the_table_forbids_it_nothing_changes(mode: ReseedMode, row: Row) -> None:
    puppet = remembering(row)
    handled = reseed(puppet, ALL[mode])
    assert (handled.outcome, handled.reason) == (OutcomeKind.INVALID, TABLE[row][Op.RESEED].why)
    assert puppet.core.conversation.messages == REMEMBERED
    assert puppet.of(Reseeded) == []


@pytest.mark.parametrize(
    ("do", "why"),
    [
        (DoReseed(mode=ReseedMode.REPLACE), "needs the text"),
        (DoReseed(mode=ReseedMode.REPLACE, text=""), "needs the text"),
        (DoReseed(mode=ReseedMode.MODEL), "needs its name"),
        (DoReseed(mode=ReseedMode.REWIND), "needs the message"),
        (DoReseed(mode=ReseedMode.REWIND, to="#9"), "no message #9"),
        (DoReseed(mode=ReseedMode.REWIND, to="9" * 400), "no message 999"),
        (DoReseed(mode=ReseedMode.REWIND, to="\x1b[2J"), "no message"),
    ],
)
def test_what_does_not_fit_changes_nothing(do: DoReseed, why: str) -> None:
    puppet = remembering(Row.PAUSED, pending=True)
    turn = puppet.core.turn
    handled = reseed(puppet, do)
    assert handled.outcome is OutcomeKind.INVALID
    assert why in str(handled.reason)
    assert "\x1b" not in str(handled.reason)
    assert puppet.core.conversation.messages == REMEMBERED
    assert puppet.core.turn == turn
    assert puppet.core.overlay() is None


@pytest.mark.parametrize("ref", ["#2", "2", " 2 "])
def test_a_ref_is_written_with_its_mark_or_without(ref: str) -> None:
    puppet = remembering(Row.IDLE)
    assert reseed(puppet, DoReseed(mode=ReseedMode.REWIND, to=ref)).outcome is OutcomeKind.APPLIED
    assert puppet.core.conversation.messages == REMEMBERED[:2]
    assert puppet.of(Reseeded)[0].note == "before #2"


def test_an_open_request_of_a_paused_turn_is_withdrawn() -> None:
    puppet = remembering(Row.PAUSED_OPEN)
    reseed(puppet, ALL[ReseedMode.REPLACE])
    puppet.react()
    assert [e.state.value for e in puppet.of(RequestResolved)] == ["withdrawn"]
    assert puppet.state() is Lifecycle.PAUSED


def test_a_retry_does_not_take_up_mail_that_was_rewound() -> None:
    puppet = drive(Row.FAILED, pending=False)
    puppet.core.conversation.messages[:] = [ConversationMessage("user", "hello", "#1")]
    reseed(puppet, DoReseed(mode=ReseedMode.REWIND, to="#1"))
    puppet.send("hello again")
    puppet.operate(Op.RESUME)
    puppet.react()
    wakes = [signal for signal in puppet.told if isinstance(signal, Wake)]
    assert [item.ref for item in wakes[-1].mail] == ["#2"]


# --- compacting takes its time


def test_messages_wait_while_the_conversation_is_compacted() -> None:
    puppet = remembering(Row.IDLE)
    reseed(puppet, ALL[ReseedMode.COMPACT])
    (work,) = [effect for effect in puppet.effects if isinstance(effect, CompactNow)]
    assert list(work.messages) == REMEMBERED
    handled = puppet.send("meanwhile")
    assert handled.info["delivery"] == Delivery.QUEUED
    assert puppet.state() is Lifecycle.IDLE
    assert reseed(puppet, ALL[ReseedMode.CLEAR]).outcome is OutcomeKind.INVALID
    puppet.take(puppet.core.compacted(SHORT, puppet.now))
    assert puppet.state() is Lifecycle.RUNNING
    assert puppet.mail(str(handled.info["ref"])) == ["sent", "consumed"]
    assert not any(isinstance(signal, MailArrived) for signal in puppet.told)


def test_what_cannot_be_compacted_stays_and_it_is_said() -> None:
    puppet = remembering(Row.IDLE)
    reseed(puppet, ALL[ReseedMode.COMPACT])
    puppet.send("meanwhile")
    puppet.take(puppet.core.not_compacted("ValueError: too long", puppet.now))
    assert puppet.core.conversation.messages == REMEMBERED
    assert puppet.core.overlay() is None
    assert "ValueError: too long" in puppet.of(Notice)[0].text
    assert puppet.state() is Lifecycle.RUNNING
    assert puppet.of(Reseeded) == []


@pytest.mark.parametrize("late", ["compacted", "not_compacted"])
def test_what_comes_after_a_stop_changes_nothing(late: str) -> None:
    puppet = remembering(Row.IDLE)
    reseed(puppet, ALL[ReseedMode.COMPACT])
    puppet.operate(Op.STOP)
    puppet.react()
    assert puppet.state() is Lifecycle.STOPPED
    effects = (
        puppet.core.compacted(SHORT, puppet.now) if late == "compacted" else puppet.core.not_compacted("no", puppet.now)
    )
    assert effects == []
    assert puppet.core.conversation.messages == REMEMBERED


def test_a_pause_that_comes_meanwhile_holds() -> None:
    puppet = remembering(Row.IDLE)
    reseed(puppet, ALL[ReseedMode.COMPACT])
    puppet.operate(Op.PAUSE)
    puppet.send("meanwhile")
    puppet.take(puppet.core.compacted(SHORT, puppet.now))
    assert puppet.state() is Lifecycle.PAUSED
    puppet.operate(Op.RESUME)
    assert puppet.state() is Lifecycle.RUNNING


def test_nothing_to_compact() -> None:
    puppet = drive(Row.IDLE, pending=False)
    puppet.core.conversation.messages.clear()
    assert reseed(puppet, ALL[ReseedMode.COMPACT]).reason == "the conversation is empty"
