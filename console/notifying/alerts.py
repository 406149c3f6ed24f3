"""An alert in words and as data. Whatever agents wrote is cleaned, on one line, short, and without known secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple
from uuid import uuid4

from console.fleet.decisions.former import standing
from console.fleet.facts import RequestKey
from console.fleet.needs import open_requests
from console.fleet.state import Request
from console.fleet.store import Store
from console.fleet.views.wording import name_by_key
from watchfloor.text import NOTHING, Clean, clean_line, cut, redact

VERSION: Final = 1
"""Of the data that commands and webhooks are given."""
TITLE: Final = "watchfloor"
NAMED_MOST: Final = 5
"""Requests that one alert names; of the others it tells how many they are."""
_NAME: Final = 60
_WHAT: Final = 120
_TEXT: Final = 300

AlertKind = Literal["waiting", "unanswered", "test"]


class Named(NamedTuple):
    """One request of an alert. `what` it asks is empty where it is not to be told."""

    agent: Clean
    source: Clean
    what: Clean
    waits_s: int


class Alert(NamedTuple):
    """What a channel tells. `agents` and `requests` count all that waits; `at` is milliseconds since 1970 UTC."""

    id: str
    at: int
    kind: AlertKind
    agents: int
    requests: int
    named: tuple[Named, ...]
    text: Clean

    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        named = [{name: value for name, value in one._asdict().items() if value != ""} for one in self.named]
        rest = {"agents": self.agents, "requests": self.requests, "named": named, "text": self.text}
        return {"version": VERSION, "id": self.id, "at": self.at, "kind": self.kind, **rest}


def alert(store: Store, keys: Sequence[RequestKey], now: int, *, unanswered: bool, details: bool) -> Alert | None:
    """The alert about those of these requests that still wait, undecided here; None where there are none."""
    asked = [
        request
        for key in keys
        if (request := store.requests.get(key)) is not None and request.open and standing(store, key, now) is None
    ]
    if not asked:
        return None
    waiting = open_requests(store)
    agents = len({request.key.owner for request in waiting})
    named = tuple(_named(store, request, now, details=details) for request in asked[:NAMED_MOST])
    count = f"{agents:,} agent waits" if agents == 1 else f"{agents:,} agents wait"
    words = [f"{one.agent}: {one.what}" if one.what else str(one.agent) for one in named]
    if (more := len(asked) - len(named)) > 0:
        words.append(f"{more:,} more")
    head = f"{count}, unanswered" if unanswered else count
    text = cut(Clean(f"{head}: {', '.join(dict.fromkeys(words))}"), _TEXT)
    return Alert(str(uuid4()), now, "unanswered" if unanswered else "waiting", agents, len(waiting), named, text)


def trial(now: int) -> Alert:
    """What channels are tried with."""
    return Alert(str(uuid4()), now, "test", 0, 0, (), Clean("this is a test: no agent waits"))


def _named(store: Store, request: Request, now: int, *, details: bool) -> Named:
    source = store.sources[request.key.source]
    waits_s = max(0, now - store.asked_local(request)) // 1000 if request.asked_at else 0
    what = _asks(request) if details else NOTHING
    return Named(
        _told(name_by_key(store.sessions, request.key.owner), _NAME), _told(source.shown, _NAME), what, waits_s
    )


def _asks(request: Request) -> Clean:
    fact = request.fact
    if fact is None:
        return NOTHING
    if fact.actions:
        action = fact.actions[0]
        more = f" and {len(fact.actions) - 1} more" if len(fact.actions) > 1 else ""
        return _told(Clean(f"{action.tool}: {action.text[: _WHAT * 8]}{more}"), _WHAT)
    return _told(fact.fields[0].label, _WHAT) if fact.fields else NOTHING


def _told(text: Clean, cells: int) -> Clean:
    return cut(clean_line(redact(text)[0]), cells)
