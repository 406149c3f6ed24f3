"""How a request becomes lines. Pure functions: a view and a width in, lines out.

A line from outside stands right of a bar, always, and every piece of it that had to be wrapped
stands right of another one. Options are drawn by `option_lines`, flush left, below a rule that
spans the card. So nothing that an agent writes can pass for an option.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

from watchfloor.text import NOTHING, Clean
from widgets.card_view import CardAction, CardField, CardOption, CardView
from widgets.cells import chop, crop, fit, flat, skip, width_of, wrap
from widgets.marks import Marks
from widgets.tones import Segment, Tone

Line: TypeAlias = tuple[tuple[str, str], ...]
"""Pieces of text with the component class (without prefix) that each is painted in."""

_LABEL: Final = 10
TEXT_AT: Final = _LABEL + 4
"""Column of the text in the body; the bar stands two cells before it."""

RISKY: Final = "risky-"
"""Before the tone of a part of an exact text that is risky."""
_WIDE: Final = 10**9
_TITLE_LINES: Final = (1, 2)
"""Lines of the first text of a title, and of each other."""
_TITLE_LONG: Final = 60

_OPTION_KEY: Final = 5
_OPTION_LABEL_MOST: Final = 28
_OPTION_NOTE_LEAST: Final = 20


class FlagText(NamedTuple):
    """A risky place, copied."""

    line: int
    start: int
    end: int
    reason: Clean
    tone: Tone


class ActionText(NamedTuple):
    """An action, copied."""

    does: Clean
    tool: Clean
    lines: tuple[Clean, ...]
    cwd: Clean
    size: Clean
    complete: bool
    flagged: tuple[FlagText, ...]


class FieldText(NamedTuple):
    """A field of a question, copied, without what the operator has entered."""

    label: Clean
    kind: Clean
    choices: tuple[Clean, ...]


class Subject(NamedTuple):
    """What is decided about. If any of it changes, nothing of it counts as read."""

    actions: tuple[ActionText, ...]
    fields: tuple[FieldText, ...]
    unknown: tuple[Clean, ...]
    strange: Clean


class Content(NamedTuple):
    """All that the body shows, copied, so that an unchanged body is not wrapped again."""

    subject: Subject
    values: tuple[Clean, ...]
    flags: tuple[Segment, ...]
    description: tuple[Clean, ...]
    whose: Clean
    """The title in full, for where it had to be cut."""


def content_of(card: CardView) -> Content:
    """A copy of what the body of the card shows."""
    return Content(
        Subject(tuple(map(_action, card.actions)), tuple(map(_field, card.fields)), tuple(card.unknown), card.strange),
        tuple(field.value for field in card.fields),
        tuple(card.flags),
        tuple(card.description),
        card.title[0] if card.title and len(card.title[0]) > _TITLE_LONG else NOTHING,
    )


def _action(action: CardAction) -> ActionText:
    flagged = tuple(FlagText(one.line, one.start, one.end, one.reason, one.tone) for one in action.flagged)
    return ActionText(action.does, action.tool, tuple(action.lines), action.cwd, action.size, action.complete, flagged)


def _field(field: CardField) -> FieldText:
    return FieldText(field.label, field.kind, tuple(field.choices))


# ------------------------------------------------------------------ the body


class Body(NamedTuple):
    """The lines of the body. `ends`: the places of those with which the exact text of something that is decided about
    ends, in their order: what stands below it is as long as others want."""

    lines: list[Line]
    ends: tuple[int, ...]


def body_lines(content: Content, width: int, marks: Marks) -> list[Line]:
    """The lines of the body alone."""
    return lay_body(content, width, marks).lines


def lay_body(content: Content, width: int, marks: Marks) -> Body:
    """The body: exact actions first, then what is asked, risks, the agent's own words."""
    writer = _Body(width - TEXT_AT, marks)
    actions, fields, unknown, strange = content.subject
    if not actions and not fields:
        writer.own("", "the source does not say what this is about", "tone-failed")
    for number, action in enumerate(actions, 1):
        label = action.does if len(actions) == 1 else f"{number} of {len(actions)}"
        writer.gap()
        writer.exact(label, action.lines or (action.tool,), action.flagged)
        if action.lines and action.tool:
            writer.outside("with", (action.tool,), "tone-plain")
        if action.cwd:
            writer.outside("in", (action.cwd,), "tone-plain")
        if action.size and len(actions) > 1:
            writer.own("size", action.size, "tone-quiet")
        if not action.complete:
            writer.own("", "not complete: a part of it is missing here", "tone-failed")
    ended = len(writer.ends)
    for field, value in zip(fields, content.values, strict=True):
        writer.gap()
        del writer.ends[ended:]  # each is asked by itself; that it goes on is what has to be seen
        writer.outside("asks", field.label.split("\n"), "exact")
        for number, choice in enumerate(field.choices, 1):
            writer.outside(str(number), (choice,), "tone-plain")
        if value:
            writer.own("yours", value, "tone-running")
        elif not field.choices:
            writer.own("yours", f"nothing entered yet ({field.kind})", "tone-quiet")
    if strange:
        writer.gap()
        writer.own("also", strange, "tone-failed")
        writer.outside("", unknown, "exact")
    if content.flags or content.description:
        writer.gap()
    for at, (text, tone) in enumerate(content.flags):
        writer.own("risk" if at == 0 else "", text, f"tone-{tone}")
    if content.description:
        writer.prose("agent says", content.description, "tone-quiet")
    if content.whose and len(wrap(content.whose, width - 2)) > _TITLE_LINES[0]:
        writer.gap()
        writer.outside("whose", (content.whose,), "tone-plain")
    return Body(writer.lines, tuple(dict.fromkeys(writer.ends)))


