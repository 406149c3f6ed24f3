"""What an operator sent before, to be written once more: by session, attempt and person."""

from __future__ import annotations

from typing import Any

from console.fleet.facts import SessionKey
from console.fleet.transcript.sent import RECALLED, sent_before
from tests.unit.fleet.scripted import SOURCE, ScriptedHost
from watchfloor.words import OutcomeKind, Primitive

KEY = SessionKey(SOURCE, "s1")


def mail(n: int, text: str, by: str = "ann", **rest: Any) -> dict[str, Any]:
    return {"kind": "mail", "ref": f"#{n}", "state": "sent", "text": text, "by": by, "attempt": 1, **rest}


def send(host: ScriptedHost, text: str) -> str:
    attempt = host.at().attempt
    return host.send(Primitive.SEND, id=f"cmd-{text}", text=text, attempt=attempt).id


def before(host: ScriptedHost, by: str = "ann") -> tuple[str, ...]:
    return sent_before(host.fleet, host.fleet.sessions[KEY], by)


def test_what_the_mailbox_tells_comes_before_what_this_console_sent_and_each_text_once() -> None:
    host = ScriptedHost()
    host.session(attempt=1)
    host.events("s1", mail(1, "old"), mail(2, "again"), mail(3, "by another", by="bob"))
    send(host, "again")
    send(host, "new")
    assert before(host) == ("old", "again", "new")
    assert before(host, "bob") == ("by another", "again", "new")


def test_other_attempts_errors_and_what_never_arrived_are_left_out() -> None:
    host = ScriptedHost()
    host.session(attempt=2)
    host.events("s1", mail(1, "of the attempt before"), mail(2, "no room", attempt=2, state="error", error="full"))
    host.events("s1", mail(3, "here", attempt=2))
    host.outcome(send(host, "lost"), OutcomeKind.UNDELIVERED)
    assert before(host) == ("here",)


def test_what_came_back_cut_or_holds_a_secret_is_not_offered() -> None:
    host = ScriptedHost()
    host.session(attempt=1)
    host.events("s1", mail(1, "x" * 200_000), mail(2, "use ghp_" + "a1B2" * 9), mail(3, "fine"))
    assert before(host) == ("fine",)


def test_only_so_many_are_kept() -> None:
    host = ScriptedHost()
    host.session(attempt=1)
    host.events("s1", *(mail(n, f"m{n}") for n in range(1, RECALLED + 10)))
    assert len(before(host)) == RECALLED
    assert before(host)[-1] == f"m{RECALLED + 9}"
