"""The verbs that intervene: what was asked for becomes an intent, and goes the way that the keys go."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from console.cli import acting, changing, out
from console.cli.choosing import choose
from console.cli.exits import Usage
from console.cli.link import ANSWER_S, Link, attached
from console.cli.values import fields
from console.fleet.facts import Intent, Refusal, RequestFact, RequestKey, Seen
from console.fleet.gate import Gated
from console.fleet.state import Trail
from watchfloor.errors import ConnectionFailed, Denied
from watchfloor.text import Clean, clean_line, secret_spans
from watchfloor.words import EXIT_CODE, EffectState, OptionKind, OutcomeKind, Primitive, Priority, RequestKind

if TYPE_CHECKING:
    from console.policies.rules import Policy

_INCOMPLETE: Final = "its source gave only a part of the action: the rest cannot be read"


@dataclass(frozen=True, slots=True)
class Report:
    """What became of an intervention, as it is printed. `effect` None: none is expected."""

    id: str
    outcome: OutcomeKind
    reason: str
    session: str
    request: str | None
    attempt: int | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    effect: EffectState | None = None
    effect_text: Clean | None = None


def intervene(args: Namespace) -> int:
    """Send one intervention, print what became of it, and return its exit status."""
    try:
        given = _given(args)
    except Usage as fault:
        raise Usage(f"{fault}; see watchfloor {args.verb} --help") from None
    id = args.id or str(uuid4())
    try:
        report = asyncio.run(_intervene(args, id, given))
    except ConnectionFailed as failure:
        if not args.json:
            raise
        outcome = OutcomeKind.NOT_PERMITTED if isinstance(failure, Denied) else OutcomeKind.UNDELIVERED
        report = Report(id, outcome, str(failure), args.session, getattr(args, "request", None))
    try:
        _print(args, report)
    except out.Unwritable as failure:
        # What was done is done, and a script that asked for it must not take it for something else.
        reason = f" ({report.reason})" if report.reason else ""
        out.fail(f"{failure}; {args.verb} {report.request or report.session}: {report.outcome.value}{reason}")
    return EXIT_CODE[report.outcome]


async def _intervene(args: Namespace, id: str, given: Mapping[str, Any]) -> Report:
    async with attached(args, intervenes=True, policies=_policies(args)) as link:
        hub = link.hub
        args.session = link.meant(args.session)
        if link.session(args.session) is not None:
            await link.watch(args.session)
        if args.verb == "notify":
            given["extra"]["subscriber"] = link.meant(args.subscriber)
        if args.verb in ("approve", "deny", "answer"):
            decision = await _decision(args, link)
            if isinstance(decision, Refusal):
                refused = Report(id, decision.outcome, decision.reason, args.session, args.request)
                return await _sent_before(args, link) or refused
            given = {**given, **decision}
        elif args.verb == "act":
            act = acting.intent_of(args, link, given.get("fields"))
            if isinstance(act, Refusal):
                return await _sent_before(args, link) or Report(id, act.outcome, act.reason, args.session, None)
            given = act
        intent = Intent(
            id=id,
            primitive=_primitive(args, link),
            target=link.key(args.session),
            by=hub.by,
            attempt=args.attempt,
            turn=args.turn,
            **given,
        )
        if isinstance(gated := hub.gate(intent), Gated):
            if unmeant := _second_key(args, link, gated):
                held = Report(id, OutcomeKind.INVALID, unmeant, args.session, args.request)
                return await _sent_before(args, link) or held
            for line in (*gated.confirm, *gated.notes):
                out.note(f"this means: {line}")
        trail = await hub.submit(intent)
        if id not in hub.fleet.trails and (before := await _sent_before(args, link)) is not None:
            return before
        if hub.audit_fault is not None:
            out.note(f"the audit cannot be written: {hub.audit_fault}")
        if trail.outcome is None:
            trail = await hub.answered(id, ANSWER_S)
        if args.wait and id in hub.fleet.trails:
            trail = await hub.settle(id, args.wait)
        report = _report(trail)
        if link.session(args.session) is None:
            return replace(report, reason=f"{report.reason}{link.hint(args.session)}")
        return report


def _policies(args: Namespace) -> tuple[Policy, ...]:
    """What holds this verb: a denial needs no leave, and a question no policy rules. Raises ConfigError where they
    cannot be read, for then nobody knows what they forbid."""
    if args.verb != "approve":
        return ()
    from console.policies.file import load

    return load()


async def _sent_before(args: Namespace, link: Link) -> Report | None:
    """What became of the command with this id, if it was sent before: whoever repeats it wants to know that, and not
    that its own decision came first. Asked only where the command is not sent now."""
    if args.id is None:
        return None
    outcome = await link.recall(args.id)
    request = getattr(args, "request", None)
    if outcome is None or outcome.session != args.session or outcome.request != request:
        return None
    return Report(
        id=args.id,
        outcome=outcome.outcome,
        reason=clean_line(outcome.reason or ""),
        session=args.session,
        request=request,
        attempt=outcome.attempt,
        info={**outcome.info, "repeated": True},
    )


# --- what was asked for --------------------------------------------------------------------


def _given(args: Namespace) -> dict[str, Any]:
    """The arguments of the intent that the command line alone decides. Raises Usage."""
    match args.verb:
        case "send":
            return {"text": _text(args.text), "priority": Priority(args.priority), "reply_to": args.reply_to}
        case "pause":
            return {"interrupt": args.interrupt}
        case "stop":
            return {"kill": args.kill, "reason": args.reason}
        case "act":
            return {"fields": fields(_text(args.fields)) if args.fields is not None else None}
        case "approve" | "deny":
            return {"note": args.note}
        case "answer":
            return {
                "text": _text(args.text) if args.text is not None else None,
                "fields": fields(_text(args.fields)) if args.fields is not None else None,
            }
        case _:
            return changing.given(args, _stdin)


def _text(word: str) -> str:
    """The word itself, or standard input for `-`: what is secret, or long, does not belong into a command line."""
    text = word if word != "-" else _stdin()
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise Usage("the text is not UTF-8") from None
    if len(data) > changing.MOST:
        raise Usage(f"the text is longer than {changing.MOST // 1024} KiB, which no host takes")
    return text


def _stdin() -> str:
    try:
        # What never ends must not be waited for.
        text = sys.stdin.read(changing.MOST + 1).rstrip("\n")
    except UnicodeDecodeError:
        raise Usage("the text on standard input is not UTF-8") from None
    except OSError as fault:
        raise Usage(f"standard input cannot be read: {fault.strerror or fault}") from None
    if not text:
        raise Usage("nothing was given on standard input")
    return text


def _primitive(args: Namespace, link: Link) -> Primitive:
    """A question is declined by answering it so, as by the key."""
    if args.verb != "deny":
        return Primitive(args.verb)
    request = link.hub.fleet.requests.get(RequestKey(link.name, args.session, args.request))
    question = request is not None and request.kind is RequestKind.QUESTION
    return Primitive.ANSWER if question else Primitive.APPROVE


async def _decision(args: Namespace, link: Link) -> dict[str, Any] | Refusal:
    """Which request, which option of it, and on what it is decided."""
    key = RequestKey(link.name, args.session, args.request)
    requests = link.hub.fleet.requests
    if key not in requests:
        await _look_back(link, key)
    request = requests.get(key)
    option: str | Refusal | None = args.option
    if request is not None and request.open and request.fact is not None:
        option = choose(args.verb, request.fact, args.option)
        if isinstance(option, Refusal):
            return option
        if reason := _unmeant(args, request.fact):
            return Refusal(OutcomeKind.INVALID, reason)
    digest = args.digest if args.digest is not None else request.digest if request is not None else ""
    decided: dict[str, Any] = {
        "request": args.request,
        "option": option,
        "seen": Seen(digest, since_local=0, whole=True),
    }
    if pairs := getattr(args, "field", None):
        asked = request.fact.fields if request is not None and request.fact is not None else ()
        answers = acting.values_of(asked, pairs)
        if isinstance(answers, Refusal):
            return answers
        decided["fields"] = answers
    return decided


def _unmeant(args: Namespace, fact: RequestFact) -> str | None:
    """Why the decision cannot be what was meant, though the request offers it."""
    option = next((option for option in fact.options if option.id == args.option), None)
    declines = args.verb == "deny" or (option is not None and option.kind is OptionKind.DENY)
    # What this program itself cannot show whole the gate refuses, whatever is asked for.
    if not declines and not args.incomplete and not fact.too_large:
        if any(not action.complete for action in fact.actions):
            return f"{_INCOMPLETE}; --incomplete takes it all the same"
        if fact.strange:
            return f"it has {fact.strange}; --incomplete takes it all the same"
    if args.verb == "deny" and args.note is not None and fact.kind is RequestKind.QUESTION:
        return "a question is declined without a note, which would not reach the session"
    return None


def _second_key(args: Namespace, link: Link, gated: Gated) -> str:
    """Why what is to be approved needs a second key that was not given, or is another one; "" where it does not."""
    request = link.hub.fleet.requests.get(gated.request) if gated.request is not None else None
    if args.verb != "approve" or request is None or request.fact is None:
        return ""
    why = str(link.hub.second_key(request.key))
    texts = [text for action in request.fact.actions for text in (action.text, action.diff) if text]
    if not why and any(map(secret_spans, texts)):
        why = "what looks like a secret in it is masked"
    if not why or args.second_key == request.digest:
        return ""
    given = "the second key is not its digest" if args.second_key is not None else "that takes a second key"
    return f"{why}: {given}; --second-key {request.digest} approves it all the same"


async def _look_back(link: Link, key: RequestKey) -> None:
    """Read the session's past for how the request ended: a host lists only those that are open."""
    session = link.session(key.session)
    before = session.head + 1 if session is not None else 1
    while session is not None and before > 1 and key not in link.hub.fleet.requests:
        page = await link.page(session, before=before)
        if not page.events or page.first >= before:
            return
        before = page.first