class _Body:
    def __init__(self, room: int, marks: Marks) -> None:
        self.lines: list[Line] = []
        self.ends: list[int] = []
        self._room = room
        self._marks = marks

    def gap(self) -> None:
        if self.lines:
            self.lines.append(())

    def outside(self, label: str, texts: Sequence[str], part: str) -> None:
        """Exact text: nothing is left out, a line that is too long goes on below."""
        for text in texts:
            for at, piece in enumerate(chop(text, self._room)):
                self._add(label, self._marks.bar if at == 0 else self._marks.bar_more, piece, part)
                label = ""
        if part == "exact" and texts:
            self.ends.append(len(self.lines) - 1)

    def exact(self, label: str, texts: Sequence[str], flagged: Sequence[FlagText]) -> None:
        """The same for what is decided about, with strokes below each place that is risky, so that it is told by form
        as well; why stands behind the only one, else below all of the text, which is to be read in one piece."""
        by_line: dict[int, list[FlagText]] = {}
        for flag in flagged:
            by_line.setdefault(flag.line, []).append(flag)
        why = [flag for flag in flagged if flag.reason]
        number, end = 0, 0
        for at, text in enumerate(texts):
            places: list[_Place] = []
            for flag in by_line.get(at, ()):
                number += bool(flag.reason)
                places.append(_Place(_cells(text, flag.start), _cells(text, flag.end), number, flag.tone))
            if places:
                end = self._flagged(label, text, places, why)
            else:
                self.outside(label, (text,), "exact")
                end = self.ends.pop()
            label = ""
        self.ends.append(end)
        if len(why) > 1:
            for at, flag in enumerate(why, 1):
                self.own("", f"{at}  {flag.reason}", f"tone-{flag.tone}")

    def _flagged(self, label: str, text: str, places: Sequence[_Place], why: Sequence[FlagText]) -> int:
        """Write one line of the text; returns the place of its end."""
        begin, last = 0, len(self.lines)
        for at, piece in enumerate(chop(text, self._room)):
            end = begin + width_of(piece)
            here = [place.within(begin, end) for place in places if place.start < end and place.end > begin]
            bar = self._marks.bar if at == 0 else self._marks.bar_more
            last = len(self.lines)
            self._add_parts(label, bar, _parts(piece, here, "exact", RISKY))
            label = ""
            if not here:
                begin = end
                continue
            strokes = "".join(_strokes(here, end - begin, numbered=len(why) > 1))
            parts = _parts(strokes.rstrip(), here, "tone-quiet", "tone-")
            if len(why) == 1 and width_of(strokes.rstrip()) + 2 + width_of(why[0].reason) <= self._room:
                self._add_parts("", " ", [*parts, (f"  {flat(why[0].reason)}", f"tone-{why[0].tone}")])
                why = ()
            else:
                self._add_parts("", " ", parts)
            begin = end
        if len(why) == 1:
            self.own("", why[0].reason, f"tone-{why[0].tone}")
        return last

    def prose(self, label: str, texts: Sequence[str], part: str) -> None:
        """Words of an agent, wrapped at blanks."""
        for text in texts:
            for piece in wrap(text, self._room):
                self._add(label, self._marks.bar, piece, part)
                label = ""

    def own(self, label: str, text: str, part: str) -> None:
        """Words of the console or of the operator: no bar."""
        for piece in wrap(text, self._room):
            self._add(label, " ", piece, part)
            label = ""

    def _add(self, label: str, bar: str, text: str, part: str) -> None:
        self._add_parts(label, bar, [(text, part)])

    def _add_parts(self, label: str, bar: str, parts: Sequence[tuple[str, str]]) -> None:
        gutter = f" {fit(label, _LABEL, self._marks.cut, right=True)} "
        self.lines.append(((gutter, "gutter"), (f"{bar} ", "bar"), *parts))


class _Place(NamedTuple):
    """A risky place in cells. `number`: which of the reasons is its own, from 1."""

    start: int
    end: int
    number: int
    tone: Tone

    def within(self, begin: int, end: int) -> _Place:
        """The part of it that is between these cells, counted from there."""
        return _Place(max(self.start, begin) - begin, min(self.end, end) - begin, self.number, self.tone)


