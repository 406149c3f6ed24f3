"""What an alert says, and what the terminal is handed: never a control character, never a known secret, never much."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from console.fleet.facts import RequestKey
from console.notifying.alerts import NAMED_MOST, Alert, alert, trial
from console.notifying.terminal import sequence
from tests.unit.fleet.scripted import ScriptedHost
from watchfloor.text import clean_line

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


def _alert(host: ScriptedHost, *keys: RequestKey, unanswered: bool = False, details: bool = False) -> Alert:
    made = alert(host.fleet, keys, host.now, unanswered=unanswered, details=details)
    assert made is not None
    return made


def _asking(count: int, text: str = "make") -> tuple[ScriptedHost, list[RequestKey]]:
    host = ScriptedHost()
    keys = []
    for n in range(count):
        host.session(f"s{n}", name=f"agent-{n}")
        keys.append(host.ask(f"r{n}", session=f"s{n}", text=text))
    return host, keys


def test_one_is_named_and_of_many_the_first() -> None:
    host, keys = _asking(14)
    one = _alert(host, keys[0])
    assert one.text == "14 agents wait: agent-0"
    many = _alert(host, *keys)
    assert many.text == "14 agents wait: agent-0, agent-1, agent-2, agent-3, agent-4, 9 more"
    assert (many.agents, many.requests, len(many.named)) == (14, 14, NAMED_MOST)
    assert many.id != one.id
    late = _alert(host, keys[1], unanswered=True)
    assert (late.kind, late.text) == ("unanswered", "14 agents wait, unanswered: agent-1")


def test_what_is_asked_is_told_only_where_that_is_wanted_and_without_secrets() -> None:
    host, (key,) = _asking(1, f"curl -H 'Authorization: Bearer {TOKEN}' https://x\nrm -rf /\x1b]0;pwned\x07")
    assert _alert(host, key).text == "1 agent waits: agent-0"
    assert "what" not in _alert(host, key).data()["named"][0]
    told = _alert(host, key, details=True)
    assert "curl -H" in told.text
    assert TOKEN not in json.dumps(told.data())
    assert re.search(r"[\x00-\x1f\x7f-\x9f]", told.text) is None


def test_what_has_ended_is_told_of_no_more() -> None:
    host, keys = _asking(2)
    host.decide("r0")
    assert _alert(host, *keys).text == "1 agent waits: agent-1"
    assert alert(host.fleet, keys[:1], host.now, unanswered=False, details=False) is None


HOSTILE = st.text(
    st.one_of(st.characters(), st.sampled_from(list("\x1b\x07\x9b\x9c\x9d;\\]\u202e\u200b\U000e0041[<>&"))),
    max_size=400,
)


@settings(max_examples=200, deadline=None)
@given(HOSTILE, st.sampled_from(["osc9", "osc777"]), st.booleans())
def test_the_terminal_is_handed_one_whole_sequence_whatever_agents_call_themselves(
    name: str, how: str, tmux: bool
) -> None:
    told = trial(1)._replace(text=clean_line(name))
    out = sequence(how, told, tmux=tmux)
    if tmux:
        assert out.startswith("\x1bPtmux;\x1b\x1b]")
        assert out.endswith("\x07\x1b\\")
        out = out.removeprefix("\x1bPtmux;").removesuffix("\x1b\\").replace("\x1b\x1b", "\x1b")
    start = "\x1b]9;watchfloor: " if how == "osc9" else "\x1b]777;notify;watchfloor;"
    assert out.startswith(start)
    assert out.endswith("\x07")
    body = out[len(start) : -1]
    assert body.isprintable()
    assert len(body) <= 200
    assert how == "osc9" or ";" not in body
