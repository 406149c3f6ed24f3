"""A recording of a server that has a person decide for children, played into the feed."""

from __future__ import annotations

import pytest

from tests.unit.connectors.bamboo.replay import Replay, recording
from watchfloor.protocol.model import Subject
from watchfloor.words import Lifecycle

LINE = "2026.7.20"


def asked(line: dict[str, object], number: int) -> bool:
    return '"child_approval_requested"' in str(line).replace("'", '"') and line["kind"] == "recv" and number >= 0


def test_a_child_asks_on_its_parents_channel() -> None:
    replay = Replay()
    lines = recording(LINE, "child_asked")
    (first, second) = [number for number, line in enumerate(lines) if asked(line, number)]
    for begin, end in ((0, first), (first + 1, second)):
        replay.tell(lines[begin : end + 1])
        told = lines[end]["frame"]["event"]["event"]
        child = told["child_session_id"]
        # It was not known before it asked.
        answer = next(
            line
            for line in lines[end:]
            if line["kind"] == "http" and line["path"].endswith(child) and line["method"] == "GET"
        )
        replay.tell([answer])
        (request,) = replay.open(child)
        subject = Subject.model_validate(request.subject)
        assert subject.id == f"child/{told['request_id']}/0"
        assert subject.actions[0].text == told["resource"]
        assert [option.id for option in subject.options] == ["Approve", "Deny"]
        assert replay.summary(child).lifecycle is Lifecycle.WAITING


@pytest.mark.parametrize("end", ["delivered"])
def test_a_decision_for_a_child_is_taken_once(end: str) -> None:
    said = [
        (line["status"], line["body"][end])
        for line in recording(LINE, "child_asked")
        if line["kind"] == "http" and line["path"].endswith("/child-approval")
    ]
    assert said == [(200, True), (404, False), (200, True), (404, False), (404, False)]
