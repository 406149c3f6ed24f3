"""The flows that answer a question: one field after another, or one of the answers that are offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from console.fleet.facts import FieldFact, OptionFact
from console.fleet.state import Request, Session
from console.fleet.views.wording import name_of
from console.screens.flows.asking import Ask, Choice, Drafts, TextBox
from console.screens.flows.deciding import choice_keys, decision, ended, take_option
from console.screens.flows.desk import Desk
from console.screens.flows.form import Form, fill_in
from console.screens.flows.steering import written
from watchfloor.text import Clean
from watchfloor.words import OptionKind


def answer(desk: Desk, session: Session, request: Request) -> None:
    """Ask for each field in turn, or for one of the answers that are offered, then send them together."""
    fact = request.fact
    if fact is None:
        desk.say(Clean("the question has not come yet"), "attention")
        return
    if fact.fields:
        _fields(desk, session, request, fact.fields)
        return
    offered = [option for option in fact.options if option.kind is OptionKind.ANSWER]
    if offered:
        _offered(desk, session, request, offered)
    else:
        _free(desk, session, request)


def _title(session: Session, text: str) -> Clean:
    return Clean(f"answer {name_of(session)}: {text}")


def _offered(desk: Desk, session: Session, request: Request, offered: Sequence[OptionFact]) -> None:
    by_id = {option.id: option for option in offered}
    choices = tuple(
        Choice(option.id, Clean(key), option.label, (option.note,) if option.note else ())
        for key, option in zip(choice_keys(len(offered)), offered, strict=True)
    )
    desk.ask(
        Ask(
            title=((_title(session, "choose"), "plain"),),
            choices=choices,
            cursor=True,
            enter=Clean("answers"),
            then=lambda chosen: take_option(desk, session, request, by_id[chosen.values[0]]),
            ended=ended(request),
        )
    )


def _free(desk: Desk, session: Session, request: Request) -> None:
    draft = (OptionKind.ANSWER, request.key, request.digest)
    desk.ask(
        Ask(
            title=((_title(session, "write"), "plain"),),
            text=TextBox(check=written),
            then=lambda given: desk.submit(decision(desk, session, request, text=given.text), drafts=[draft]),
            ended=ended(request),
            draft=draft,
        )
    )


def _fields(desk: Desk, session: Session, request: Request, fields: Sequence[FieldFact]) -> None:
    def done(given: Mapping[str, Any], drafts: Drafts) -> None:
        desk.submit(decision(desk, session, request, fields=given), drafts=drafts)

    fill_in(
        desk,
        Form(
            fields,
            title=lambda label: _title(session, label),
            done=done,
            ended=ended(request),
            whose=(request.key, request.digest),
            taken=desk.entered,
            sums=True,
        ),
    )
