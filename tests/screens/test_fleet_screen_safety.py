"""What no key may ever do. The clock stands unless a test moves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.fleet.facts import RequestKey
from console.screens.quiet import WORD_MS
from tests.screens.stage import SessionKey, StagedHost
from tests.screens.staged import ALLOW, DENY, SURE, WIDE, Stage, staged
from watchfloor.protocol import model as m
from watchfloor.protocol.frames import Gone
from watchfloor.words import Contact, Primitive, RequestKind


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        yield stage


# --- decide on what was read ---------------------------------------------------------------


async def test_a_key_typed_ahead_does_not_decide_a_card_that_has_just_come_up(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    for key in "aa":
        await stage.press(key)
        assert "not armed yet" in stage.said
        assert not stage.sent
    await stage.show(ms=301)
    await stage.press("a")
    assert [intent.option for intent in stage.sent] == ["yes"]


async def test_approving_waits_again_after_the_card_has_changed_and_denying_does_not(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    stage.host.contact(Contact.SILENT)
    await stage.show()
    stage.host.contact(Contact.LIVE)
    await stage.show()
    await stage.press("a")
    assert "not armed yet" in stage.said
    assert not stage.sent
    await stage.press("d")
    assert [intent.option for intent in stage.sent] == ["no"]


async def test_a_newer_request_replaces_nothing_and_moves_nothing(stage: Stage) -> None:
    first = stage.host.session("beta")
    stage.host.ask("r1", "beta", options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    focused = stage.console.app.focused
    stage.host.session("alpha")
    stage.host.ask("r2", "alpha", options=(ALLOW, DENY))
    stage.host.ask("r3", "beta", options=(ALLOW, DENY))
    await stage.show(ms=1_000)
    assert stage.card() == RequestKey("local", "beta", "r1")
    assert stage.console.app.fleet_screen.selected == first
    assert stage.console.app.focused is focused
    await stage.press("a")
    assert [intent.request for intent in stage.sent] == ["r1"]


async def test_nothing_comes_up_by_itself_once_a_request_is_decided(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask("r1", options=(ALLOW, DENY))
    stage.host.ask("r2", options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("a")
    stage.host.decide("r1", "yes")
    await stage.show(ms=1_000)
    assert stage.card() == RequestKey("local", "s1", "r1")
    await stage.press("a", "d")
    assert "not armed yet" in stage.said
    assert len(stage.sent) == 1
    assert stage.card() == RequestKey("local", "s1", "r2")


async def test_what_does_not_fit_is_decided_only_after_its_end_was_seen(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(text="\n".join(f"echo {n}" for n in range(500)), options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("a")
    assert "read to the end first" in stage.said
    assert not stage.sent
    await stage.press("end")
    await stage.show(ms=1_000)
    await stage.press("a")
    assert len(stage.sent) == 1


async def test_a_decision_key_without_a_card_shows_the_card_first(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show(ms=1_000)
    await stage.press("a")
    assert stage.card() is not None
    assert "read it first, then a again" in stage.said
    assert not stage.sent


async def test_a_second_decision_is_not_sent_while_the_first_is_on_its_way(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("a")
    await stage.press("d")
    assert "on its way" in stage.said
    assert len(stage.sent) == 1


async def test_one_key_never_stands_for_a_wider_option(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(WIDE,))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("a")
    assert "no way to approve it just this once" in stage.said
    await stage.press("d")
    assert "no way to deny it" in stage.said
    assert "d deny" not in stage.console.footer
    await stage.show(ms=WORD_MS)
    await stage.press("A")
    assert "it stays in force after this session" in stage.console.asking
    await stage.press("1")
    assert not stage.sent  # the list has only just come up
    await stage.show(ms=1_000)
    await stage.press("1")
    assert "Always: stays in force after this session" in stage.console.asking
    await stage.show(ms=1_000)
    await stage.press("1", "enter")
    assert not stage.sent
    await stage.press("y")
    assert [intent.option for intent in stage.sent] == ["wide"]


async def test_an_option_that_wants_to_be_confirmed_is(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(SURE, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("a")
    assert "this cannot be undone" in stage.console.asking
    assert not stage.sent
    await stage.show(ms=1_000)
    await stage.press("y")
    assert [intent.option for intent in stage.sent] == ["sure"]


async def test_an_unsound_request_cannot_be_decided(stage: Stage) -> None:
    stage.host.session()
    subject = m.Subject(
        session="s1",
        attempt=1,
        id="r1",
        kind=RequestKind.APPROVAL,
        actions=(m.Action(tool="t", text="x"),),
        options=(ALLOW,),
    )
    request = m.RequestModel.ask(subject, asked_at=stage.clock.now)
    stage.host.open(request.model_copy(update={"digest": "sha256:" + "0" * 64}))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("a")
    assert "its digest" in stage.said
    assert not stage.sent


# --- text boxes own their keys -------------------------------------------------------------


async def test_every_letter_goes_into_an_open_text_box(stage: Stage) -> None:
    stage.host.session(lifecycle="running")
    await stage.show()
    await stage.press("s")
    text = "aAdDospPxrRXiq?yfjkgG"
    await stage.press(*("question_mark" if letter == "?" else letter for letter in text), "enter")
    assert [(intent.primitive, intent.text) for intent in stage.sent] == [(Primitive.SEND, text)]


async def test_a_text_box_outlives_what_it_was_for_and_sends_nothing(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("D", *"because")
    stage.host.decide("r1", "yes", by="bob")
    await stage.show()
    assert "nothing can be sent any more" in stage.console.asking
    await stage.press("X", "p", "enter")
    assert not stage.sent
    assert "deny s1: why?" in stage.console.asking
    await stage.press("escape")
    assert stage.console.asking == ""


async def test_a_confirmation_dies_with_the_attempt_that_it_names(stage: Stage) -> None:
    stage.host.session()
    await stage.show()
    await stage.press("X")
    await stage.show(ms=1_000)
    stage.host.summary("s1", attempt=2)
    await stage.show()
    assert "attempt 2 has begun" in stage.console.asking
    await stage.press("y")
    assert not stage.sent


# --- the cursor belongs to a session -------------------------------------------------------


async def test_no_key_lands_on_the_neighbour_of_a_session_that_has_gone(stage: Stage) -> None:
    for name in ("alpha", "beta", "gamma"):
        stage.host.session(name)
    await stage.show()
    await stage.console.select("beta")
    stage.host.tell(Gone(sessions=("beta",)))
    await stage.show()
    await stage.press("p")
    assert "what was selected is no longer shown" in stage.said
    assert not stage.sent
    await stage.press("j")
    await stage.press("p")
    assert len(stage.sent) == 1


async def test_the_cursor_stays_with_its_session_when_others_come_to_need_somebody(stage: Stage) -> None:
    for name in ("alpha", "beta", "gamma"):
        stage.host.session(name)
    await stage.show()
    await stage.console.select("alpha")
    stage.host.ask("r1", "gamma", options=(ALLOW, DENY))
    await stage.show(ms=1_000)
    await stage.press("p")
    assert [intent.target.session for intent in stage.sent] == ["alpha"]


async def test_next_goes_by_waiting_time_across_sources_and_children(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        far = StagedHost(stage.console.app, stage.clock, "far")
        stage.host.session("top")
        stage.host.session("child", parent="top")
        far.session("other")
        for host, session, id in ((far, "other", "r2"), (stage.host, "child", "r1"), (stage.host, "top", "r3")):
            stage.clock.now += 1_000
            host.ask(id, session, options=(ALLOW, DENY))
        await stage.show()
        seen = []
        for _ in range(4):
            await stage.press("i")
            seen.append(key.request if (key := stage.card()) else None)
        assert seen == ["r2", "r1", "r3", "r2"]
        assert stage.console.app.fleet_screen.selected == SessionKey("far", "other")
