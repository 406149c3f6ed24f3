"""What has happened since somebody last looked: how each session was left, and what is different now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Final, NamedTuple

from console.fleet.facts import RequestKey, SessionKey
from console.fleet.state import Session
from console.fleet.store import Store
from console.fleet.views.wording import Tone, clock_time, short_count
from watchfloor.text import Clean, clean_line, numeral, since
from watchfloor.words import Lifecycle

AWAY_MS: Final = 60_000
"""How long nobody must have looked, or the source not been heard, until there is something to be told."""
MOST: Final = 200
"""Lines of each sort that are told one by one."""


class Mark(NamedTuple):
    """How a session was left. `at`: local milliseconds; `head`: number of its newest event in `epoch`."""

    at: int
    epoch: str
    head: int
    lifecycle: str
    attempt: int | None
    tokens: int
    requests: frozenset[str]


class Moved(NamedTuple):
    """A session that is in another state now."""

    key: SessionKey
    before: str
    now: Lifecycle


class Digest(NamedTuple):
    """What has happened at one source since local time `at`. `logs`: sessions whose log is another one now."""

    source: str
    at: int
    requests: tuple[RequestKey, ...] = ()
    moved: tuple[Moved, ...] = ()
    failed: tuple[SessionKey, ...] = ()
    new: tuple[SessionKey, ...] = ()
    gone: int = 0
    events: int = 0
    tokens: int = 0
    logs: tuple[SessionKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requests or self.moved or self.failed or self.new or self.gone or self.events or self.logs)


def mark(session: Session, now: int) -> Mark:
    """How the session is left."""
    usage = session.usage
    return Mark(
        now,
        session.epoch,
        session.head,
        session.lifecycle.value,
        session.attempt,
        usage.input_tokens + usage.output_tokens if usage is not None else 0,
        frozenset(id for id, request in session.requests.items() if request.open),
    )


def marks(store: Store, source: str, now: int) -> dict[str, Mark]:
    """How all sessions of a source are left."""
    return {
        key.session: mark(session, now)
        for key, session in store.sessions.items()
        if key.source == source and not session.placeholder
    }


def digest(store: Store, source: str, left: Mapping[str, Mark], now: int) -> Digest:
    """What is different from how it was left."""
    present = marks(store, source, now)
    asked: list[RequestKey] = []
    moved: list[Moved] = []
    failed: list[SessionKey] = []
    new: list[SessionKey] = []
    logs: list[SessionKey] = []
    events = tokens = 0
    for id, is_now in present.items():
        key, was = SessionKey(source, id), left.get(id)
        before = was.requests if was is not None else frozenset()
        asked += [RequestKey(source, id, request) for request in sorted(is_now.requests - before)]
        lifecycle = Lifecycle(is_now.lifecycle)
        again = was is None or (was.lifecycle, was.attempt) != (is_now.lifecycle, is_now.attempt)
        if lifecycle is Lifecycle.FAILED and again:
            failed.append(key)
        if was is None:
            new.append(key)
            events += is_now.head
            tokens += is_now.tokens
            continue
        if was.lifecycle != is_now.lifecycle:
            moved.append(Moved(key, was.lifecycle, lifecycle))
        if was.epoch != is_now.epoch:
            logs.append(key)
        events += is_now.head if was.epoch != is_now.epoch else max(0, is_now.head - was.head)
        tokens += max(0, is_now.tokens - was.tokens)
    at = max((was.at for was in left.values()), default=now)
    gone = sum(id not in present for id in left)
    return Digest(
        source, at, tuple(asked), tuple(moved), tuple(failed), tuple(new), gone, events, tokens, tuple(logs)
    )  # fmt: skip


def headline(digests: Sequence[Digest], now: int) -> Clean:
    """All of it in one line; "" where nothing has happened."""
    told = [one for one in digests if one]
    if not told:
        return Clean("")
    count = {
        "new request": sum(len(one.requests) for one in told),
        "failed": sum(len(one.failed) for one in told),
        "changed state": sum(len(one.moved) for one in told),
        "new session": sum(len(one.new) for one in told),
        "new log": sum(len(one.logs) for one in told),
    }
    words = [f"{n:,} {what}{'s' if n > 1 and what.startswith('new') else ''}" for what, n in count.items() if n]
    words.append(f"{short_count(sum(one.events for one in told))} events")
    return Clean(f"while you were away ({since(now - min(one.at for one in told))}): {', '.join(words)}")


def lines(store: Store, one: Digest, now: int, tz: tzinfo | None = None) -> list[tuple[Clean, Tone]]:
    """What has happened at one source, a line each, what needs somebody first."""
    shown = store.sources[one.source].shown if one.source in store.sources else clean_line(one.source)
    head = f"{shown}, since {clock_time(one.at, tz)}, {since(now - one.at)} ago"
    use = f"{numeral(one.events)} events" + (f", {numeral(one.tokens)} tokens" if one.tokens else "")
    told: list[tuple[Clean, Tone]] = [(Clean(head), "attention"), (Clean(f"  use        {use}"), "plain")]
    told += _each("asks", [f"{_name(store, r.owner)}: {r.request}" for r in one.requests], "attention")
    told += _each("failed", [_name(store, key) for key in one.failed], "failed")
    told += _each("state", [f"{_name(store, m.key)}: {m.before}, now {m.now.value}" for m in one.moved], "plain")
    told += _each("new", [_name(store, key) for key in one.new], "plain")
    told += _each("new log", [f"{_name(store, key)}: its log was begun anew" for key in one.logs], "attention")
    if one.gone:
        told.append((Clean(f"  gone       {numeral(one.gone)} sessions"), "plain"))
    return told


def _each(label: str, texts: Sequence[str], tone: Tone) -> list[tuple[Clean, Tone]]:
    told: list[tuple[Clean, Tone]] = [(clean_line(f"  {label:<11}{text}"), tone) for text in texts[:MOST]]
    if len(texts) > MOST:
        told.append((Clean(f"  {label:<11}and {len(texts) - MOST:,} more"), tone))
    return told


def _name(store: Store, key: SessionKey) -> str:
    session = store.sessions.get(key)
    return str(session.name) if session is not None and session.name else key.session
