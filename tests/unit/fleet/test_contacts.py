"""The contact of each source in the bar, in as many cells as there are."""

from __future__ import annotations

import pytest

from console.actions import ACTIONS
from console.fleet.facts import ContactFact
from console.fleet.views.status import contact_segments
from console.keymap import keymap
from console.screens.fleet.footing import unheard
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import Clean, cell_width, clean_line
from watchfloor.words import Contact

NOTHING_LISTENS = "nothing listens at ws://127.0.0.1:9: start the host, or check the port"


@pytest.fixture
def host() -> ScriptedHost:
    """One source that is heard, one that is refused, two that were never reached."""
    scripted = ScriptedHost()
    now = scripted.now
    scripted.fleet.apply(
        [
            ContactFact("farm", Contact.REFUSED, now, clean_line("not let in: the token is wrong")),
            ContactFact("codex", Contact.LOST, now, clean_line(NOTHING_LISTENS), 3, now + 1),
            ContactFact("aion", Contact.LOST, now, clean_line("no such host"), 3, now + 1),
        ],
        now,
    )
    return scripted


def told(host: ScriptedHost, room: int | None, *, reasons: bool = True) -> str:
    said = contact_segments(host.fleet, host.now, room=room, more=Clean("S"), reasons=reasons)
    return "  ".join(text for text, _ in said)


def test_where_all_fits_all_is_told(host: ScriptedHost) -> None:
    whole = told(host, None)
    assert whole == (
        "here live  farm refused: not let in: the token is wrong"
        f"  codex not reached for 0:00: {NOTHING_LISTENS}, try 3  aion not reached for 0:00: no such host, try 3"
    )
    assert told(host, len(whole)) == whole


@pytest.mark.parametrize(
    ("room", "said"),
    [
        (
            140,
            "here live  farm refused: not let in: the token is wrong"
            "  codex not reached for 0:00, try 3  aion not reached for 0:00, try 3  S tells why",
        ),
        (
            110,
            "here live  farm refused  codex not reached for 0:00, try 3  aion not reached for 0:00, try 3  S tells why",
        ),
        (60, "1 live  1 refused  2 not reached  S tells why"),
        (36, "1 live  1 refused  2 not reached"),
    ],
)
def test_reasons_give_way_to_names_and_names_to_numbers(host: ScriptedHost, room: int, said: str) -> None:
    assert told(host, room) == said


def test_every_room_is_kept_to_and_no_source_is_left_out(host: ScriptedHost) -> None:
    for room in range(34, 300):
        said = told(host, room)
        assert cell_width(said) <= room
        assert "refused" in said
        assert "2 not reached" in said or said.count("not reached for") == 2


def test_a_source_that_is_heard_and_has_a_name_too_long_is_a_number() -> None:
    alone = ScriptedHost(name="n" * 80)
    assert told(alone, 40) == "1 live"


def test_what_this_is_gives_way_first(host: ScriptedHost) -> None:
    whole = contact_segments(host.fleet, host.now)
    title = Clean("watchfloor")
    size = len(told(host, None))
    assert contact_segments(host.fleet, host.now, title=title, room=size + 12) == ((title, "plain"), *whole)
    assert contact_segments(host.fleet, host.now, title=title, room=size + 11) == whole


def test_reasons_that_stand_elsewhere_are_not_pointed_to(host: ScriptedHost) -> None:
    assert "why" not in told(host, None, reasons=False)
    assert told(host, 95, reasons=False).endswith("aion not reached for 0:00, try 3")
    assert told(host, 60, reasons=False).startswith("1 live  1 refused")


def test_the_line_on_a_session_that_is_not_heard_begins_with_the_reason(host: ScriptedHost) -> None:
    host.session("s1")
    host.contact(Contact.LOST, NOTHING_LISTENS)
    keys, key = keymap(ACTIONS), host.at("s1").key
    [(whole, _)] = unheard(host.fleet, key, keys, 200)
    assert whole == f"here is not heard (S tells more): {NOTHING_LISTENS}"
    [(short, _)] = unheard(host.fleet, key, keys, 78)
    assert len(short) == 78
    assert short.startswith("here is not heard (S tells more): nothing listens at ws://127.0.0.1:9: ")
