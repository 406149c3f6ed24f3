"""Histories of a made-up source, and the ways in which they may arrive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from console.fleet.apply import Fleet
from console.fleet.facts import (
    ActionFact,
    DecisionFact,
    EventFact,
    EventsFact,
    Fact,
    ListedFact,
    OptionFact,
    RequestFact,
    RequestKey,
    RequestRefFact,
    SessionKey,
    SummaryFact,
    WatchingFact,
    WelcomeFact,
)
from watchfloor.text import Clean
from watchfloor.words import Lifecycle, OptionKind, RequestKind, RequestState, Role, Scope, Then

SOURCE = "here"
LATE = 10**9
"""A time at which everything that can be late is missing."""

ACTION = ActionFact(Clean("shell"), Clean("make"), Clean("make"), None, None, "c1", True, 0)
OPTIONS = tuple(
    OptionFact(id, Clean(id), kind, Scope.ONCE, (), False, None, Then.CONTINUES, False)
    for id, kind in (("yes", OptionKind.ALLOW), ("no", OptionKind.DENY))
)


@dataclass
class Source:
    """What the source knows at one moment; `log` is what it keeps for ever."""

    clock: int = 1000
    pos: int = 0
    log: list[EventsFact] = field(default_factory=list)
    """One event each, in the order of `pos`; the streamed pieces are not kept."""
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: dict[RequestKey, RequestFact] = field(default_factory=dict)

    def key(self, session: str) -> SessionKey:
        return SessionKey(SOURCE, session)

    def event(self, session: str, kind: str, text: str, item: str | None = None, **data: Any) -> EventsFact:
        state = self.sessions[session]
        state["head"] += 1
        self.pos += 1
        self.clock += 1
        fact = EventFact(
            kind, self.clock, state["head"], self.pos, 1, None, item, None, None, Clean(""), Clean(text), data
        )
        made = EventsFact(self.key(session), state["epoch"], (fact,))
        self.log.append(made)
        return made

    def delta(self, session: str, item: str, offset: int, text: str) -> EventsFact:
        fact = EventFact("delta", self.clock, None, None, 1, None, item, offset, None, Clean(""), Clean(text))
        return EventsFact(self.key(session), self.sessions[session]["epoch"], (fact,))

    def whole(self, session: str) -> SummaryFact:
        return SummaryFact(self.key(session), dict(self.sessions[session]))

    def greeting(self, after: int) -> list[Fact]:
        """What a client hears first on a connection that goes on behind `after`."""
        welcome = WelcomeFact(SOURCE, Clean("h"), Clean("1"), "i", Clean("ops"), Role.OPERATOR, self.pos, 15.0, 0)
        facts: list[Fact] = [welcome]
        facts += [self.whole(session) for session in self.sessions]
        facts += [ListedFact(SOURCE)]
        facts += [request for request in self.requests.values() if request.state is RequestState.OPEN]
        facts += [WatchingFact(SOURCE, "*", after, self.pos)]
        return facts


@dataclass
class History:
    """Facts in the order in which the source said them, and where each leaves it."""

    facts: list[Fact] = field(default_factory=list)
    greetings: list[tuple[list[Fact], list[EventsFact]]] = field(default_factory=list)
    """For the moment after each fact: the greeting of a new connection, and the whole log."""


@st.composite
def histories(draw: st.DrawFn, *, epochs: bool = True) -> History:
    """A few sessions that speak, stream, ask, are decided, change state and, with `epochs`, lose their log."""
    source, history = Source(), History()
    names = [f"s{i}" for i in range(draw(st.integers(1, 3)))]

    def say(*facts: Fact) -> None:
        for fact in facts:
            history.facts.append(fact)
            history.greetings.append((source.greeting(0), list(source.log)))

    for i, name in enumerate(names):
        source.sessions[name] = {
            "name": Clean(name),
            "parent": names[0] if i else None,
            "epoch": "e0",
            "lifecycle": Lifecycle.RUNNING,
            "head": 0,
            "request_refs": (),
        }
        say(source.whole(name))
    say(WatchingFact(SOURCE, "*", 0, 0))
    acts = ["say", "say", "stream", "ask", "decide", "state", *(["epoch"] if epochs else [])]
    for turn in range(draw(st.integers(1, 14))):
        name = draw(st.sampled_from(names))
        match draw(st.sampled_from(acts)):
            case "say":
                say(source.event(name, "message", f"text {turn}"))
            case "stream":
                item, words = f"i{turn}", f"streamed {turn}"
                cut = draw(st.integers(1, len(words) - 1))
                say(source.delta(name, item, 0, words[:cut]), source.delta(name, item, cut, words[cut:]))
                say(source.event(name, "message", words, item))
            case "ask":
                say(*_ask(source, name, f"r{turn}"))
            case "decide":
                say(*_decide(source, name))
            case "state":
                source.sessions[name]["lifecycle"] = draw(st.sampled_from(list(Lifecycle)))
                say(SummaryFact(source.key(name), {"lifecycle": source.sessions[name]["lifecycle"]}))
            case "epoch":
                source.sessions[name] |= {"epoch": f"e{turn + 1}", "head": 0}
                source.log = [fact for fact in source.log if fact.key.session != name]
                say(source.whole(name))
    for name in names:
        say(source.whole(name))
    return history


def _refs(source: Source, session: str) -> tuple[RequestRefFact, ...]:
    return tuple(
        RequestRefFact(key.request, fact.kind, fact.asked_at, None, fact.digest)
        for key, fact in source.requests.items()
        if key.session == session and fact.state is RequestState.OPEN
    )


def _ask(source: Source, session: str, id: str) -> list[Fact]:
    key = RequestKey(SOURCE, session, id)
    source.requests[key] = RequestFact(
        key, 1, RequestKind.APPROVAL, (ACTION,), (), OPTIONS, False, source.clock, None, None, True, None,
        RequestState.OPEN, None, f"sha256:{id}", True,
    )  # fmt: skip
    source.sessions[session]["request_refs"] = _refs(source, session)
    refs = SummaryFact(source.key(session), {"request_refs": source.sessions[session]["request_refs"]})
    return [refs, source.requests[key], source.event(session, "request_opened", id, request=id)]


def _decide(source: Source, session: str) -> list[Fact]:
    waiting = [k for k, f in source.requests.items() if k.session == session and f.state is RequestState.OPEN]
    if not waiting:
        return []
    key = waiting[0]
    opened = source.requests[key]
    decision = DecisionFact("yes", OptionKind.ALLOW, Clean("ann"), source.clock + 1, None, False)
    ended = opened._replace(state=RequestState.RESOLVED, decision=decision)
    source.requests[key] = ended
    source.sessions[session]["request_refs"] = _refs(source, session)
    refs = SummaryFact(source.key(session), {"request_refs": source.sessions[session]["request_refs"]})
    resolved = source.event(
        session, "request_resolved", "", request=key.request, state=RequestState.RESOLVED, option="yes",
        option_kind=OptionKind.ALLOW, by=Clean("ann"), note=None, why=None,
    )  # fmt: skip
    return [refs, ended, resolved]


def run(facts: list[Fact], fleet: Fleet | None = None) -> Fleet:
    fleet = fleet or Fleet()
    for i, fact in enumerate(facts):
        fleet.apply([fact], 1000 + i)
    return fleet


def fingerprint(fleet: Fleet) -> dict[str, Any]:
    """All that an operator could see, but for times of arrival."""
    return {
        "sessions": {key: session_print(fleet, key) for key in fleet.sessions},
        "requests": {
            key: (r.state, r.delisted, r.digest, r.fact, r.decision, r.ended_at, r.asked_at, r.ended_why)
            for key, r in fleet.requests.items()
        },
        "children": fleet.children,
    }


def session_print(fleet: Fleet, key: SessionKey) -> dict[str, Any]:
    session = fleet.sessions[key]
    said = [entry for entry in session.log.entries() if entry.fact.head != "console"]
    return {
        "name": session.name,
        "placeholder": session.placeholder,
        "lifecycle": session.lifecycle,
        "parent": session.parent,
        "refs": session.request_refs,
        "epoch": session.epoch,
        "head": session.head,
        "held": session.track.held.intervals(),
        "continuity": str(session.track.state(LATE)),
        # What the console remarks on a log that was begun anew depends on how much of the one before had come.
        "log": [(entry.fact.seq, entry.text, entry.open, entry.holed) for entry in said],
        "end": session.log.end - session.log.first - (len(session.log) - len(said)),
    }
