"""The verbs that list: sessions and requests as a host shows them now."""

from __future__ import annotations

import asyncio
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from typing import Any

from console.cli import acting, out
from console.cli.choosing import listed
from console.cli.exits import OK
from console.cli.link import Link, attached, now_ms
from console.fleet.facts import ActionFact, RequestFact
from console.fleet.state import Request, Session
from console.fleet.views.row import LETTERS
from console.fleet.views.wording import one_line
from watchfloor.connector import Record
from watchfloor.text import Clean, clean, clean_line, redact, since
from watchfloor.words import Lifecycle, Primitive


def sessions(args: Namespace) -> int:
    """The sessions of a host, one a line."""
    return asyncio.run(_list(args, Record.NONE, _sessions_json if args.json else _sessions_table))


def requests(args: Namespace) -> int:
    """The requests of a host that wait for a human, oldest first."""
    return asyncio.run(_list(args, Record.NONE, _requests_json if args.json else _requests_text))


async def _list(args: Namespace, record: Record, show: Callable[[Link], None]) -> int:
    async with attached(args, intervenes=False, record=record) as link:
        if args.verb == "requests":
            await link.until(link.read_up, "send its requests")
        show(link)
        _tell_left_out(link)
    return OK


def _tell_left_out(link: Link) -> None:
    """What could not be read is never left out in silence."""
    source = link.source
    if source.fault_count:
        many = "one thing" if source.fault_count == 1 else f"{source.fault_count:,} things"
        reason = f": {source.faults[-1].reason}" if source.faults else ""
        out.note(f"{many} that {source.shown} sent could not be read{reason}")


# --- sessions ------------------------------------------------------------------------------


def _sessions_json(link: Link) -> None:
    for session in link.sessions():
        out.record(
            {
                "source": link.name,
                "session": session.key.session,
                "parent": session.parent,
                "attempt": session.attempt,
                "name": session.name,
                "lifecycle": session.lifecycle,
                "capabilities": _capabilities(link, session),
                "blocked": {primitive.value: reason for primitive, reason in session.blocked.items()},
                "requests": [
                    {
                        "id": r.key.request,
                        "kind": r.kind,
                        "asked_at": r.asked_at,
                        "deadline": r.deadline,
                        "digest": r.digest,
                    }
                    for r in session.open_requests()
                ],
                "head": session.head,
                "acts": [acting.record(act) for act in acting.offered(link, session)],
            }
        )


def _sessions_table(link: Link) -> None:
    rows = [_session_row(link, session) for session in link.sessions()]
    if not rows:
        if not link.source.fault_count:
            out.note(f"{link.source.shown} has no sessions")
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    out.table(("STATE", "SESSION", "NAME", "TRY", "NEEDS", "CAN", "LAST"), rows, width=width)


def _session_row(link: Link, session: Session) -> list[Clean]:
    open_requests = session.open_requests()
    offered = _capabilities(link, session)
    can = "".join(letter if primitive.value in offered else "-" for primitive, letter in LETTERS)
    return [
        clean_line(session.pending.overlay.value if session.pending is not None else session.lifecycle.value),
        clean_line(session.key.session),
        session.name or Clean(""),
        Clean(str(session.attempt) if session.attempt is not None else ""),
        _needs(link, open_requests),
        Clean(can if offered else "observe only"),
        redact(_last(session))[0],
    ]


def _last(session: Session) -> Clean:
    """What it did last; of one that failed, why."""
    if session.lifecycle is Lifecycle.FAILED and session.error:
        return one_line(session.error)
    return session.last.text if session.last is not None else Clean("")


def _needs(link: Link, open_requests: list[Request]) -> Clean:
    if not open_requests:
        return Clean("")
    waits = now_ms() + link.source.ahead_ms - open_requests[0].asked_at
    return Clean(f"{len(open_requests)}  {since(waits)}")


def _capabilities(link: Link, session: Session) -> list[str]:
    profile = link.hub.fleet.profile(session)
    return [p.value for p in Primitive if profile is not None and p in profile.primitives]


# --- requests ------------------------------------------------------------------------------


def _open(link: Link) -> list[tuple[Session, Request]]:
    found = [(session, request) for session in link.sessions() for request in session.open_requests()]
    return sorted(found, key=lambda pair: (pair[1].asked_at, pair[1].key))


