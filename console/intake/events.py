"""Events through the door: a label, a text, and the few values that the fleet reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from console.fleet.facts import EventFact
from console.intake.bounds import (
    KEEP_EVENT,
    KEEP_ID,
    LAST_TIME,
    MOST_COUNT,
    Reading,
    a_line,
    a_prose,
    exact,
    line,
    prose,
    shown_json,
)
from console.intake.requests import short_line
from watchfloor.protocol import events as e
from watchfloor.protocol.lines import arguments_line, resolved_line, state_word
from watchfloor.protocol.stream import Plain
from watchfloor.text import NOTHING, Clean, clean, clean_line, clean_prose
from watchfloor.words import verb

_Parts: TypeAlias = tuple[Clean, Clean, Mapping[str, Any]]
_NO_DATA: Final[Mapping[str, Any]] = {}
# Words of the protocol need no cleaning. A named tuple's own constructor takes twice as long as the tuple's.
_OF: Final = {word: Clean(word) for word in ("message", "reasoning", "tool_output", "plan", "diff")}
_ROLE: Final[Mapping[str, Clean]] = {role: Clean(role.value) for role in e.Speaker}
_STATUS: Final[Mapping[str, Clean]] = {status: Clean(status.value) for status in e.ToolStatus}
_EXACT: Final = frozenset({"tool_output", "diff"})
_made: Final = tuple.__new__


def event_fact(event: e.Event | Plain, reading: Reading | None = None) -> EventFact:
    """One event, ready to be drawn. What of it could not be taken as it came is noted in `reading`."""
    r = reading if reading is not None else Reading()
    # A model of one has the same members, those that were left out as well.
    fields: Plain = event if isinstance(event, dict) else event.__dict__
    word = fields.get("kind", "")
    if word == "delta":
        return _piece(fields, fields["text"], r)
    if (plain := _PLAIN.get(word)) is not None:
        head, text, data = plain(fields, r)
    elif (read := _READ.get(type(event))) is not None:
        head, text, data = read(event, r)
    else:
        head, text, data = _unknown(event, r)
        word = "unknown"
    get = fields.get
    if (author := get("author")) is not None:
        head = Clean(f"{line(author)}: {head}") if head else line(author)
    # Nearly every event has nothing odd in it; a call for each of its places would take longer than all else here.
    at, seq, pos, attempt, turn, item, key = (
        fields["at"], get("seq"), get("pos"), get("attempt"), get("turn"), get("item"), get("key")
    )  # fmt: skip
    return _made(
        EventFact,
        (
            word,
            at if 0 <= at < LAST_TIME else r.time("at", at),
            seq if seq is None or 0 <= seq <= MOST_COUNT else r.a_count("seq", seq),
            pos if pos is None or 0 <= pos <= MOST_COUNT else r.a_count("pos", pos),
            attempt if attempt is None or 0 <= attempt <= MOST_COUNT else r.a_count("attempt", attempt),
            turn if turn is None or len(turn) <= KEEP_ID else r.an_id("turn", turn),
            item if item is None or len(item) <= KEEP_ID else r.an_id("item", item),
            None,
            key if key is None or len(key) <= KEEP_ID else r.an_id("key", key),
            head,
            text,
            data,
        ),
    )


def _piece(fields: Plain, said: str, r: Reading) -> EventFact:
    """A piece of a streamed item that brings this text: most of what a stream is made of."""
    get = fields.get
    of, at, item, offset = get("of", "message"), fields["at"], fields["item"], fields["offset"]
    piece = said if len(said) <= KEEP_EVENT else said[:KEEP_EVENT]  # the whole item says how much it was
    head = _OF[of]
    if (author := get("author")) is not None:
        head = Clean(f"{line(author)}: {head}")
    return _made(
        EventFact,
        (
            "delta",
            at if 0 <= at < LAST_TIME else r.time("at", at),
            r.a_count("seq", get("seq")),
            r.a_count("pos", get("pos")),
            r.a_count("attempt", get("attempt")),
            r.an_id("turn", get("turn")),
            item if len(item) <= KEEP_ID else r.id("item", item),
            offset if offset <= MOST_COUNT else r.count("offset", offset),
            r.an_id("key", get("key")),
            head,
            clean(piece) if of in _EXACT else clean_prose(piece),
            # Offsets count what was sent; cleaning may have made more of it.
            {"length": len(said), "of": of, "call": r.an_id("call", get("call"))},
        ),
    )


class _Run:
    """Pieces of one item that follow one another. `over`: its whole has come."""

    __slots__ = ("begin", "end", "first", "over", "texts")

    def __init__(self, first: Plain) -> None:
        self.first = first
        self.texts: list[str] = [first["text"]]
        self.begin: int = first["offset"]
        self.end = self.begin + len(self.texts[0])
        self.over = False

    def takes(self, piece: Plain) -> bool:
        """Add the next piece; False where it is another's, or there is no room for it."""
        if piece["offset"] != self.end:
            return False
        text, first = piece["text"], self.first
        end = self.end + len(text)
        if end - self.begin > KEEP_EVENT or any(piece.get(name) != first.get(name) for name in _OWN):
            return False
        self.texts.append(text)
        self.end = end
        return True

    def facts(self, r: Reading) -> list[EventFact]:
        if self.over:
            return []
        if len(self.texts) > 1:
            text = "".join(self.texts)
            one = _piece(self.first, text, r)
            # Where cleaning has moved the places within it, only the pieces tell where each of them belongs.
            if len(one.text) == len(text):
                return [one]
        facts: list[EventFact] = []
        offset = self.begin
        for text in self.texts:
            facts.append(_piece({**self.first, "offset": offset}, text, r))
            offset += len(text)
        return facts


