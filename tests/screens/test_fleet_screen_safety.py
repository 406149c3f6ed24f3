"""What no key may ever do, and what the screen owes to whoever reads it. The clock stands unless a test moves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from console.fleet.facts import Intent, RequestKey
from console.fleet.state import Trail
from tests.screens.live import Console
from tests.screens.stage import LARGE, SMALL, Clock, SessionKey, StagedHost, console, shown
from tests.screens.widget_kit import check_harmless, lines, strips
from watchfloor.protocol import model as m
from watchfloor.protocol.frames import Gone
from watchfloor.words import Contact, OptionKind, Primitive, RequestKind, Scope
from widgets.event_log import EventLog
from widgets.roster import Roster

ALLOW = m.Option(id="yes", label="Allow", kind=OptionKind.ALLOW)
WIDE = m.Option(id="wide", label="Always", kind=OptionKind.ALLOW, scope=Scope.SESSION, persists=True)
SURE = m.Option(id="sure", label="Allow it", kind=OptionKind.ALLOW, confirm=True, note="this cannot be undone")
DENY = m.Option(id="no", label="Deny", kind=OptionKind.DENY)


@dataclass
class Stage:
    """A console with a scripted host; what it would send is kept in `sent`."""

    console: Console
    clock: Clock
    host: StagedHost
    sent: list[Intent] = field(default_factory=list)

    async def show(self, ms: int = 0) -> None:
        self.clock.now += ms
        await shown(self.console.pilot, self.console.app)

    async def press(self, *keys: str) -> None:
        await self.console.press(*keys)
        await self.show()

    @property
    def said(self) -> str:
        return self.console.notice or self.console.trail

    def card(self) -> RequestKey | None:
        made = self.console.card.card
        key = made.key if made is not None and self.console.carded() else None
        assert key is None or isinstance(key, RequestKey)
        return key


@asynccontextmanager
async def staged(folder: Path, size: tuple[int, int] = LARGE, **rest: Any) -> AsyncIterator[Stage]:
    clock = Clock()
    app = console(clock, folder=folder, **rest)
    async with app.run_test(size=size) as pilot:
        stage = Stage(Console(app, pilot), clock, StagedHost(app, clock))

        async def submit(intent: Intent) -> Trail:
            stage.sent.append(intent)
            app.take(app.hub.fleet.requested(intent, clock.now))
            return app.hub.fleet.trails[intent.id]

        app.hub.submit = submit  # type: ignore[method-assign]
        yield stage


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
    for key in "ad":
        await stage.press(key)
        assert "armed in" in stage.said
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
    assert "armed in" in stage.said
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
    assert "the request has ended" in stage.said
    assert len(stage.sent) == 1
    await stage.press("i")
    assert stage.card() == RequestKey("local", "s1", "r2")


async def test_what_does_not_fit_is_decided_only_after_its_end_was_seen(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(text="\n".join(f"echo {n}" for n in range(500)), options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("a")
    assert "seen the end" in stage.said
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
    await stage.press("A")
    assert "it stays in force after this session" in stage.console.asking
    await stage.press("1")
    assert not stage.sent  # the list has only just come up
    await stage.show(ms=1_000)
    await stage.press("1")
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
    assert "the session that was selected is gone" in stage.said
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


# --- honest state --------------------------------------------------------------------------


async def test_a_source_that_is_not_heard_is_not_commanded(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    stage.host.contact(Contact.LOST, "connection reset", tries=2)
    await stage.show(ms=1_000)
    for key in ("a", "p", "X"):
        await stage.press(key)
        assert "contact with local was lost" in stage.said
    assert not stage.sent
    top = "\n".join(lines(stage.console.app.fleet_screen.query_one("#top")))
    assert "local lost 0:01, last known state shown" in top


@pytest.mark.parametrize(
    ("contact", "why", "says"),
    [
        (Contact.CONNECTING, "", "connecting to local"),
        (Contact.REFUSED, "401: wrong token", "local refused: 401: wrong token"),
        (Contact.LOST, "connection refused", "local cannot be reached: connection refused, try 3"),
    ],
)
async def test_an_empty_roster_says_why(tmp_path: Path, contact: Contact, why: str, says: str) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.contact(contact, why, tries=3)
        await stage.show()
        assert says in "\n".join(lines(stage.console.app.fleet_screen.query_one(Roster)))


async def test_an_untouched_screen_says_who_waits(stage: Stage) -> None:
    stage.host.session("alpha")
    stage.host.session("beta")
    stage.host.ask("r1", "alpha", options=(ALLOW, DENY))
    stage.host.ask("r2", "alpha", options=(ALLOW, DENY))
    stage.host.ask("r3", "beta", options=(ALLOW, DENY))
    await stage.show()
    assert stage.said == "2 agents wait for you: i"
    await stage.press("j")
    assert stage.said == ""


async def test_the_footer_holds_what_is_advertised_and_greys_what_is_blocked(stage: Stage) -> None:
    stage.host.session(
        capabilities={"pause": {}, "resume": {}, "stop": {}},
        lifecycle="failed",
        blocked={"pause": "the attempt has failed"},
        controls={"resume": "Retry (attempt 2)"},
    )
    await stage.show()
    footer = stage.console.footer
    assert "p pause: the attempt has failed" in footer
    assert "r Retry (attempt 2)" in footer
    assert "X stop" in footer
    for absent in ("s send", "a approve", "o answer", "x interrupt", "P pause now", "R clear"):
        assert absent not in footer
    await stage.press("p")
    assert stage.said == "p pause: the attempt has failed"
    assert not stage.sent


async def test_the_help_lists_every_key_and_why_one_is_missing(stage: Stage) -> None:
    stage.host.session(capabilities={"send": {}})
    await stage.show()
    await stage.press("question_mark")
    await stage.console.pilot.pause()
    screen = stage.console.app.screen
    text = "\n".join(row[1] for row in screen.query_one("Facts").facts)  # type: ignore[attr-defined]
    assert text.count("not now: this session does not offer pause") == 2
    assert "write a message to the agent" in text
    await stage.console.press("escape")
    assert stage.console.app.screen is stage.console.app.fleet_screen


async def test_leaving_says_what_ends_with_the_console(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session("mine", owned=True)
        stage.host.session("wire", traits={"ends_with_client": True})
        stage.host.session("other")
        stage.host.session("over", lifecycle="completed")
        await stage.show()
        await stage.press("q")
        assert "with this console end mine, wire" in stage.console.asking
        assert "without it go on 1 session elsewhere" in stage.console.asking


async def test_the_exact_action_is_copied_as_it_was_cleaned(stage: Stage) -> None:
    stage.host.session()
    stage.host.ask(text="rm -rf \x1b[31mbuild\x07 && make", options=(ALLOW, DENY))
    await stage.show()
    await stage.press("i", "y")
    copied = stage.console.app.clipboard
    assert copied.startswith("rm -rf ")
    assert "make" in copied
    assert copied.isprintable()
    assert stage.said == f"copied {len(copied)} characters"


# --- outside text is hostile ---------------------------------------------------------------

HOSTILE = "[red]a[/red] [@click=app.quit]b[/] [/nope] \x1b]52;c;eA==\x07 \x1b[2J \x9b31m \u202etxt\u2066 \u200b"


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_text_from_outside_is_drawn_as_it_is_and_acts_on_nothing(tmp_path: Path, size: tuple[int, int]) -> None:
    async with staged(tmp_path, size=size) as stage:
        host = stage.host
        host.session(HOSTILE, name=HOSTILE, why=HOSTILE, error=HOSTILE, cwd=HOSTILE, labels={HOSTILE: HOSTILE})
        host.events(HOSTILE, {"kind": "message", "text": HOSTILE}, {"kind": "tool_call", "call": "c", "name": HOSTILE})
        option = m.Option(
            id=HOSTILE, label=HOSTILE, kind=OptionKind.ALLOW, grants=(HOSTILE,), note=HOSTILE, confirm=True
        )
        host.ask(HOSTILE, HOSTILE, text=HOSTILE, options=(option, DENY), about=HOSTILE)
        host.contact(Contact.LIVE, HOSTILE)
        await stage.show()
        _check_all(stage)
        await stage.press("i")
        await stage.show(ms=1_000)
        _check_all(stage)
        for key in ("A", "s", "X", "q"):
            await stage.press(key)
            _check_all(stage)
            await stage.press("escape")
        await stage.press("a")
        _check_all(stage)
        assert stage.console.app.is_running


def _check_all(stage: Stage) -> None:
    for widget in stage.console.app.fleet_screen.query(
        "StatusBar, Roster, EventLog, RequestCard, Facts, Rule, Choices"
    ):
        if widget.display and widget.size.width:
            check_harmless(strips(widget), widget.size.width)


async def test_plain_terminals_get_plain_characters(tmp_path: Path) -> None:
    async with staged(tmp_path, ascii=True) as stage:
        stage.host.session("top", lifecycle="waiting")
        stage.host.session("child", parent="top")
        stage.host.ask("r1", "top", text="x" * 300, options=(ALLOW, DENY))
        stage.host.session("watched", capabilities={})
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        assert stage.console.text().isascii()


# --- sizes ---------------------------------------------------------------------------------


async def test_a_terminal_too_small_to_read_in_decides_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(30, 8)) as stage:
        stage.host.session()
        stage.host.ask(options=(ALLOW, DENY))
        await stage.show()
        await stage.press("i")
        await stage.show(ms=1_000)
        for key in "ad":
            await stage.press(key)
        assert not stage.sent
        assert "too small" in "\n".join(lines(stage.console.app.fleet_screen.query_one("#too-small")))


async def test_facts_take_the_screen_where_there_is_no_room_beside(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session(cwd="/srv/app")
        await stage.show()
        screen = stage.console.app.fleet_screen
        assert _displayed(stage, "#facts", "#main") == [False, True]
        await stage.press("f")
        assert "/srv/app" in "\n".join(lines(screen.query_one("#facts")))
        assert _displayed(stage, "#facts", "#main") == [True, False]
        await stage.press("escape")
        assert _displayed(stage, "#facts", "#main") == [False, True]


def _displayed(stage: Stage, *selectors: str) -> list[bool]:
    return [bool(stage.console.app.fleet_screen.query_one(selector).display) for selector in selectors]


async def test_tab_goes_from_part_to_part_and_keys_move_what_they_are_on(stage: Stage) -> None:
    for n in range(60):
        stage.host.session(f"s{n:02}")
    stage.host.events("s00", *({"kind": "message", "text": f"line {n}"} for n in range(200)))
    await stage.show()
    screen = stage.console.app.fleet_screen
    log = screen.query_one(EventLog)
    await stage.press("tab")
    assert stage.console.app.focused is log
    following = [log.following]
    await stage.press("k")
    following.append(log.following)
    await stage.press("end")
    following.append(log.following)
    assert following == [True, False, True]
    assert screen.selected == SessionKey("local", "s00")
    await stage.press("shift+tab")
    await stage.press("pagedown")
    assert screen.selected != SessionKey("local", "s00")
