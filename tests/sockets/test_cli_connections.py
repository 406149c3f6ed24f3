"""Whatever stands at the other end: one clear line, the right status, no traceback, nothing half-started."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from tests.sockets import kit
from tests.sockets.cli_kit import ANN, Program, asked, hosting, writes
from watchfloor import runtime
from watchfloor.host.principals import Principal
from watchfloor.protocol.codec import encode
from watchfloor.protocol.events import Notice
from watchfloor.protocol.frames import Beat, Events, Gap, HostFrame, Lagged, Sessions, Watching
from watchfloor.protocol.model import Summary

VERBS = [
    ("sessions",),
    ("requests", "--json"),
    ("events",),
    ("pause", "s"),
    ("approve", "s", "r", "--current"),
]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program holds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"ws://127.0.0.1:{server.getsockname()[1]}"


@asynccontextmanager
async def _web_server() -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        await writer.drain()

    async with kit.tcp(answer) as place:
        yield f"ws://{place}"


def _other_protocol() -> AbstractAsyncContextManager[str]:
    return kit.host(kit.greet, subprotocols=("chat.v2",))


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
async def test_nobody_is_there(program: Program, verb: tuple[str, ...]) -> None:
    word, *rest = verb
    url = _nobody()
    done = await program.process(word, url, *rest)
    assert (done.code, done.out) == (8, "")
    assert done.err == f"watchfloor: nothing listens at {url}: start the host, or check the port\n"


async def test_a_web_server_is_no_host(program: Program) -> None:
    async with _web_server() as url:
        done = await program.process("sessions", url)
    assert (done.code, done.out) == (8, "")
    assert "is a web server, not a Watchfloor host (HTTP 200)" in done.err
    assert done.err.count("\n") == 1


async def test_another_subprotocol(program: Program) -> None:
    async with _other_protocol() as url:
        done = await program.process("sessions", url)
    assert (done.code, done.out) == (8, "")
    assert "does not offer watchfloor.v1" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(("token", "says"), [("wrong-token", "refuses the token (401)"), ("", "wants a token (401)")])
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
async def test_a_wrong_token(program: Program, verb: tuple[str, ...], token: str, says: str) -> None:
    async with hosting({ANN: Principal("ann")}) as host:
        word, *rest = verb
        done = await program.but(WATCHFLOOR_TOKEN=token)(word, host.url, *rest)
    assert (done.code, done.out) == (7, "")
    assert says in done.err
    assert done.err.count("\n") == 1
    assert "wrong-token" not in done.err


@pytest.mark.parametrize(
    ("tokens", "code", "outcome"), [(None, 8, "undelivered"), ({ANN: Principal()}, 7, "not_permitted")]
)
async def test_an_intervention_tells_it_as_json_too(
    program: Program, tokens: dict[str, Principal] | None, code: int, outcome: str
) -> None:
    async with hosting(tokens or {}) as host:
        url = host.url if tokens else _nobody()
        done = await program("pause", url, "s", "--json", "--id", "c-1")
    assert done.code == code
    assert (done.record["outcome"], done.record["id"], done.record["session"]) == (outcome, "c-1", "s")


@pytest.mark.parametrize(
    ("url", "code", "says"),
    [
        ("gopher://127.0.0.1:1", 2, "no connector speaks gopher://: write one of "),
        (
            "demo",
            2,
            "the console's own demo is reached by no other program: watchfloor demo --serve 127.0.0.1:7340 makes",
        ),
        ("127.0.0.1:7340", 2, "'127.0.0.1:7340' is neither a URL (ws://HOST:PORT) nor the name of"),
        ("ws://me:s3cret@127.0.0.1:1", 2, "a URL must not hold a user or a password"),
        ("ws://127.0.0.1:1/#x", 2, "has no part after #"),
        ("ws://127.0.0.1:99999", 2, "the address is not one of a host"),
        ("ws://no-such-host.invalid:1", 8, "the name 'no-such-host.invalid' is not known"),
    ],
)
async def test_an_address_that_cannot_be(program: Program, url: str, code: int, says: str) -> None:
    done = await program("sessions", url)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert done.err.count("\n") == 1
    assert "s3cret" not in done.err


async def test_a_malformed_configuration_ends_every_verb_before_it_connects(program: Program, tmp_path: Path) -> None:
    config = tmp_path / "config" / "watchfloor" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('thme = "x"\n')
    async with hosting() as host:
        done = await program("sessions", host.url)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"watchfloor: {config}:1: thme: there is no such key; did you mean theme?\n"


async def test_a_token_file_that_others_may_read(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(ANN)
    file.chmod(0o644)
    async with hosting({ANN: Principal("ann")}) as host:
        done = await program("sessions", host.url, "--token-file", str(file))
        assert (done.code, done.out) == (2, "")
        assert done.err == f"watchfloor: {file}: others may read this token file; run: chmod 600 {file}\n"
        file.chmod(0o600)
        assert (await program("sessions", host.url, "--token-file", str(file))).code == 0


async def test_a_token_from_the_runtime_file_of_a_local_host(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", str(tmp_path / "run"))
    async with hosting({ANN: Principal("ann")}) as host:
        host.add(writes(tmp_path), name="writer", text="x")
        await asked(host, "writer")
        runtime.publish(host.url, ANN, "build")
        by_url = await program("sessions", host.url, "--json")
        by_name = await program("sessions", "build", "--json")
    assert by_url.code == by_name.code == 0
    assert json.loads(by_name.out)["source"] == "build"


@pytest.mark.parametrize("words", [("demo",), ("run",)])
async def test_a_port_in_use(program: Program, taken: int, tmp_path: Path, words: tuple[str, ...]) -> None:
    rest = ("--", "touch", str(tmp_path / "started")) if words == ("run",) else ()
    done = await program.process(*words, "--serve", f"127.0.0.1:{taken}", *rest)
    assert (done.code, done.out) == (8, "")
    assert done.err == f"watchfloor: 127.0.0.1:{taken} is in use by another program\n"
    assert not (tmp_path / "started").exists(), "nothing is half-started"
    assert not list((tmp_path / "run").glob("*"))


@pytest.mark.parametrize("words", [("demo",), ("run",)])
async def test_serving_to_the_world_is_refused(program: Program, words: tuple[str, ...]) -> None:
    rest = ("--", "true") if words == ("run",) else ()
    done = await program.process(*words, "--serve", "0.0.0.0:0", *rest)
    assert (done.code, done.out) == (2, "")
    assert "0.0.0.0 is reached from other machines" in done.err


async def test_a_host_that_falls_silent_in_its_greeting(program: Program) -> None:
    """A server that speaks the protocol and never lists its sessions is given up in bounded time, in one line."""

    async def greet_and_end(ws: object) -> None:
        await kit.greet(ws)  # type: ignore[arg-type]

    async with kit.host(greet_and_end) as url:
        done = await program("sessions", url)
    assert done.code == 8
    assert done.err.count("\n") == 1


def _tells(*frames: HostFrame) -> AbstractAsyncContextManager[str]:
    """A host with one session that answers a watch with these frames, and goes on to say that it lives."""

    async def handle(ws: ServerConnection) -> None:
        await kit.greet(ws)
        session = Summary.model_validate({"id": "s", "name": "s", "lifecycle": "idle", "epoch": "e", "head": 1})
        await ws.send(encode(Sessions(sessions=(session,), listed=True)).decode())
        await ws.recv()
        for frame in frames:
            await ws.send(encode(frame).decode())
        with suppress(ConnectionClosed):
            while True:
                await ws.send(encode(Beat(now=1, pos=9)).decode())
                await asyncio.sleep(0.02)

    return kit.host(handle)


async def test_events_that_never_come_are_given_up_though_the_host_lives(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.cli.events.ANSWER_S", 0.5)
    async with _tells(Watching(session="*", from_pos=0, through=9)) as url:
        done = await program("events", url)
    assert done.code == 8
    assert "sent only the events up to 0 of 9, and no more within 0.5 s" in done.err
    # So long it has for listing its sessions, too.
    monkeypatch.setattr("console.cli.link.ANSWER_S", 4)
    async with _tells() as url:
        done = await program("events", url)
    assert done.code == 8
    assert "did not send its events within 4 s" in done.err


def _note(seq: int, pos: int) -> Notice:
    return Notice(seq=seq, pos=pos, attempt=1, at=1, code="c", text=f"note {seq}")


@pytest.mark.parametrize(
    ("frames", "words", "says"),
    [
        ([Events(session="s", epoch="e", events=[_note(1, 1), _note(4, 4)])], (), "s: events 2 to 3 did not come"),
        ([Events(session="s", epoch="e", events=[_note(3, 4)])], (), "s: events 1 to 2 did not come"),
        (
            [
                Lagged(session="s", epoch="e", from_seq=0, to_seq=3),
                Events(session="s", epoch="e", events=[_note(4, 4)]),
            ],
            (),
            "s: events 1 to 3 were not sent, for this reader was too slow",
        ),
        (
            [Gap(session="s", epoch="e", from_seq=0, to_seq=3), Events(session="s", epoch="e", events=[_note(4, 4)])],
            (),
            "s: events 1 to 3 are gone",
        ),
        ([Events(session="s", epoch="e", events=[_note(7, 4)])], ("--after-pos", "3"), ""),
    ],
    ids=["hole", "from the start", "lagged", "gap", "from elsewhere"],
)
async def test_a_hole_among_events_is_told_once_with_its_numbers(
    program: Program, frames: list[HostFrame], words: tuple[str, ...], says: str
) -> None:
    start = int(words[1]) if words else 0
    async with _tells(Watching(session="*", from_pos=start, through=4), *frames) as url:
        done = await program("events", url, *words, "--json")
    assert done.code == 0
    assert says in done.err
    assert done.err.count("\n") == bool(says)


async def test_events_that_cannot_be_read_are_told(program: Program) -> None:
    async def handle(ws: ServerConnection) -> None:
        await kit.greet(ws)
        await ws.send(encode(Sessions(sessions=(), listed=True)).decode())
        await ws.recv()
        await ws.send(encode(Watching(session="*", from_pos=0, through=2)).decode())
        good = json.loads(encode(Events(session="s", epoch="e", events=[_note(1, 1), _note(2, 2)])))
        good["events"].insert(1, 7)
        await ws.send(json.dumps(good))
        await ws.wait_closed()

    async with kit.host(handle) as url:
        done = await program("events", url, "--json")
    assert done.code == 0
    assert [record["event"]["seq"] for record in done.records] == [1, 2]
    assert "unreadable, and left out" in done.err


async def test_another_log_than_the_one_that_was_read_is_told(program: Program) -> None:
    event = Events(session="s", epoch="e", events=[_note(1, 1)])
    async with _tells(Watching(session="*", from_pos=0, through=1), event) as url:
        done = await program("events", url, "--after-pos", "99999")
    assert done.code == 0
    assert "its log ends at 1, before 99999: it is another log, told from 0" in done.err


async def test_a_time_that_no_calendar_has_is_shown_as_none(program: Program) -> None:
    when = 10**17
    event = Notice(seq=1, pos=1, attempt=1, at=when, code="c", text="hello")
    frames = Watching(session="*", from_pos=0, through=1), Events(session="s", epoch="e", events=[event])
    async with _tells(*frames) as url:
        done = await program("events", url)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("--:--:--  ")
    assert "hello" in done.out