# --- what became of it ---------------------------------------------------------------------


def _report(trail: Trail) -> Report:
    fact, intent = trail.fact, trail.intent
    info = dict(fact.info) if fact is not None else {}
    attempt = info.pop("attempt", trail.baseline.attempt)
    if fact is not None and (decided := fact.decided) is not None:
        info["decided"] = {"by": decided.by, "option": decided.option, "kind": decided.kind, "at": decided.at}
    return Report(
        id=trail.id,
        outcome=trail.outcome or OutcomeKind.UNKNOWN,
        reason=trail.reason,
        session=intent.target.session,
        request=intent.request,
        attempt=attempt,
        info=info,
        effect=trail.effect,
        effect_text=trail.effect_text,
    )


def _print(args: Namespace, report: Report) -> None:
    if args.json:
        out.record(
            {
                "id": report.id,
                "outcome": report.outcome,
                "reason": report.reason or None,
                "info": report.info,
                "session": report.session,
                "attempt": report.attempt,
                "request": report.request,
                "effect": report.effect,
            }
        )
        return
    if report.outcome is not OutcomeKind.APPLIED:
        out.fail(f"{report.outcome.value}: {report.reason}" if report.reason else report.outcome.value)
        return
    words = [f"{args.verb} {clean_line(report.request or report.session)}: {report.outcome.value}"]
    shown = {name: value for name, value in report.info.items() if name != "decided" and value is not None}
    words += [f"{clean_line(name)} {clean_line(str(value))}" for name, value in shown.items()]
    if report.effect is not None:
        words.append(f"effect {report.effect.value}" + (f" ({report.effect_text})" if report.effect_text else ""))
    out.line(Clean(", ".join(words)))
