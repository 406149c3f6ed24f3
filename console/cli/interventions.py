"""The verbs that change something at a source: what they are given on the command line. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.cli import changing, values

Add = Callable[[str, str], Any]
"""Adds a verb, by its name and what it does; returns its parser."""


def arguments(add: Add) -> None:
    """Add all of them."""

    def on_session(name: str, does: str) -> Any:
        verb = add(name, does)
        verb.add_argument(
            "session",
            metavar="SESSION",
            help="the session's id, as `watchfloor sessions URL` lists it, or its name where no other session has that",
        )
        return verb

    _steering(on_session)
    _decisions(on_session)


def _how(verb: Any) -> None:
    verb.add_argument(
        "--attempt",
        metavar="N",
        type=values.number(0),
        help="refuse where another attempt runs than N (default: the one that the host shows)",
    )
    verb.add_argument("--turn", metavar="T", help="refuse where another turn runs than T")
    verb.add_argument(
        "--id",
        metavar="UUID",
        type=values.id,
        help="the command's id: given once more, nothing is done twice, and what became of the first is told",
    )
    verb.add_argument(
        "--wait", metavar="SECONDS", type=values.seconds, default=0.0, help="wait so long until its effect is seen"
    )
    verb.add_argument("--json", action="store_true", help="what became of it, as a JSON object")


def _steering(add: Add) -> None:
    send = add("send", "send a message to a session")
    send.add_argument("text", metavar="TEXT", help="the message; - reads it from standard input")
    send.add_argument(
        "--priority",
        choices=("normal", "interrupt", "queue"),
        default="normal",
        help="normal: at its next step, or at once where it rests; queue: not before its turn has ended; interrupt: "
        "its turn is ended first (default: normal)",
    )

    send.add_argument("--reply-to", metavar="REF", help="the message of its mailbox that this one answers, such as #3")

    pause = add("pause", "suspend a session at its next step")
    pause.add_argument("--interrupt", action="store_true", help="at once: the step is cancelled")
    interrupt = add("interrupt", "end the turn of a session, which then waits for more")
    resume = add("resume", "let a session go on, or start anew where it ended")

    stop = add("stop", "end a session")
    stop.add_argument("--kill", action="store_true", help="without waiting for its step")
    stop.add_argument("--reason", metavar="T", help="why: goes along to the session")

    act = add("act", "do what only this source can do, as sessions --json lists it")
    act.add_argument("act", metavar="ACT", help="the id of the act")
    given = act.add_mutually_exclusive_group()
    given.add_argument(
        "--field",
        metavar="NAME=VALUE",
        type=values.pair,
        action="append",
        default=[],
        help="a value that the act asks for; once more for each further field, or choice of one field",
    )
    given.add_argument("--fields", metavar="JSON", help="all of them as a JSON object; - reads it from standard input")
    act.add_argument("--yes", action="store_true", help="yes, even where its source says that it destroys something")

    more = changing.arguments(add, values.number)
    for verb in (send, pause, interrupt, resume, stop, act, *more):
        _how(verb)


def _decisions(add: Add) -> None:
    approve = add("approve", "allow what a request asks for")
    deny = add("deny", "deny what a request asks for, or decline a question")
    answer = add("answer", "answer a question")
    for verb in (approve, deny, answer):
        verb.add_argument("request", metavar="REQUEST", help="the request's id, as `watchfloor requests URL` lists it")
    approve.add_argument(
        "--option", metavar="ID", help="which option to take (default: the only one that allows just this, once)"
    )
    deny.add_argument(
        "--option", metavar="ID", help="which option to take (default: the only one that denies just this)"
    )
    for verb in (approve, deny):
        verb.add_argument("--note", metavar="T", help="the reason, in words, that the agent is told")
    how = answer.add_mutually_exclusive_group(required=True)
    how.add_argument("--option", metavar="ID", help="the option to take")
    how.add_argument("--text", metavar="T", help="an answer in words; - reads it from standard input")
    how.add_argument(
        "--field",
        metavar="NAME=VALUE",
        type=values.pair,
        action="append",
        default=[],
        help="a value that the question asks for; once more for each further field, or choice of one field",
    )
    how.add_argument(
        "--fields",
        metavar="JSON",
        help='one value for each field, as in \'{"branch": "main"}\'; - reads them from standard input',
    )
    for verb in (approve, answer):
        verb.add_argument(
            "--incomplete",
            action="store_true",
            help="even where its source gave only a part of an action, or the request has more than this program knows",
        )
    approve.add_argument(
        "--second-key",
        metavar="D",
        type=values.digest,
        help="the second key, where a policy asks for one or what looks like a secret is masked: the digest once more",
    )
    for verb in (approve, deny, answer):
        seen = verb.add_mutually_exclusive_group(required=True)
        seen.add_argument(
            "--digest",
            metavar="D",
            type=values.digest,
            help="decide on exactly what was read: the digest that `watchfloor requests` printed with it",
        )
        seen.add_argument("--current", action="store_true", help="decide on what the host shows now, whatever it is")
        _how(verb)