_OWN: Final = ("of", "call", "author")


def event_facts(events: Sequence[e.Event | Plain], reading: Reading) -> tuple[EventFact, ...]:
    """The events of one frame, ready to be drawn. Most of what a stream brings is superseded as it comes: pieces that
    follow one another become one, and those of an item whose whole comes behind them are left out."""
    if len(events) == 1:
        return (event_fact(events[0], reading),)
    facts: list[EventFact | _Run] = []
    runs: dict[str, _Run] = {}
    for event in events:
        fields: Plain = event if isinstance(event, dict) else event.__dict__
        item = fields.get("item")
        if fields.get("kind") == "delta":
            run = runs.get(item)  # type: ignore[arg-type]
            if run is None or not run.takes(fields):
                run = runs[item] = _Run(fields)  # type: ignore[index]
                facts.append(run)
            continue
        if item is not None and (run := runs.pop(item, None)) is not None:
            run.over = True
        facts.append(event_fact(event, reading))
    flat: list[EventFact] = []
    for fact in facts:
        if isinstance(fact, _Run):
            flat.extend(fact.facts(reading))
        else:
            flat.append(fact)
    return tuple(flat)


def _body(text: str) -> Clean:
    return prose(text, KEEP_EVENT)


def _message(fields: Plain, r: Reading) -> _Parts:
    role = _ROLE.get(fields.get("role", ""), _ROLE[e.Speaker.ASSISTANT])
    return role, _body(fields["text"]), {"role": role, "cut": fields.get("cut", False)}


def _reasoning(fields: Plain, r: Reading) -> _Parts:
    return NOTHING, _body(fields["text"]), {"cut": fields.get("cut", False)}


def _tool_call(fields: Plain, r: Reading) -> _Parts:
    data: dict[str, Any] = {"call": r.id("call", fields["call"]), "gated": fields.get("gated", False)}
    said, arguments = fields.get("text"), fields.get("arguments")
    if said is not None:
        text = exact(said)
    elif arguments is not None:
        shown, more = shown_json(arguments)
        text = exact(shown, more=more)
        if text is shown:
            # Of all calls that come, few are ever drawn.
            data["line"] = partial(_line_of, shown)
        else:
            short = short_line(lambda: arguments_line(arguments))
            data["line"] = lambda: short
    else:
        text = NOTHING
    return line(fields["name"]), text, data


def _line_of(shown: str) -> Clean:
    return short_line(lambda: arguments_line(json.loads(shown)))


def _tool_output(fields: Plain, r: Reading) -> _Parts:
    return line(fields.get("stream", "stdout")), exact(fields["text"]), {"call": r.an_id("call", fields.get("call"))}


def _tool_result(fields: Plain, r: Reading) -> _Parts:
    status = _STATUS.get(fields["status"], _STATUS[e.ToolStatus.UNKNOWN])
    return (
        status,
        exact(fields.get("text", "")),
        {
            "call": r.id("call", fields["call"]),
            "status": status,
            "exit_code": r.signed("exit_code", fields.get("exit_code")),
            "duration_ms": r.span_ms("duration_ms", fields.get("duration_ms")),
        },
    )


def _diff(event: e.Diff, r: Reading) -> _Parts:
    return line(event.path), exact(event.text), {"call": r.an_id("call", event.call)}


def _plan(event: e.Plan, r: Reading) -> _Parts:
    done = sum(1 for step in event.steps if step.status == "done")
    lines = "\n".join(f"{step.status}: {step.text}" for step in event.steps)
    return Clean(f"{done} of {len(event.steps)} done"), _body(lines), _NO_DATA


