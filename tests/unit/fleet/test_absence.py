"""What is told of the time in which nobody looked."""

from __future__ import annotations

from console.fleet.absence import AWAY_MS, Mark, digest, headline, lines, marks
from console.fleet.apply import Fleet
from console.fleet.facts import RequestKey, SessionKey
from console.intake import Intake
from tests.fixtures.odd import NOW, request, sessions, summary
from watchfloor.connector import Received
from watchfloor.protocol.codec import decode_host

LATER = NOW + 3_600_000


class Console:
    def __init__(self) -> None:
        self._intake = Intake("here", lambda: NOW)
        self.fleet = Fleet()

    def takes(self, *frames: bytes) -> None:
        for raw in frames:
            decoded = decode_host(raw)
            self.fleet.apply(self._intake.arrival(Received(decoded.frame, raw, decoded.bad)), NOW)

    def left(self) -> dict[str, Mark]:
        return marks(self.fleet, "here", NOW)


def usage(tokens: int) -> dict[str, int]:
    return {"input_tokens": tokens, "output_tokens": 0, "turns": 1}


def test_requests_failures_states_and_use_since_then_are_told_and_nothing_else() -> None:
    console = Console()
    console.takes(
        sessions(
            summary("s1", head=10, usage=usage(100)),
            summary("same", head=5),
            summary("bad", lifecycle="failed"),
            summary("moved", head=3),
            summary("going"),
        )
    )
    left = console.left()
    assert not digest(console.fleet, "here", left, LATER), "nothing has happened"
    console.takes(
        sessions(
            summary("s1", head=40, usage=usage(5_100)),
            summary("moved", head=9, lifecycle="failed"),
            summary("new", head=2),
        ),
        request(),
        b'{"type":"gone","sessions":["going"]}',
    )
    found = digest(console.fleet, "here", left, LATER)
    key = SessionKey
    assert found.requests == (RequestKey("here", "s1", "r1"),)
    assert found.failed == (key("here", "moved"),), "the other one had failed before"
    assert [(m.key.session, m.before, m.now.value) for m in found.moved] == [("moved", "running", "failed")]
    assert found.new == (key("here", "new"),)
    assert (found.events, found.tokens, found.gone, found.logs) == (30 + 6 + 2, 5_000, 1, ())
    line = headline([found], LATER)
    assert line == "while you were away (1:00:00): 1 new request, 1 failed, 1 changed state, 1 new session, 38 events"
    said = [text for text, _ in lines(console.fleet, found, LATER)]
    assert any(text.startswith("  asks       ") and "r1" in text for text in said)
    assert any("running, now failed" in text for text in said)
    assert "  use        38 events, 5,000 tokens" in said


def test_another_log_is_told_apart_and_counted_from_its_start() -> None:
    console = Console()
    console.takes(sessions(summary("s1", head=50)))
    left = console.left()
    console.takes(sessions({"id": "s1", "epoch": "other", "head": 7}))
    found = digest(console.fleet, "here", left, LATER)
    assert (found.logs, found.events) == ((SessionKey("here", "s1"),), 7)
    assert any("its log was begun anew" in text for text, _ in lines(console.fleet, found, LATER))


def test_an_attempt_that_failed_again_has_failed_since() -> None:
    console = Console()
    console.takes(sessions(summary("s1", lifecycle="failed", attempt=1)))
    left = console.left()
    console.takes(sessions({"id": "s1", "attempt": 2}))
    assert digest(console.fleet, "here", left, LATER).failed == (SessionKey("here", "s1"),)
    assert AWAY_MS >= 1_000
