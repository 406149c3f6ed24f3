"""Recordings with frames left out, twice, in another order, or with parts of another shape: nothing breaks."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.connectors.codex.replay import RECORDINGS, Frame, Replay, recording
from watchfloor.protocol.events import RequestOpened, RequestResolved, ToolCall, ToolResult
from watchfloor.words import RequestState

NAMES = sorted(path.stem for path in RECORDINGS.glob("*.jsonl"))
SHAPES: tuple[Any, ...] = (None, 0, -1, True, "", "x", [], [None], {}, {"type": 3}, {"id": []}, [{"id": 1}], 1.5, 2**60)


def told(name: str) -> list[Frame]:
    """What the server said by itself."""
    return [frame for way, frame in recording(name) if way == "<" and "method" in frame]


def begun(name: str) -> Replay:
    """A feed that knows the recording's threads, and follows them."""
    replay = Replay()
    for way, frame in recording(name):
        info = frame.get("result", {}).get("thread") if way == "<" and "result" in frame else None
        if info is not None and info["id"] not in replay.feed.threads:
            replay.feed.found(info)
            replay.feed.threads[info["id"]].joined = True
    return replay


def play(replay: Replay, frames: list[Frame]) -> None:
    for frame in frames:
        replay.feed.frame(frame)
        replay.flush()


def ended_whatever(replay: Replay) -> None:
    """Once its server has let go of it, a thread has nothing open, and every call one end at most."""
    for thread in list(replay.feed.threads.values()):
        replay.feed.frame({"method": "thread/closed", "params": {"threadId": thread.id}})
        replay.flush()
        summary = replay.summary(thread.id)
        assert (summary.in_flight, summary.requests, summary.turn) == ((), (), None)
        calls = [event.call for event in replay.of(thread.id, ToolCall)]
        results = [event.call for event in replay.of(thread.id, ToolResult)]
        assert len(calls) == len(set(calls))
        assert set(calls) <= set(results)
        opened = [event.request for event in replay.of(thread.id, RequestOpened)]
        assert sorted(opened) == sorted(event.request for event in replay.of(thread.id, RequestResolved))


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_frames_that_are_missing_twice_or_out_of_order(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    frames = told(name)
    picked = data.draw(st.lists(st.integers(0, len(frames) - 1), max_size=len(frames) + 10))
    if data.draw(st.booleans()):
        picked.sort()
    replay = begun(name)
    play(replay, [frames[at] for at in picked])
    ended_whatever(replay)


def places(of: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a frame's parameters."""
    found = [path] if path else []
    entries = of.items() if isinstance(of, dict) else enumerate(of) if isinstance(of, list) else ()
    for name, value in entries:
        found += places(value, (*path, name))
    return found


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_a_value_of_any_shape_in_any_place(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    frames = copy.deepcopy(told(name))
    for _ in range(data.draw(st.integers(1, 3))):
        frame = frames[data.draw(st.integers(0, len(frames) - 1))]
        everywhere = places(frame["params"])
        if not everywhere:
            continue
        *path, last = everywhere[data.draw(st.integers(0, len(everywhere) - 1))]
        shape = SHAPES[data.draw(st.integers(0, len(SHAPES) - 1))]
        at = frame["params"]
        try:
            for step in path:
                at = at[step]
            at[last] = copy.deepcopy(shape)
        except (KeyError, IndexError, TypeError):
            continue
    replay = begun(name)
    play(replay, frames)


def test_a_request_that_no_decision_can_be_bound_to_is_shown_as_unread() -> None:
    replay = begun("approve")
    (thread,) = replay.feed.threads.values()
    frame = next(frame for frame in told("approve") if frame["method"].endswith("requestApproval"))
    frame["params"]["command"] = "rm \ud800"
    play(replay, [frame])
    (request,) = replay.open(thread.id)
    assert (request.state, request.read().options) == (RequestState.UNREAD, ())
    assert (request.about or "").startswith("what it asks could not be read: ")
