"""The risks of an action, and of a request: of its exact text, whatever its source or its agent say about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from console.fleet.decisions.risk import texts
from console.fleet.decisions.risk.calls import Locate, base, words_of
from console.fleet.decisions.risk.model import Risk, RiskKind, RiskLevel, risk
from console.fleet.decisions.risk.places import outside, secret
from console.fleet.decisions.risk.rules import UNJUDGED, code_risks, shell_risks, written_risks
from console.fleet.decisions.risk.shell import Budget, Word
from console.fleet.facts import ActionFact, RequestFact
from watchfloor.text import Clean

MOST: Final = 40
"""Findings of one action that are told, the worst first."""
_DATABASE = re.compile(r"sql|postgres|mysql|mongo|database|(?:^|_)db(?:_|$)")
_CODE = re.compile(r"python|jupyter|notebook|code_interpreter|javascript|js_repl|node")
_WRITES = re.compile(r"write|edit|create|patch|delete|remove|move|rename|save|replace|insert|apply|mkdir|upload|put")
COMMAND_KEYS: Final = frozenset(
    ("command", "cmd", "commands", "script", "shell", "bash", "shell_command", "command_line", "argv", "run")
)
_CODE_KEYS: Final = frozenset(("code", "python", "source", "javascript", "cell", "new_source"))
_QUERY_KEYS: Final = frozenset(("query", "sql", "statement", "statements"))
PATH_KEYS: Final = words_of(
    "path file_path filepath filename file target target_file target_path destination dest dst dir directory folder"
    " new_path old_path notebook_path uri source_path"
)
_FOLDER_KEYS: Final = frozenset(("cwd", "workdir", "working_directory", "work_dir"))
_END: Final = 4_000
"""Characters at the end of a text that are judged in any case."""
_BREAK = re.compile(r"[\s;&|]")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?|[\[\]{}]', re.DOTALL)
_PIECE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))|[^\\]+", re.DOTALL)
_UNESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ARGUMENTS = re.compile(r"[{\[]\s*+[\"}\]{\[]")
_DIFF_PATH = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Add|Update|Delete) File: )([^\n\t]{1,4096})", re.MULTILINE)


def shown_text(action: ActionFact) -> Clean:
    """The text of an action in which risks point: what it does, and below that its diff where it has one."""
    return Clean(f"{action.text}\n{action.diff}") if action.diff else action.text


def level_of(risks: Iterable[Risk]) -> RiskLevel:
    """How risky it is altogether: as risky as the worst of it."""
    return max((found.level for found in risks), default=RiskLevel.NONE)


def kinds_of(risks: Iterable[Risk]) -> tuple[RiskKind, ...]:
    """The kinds that were found, in the order of the vocabulary."""
    found = {risk.kind for risk in risks}
    return tuple(kind for kind in RiskKind if kind in found)


def request_risks(fact: RequestFact, workspace: str | None) -> tuple[tuple[Risk, ...], ...]:
    """The risks of each action of a request, in their order. `workspace`: the folder of its session, where known."""
    return tuple(action_risks(action, workspace) for action in fact.actions)


@lru_cache(maxsize=512)
def action_risks(action: ActionFact, workspace: str | None) -> tuple[Risk, ...]:
    """The risks of an action, the worst first, then in the order of the text. Total: never raises, bounded in time.

    `workspace`: the folder that its session works in; None where that is not known: then only what belongs to the
    system, or to the home folder, counts as outside.
    """
    shown = shown_text(action)
    found: list[Risk] = []
    found += texts.disguises(shown, action.hidden)
    found += texts.secrets(shown)
    found += _action(action, workspace)
    if any(one.rule == "unjudged" for one in found):
        found += _end(str(action.text), str(action.cwd) if action.cwd else workspace, workspace)
    found += _diff(action, workspace)
    kept: dict[tuple[str, int, int], Risk] = {}
    for one in found:
        kept.setdefault((one.rule, one.start, one.end), one)
    order = sorted(kept.values(), key=lambda one: (-one.level, one.start, one.end, one.rule))
    return tuple(order[:MOST])


def _action(action: ActionFact, workspace: str | None) -> Iterator[Risk]:
    budget = Budget()
    cwd = str(action.cwd) if action.cwd else workspace
    if action.cwd and workspace is not None and outside(action.cwd, None, workspace):
        yield risk("works-outside", f"runs outside of the workspace, in {action.cwd[:200]}", (0, 0))
    text = str(action.text)
    if action.hidden:
        # Their tokens would read as redirections; to a shell they are ordinary characters of a word.
        text = texts.TOKEN.sub(lambda match: "\ufffd" * len(match[0]), text)
    tool = base(action.tool.casefold())
    for start, end, is_arguments in _parts(text):
        part, at = text[start:end], _shifted(start)
        if is_arguments:
            yield from _arguments(part, at, tool, workspace, cwd, budget)
        elif _DATABASE.search(tool):
            yield from texts.statements(part, at)
        elif _CODE.search(tool):
            yield from code_risks(part, at, workspace, cwd, budget)
        else:
            if _WRITES.search(tool) and "\n" not in part.strip():
                yield from written_risks(part.strip(), at(0, len(part)), workspace, cwd)
            yield from shell_risks(part, at, workspace, cwd, budget)


def _end(text: str, cwd: str | None, workspace: str | None) -> Iterator[Risk]:
    """What is risky at the end of a text that is too long to be judged, where harm is hidden: read from the middle of
    it, and so without knowing what it stands in."""
    begin = max(0, len(text) - _END)
    if begin and (parts := _BREAK.search(text, begin)) is not None:
        begin = parts.end()
    yield from shell_risks(text[begin:], _shifted(begin), workspace, cwd, Budget())


def _parts(text: str) -> Iterator[tuple[int, int, bool]]:
    """The text, and the arguments behind it, where it has them. What could be either is read as both."""
    at = 0 if _ARGUMENTS.match(text) else text.find("\n{") + 1
    if at == 0 and not _ARGUMENTS.match(text):
        yield 0, len(text), False
        return
    if at:
        yield 0, at, False
    yield at, len(text), True
    try:
        json.loads(text[at:])
    except (ValueError, RecursionError):
        yield at, len(text), False


def _shifted(by: int) -> Locate:
    return lambda start, end: (by + start, by + end)


def _arguments(
    text: str, locate: Locate, tool: str, workspace: str | None, cwd: str | None, budget: Budget
) -> Iterator[Risk]:
    """The risks of arguments in JSON: each text in them is judged by the name that it has."""
    key = ""
    listed: list[Word] | None = None
    for match in _STRING.finditer(text):
        if not budget.spend():
            yield risk("unjudged", UNJUDGED, (0, 0))
            return
        if match[0] in ("]", "}", "{", "["):
            if listed:
                yield from _argv(listed, key, locate, workspace, cwd, budget)
            listed = [] if match[0] == "[" and key in COMMAND_KEYS else None
            continue
        word = _unescaped(match)
        if match[2]:
            key, listed = word.value.casefold(), None
        elif listed is not None:
            listed.append(word)
        else:
            yield from _value(key, word, locate, tool, workspace, cwd, budget)
    if listed:
        yield from _argv(listed, key, locate, workspace, cwd, budget)


def _inside(word: Word, locate: Locate) -> Locate:
    return lambda start, end: locate(word.at(start), max(word.at(max(start, end - 1)) + 1, word.at(start)))


def _value(
    key: str, word: Word, locate: Locate, tool: str, workspace: str | None, cwd: str | None, budget: Budget
) -> Iterator[Risk]:
    inside = _inside(word, locate)
    span = locate(word.start, word.end)
    if key in COMMAND_KEYS:
        yield from shell_risks(word.value, inside, workspace, cwd, budget)
    elif key in _CODE_KEYS:
        yield from code_risks(word.value, inside, workspace, cwd, budget)
    elif key in _QUERY_KEYS:
        yield from texts.statements(word.value, inside)
    elif key in _FOLDER_KEYS:
        if outside(word.value, cwd, workspace):
            yield risk("works-outside", "runs outside of the workspace", span)
    elif key in PATH_KEYS:
        if secret(word.value):
            yield risk("secret-file", "names a file that usually holds secrets", span)
        if _WRITES.search(tool):
            yield from written_risks(word.value, span, workspace, cwd)
        if re.search(r"delete|remove", tool) and word.value:
            yield risk("delete-many", "deletes what stands there", span)


def _argv(
    words: list[Word], key: str, locate: Locate, workspace: str | None, cwd: str | None, budget: Budget
) -> Iterator[Risk]:
    """A list of texts: the words of one command, which pass no shell, or several commands."""
    if len(words) > 1 and key != "commands" and " " not in words[0].value:
        span = locate(words[0].start, words[-1].end)
        quoted = " ".join("'" + word.value.replace("'", "'\\''") + "'" for word in words)
        yield from shell_risks(quoted, lambda _start, _end: span, workspace, cwd, budget)
        return
    for word in words:
        yield from shell_risks(word.value, _inside(word, locate), workspace, cwd, budget)


def _unescaped(match: re.Match[str]) -> Word:
    start = match.start(1)
    parts: list[str] = []
    origin: list[tuple[int, int]] = []
    size = 0
    for piece in _PIECE.finditer(match[1]):
        value = chr(int(piece[1], 16)) if piece[1] else _UNESCAPED.get(piece[2], piece[2]) if piece[2] else piece[0]
        origin.append((size, start + piece.start()))
        parts.append(value)
        size += len(value)
    return Word("".join(parts), start, match.end(1), origin=origin)


def _diff(action: ActionFact, workspace: str | None) -> Iterator[Risk]:
    if not action.diff:
        return
    at = len(action.text) + 1
    cwd = str(action.cwd) if action.cwd else workspace
    for count, match in enumerate(_DIFF_PATH.finditer(action.diff)):
        if count == MOST:
            return
        path, span = match[1].strip(), (at + match.start(1), at + match.end(1))
        if secret(path):
            yield risk("secret-file", "names a file that usually holds secrets", span)
        yield from written_risks(path, span, workspace, cwd)
