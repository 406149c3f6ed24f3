"""Events and actions in one line: what they say is whole, unambiguous and bounded."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from watchfloor.protocol import events as e
from watchfloor.protocol.lines import ARGUMENTS, LINE, action_line, arguments_line, event_line
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind, Overlay, RequestState


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (None, ""),
        ({}, ""),
        ({"path": "a.txt", "line": 3, "all": True, "of": None}, "path: a.txt, line: 3, all: true, of: null"),
        ({"command": "touch a && ls"}, "command: touch a && ls"),
        ({"edits": [{"from": 1}], "to": {}}, 'edits: [{"from": 1}], to: {}'),
        # What could be taken for another value, or for none, is quoted.
        ({"path": "a, force: true"}, 'path: "a, force: true"'),
        ({"path": "a: b"}, 'path: "a: b"'),
        ({"path": ""}, 'path: ""'),
        ({"path": " a"}, 'path: " a"'),
        ({"say": 'the "end"'}, 'say: "the \\"end\\""'),
        ({"a: b, c": "d"}, '"a: b, c": d'),
        ("rm -rf build", "rm -rf build"),
        (["a", 1], '["a", 1]'),
        (7, "7"),
        ({"name": "部署"}, "name: 部署"),
    ],
)
def test_arguments_in_one_line(arguments: JsonValue, line: str) -> None:
    assert arguments_line(arguments) == line


def test_arguments_of_any_size_make_a_bounded_line() -> None:
    huge: tuple[JsonValue, ...] = ({"a": "x" * 100_000}, {f"k{n}": n for n in range(100_000)}, ["x"] * 100_000)
    for arguments in huge:
        line = arguments_line(arguments)
        assert len(line) == ARGUMENTS
        assert line.endswith("…")


def test_neither_a_text_nor_its_arguments_hide_behind_the_other() -> None:
    assert action_line("ls", {"cwd": "/"}) == "ls  cwd: /"
    assert action_line(None, {"cwd": "/"}) == "cwd: /"
    assert action_line("ls", None) == "ls"


def intervention(primitive: str, kind: OptionKind | None) -> e.Intervention:
    return e.Intervention(
        at=1, primitive=primitive, command="c", by="root", outcome=OutcomeKind.APPLIED, option_kind=kind, info={}
    )


def resolved(**fields: Any) -> e.RequestResolved:
    return e.RequestResolved(at=1, request="r1", **{"state": RequestState.RESOLVED, "by": "root", **fields})


ALLOW, DENY, ANSWER = OptionKind.ALLOW, OptionKind.DENY, OptionKind.ANSWER


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (intervention("approve", DENY), "deny by root: applied"),
        (intervention("approve", ALLOW), "approve by root: applied"),
        (intervention("answer", ANSWER), "answer by root: applied"),
        (intervention("pause", None), "pause by root: applied"),
        (resolved(option="no", option_kind=DENY), "denied by root"),
        (resolved(option="no", option_kind=DENY, note="too\nrisky"), "denied by root: too risky"),
        (resolved(option="yes", option_kind=ALLOW), "approved by root"),
        (resolved(option="rollback", option_kind=ANSWER), 'answered "rollback" by root'),
        (resolved(option_kind=ANSWER, note="on Monday"), 'answered "on Monday" by root'),
        (resolved(option_kind=ANSWER, note='title: "x"; n: 3'), 'answered by root: title: "x"; n: 3'),
        (resolved(option_kind=ANSWER), "answered by root"),
        (resolved(), "decided by root"),
        (resolved(state=RequestState.WITHDRAWN, by="", why="the turn ended"), "withdrawn: the turn ended"),
        (e.ToolCall(at=1, call="c", name="shell", arguments={"command": "ls"}), "shell command: ls"),
        (e.ToolCall(at=1, call="c", name="shell", text="ls -l"), "shell ls -l"),
        (e.LifecycleChanged(at=1, lifecycle=Lifecycle.PAUSED, why="by root"), "paused by root"),
        (e.LifecycleChanged(at=1, lifecycle=Lifecycle.RUNNING, pending=Overlay.PAUSING), "pausing (running)"),
        (e.ToolOutput(at=1, text="x" * 500), "x" * LINE),
    ],
)
def test_events_in_one_line(event: e.Event, line: str) -> None:
    assert event_line(event) == line
