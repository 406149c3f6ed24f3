"""The common ground of connectors of foreign systems: a scripted foreign system, seen through its connector's link."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from watchfloor.connector import Received, Record, Target
from watchfloor.errors import (
    CapabilityNotSupported,
    ConnectionFailed,
    ConnectionLost,
    ContractError,
    StaleTarget,
    Unreachable,
)
from watchfloor.foreign import ForeignConnector, ForeignLink, Handled, Mirror
from watchfloor.protocol.events import Intervention, LifecycleChanged, Message
from watchfloor.protocol.frames import (
    Beat,
    Command,
    DoAct,
    DoAnswer,
    DoApprove,
    DoPause,
    DoSend,
    Events,
    Frame,
    Gone,
    History,
    Outcome,
    Page,
    Profiles,
    RequestFrame,
    Sessions,
    Unwatch,
    Watch,
    Watching,
    Welcome,
)
from watchfloor.protocol.model import (
    Act,
    Action,
    ActOptions,
    Capabilities,
    Decision,
    FieldType,
    FormField,
    NoOptions,
    Option,
    RequestModel,
    SendOptions,
    Subject,
    Traits,
)
from watchfloor.words import Lifecycle, OptionKind, OutcomeKind, RequestKind, RequestState

F = TypeVar("F", bound=Frame)
NOW = 1_700_000_000_000
CAPABLE = Capabilities(send=SendOptions(), approve=NoOptions(), answer=NoOptions())
ALLOW = Option(id="yes", label="Allow", kind=OptionKind.ALLOW)
DENY = Option(id="no", label="Deny", kind=OptionKind.DENY)


class Scripted:
    """A foreign system that does what the test says."""

    def __init__(self, target: Target, mirror: Mirror) -> None:
        self.mirror = mirror
        self.opens: list[Callable[[], None]] = []
        self.fault: Exception | None = None
        self.ends = asyncio.Event()
        self.lost: Exception | None = None
        self.executed: list[Command] = []
        self.answer: asyncio.Future[Handled] | Exception | Handled = Handled(OutcomeKind.APPLIED)
        self.calls: list[str] = []
        self.watched: list[Callable[[], None]] = []

    async def open(self) -> None:
        self.calls.append("open")
        self.ends.clear()
        if self.fault is not None:
            raise self.fault
        for told in self.opens:
            told()

    async def run(self) -> None:
        await self.ends.wait()
        if self.lost is not None:
            raise self.lost

    async def execute(self, command: Command, by: str) -> Handled:
        self.executed.append(command)
        if isinstance(self.answer, Exception):
            raise self.answer
        return await self.answer if isinstance(self.answer, asyncio.Future) else self.answer

    async def watch(self, session: str) -> None:
        self.calls.append(f"watch {session}")
        for told in self.watched:
            told()
        if session == "locked":
            raise Unreachable("no key for it")

    async def unwatch(self, session: str) -> None:
        self.calls.append(f"unwatch {session}")

    async def close(self) -> None:
        self.calls.append("close")


class Console:
    """Reads a link, as a supervisor would."""

    def __init__(self, connector: ForeignConnector, link: ForeignLink) -> None:
        self.connector, self.link = connector, link
        self.frames: list[Frame] = []
        self.fault: Exception | None = None
        self._moved = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for batch in self.link.batches():
                self.frames += [arrival.frame for arrival in batch if isinstance(arrival, Received)]
                self._moved.set()
        except ConnectionFailed as fault:
            self.fault = fault
        self._moved.set()

    async def until(self, met: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not met():
                self._moved.clear()
                await self._moved.wait()

    def of(self, kind: type[F]) -> list[F]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    def texts(self) -> list[str]:
        return [event.text for frame in self.of(Events) for event in frame.events if isinstance(event, Message)]

    async def outcome(self, id: str) -> Outcome:
        await self.until(lambda: any(o.id == id for o in self.of(Outcome)))
        return next(o for o in self.of(Outcome) if o.id == id)

    async def close(self) -> None:
        await self.link.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


def connector(record: Record = Record.ALL, *, at_head: bool = False) -> tuple[ForeignConnector, Scripted]:
    target = Target("acme", "acme://there", user="ann", record=record, start_at_head=at_head)
    made = ForeignConnector(target, Scripted, name="acme", version="7", clock=lambda: NOW, answers_in_s=5)
    source = made.source
    assert isinstance(source, Scripted)
    return made, source


@asynccontextmanager
async def console(made: ForeignConnector) -> AsyncIterator[Console]:
    reader = Console(made, await made.connect())
    try:
        yield reader
    finally:
        await reader.close()


def put(source: Scripted, id: str = "s1", **fields: object) -> None:
    source.mirror.put(id, capabilities=CAPABLE, traits=Traits(), **{"lifecycle": Lifecycle.RUNNING, **fields})


def put_acts(source: Scripted, acts: Capabilities) -> None:
    source.mirror.put("s2", capabilities=acts, traits=Traits())


def say(source: Scripted, text: str, key: str | None = None) -> None:
    source.mirror.emit("s1", Message(at=NOW, text=text, key=key))


def approval(id: str = "r1", command: str = "make deploy") -> RequestModel:
    subject = Subject(
        session="s1",
        attempt=None,
        id=id,
        kind=RequestKind.APPROVAL,
        actions=(Action(tool="shell", text=command),),
        options=(ALLOW, DENY),
    )
    return RequestModel.ask(subject, asked_at=NOW)


def approve(request: RequestModel, id: str = "c1", option: str = "yes") -> Command:
    return Command(id=id, session="s1", do=DoApprove(request="r1", option=option, digest=request.digest))


async def test_greets_lists_and_tells_the_past_then_the_present() -> None:
    made, source = connector()
    source.opens = [lambda: put(source, name="worker"), lambda: say(source, "past")]
    async with console(made) as seen:
        await seen.until(lambda: seen.texts() == ["past"])
        assert [type(frame) for frame in seen.frames][:3] == [Welcome, Profiles, Sessions]
        welcome, listing = seen.of(Welcome)[0], seen.of(Sessions)[0]
        assert (welcome.host.name, welcome.host.version, welcome.principal) == ("acme", "7", "ann")
        assert listing.listed
        assert [(s.id, s.name, s.lifecycle) for s in listing.sessions] == [("s1", "worker", Lifecycle.RUNNING)]
        assert seen.of(Profiles)[0].profiles[listing.sessions[0].profile or ""].capabilities == CAPABLE
        say(source, "present")
        await seen.until(lambda: seen.texts() == ["past", "present"])
        assert seen.of(Watching)


async def test_what_is_told_twice_changes_nothing() -> None:
    made, source = connector()
    source.opens = [lambda: put(source)]
    async with console(made) as seen:
        say(source, "once", key="k1")
        say(source, "once", key="k1")
        source.mirror.ask("s1", approval())
        source.mirror.ask("s1", approval())
        put(source)
        say(source, "end")
        await seen.until(lambda: "end" in seen.texts())
        assert seen.texts() == ["once", "end"]
        assert len(seen.of(RequestFrame)) == 1
        assert source.mirror.session("s1").saw("k1")


async def test_a_change_of_lifecycle_is_an_event_and_a_change_of_the_summary() -> None:
    made, source = connector()
    source.opens = [lambda: put(source)]
    async with console(made) as seen:
        source.mirror.update("s1", lifecycle=Lifecycle.FAILED, native_state="CRASHED", why="no disk", error="no disk")
        await seen.until(lambda: [f for f in seen.of(Sessions) if f.sessions[0].lifecycle is Lifecycle.FAILED])
        await seen.until(lambda: seen.of(Events))
        changed = [e for f in seen.of(Events) for e in f.events if isinstance(e, LifecycleChanged)][-1]
        assert (changed.lifecycle, changed.native_state, changed.why) == (Lifecycle.FAILED, "CRASHED", "no disk")
        assert seen.of(Sessions)[-1].sessions[0].since == NOW


def test_a_field_that_no_summary_has_or_can_hold_is_refused_at_once() -> None:
    _, source = connector()
    put(source)
    with pytest.raises(ValueError, match="head"):
        source.mirror.update("s1", head=3)
    with pytest.raises(ValueError, match="attempt"):
        source.mirror.update("s1", attempt="third")
    assert source.mirror.session("s1").attempt is None


async def test_a_decision_is_forwarded_once_and_told_to_who_comes_later() -> None:
    made, source = connector()
    request = approval()
    source.opens = [lambda: put(source), lambda: source.mirror.ask("s1", request)]
    async with console(made) as seen:
        answer: asyncio.Future[Handled] = asyncio.get_running_loop().create_future()
        source.answer = answer
        await seen.link.send(approve(request))
        await seen.link.send(approve(request))
        await seen.link.send(approve(request, id="c2", option="no"))
        refused = await seen.outcome("c2")
        assert refused.outcome is OutcomeKind.REFUSED
        assert "on its way" in (refused.reason or "")
        answer.set_result(Handled(OutcomeKind.APPLIED))
        assert (await seen.outcome("c1")).outcome is OutcomeKind.APPLIED
        decision = Decision(option="yes", kind=OptionKind.ALLOW, by="ann", at=NOW)
        source.mirror.end_request("s1", "r1", decision=decision)
        await seen.link.send(approve(request, id="c3"))
        late = await seen.outcome("c3")
        assert late.outcome is OutcomeKind.ALREADY_DECIDED
        assert late.decided == decision
        assert [command.id for command in source.executed] == ["c1"]
        done = [e for f in seen.of(Events) for e in f.events if isinstance(e, Intervention)]
        assert [(e.command, e.outcome) for e in done][:2] == [
            ("c2", OutcomeKind.REFUSED),
            ("c1", OutcomeKind.APPLIED),
        ]


async def test_what_was_not_shown_not_offered_or_not_possible_never_leaves() -> None:
    made, source = connector()
    acts = Capabilities(approve=NoOptions(), act=ActOptions(acts=(Act(id="archive", label="Archive"),)))
    source.opens = [
        lambda: put(source),
        lambda: source.mirror.ask("s1", approval()),
        lambda: source.mirror.update("s1", blocked={"send": "it is busy"}),
        lambda: put_acts(source, acts),
    ]
    async with console(made) as seen:
        other = approval(command="rm -rf /")
        cases = {
            "digest": (approve(other, id="digest"), OutcomeKind.STALE_TARGET),
            "option": (approve(approval(), id="option", option="maybe"), OutcomeKind.INVALID),
            "pause": (Command(id="pause", session="s1", do=DoPause()), OutcomeKind.CAPABILITY_NOT_SUPPORTED),
            "blocked": (Command(id="blocked", session="s1", do=DoSend(text="hi")), OutcomeKind.INVALID),
            "gone": (Command(id="gone", session="s9", do=DoSend(text="hi")), OutcomeKind.STALE_TARGET),
            "act": (
                Command(id="act", session="s2", do=DoAct(act="burn", fields={})),
                OutcomeKind.CAPABILITY_NOT_SUPPORTED,
            ),
            "turn": (Command(id="turn", session="s1", turn="t9", do=DoSend(text="x")), OutcomeKind.STALE_TARGET),
        }
        for command, _ in cases.values():
            await seen.link.send(command)
        for id, (_, outcome) in cases.items():
            assert (await seen.outcome(id)).outcome is outcome, id
        assert source.executed == []


async def test_an_answer_is_checked_against_the_questions_fields() -> None:
    made, source = connector()
    name = FormField(name="name", type=FieldType.TEXT)
    subject = Subject(session="s1", attempt=None, id="q1", kind=RequestKind.QUESTION, fields=(name,))
    question = RequestModel.ask(subject, asked_at=NOW)
    source.opens = [lambda: put(source), lambda: source.mirror.ask("s1", question)]
    async with console(made) as seen:
        wrong = DoAnswer(request="q1", digest=question.digest, fields={"colour": "red"})
        right = DoAnswer(request="q1", digest=question.digest, fields={"name": "Ada"})
        await seen.link.send(Command(id="wrong", session="s1", do=wrong))
        await seen.link.send(Command(id="right", session="s1", do=right))
        assert (await seen.outcome("wrong")).outcome is OutcomeKind.INVALID
        assert (await seen.outcome("right")).outcome is OutcomeKind.APPLIED
        assert [command.id for command in source.executed] == ["right"]


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (ConnectionLost("it hung up"), OutcomeKind.UNKNOWN),
        (Unreachable("nobody there"), OutcomeKind.UNDELIVERED),
        (CapabilityNotSupported("not this build"), OutcomeKind.CAPABILITY_NOT_SUPPORTED),
        (StaleTarget("another run"), OutcomeKind.STALE_TARGET),
        (RuntimeError("a bug"), OutcomeKind.UNKNOWN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_what_a_connector_raises_becomes_an_outcome(raised: Exception, outcome: OutcomeKind) -> None:
    made, source = connector()
    source.opens = [lambda: put(source)]
    source.answer = raised
    async with console(made) as seen:
        await seen.link.send(Command(id="c1", session="s1", do=DoSend(text="hi")))
        assert (await seen.outcome("c1")).outcome is outcome


async def test_a_lost_connection_leaves_unknown_and_the_next_one_says_so() -> None:
    made, source = connector()
    source.opens = [lambda: put(source)]
    async with console(made) as seen:
        source.answer = asyncio.get_running_loop().create_future()
        say(source, "before")
        await seen.link.send(Command(id="c1", session="s1", do=DoSend(text="hi")))
        await seen.until(lambda: source.executed and "before" in seen.texts())
        source.lost = ConnectionLost("it hung up")
        source.ends.set()
        await seen.until(lambda: seen.fault is not None)
        assert str(seen.fault) == "it hung up"
    say(source, "meanwhile")
    source.lost = None
    async with console(made) as again:
        assert (await again.outcome("c1")).outcome is OutcomeKind.UNKNOWN
        await again.until(lambda: again.texts() == ["meanwhile"])
        assert len(source.executed) == 1
        assert source.calls.count("open") == 2
    with pytest.raises(ConnectionLost):
        made.sent(Command(id="c2", session="s1", do=DoSend(text="hi")))


async def test_good_order_ends_the_batches_after_the_last_word() -> None:
    made, source = connector()
    source.opens = [lambda: put(source)]
    async with console(made) as seen:
        say(source, "last words")
        source.ends.set()
        async with asyncio.timeout(5):
            await seen._reading
        assert seen.texts() == ["last words"]
        assert seen.fault is None


async def test_a_connection_that_fails_is_closed_and_told() -> None:
    made, source = connector()
    source.fault = Unreachable("nobody there")
    with pytest.raises(Unreachable):
        await made.connect()
    assert source.calls == ["open", "close"]


async def test_sessions_that_are_not_listed_any_more_are_gone() -> None:
    made, source = connector()
    source.opens = [lambda: put(source), lambda: put(source, "s2")]
    async with console(made) as seen:
        source.mirror.keep_only(["s2"])
        await seen.until(lambda: seen.of(Gone))
        assert seen.of(Gone)[0].sessions == ("s1",)
        assert source.mirror.sessions() == ("s2",)


async def test_looking_at_a_session_fetches_it_and_a_failure_is_said_there() -> None:
    made, source = connector(Record.WATCHED)
    source.opens = [lambda: put(source), lambda: put(source, "locked")]
    async with console(made) as seen:
        say(source, "unwatched")
        await seen.link.send(Watch(session="s1", start="head"))
        say(source, "watched")
        await seen.until(lambda: seen.texts() == ["watched"])
        await seen.link.send(Watch(session="locked", start="head"))
        await seen.until(lambda: any(f.session == "locked" for f in seen.of(Events)))
        notice = next(f for f in seen.of(Events) if f.session == "locked").events[0]
        assert "no key for it" in str(getattr(notice, "text", ""))
        await seen.link.send(Unwatch(session="s1"))
        await seen.until(lambda: True)
        await asyncio.sleep(0)
        assert source.calls == ["open", "watch s1", "watch locked", "unwatch s1"]


async def test_a_page_of_history_comes_from_what_is_kept() -> None:
    made, source = connector()
    source.opens = [lambda: put(source), *(lambda n=n: say(source, f"m{n}") for n in range(5))]
    async with console(made) as seen:
        await seen.until(lambda: seen.of(Events))
        epoch = seen.of(Events)[0].epoch
        await seen.link.send(History(id="h1", session="s1", epoch=epoch, before=4, limit=2))
        await seen.until(lambda: seen.of(Page))
        page = seen.of(Page)[0]
        assert (page.id, page.more, [getattr(e, "text", "") for e in page.events]) == ("h1", True, ["m1", "m2"])


async def test_only_signs_of_life_make_beats() -> None:
    made, source = connector()
    source.opens = [lambda: put(source)]
    async with console(made) as seen:
        made.tick()
        source.mirror.heard()
        source.mirror.heard()
        await seen.until(lambda: seen.of(Beat))
        assert len(seen.of(Beat)) == 1


async def test_a_request_that_asks_for_something_else_replaces_the_old_one() -> None:
    made, source = connector()
    before, after = approval(), approval(command="make clean")
    source.opens = [lambda: put(source), lambda: source.mirror.ask("s1", before)]
    async with console(made) as seen:
        source.mirror.ask("s1", after)
        await seen.link.send(approve(before, id="old"))
        await seen.link.send(approve(after, id="new"))
        assert (await seen.outcome("old")).outcome is OutcomeKind.STALE_TARGET
        assert (await seen.outcome("new")).outcome is OutcomeKind.APPLIED
        source.mirror.end_request("s1", "r1", RequestState.WITHDRAWN, why="the run ended")
        with pytest.raises(ContractError, match="unique"):
            source.mirror.ask("s1", after)


async def test_the_foreign_systems_version_is_told_to_who_connects_after_it_was_found_out() -> None:
    made, source = connector()
    source.opens = [lambda: source.mirror.host(version="8.1")]
    async with console(made) as seen:
        await seen.until(lambda: seen.of(Welcome))
        assert seen.of(Welcome)[0].host.version == "8.1"


async def test_one_streamed_item_is_cut_and_another_goes_on() -> None:
    made, source = connector()
    source.opens = [lambda: put(source)]
    async with console(made) as seen:
        source.mirror.stream("s1", "i1", "message", "cut he")
        source.mirror.stream("s1", "i2", "message", "goes ")
        source.mirror.cut_streams("s1", "i1", "i9")
        source.mirror.stream("s1", "i2", "message", "on")
        source.mirror.emit("s1", Message(at=NOW, item="i2", text="goes on"))
        await seen.until(lambda: "goes on" in seen.texts())
        said = [e for f in seen.of(Events) for e in f.events if isinstance(e, Message)]
        assert [(e.text, e.cut) for e in said] == [("cut he", True), ("goes on", False)]


async def test_a_page_of_a_session_that_nobody_looked_at_waits_until_it_was_fetched() -> None:
    made, source = connector(Record.NONE)
    source.opens = [lambda: put(source)]
    async with console(made) as seen:
        await seen.until(lambda: seen.of(Sessions))
        source.watched = [lambda: say(source, "the past", "k")]
        epoch = made.core.log.epoch("s1")
        for id in ("h1", "h2"):
            await seen.link.send(History(id=id, session="s1", epoch=epoch, after=0))
        await seen.until(lambda: len(seen.of(Page)) == 2)
        for page in seen.of(Page):
            assert [event.text for event in page.events if isinstance(event, Message)] == ["the past"]
        assert source.calls.count("watch s1") == 1
