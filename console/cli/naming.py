"""What a program that is run is called, where nobody says: by what it is about, not by what carries it out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

_CARRIERS: Final[dict[str, str]] = {
    # Programs that run another one, and which of their options take a word of their own.
    "chrt": "",
    "doas": "C u",
    "env": "u C S unset chdir",
    "exec": "a",
    "ionice": "c n p",
    "nice": "n adjustment",
    "nohup": "",
    "setsid": "",
    "stdbuf": "i o e input output error",
    "sudo": "u g h p C D R T U",
    "time": "f o",
    "timeout": "k s kill-after signal",
    "uvx": "p from with python",
    "npx": "p package",
    "bunx": "",
}
_RUNNERS: Final = {
    ("uv", "run"),
    ("poetry", "run"),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("deno", "run"),
}
"""The same, by two words."""
_TAKES_ONE: Final = frozenset({"timeout", "chrt"})
"""Those whose first own word is not the program: a time, a priority."""
_INTERPRETERS: Final = re.compile(
    r"(?:ba|da|z|k|fi)?sh|python[\d.]*|pypy[\d.]*|node|nodejs|bun|deno|ruby|perl|php|lua|Rscript|tclsh"
)
_WITH_WORD: Final[dict[str, str]] = {
    # Options of interpreters that take a word of their own.
    "sh": "o O rcfile init-file",
    "python": "W X Q check-hash-based-pycs",
    "node": "r require import loader experimental-loader",
    "ruby": "I r C",
    "perl": "I M",
    "php": "d c",
    "lua": "l",
}
_MODULE: Final = re.compile(r"-[bBdEiIOPqsSuvx]*m(.*)")
_CODE: Final = frozenset({"c", "e", "E", "p", "r", "eval", "print"})


def session_name(argv: Sequence[str]) -> str:
    """What a session is called that runs `argv`, which is not empty.

    The file name of the program; behind a carrier such as `env`, `nice` or `timeout` that of what it runs; with an
    interpreter that of the script, or the module of `-m`. `python -c CODE` is called `python`.
    """
    words = list(argv)
    while len(words) > 1 and (rest := _carried(words)):
        words = rest
    program = _file(words[0])
    script = _script(program, words[1:]) if _INTERPRETERS.fullmatch(program) else None
    return script or program or _file(argv[0])


def _carried(words: list[str]) -> list[str]:
    """What the first word runs; empty where it runs nothing else."""
    name = _file(words[0])
    if tuple(words[:2]) in _RUNNERS or (name, words[1]) in _RUNNERS:
        return _behind(words[2:], "p python extra with group package")
    if name not in _CARRIERS:
        return []
    rest = _behind(words[1:], _CARRIERS[name])
    while name in ("env", "sudo", "doas") and rest and re.match(r"[A-Za-z_]\w*=", rest[0]):
        rest = rest[1:]
    return rest[1:] if name in _TAKES_ONE else rest


def _behind(words: list[str], with_word: str) -> list[str]:
    """The words from the first that is no option on."""
    taking = with_word.split()
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            return words[at + 1 :]
        at += 2 if words[at].lstrip("-") in taking else 1
    return words[at:]


def _script(interpreter: str, words: list[str]) -> str | None:
    """What an interpreter is given to run, None where that is code or its input."""
    family = next((name for name in ("python", "pypy") if interpreter.startswith(name)), interpreter)
    family = "python" if family == "pypy" else "sh" if family.endswith("sh") else family
    family = "node" if family == "nodejs" else family
    taking = _WITH_WORD.get(family, "").split()
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word, option = words[at], words[at].lstrip("-")
        if word == "-":
            return None
        if word == "--":
            at += 1
            break
        if family == "python" and (module := _MODULE.match(word)):
            return module[1] or next(iter(words[at + 1 :]), None)
        if option in _CODE or (family in ("sh", "python") and not word.startswith("--") and "c" in option):
            return None
        at += 2 if option in taking else 1
    return _file(words[at]) if at < len(words) else None


def _file(word: str) -> str:
    return PurePath(word).name or word
