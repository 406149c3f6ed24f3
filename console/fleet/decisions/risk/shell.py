"""A shell text taken apart: which programs it runs, with which words, fed by what, and where each stands.

It reads what POSIX shells and bash read: quotes, escapes, expansions, substitutions inside them, pipelines, groups,
redirections, here-documents, comments. It runs nothing and expands nothing. Total: any text gives a result, in time
that grows with its length, within a budget of steps; what was not reached is told by `Script.judged`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

STEPS: Final = 10_000
"""Pieces of one text that are looked at: enough for long programs, and a limit to what hostile ones cost."""
_DEPTH: Final = 12
"""Substitutions inside each other. Nobody writes more by hand."""

_PLAIN = re.compile(r"[^\s'\"\\$`|&;<>()]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_BLANKS = re.compile(r"[ \t\r\f\v]+")
_BRACED = re.compile(r"\{[^{}$`'\"\\\n]*\}")
_NAME = re.compile(r"\w+|[@*#?!$-]")
_SUM = re.compile(r"\(\([\w\s+\-*/%<>=!&|^~?:,()\[\]]*?\)\)")
_OPERATOR = re.compile(r"\|\||&&|;;&?|;&|\|&|&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|[|&;<>()\n]")
_ENDS: Final = frozenset(("||", "&&", ";;", ";;&", ";&", "|&", "|", "&", ";", "\n"))
_OPENS: Final = frozenset(("{", "if", "while", "until", "for", "case", "select"))
_CLOSES: Final = {"}": ("{",), "fi": ("if",), "done": ("while", "until", "for", "select"), "esac": ("case",)}
"""What ends a group, and what began it."""
_WORDS: Final = frozenset((*_OPENS, *_CLOSES, "then", "else", "elif", "do", "!", "time", "coproc"))
"""Words that have a meaning of their own where a command begins."""
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_Put: TypeAlias = Callable[[str, int], None]
"""Takes a piece of a word's value, and where it stands in the text."""
_LETTERS: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}


@dataclass(slots=True)
class Word:
    """One word. `value`: without its quotes, expansions as written; it stands at `start`..`end` of the text.

    `expands`: it holds an expansion, so that its value is not known; `spelled`: it is written in escapes such as \\x72;
    `quoted`: some of it stands in quotes; `inside`: what substitutions in it run.
    """

    value: str
    start: int
    end: int
    expands: bool = False
    spelled: bool = False
    quoted: bool = False
    inside: list[Script] = field(default_factory=list)
    origin: list[tuple[int, int]] = field(default_factory=list)
    """Where pieces of the value come from: its offset, the offset in the text."""

    def at(self, offset: int) -> int:
        """Where this character of the value stands in the text."""
        if not self.origin:
            return self.start
        value_at, text_at = self.origin[max(0, bisect_right(self.origin, (offset, self.end)) - 1)]
        return max(self.start, min(text_at + offset - value_at, self.end))


@dataclass(slots=True)
class Redirect:
    """`op` such as ">>" or "<<"; `word` is the target, or the whole body of a here-document."""

    op: str
    word: Word


@dataclass(slots=True)
class Command:
    """One simple command. `fed_from`: the first command of its script whose output it reads; None: no pipe does."""

    start: int
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    fed_from: int | None = None
    end: int = 0
    behind: str = ""
    """The operator that it stands behind, such as "|" or "&&"."""


@dataclass(slots=True)
class Script:
    """The commands of a text in their order, those of groups and loops among them. `how`: "" for the text itself, else
    the substitution that it is: "$(", "`", "<(" or ">("."""

    how: str = ""
    commands: list[Command] = field(default_factory=list)
    judged: bool = True
    """False: it has more parts, or is nested deeper, than is looked at."""
    closed: bool = True
    """False: a quote or a substitution in it never ends."""
    start: int = 0
    end: int = 0