def _requests_json(link: Link) -> None:
    for session, request in _open(link):
        out.record(_request_record(link, session, request))


def _request_record(link: Link, session: Session, request: Request) -> dict[str, Any]:
    record: dict[str, Any] = {
        "source": link.name,
        "session": request.key.session,
        "name": session.name,
        "request": request.key.request,
        "kind": request.kind,
        "state": request.state,
        "asked_at": request.asked_at,
        "deadline": request.deadline,
        "digest": request.digest,
    }
    if (fact := request.fact) is None:
        return record
    return {
        **record,
        "attempt": fact.attempt,
        "at_deadline": fact.at_deadline,
        "blocks": fact.blocks,
        "per_action": fact.per_action,
        "about": _masked(fact.about),
        "actions": [_action_record(action) for action in fact.actions],
        "fields": [acting.field_record(field) for field in fact.fields],
        "options": [
            {
                "id": o.id,
                "label": o.label,
                "kind": o.kind,
                "scope": o.scope,
                "grants": o.grants,
                "persists": o.persists,
                "note": o.note,
                "then": o.then,
                "confirm": o.confirm,
            }
            for o in fact.options
        ],
        "unknown": {member.name: _masked(member.value) for member in fact.unknown},
        "unknown_count": fact.unknown_count,
        "decidable": fact.sound and fact.fault is None,
        "fault": fact.fault if fact.sound else fact.fault or "its digest is not that of its text",
    }


def _action_record(action: ActionFact) -> dict[str, Any]:
    return {
        "tool": action.tool,
        "text": _masked(action.text),
        "cwd": action.cwd,
        "diff": _masked(action.diff),
        "call": action.call,
        "complete": action.complete,
        "whole": action.whole,
        "hidden": action.hidden,
    }


def _masked(text: Clean | None) -> Clean | None:
    return None if text is None else redact(text)[0]


def _requests_text(link: Link) -> None:
    found = _open(link)
    if not found:
        out.note(f"nothing waits for a human at {link.source.shown}")
    for index, (session, request) in enumerate(found):
        if index:
            out.line(Clean(""))
        for line in _request_lines(link, session, request):
            out.line(line)


def _request_lines(link: Link, session: Session, request: Request) -> Iterable[Clean]:
    name = session.name or clean_line(request.key.session)
    now = now_ms() + link.source.ahead_ms
    left = f", {since(request.deadline - now)} left" if request.deadline is not None else ""
    yield Clean(f"{name}: {request.kind.value}, waits {since(now - request.asked_at)}{left}")
    yield Clean(f"  session {clean_line(request.key.session)}  request {clean_line(request.key.request)}")
    yield Clean(f"  digest {clean_line(request.digest)}")
    if (fact := request.fact) is not None:
        yield from _fact_lines(fact)


def _fact_lines(fact: RequestFact) -> Iterable[Clean]:
    for action in fact.actions:
        yield Clean(f"  {action.tool}{f' in {action.cwd}' if action.cwd else ''}")
        for text in (action.text, action.diff):
            if text:
                yield from (Clean(f"    {line}") for line in redact(text)[0].split("\n"))
        if not action.whole:
            yield Clean("    (longer than this program shows: the rest stands with its source; it can be denied only)")
        elif not action.complete:
            yield Clean("    (its source gave only a part of it)")
    for field in fact.fields:
        choices = ", ".join(clean(choice.value) for choice in field.choices)
        yield Clean(
            f"  {field.label or clean_line(field.name)} ({field.type}){f': {clean_line(choices)}' if choices else ''}"
        )
    if fact.strange:
        yield Clean(f"  {fact.strange}:")
        yield from (Clean(f"    {redact(Clean(f'{name} = {value}'))[0]}") for name, value in fact.unknown)
        if (more := fact.unknown_count - len(fact.unknown)) > 0:
            yield Clean(f"    ({more:,} more not shown)")
    if fact.options:
        yield Clean(f"  options: {clean_line(listed(fact.options))}")
    if fact.about:
        yield from (Clean(f"  the agent says: {line}") for line in redact(fact.about)[0].split("\n"))
    if not fact.sound or fact.fault is not None:
        yield Clean(f"  undecidable: {fact.fault or 'its digest is not that of its text'}")
