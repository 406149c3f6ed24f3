"""The request card: what stands where, and what counts as seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.screen import ModalScreen
from textual.widgets import Static

from console.fleet.views.card_action import Flagged
from tests.screens.stage import until
from tests.screens.widget_kit import Action, Bench, Card, Field, Option, check_harmless, lines, strips, texts, tones
from watchfloor.text import Clean
from widgets.card_layout import TEXT_AT, body_lines, content_of, option_lines
from widgets.marks import UNICODE_MARKS
from widgets.request_card import RequestCard

SIZE = (80, 16)


def long_card(count: int = 100, **values: object) -> Card:
    script = tuple(Clean(f"step {i}") for i in range(count))
    return replace(Card(), actions=(Action(lines=script, size=Clean(f"{count} lines")),), **values)  # type: ignore[arg-type]


def seen(app: Bench) -> list[tuple[str, object, str]]:
    return [
        (type(message).__name__, message.request_key, message.digest)
        for message in app.seen
        if isinstance(message, RequestCard.Shown | RequestCard.EndSeen)
    ]


def ended(card: RequestCard) -> bool:
    return card.end_seen


def rule_at(card: RequestCard) -> int:
    return next(y for y, text in enumerate(lines(card)) if text and set(text) == {"─"})


# ---------------------------------------------------------------- the end of what is run


HIDING: dict[str, dict[str, Any]] = {
    "a long description": {"description": [Clean(f"word {n}") for n in range(40)]},
    "many flags": {"flags": [(Clean(f"doubt {n}"), "attention") for n in range(40)]},
    "a long folder": {},
    "members that are not known": {"strange": Clean("40 members"), "unknown": [Clean(f"m{n} = 1") for n in range(40)]},
}


@pytest.mark.parametrize("below", HIDING)
async def test_the_end_of_an_action_is_seen_however_much_stands_below_it(below: str) -> None:
    script = tuple(Clean(f"step {n}") for n in range(60))
    folder = Clean("/srv/" + "deep/" * 400) if below == "a long folder" else Clean("/srv")
    card = RequestCard(replace(Card(), actions=(Action(lines=script, cwd=folder),), **HIDING[below]))
    app = Bench(card)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        card.jump(card.max_scroll_y)
        await pilot.pause()
        await pilot.pause()
        assert not any("step 59" in text for text in lines(card))
        assert not ended(card)
        card.jump(card.next_end)
        await pilot.pause()
        await pilot.pause()
        assert any("step 59" in text for text in lines(card))
        while not ended(card) and card.next_end != card.scroll_offset.y:
            card.jump(card.next_end)
            await pilot.pause()
            await pilot.pause()
        assert ended(card)
        assert card.next_end == card.max_scroll_y


async def test_of_several_actions_the_end_of_each_is_seen() -> None:
    actions = [Action(lines=tuple(Clean(f"{name} {n}") for n in range(30))) for name in ("one", "two", "three")]
    card = RequestCard(replace(Card(), actions=tuple(actions)))
    async with Bench(card).run_test(size=(80, 24)) as pilot:
        seen: list[str] = []
        for _ in range(4):
            if ended(card):
                break
            card.jump(card.next_end)
            await pilot.pause()
            await pilot.pause()
            seen += [text for text in lines(card) if text.endswith(" 29")]
        assert [text.split()[-2] for text in seen][:3] == ["one", "two", "three"]
        assert ended(card)


@pytest.mark.parametrize("size", [(80, 24), (80, 10), (40, 12)])
async def test_places_of_risks_and_strokes_do_not_hide_where_a_text_ends(size: tuple[int, int]) -> None:
    text = Clean("echo " + "harmless " * 200 + "; rm -rf ~/work")
    at = text.index("rm -rf")
    flags = [Flagged(0, at + n, at + n + 2, Clean(f"reason {n}"), "failed") for n in range(0, 12, 3)]
    card = RequestCard(replace(Card(), actions=(Action(lines=(text,), flagged=tuple(flags)),)))
    async with Bench(card).run_test(size=size) as pilot:
        for _ in range(12):
            if ended(card):
                break
            card.jump(card.next_end)
            await pilot.pause()
            await pilot.pause()
            if "work" in "".join(lines(card)):
                break
        else:
            raise AssertionError("its end never came")
        assert "~/work" in "".join(text.strip().removeprefix("┊ ") for text in lines(card))


# ---------------------------------------------------------------- what stands where


async def test_the_exact_action_stands_first_and_options_last() -> None:
    card = RequestCard(
        Card(
            description=[Clean("clean rebuild, safe")],
            flags=[(Clean("deletes a folder"), "failed")],
            deadline=Clean("at 14:18:07 it is denied"),
        )
    )
    async with Bench(card).run_test(size=(80, 18)):
        painted = lines(card)
    assert painted[:8] == [
        " deploy-eu  codex-1",
        " asked 14:03:07, waiting 2:14",
        "       runs │ rm -rf build && make migrate",
        "       with │ shell",
        "         in │ /srv/app",
        "",
        "       risk   deletes a folder",
        " agent says │ clean rebuild, safe",
    ]
    assert painted[-4] == "─" * 79
    assert painted[-3:] == [
        "  a  Approve once  this command, now",
        "  d  Deny          the turn goes on without it",
        f"  {'armed in 0.3 s   at 14:18:07 it is denied   1 line, 28 chars':<65}digest 7f3a",
    ]


async def test_every_action_of_several_is_numbered() -> None:
    card = RequestCard(Card(actions=[Action([Clean("one"), Clean("two")]), Action([Clean("three")], cwd=Clean(""))]))
    async with Bench(card).run_test(size=(80, 24)):
        body = lines(card)[2 : rule_at(card)]
    assert body[:2] == ["     1 of 2 │ one", "            │ two"]
    assert "     2 of 2 │ three" in body
    assert sum("in │" in text for text in body) == 1


async def test_an_incomplete_action_says_so() -> None:
    card = RequestCard(Card(actions=[Action(complete=False)]))
    async with Bench(card).run_test(size=(80, 24)):
        assert any("not complete" in text for text in lines(card))


async def test_an_action_without_text_shows_its_tool() -> None:
    card = RequestCard(Card(actions=[Action(lines=(), tool=Clean("restart"))]))
    async with Bench(card).run_test(size=(80, 24)):
        assert lines(card)[2] == "       runs │ restart"


async def test_a_request_about_nothing_says_so() -> None:
    card = RequestCard(Card(actions=[]))
    async with Bench(card).run_test(size=(80, 24)):
        assert "does not say what this is about" in lines(card)[2]


async def test_a_question_shows_choices_and_what_was_entered() -> None:
    card = RequestCard(
        Card(
            actions=[],
            fields=[
                Field(Clean("Which branch?"), choices=[Clean("main"), Clean("next")], value=Clean("next")),
                Field(Clean("Why?"), kind=Clean("text")),
            ],
        )
    )
    async with Bench(card).run_test(size=(80, 24)):
        assert lines(card)[2:9] == [
            "       asks │ Which branch?",
            "          1 │ main",
            "          2 │ next",
            "      yours   next",
            "",
            "       asks │ Why?",
            "      yours   nothing entered yet (text)",
        ]


async def test_a_dead_request_has_no_options_and_says_how_it_ended() -> None:
    view = long_card()
    card = RequestCard(view)
    async with Bench(card).run_test(size=SIZE):
        card.card = replace(view, open=False, ending=Clean("denied by another operator at 14:05:20"))
        painted = lines(card)
    assert "  denied by another operator at 14:05:20" in painted
    assert not any("Approve" in text or "approve" in text or "armed" in text for text in painted)
    assert painted[-1].startswith("  line 1-")


async def test_no_request_is_a_blank_card() -> None:
    card = RequestCard()
    app = Bench(card)
    async with app.run_test(size=SIZE, message_hook=app.note) as pilot:
        await pilot.pause()
        assert set(lines(card)) == {""}
        assert not ended(card)
    assert seen(app) == []


async def test_long_lines_wrap_and_nothing_is_lost() -> None:
    command = "make " + " ".join(f"target-{i}" for i in range(30)) + " 部署" * 9 + "\tend"
    card = RequestCard(Card(actions=[Action([Clean(command), Clean("second")])]))
    async with Bench(card).run_test(size=(60, 30)):
        body = [text for text in lines(card)[2:] if text[12:13] in ("│", "┊")]
    first = body[: next(i for i, text in enumerate(body) if "second" in text)]
    assert [text[12] for text in first] == ["│"] + ["┊"] * (len(first) - 1)
    joined = "".join(text[TEXT_AT:].ljust(1) for text in first)
    assert joined.replace(" ", "") == command.replace("\t", "\u21e5").replace(" ", "")


async def test_notes_and_labels_of_options_are_wrapped_not_cut() -> None:
    note = "for this session and all its children: rm -rf build && make migrate, exactly as it stands above"
    label = "Allow everything that begins with rm -rf build in this workspace"
    card = RequestCard(Card(options=[Option(Clean("A"), Clean(label), Clean(note))]))
    async with Bench(card).run_test(size=(60, 24)):
        rows = lines(card)[rule_at(card) + 1 :]
    words = " ".join(" ".join(text for text in rows).split())
    assert all(word in words for word in (label + " " + note).split())
    assert "…" not in words


def test_a_narrow_card_puts_notes_below_labels() -> None:
    painted = option_lines([Option(Clean("a"), Clean("Approve once"), Clean("this command, now"))], 30)
    assert ["".join(text for text, _ in line).rstrip() for line in painted] == [
        "  a  Approve once",
        "       this command, now",
    ]


async def test_an_option_that_cannot_be_chosen_is_grey() -> None:
    options = [
        Option(Clean("a"), Clean("Approve"), enabled=False),
        Option(Clean("d"), Clean("Deny"), tone="failed"),
    ]
    card = RequestCard(Card(options=options))
    async with Bench(card).run_test(size=SIZE):
        blocked, free = (list(card.render_line(rule_at(card) + at)) for at in (1, 2))
        quiet, key, failed = card.tone("quiet"), card.paint("option-key"), card.tone("failed")
    assert {segment.style.color for segment in blocked if segment.text.strip() and segment.style} == {quiet.color}
    assert [segment.style for segment in free][:2] == [key, failed]


# ---------------------------------------------------------------- nothing can pass for an option

IMITATION = [
    Clean("make build"),
    Clean("─" * 79),
    Clean("  a  Approve once  this command, now"),
    Clean("  d  Deny"),
    Clean("  armed   digest 7f3a"),
]


async def test_text_from_an_agent_cannot_pass_for_an_option() -> None:
    card = RequestCard(Card(actions=[Action(IMITATION, tool=IMITATION[2], cwd=IMITATION[2])], description=IMITATION))
    async with Bench(card).run_test(size=(80, 40)):
        rows = strips(card)
        painted = lines(card)
        key_style = card.paint("option-key")
        rules = [y for y, text in enumerate(painted) if text and set(text) == {"─"}]
    assert len(rules) == 1
    for y, text in enumerate(painted):
        option = any(segment.style == key_style and segment.text.strip() for segment in rows[y])
        assert option == (rules[0] < y <= rules[0] + 2), text
        if y < rules[0] and ("Approve" in text or "Deny" in text):
            assert text[12] in "│┊"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(texts(200), min_size=1, max_size=4), texts(), texts(), texts(), st.integers(30, 120))
def test_all_outside_text_stands_right_of_a_bar(
    script: list[Clean], tool: Clean, cwd: Clean, said: Clean, width: int
) -> None:
    view = Card(
        actions=[Action(script, tool=tool, cwd=cwd, size=Clean(""))],
        fields=[Field(said, choices=[said], value=Clean("-"))],
        description=[said],
    )
    for line in body_lines(content_of(view), width, UNICODE_MARKS):
        if not line:
            continue
        (_gutter, gutter_part), (bar, _), (text, part) = line
        assert gutter_part == "gutter"
        assert not part.startswith("option")
        if bar == "  ":
            assert text == "-"
        else:
            assert bar in ("│ ", "┊ ")


# ---------------------------------------------------------------- what counts as seen


async def test_what_fits_is_seen_at_once_and_said_once() -> None:
    card = RequestCard(Card())
    app = Bench(card)
    async with app.run_test(size=SIZE, message_hook=app.note) as pilot:
        await pilot.pause()
        assert ended(card)
        card.card = Card(armed=Clean("armed"))
        await pilot.pause()
        assert ended(card)
    assert seen(app) == [("Shown", "r1", "sha256:7f3a"), ("EndSeen", "r1", "sha256:7f3a")]


async def test_the_end_of_a_long_action_is_seen_only_there() -> None:
    card = RequestCard(long_card())
    app = Bench(card)
    async with app.run_test(size=SIZE, message_hook=app.note) as pilot:
        await pilot.pause()
        assert lines(card)[-1] == "  line 1-9 of 102, approve after the end was seen (end)"
        await pilot.press("pagedown", "down", "j")
        assert lines(card)[-1].startswith("  line 11-19 of 102, approve after")
        card.jump(card.max_scroll_y - 1)
        await pilot.pause()
        assert not ended(card)
        assert seen(app) == [("Shown", "r1", "sha256:7f3a")]
        await pilot.press("down")
        assert ended(card)
        assert lines(card)[-1] == "  line 94-102 of 102"
        await pilot.press("home")
        assert ended(card)
        assert lines(card)[-1] == "  line 1-9 of 102"
    assert seen(app)[1:] == [("EndSeen", "r1", "sha256:7f3a")]


async def test_the_end_key_goes_there() -> None:
    card = RequestCard(long_card())
    async with Bench(card).run_test(size=SIZE) as pilot:
        await pilot.press("end")
        assert ended(card)
        assert lines(card)[rule_at(card) - 1] == "         in │ /srv/app"


async def test_paging_passes_every_line() -> None:
    card = RequestCard(long_card())
    async with Bench(card).run_test(size=SIZE):
        passed: set[str] = set()
        for _ in range(30):
            passed.update(text[TEXT_AT:] for text in lines(card)[2 : rule_at(card)])
            card.action_page_down()
    assert {f"step {i}" for i in range(100)} <= passed


@pytest.mark.parametrize(
    "change",
    [
        {"key": "r2"},
        {"digest": "sha256:other"},
        {"actions": (Action(lines=tuple(Clean(f"step {i}") for i in range(101))),)},
        {"fields": (Field(),)},
    ],
    ids=["key", "digest", "text", "fields"],
)
async def test_another_request_begins_unread_at_its_beginning(change: dict[str, object]) -> None:
    view = long_card()
    card = RequestCard(view)
    app = Bench(card)
    async with app.run_test(size=SIZE, message_hook=app.note) as pilot:
        await pilot.press("end")
        assert ended(card)
        app.seen.clear()
        card.card = replace(view, **change)  # type: ignore[arg-type]
        was_seen = ended(card)
        await pilot.pause()
        assert (was_seen, ended(card), card.scroll_offset.y) == (False, False, 0)
        assert card.card is not None
        assert seen(app) == [("Shown", card.card.key, card.card.digest)]


@pytest.mark.parametrize(
    "change",
    [
        {"armed": Clean("armed")},
        {"deadline": Clean("in 0:10 it is denied")},
        {"flags": ((Clean("deletes a folder"), "failed"),)},
        {"title": (Clean("deploy-eu"), Clean("waiting 2:15"))},
    ],
    ids=["armed", "deadline", "flags", "title"],
)
async def test_what_is_around_the_request_may_change_while_it_is_read(change: dict[str, object]) -> None:
    view = long_card()
    card = RequestCard(view)
    async with Bench(card).run_test(size=SIZE) as pilot:
        await pilot.press("end", "up", "up")
        place = card.scroll_offset.y
        card.card = replace(view, **change)  # type: ignore[arg-type]
        await pilot.pause()
        assert ended(card)
        assert card.scroll_offset.y == place


async def test_a_view_that_changed_in_place_is_another_request() -> None:
    view = Card()
    card = RequestCard(view)
    app = Bench(card)
    async with app.run_test(size=SIZE, message_hook=app.note) as pilot:
        await pilot.pause()
        view.actions = (Action([Clean("something else")]),)
        card.refresh_card()
        assert not ended(card)
        await pilot.pause()
        assert ended(card)
    assert [name for name, _, _ in seen(app)] == ["Shown", "EndSeen"] * 2


async def test_nothing_is_seen_behind_another_screen() -> None:
    card = RequestCard()
    app = Bench(card)
    async with app.run_test(size=SIZE, message_hook=app.note) as pilot:
        await app.push_screen(ModalScreen())
        card.card = Card()
        await pilot.pause()
        assert not ended(card)
        assert seen(app) == []
        await app.pop_screen()
        await pilot.pause()
        assert ended(card)


async def test_a_line_that_something_covers_is_not_seen() -> None:
    card = RequestCard()
    cover = Static("a notice")
    card.styles.layer = "below"
    card.styles.width = 80
    cover.styles.layer = "above"
    cover.styles.dock = "right"
    cover.styles.width = 10
    cover.styles.height = "100%"
    app = Bench(card, cover)
    async with app.run_test(size=SIZE) as pilot:
        app.screen.set_styles("layers: below above;")
        await pilot.pause()
        card.card = Card()
        await pilot.pause()
        assert card.region.overlaps(cover.region)
        assert not ended(card)
        await cover.remove()
        await pilot.pause()
        await pilot.pause()
        assert ended(card)


async def test_a_card_that_reaches_beyond_the_screen_is_not_seen() -> None:
    card = RequestCard()
    card.styles.width = 100
    app = Bench(card)
    async with app.run_test(size=SIZE) as pilot:
        card.card = Card()
        await pilot.pause()
        assert not ended(card)
        card.styles.width = 80
        await until(pilot, lambda: ended(card), lambda: "the card is seen once it fits")


async def test_a_card_that_is_not_displayed_is_not_seen() -> None:
    card = RequestCard()
    card.display = False
    app = Bench(card)
    async with app.run_test(size=SIZE) as pilot:
        card.card = Card()
        await pilot.pause()
        assert not ended(card)
        card.display = True
        # A frame of its own has to come onto the terminal, which an idle moment of the queues does not wait for.
        await until(pilot, lambda: ended(card), lambda: "the card is seen once it is displayed")


async def test_a_low_card_scrolls_as_a_whole_and_ends_with_its_options() -> None:
    card = RequestCard(Card(description=[Clean("clean rebuild")]))
    async with Bench(card).run_test(size=(80, 7)) as pilot:
        await pilot.pause()
        assert lines(card)[0] == " deploy-eu  codex-1"
        assert not any("Approve once" in text for text in lines(card))
        assert lines(card)[-1].startswith("  line 1-6 of ")
        assert not ended(card)
        await pilot.press("end")
        assert any("Deny" in text for text in lines(card))
        assert ended(card)


async def test_what_was_seen_stays_seen_on_another_size() -> None:
    card = RequestCard(Card())
    async with Bench(card).run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.resize_terminal(60, 7)
        await pilot.pause()
        assert ended(card)


async def test_a_question_is_answered_after_its_end() -> None:
    fields = [Field(Clean(f"question {i}?")) for i in range(20)]
    card = RequestCard(Card(actions=[], fields=fields))
    async with Bench(card).run_test(size=SIZE):
        assert "answer after the end was seen (end)" in lines(card)[-1]


# ---------------------------------------------------------------- any text

ACTIONS = st.builds(
    Action,
    lines=st.lists(texts(120), max_size=4),
    tool=texts(),
    cwd=texts(),
    size=texts(),
    complete=st.booleans(),
)
FIELDS = st.builds(Field, label=texts(), kind=texts(), choices=st.lists(texts(), max_size=3), value=texts())
OPTIONS = st.builds(Option, key=texts(3), label=texts(), note=texts(), tone=tones(), enabled=st.booleans())
CARDS = st.builds(
    Card,
    digest_short=texts(),
    title=st.lists(texts(), max_size=2),
    actions=st.lists(ACTIONS, max_size=2),
    fields=st.lists(FIELDS, max_size=2),
    unknown=st.lists(texts(120), max_size=2),
    strange=texts(),
    description=st.lists(texts(120), max_size=2),
    flags=st.lists(st.tuples(texts(), tones()), max_size=2),
    options=st.lists(OPTIONS, max_size=3),
    open=st.booleans(),
    ending=texts(),
    deadline=texts(),
    armed=texts(),
    presence=texts(),
)


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (24, 10), (80, 12), (120, 40)])
async def test_no_text_breaks_a_line_or_brings_control(size: tuple[int, int]) -> None:
    card = RequestCard()
    async with Bench(card).run_test(size=size):

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(CARDS)
        def check(view: Card) -> None:
            card.card = view
            for place in (0, 5, 10_000):
                card.jump(place)
                check_harmless(strips(card), size[0])

        check()


async def test_what_the_console_does_not_know_stands_right_of_the_bar_and_is_part_of_what_is_read() -> None:
    strange = Card(unknown=[Clean("actions[0].env = 1")], strange=Clean("1 member this console does not know"))
    assert content_of(strange).subject != content_of(Card()).subject
    texts = ["".join(text for text, _ in line) for line in body_lines(content_of(strange), 60, UNICODE_MARKS)]
    assert "also   1 member this console does not know" in "\n".join(texts)
    assert any(text.rstrip().endswith("│ actions[0].env = 1") for text in texts)


async def test_what_is_risky_is_underlined_stroked_below_and_told_in_the_order_of_the_text() -> None:
    flagged = (Flagged(0, 0, 6, Clean("deletes a folder"), "failed"), Flagged(0, 16, 20, Clean("runs it"), "attention"))
    action = Action([Clean("rm -rf build && make migrate")], flagged=flagged)
    card = RequestCard(Card(actions=[action]))
    async with Bench(card).run_test(size=(80, 24)):
        body = lines(card)[2 : rule_at(card)]
        strip = card.render_line(2)
    assert body[:4] == [
        "       runs │ rm -rf build && make migrate",
        "              1~~~~~          2~~~",
        "              1  deletes a folder",
        "              2  runs it",
    ]
    underlined = "".join(part.text for part in strip if part.style is not None and part.style.underline)
    assert underlined == "rm -rfmake"


async def test_the_only_reason_stands_beside_its_strokes_and_wide_characters_keep_them_in_place() -> None:
    action = Action([Clean("echo 東京 && rm -rf /")], flagged=(Flagged(0, 11, 19, Clean("deletes"), "failed"),))
    card = RequestCard(Card(actions=[action]))
    async with Bench(card).run_test(size=(80, 24)):
        body = lines(card)[2 : rule_at(card)]
    assert body[1] == "                           ~~~~~~~~  deletes"


async def test_a_place_that_goes_on_in_the_next_line_is_stroked_in_both() -> None:
    action = Action([Clean("a" * 60 + "b" * 20)], flagged=(Flagged(0, 55, 70, Clean("odd"), "attention"),))
    card = RequestCard(Card(actions=[action]))
    async with Bench(card).run_test(size=(80, 24)):
        body = lines(card)[2 : rule_at(card)]
    strokes = [line for line in body if "~" in line]
    assert [line.count("~") for line in strokes] == [10, 5]


async def test_a_long_name_takes_one_line_and_its_rest_stands_below_what_is_asked() -> None:
    name = "deploy " * 40
    card = RequestCard(Card(title=[Clean(name), Clean("codex-1  asked 14:03:07")]))
    async with Bench(card).run_test(size=(80, 40)):
        painted = lines(card)
    assert painted[0].endswith("…")
    assert painted[1] == " codex-1  asked 14:03:07"
    assert painted[2] == "       runs │ rm -rf build && make migrate"
    assert any(line.startswith("      whose │ deploy deploy") for line in painted)
