"""Recordings in which values are missing, of another kind, or absurd: what is left is shown, and nothing breaks."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, Final

import pytest

from console.connectors.bamboo import frames
from console.connectors.web.reading import each, flag, parsed
from tests.unit.connectors.bamboo.replay import SCENES, VERSIONS, Line, Replay, recording

ODD: Final[list[Any]] = [
    *(None, True, False, 0, -1, 1.5, 10**30, -(10**18), float("inf"), float("nan")),
    *("", "x" * 100_000, "\ud800", "\x1b[31mred\x07", "\u202e", "9999-99-99T00:00:00Z", "0001-01-01T00:00:00Z"),
    *("child", "running", "suspended", "allow_everything", [], {}, [1, "a", None], {"a": {"b": [1.5]}}, [{"id": "q"}]),
]


def mutated(value: Any, chance: float, dice: random.Random) -> Any:
    if dice.random() < chance:
        return copy.deepcopy(dice.choice(ODD))
    if isinstance(value, dict):
        kept = {name: mutated(one, chance, dice) for name, one in value.items()}
        return {name if dice.random() > chance else f"{name}_": one for name, one in kept.items()}
    if isinstance(value, list):
        return [mutated(one, chance, dice) for one in value]
    return value


def answer(replay: Replay, line: Line) -> None:
    """Give the feed an answer of the server, as the reader does."""
    body, feed = line["body"], replay.feed
    path = str(line["path"]).partition("?")[0]
    if path.endswith("/snapshot"):
        feed.gates.snapshot(each(body, "approvals"), replay.now)
    elif path.endswith("/sessions") and line["method"] == "GET":
        feed.listed([*each(body, "sessions"), *feed_infos(replay)], [])
    for session in list(feed.sessions.values()):
        if session.id not in path:
            continue
        if path.endswith("/respond/pending"):
            feed.found({**session.info, "id": session.id}, body if flag(body, "has_pending_question") else None)
        elif path.endswith("/history"):
            feed.past(session, body)
        elif path.endswith("/task"):
            feed.tasks(session, body)
        elif path.endswith(session.id):
            feed.found(body.get("session") if isinstance(body.get("session"), dict) else {}, None)


def feed_infos(replay: Replay) -> list[Line]:
    return [{**session.info, "id": session.id} for session in replay.feed.sessions.values()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("scene", SCENES)
def test_what_is_absurd_breaks_nothing(version: str, scene: str) -> None:
    dice = random.Random(f"{version} {scene}")
    for _ in range(3):
        replay = Replay()
        chance = dice.choice([0.01, 0.05])
        for line in recording(version, scene):
            part = "frame" if line["kind"] == "recv" else "body"
            if line["kind"] not in ("recv", "http") or dice.random() > 0.3 or not isinstance(line.get(part), dict):
                replay.tell([line])
                continue
            odd = parsed(json.dumps(mutated(line[part], chance, dice)))
            if not isinstance(odd, dict):
                continue
            if part == "frame":
                frames.take(replay.feed, odd)
            elif line["status"] < 300:
                answer(replay, {**line, "body": odd})
            replay.flush()
        assert set(replay.sessions) == set(replay.feed.sessions)
