"""A client that knows only the protocol page gets along with a real host."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from tests.sockets.plain_client import Obj, PlainClient, canonical, digest
from watchfloor.harness.base import MailItem
from watchfloor.harness.function import Answer, FunctionHarness, Run
from watchfloor.host.log.events import MemoryLog
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host
from watchfloor.protocol.model import Capabilities, FieldType, FormField
from watchfloor.words import Role

PAGES = Path(__file__).parents[2] / "docs" / "protocol"
VECTORS: list[Obj] = json.loads((PAGES / "digest-vectors.json").read_text())
SCHEMA: Obj = json.loads((PAGES / "schema.json").read_text())["$defs"]
TOKENS = {
    "tok-ann": Principal("ann"),
    "tok-bob": Principal("bob"),
    "tok-eye": Principal("eye", Role.OBSERVER),
}

Agent = Callable[[Run, tuple[MailItem, ...]], Awaitable[str | None]]


@asynccontextmanager
async def hosting(**rest: Any) -> AsyncIterator[Host]:
    async with Host(name="plain", **rest) as host:
        await host.serve()
        yield host


@asynccontextmanager
async def connected(
    host: Host, who: str = "ann", watch: bool = True, *, holds: int | None = None
) -> AsyncIterator[PlainClient]:
    client = PlainClient(host.url, who, token=f"tok-{who}", holds=holds)
    await client.open()
    if watch:
        await client.watch()
    try:
        yield client
    finally:
        await client.ws.close()


def add(host: Host, agent: Agent, name: str, **rest: Any) -> str:
    return host.add(FunctionHarness(agent, **rest), name=name)


async def echo(run: Run, mail: tuple[MailItem, ...]) -> str | None:
    for item in mail:
        await run.say(f"you said {item.text}")
    return "heard"


async def counts(run: Run, mail: tuple[MailItem, ...]) -> str | None:
    """Reports as often as it is told to, and lets others in between."""
    for number in range(int(mail[0].text)):
        run.notice(str(number))
        await run.sleep(0)
    return None


async def works(run: Run, mail: tuple[MailItem, ...]) -> str | None:
    """Works on until it is stopped; says what it is told meanwhile."""
    while True:
        for item in await run.checkpoint():
            await run.say(f"meanwhile: {item.text}")
        await run.sleep(0.001)


def gated(calls: list[str]) -> Agent:
    async def agent(run: Run, mail: tuple[MailItem, ...]) -> str | None:
        text = mail[0].text
        arguments = {"text": text, "factor": 1.5, "big": 2**60, "mark": "é😀\x1b"}
        outcome = await run.tool("write", arguments, lambda: calls.append(text), text=f"write {text}")
        return outcome.status.value

    return agent


def of_kind(client: PlainClient, session: str, kind: str) -> list[Obj]:
    events = client.events.get(session, {})
    return [events[seq] for seq in sorted(events) if events[seq]["kind"] == kind]


def seqs(events: list[Obj]) -> list[int]:
    return [event["seq"] for event in events]


async def turn(client: PlainClient, session: str, text: str) -> None:
    """Send a message and read until the turn that it began has ended, and all its events are there."""
    before = len(of_kind(client, session, "result"))
    sent = await client.command(session, "send", text=text)
    assert sent["outcome"] == "applied", sent
    await client.until(
        lambda: (
            len(of_kind(client, session, "result")) > before
            and of_kind(client, session, "lifecycle")[-1]["lifecycle"] == "idle"
            and client.sessions[session]["lifecycle"] == "idle"
        )
    )


async def asked(client: PlainClient, session: str, text: str) -> str:
    """Send a message and read until a request is open; returns its id."""
    await client.command(session, "send", text=text)
    await client.until(lambda: client.sessions[session]["requests"])
    id_: str = client.sessions[session]["requests"][0]["id"]
    await client.until(lambda: (session, id_) in client.requests)
    return id_


def state_of(client: PlainClient, session: str, request: str) -> str | None:
    """What the client was last told of a request; None where it was told nothing."""
    state: str | None = client.requests.get((session, request), {}).get("state")
    return state


# ---------------------------------------------------------------- the canonical form


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["name"]))
def test_a_vector(vector: Obj) -> None:
    assert canonical(vector["subject"]) == vector["canonical"]
    assert digest(vector["subject"]) == vector["digest"]


def test_there_are_ten_vectors() -> None:
    assert len(VECTORS) == 10


@pytest.mark.parametrize(
    "text", ["1.5", "1e3", "NaN", "9007199254740992", '"\\ud800"', '{"\\udfff": 1}', "[" * 65 + "]" * 65]
)
def test_what_has_no_canonical_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical(json.loads(text))


# ---------------------------------------------------------------- getting in


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({}, 400),
        ({"subprotocols": [Subprotocol("watchfloor.v9")]}, 400),
        ({"additional_headers": {}}, 401),
        ({"additional_headers": {"Authorization": "Bearer wrong"}}, 401),
        ({"origin": Origin("http://127.0.0.1:8000")}, 403),
        ({"additional_headers": {"Authorization": "Bearer tok-ann", "Host": "elsewhere.example"}}, 403),
    ],
)
async def test_a_handshake_that_is_refused(how: Obj, status: int) -> None:
    good: Obj = {
        "subprotocols": [Subprotocol("watchfloor.v1")],
        "additional_headers": {"Authorization": "Bearer tok-ann"},
    }
    if how == {}:
        good.pop("subprotocols")
    async with hosting(tokens=TOKENS) as host:
        with pytest.raises(InvalidStatus) as caught:
            await connect(host.url, proxy=None, **(good | how))
        assert caught.value.response.status_code == status


async def test_the_path_is_free_and_the_first_frame_is_hello() -> None:
    async with hosting() as host:
        protocols = [Subprotocol("watchfloor.v1")]
        async with connect(f"{host.url}/any/path", subprotocols=protocols, proxy=None) as ws, asyncio.timeout(60):
            await ws.send('{"type": "watch", "session": "*"}')
            error = json.loads(await ws.recv())
            assert (error["type"], error["about"], error["fatal"]) == ("error", "watch", True)
            with pytest.raises(ConnectionClosed):
                await ws.recv()
            assert ws.close_code == 1008


async def test_a_hello_that_says_too_little_ends_the_connection() -> None:
    protocols = [Subprotocol("watchfloor.v1")]
    async with hosting() as host, connect(host.url, subprotocols=protocols, proxy=None) as ws, asyncio.timeout(60):
        await ws.send('{"type": "hello", "client": "plain"}')
        error = json.loads(await ws.recv())
        assert (error["code"], error["about"], error["fatal"]) == ("malformed", "hello", True)
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert ws.close_code == 1008


async def test_the_name_of_a_client_without_a_token_is_shown_as_unverified() -> None:
    async with hosting() as host, connected(host, "zoe") as client:
        assert client.ws.subprotocol == client.welcome["protocol"] == "watchfloor.v1"
        assert client.welcome["principal"] == "zoe (unverified)"
        assert client.welcome["role"] == "operator"
        assert client.welcome["host"]["name"] == "plain"


async def test_a_host_that_drains_says_so_and_its_beats_come_while_it_lives() -> None:
    async with hosting(heartbeat_s=0.2) as host, connected(host, "zoe") as client:
        assert client.welcome["heartbeat_s"] == 0.2
        await client.until(lambda: len(client.others.get("beat", [])) == 2)
        assert all(beat["pos"] == 0 and beat["now"] >= client.welcome["now"] for beat in client.others["beat"])
        closing = asyncio.create_task(host.close())
        with pytest.raises(ConnectionClosed):
            await client.until(lambda: False)
        await closing
        assert client.ws.close_code == 1012


# ---------------------------------------------------------------- who is there


async def test_the_roster_is_complete_then_changed_and_merged() -> None:
    async with hosting() as host:
        ids = [add(host, echo, f"agent {n}") for n in range(300)]
        ids += [add(host, echo, f"watched {n}", capabilities=Capabilities()) for n in range(3)]
        host.add(FunctionHarness(echo), name="child", id="c/1", parent=ids[0], labels={"team": "ops"}, cwd="/srv")
        async with connected(host) as client:
            assert list(client.sessions) == [*ids, "c/1"]
            for summary in client.sessions.values():
                assert set(summary) == set(SCHEMA["Summary"]["properties"])
                assert summary["profile"] in client.profiles
                assert (summary["lifecycle"], summary["native_state"]) == ("idle", "never started")
            child = client.sessions["c/1"]
            assert (child["parent"], child["labels"], child["cwd"]) == (ids[0], {"team": "ops"}, "/srv")
            grants = client.profiles[client.sessions[ids[0]]["profile"]]["capabilities"]
            assert set(grants) == {
                *("send", "pause", "resume", "interrupt", "stop", "reseed", "fork", "budget"),
                *("approve", "answer", "notify", "delete"),
            }
            assert client.profiles[client.sessions[ids[-1]]["profile"]]["capabilities"] == {}

            whole = dict(child)
            await turn(client, "c/1", "hello")
            await client.until(lambda: client.sessions["c/1"]["head"] == len(client.events["c/1"]))
            changed = {name for name, value in client.sessions["c/1"].items() if value != whole[name]}
            assert changed == {"native_state", "since", "controls", "mailbox", "head", "last", "result"}
            assert client.sessions["c/1"]["mailbox"] == {"queued": 0, "refs": 1}
            assert client.sessions["c/1"]["result"]["text"] == "heard"

            add(host, echo, "late", capabilities=Capabilities(send=None, stop=None))
            await client.until(lambda: "late" in client.sessions)
            assert set(client.sessions["late"]) == set(SCHEMA["Summary"]["properties"])
            assert client.sessions["late"]["profile"] in client.profiles
            host.remove("late")
            await client.until(lambda: "late" not in client.sessions)


# ---------------------------------------------------------------- what happens


async def test_events_come_in_the_order_of_the_log_without_holes() -> None:
    async with hosting() as host:
        add(host, counts, "a")
        add(host, counts, "b")
        async with connected(host) as client:
            for session in ("a", "b"):
                await client.command(session, "send", text="400")
            await client.until(lambda: all(len(of_kind(client, session, "result")) == 1 for session in ("a", "b")))
            assert [event["pos"] for event in client.arrived] == list(range(1, client.pos + 1))
            assert {event["attempt"] for event in client.arrived} == {1}
            for session in ("a", "b"):
                assert list(client.events[session]) == list(range(1, len(client.events[session]) + 1))
                texts = [notice["text"] for notice in of_kind(client, session, "notice")]
                assert texts == [str(n) for n in range(400)]


async def test_streams_are_assembled_also_by_who_joins_late_and_end_as_the_whole_item() -> None:
    gate, wrote = asyncio.Event(), asyncio.Event()
    pieces = ["naïve ", "😀 ", "", "日本", "\n"]

    async def streams(run: Run, mail: tuple[MailItem, ...]) -> str | None:
        async with run.stream() as out:
            for piece in pieces:
                await out.write(piece)
                await run.sleep(0.03)
            wrote.set()
            await gate.wait()
            await out.write("end")
        return None

    async with hosting() as host:
        add(host, streams, "s")
        async with connected(host) as early:
            await early.command("s", "send", text="go")
            await asyncio.wait_for(wrote.wait(), 60)
            async with connected(host, "bob", watch=False) as late:
                await late.watch("s")
                for client in (early, late):
                    await streamed(client, "".join(pieces))
                gate.set()
                for client in (early, late):
                    await spoken(client, "".join(pieces) + "end")
                    assert client.streams == {}


async def streamed(client: PlainClient, text: str) -> None:
    await client.until(lambda: list(client.streams.values()) == [text])


async def spoken(client: PlainClient, text: str) -> None:
    await client.until(lambda: [message["text"] for message in of_kind(client, "s", "message")] == [text])


async def test_the_history_is_paged_both_ways_and_holds_what_came_live() -> None:
    async with hosting() as host:
        add(host, counts, "a")
        async with connected(host) as client:
            await turn(client, "a", "50")
            live = [client.events["a"][seq] for seq in sorted(client.events["a"])]
            head = len(live)

            up: list[Obj] = []
            more = True
            while more:
                page = await client.history("a", after=up[-1]["seq"] if up else 0, limit=7)
                assert seqs(page["events"]) == list(range(page["first"], page["last"] + 1))
                up, more = up + page["events"], page["more"]
            assert up == live

            down: list[Obj] = []
            more = True
            while more:
                page = await client.history("a", before=down[0]["seq"] if down else head + 1, limit=7)
                down, more = page["events"] + down, page["more"]
            assert down == live

            assert seqs((await client.history("a", limit=3))["events"]) == [head - 2, head - 1, head]
            empty = await client.history("a", after=head)
            assert (empty["events"], empty["more"]) == ([], False)
            for where in ({"session": "a", "epoch": "another"}, {"session": "nobody", "epoch": "e"}):
                assert (await client.ask("history", **where))["code"] == "not_found"


async def test_what_a_native_host_does_not_answer() -> None:
    async with hosting() as host:
        add(host, echo, "a")
        async with connected(host) as client:
            assert (await client.ask("query", what="weather", session="a"))["code"] == "unsupported"
            await client.tell("looking", session="a", request="r")
            await client.tell("claim", session="a", request="r")
            await client.tell("newer_than_this")
            await client.tell("watch", session="nobody")
            await client.until(lambda: len(client.others.get("error", [])) == 4)
            told = [(error["code"], error.get("about")) for error in client.others["error"][1:]]
            assert told == [
                ("not_found", "claim"),
                ("unsupported", "newer_than_this"),
                ("not_found", "watch"),
            ]
            assert client.others["error"][-1]["session"] == "nobody"


async def test_what_cannot_be_read_is_answered_by_its_id_or_else_its_type() -> None:
    async with hosting() as host:
        add(host, echo, "a")
        async with connected(host) as client:
            assert (await client.ask("command", session="a"))["code"] == "malformed"
            assert (await client.ask("history", session="a"))["code"] == "malformed"
            assert (await client.ask("newer_than_this"))["code"] == "unsupported"
            await client.tell("watch", session=7)
            await client.ws.send("{")
            await client.until(lambda: len(client.others["error"]) == 5)
            assert [error.get("about") for error in client.others["error"][3:]] == ["watch", None]
            assert (await client.command("a", "send", text="still here"))["outcome"] == "applied"


# ---------------------------------------------------------------- requests


async def test_only_an_approval_by_digest_runs_the_call_and_only_the_first() -> None:
    calls: list[str] = []
    async with hosting(tokens=TOKENS) as host:
        add(host, gated(calls), "g")
        async with connected(host) as ann, connected(host, "bob") as bob:
            id_ = await asked(ann, "g", "tree")
            assert ann.sessions["g"]["lifecycle"] == "waiting"
            request = ann.requests["g", id_]
            assert request["state"] == "open"
            assert request["subject"]["actions"][0]["text"] == "write tree"
            assert request["subject"]["actions"][0]["arguments"]["factor"] == "1.5"
            allow, deny = (option["id"] for option in request["subject"]["options"])

            for wrong in ("", request["digest"].upper(), digest(request["subject"] | {"kind": "question"})):
                done = await ann.command("g", "approve", request=id_, option=allow, digest=wrong)
                assert done["outcome"] == "stale_target"
            done = await ann.decide("g", id_, "approve", option="no such option")
            assert done["outcome"] == "invalid"
            assert calls == []
            assert ann.requests["g", id_]["state"] == "open"

            done = await ann.decide("g", id_, "approve", option=allow, note="go on")
            assert (done["outcome"], done["request"]) == ("applied", id_)
            await bob.until(lambda: state_of(bob, "g", id_) == "resolved")
            late = await bob.decide("g", id_, "approve", option=deny)
            assert late["outcome"] == "already_decided"
            decided = late["decided"]
            assert (decided["by"], decided["option"], decided["kind"], decided["note"]) == (
                "ann",
                allow,
                "allow",
                "go on",
            )
            assert decided["at"] == done["at"]

            await ann.until(lambda: of_kind(ann, "g", "result"))
            assert calls == ["tree"]
            assert of_kind(ann, "g", "tool_result")[0]["status"] == "ok"
            assert of_kind(ann, "g", "request_resolved")[0]["by"] == "ann"
            assert ann.sessions["g"]["requests"] == []
            await ann.until(lambda: len(of_kind(ann, "g", "intervention")) == 7)
            outcomes = [trail["outcome"] for trail in of_kind(ann, "g", "intervention")]
            assert outcomes == ["applied", *["stale_target"] * 3, "invalid", "applied", "already_decided"]


async def test_a_denied_call_is_not_executed() -> None:
    calls: list[str] = []
    async with hosting() as host:
        add(host, gated(calls), "g")
        async with connected(host) as client:
            id_ = await asked(client, "g", "tree")
            done = await client.decide("g", id_, "approve", option="deny")
            assert done["outcome"] == "applied"
            await client.until(lambda: of_kind(client, "g", "result"))
            assert calls == []
            assert of_kind(client, "g", "result")[0]["result"]["text"] == "declined"


async def test_an_open_request_is_told_to_who_connects_later_and_withdrawn_by_an_interrupt() -> None:
    calls: list[str] = []
    async with hosting() as host:
        add(host, gated(calls), "g")
        async with connected(host) as early:
            id_ = await asked(early, "g", "tree")
            async with connected(host, "bob", watch=False) as late:
                await late.until(lambda: late.requests)
                assert late.requests == {("g", id_): early.requests["g", id_]}
                assert (await early.command("g", "interrupt"))["outcome"] == "applied"
                await late.until(lambda: state_of(late, "g", id_) == "withdrawn")
                done = await late.decide("g", id_, "approve", option="allow")
                assert done["outcome"] == "stale_target"
                assert calls == []


async def test_no_decision_is_sent_on_a_request_that_is_not_what_its_digest_says() -> None:
    async with hosting() as host:
        add(host, gated([]), "g")
        async with connected(host) as client:
            id_ = await asked(client, "g", "tree")
            client.requests["g", id_]["subject"]["actions"][0]["text"] = "write something else"
            with pytest.raises(ValueError, match="does not match"):
                await client.decide("g", id_, "approve", option="allow")


async def test_questions_are_answered_by_option_by_text_and_by_fields() -> None:
    answers: list[Answer] = []
    form = (
        FormField(name="n", type=FieldType.NUMBER),
        FormField(name="b", type=FieldType.BOOL),
        FormField(name="s", type=FieldType.SECRET, required=False),
    )

    async def asks(run: Run, mail: tuple[MailItem, ...]) -> str | None:
        answers.append(await run.ask("which?", ["main", "next"]))
        answers.append(await run.ask("why?"))
        answers.append(await run.ask("how?", fields=form))
        return None

    async with hosting() as host:
        add(host, asks, "q")
        async with connected(host) as client:
            id_ = await asked(client, "q", "go")
            assert (await client.decide("q", id_, "answer", text="in words"))["outcome"] == "invalid"
            assert (await client.decide("q", id_, "answer", option="other"))["outcome"] == "invalid"
            assert (await client.decide("q", id_, "answer", option="next"))["outcome"] == "applied"
            id_ = await next_request(client, "q", id_)
            assert (await client.decide("q", id_, "answer", text=""))["outcome"] == "invalid"
            assert (await client.decide("q", id_, "answer", text="because"))["outcome"] == "applied"
            id_ = await next_request(client, "q", id_)
            for fields in ({"n": 3}, {"n": "3", "b": True}, {"n": 3, "b": True, "other": 1}):
                assert (await client.decide("q", id_, "answer", fields=fields))["outcome"] == "invalid"
            done = await client.decide("q", id_, "answer", fields={"n": 3, "b": True, "s": "hush"})
            assert done["outcome"] == "applied"
            await client.until(lambda: state_of(client, "q", id_) == "resolved")
            assert client.requests["q", id_]["decision"]["note"] == "n: 3; b: true"
            await client.until(lambda: of_kind(client, "q", "result"))
            assert [answers[0].option, answers[1].text] == ["next", "because"]
            assert answers[2].fields == {"n": 3, "b": True, "s": "hush"}
            notes = [event.get("note") for event in of_kind(client, "q", "request_resolved")]
            assert notes == [None, "because", "n: 3; b: true"]
            assert "hush" not in json.dumps([*client.requests.values(), client.events["q"]])


async def next_request(client: PlainClient, session: str, done: str) -> str:
    """Wait for the request that is open after the one that was just decided; returns its id."""
    await client.until(lambda: any(id_ != done for id_ in open_requests(client, session)))
    (id_,) = open_requests(client, session)
    return id_


def open_requests(client: PlainClient, session: str) -> list[str]:
    return [id_ for of, id_ in client.requests if of == session and state_of(client, of, id_) == "open"]


# ---------------------------------------------------------------- commands


async def test_send_pause_resume_and_stop() -> None:
    async with hosting() as host:
        add(host, works, "w")
        async with connected(host) as client:
            state = client.sessions["w"]

            async def lands(lifecycle: str) -> None:
                await client.until(lambda: state["lifecycle"] == lifecycle)

            sent = await client.command("w", "send", text="begin")
            assert (sent["outcome"], sent["info"]) == ("applied", {"ref": "#1", "delivery": "started"})
            await lands("running")
            sent = await client.command("w", "send", text="faster", turn=state["turn"], attempt=1)
            assert sent["info"] == {"ref": "#2", "delivery": "steered"}
            await client.until(lambda: of_kind(client, "w", "message"))
            assert of_kind(client, "w", "message")[0]["text"] == "meanwhile: faster"

            assert (await client.command("w", "pause"))["outcome"] == "applied"
            await lands("paused")
            assert (await client.command("w", "pause"))["info"] == {"noop": True}
            assert (await client.command("w", "send", text="later"))["info"]["delivery"] == "queued"
            await client.until(lambda: state["mailbox"]["queued"] == 1)
            assert (await client.command("w", "resume"))["outcome"] == "applied"
            await lands("running")
            await client.until(lambda: len(of_kind(client, "w", "message")) == 2)

            for stale in ({"attempt": 2}, {"turn": "another"}):
                assert (await client.command("w", "stop", **stale))["outcome"] == "stale_target"
            assert (await client.command("w", "stop", reason="enough"))["outcome"] == "applied"
            await lands("stopped")
            assert state["why"].endswith("enough")
            refused = await client.command("w", "pause")
            assert (refused["outcome"], refused["reason"]) == ("invalid", state["blocked"]["pause"])
            assert (await client.command("w", "stop"))["info"] == {"noop": True}

            sent = await client.command("w", "send", text="again")
            assert (sent["outcome"], sent["attempt"]) == ("applied", 2)
            await client.until(lambda: state["attempt"] == 2 and state["lifecycle"] == "running")
            await client.command("w", "stop", kill=True)
            await lands("stopped")
            events = [client.events["w"][seq] for seq in sorted(client.events["w"])]
            assert [event["attempt"] for event in events] == sorted(event["attempt"] for event in events)


async def test_what_is_not_advertised_and_who_is_not_there() -> None:
    async with hosting() as host:
        add(host, echo, "watched", capabilities=Capabilities())
        add(host, echo, "full")
        async with connected(host) as client:
            for session, primitive in (("watched", "pause"), ("watched", "fork"), ("full", "invented_later")):
                do: Obj = {"text": "x"} if primitive == "invented_later" else {}
                assert (await client.command(session, primitive, **do))["outcome"] == "capability_not_supported"
            for primitive in ("pause", "resume", "stop", "fork", "delete"):
                assert (await client.command("nobody", primitive))["outcome"] == "stale_target"
            assert (await client.command("nobody", "send", text="x"))["outcome"] == "stale_target"
            unknown = await client.command("full", "approve", request="r", option="allow", digest="sha256:0")
            assert unknown["outcome"] == "stale_target"


async def test_a_known_id_is_never_executed_twice_and_can_be_recalled() -> None:
    async with hosting() as host:
        add(host, echo, "a")
        async with connected(host) as client:
            first = await client.command("a", "send", "id-1", text="once")
            again = await client.command("a", "send", "id-1", text="once")
            assert again == first
            assert (await client.command("a", "stop", "id-1"))["outcome"] == "invalid"
            await client.until(lambda: of_kind(client, "a", "result"))
            assert client.sessions["a"]["mailbox"]["refs"] == 1

            client.ws.transport.abort()
            await client.resume()
            known, never = await client.recall("id-1", "id-2")
            assert {name: known[name] for name in first} == first
            assert never["outcome"] == "undelivered"
            assert known["instance"] == never["instance"] == client.welcome["host"]["instance"]
            # What comes too late is refused: another try has another id.
            assert (await client.command("a", "send", "id-2", text="now"))["outcome"] == "undelivered"
            assert (await client.command("a", "send", "id-3", text="now"))["outcome"] == "applied"
            await client.until(lambda: len(of_kind(client, "a", "result")) == 2)
            assert client.sessions["a"]["mailbox"]["refs"] == 2


async def test_an_observer_sees_everything_and_may_do_nothing() -> None:
    calls: list[str] = []
    async with hosting(tokens=TOKENS) as host:
        add(host, gated(calls), "g")
        async with connected(host) as ann, connected(host, "eye") as eye:
            assert (eye.welcome["principal"], eye.welcome["role"]) == ("eye", "observer")
            id_ = await asked(ann, "g", "tree")
            await eye.until(lambda: ("g", id_) in eye.requests and of_kind(eye, "g", "request_opened"))
            assert (await eye.decide("g", id_, "approve", option="allow"))["outcome"] == "not_permitted"
            assert (await eye.command("g", "stop"))["outcome"] == "not_permitted"
            assert (await eye.command("nobody", "stop"))["outcome"] == "not_permitted"
            assert (await eye.history("g"))["events"] == [eye.events["g"][seq] for seq in sorted(eye.events["g"])]
            assert calls == []
            assert eye.requests["g", id_]["state"] == "open"


# ---------------------------------------------------------------- coming back


async def test_resuming_by_pos_brings_exactly_the_events_that_were_missed() -> None:
    async with hosting() as host:
        for name in ("a", "b"):
            add(host, counts, name)
        async with connected(host, "bob") as witness, connected(host) as client:
            await turn(client, "a", "5")
            had = client.pos
            client.ws.transport.abort()
            for session in ("b", "a", "b"):
                await turn(witness, session, "30")
            missed = [event for event in witness.arrived if event["pos"] > had]

            watching = await client.resume()
            assert (watching["from_pos"], watching["through"]) == (had, missed[-1]["pos"])
            await client.until(lambda: client.pos >= watching["through"])
            assert client.arrived == missed
            await turn(client, "a", "5")
            assert [event["pos"] for event in client.arrived] == list(range(had + 1, client.pos + 1))
            assert list(client.events["a"]) == list(range(1, len(client.events["a"]) + 1))


async def test_a_client_that_has_seen_nothing_resumes_from_where_its_watch_began() -> None:
    async with hosting() as host:
        add(host, counts, "a")
        async with connected(host, "bob") as witness:
            await turn(witness, "a", "5")
            async with connected(host) as client:
                began = client.pos
                assert (began, client.events) == (witness.pos, {})
                client.ws.transport.abort()
                await turn(witness, "a", "5")
                await client.resume()
                await client.until(lambda: client.pos == witness.pos)
                assert client.arrived == [event for event in witness.arrived if event["pos"] > began]


async def test_a_host_that_began_anew_is_read_from_the_start() -> None:
    async with hosting() as first:
        add(first, counts, "a")
        async with connected(first) as client:
            await turn(client, "a", "3")
            await client.command("a", "send", "id-1", text="1")
            instance, epoch = client.welcome["host"]["instance"], client.epochs["a"]
    async with hosting() as second:
        add(second, counts, "a")
        async with connected(second, "bob") as witness:
            await turn(witness, "a", "40")
            client.url = second.url
            watching = await client.resume()
            assert watching["from_pos"] == 0
            await client.until(lambda: client.pos == watching["through"])
            assert client.epochs["a"] != epoch
            assert client.events == witness.events
            (forgotten,) = await client.recall("id-1")
            assert forgotten["outcome"] == "undelivered"
            assert forgotten["instance"] == client.welcome["host"]["instance"] != instance
            await client.ws.close()


async def test_what_the_log_has_forgotten_is_told_as_a_gap() -> None:
    async with hosting(log=MemoryLog(lambda: uuid.uuid4().hex, keep=30)) as host:
        for name in ("a", "b"):
            add(host, counts, name)
        async with connected(host, "bob") as witness, connected(host) as client:
            await turn(client, "a", "3")
            had = set(client.events["a"])
            client.ws.transport.abort()
            await turn(witness, "a", "100")
            await client.resume()
            await client.until(lambda: client.pos == witness.pos)
            (gap,) = client.others["gap"]
            assert (gap["session"], gap["epoch"]) == ("a", client.epochs["a"])
            head = max(witness.events["a"])
            assert set(client.events["a"]) == had | set(range(gap["to_seq"] + 1, head + 1))
            assert (await client.history("a", after=0))["first"] == gap["to_seq"] + 1
            assert (await client.history("a", before=gap["to_seq"] + 1))["more"] is False


@pytest.mark.parametrize(("events", "size"), [(10_000, 1_500), (500, 40_000)])
async def test_a_client_that_did_not_keep_up_is_told_what_it_misses_and_reads_it_later(events: int, size: int) -> None:
    async def floods(run: Run, mail: tuple[MailItem, ...]) -> str | None:
        for number in range(events):
            run.notice("x" * size)
            if number % 100 == 0:
                await run.sleep(0)
        return None

    async with hosting(queue_bytes=4 * 1024 * 1024) as host:
        add(host, floods, "f")
        # What the sockets of both sides hold must be less than what comes, or it keeps up without reading.
        async with connected(host, holds=256 * 1024) as client:
            await client.command("f", "send", text="go")
            await asyncio.wait_for(host.wait("f"), 60)
            await client.until(lambda: client.others.get("lagged"))
            for lagged in client.others["lagged"]:
                assert lagged["epoch"] == client.epochs["f"]
                after = lagged["from_seq"]
                while after < lagged["to_seq"]:
                    page = await client.history("f", after=after, limit=500)
                    after = page["last"]
            head = client.sessions["f"]["head"]
            await client.until(lambda: client.sessions["f"]["head"] == host.core.log.head("f") >= head)
            assert len(of_kind(client, "f", "notice")) == events
            assert sorted(client.events["f"]) == list(range(1, len(client.events["f"]) + 1))
