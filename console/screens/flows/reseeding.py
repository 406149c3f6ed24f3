"""The flows that change what a session remembers: in which way, with what, and what would be lost by it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from console import files
from console.fleet.facts import Intent, Refusal
from console.fleet.remembered import Heard, Remembered, remembered
from console.fleet.reseeds import RESEED_DOES, reseed_word
from console.fleet.state import Session
from console.fleet.views.wording import exact_line, masked, one_line
from console.screens.flows import effects
from console.screens.flows.asking import Answer, Ask, Choice, Drafts, TextBox
from console.screens.flows.deciding import choice_keys
from console.screens.flows.desk import Desk
from console.screens.flows.steering import allowed, changed, confirm, intent, named, written
from watchfloor.errors import ConfigError
from watchfloor.text import NOTHING, Clean, clean, clean_line, numeral
from watchfloor.words import Primitive, ReseedMode
from widgets.tones import Segment

MOST: Final = 512 * 1024
"""Bytes of a text that is read from a file: a host takes no frame of more than 1 MiB."""
LISTED: Final = 20
"""Messages that are listed to go back to; older ones are named by their ref."""
_KEYS: Final[Mapping[ReseedMode, str]] = MappingProxyType(
    {
        ReseedMode.CLEAR: "c",
        ReseedMode.REWIND: "r",
        ReseedMode.REPLACE: "t",
        ReseedMode.COMPACT: "s",
        ReseedMode.MODEL: "m",
    }
)
"""The same key for a mode on every session, in the order in which they are listed."""
_NAMES: Final[Mapping[ReseedMode, str]] = MappingProxyType(
    {
        ReseedMode.CLEAR: "clear it",
        ReseedMode.REWIND: "rewind to a message",
        ReseedMode.REPLACE: "replace it by a text",
        ReseedMode.COMPACT: "compact it to a summary",
        ReseedMode.MODEL: "change the model",
    }
)
_ASKS: Final[Mapping[ReseedMode, str]] = MappingProxyType(
    {ReseedMode.REPLACE: "replace the conversation of", ReseedMode.MODEL: "change the model of"}
)
_A_REF: Final = Clean("a ref is such as #3, as its source names it")
_NONE_READ: Final = Clean("it has read no message of its mailbox; whether it can go back further is not known here")
_OF_MAILBOX: Final = re.compile(r"#?\d+")
_WIDTH: Final = 200
"""Characters of a message that is listed."""


class _Way(NamedTuple):
    """One way to reseed, with all that it needs. `says`: what of it has to be read; `drafts`: where it was written."""

    mode: ReseedMode
    to: str | None = None
    text: str | None = None
    says: tuple[Segment, ...] = ()
    drafts: Drafts = ()


def modes(desk: Desk, session: Session) -> tuple[ReseedMode, ...]:
    """The ways that the session offers, in the order in which they are listed."""
    profile = desk.fleet.profile(session)
    offered: Collection[str] = profile.options.get(Primitive.RESEED, {}).get("modes", ()) if profile is not None else ()
    return tuple(mode for mode in _KEYS if mode in offered)


def reseed(desk: Desk, session: Session) -> None:
    """Ask in which way, where there are several; what it needs; and whether it is meant."""
    offered = modes(desk, session)
    if len(offered) == 1:
        _BEGIN[offered[0]](desk, session)
        return
    if not offered:
        desk.say(Clean("this session names no way to change what it remembers"), "attention")
        return
    choices = tuple(
        Choice(
            mode.value,
            Clean(_KEYS[mode]),
            Clean(_NAMES[mode]),
            (Clean(RESEED_DOES[mode]),),
            tone="plain" if mode is ReseedMode.MODEL else "failed",
            blocked=_blocked(desk, session, mode),
        )
        for mode in offered
    )
    desk.ask(
        Ask(
            title=((Clean(f"what {named(desk, session)} remembers"), "plain"),),
            live=lambda: _holds(desk, session),
            choices=choices,
            cursor=True,
            enter=Clean("goes on; nothing happens yet"),
            then=lambda answer: _BEGIN[ReseedMode(answer.values[0])](desk, session),
            ended=changed(desk, session),
        )
    )


def _blocked(desk: Desk, session: Session, mode: ReseedMode) -> Clean:
    gated = desk.gate(intent(desk, session, Primitive.RESEED, mode=mode))
    return Clean(gated.reason) if isinstance(gated, Refusal) else NOTHING


# --- what each way needs -------------------------------------------------------------------


def _at_once(mode: ReseedMode) -> Callable[[Desk, Session], None]:
    return lambda desk, session: _sure(desk, session, _Way(mode))


def _model(desk: Desk, session: Session) -> None:
    draft = _draft(session, ReseedMode.MODEL)

    def then(answer: Answer) -> None:
        name = answer.text.strip()
        says = Clean(f"it goes on with {clean_line(name)}; nothing is forgotten")
        _sure(desk, session, _Way(ReseedMode.MODEL, to=name, says=((says, "plain"),), drafts=[draft]))

    now = session.labels.get(Clean("model"))
    desk.ask(
        Ask(
            title=((Clean("name of the model"), "plain"),),
            about=(
                (Clean(f"change the model of {named(desk, session)}"), "plain"),
                *(((Clean(f"now: {now}"), "quiet"),) if now else ()),
            ),
            text=TextBox(check=_line),
            enter=Clean("goes on"),
            then=then,
            ended=changed(desk, session),
            draft=draft,
        )
    )


def _rewind(desk: Desk, session: Session) -> None:
    listed = _memory(desk, session).heard[:LISTED]
    if not listed:
        _rewind_by_ref(desk, session)
        return
    choices = [
        Choice(str(at), Clean(key), _message(one), (Clean(f"forgets it and what follows: {_count(one)}"),))
        for at, (key, one) in enumerate(zip(choice_keys(len(listed)), listed, strict=True))
    ]
    choices.append(Choice(str(len(listed)), Clean("o"), Clean("another one, by its ref")))

    def then(answer: Answer) -> None:
        place = int(answer.values[0])
        if place == len(listed):
            _rewind_by_ref(desk, session)
        else:
            _back_to(desk, session, listed[place].ref)

    desk.ask(
        Ask(
            title=((Clean(f"rewind {named(desk, session)}: go on before which message?"), "plain"),),
            live=lambda: _holds(desk, session),
            choices=tuple(choices),
            cursor=True,
            enter=Clean("goes on; nothing happens yet"),
            then=then,
            ended=changed(desk, session),
        )
    )


def _rewind_by_ref(desk: Desk, session: Session) -> None:
    draft = _draft(session, ReseedMode.REWIND)
    memory = _memory(desk, session)
    none = memory.knows_all and not memory.heard
    desk.ask(
        Ask(
            title=((Clean("ref of the message"), "plain"),),
            about=(
                (Clean(f"rewind {named(desk, session)}: go on before which message?"), "plain"),
                (_NONE_READ, "attention") if none else (_A_REF, "quiet"),
            ),
            text=TextBox(check=lambda ref: _line(ref) or _no_such(_memory(desk, session), ref.strip())),
            enter=Clean("goes on"),
            then=lambda answer: _back_to(desk, session, answer.text.strip(), [draft]),
            ended=changed(desk, session),
            draft=draft,
        )
    )


def _no_such(memory: Remembered, ref: str) -> Clean:
    """Why there is no such message to go back to, where that is known. What is no ref of a mailbox may be another name,
    which only its source knows."""
    if not memory.knows_all or not _OF_MAILBOX.fullmatch(ref) or memory.of(ref) is not None:
        return NOTHING
    known = ", ".join(clean_line(one.ref) for one in memory.heard[:LISTED])
    return Clean(f"there is no message {clean_line(ref)} to go back to" + (f"; there are: {known}" if known else ""))


def _back_to(desk: Desk, session: Session, ref: str, drafts: Drafts = ()) -> None:
    heard = _memory(desk, session).of(ref)
    if heard is not None:
        ref = heard.ref
    says = Clean(f"it goes on before {_message(heard) if heard is not None else clean_line(ref)}")
    _sure(desk, session, _Way(ReseedMode.REWIND, to=ref, says=((says, "plain"),), drafts=drafts))


def _replace(desk: Desk, session: Session) -> None:
    desk.ask(
        Ask(
            title=((Clean(f"replace the conversation of {named(desk, session)}"), "plain"),),
            live=lambda: _holds(desk, session),
            choices=(
                Choice("write", Clean("w"), Clean("write the text here")),
                Choice("file", Clean("f"), Clean("take it from a file")),
            ),
            cursor=True,
            enter=Clean("goes on; nothing happens yet"),
            then=lambda answer: {"write": _replace_by_text, "file": _replace_by_file}[answer.values[0]](desk, session),
            ended=changed(desk, session),
        )
    )


def _replace_by_text(desk: Desk, session: Session) -> None:
    draft = _draft(session, ReseedMode.REPLACE)
    desk.ask(
        Ask(
            title=((Clean("text to begin with"), "plain"),),
            about=((Clean(f"replace the conversation of {named(desk, session)}"), "plain"),),
            text=TextBox(check=written),
            enter=Clean("goes on"),
            then=lambda answer: _replace_by(desk, session, answer.text, [draft]),
            ended=changed(desk, session),
            draft=draft,
        )
    )


def _replace_by_file(desk: Desk, session: Session) -> None:
    draft = (_draft(session, ReseedMode.REPLACE), "file")

    def then(answer: Answer) -> None:
        read = text_of(answer.text)
        if read.problem:
            desk.say(read.problem, "attention")
        else:
            _replace_by(desk, session, read.text, [draft])

    desk.ask(
        Ask(
            title=((Clean("file to begin with"), "plain"),),
            about=((Clean(f"replace the conversation of {named(desk, session)}"), "plain"),),
            text=TextBox(check=lambda name: written(name) or text_of(name).problem),
            enter=Clean("goes on"),
            then=then,
            ended=changed(desk, session),
            draft=draft,
        )
    )


def _replace_by(desk: Desk, session: Session, text: str, drafts: Drafts) -> None:
    lines = text.count("\n") + 1
    size = f"{_number(lines, 'line')}, {_number(len(text), 'character')}"
    begins = exact_line(masked(clean(text.lstrip().partition("\n")[0][:_WIDTH])))
    says: tuple[Segment, ...] = ((Clean(f"it begins anew with {size}:"), "plain"), (Clean(f"  {begins}"), "quiet"))
    _sure(desk, session, _Way(ReseedMode.REPLACE, text=text, says=says, drafts=drafts))


class ReadText(NamedTuple):
    """What a file holds, or why it cannot be taken."""

    text: str
    problem: Clean = NOTHING


def text_of(name: str) -> ReadText:
    """The text of a file that an operator names."""
    try:
        data = files.read(files.expanded(name.strip()))
        text = data.decode("utf-8").rstrip("\n")
    except OSError as fault:
        return ReadText("", clean_line(f"{name.strip()} cannot be read: {fault.strerror or fault}"))
    except ConfigError as fault:
        return ReadText("", clean_line(str(fault)))
    except UnicodeDecodeError:
        return ReadText("", clean_line(f"{name.strip()} is not UTF-8"))
    if len(data) > MOST:
        return ReadText("", clean_line(f"{name.strip()} is longer than {MOST // 1024} KiB, which no host takes"))
    if not text.strip():
        return ReadText("", clean_line(f"{name.strip()} is empty"))
    return ReadText(text)


def _line(text: str) -> Clean:
    return written(text) or (Clean("one line is wanted") if "\n" in text.strip() else NOTHING)


def _draft(session: Session, mode: ReseedMode) -> tuple[object, ...]:
    return (Primitive.RESEED, mode, session.key, session.attempt)


_BEGIN: Final[Mapping[ReseedMode, Callable[[Desk, Session], None]]] = MappingProxyType(
    {
        ReseedMode.CLEAR: _at_once(ReseedMode.CLEAR),
        ReseedMode.COMPACT: _at_once(ReseedMode.COMPACT),
        ReseedMode.REWIND: _rewind,
        ReseedMode.REPLACE: _replace,
        ReseedMode.MODEL: _model,
    }
)


# --- whether it is meant -------------------------------------------------------------------


def _sure(desk: Desk, session: Session, way: _Way) -> None:
    """Ask whether it is meant, with the session, its attempt and what is lost."""

    def command() -> Intent:
        return intent(desk, session, Primitive.RESEED, mode=way.mode, to=way.to, text=way.text)

    made = command()
    gated = allowed(desk, made)
    if gated is None:
        return
    word = reseed_word(way.mode)
    confirm(
        desk,
        session,
        gated,
        lambda: made,
        drafts=way.drafts,
        asks=_ASKS.get(way.mode, word),
        yes="change it" if way.mode is ReseedMode.MODEL else f"{word} it",
        told=lambda: (*way.says, *_lost(desk, session, way), *_besides(session)),
    )


def _lost(desk: Desk, session: Session, way: _Way) -> tuple[Segment, ...]:
    """What would be forgotten, in numbers, as far as these are known."""
    if way.mode is ReseedMode.MODEL:
        return ()
    memory = _memory(desk, session)
    if way.mode is not ReseedMode.REWIND:
        return _holds(desk, session)
    heard = memory.of(way.to or "")
    if heard is None:
        return ((Clean("how much that takes away is not known here"), "attention"),)
    return ((Clean(f"forgotten: {_count(heard)}"), "plain"),)


def _besides(session: Session) -> tuple[Segment, ...]:
    return tuple((line, "attention") for line in effects.reseeding(session))


def _holds(desk: Desk, session: Session) -> tuple[Segment, ...]:
    """What the session remembers, and what waits for it."""
    memory = _memory(desk, session)
    if not memory.messages and not memory.events:
        says = "it remembers nothing yet" if memory.whole else "what it remembers is not known here"
    elif memory.whole and not memory.unsure:
        says = f"it remembers {_count(memory)}"
    elif memory.unsure:
        says = f"it remembers {_count(memory)} at most: it was rewound since"
    else:
        says = f"it remembers {_count(memory)} that are known here, and older ones"
    told: list[Segment] = [(Clean(says), "plain")]
    if session.mail_queued:
        stays = "stays" if session.mail_queued == 1 else "stay"
        told.append((Clean(f"{_number(session.mail_queued, 'queued message')} {stays} in its mailbox"), "plain"))
    return tuple(told)


def _memory(desk: Desk, session: Session) -> Remembered:
    return remembered(session, desk.now)


def _count(counted: Remembered | Heard) -> str:
    return f"{_number(counted.messages, 'message')} in {_number(counted.events, 'event')}"


def _message(heard: Heard) -> Clean:
    return Clean(f"{clean_line(heard.ref)}  {one_line(masked(heard.text))[:_WIDTH]}")


def _number(count: int, word: str) -> str:
    return f"{numeral(count)} {word}{'s' if count != 1 else ''}"
