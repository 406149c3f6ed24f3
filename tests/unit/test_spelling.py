"""Acts of keys as command lines: whatever is copied, the command line takes it and means the same."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace

import pytest

from console.actions import ACTIONS, BY_ID
from console.cli.parser import parse
from console.spelling import spelled
from tests.unit.fleet.scripted import ALLOW, ALWAYS, DENY, ScriptedHost
from watchfloor.protocol import model as m

SESSION = "it's s1"
URL = "ws://127.0.0.1:7340"


@pytest.fixture
def host() -> ScriptedHost:
    host = ScriptedHost()
    host.session(SESSION, attempt=3, turn="t 7", lifecycle="running")
    return host


def read(host: ScriptedHost, id: str, **filled: str) -> Namespace:
    """What the command line makes of the copied text, once its capitals are filled in."""
    session = host.at(SESSION)
    waiting = session.open_requests()
    text, reason = spelled(BY_ID[id], URL, session, waiting[0] if waiting else None)
    assert reason == ""
    assert text.isprintable()
    words = [filled.get(word, word) for word in shlex.split(text)]
    assert words[0] == "watchfloor"
    args = parse(words[1:])
    assert (args.url, args.session, args.attempt) == (URL, SESSION, 3)
    return args


@pytest.mark.parametrize(
    ("id", "verb", "means"),
    [
        ("send", "send", {"text": "TEXT", "priority": "normal"}),
        ("pause", "pause", {"interrupt": False}),
        ("pause_now", "pause", {"interrupt": True}),
        ("interrupt", "interrupt", {"turn": "t 7"}),
        ("resume", "resume", {}),
        ("reseed", "reseed", {"mode": "clear"}),
        ("budget", "budget", {"tokens": 7, "turns": 7}),
        ("fork", "fork", {"name": None}),
        ("notify", "notify", {"subscriber": "SUBSCRIBER"}),
        ("delete", "delete", {"yes": True}),
        ("stop", "stop", {"kill": False}),
    ],
)
def test_what_steers(host: ScriptedHost, id: str, verb: str, means: dict[str, object]) -> None:
    args = read(host, id, MODE="clear", N="7")
    assert args.verb == verb
    assert {name: getattr(args, name) for name in means} == means


@pytest.mark.parametrize(
    ("id", "verb", "option"),
    [
        ("approve", "approve", "yes"),
        ("deny", "deny", "no"),
        ("deny_reason", "deny", "no"),
        ("options", "approve", "ID"),
    ],
)
def test_what_decides_names_option_and_digest(host: ScriptedHost, id: str, verb: str, option: str) -> None:
    key = host.ask("r 1", SESSION, options=(ALLOW, ALWAYS, DENY))
    args = read(host, id)
    assert (args.verb, args.request, args.option) == (verb, "r 1", option)
    assert args.digest == host.request(key).digest
    assert args.note == ("TEXT" if id == "deny_reason" else None)


def test_what_answers_names_every_field(host: ScriptedHost) -> None:
    fields = tuple(m.FormField(name=name, type=m.FieldType.TEXT, label=name) for name in ("branch", "why"))
    host.question("q1", SESSION, fields=fields)
    args = read(host, "answer")
    assert json.loads(args.fields) == {"branch": "VALUE", "why": "VALUE"}


def test_every_intervention_has_one(host: ScriptedHost) -> None:
    key = host.ask("r1", SESSION, options=(ALLOW, DENY))
    for action in ACTIONS:
        text, reason = spelled(action, URL, host.at(SESSION), host.request(key))
        assert bool(text) == action.intervenes, action.id
        assert bool(reason) != bool(text), action.id


@pytest.mark.parametrize("id", ["-rf", "two\nlines", "\x1b[2J"])
def test_what_could_be_read_otherwise_is_not_copied(host: ScriptedHost, id: str) -> None:
    host.session(id)
    text, reason = spelled(BY_ID["stop"], URL, host.at(id), None)
    assert text == ""
    assert "an id in it" in reason


def test_what_cannot_be_reached_says_so(host: ScriptedHost) -> None:
    session = host.at(SESSION)
    assert "reached by no other program" in spelled(BY_ID["stop"], "", session, None).reason
    assert spelled(BY_ID["stop"], URL, None, None).reason == "no session is selected"
    assert spelled(BY_ID["approve"], URL, session, None).reason == "nothing waits here"