def _progress(event: e.Progress, r: Reading) -> _Parts:
    words = [event.note] if event.note else []
    if event.usage is not None:
        used, made = r.count("usage", event.usage.input_tokens), r.count("usage", event.usage.output_tokens)
        words.append(f"{used} tokens in, {made} out")
    return NOTHING, _body(" · ".join(words)), _NO_DATA


def _notice(event: e.Notice, r: Reading) -> _Parts:
    head = f"{event.level.value} {event.code}" if event.code else event.level.value
    data = {"level": event.level.value, "retrying": event.retrying, "next_at": r.a_time("next_at", event.next_at)}
    return line(head), _body(event.text), data


def _mail(event: e.Mail, r: Reading) -> _Parts:
    text = event.error if event.error is not None else event.text or ""
    data = {
        "ref": r.id("ref", event.ref),
        "mail_state": event.state.value,
        "delivery": event.delivery,
        "by": line(event.by),
        "reply_to": r.an_id("reply_to", event.reply_to),
        "cut": len(text) > KEEP_EVENT,
    }
    return line(event.ref), _body(text), data


def _request_opened(event: e.RequestOpened, r: Reading) -> _Parts:
    return NOTHING, exact(event.text), {"request": r.id("request", event.request), "request_kind": event.request_kind}


def _request_resolved(event: e.RequestResolved, r: Reading) -> _Parts:
    data = {
        "request": r.id("request", event.request),
        "state": event.state,
        "option": r.an_id("option", event.option),
        "option_kind": event.option_kind,
        "by": line(event.by),
        "note": a_prose(event.note),
        "why": a_line(event.why),
    }
    return NOTHING, _body(resolved_line(event)), data


def _lifecycle(event: e.LifecycleChanged, r: Reading) -> _Parts:
    return clean_line(state_word(event)), line(event.why or ""), {"lifecycle": event.lifecycle}


def _child(event: e.Child, r: Reading) -> _Parts:
    return line(event.name or event.session), line(event.state), {"child": r.id("session", event.session)}


def _intervention(event: e.Intervention, r: Reading) -> _Parts:
    by = line(event.by)
    words = f"by {by}: {event.outcome.value}" if by else event.outcome.value
    text = f"{words}, {event.reason}" if event.reason else words
    data = {
        "primitive": line(event.primitive),
        "command": r.id("command", event.command),
        "option": r.an_id("option", event.option),
        "option_kind": event.option_kind,
        "automatic": event.automatic,
        "by": by,
        "outcome": event.outcome,
    }
    return line(verb(event.primitive, event.option_kind)), line(text), data


def _reseeded(event: e.Reseeded, r: Reading) -> _Parts:
    by = line(event.by)
    words = [f"by {by}"] if by else []
    words.extend([event.note] if event.note else [])
    return clean_line(event.mode.value), _body(": ".join(words)), {"mode": event.mode}


def _result(event: e.ResultEvent, r: Reading) -> _Parts:
    result = event.result
    return clean_line(result.stop_reason.value), _body(result.final_message or result.text), {"cut": result.cut}


def _raw(event: e.Raw, r: Reading) -> _Parts:
    text, more = (event.data, 0) if isinstance(event.data, str) else shown_json(event.data)
    return line(event.note or ""), exact(text, more=more), _NO_DATA


def _unknown(event: Any, r: Reading) -> _Parts:
    kind = getattr(event, "kind", type(event).__name__)
    r.strange(str(kind))
    return line(str(kind)), exact(_extra(event.model_extra)), _NO_DATA


def _extra(fields: Mapping[str, Any] | None) -> str:
    try:
        return str(fields or "")
    except (ValueError, RecursionError):  # an endless integer has no digits
        return "it cannot be shown"


_PLAIN: Final[Mapping[str, Callable[[Plain, Reading], _Parts]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "tool_call": _tool_call,
    "tool_output": _tool_output,
    "tool_result": _tool_result,
}
"""What streams: read from members by name, with or without a model of it."""

_READ: Final[Mapping[type, Callable[[Any, Reading], _Parts]]] = {
    e.Diff: _diff,
    e.Plan: _plan,
    e.Progress: _progress,
    e.Notice: _notice,
    e.Mail: _mail,
    e.RequestOpened: _request_opened,
    e.RequestResolved: _request_resolved,
    e.LifecycleChanged: _lifecycle,
    e.Child: _child,
    e.Intervention: _intervention,
    e.Reseeded: _reseeded,
    e.ResultEvent: _result,
    e.Raw: _raw,
}
