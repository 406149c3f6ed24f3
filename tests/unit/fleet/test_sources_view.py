"""The sources as rows and as labelled lines."""

from __future__ import annotations

from datetime import UTC

from console.fleet.facts import ContactFact, FaultFact
from console.fleet.views.sources import FaultRows, SourceRows, contact_word, fault_lines, source_lines
from tests.unit.fleet.scripted import SOURCE, ScriptedHost
from watchfloor.text import Clean, clean
from watchfloor.words import Contact, Primitive, Role


def lines(host: ScriptedHost) -> dict[str, str]:
    return {label: text for label, text, _ in source_lines(host.fleet, SOURCE, host.now, UTC)}


def row(host: ScriptedHost) -> list[str]:
    return [text for text, _ in SourceRows(host.fleet, host.now).row(0)]


def fault(host: ScriptedHost, raw: str, **rest: object) -> None:
    host.fleet.apply([FaultFact(SOURCE, Clean("no such kind"), clean(raw), **rest)], host.now)  # type: ignore[arg-type]


def test_a_live_source_says_who_it_is_and_what_we_may() -> None:
    host = ScriptedHost(ahead=2_500)
    host.session("a")
    host.ask("r1", "a")
    told = lines(host)
    assert told["contact"] == "live"
    assert told["host"] == "host 1"
    assert told["we are"].endswith("operator: may intervene")
    assert told["clock"] == "2.5 s ahead of ours"
    assert told["heartbeat"].startswith("every ")
    assert told["sessions"] == "1"
    assert "next try" not in told
    assert row(host)[:2] == ["here", "live"]
    assert row(host)[3:5] == ["1", "1"]


def test_an_observer_may_only_watch() -> None:
    assert lines(ScriptedHost(role=Role.OBSERVER))["we are"].endswith("observer: may only watch")


def test_a_lost_source_says_why_since_when_and_when_it_is_tried_next() -> None:
    host = ScriptedHost()
    lost = ContactFact(SOURCE, Contact.LOST, host.now, Clean("connection refused"), 7, host.now + 12_400)
    host.fleet.apply([lost], host.now)
    host.now += 3_000
    told = lines(host)
    assert (told["contact"], told["why"]) == ("lost", "connection refused")
    assert told["since"].endswith("0:03 ago")
    assert told["next try"] == "in 0:10"
    assert told["tries"].startswith("7 ")
    assert "last known" in told["shown"]
    assert row(host)[-1] == "connection refused"
    host.fleet.apply([ContactFact(SOURCE, Contact.CONNECTING, host.now, Clean(""), 7)], host.now)
    assert lines(host)["contact"] == "trying again"


def test_nobody_dials_a_host_that_has_ended() -> None:
    host = ScriptedHost()
    host.fleet.apply([ContactFact(SOURCE, Contact.LOST, host.now, Clean("the host has ended"))], host.now)
    assert lines(host)["contact"] == "given up"
    assert lines(host)["next try"].startswith("none")


def test_the_latency_is_that_of_the_last_command() -> None:
    host = ScriptedHost()
    host.session("s1")
    assert "latency" not in lines(host)
    trail = host.send(Primitive.PAUSE)
    host.now += 42
    host.outcome(trail.id)
    assert lines(host)["latency"] == "the last command was answered after 42 ms"


def test_what_is_missing_is_counted_by_how_much_is_held() -> None:
    host = ScriptedHost()
    for name in ("a", "b"):
        host.session(name)
    found = [text for label, text, _ in source_lines(host.fleet, SOURCE, host.now, UTC) if label == "continuity"]
    assert found == ["2 not followed"]


def test_a_fault_is_shown_newest_first_with_what_was_kept_of_it_and_no_secret() -> None:
    host = ScriptedHost()
    fault(host, "old")
    fault(host, "\x1b]0;title\x07 token ghp_0123456789abcdefghijklmnopqrstuvwxyzAB", session="s1", fatal=True)
    rows = FaultRows(host.fleet.sources[SOURCE])
    assert len(rows) == 2
    told: dict[str, str] = {label: text for label, text, _ in fault_lines(rows.faults[0])}
    assert told["why"] == "no such kind"
    assert told["session"] == "s1"
    assert told["and"] == "it ended the connection"
    assert "\x1b" not in told["as it came"]
    assert "ghp_0123" not in told["as it came"]
    assert row(host)[5] == "2"


def test_an_error_of_its_own_is_told_apart_from_what_could_not_be_read() -> None:
    host = ScriptedHost()
    fault(host, "", told=True, count=3)
    rows = FaultRows(host.fleet.sources[SOURCE])
    assert [text for text, _ in rows.row(0)] == ["reported", "no such kind (3 times)"]
    assert fault_lines(rows.faults[0])[-1][1] == "nothing of it was kept"
    assert lines(host)["reported"] == "3 errors of its own"


def test_of_a_source_that_is_not_known_nothing_is_said() -> None:
    assert source_lines(ScriptedHost().fleet, "nobody", 0, UTC) == []
    assert len(FaultRows(None)) == 0


def test_one_that_was_never_reached_is_not_called_lost() -> None:
    host = ScriptedHost()
    host.fleet.apply([ContactFact("other", Contact.LOST, host.now, Clean("connection refused"), 2, host.now + 9)], 1)
    assert contact_word(host.fleet.sources["other"]) == "not reached"
