"""What the command line understands. Standard library only, and nothing of ours that is slow to load."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from console.cli import interventions, keeping, out, proving, values
from console.cli.exits import Usage
from console.version import VERSION
from watchfloor.text import Clean

_WITHOUT: Final = (
    "Without --token-env and --token-file the token is taken from WATCHFLOOR_TOKEN, else from the configuration, "
    "else it is that of the local host with this URL or name, which needs none to be given."
)
_ANYWHERE: Final = ("127.0.0.1", 0)
_ASKS: Final = "ask clients of --serve for the token in this file, readable by you alone"
_WHERE: Final = "where to listen (default: 127.0.0.1, any free port)"
_READS: Final = "Exit status: 0 done, 4 no such session, 7 it refused us, 8 it was not reached, 2 usage."
EXITS: Final = (
    "Exit status: 0 applied, 3 not advertised, 4 stale or gone, 5 somebody was first, 6 invalid, 7 not permitted, "
    "8 not sent or unreachable, 9 sent and no word came back, 10 refused for now; 2 usage, "
    "1 our own fault, or output that could not be written."
)


class _Parser(argparse.ArgumentParser):
    """Leaves printing and ending to whoever asked."""

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            message += "; one that begins with a dash is written with =, as in --name=-x"
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
    parser, verbs = _parser()
    named = next((word for word in words if not word.startswith("-")), None)
    if named is not None and named not in verbs:
        from difflib import get_close_matches  # only a mistake pays for it

        near = get_close_matches(named, verbs, 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(verbs)};"
        raise Usage(f"there is no verb {values.quoted(named)}; {hint} see watchfloor --help")
    args, unknown = parser.parse_known_args(words)
    if unknown and args.handler == "serve:run" and not unknown[0].startswith("-"):
        ours = words[: words.index(unknown[0])]
        meant = shlex.join(["watchfloor", *ours, "--", *words[len(ours) :], *program])
        raise Usage(f"put -- before the program, as in: {meant}; see watchfloor run --help")
    if unknown:
        # Told by the verb that was given them: the whole parser could only point to its own help.
        verb = f" {args.verb}" if args.verb is not None else ""
        raise Usage(f"unrecognized arguments: {' '.join(unknown)}; see watchfloor{verb} --help")
    if "tls_cert" in args and (args.tls_cert is None) != (args.tls_key is None):
        raise Usage(f"--tls-cert and --tls-key come together; see watchfloor {args.verb} --help")
    if args.handler == "serve:run":
        if not program:
            raise Usage(
                "write the program to run after --, as in: watchfloor run -- make test; see watchfloor run --help"
            )
        if args.acp and args.pty:
            raise Usage("--acp goes without --pty: such an agent is spoken to through pipes; see watchfloor run --help")
        if args.acp and (args.stdin or args.observe):
            raise Usage(
                "--acp goes without --stdin and --observe: such an agent is told in its own protocol; "
                "see watchfloor run --help"
            )
        args.program = program
    return args


def _parser() -> tuple[argparse.ArgumentParser, dict[str, _Parser]]:
    """The parser of the whole, and those of its verbs."""
    parser = _Parser(
        prog="watchfloor",
        usage="watchfloor [-h] [--version] [--read-only] [VERB ...]",
        description="A terminal operations console for running AI agents. Without a verb it opens on the configured "
        "sources and the hosts of this machine, and on a demo where there are none. watchfloor VERB --help says more "
        "about a verb.",
        epilog=EXITS,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"watchfloor {VERSION}")
    parser.add_argument("--read-only", action="store_true", help="watch only: no intervention leaves this console")
    # Given to the consoles that `web` starts: a browser draws them.
    parser.add_argument("--browser", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(handler="start:bare", verb=None)
    verbs = parser.add_subparsers(
        title="verbs", metavar="VERB", prog="watchfloor", help="what to do; each says more", parser_class=_Parser
    )

    _applications(verbs)
    _records(verbs)
    interventions.arguments(lambda name, does: _intervention(verbs, name, does))
    _rest(verbs)
    return parser, verbs.choices


def _intervention(verbs: Any, name: str, does: str) -> _Parser:
    verb = _verb(verbs, name, "verbs:intervene", does, epilog=EXITS)
    _source(verb)
    return verb


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


def _tls(verb: _Parser) -> None:
    verb.add_argument("--tls-cert", metavar="F", help="serve with TLS: the certificate, with --tls-key")
    verb.add_argument("--tls-key", metavar="F", help="serve with TLS: the key of the certificate")
    verb.add_argument(
        "--insecure", action="store_true", help="serve other machines without TLS, or without a token of a file"
    )


def _source(verb: _Parser) -> None:
    verb.add_argument(
        "url",
        metavar="URL",
        help="a host's URL (ws://HOST:PORT, or that of a foreign system, as codex+ws://...), or the name of a source "
        "in the configuration or of a host on this machine, as the console and doctor show it",
    )
    _token(verb)


# --- the application and what serves -------------------------------------------------------


def _applications(verbs: Any) -> None:
    connect = _verb(verbs, "connect", "start:connect", "open the console on these hosts")
    connect.add_argument("urls", metavar="URL", nargs="+", help="a host's URL, or the name of a source or local host")
    _token(connect)

    demo = _verb(verbs, "demo", "start:demo", "open the console on a fleet of agents that really run")
    demo.add_argument("--serve", metavar="HOST:PORT", type=values.address, help="serve the fleet, without the console")
    demo.add_argument(
        "--agents",
        metavar="N",
        type=values.number(1, 10_000),
        help="how many (default: 8; those beyond are copies of the one that streams)",
    )
    demo.add_argument(
        "--rate", metavar="R", type=values.rate, help="events a second that all streamers share (default: 20)"
    )
    demo.add_argument("--seed", metavar="S", type=values.number(0), help="fixes texts and their order (default: 1)")
    token = demo.add_mutually_exclusive_group()
    token.add_argument("--token-file", metavar="F", help=_ASKS)
    # Given by the console to the demo that it starts: the token is the first line of its standard input, and with the
    # end of that the one ends with the other, however it ends.
    token.add_argument("--until-stdin-ends", action="store_true", help=argparse.SUPPRESS)
    _tls(demo)

    web = _verb(
        verbs,
        "web",
        "web:web",
        "open the console in a browser on this machine (needs watchfloor-console[web])",
        epilog="Whoever knows the address that it prints is an operator here: it holds a token of its own. Each tab is "
        "a console of its own. From another machine: ssh -L PORT:127.0.0.1:PORT.",
    )
    web.add_argument("urls", metavar="URL", nargs="*", help="hosts, as for connect; without any, as watchfloor alone")
    web.add_argument("--serve", metavar="HOST:PORT", type=values.address, default=_ANYWHERE, help=_WHERE)
    web.add_argument("--demo", action="store_true", help="on the demo, whatever is configured")

    run = _verb(
        verbs,
        "run",
        "serve:run",
        "run a program as a session that consoles can watch and steer",
        usage="watchfloor run [-h] [--serve HOST:PORT | --join URL] [--pty] [--name N]\n"
        "                      [--acp | [--observe] [--stdin]] [--exit] -- CMD ...",
        epilog="Ctrl-C stops the program and leaves; twice kills it. After the program's end it stays until Ctrl-C, so "
        "that consoles can read it and start it again; with --exit it leaves at once. The first line on standard error "
        "is where it listens; consoles of yours on this machine find it by themselves.",
    )
    where = run.add_mutually_exclusive_group()
    where.add_argument("--serve", metavar="HOST:PORT", type=values.address, help=_WHERE)
    where.add_argument(
        "--join",
        metavar="URL",
        help="be a session of this host instead of one of our own; without it and --serve, of the host of yours that "
        "`watchfloor host` keeps on this machine, if there is one",
    )
    _token(run)
    _tls(run)
    run.add_argument("--pty", action="store_true", help="give the program a terminal of its own")
    run.add_argument(
        "--name",
        metavar="N",
        help="the session's name (default: that of the program, or of the script or Python module that it runs)",
    )
    run.add_argument("--observe", action="store_true", help="advertise nothing: consoles can watch only")
    run.add_argument("--stdin", action="store_true", help="a message from an operator is a line on the program's input")
    run.add_argument(
        "--acp",
        action="store_true",
        help="CMD speaks the Agent Client Protocol: messages are prompts, and what it asks waits for an operator",
    )
    run.add_argument("--exit", action="store_true", help="end with the program, and with its status")

    host = _verb(
        verbs,
        "host",
        "hosting:host",
        "serve the agents that a file names, until Ctrl-C",
        epilog="docs/host.md says what the file holds. The first line on standard error is where it listens; consoles "
        "of yours on this machine find it by themselves, and so does `watchfloor run`.",
    )
    host.add_argument("file", metavar="FILE.toml", help="which agents there are, and who is let in")

    bridge = _verb(
        verbs,
        "bridge",
        "serve:bridge",
        "serve a foreign system as a host, until Ctrl-C",
        epilog="Consoles are let in while it is reached, and see it as they would by its own URL. The first line on "
        "standard error is where it listens.",
    )
    _source(bridge)
    bridge.add_argument("--serve", metavar="HOST:PORT", type=values.address, default=_ANYWHERE, help=_WHERE)
    bridge.add_argument("--serve-token-file", metavar="F", help=_ASKS)
    _tls(bridge)


# --- what is there -------------------------------------------------------------------------


def _records(verbs: Any) -> None:
    sessions = _verb(
        verbs,
        "sessions",
        "records:sessions",
        "list the sessions of a host",
        epilog="CAN: s send, p pause, x interrupt, r resume, X stop, a approve, o answer, R reseed; - where a session "
        "does not offer it. With --json also what each one offers, and its acts with their fields. " + _READS,
    )
    requests = _verb(
        verbs,
        "requests",
        "records:requests",
        "list the requests that wait for a human",
        epilog="With the exact text, the options, and the digest that approve, deny and answer take. " + _READS,
    )
    events = _verb(
        verbs,
        "events",
        "events:events",
        "print events of a host, oldest first",
        epilog="It ends with what there is now, unless --follow. " + _READS,
    )
    mailbox = _verb(
        verbs,
        "mailbox",
        "mailbox:mailbox",
        "list the messages to a session, and what became of each",
        epilog="With --ref or --json also what was answered. Exit status: 3 its source does not tell, 4 no such "
        "session or message, 7 it refused us, 8 it was not reached, 2 usage.",
    )
    for verb in (sessions, requests, events, mailbox):
        _source(verb)
        verb.add_argument("--json", action="store_true", help="one JSON object a line")
    mailbox.add_argument("session", metavar="SESSION", help="the session's id, or its name where no other has that")
    mailbox.add_argument("--ref", metavar="REF", help="tell of this message alone, such as #3, or 3")
    mailbox.add_argument(
        "--wait",
        metavar="SECONDS",
        type=values.seconds,
        default=0.0,
        help="with --ref: wait so long until it was answered, or ended otherwise",
    )
    events.add_argument("--session", metavar="S", help="only those of the session with this id, or name")
    after = events.add_mutually_exclusive_group()
    after.add_argument("--after", metavar="SEQ", type=values.number(0), help="begin after this number (with --session)")
    after.add_argument(
        "--after-pos", metavar="POS", type=values.number(0), help="begin after this position in the log of the host"
    )
    events.add_argument("--follow", action="store_true", help="go on with what happens, until Ctrl-C")
    events.add_argument("--count", metavar="N", type=values.number(1), help="end after N events")


def _rest(verbs: Any) -> None:
    keeping.arguments(lambda *words, **rest: _verb(verbs, *words, **rest), _token)
    proving.arguments(lambda *words, **rest: _verb(verbs, *words, **rest))
    _verb(verbs, "schema", "settings:schema", "print the JSON Schema of the protocol")
    config = _verb(verbs, "config", "settings:config", "say where the configuration is, write one, or check it")
    config.add_argument(
        "what",
        metavar="WHAT",
        choices=("path", "init", "check"),
        help="path: print where it is; init: write one in which every line is an example; check: tell everything that "
        "is wrong with it, its sources and your own themes (exit status 2)",
    )
    doctor = _verb(
        verbs,
        "doctor",
        "doctor:doctor",
        "look at this installation, its terminal, its sources and its audit files",
        epilog="Exit status: 0 in order, 2 something has to be mended here; with --dial also 7 a source refused us, "
        "8 a source was not reached.",
    )
    doctor.add_argument("--dial", action="store_true", help="try to reach every source as well")
    doctor.add_argument("--notify", action="store_true", help="send a test alert by every channel of [notify] as well")
    doctor.add_argument("--json", action="store_true", help="one JSON object a finding: area, level, text, status")
