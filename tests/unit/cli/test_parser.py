"""What the command line understands, and what it says about what it does not."""

from __future__ import annotations

import pytest

from console.cli.exits import Usage
from console.cli.parser import _parser, parse
from console.cli.values import fields

DIGEST = "sha256:" + "0" * 64
URL = "ws://127.0.0.1:7340"


@pytest.mark.parametrize(
    ("line", "handler"),
    [
        ("", "start:bare"),
        ("--read-only", "start:bare"),
        (f"connect {URL} ws://127.0.0.1:7341", "start:connect"),
        ("demo --agents 12 --rate 50 --seed 3", "start:demo"),
        ("demo --serve 127.0.0.1:0", "start:demo"),
        ("run -- make test", "serve:run"),
        ("run --acp -- agent acp", "serve:run"),
        (f"sessions {URL} --json", "records:sessions"),
        (f"requests {URL}", "records:requests"),
        (f"events {URL} --session s --after 3 --follow --count 5", "events:events"),
        (f"send {URL} s hello --priority queue", "verbs:intervene"),
        (f"pause {URL} s --interrupt --attempt 2 --turn t --id c1 --wait 5 --json", "verbs:intervene"),
        (f"interrupt {URL} s", "verbs:intervene"),
        (f"resume {URL} s", "verbs:intervene"),
        (f"stop {URL} s --kill --reason late", "verbs:intervene"),
        (f"reseed {URL} s --mode clear", "verbs:intervene"),
        (f"reseed {URL} s --mode rewind --to #3", "verbs:intervene"),
        (f"fork {URL} s --name again", "verbs:intervene"),
        (f"budget {URL} s --tokens 5000 --turns 3", "verbs:intervene"),
        (f"delete {URL} s --yes", "verbs:intervene"),
        (f"notify {URL} s other --on idle,failed", "verbs:intervene"),
        (f"approve {URL} s r --digest {DIGEST}", "verbs:intervene"),
        (f"deny {URL} s r --current --option no --note why", "verbs:intervene"),
        (f"answer {URL} s r --text main --current", "verbs:intervene"),
        (f"act {URL} s archive --field name=x --field other=y --yes", "verbs:intervene"),
        (f"act {URL} s archive --fields {{}}", "verbs:intervene"),
        ("schema", "settings:schema"),
        ("config check", "settings:config"),
    ],
)
def test_every_verb_is_handed_to_its_module(line: str, handler: str) -> None:
    assert parse(line.split()).handler == handler


@pytest.mark.parametrize("line", [f"--read-only sessions {URL}", f"sessions {URL} --read-only", "--read-only"])
def test_read_only_may_stand_before_and_after_the_verb(line: str) -> None:
    assert parse(line.split()).read_only is True


def test_without_it_nothing_is_read_only() -> None:
    assert parse(["sessions", URL]).read_only is False


def test_what_follows_the_dashes_belongs_to_the_program() -> None:
    args = parse(["run", "--stdin", "--exit", "--name", "x", "--", "sh", "-c", "echo --exit", "--", "--name"])
    assert args.program == ["sh", "-c", "echo --exit", "--", "--name"]
    assert (args.stdin, args.exit, args.observe, args.name) == (True, True, False, "x")
    assert args.serve is None