class Budget:
    """Steps that are left for a text and all that stands inside it."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


def read(text: str, budget: Budget | None = None) -> Script:
    """Take a text apart. Never raises."""
    scanner = _Scanner(text, budget or Budget())
    script = scanner.script("", 0, len(text), 0)
    script.judged, script.closed = scanner.judged, scanner.closed
    return script


@dataclass(slots=True)
class _Group:
    """Commands between brackets, or between words such as `do` and `done`: `by` is what opened them."""

    by: str
    pipe: int
    fed_from: int | None


@dataclass(slots=True)
class _Reading:
    """How far the reading of one script has come. `pipe`: the first command of the pipeline that is being read; `fed`:
    the first of those that feed the next command; `now`: the command that is being read."""

    script: Script
    groups: list[_Group] = field(default_factory=list)
    pipe: int = 0
    fed: int | None = None
    behind: str = ""
    now: Command | None = None

    def command(self, at: int) -> Command:
        """The command that is being read, begun here if there is none."""
        if self.now is None:
            self.now = Command(at, fed_from=self.fed, end=at, behind=self.behind)
            self.script.commands.append(self.now)
            self.behind, self.fed = "", self._fed_by_group()
        return self.now

    def end(self, op: str) -> None:
        """An operator has ended the command."""
        commands = self.script.commands
        if op in ("|", "|&"):
            self.fed, self.behind = self.pipe, op
        elif op != "\n" or self.now is not None or self.behind not in ("|", "|&", "&&", "||"):
            self.pipe, self.fed, self.behind = len(commands), self._fed_by_group(), op
        self.now = None

    def open(self, by: str) -> None:
        self.groups.append(_Group(by, self.pipe, self.fed))
        self.pipe, self.now = len(self.script.commands), None

    def close(self, *openers: str) -> bool:
        """Leave the innermost group; False where there is none that is left so."""
        self.now = None
        while self.groups and "(" in openers and self.groups[-1].by not in ("(", "case"):
            self.groups.pop()  # it was never ended, and cannot be any more
        if not self.groups or self.groups[-1].by not in openers:
            return False
        group = self.groups.pop()
        self.pipe, self.fed = group.pipe, None
        return True

    def _fed_by_group(self) -> int | None:
        return self.groups[-1].fed_from if self.groups else None


class _Scanner:
    def __init__(self, text: str, budget: Budget) -> None:
        self.text = text
        self.at = 0
        self.budget = budget
        self.judged = True
        self.closed = True
        self.docs: list[tuple[Redirect, bool]] = []
        """Here-documents whose bodies follow the end of the line, and whether tabs before their end count."""

    def script(self, how: str, start: int, end: int, depth: int) -> Script:
        """The commands from `start` on, up to `end` or, for a substitution in brackets, to the one that closes it."""
        reading = _Reading(Script(how, start=start, end=end))
        self.at = start
        # A here-document that a substitution begins is over with it.
        before_docs, self.docs = self.docs, []
        closed = how in ("", "`")
        while self.at < end:
            text, at = self.text, self.at
            if (blank := _BLANKS.match(text, at, end)) is not None:
                self.at = blank.end()
            elif text[at] == "#":
                line = text.find("\n", at, end)
                self.at = end if line < 0 else line
            elif text.startswith("\\\n", at):
                self.at += 2
                self._step(end)
            elif text.startswith(("<(", ">("), at) or (operator := _OPERATOR.match(text, at, end)) is None:
                self._worded(reading, end, depth)
            elif self._step(end):
                self.at = operator.end()
                if operator[0] == ")" and not reading.close("(") and not reading.groups and not closed:
                    closed, reading.script.end = True, at
                    break
                self._operated(reading, operator[0], at, end, depth)
        self.closed = self.closed and closed
        self.docs = before_docs
        return reading.script

    def _operated(self, reading: _Reading, op: str, at: int, end: int, depth: int) -> None:
        if op in _ENDS:
            if op == "\n":
                self._bodies(end)
            reading.end(op)
        elif op == "(":
            now = reading.now
            if now is not None and len(now.words) == 1 and self.text.startswith(")", self.at):
                # The name of a function: what stands in its body is read as if it ran.
                self.at += 1
                reading.script.commands.remove(now)
                reading.now = None
            else:
                reading.open("(")
        elif op != ")":
            command = reading.command(at)
            self._redirect(command, op, end, depth)
            command.end = self.at

    def _worded(self, reading: _Reading, end: int, depth: int) -> None:
        word = self._word(end, depth)
        if reading.now is None and not word.quoted and word.value in _WORDS:
            if word.value in _OPENS:
                reading.open(word.value)
            elif word.value in _CLOSES:
                reading.close(*_CLOSES[word.value])
            if word.value in ("for", "case", "select"):
                self._head(reading.script.commands, end, depth)
            return
        command = reading.command(word.start)
        command.words.append(word)
        command.end = word.end

    def _head(self, commands: list[Command], end: int, depth: int) -> None:
        """What stands between `for` or `case` and the commands: its words run nothing but what they substitute."""
        head = Command(self.at, words=[Word("for", self.at, self.at)])
        while self.at < end and self._step(end):
            if (blank := _BLANKS.match(self.text, self.at, end)) is not None:
                self.at = blank.end()
            elif self.text[self.at] in ";\n()|&<>":
                break
            elif (word := self._word(end, depth)).inside:
                # It stands where an argument would, so that what is inside it is looked at.
                head.words.append(word)
        if len(head.words) > 1:
            head.end = self.at
            commands.append(head)

    def _step(self, end: int) -> bool:
        if self.budget.spend():
            return True
        self.judged = False
        self.at = end
        return False

    # --- words -----------------------------------------------------------------------------

    def _word(self, end: int, depth: int) -> Word:
        text = self.text
        word = Word("", self.at, self.at)
        parts: list[str] = []
        size = 0

        def put(piece: str, came_from: int) -> None:
            nonlocal size
            word.origin.append((size, came_from))
            parts.append(piece)
            size += len(piece)

        while self.at < end:
            if not self._step(end):
                break
            at = self.at
            if (plain := _PLAIN.match(text, at, end)) is not None:
                put(plain[0], at)
                self.at = plain.end()
                continue
            char = text[at]
            if char == "'":
                close = text.find("'", at + 1, end)
                if close < 0:
                    self.closed, close = False, end
                put(text[at + 1 : close], at + 1)
                word.quoted = True
                self.at = min(close + 1, end)
            elif char == '"':
                self.at += 1
                self._quoted(word, put, end, depth)
            elif char == "\\":
                if not text.startswith("\\\n", at):
                    put(text[at + 1 : min(at + 2, end)], min(at + 1, end))
                    word.quoted = True
                self.at = min(at + 2, end)
            elif char == "$":
                self._dollar(word, put, end, depth, in_quotes=False)
            elif char == "`":
                self._backtick(word, put, end, depth)
            elif text.startswith(("<(", ">("), at):
                self._substitute(word, put, text[at : at + 2], end, depth)
            else:
                break
        word.value, word.end = "".join(parts), max(self.at, word.start)
        if self.at == word.start and self.at < end:
            self.at += 1  # nothing that is known here: never stand still
        return word

    def _quoted(self, word: Word, put: _Put, end: int, depth: int) -> None:
        text = self.text
        word.quoted = True
        while self.at < end:
            if not self._step(end):
                return
            at = self.at
            if (plain := _IN_QUOTES.match(text, at, end)) is not None:
                put(plain[0], at)
                self.at = plain.end()
                continue
            match text[at]:
                case '"':
                    self.at += 1
                    return
                case "\\":
                    following = text[at + 1 : min(at + 2, end)]
                    if following != "\n":
                        put(following if following in '"\\$`' else f"\\{following}", at + 1)
                    self.at = min(at + 2, end)
                case "$":
                    self._dollar(word, put, end, depth, in_quotes=True)
                case _:
                    self._backtick(word, put, end, depth)
        self.closed = False

    def _dollar(self, word: Word, put: _Put, end: int, depth: int, *, in_quotes: bool) -> None:
        text, at = self.text, self.at
        following = text[at + 1 : min(at + 2, end)]
        if following == "(":
            if (total := _SUM.match(text, at + 1, end)) is not None:
                word.expands = True
                put(text[at : total.end()], at)
                self.at = total.end()
                return
            self._substitute(word, put, "$(", end, depth)
        elif following == "'" and not in_quotes:
            close = at + 2
            while close < end and text[close] != "'":
                close += 2 if text[close] == "\\" else 1
                if not self._step(end):
                    return
            if close >= end:
                self.closed = False
            raw = text[at + 2 : min(close, end)]
            put(_ANSI.sub(_spelled, raw), at + 2)
            word.quoted = True
            word.spelled = word.spelled or any(m[1] or m[2] or m[3] or m[4] for m in _ANSI.finditer(raw))
            self.at = min(close + 1, end)
        elif following == '"' and not in_quotes:
            self.at = at + 2
            self._quoted(word, put, end, depth)
        elif (found := (_BRACED if following == "{" else _NAME).match(text, at + 1, end)) is not None:
            word.expands = True
            put(text[at : found.end()], at)
            self.at = found.end()
        else:
            word.expands = word.expands or following == "{"
            put("$", at)
            self.at = at + 1
            if following == "{":
                put("{", at + 1)
                self.at = at + 2

    def _substitute(self, word: Word, put: _Put, how: str, end: int, depth: int) -> None:
        at = self.at
        word.expands = True
        if depth >= _DEPTH:
            self.judged = False
            put(self.text[at:end], at)
            self.at = end
            return
        inside = self.script(how, at + 2, end, depth + 1)
        word.inside.append(inside)
        self.at = min(max(self.at, inside.end), end)
        put(self.text[at : self.at], at)

    def _backtick(self, word: Word, put: _Put, end: int, depth: int) -> None:
        at = close = self.at
        word.expands = True
        while True:
            close = self.text.find("`", close + 1, end)
            if close < 0 or self.text[close - 1] != "\\":
                break
            if not self._step(end):
                return
        if close < 0:
            self.closed, close = False, end
        if depth >= _DEPTH:
            self.judged = False
        else:
            word.inside.append(self.script("`", at + 1, close, depth + 1))
        self.at = min(close + 1, end)
        put(self.text[at : self.at], at)

    # --- redirections ----------------------------------------------------------------------

    def _redirect(self, command: Command, op: str, end: int, depth: int) -> None:
        last = command.words[-1] if command.words else None
        if last is not None and last.value.isdigit() and not last.quoted and last.end == self.at - len(op):
            command.words.pop()  # the number of a file, as in 2>
        if (blank := _BLANKS.match(self.text, self.at, end)) is not None:
            self.at = blank.end()
        if self.at >= end or (self.text[self.at] in "\n;&|()<>" and not self.text.startswith(("<(", ">("), self.at)):
            return
        redirect = Redirect(op, self._word(end, depth))
        command.redirects.append(redirect)
        if op in ("<<", "<<-"):
            self.docs.append((redirect, op == "<<-"))

    def _bodies(self, end: int) -> None:
        """The here-documents that begin with the line that has just ended."""
        text = self.text
        for redirect, tabs in self.docs:
            mark, start = redirect.word.value, self.at
            at, stop, after = start, end, end
            while at < end:
                if not self._step(end):
                    return
                line_end = text.find("\n", at, end)
                line_end = end if line_end < 0 else line_end
                line = text[at:line_end]
                if (line.lstrip("\t") if tabs else line) == mark:
                    stop, after = at, line_end + 1
                    break
                at = line_end + 1
            body = text[start:stop]
            redirect.word = Word(body, start, stop, quoted=redirect.word.quoted, origin=[(0, start)])
            self.at = min(after, end)
        self.docs = []


def _spelled(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal:
        point = int(hexadecimal, 16)
        return chr(point) if point <= 0x10FFFF else ""
    if match[4]:
        return chr(int(match[4], 8) & 0xFF)
    return _LETTERS.get(match[5], match[5])
