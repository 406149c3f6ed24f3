"""The main states of the fleet screen, for snapshots and for the pictures of the documentation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from textual.pilot import Pilot

from console.app import Watchfloor
from console.audit import Audit
from console.fleet.absence import marks
from console.fleet.facts import ContactFact, FaultFact, RequestKey, SessionKey
from tests.screens.dialogs import DIALOGS
from tests.screens.stage import Clock, StagedHost, shown, until
from watchfloor.protocol import model as m
from watchfloor.text import clean, clean_line
from watchfloor.words import Contact, OptionKind, Scope
from widgets.roster import Roster

_PAUSABLE: Final[Mapping[str, Any]] = {"pause": {}, "resume": {}}
_APPROVABLE: Final[Mapping[str, Any]] = {"approve": {}}
_MOST: Final[Mapping[str, Any]] = {
    "send": {"priorities": ["normal", "queue"]},
    "pause": {"interrupt": True},
    "resume": {},
    "interrupt": {},
    "stop": {"kill": True},
    "reseed": {"modes": ["clear"]},
    "approve": {},
    "answer": {},
}

_ALLOW = m.Option(id="allow", label="Allow once", kind=OptionKind.ALLOW)
_DENY = m.Option(id="deny", label="Deny", kind=OptionKind.DENY)
_SESSION = m.Option(
    id="session",
    label="Allow for this session",
    kind=OptionKind.ALLOW,
    scope=Scope.SESSION,
    grants=("shell: rm -rf build && make migrate",),
)

_LONG = "set -euo pipefail\n" + "\n".join(
    f'psql -d shop -c "alter table orders_{n:02} add column settled_at timestamptz"' for n in range(1, 65)
)


@dataclass
class Scene:
    """The application with a fleet in it."""

    app: Watchfloor
    clock: Clock
    local: StagedHost
    farm: StagedHost
    requests: dict[str, RequestKey]


def fleet(app: Watchfloor, clock: Clock) -> Scene:
    """Ten sessions on two sources: who waits, who works, who failed, who only shows itself."""
    local, farm = StagedHost(app, clock, "local"), StagedHost(app, clock, "build-farm")
    scene = Scene(app, clock, local, farm, {})
    clock.now -= 134_000
    _deploy(scene)
    clock.now += 103_000
    _review(scene)
    clock.now += 31_000
    _others(scene)
    return scene


def _deploy(scene: Scene) -> None:
    host = scene.local
    host.session("deploy-eu", _MOST, lifecycle="waiting", since=host.ago(0), cwd="/srv/app", attempt=2, demo=True)
    host.events(
        "deploy-eu",
        {"kind": "message", "role": "user", "text": "Deploy the new schema to Frankfurt."},
        {
            "kind": "message",
            "role": "assistant",
            "text": "I will rebuild from clean sources, then migrate the database.",
        },
        {"kind": "tool_call", "call": "c1", "name": "shell", "text": "make build"},
        {"kind": "tool_result", "call": "c1", "status": "ok", "text": "built 41 targets", "duration_ms": 3_240},
        {"kind": "tool_call", "call": "c2", "name": "shell", "text": "rm -rf build && make migrate", "gated": True},
    )
    action = m.Action(tool="shell", text="rm -rf build && make migrate", cwd="/srv/app", call="c2")
    scene.requests["approval"] = _open(
        host, "deploy-eu", "r1", (action,), (_ALLOW, _SESSION, _DENY), about="clean rebuild, safe", attempt=2
    )
    opened = {"request": "r1", "request_kind": "approval", "digest": host.asked["r1"].digest, "text": action.text}
    host.events("deploy-eu", {"kind": "request_opened", **opened})


def _review(scene: Scene) -> None:
    host = scene.local
    host.session("release", _MOST, lifecycle="running", since=host.ago(300))
    host.session("review-bot", _MOST, lifecycle="waiting", parent="release", since=host.ago(0))
    branch = m.FormField(
        name="branch",
        type=m.FieldType.CHOICE,
        label="Which branch should I target?",
        choices=(
            m.Choice(value="main", label="main"),
            m.Choice(value="r2", label="release-2", note="frozen on Friday"),
        ),
        free_text=True,
    )
    host.events(
        "review-bot", {"kind": "message", "role": "assistant", "text": "Two branches fit. I need to know which."}
    )
    scene.requests["question"] = host.question("q1", "review-bot", fields=(branch,))
    host.session("test-runner", _PAUSABLE, parent="release", attempt=3, last=_last(host, "pytest -q  118 passed"))


def _others(scene: Scene) -> None:
    local, farm = scene.local, scene.farm
    usage = {"input_tokens": 118_400, "output_tokens": 9_120, "turns": 14}
    local.session(
        "docs-writer", _MOST, lifecycle="paused", since=local.ago(190), usage=usage, last=_last(local, "chapter 4 of 9")
    )
    local.session("legacy-etl", {}, last=_last(local, "row 1,204,331"), since=local.ago(7_200), demo=True)
    local.session("triage", _MOST, lifecycle="idle", last=_last(local, "14 issues labelled"), since=local.ago(45))
    farm.session(
        "nightly-index",
        _MOST,
        lifecycle="failed",
        error="model refused: quota exceeded for this hour",
        attempt=2,
        since=farm.ago(840),
        controls={"resume": "Retry (attempt 3)"},
    )
    farm.session("scraper-7", {"send": {}, "interrupt": {}}, last=_last(farm, "fetched 41 pages"), since=farm.ago(61))
    farm.session("package", _APPROVABLE, lifecycle="completed", last=_last(farm, "wheel built"), since=farm.ago(3_900))


def _open(host: StagedHost, session: str, id: str, actions: Any, options: Any, **rest: Any) -> RequestKey:
    attempt = rest.pop("attempt", 1)
    subject = m.Subject(session=session, attempt=attempt, id=id, kind="approval", actions=actions, options=options)  # type: ignore[arg-type]
    return host.open(m.RequestModel.ask(subject, asked_at=host.ago(0), **rest))


def _last(host: StagedHost, text: str) -> dict[str, Any]:
    return {"at": host.ago(1), "kind": "message", "text": text}


# --- the states ----------------------------------------------------------------------------

State = Callable[[Watchfloor, Clock, "Pilot[int]"], Awaitable[None]]


async def _fleet(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)


async def _card(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("i")
    await shown(pilot, app)
    clock.now += 1_000
    await shown(pilot, app)


async def _question(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    await _card(app, clock, pilot)
    await pilot.press("i")
    await shown(pilot, app)
    clock.now += 1_000
    await shown(pilot, app)
    await pilot.press("o")
    await shown(pilot, app)


async def _long_command(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    scene = fleet(app, clock)
    clock.now -= 600_000
    action = m.Action(tool="shell", text=_LONG, cwd="/srv/shop")
    scene.farm.session("shop-migration", _MOST, lifecycle="waiting")
    _open(scene.farm, "shop-migration", "r9", (action,), (_ALLOW, _DENY), about="adds a column to every partition")
    clock.now += 600_000
    await shown(pilot, app)
    # What the selected session asks is shown before anything else.
    app.fleet_screen.query_one(Roster).select(SessionKey("build-farm", "shop-migration"))
    await shown(pilot, app)
    await pilot.press("i")
    await shown(pilot, app)


async def _dead_card(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    scene = fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("i")
    await shown(pilot, app)
    scene.local.decide("r1", "deny", by="anna")
    clock.now += 4_000
    await shown(pilot, app)


async def _lost_source(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    scene = fleet(app, clock)
    clock.now += 1_000
    scene.farm.contact(Contact.LOST, "connection refused", tries=7)
    clock.now += 42_000
    await shown(pilot, app)
    await pilot.press("G")
    await shown(pilot, app)


async def _empty(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    StagedHost(app, clock, "local").contact(Contact.CONNECTING)
    StagedHost(app, clock, "build-farm").contact(Contact.REFUSED, "401: this token is not known here")
    await shown(pilot, app)


async def _options(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    await _card(app, clock, pilot)
    await pilot.press("A")
    await shown(pilot, app)


async def _stop(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("X")
    await shown(pilot, app)


async def _send(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("s", *"keep the old column")
    await shown(pilot, app)


async def _filter(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("slash", *"-state:waiting cap:pause")
    await shown(pilot, app)


async def _filter_error(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("slash", *"state:wating")
    await shown(pilot, app)


async def _groups(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("v", "O", "O", "g", "z", "G", "space", "k", "space")
    await shown(pilot, app)


async def _preflight(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("M", "p")
    await shown(pilot, app)


async def _search(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("tab", "l", "slash", *"make", "enter", "N")
    await shown(pilot, app)


async def _help(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("question_mark")
    await pilot.pause()


async def _sources(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    scene = fleet(app, clock)
    clock.now += 1_000
    lost = ContactFact("build-farm", Contact.LOST, clock.now, clean_line("connection refused"), 7, clock.now + 60_000)
    app.take(app.hub.fleet.apply([lost], clock.now))
    faults = [
        FaultFact(scene.local.name, clean_line(why), clean(raw), session=session)
        for why, raw, session in (
            ("a frame of unknown type weather", '{"type": "weather", "sky": "grey"}', None),
            ("an event of session triage: seq: it must be an integer", '{"kind": "message", "seq": "12"}', "triage"),
        )
    ]
    app.take(app.hub.fleet.apply(faults, clock.now))
    clock.now += 42_000
    await shown(pilot, app)
    await pilot.press("S")
    await pilot.pause()
    await pilot.pause()


async def _inspect(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    await _sources(app, clock, pilot)
    await pilot.press("g", "enter")
    await pilot.pause()


async def _audit(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    """Two days of two operators and a policy; of the older file a line was changed."""
    folder = app.hub.audit_folder
    asked = {"by": "ann", "source": "build-farm", "session": "deploy-eu", "attempt": 1, "primitive": "approve"}
    for day, name in ((1, "yesterday"), (0, "today")):
        audit = Audit(folder, clock=lambda day=day: clock.now - day * 86_400_000 - 60_000)  # type: ignore[misc]
        allow = {**asked, "request": "r1", "option": "allow", "option_kind": "allow", "digest": f"sha256:{'7f' * 32}"}
        audit.write("requested", "5b1c0d7e-1", {**allow, "waited_ms": 12_400, "risks": ["delete-tree"]})
        audit.write("outcome", "5b1c0d7e-1", {"outcome": "applied"})
        audit.write("effect", "5b1c0d7e-1", {"effect": "seen", "reason": "the gated call went on"})
        audit.write("refused", "90aa41cc-2", {**asked, "by": "bob", "request": "r2", "reason": "armed in 0.2 s"})
        deny = {**asked, "request": "r3", "option": "deny", "option_kind": "deny", "note": "by policy no force"}
        audit.write("requested", "c7710e02-3", {**deny, "automatic": True, "policy": "no force"})
        audit.write("outcome", "c7710e02-3", {"outcome": "unknown", "reason": "no word came back within 30 s"})
        audit.close()
        text = audit.path.read_bytes()
        audit.path.unlink()
        (folder / f"2026113{day}-{name}.jsonl").write_bytes(text.replace(b'"bob"', b'"eve"') if day else text)
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("L")
    await until(pilot, lambda: "eve" in _rows(app), lambda: "the lines of both files")
    await pilot.press("j", "j", "j", "j", "j")
    await pilot.pause()


def _rows(app: Watchfloor) -> str:
    return str(getattr(getattr(app.screen, "_rows", None), "lines", ()))


async def _away(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    """An earlier console has left its fleet five hours ago, when there was less of it."""
    fleet(app, clock)
    for name, source in app.hub.fleet.sources.items():
        source.listed, source.pos = True, source.head
        left = {}
        for n, (id, one) in enumerate(marks(app.hub.fleet, name, clock.now - 5 * 3_600_000).items()):
            if n % 4 != 3:
                left[id] = one._replace(lifecycle="running", head=0, requests=frozenset(), tokens=one.tokens // 3)
        app.hub._away.remember(name, left)
    app.hub._away.tick(clock.now + 10_000, app.hub.steady())
    app.take(app.hub.fleet.clock_set(0))
    await shown(pilot, app)


async def _since(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    await _away(app, clock, pilot)
    await pilot.press("W")
    await shown(pilot, app)


async def _command(app: Watchfloor, clock: Clock, pilot: Pilot[int]) -> None:
    fleet(app, clock)
    await shown(pilot, app)
    await pilot.press("colon", *"pa")
    await pilot.pause()


STATES: Final[Mapping[str, State]] = {
    "fleet": _fleet,
    "card": _card,
    "question": _question,
    "long-command": _long_command,
    "dead-card": _dead_card,
    "lost-source": _lost_source,
    "empty": _empty,
    "options": _options,
    "stop": _stop,
    "send": _send,
    "filter": _filter,
    "filter-error": _filter_error,
    "groups": _groups,
    "preflight": _preflight,
    "search": _search,
    "help": _help,
    "sources": _sources,
    "inspect": _inspect,
    "audit": _audit,
    "away": _away,
    "since": _since,
    "command": _command,
    **DIALOGS,
}
