"""What a source can do to a log is told apart: another one, one that went back, one that forgot, one that has holes."""

from __future__ import annotations

from console.fleet.apply import Fleet
from console.fleet.facts import KeptFact, SessionKey
from console.fleet.state import Session
from console.fleet.views.facts import fact_rows
from console.intake import Intake
from tests.fixtures.odd import NOW, batch, message, sessions, summary
from watchfloor.connector import Received
from watchfloor.protocol.codec import decode_host, encode
from watchfloor.protocol.frames import HostInfo, Welcome
from watchfloor.words import PROTOCOL, Role

KEY = SessionKey("here", "s1")


class Console:
    def __init__(self) -> None:
        self._intake = Intake("here", lambda: NOW)
        self.fleet = Fleet()
        self.connects()

    def connects(self) -> None:
        info = HostInfo(name="h", version="1", instance="one")
        self.takes(
            encode(
                Welcome(protocol=PROTOCOL, host=info, principal="p", role=Role.OPERATOR, pos=0, heartbeat_s=15, now=NOW)
            ),
            b'{"type":"watching","session":"*","from_pos":0,"through":0}',
        )

    def takes(self, *frames: bytes) -> None:
        for raw in frames:
            decoded = decode_host(raw)
            self.fleet.apply(self._intake.arrival(Received(decoded.frame, raw, decoded.bad)), NOW)

    @property
    def session(self) -> Session:
        return self.fleet.sessions[KEY]

    def told(self) -> list[str]:
        return [str(entry.text) for entry in self.session.log.entries()]

    def continuity(self) -> str:
        return next(str(text) for label, text, *_ in fact_rows(self.fleet, KEY, NOW) if label == "continuity")


def grown(last: int) -> Console:
    console = Console()
    console.takes(sessions(summary("s1", head=last)), batch(*(message(n) for n in range(1, last + 1))))
    assert console.continuity() == "whole"
    return console


def test_another_log_says_so_where_it_begins_and_is_whole_by_itself() -> None:
    console = grown(20)
    console.connects()
    console.takes(sessions(summary("s1", epoch="other", head=1)))
    later = batch(message(1, text="anew")).replace(b'"epoch": "e"', b'"epoch": "other"')
    console.takes(later)
    assert console.told() == ["another log begins here: the one before was known up to event 20", "anew"]
    assert console.continuity() == "whole"


def test_the_same_log_that_ends_sooner_is_no_longer_believed_to_be_whole() -> None:
    console = grown(20)
    console.connects()
    console.takes(sessions(summary("s1", head=12)))
    assert console.told()[-1] == "its log went back from 20 to 12: what follows may be other than what is here"
    assert console.continuity() == "gap of unknown size"


def test_a_log_that_went_back_is_told_anew_and_its_numbers_are_shown_again() -> None:
    console = grown(20)
    console.connects()
    console.takes(sessions(summary("s1", epoch="e (went back 1)", head=2)))
    anew = batch(message(1), message(2), message(3, text="another third one"))
    console.takes(anew.replace(b'"epoch": "e"', b'"epoch": "e (went back 1)"'))
    assert console.told() == [
        "its log went back from 20 to 2: it is told anew from here", "hello", "hello", "another third one",
    ]  # fmt: skip
    assert console.continuity() == "whole"


def test_a_log_that_went_back_while_the_console_was_closed_says_so() -> None:
    console = Console()
    console.takes(sessions(summary("s1", epoch="e (went back 1)", head=2)))
    console.fleet.apply([KeptFact(KEY, "e", ((1, 20),), ())], NOW)
    assert console.told() == ["its log went back from 20 to 2: it is told anew from here"]
    console.fleet.apply([KeptFact(KEY, "other", ((1, 20),), ())], NOW)
    assert len(console.told()) == 1


def test_a_log_that_stands_or_grows_is_the_same() -> None:
    console = grown(20)
    console.connects()
    console.takes(sessions(summary("s1", head=20)))
    console.takes(sessions({"id": "s1", "head": 19}))
    assert console.told() == ["hello"] * 20
    assert console.continuity() == "whole"


def test_what_is_lagged_what_is_gone_and_what_was_forgotten_are_three_things() -> None:
    console = grown(5)
    console.takes(b'{"type":"lagged","session":"s1","epoch":"e","from_seq":5,"to_seq":8}', batch(message(9)))
    assert console.continuity() == "gap 6-8"
    console.takes(b'{"type":"gap","session":"s1","epoch":"e","from_seq":5,"to_seq":8}')
    assert console.continuity() == "gap 6-8, lost for good"
    other = Console()
    other.takes(
        sessions(summary("s1", head=9)), b'{"type":"gap","session":"s1","epoch":"e","from_seq":0,"to_seq":8}',
        batch(message(9)),
    )  # fmt: skip
    assert other.continuity() == "beyond retention: 1-8 no longer kept"
