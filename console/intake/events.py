"""Events through the door: a label, a text, and the few values that the fleet reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from console.fleet.facts import EventFact
from console.intake.requests import ONE_LINE, shown_json
from watchfloor.protocol import events as e
from watchfloor.protocol.lines import arguments_line, resolved_line, state_word
from watchfloor.text import Clean, clean, clean_line, clean_prose
from watchfloor.words import verb

KEEP_TEXT: Final = 65_536
"""Characters of one event that are kept in memory; what is cut is said. The text of a request is never cut."""

NOTHING: Final = Clean("")
_Parts: TypeAlias = tuple[Clean, Clean, Mapping[str, Any]]
_NO_DATA: Final[Mapping[str, Any]] = {}


def event_fact(event: e.Event) -> EventFact:
    """One event, ready to be drawn."""
    kind = type(event)
    read = _READ.get(kind)
    if read is None:
        head, text, data = _unknown(event)
        word = "unknown"
    else:
        head, text, data = read(event)
        word = event.kind  # type: ignore[attr-defined]
    if event.author is not None:
        head = Clean(f"{clean_line(event.author)}: {head}") if head else clean_line(event.author)
    offset = event.offset if kind is e.Delta else None  # type: ignore[attr-defined]
    return EventFact(
        word, event.at, event.seq, event.pos, event.attempt, event.turn, event.item, offset, event.key,
        head, text, data,
    )  # fmt: skip


def _bounded(text: str) -> str:
    more = len(text) - KEEP_TEXT
    return text if more <= 0 else f"{text[:KEEP_TEXT]}\n… and {more} more characters"


def _body(text: str) -> Clean:
    return clean_prose(_bounded(text))


def _exact(text: str) -> Clean:
    return clean(_bounded(text))


def _message(event: e.Message) -> _Parts:
    return clean_line(event.role.value), _body(event.text), {"role": event.role.value, "cut": event.cut}


def _reasoning(event: e.Reasoning) -> _Parts:
    return NOTHING, _body(event.text), {"cut": event.cut}


def _delta(event: e.Delta) -> _Parts:
    text = clean(event.text) if event.of in ("tool_output", "diff") else clean_prose(event.text)
    # Offsets count what was sent; cleaning may have made more of it.
    return clean_line(event.of), text, {"length": len(event.text), "of": event.of, "call": event.call}


def _tool_call(event: e.ToolCall) -> _Parts:
    data: dict[str, Any] = {"call": event.call, "gated": event.gated}
    if event.text is not None:
        text = _exact(event.text)
    elif event.arguments is not None:
        text = _exact(shown_json(event.arguments))
        data["line"] = clean_line(arguments_line(event.arguments)[:ONE_LINE])
    else:
        text = NOTHING
    return clean_line(event.name), text, data


def _tool_output(event: e.ToolOutput) -> _Parts:
    return clean_line(event.stream), _exact(event.text), {"call": event.call}


def _tool_result(event: e.ToolResult) -> _Parts:
    return (
        clean_line(event.status.value),
        _exact(event.text),
        {
            "call": event.call,
            "status": event.status.value,
            "exit_code": event.exit_code,
            "duration_ms": event.duration_ms,
        },
    )


def _diff(event: e.Diff) -> _Parts:
    return clean_line(event.path), _exact(event.text), {"call": event.call}


def _plan(event: e.Plan) -> _Parts:
    done = sum(1 for step in event.steps if step.status == "done")
    lines = "\n".join(f"{step.status}: {step.text}" for step in event.steps)
    return Clean(f"{done} of {len(event.steps)} done"), _body(lines), _NO_DATA


def _progress(event: e.Progress) -> _Parts:
    words = [event.note] if event.note else []
    if event.usage is not None:
        words.append(f"{event.usage.input_tokens} tokens in, {event.usage.output_tokens} out")
    return NOTHING, _body(" · ".join(words)), _NO_DATA


def _notice(event: e.Notice) -> _Parts:
    head = f"{event.level.value} {event.code}" if event.code else event.level.value
    data = {"level": event.level.value, "retrying": event.retrying, "next_at": event.next_at}
    return clean_line(head), _body(event.text), data


def _mail(event: e.Mail) -> _Parts:
    text = event.error if event.error is not None else event.text or ""
    data = {
        "ref": event.ref,
        "mail_state": event.state.value,
        "delivery": event.delivery,
        "by": clean_line(event.by),
        "reply_to": event.reply_to,
    }
    return clean_line(event.ref), _body(text), data


def _request_opened(event: e.RequestOpened) -> _Parts:
    return NOTHING, _exact(event.text), {"request": event.request, "request_kind": event.request_kind}


def _request_resolved(event: e.RequestResolved) -> _Parts:
    data = {
        "request": event.request,
        "state": event.state,
        "option": event.option,
        "option_kind": event.option_kind,
        "by": clean_line(event.by),
        "note": clean_prose(event.note) if event.note is not None else None,
        "why": clean_line(event.why) if event.why is not None else None,
    }
    return NOTHING, _body(resolved_line(event)), data


def _lifecycle(event: e.LifecycleChanged) -> _Parts:
    return clean_line(state_word(event)), clean_line(event.why or ""), {"lifecycle": event.lifecycle}


def _child(event: e.Child) -> _Parts:
    return clean_line(event.name or event.session), clean_line(event.state), {"child": event.session}


def _intervention(event: e.Intervention) -> _Parts:
    by = clean_line(event.by)
    words = f"by {by}: {event.outcome.value}" if by else event.outcome.value
    text = f"{words}, {event.reason}" if event.reason else words
    data = {
        "primitive": clean_line(event.primitive),
        "command": event.command,
        "option": event.option,
        "option_kind": event.option_kind,
        "by": by,
        "outcome": event.outcome,
    }
    return clean_line(verb(event.primitive, event.option_kind)), clean_line(text), data


def _reseeded(event: e.Reseeded) -> _Parts:
    by = clean_line(event.by)
    words = [f"by {by}"] if by else []
    words.extend([event.note] if event.note else [])
    return clean_line(event.mode.value), _body(": ".join(words)), {"mode": event.mode}


def _result(event: e.ResultEvent) -> _Parts:
    result = event.result
    return clean_line(result.stop_reason.value), _body(result.final_message or result.text), {"cut": result.cut}


def _raw(event: e.Raw) -> _Parts:
    text = event.data if isinstance(event.data, str) else shown_json(event.data)
    return clean_line(event.note or ""), _exact(text), _NO_DATA


def _unknown(event: e.Event) -> _Parts:
    kind = getattr(event, "kind", type(event).__name__)
    return clean_line(str(kind)), _exact(str(event.model_extra or "")), _NO_DATA


_READ: Final[Mapping[type[e.Event], Callable[[Any], _Parts]]] = {
    e.Message: _message,
    e.Reasoning: _reasoning,
    e.Delta: _delta,
    e.ToolCall: _tool_call,
    e.ToolOutput: _tool_output,
    e.ToolResult: _tool_result,
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
