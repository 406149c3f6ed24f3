"""What is known of workers that fall silent, and of queues that nobody serves."""

from __future__ import annotations

from console.connectors.aion.reading import Json
from console.connectors.aion.workers import Workers

ONE = ("default", "auto/one")


def test_a_silent_worker_is_silent_until_it_takes_something_anew() -> None:
    workers = Workers()
    workers.leased(ONE, 1000)
    workers.wedge(ONE, "silent")
    # The history of another workflow is read late: what was taken before is no sign of life.
    assert not workers.leased(ONE, 900)
    assert not workers.leased(ONE, 1000)
    assert workers.wedged(ONE) == "silent"
    assert workers.wedged(("elsewhere", "auto/one")) == ""
    assert workers.leased(ONE, 1001)
    assert workers.wedged(ONE) == ""


def test_a_queue_is_served_once_the_server_was_asked_and_did_not_name_it() -> None:
    workers = Workers()
    assert not workers.served("default", "open")
    row: Json = {"task_queue": "open", "reason": "NO_LIVE_POLLERS", "detail": "no worker", "unserved_for_ms": 2500}
    assert workers.unserved_now("default", [row])
    assert workers.unserved("default", "open") == "NO_LIVE_POLLERS: no worker, for 2 s"
    assert not workers.served("default", "open")
    assert workers.served("default", "other")
    assert not workers.served("elsewhere", "other")
    assert not workers.unserved_now("default", [row | {"unserved_for_ms": 9000}])
    assert workers.unserved_now("default", [])
    assert workers.served("default", "open")
