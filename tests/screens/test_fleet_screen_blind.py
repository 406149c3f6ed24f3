"""Keys that nobody meant: typed on behind a text, typed ahead, or aimed at what is not to be seen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from textual import events

from console.screens.quiet import QUIET_MS, WORD_MS
from console.screens.too_small import TooSmall
from tests.screens.stage import SMALL
from tests.screens.staged import ALLOW, DENY, WIDE, Stage, staged
from tests.screens.widget_kit import lines
from watchfloor.protocol import model as m
from watchfloor.words import Contact, OptionKind, OutcomeKind, Primitive, Scope
from widgets.request_card import RequestCard


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        yield stage


async def carded(stage: Stage, *options: m.Option) -> None:
    """A session that asks for an approval, and its card before the operator, armed."""
    stage.host.session(lifecycle="running")
    stage.host.ask(options=options or (ALLOW, DENY))
    await stage.show()
    await stage.press("i", "end")
    await stage.show(ms=1_000)


# --- in one tick ---------------------------------------------------------------------------


async def test_of_one_key_twice_in_one_tick_one_decides_and_the_other_says_why_not(stage: Stage) -> None:
    await carded(stage)
    for _ in range(2):
        # Nothing else of the application runs in between.
        stage.console.app.fleet_screen.action_perform("approve")
    assert "your decision is on its way already" in stage.said
    await stage.show()
    assert [intent.option for intent in stage.sent] == ["yes"]
    assert len(stage.console.app.hub.fleet.trails) == 1


@pytest.mark.parametrize(("first", "second"), [("approve", "deny"), ("deny", "approve")])
async def test_two_keys_in_one_tick_are_the_letters_of_a_text_and_decide_nothing(
    stage: Stage, first: str, second: str
) -> None:
    await carded(stage)
    for key in (first, second):
        stage.console.app.fleet_screen.action_perform(key)
    assert f"{first} taken back, {second}: you were writing just now" in stage.said
    fleet = stage.console.app.hub.fleet
    [trail], [request] = fleet.trails.values(), fleet.requests.values()
    assert (trail.verb, trail.outcome, request.open) == (first, OutcomeKind.UNDELIVERED, True)


# --- typed on behind a text ----------------------------------------------------------------


async def type_on(stage: Stage, text: str, ms: int = 90) -> None:
    """Type as people do, a key every `ms` milliseconds."""
    for letter in text:
        stage.clock.now += ms
        await stage.press("space" if letter == " " else letter)


@pytest.mark.parametrize("end", ["enter", "escape"])
async def test_who_types_on_behind_a_text_box_decides_nothing(stage: Stage, end: str) -> None:
    await carded(stage)
    await stage.press("s")
    await type_on(stage, "please wait")
    await stage.press(end)
    await type_on(stage, "maybe approve and deny Xy Rx")
    assert [intent.primitive for intent in stage.sent] == ([Primitive.SEND] if end == "enter" else [])
    assert stage.console.asking == ""
    assert "you were writing just now: keys act again 0.7 s after" in stage.said
    await stage.show(ms=QUIET_MS)
    assert "you were writing" in stage.said, "it can still be read when the pause is over"
    await stage.press("a")
    assert [intent.option for intent in stage.sent][-1:] == ["yes"]


async def test_each_key_begins_the_pause_once_more_and_looking_around_works_at_once(stage: Stage) -> None:
    stage.host.session("alpha")
    stage.host.session("beta")
    await stage.show()
    await stage.console.select("alpha")
    await stage.press("s", "x", "escape")
    await stage.press("j")
    selected = stage.console.app.fleet_screen.selected
    assert selected is not None
    assert selected.session == "beta"
    for key in ("p", "m", "k", "p"):
        await stage.show(ms=QUIET_MS - 100)
        await stage.press(key)
    assert not stage.sent
    await stage.show(ms=QUIET_MS)
    await stage.press("p")
    assert [intent.target.session for intent in stage.sent] == ["alpha"]


@pytest.mark.parametrize("opens", ["s", "D", "colon", "slash"])
async def test_a_box_that_is_left_as_it_was_opened_leaves_no_pause(stage: Stage, opens: str) -> None:
    await carded(stage)
    await stage.press(opens, "escape")
    await stage.show(ms=WORD_MS)
    await stage.press("p")
    assert [intent.primitive for intent in stage.sent] == [Primitive.PAUSE]


@pytest.mark.parametrize("opens", ["s", "D", "colon", "slash"])
async def test_a_box_in_which_something_was_written_and_deleted_leaves_the_pause(stage: Stage, opens: str) -> None:
    await carded(stage)
    await stage.press(opens, "e", "backspace", "escape")
    await stage.show(ms=WORD_MS)
    await stage.press("p")
    assert "keys act again 0.7 s after the last one" in stage.said
    assert not stage.sent


# --- written where nothing is asked for ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("the agent asks to pause, deny or resume it, X y", 0),
        ("the agent asks to pause, deny or resume it, X y", 250),
        ("look again, then stop it please", 90),
    ],
)
async def test_a_sentence_starts_nothing(stage: Stage, text: str, ms: int) -> None:
    await carded(stage)
    await type_on(stage, text, ms)
    assert not stage.sent
    assert stage.console.asking == ""
    await stage.press("p")
    assert "you were writing just now" in stage.said
    await stage.show(ms=QUIET_MS)
    await stage.press("a")
    assert len(stage.sent) == 1


async def test_a_sentence_that_begins_with_a_key_does_no_more_than_that(stage: Stage) -> None:
    await carded(stage)
    await type_on(stage, "pause and deny this Xy")
    assert [intent.primitive for intent in stage.sent] == [Primitive.PAUSE]
    assert stage.console.asking == ""


@pytest.mark.parametrize("keys", ["jjjp", "jjjjGgp", "ip", "pp", "vvvp", "jkjkx"])
async def test_a_key_that_is_meant_acts_at_once_behind_any_others(stage: Stage, keys: str) -> None:
    stage.host.session()
    await stage.show()
    await type_on(stage, keys, ms=40)
    assert stage.sent


@pytest.mark.parametrize(
    ("keys", "ms"),
    [
        (["i", "a"], 400),
        (["j", "j", "k", "i", "a"], 350),
        (["i", "space", "space", "a"], 200),
        (["i", "space", "G", "a"], 200),
        (["space", "space", "i", "space", "a"], 310),
        (["d"], 0),
        (["h", "h", "h", "a"], 400),
    ],
)
async def test_who_works_fast_is_never_taken_for_one_who_writes(tmp_path: Path, keys: list[str], ms: int) -> None:
    async with staged(tmp_path) as stage:
        stage.host.session(lifecycle="running")
        stage.host.ask(options=(ALLOW, DENY))
        await stage.show()
        if keys[0] != "i" and "i" not in keys:
            await stage.press("i")
            await stage.show(ms=1_000)
        for key in keys:
            await stage.show(ms=ms)
            await stage.press(key)
        assert [intent.primitive for intent in stage.sent] == [Primitive.APPROVE], stage.said


async def test_keys_that_are_pressed_in_turn_are_no_word(stage: Stage) -> None:
    stage.host.session()
    await stage.show()
    await type_on(stage, "ipipip", ms=200)
    assert [intent.primitive for intent in stage.sent] == [Primitive.PAUSE] * 3


async def test_a_text_box_whose_request_has_ended_leaves_the_same_pause(stage: Stage) -> None:
    await carded(stage)
    await stage.press("D", *"bec")
    stage.host.decide("r1", "yes", by="bob")
    await stage.show()
    await stage.press("enter", "escape")
    await type_on(stage, "app")
    assert not stage.sent
    assert "you were writing" in stage.said


async def test_a_choice_behind_a_text_waits_for_the_pause_as_well(stage: Stage) -> None:
    stage.host.session()
    fields = [
        m.FormField.model_validate({"name": "why", "type": "text", "label": "Why"}),
        m.FormField.model_validate({"name": "sure", "type": "bool", "label": "Sure"}),
    ]
    stage.host.question(fields=fields)
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("o", *"because", "enter")
    await type_on(stage, "of yesterday y")
    assert '"of yesterday y" is none of the choices: only y or n, alone' in stage.console.asking
    await stage.press("ctrl+u", "y", "enter")
    assert "you were writing just now" in stage.console.asking
    assert not stage.sent
    await stage.show(ms=QUIET_MS)
    await stage.press("enter")
    assert "enter sends: Why because; Sure yes" in stage.console.asking
    await stage.press("enter")
    assert "too soon: again" in stage.console.asking
    assert not stage.sent
    await stage.show(ms=QUIET_MS)
    await stage.press("enter")
    assert [intent.fields for intent in stage.sent] == [{"why": "because", "sure": True}]


async def test_what_is_typed_behind_pasted_text_decides_nothing(stage: Stage) -> None:
    await carded(stage)
    focused = stage.console.app.focused
    assert focused is not None
    focused.post_message(events.Paste("echo"))
    await stage.show()
    await stage.press("a")
    assert not stage.sent
    assert "you were writing" in stage.said


# --- what cannot be seen -------------------------------------------------------------------


async def test_on_a_screen_that_is_too_small_nothing_intervenes_and_each_key_says_so(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(39, 30)) as stage:
        stage.host.session(lifecycle="running")
        stage.host.ask(options=(ALLOW, DENY))
        await stage.show(ms=1_000)
        place = stage.console.app.fleet_screen.query_one(TooSmall)
        for key in "aAdDspPxrRX":
            await stage.press(key)
            text = " ".join(" ".join(line.split()) for line in lines(place))
            assert f"{key} " in text
            assert "nothing can be read here" in text
            assert stage.console.asking == ""
        assert not stage.sent
        await stage.press("q")
        assert "quit?" in stage.console.asking


async def test_that_it_is_too_small_stands_in_the_middle(tmp_path: Path) -> None:
    async with staged(tmp_path, size=(36, 11)) as stage:
        await stage.show()
        drawn = lines(stage.console.app.fleet_screen.query_one(TooSmall))
        (at,) = (y for y, line in enumerate(drawn) if "too small" in line)
        assert abs(at - (len(drawn) - 1 - at)) <= 1
        assert drawn[at].rstrip() == " " * 5 + "too small: 40x12 at least"


async def test_a_dialog_that_does_not_fit_any_more_takes_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session(lifecycle="running")
        await stage.show()
        await stage.press("X")
        await stage.show(ms=1_000)
        await stage.console.pilot.resize_terminal(30, 8)
        await stage.show(ms=1_000)
        await stage.press("y", "K")
        assert not stage.sent
        await stage.console.pilot.resize_terminal(*SMALL)
        await stage.show(ms=1_000)
        await stage.press("y")
        assert [intent.primitive for intent in stage.sent] == [Primitive.STOP]


async def test_a_text_box_that_does_not_fit_any_more_sends_nothing_and_keeps_the_text(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session(lifecycle="running")
        await stage.show()
        await stage.press("s", *"hello")
        await stage.console.pilot.resize_terminal(30, 8)
        await stage.show()
        await stage.press("enter")
        assert not stage.sent
        await stage.console.pilot.resize_terminal(*SMALL)
        await stage.show()
        await stage.press("enter")
        assert [intent.text for intent in stage.sent] == ["hello"]


async def test_what_stands_before_the_roster_is_put_away_before_a_key_steers(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        stage.host.session(lifecycle="running")
        await stage.show()
        await stage.press("f", "p")
        assert "look first, then p again" in stage.said
        assert not stage.sent
        await stage.press("p")
        assert len(stage.sent) == 1


# --- the list of options -------------------------------------------------------------------


def option(n: int, **rest: object) -> m.Option:
    return m.Option.model_validate({"id": f"o{n}", "label": f"Option {n}", "kind": OptionKind.ALLOW, **rest})


async def test_only_a_choice_that_is_wholly_in_sight_is_taken_by_its_key(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        await carded(stage, *(option(n, note="as it says") for n in range(1, 10)))
        await stage.press("A")
        await stage.show(ms=1_000)
        await stage.press("9")
        assert "it was not in sight: read it first, then again" in stage.console.asking
        assert "Option 9" in stage.console.asking
        await stage.press("9")
        assert "too soon" in stage.console.asking
        assert not stage.sent
        await stage.show(ms=1_000)
        await stage.press("9")
        assert [intent.option for intent in stage.sent] == ["o9"]


async def test_a_choice_that_is_higher_than_the_list_is_read_to_its_end_first(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        grants = [f"grant {n}" for n in range(40)]
        await carded(stage, ALLOW, option(1, scope=Scope.SESSION, grants=grants))
        await stage.press("A")
        pages = 0
        while not stage.sent:
            await stage.show(ms=1_000)
            await stage.press("2")
            pages += 1
            assert pages < 12
        assert pages >= 3


async def test_what_enter_would_take_has_to_be_in_sight(tmp_path: Path) -> None:
    async with staged(tmp_path, size=SMALL) as stage:
        await carded(stage, *(option(n, note="as it says") for n in range(1, 10)))
        await stage.press("A", "down")
        await stage.show(ms=1_000)
        await stage.press("pagedown", "pagedown", "enter")
        assert not stage.sent
        assert "it was not in sight" in stage.console.asking
        await stage.show(ms=1_000)
        await stage.press("enter")
        assert [intent.option for intent in stage.sent] == ["o1"]


@pytest.mark.parametrize(
    ("wide", "says"),
    [
        (option(1, scope=Scope.GLOBAL, grants=["git *"]), ("Option 1: everywhere", "grants: git *")),
        (option(1, scope=Scope.AGENT), ("Option 1: for this agent, in all its sessions",)),
        (WIDE, ("Always: stays in force after this session",)),
        (
            m.Option(id="never", label="Never", kind=OptionKind.DENY, scope=Scope.GLOBAL, persists=True),
            ("deny s1", "Never: everywhere, stays in force after this session", "yes, deny"),
        ),
    ],
)
async def test_what_outlives_the_session_is_confirmed_with_another_key_and_named(
    stage: Stage, wide: m.Option, says: tuple[str, ...]
) -> None:
    await carded(stage, wide, DENY)
    await stage.press("A")
    await stage.show(ms=1_000)
    await stage.press("1")
    for line in says:
        assert line in stage.console.asking
    await stage.show(ms=1_000)
    await stage.press("1", "enter", "a")
    assert not stage.sent
    await stage.press("y")
    assert [intent.option for intent in stage.sent] == [wide.id]


# --- the clock -----------------------------------------------------------------------------


async def test_a_clock_that_is_set_back_disarms_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await carded(stage)
        stage.clock.set_by = -3_600_000
        stage.host.contact(Contact.SILENT)
        stage.host.contact(Contact.LIVE)
        await stage.show(ms=1_000)
        await stage.press("a")
        assert [intent.option for intent in stage.sent] == ["yes"]
        await stage.show(ms=1_000)
        await stage.press("X")
        await stage.show(ms=1_000)
        await stage.press("y")
        assert [intent.primitive for intent in stage.sent][1:] == [Primitive.STOP]


async def test_a_page_that_lay_over_the_card_rearms_it(stage: Stage) -> None:
    await carded(stage)
    await stage.press("question_mark")
    await stage.console.pilot.pause()
    await stage.console.press("escape")
    await stage.show()
    for key in "ad":
        await stage.press(key)
        assert "not armed yet" in stage.said
    assert not stage.sent
    await stage.show(ms=301)
    await stage.press("a")
    assert len(stage.sent) == 1


async def test_what_has_changed_and_is_not_painted_yet_is_not_decided(stage: Stage) -> None:
    await carded(stage)
    stage.host.contact(Contact.SILENT)
    await stage.show()
    stage.host.contact(Contact.LIVE)
    # Before the screen has painted it.
    stage.console.app.fleet_screen.action_perform("approve")
    assert "not armed yet" in stage.said
    assert not stage.console.app.hub.fleet.trails


# --- what was written ----------------------------------------------------------------------


async def test_a_text_that_the_gate_refuses_is_there_when_the_same_is_asked_again(stage: Stage) -> None:
    stage.host.session(lifecycle="running")
    await stage.show()
    await stage.press("s", *"hello")
    stage.host.contact(Contact.SILENT)
    await stage.press("enter")
    assert not stage.sent
    assert "has been silent" in stage.said
    stage.host.contact(Contact.LIVE)
    await stage.show(ms=1_000)
    await stage.press("s", "enter")
    assert [intent.text for intent in stage.sent] == ["hello"]
    await stage.show(ms=1_000)
    await stage.press("s", "enter")
    assert "nothing is written" in stage.console.asking


async def test_answers_that_the_gate_refuses_are_there_when_the_same_is_asked_again(stage: Stage) -> None:
    stage.host.session()
    kinds = {"why": "text", "size": "number", "key": "secret"}
    fields = [m.FormField.model_validate({"name": name, "type": kind, "label": name}) for name, kind in kinds.items()]
    stage.host.question(fields=fields)
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("o", *"because", "enter", *"40", "enter", *"s3cret")
    await stage.press("enter")
    await stage.show(ms=1_000)
    stage.host.contact(Contact.SILENT)
    await stage.press("enter")
    assert not stage.sent
    stage.host.contact(Contact.LIVE)
    await stage.show()
    await stage.show(ms=1_000)
    # Of a secret nothing is kept.
    await stage.press("o", "enter", "enter", *"other", "enter")
    await stage.show(ms=1_000)
    await stage.press("enter")
    assert [intent.fields for intent in stage.sent] == [{"why": "because", "size": 40, "key": "other"}]


FORM = [
    m.FormField.model_validate({"name": "city", "type": "text", "label": "City"}),
    m.FormField.model_validate({"name": "count", "type": "number", "label": "Count"}),
    m.FormField.model_validate({"name": "gift", "type": "bool", "label": "Gift"}),
]


async def form(stage: Stage) -> None:
    """Fill in the form up to its yes or no."""
    stage.host.session()
    stage.host.question(fields=FORM)
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("o", *"Ghent", "enter", *"12", "enter")
    await stage.show(ms=1_000)
    assert "Gift (3 of 3)" in stage.console.asking


async def test_a_sentence_is_no_answer_to_a_yes_or_no(stage: Stage) -> None:
    await form(stage)
    await type_on(stage, "not yet")
    assert '"not yet" is none of the choices: only y or n, alone' in stage.console.asking
    await stage.press("enter")
    assert "Gift (3 of 3)" in stage.console.asking
    assert not stage.sent
    await stage.press("ctrl+u", "enter")
    assert "nothing is chosen" in stage.console.asking
    await stage.press("n")
    assert "enter  takes no" in stage.console.asking
    await stage.show(ms=1_000)
    await stage.press("enter")
    assert "enter sends: City Ghent; Count 12; Gift no" in stage.console.asking
    assert not stage.sent
    await stage.show(ms=1_000)
    await stage.press("enter")
    assert [intent.fields for intent in stage.sent] == [{"city": "Ghent", "count": 12, "gift": False}]


async def test_a_key_goes_back_to_the_field_before(stage: Stage) -> None:
    await form(stage)
    await stage.press("n", "enter")
    assert "enter sends" in stage.console.asking
    await stage.press("shift+tab")
    assert "enter  takes no" in stage.console.asking, "what was chosen is kept"
    await stage.press("shift+tab")
    assert "Count (2 of 3)" in stage.console.asking
    # What is typed stands in the place of what was there.
    await stage.press("5", "shift+tab")
    assert "City (1 of 3)" in stage.console.asking
    await stage.press("shift+tab")
    assert "City (1 of 3)" in stage.console.asking
    await stage.press("enter", "enter")
    await stage.show(ms=1_000)
    await stage.press("enter")
    assert "enter sends: City Ghent; Count 5; Gift no" in stage.console.asking


async def test_what_was_filled_in_is_shown_when_the_form_is_left(stage: Stage) -> None:
    await form(stage)
    await stage.press("n", "enter", "escape")
    await stage.show(ms=1_000)
    card = " ".join(" ".join(lines(stage.console.app.fleet_screen.query_one(RequestCard))).split())
    assert "Gift yours no" in card
    assert "nothing entered yet" not in card
    await stage.press("o", "enter", *"55", "enter")
    await stage.show(ms=1_000)
    await stage.press("enter")
    assert "enter sends: City Ghent; Count 55; Gift no" in stage.console.asking


async def test_an_answer_that_is_required_is_asked_for_until_there_is_one(stage: Stage) -> None:
    stage.host.session()
    choices = [{"value": "a", "label": "A"}]
    stage.host.question(
        fields=[m.FormField.model_validate({"name": "which", "type": "many", "label": "Which", "choices": choices})]
    )
    await stage.show()
    await stage.press("i")
    await stage.show(ms=1_000)
    await stage.press("o")
    await stage.show(ms=1_000)
    await stage.press("enter")
    assert "an answer is required" in stage.console.asking
    await stage.press("1", "enter")
    assert [intent.fields for intent in stage.sent] == [{"which": ["a"]}]