def _strokes(places: Sequence[_Place], width: int, *, numbered: bool) -> list[str]:
    """Strokes below the places, each begun with its number."""
    cells = [" "] * width
    for place in places:
        cells[place.start : place.end] = "~" * (place.end - place.start)
    if numbered:
        for place in reversed(places):
            name = str(place.number)[: place.end - place.start]
            cells[place.start : place.start + len(name)] = name
    return cells


def _cells(text: str, characters: int) -> int:
    """Cells that the first characters take, drawn as `chop` draws them."""
    return width_of(chop(text[:characters], _WIDE)[0]) if characters else 0


def _parts(piece: str, places: Sequence[_Place], part: str, risky: str) -> list[tuple[str, str]]:
    """The piece in its parts, what is risky apart from the rest: `risky` and its tone."""
    parts: list[tuple[str, str]] = []
    done = 0
    for start, end, _, tone in places:
        if end <= done:
            continue
        start = max(start, done)
        if start > done:
            parts.append((crop(skip(piece, done), start - done), part))
        parts.append((crop(skip(piece, start), end - start), f"{risky}{tone}"))
        done = end
    rest = skip(piece, done)
    return [*parts, (rest, part)] if rest else parts


# ------------------------------------------------------------------ around the body


def title_lines(card: CardView, width: int, marks: Marks) -> list[Line]:
    """Whose request it is. A name must not push off what it is about: of a long one the rest stands in the body."""
    lines: list[Line] = []
    for at, text in enumerate(card.title):
        pieces = wrap(text, width - 2)
        most = _TITLE_LINES[min(at, 1)]
        if len(pieces) > most:
            pieces = [*pieces[: most - 1], fit(" ".join(pieces[most - 1 : most + 1]), width - 2, marks.cut)]
        lines += [((fit(f" {piece}", width), "title" if at == 0 else "subtitle"),) for piece in pieces]
    return lines


def rule_line(width: int, marks: Marks) -> Line:
    """The line that parts what was asked from what can be done."""
    return ((marks.rule * width, "rule"),)


def option_lines(options: Sequence[CardOption], width: int) -> list[Line]:
    """One option below the other: key, label, what happens then; wrapped, never cut."""
    widest = max((width_of(option.label) for option in options), default=0)
    label_room = min(widest, _OPTION_LABEL_MOST, max(2, width - _OPTION_KEY))
    note_room = width - _OPTION_KEY - label_room - 2
    beside = note_room >= _OPTION_NOTE_LEAST
    lines: list[Line] = []
    for option in options:
        labels = wrap(option.label, label_room)
        notes = wrap(option.note, note_room if beside else width - _OPTION_KEY - 2) if option.note else []
        key_part = "option-key" if option.enabled else "option-blocked"
        label_part = f"tone-{option.tone}" if option.enabled else "option-blocked"
        key = f"  {flat(option.key)}"
        if beside:
            for at, (label, note) in enumerate(zip_longest(labels, notes, fillvalue="")):
                lines.append(_option(key if at == 0 else "", label, note, label_room, key_part, label_part))
        else:
            for at, label in enumerate(labels):
                lines.append(_option(key if at == 0 else "", label, "", label_room, key_part, label_part))
            lines.extend(((" " * (_OPTION_KEY + 2), "option-note"), (note, "option-note")) for note in notes)
    return lines


def _option(key: str, label: str, note: str, room: int, key_part: str, label_part: str) -> Line:
    return (
        (fit(key, _OPTION_KEY), key_part),
        (fit(label, room), label_part),
        ("  ", "option-note"),
        (flat(note), "option-note"),
    )


def ending_lines(card: CardView, width: int) -> list[Line]:
    """How the request ended."""
    return [((f"  {piece}", "ending"),) for piece in wrap(card.ending, width - 3)]


def state_lines(card: CardView, width: int) -> list[Line]:
    """Whether a key counts yet, what happens without one, how long the only action is, and the digest."""
    digest = f"digest {flat(card.digest_short)} " if card.digest_short else ""
    size = card.actions[0].size if len(card.actions) == 1 else NOTHING
    texts = [flat(text) for text in (*((card.armed, card.deadline, card.presence) if card.open else ()), size) if text]
    packed: list[str] = []
    for text in texts:
        if packed and width_of(packed[-1]) + 3 + width_of(text) <= width - 3:
            packed[-1] += f"   {text}"
        else:
            packed += wrap(text, width - 3)
    if not digest:
        return [((f"  {text}", "state"),) for text in packed] or [_state("", "", width)]
    if packed and width_of(packed[-1]) + 2 + 3 + width_of(digest) <= width:
        *before, last = packed
    else:
        before, last = packed, ""
    return [*(((f"  {text}", "state"),) for text in before), _state(last, digest, width)]


def _state(text: str, digest: str, width: int) -> Line:
    room = max(0, width - width_of(digest))
    return ((fit(f"  {text}", room), "state"), (digest, "digest"))
