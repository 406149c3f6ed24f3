"""The table of actions and the keys that come of it."""

from __future__ import annotations

import pytest

from console.actions import ACTIONS, BY_ID, SOURCES, Group, Needs, Where, actions
from console.keymap import key_faults, key_names, keymap, shown_key
from watchfloor.errors import ConfigError
from watchfloor.words import Primitive

DOCUMENTED = {
    "approve": "a",
    "options": "A",
    "deny": "d",
    "deny_reason": "D",
    "answer": "o",
    "send": "s",
    "pause": "p",
    "pause_now": "P",
    "interrupt": "x",
    "resume": "r",
    "reseed": "R",
    "stop": "X",
    "budget": "b",
    "fork": "F",
    "acts": "m",
    "notify": "",
    "delete": "delete",
    "next": "i",
    "open": "enter",
    "back": "esc",
    "copy": "y",
    "help": "?",
    "redraw": "^L",
    "quit": "q",
}


def test_the_usual_keys_are_the_documented_ones() -> None:
    keys = keymap(ACTIONS)
    assert {id: keys.shown(id) for id in DOCUMENTED} == DOCUMENTED


def test_ids_are_unique_and_no_key_does_two_things() -> None:
    assert len(BY_ID) == len(ACTIONS)
    keymap(ACTIONS)  # raises where a key is taken twice


def test_every_intervention_has_a_target_and_what_destroys_asks_first() -> None:
    for action in ACTIONS:
        assert action.intervenes == (action.needs is not Needs.NOTHING), action.id
        assert action.label, action.id
        assert action.help, action.id
    assert {action.id for action in ACTIONS if action.danger} == {"stop", "reseed", "acts", "delete"}


def test_actions_of_one_group_stand_together_for_the_help() -> None:
    order = [action.group for action in ACTIONS]
    assert order == sorted(order, key=list(Group).index)


def test_a_console_that_only_reads_has_no_intervention_at_all() -> None:
    left = actions(read_only=True)
    assert not any(action.primitive for action in left)
    assert {action.id for action in ACTIONS} - {action.id for action in left} == {
        action.id for action in ACTIONS if isinstance(action.primitive, Primitive)
    }
    assert {"next", "open", "help", "quit", "copy"} <= {action.id for action in left}


def test_an_operator_may_move_keys_by_the_ids_of_actions() -> None:
    keys = keymap(ACTIONS, {"approve": key_names("f2, ctrl+y")})
    assert keys.keys["approve"] == ("f2", "ctrl+y")
    assert keys.shown("approve") == "f2"
    assert keys.keys["deny"] == ("d",)


def test_a_key_may_be_taken_from_one_action_by_giving_it_another() -> None:
    keys = keymap(ACTIONS, {"approve": ("d",), "deny": ("h",)})
    assert (keys.shown("approve"), keys.shown("deny")) == ("d", "h")


def test_an_action_may_be_left_without_a_key() -> None:
    keys = keymap(ACTIONS, {"reseed": key_names("")})
    assert keys.keys["reseed"] == ()
    assert keys.shown("reseed") == ""
    assert keys.bindings()["reseed"] == "unbound+reseed", "the toolkit would take an empty text for the usual key"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"aprove": "f2"}, "keys.aprove: there is no such action; did you mean approve?"),
        ({"zz": "f2"}, "keys.zz: there is no such action; there are: approve, options"),
        ({"approve": "d"}, "keys.approve: the key d is taken by deny"),
        ({"retry": "enter"}, "keys.retry: the key enter is taken by open"),
        ({"stop": "ctrl+c"}, "keys.stop: the key ^C is taken by leave"),
        ({"stop": "ctrl+i"}, "keys.stop: a terminal sends ctrl+i as tab"),
        ({"stop": "shift+x"}, "keys.stop: no terminal sends 'shift+x'"),
        ({"stop": "alt+x"}, "keys.stop: no terminal sends 'alt+x'"),
        ({"stop": "hyper"}, "keys.stop: no terminal sends 'hyper'"),
        ({"leave": ""}, "keys.leave: it needs a key"),
        ({"redraw": "h"}, "keys.redraw: it works even where a text is written, which needs h"),
        ({"suspend": "backspace"}, "keys.suspend: it works even where a text is written, which needs backspace"),
    ],
)
def test_a_wrong_change_is_refused_in_one_clear_line(changed: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        keymap(ACTIONS, {id: key_names(names) for id, names in changed.items()})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_screens_that_are_never_seen_together_may_share_a_key() -> None:
    assert BY_ID["retry"].where == SOURCES
    assert key_faults({"retry": ("a",)}, ACTIONS) == []
    assert {action.id for action in actions(read_only=False, where=Where.SOURCES)} >= {"retry", "back", "down", "help"}
    assert not any(action.intervenes for action in actions(read_only=False, where=Where.SOURCES))


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("?", ("question_mark",)),
        ("a, B", ("a", "B")),
        ("/,-", ("slash", "minus")),
        ("comma", ("comma",)),
        ("F5, Ctrl+L", ("f5", "ctrl+l")),
        ("é", ("é",)),
        ("", ()),
    ],
)
def test_keys_are_written_as_they_are_spoken_of(written: str, names: tuple[str, ...]) -> None:
    assert key_names(written) == names
    faults = key_faults({"stop": tuple(name for name in names if name not in "aB")}, ACTIONS)
    assert all(" is taken by " in fault.says for fault in faults), "each is a key"


@pytest.mark.parametrize(("name", "shown"), [("question_mark", "?"), ("escape", "esc"), ("a", "a"), ("ctrl+c", "^C")])
def test_keys_are_shown_as_operators_call_them(name: str, shown: str) -> None:
    assert shown_key(name) == shown


def test_the_toolkit_is_told_of_no_more_than_was_changed() -> None:
    assert keymap(ACTIONS).bindings() == {}
    assert keymap(ACTIONS, {"approve": ("d",), "deny": ("h",), "help": keymap(ACTIONS).keys["help"]}).bindings() == {
        "approve": "d",
        "deny": "h",
    }