def test_dashes_of_other_verbs_are_theirs() -> None:
    assert parse(["send", URL, "s", "--", "--force"]).text == "--force"
    assert parse(["send", "run", "s", "--", "--force"]).url == "run"


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:7340", ("127.0.0.1", 7340)), ("[::1]:0", ("::1", 0)), ("localhost:1", ("localhost", 1))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse(["demo", "--serve", text]).serve == address


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "there is no verb 'nonsense'; there are: connect, demo, "),
        ("sesions", "there is no verb 'sesions'; did you mean sessions? see watchfloor --help"),
        (f"send {URL} s x --id -x", "expected one argument; one that begins with a dash is written with ="),
        ("sessions", "the following arguments are required: URL; see watchfloor sessions --help"),
        ("run", "write the program to run after --"),
        ("run --", "write the program to run after --"),
        ("run make", "put -- before the program, as in: watchfloor run -- make; see watchfloor run --help"),
        ("run --name n make -j 4", "put -- before the program, as in: watchfloor run --name n -- make -j 4; see"),
        ("run --wrong", "unrecognized arguments: --wrong; see watchfloor run --help"),
        ("--wrong", "unrecognized arguments: --wrong; see watchfloor --help"),
        (f"act {URL} s", "required: ACT; see watchfloor act --help"),
        (f"act {URL} s archive --field s3cret", "write a field as NAME=VALUE; see watchfloor act --help"),
        (f"act {URL} s archive --field a=b --fields {{}}", "not allowed with argument --field"),
        (
            f"approve {URL} s r --current --reason x",
            "unrecognized arguments: --reason x; see watchfloor approve --help",
        ),
        (f"approve {URL} s r", "one of the arguments --digest --current is required"),
        (f"approve {URL} s r --current --digest {DIGEST}", "not allowed with argument"),
        (f"approve {URL} s r --digest 12", "'12' is not a digest: sha256: and 64 hexadecimal digits"),
        (f"answer {URL} s r --current", "one of the arguments --option --text --field --fields is required"),
        (f"answer {URL} s r --current --field s3cret", "write a field as NAME=VALUE; see watchfloor answer --help"),
        (f"answer {URL} s r --current --field a=b --fields {{}}", "not allowed with argument --field"),
        (f"send {URL} s", "required: TEXT"),
        (f"send {URL} s x --priority soon", "invalid choice: 'soon'"),
        (f"pause {URL} s --wait -1", "'-1' is not a number of seconds"),
        (f"pause {URL} s --attempt x", "'x' is not a whole number, 0 or more"),
        (f"pause {URL} s --att 1", "unrecognized arguments: --att"),
        (f"reseed {URL} s", "required: --mode"),
        (f"reseed {URL} s --mode burn", "invalid choice: 'burn'"),
        (f"budget {URL} s --tokens -1", "'-1' is not a whole number, 0 or more"),
        (f"notify {URL} s", "required: SUBSCRIBER"),
        (f"notify {URL} s other --on tired", "'tired' is none of idle, completed, failed, stopped"),
        (f"events {URL} --after 1 --after-pos 1", "not allowed with argument"),
        (f"events {URL} --count 0", "'0' is not a whole number, 1 or more"),
        ("run --acp --stdin -- agent", "--acp goes without --stdin and --observe"),
        ("demo --serve 7340", "'7340' is not HOST:PORT"),
        ("demo --serve ::1:7340", "'::1:7340' is not HOST:PORT"),
        ("demo --serve h:70000", "'h:70000' is not HOST:PORT"),
        ("demo --rate 0", "'0' is not a number of events a second"),
        (f"connect --token-env A --token-file b {URL}", "not allowed with argument"),
        ("config", "the following arguments are required: WHAT; see watchfloor config --help"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_line(line: str, says: str) -> None:
    with pytest.raises(Usage) as caught:
        parse(line.split())
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)
    verb = line.split()[0] if line.split()[0] in VERBS else ""
    assert str(caught.value).endswith(f" see watchfloor {verb} --help".replace("  ", " "))
    assert caught.value.code == 2


WHOLE, VERBS = _parser()


@pytest.mark.parametrize("verb", [*sorted(VERBS), ""])
def test_help_says_what_each_argument_is(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([verb, "--help"] if verb else ["--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: watchfloor {verb}".rstrip())
    for action in (VERBS[verb] if verb else WHOLE)._actions:
        assert action.help, f"{action.dest} of {verb} is not explained"


def test_fields_are_a_json_object() -> None:
    assert fields('{"branch": "main", "force": false}') == {"branch": "main", "force": False}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '"s3cret"',
        "s3cret",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": "\\ud800"}',
        f'{{"a": {"9" * 6000}}}',
        f'{{"a": {"[" * 200_000}',
    ],
    ids=lambda text: text[:12],
)
def test_what_is_not_an_object_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(Usage, match="--fields must be a JSON object") as caught:
        fields(text)
    assert "s3cret" not in str(caught.value)
