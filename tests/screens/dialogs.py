"""The dialogs that steer a session which offers everything, for snapshots and for the pictures of the documentation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from textual.pilot import Pilot

from console.app import Watchfloor
from tests.screens.stage import Clock, StagedHost, shown
from watchfloor.protocol import model as m
from watchfloor.words import ReseedMode

Dialog = Callable[[Watchfloor, Clock, "Pilot[int]"], Awaitable[None]]

_FIELDS: Final[tuple[Mapping[str, Any], ...]] = (
    {
        "name": "where",
        "type": "choice",
        "label": "Where to",
        "choices": [
            {"value": "stage", "label": "staging", "note": "nobody sees it there"},
            {"value": "live", "label": "live"},
        ],
    },
    {"name": "token", "type": "secret", "label": "Token"},
    {"name": "note", "type": "text", "label": "Note", "required": False},
)
_ACTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"id": "publish", "label": "Publish it", "effect": "puts the index before its readers", "fields": _FIELDS},
    {"id": "name", "label": "Name it", "effect": "gives it a name that every client shows", "fields": [_FIELDS[2]]},
    {
        "id": "archive",
        "label": "Archive it",
        "effect": "takes it out of the ordinary lists and ends what it holds",
        "danger": True,
    },
)
_ALL: Final[Mapping[str, Any]] = {
    "send": {"priorities": ["normal", "queue"]},
    "pause": {"interrupt": True},
    "resume": {},
    "stop": {"kill": True},
    "reseed": {"modes": [mode.value for mode in ReseedMode]},
    "fork": {},
    "budget": {"tokens": True, "turns": True},
    "notify": {},
    "delete": {},
    "act": {"acts": _ACTS},
}
_MESSAGES: Final = ("Index the manuals of 2024", "Leave out drafts", "日本語の章も 📚, please", "Now write the summary")


async def _begin(app: Watchfloor, clock: Clock, pilot: Pilot[int], *keys: str) -> StagedHost:
    """A session that has worked for a while, and these keys, each with the time that it needs to count."""
    host = StagedHost(app, clock, "local")
    host.session("librarian", {}, lifecycle="idle", since=host.ago(600))
    host.session("proof-reader", {}, parent="archivist", since=host.ago(30))
    host.session(
        "archivist",
        _ALL,
        lifecycle="paused",
        attempt=2,
        since=host.ago(190),
        mailbox={"queued": 2, "refs": len(_MESSAGES) + 2},
        usage={"input_tokens": 118_400, "output_tokens": 9_120, "turns": 14, "budget_tokens": 200_000},
        labels={"model": "small"},
    )
    events: list[Mapping[str, Any]] = []
    for number, text in enumerate(_MESSAGES, 1):
        events += [
            {"kind": "mail", "ref": f"#{number}", "state": "sent", "text": text, "by": "ops"},
            {"kind": "mail", "ref": f"#{number}", "state": "consumed"},
            {"kind": "tool_call", "call": f"c{number}", "name": "read", "text": "manuals/index.md"},
            {"kind": "tool_result", "call": f"c{number}", "status": "ok", "text": "812 lines"},
            {"kind": "message", "role": "assistant", "text": "Done, on to the next."},
        ]
    host.events("archivist", *events)
    host.summary("archivist", head=len(events))
    await shown(pilot, app)
    await pilot.press("g")
    while app.fleet_screen.selected is None or app.fleet_screen.selected.session != "archivist":
        await pilot.press("j")
    await _press(app, clock, pilot, *keys)
    return host


async def _press(app: Watchfloor, clock: Clock, pilot: Pilot[int], *keys: str) -> None:
    for key in keys:
        clock.now += 1_000
        await shown(pilot, app)
        await pilot.press(key)
    await shown(pilot, app)


def _form(*keys: str) -> Dialog:
    async def dialog(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
        host = await _begin(app, clock, pilot)
        fields = [m.FormField.model_validate(dict(field)) for field in _FIELDS]
        host.session("shipper", {"answer": {}, "send": {}, "stop": {}}, lifecycle="waiting", since=host.ago(4))
        host.question("q1", "shipper", fields=fields)
        await _press(app, clock, pilot, "i", "o", *keys)

    return dialog


def _by(*keys: str) -> Dialog:
    async def dialog(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
        await _begin(app, clock, pilot, *keys)

    return dialog


async def _notify(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    await _begin(app, clock, pilot)
    app.fleet_screen.action_perform("notify")
    await shown(pilot, app)


DIALOGS: Final[Mapping[str, Dialog]] = {
    "reseed": _by("R"),
    "rewind": _by("R", "r"),
    "rewind-sure": _by("R", "r", "3"),
    "replace": _by("R", "t", "w", *"Begin", "space", *"here"),
    "replace-sure": _by("R", "t", "w", *"Begin", "space", *"here", "ctrl+j", *"then", "space", *"stop", "enter"),
    "model": _by("R", "m", *"large"),
    "budget": _by("b", *"100k"),
    "budget-sure": _by("b", *"100k", "enter", "enter"),
    "fork": _by("F", *"second"),
    "delete": _by("delete"),
    "notify": _notify,
    "acts": _by("m"),
    "act-choice": _by("m", "1"),
    "act-secret": _by("m", "1", "1", *"hush"),
    "act-sure": _by("m", "1", "1", *"hush", "enter", "enter"),
    "act-danger": _by("m", "3"),
    "form": _form(),
    "form-sum": _form("1", "enter", *"hush", "enter", *"before", "space", *"noon", "enter"),
    "jump": _by("apostrophe"),
}
