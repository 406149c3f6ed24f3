"""What the command line understands. Standard library only, and nothing of ours that is slow to load."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from console.cli import changing, out
from console.cli.exits import Usage
from console.version import VERSION
from watchfloor.text import Clean

_WITHOUT: Final = (
    "Without --token-env and --token-file the token is taken from WATCHFLOOR_TOKEN, else from the configuration, "
    "else from the runtime file of a local host with that URL."
)
_LONGEST_NUMBER: Final = 15
"""Digits; what has more is beyond what JSON numbers hold exactly."""
_LONGEST_SHOWN: Final = 80
EXITS: Final = (
    "Exit status: 0 applied, 3 not advertised, 4 stale or gone, 5 somebody was first, 6 invalid, 7 not permitted, "
    "8 not sent or unreachable, 9 sent and no word came back, 10 refused for now; 2 usage, "
    "1 our own fault, or output that could not be written."
)


class _Parser(argparse.ArgumentParser):
    """Leaves printing and ending to whoever asked."""

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: object = None) -> None:
        out.line(Clean(message.removesuffix("\n")))


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments with `handler`, "module:function", that takes them. Raises Usage.

    What follows the first `--` of `run` is its program, kept apart from our own options as `program`.
    """
    words = list(argv)
    program: list[str] = []
    if next((word for word in words if not word.startswith("-")), None) == "run" and "--" in words:
        at = words.index("--")
        words, program = words[:at], words[at + 1 :]
    args = _parser().parse_args(words)
    if args.handler == "serve:run":
        if not program:
            raise Usage("write the program to run after --, as in: watchfloor run -- make test")
        if args.acp and (args.stdin or args.observe):
            raise Usage("--acp goes without --stdin and --observe: such an agent is told in its own protocol")
        args.program = program
    return args


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="watchfloor",
        description="A terminal operations console for running AI agents. Without a verb it opens on the configured "
        "sources and the hosts of this machine, and on a demo where there are none.",
        epilog=EXITS,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"watchfloor {VERSION}")
    parser.add_argument("--read-only", action="store_true", help="watch only: no intervention leaves this console")
    # Given to the consoles that `web` starts: a browser draws them.
    parser.add_argument("--browser", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(handler="start:bare")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", parser_class=_Parser)

    _applications(verbs)
    _records(verbs)
    _interventions(verbs)
    _decisions(verbs)
    _rest(verbs)
    return parser


def _verb(verbs: Any, name: str, handler: str, does: str, **rest: Any) -> _Parser:
    verb: _Parser = verbs.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}.", **rest)
    verb.set_defaults(handler=handler, verb=name)
    verb.allow_abbrev = False
    # Allowed before and after the verb; here it must not put back what was said before it.
    verb.add_argument("--read-only", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return verb


def _token(verb: _Parser) -> None:
    token = verb.add_mutually_exclusive_group()
    token.add_argument("--token-env", metavar="NAME", help="the environment variable that holds the token")
    token.add_argument("--token-file", metavar="F", help="the file that holds the token, readable by you alone")
    verb.epilog = f"{_WITHOUT} {verb.epilog or ''}".strip()


def _source(verb: _Parser) -> None:
    verb.add_argument("url", metavar="URL", help="a host's URL, or the name of a configured source or local host")
    _token(verb)


# --- the application and what serves -------------------------------------------------------


def _applications(verbs: Any) -> None:
    connect = _verb(verbs, "connect", "start:connect", "open the console on these hosts")
    connect.add_argument("urls", metavar="URL", nargs="+", help="a URL, or the name of a source or local host")
    _token(connect)

    demo = _verb(verbs, "demo", "start:demo", "open the console on a fleet of agents that really run")
    demo.add_argument("--serve", metavar="HOST:PORT", type=_address, help="serve the fleet, without the console")
    demo.add_argument("--agents", metavar="N", type=_number(1, 10_000), default=None, help="how many (from 8)")
    demo.add_argument("--rate", metavar="R", type=_rate, default=None, help="events a second that the streamers share")
    demo.add_argument("--seed", metavar="S", type=_number(0), default=None, help="fixes texts and their order")
    token = demo.add_mutually_exclusive_group()
    token.add_argument("--token-file", metavar="F", help="ask clients of --serve for the token in this file")
    # Given by the console to the demo that it starts: the token is the first line of its standard input, and with the
    # end of that the one ends with the other, however it ends.
    token.add_argument("--until-stdin-ends", action="store_true", help=argparse.SUPPRESS)

    web = _verb(
        verbs,
        "web",
        "web:web",
        "open the console in a browser on this machine (needs watchfloor-console[web])",
        epilog="Whoever knows the address that it prints is an operator here: it holds a token of its own. Each tab is "
        "a console of its own. From another machine: ssh -L PORT:127.0.0.1:PORT.",
    )
    web.add_argument("urls", metavar="URL", nargs="*", help="hosts, as for connect; without any, as watchfloor alone")
    web.add_argument("--serve", metavar="HOST:PORT", type=_address, default=("127.0.0.1", 0), help="where to listen")
    web.add_argument("--demo", action="store_true", help="on the demo")

    run = _verb(
        verbs,
        "run",
        "serve:run",
        "run a program as a session that consoles can watch and steer",
        usage="watchfloor run [--serve HOST:PORT] [--name N] [--acp | [--observe] [--stdin]] [--exit] -- CMD ...",
        epilog="Ctrl-C stops the program and leaves; twice kills it. After the program's end it stays until Ctrl-C, so "
        "that consoles can read it and start it again.",
    )
    run.add_argument("--serve", metavar="HOST:PORT", type=_address, default=("127.0.0.1", 0), help="where to listen")
    run.add_argument(
        "--name",
        metavar="N",
        help="the session's name (unless given that of the program, or of the script or Python module that it runs)",
    )
    run.add_argument("--observe", action="store_true", help="advertise nothing: consoles can watch only")
    run.add_argument("--stdin", action="store_true", help="a message from an operator is a line on the program's input")
    run.add_argument("--acp", action="store_true", help="it speaks the Agent Client Protocol: messages are its prompts")
    run.add_argument("--exit", action="store_true", help="end with the program, and with its status")

    bridge = _verb(
        verbs,
        "bridge",
        "serve:bridge",
        "serve a foreign system as a host, until Ctrl-C",
        epilog="Consoles are let in while it is reached, and see it as they would by its own URL.",
    )
    _source(bridge)
    bridge.add_argument("--serve", metavar="HOST:PORT", type=_address, default=("127.0.0.1", 0), help="where to listen")


# --- what is there -------------------------------------------------------------------------


def _records(verbs: Any) -> None:
    sessions = _verb(verbs, "sessions", "records:sessions", "list the sessions of a host")
    requests = _verb(verbs, "requests", "records:requests", "list the requests that wait for a human")
    events = _verb(verbs, "events", "events:events", "print events of a host, oldest first")
    for verb in (sessions, requests, events):
        _source(verb)
        verb.add_argument("--json", action="store_true", help="one JSON object a line")
    events.add_argument("--session", metavar="S", help="of this session only")
    after = events.add_mutually_exclusive_group()
    after.add_argument("--after", metavar="SEQ", type=_number(0), help="begin after this number (with --session)")
    after.add_argument("--after-pos", metavar="POS", type=_number(0), help="begin after this position of the host")
    events.add_argument("--follow", action="store_true", help="go on with what happens, until Ctrl-C")
    events.add_argument("--count", metavar="N", type=_number(1), help="end after so many events")


# --- interventions -------------------------------------------------------------------------


def _intervention(verbs: Any, name: str, does: str) -> _Parser:
    verb = _verb(verbs, name, "verbs:intervene", does, epilog=EXITS)
    _source(verb)
    verb.add_argument("session", metavar="SESSION", help="the session's id")
    return verb


def _how(verb: _Parser) -> None:
    verb.add_argument("--attempt", metavar="N", type=_number(0), help="refuse when another attempt runs")
    verb.add_argument("--turn", metavar="T", help="refuse when another turn runs")
    verb.add_argument("--id", metavar="UUID", type=_id, help="the command's id; a known one is never executed twice")
    verb.add_argument("--wait", metavar="SECONDS", type=_seconds, default=0.0, help="wait so long for the effect")
    verb.add_argument("--json", action="store_true", help="what became of it, as a JSON object")


def _interventions(verbs: Any) -> None:
    send = _intervention(verbs, "send", "send a message to a session")
    send.add_argument("text", metavar="TEXT", help="the message; - reads it from standard input")
    send.add_argument("--priority", choices=("normal", "interrupt", "queue"), default="normal")

    pause = _intervention(verbs, "pause", "suspend a session at its next step")
    pause.add_argument("--interrupt", action="store_true", help="at once: the step is cancelled")
    interrupt = _intervention(verbs, "interrupt", "end the turn of a session")
    resume = _intervention(verbs, "resume", "let a session go on, or start anew where it ended")

    stop = _intervention(verbs, "stop", "end a session")
    stop.add_argument("--kill", action="store_true", help="without waiting for its step")
    stop.add_argument("--reason", metavar="T", help="goes along to the session")

    more = changing.arguments(lambda name, does: _intervention(verbs, name, does), _number)
    for verb in (send, pause, interrupt, resume, stop, *more):
        _how(verb)


def _decisions(verbs: Any) -> None:
    approve = _intervention(verbs, "approve", "allow what a request asks for")
    deny = _intervention(verbs, "deny", "deny what a request asks for, or decline a question")
    answer = _intervention(verbs, "answer", "answer a question")
    for verb in (approve, deny, answer):
        verb.add_argument("request", metavar="REQUEST", help="the request's id")
    for verb, kind in ((approve, "the only allow option"), (deny, "the only deny option")):
        verb.add_argument("--option", metavar="ID", help=f"which option to take ({kind}, unless given)")
        verb.add_argument("--note", metavar="T", help="goes along to the session")
    approve.add_argument(
        "--incomplete",
        action="store_true",
        help="even where its source gave only a part of the action, or more than this program knows",
    )
    how = answer.add_mutually_exclusive_group(required=True)
    how.add_argument("--option", metavar="ID", help="the option to take")
    how.add_argument("--text", metavar="T", help="an answer in words; - reads it from standard input")
    how.add_argument("--fields", metavar="JSON", help="one value for each field; - reads them from standard input")
    for verb in (approve, deny, answer):
        seen = verb.add_mutually_exclusive_group(required=True)
        seen.add_argument("--digest", metavar="D", type=_digest, help="decide on exactly what has this digest")
        seen.add_argument("--current", action="store_true", help="decide on what the host shows now")
        _how(verb)


def _rest(verbs: Any) -> None:
    _verb(verbs, "schema", "settings:schema", "print the JSON Schema of the protocol")
    config = _verb(verbs, "config", "settings:config", "say where the configuration is, write one, or check it")
    config.add_argument("what", choices=("path", "init", "check"))
    doctor = _verb(
        verbs,
        "doctor",
        "doctor:doctor",
        "look at this installation, its terminal, its sources and its audit files",
        epilog="Exit status: 0 in order, 2 something has to be mended here; with --dial also 7 a source refused us, "
        "8 a source was not reached.",
    )
    doctor.add_argument("--dial", action="store_true", help="try to reach every source as well")
    doctor.add_argument("--json", action="store_true", help="one JSON object a finding: area, level, text, status")


# --- values --------------------------------------------------------------------------------


def _number(least: int, most: int | None = None) -> Any:
    def read(text: str) -> int:
        value = int(text) if _digits(text) else -1
        if value < least or (most is not None and value > most):
            span = f"{least} to {most}" if most is not None else f"{least} or more"
            raise argparse.ArgumentTypeError(f"{_shown(text)} is not a whole number, {span}")
        return value

    return read


def _digits(text: str) -> bool:
    """Is it a number that can be meant? Python itself refuses to read one of thousands of digits."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not a number of seconds, 0 to 86400")
    return value


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not a number of events a second, above 0")
    return value


def _id(text: str) -> str:
    if not 0 < len(text) <= 200 or not text.isprintable():
        raise argparse.ArgumentTypeError("an id has 1 to 200 printable characters")
    return text


def _digest(text: str) -> str:
    digits = text.removeprefix("sha256:")
    if digits == text or len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not a digest: sha256: and 64 hexadecimal digits")
    return text


def _address(text: str) -> tuple[str, int]:
    """HOST:PORT; an IPv6 address stands in brackets. Port 0: any free one."""
    host, mark, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    number = int(port) if _digits(port) else 65_536
    if not mark or not bare or number > 65_535 or (":" in bare and bare == host):
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not HOST:PORT, as in 127.0.0.1:7340")
    return bare, number


def fields(text: str) -> dict[str, Any]:
    """The answer's fields from JSON. Raises Usage; the message does not hold the text, which may be a secret."""
    try:
        value = json.loads(text, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()  # half a pair of surrogates has no bytes
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Usage('--fields must be a JSON object, as in \'{"branch": "main"}\'')
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
