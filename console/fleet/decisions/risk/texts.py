"""What texts that are no shell commands show: disguises, secrets, data base statements, pieces of programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from console.fleet.decisions.risk.calls import Locate
from console.fleet.decisions.risk.model import Risk, risk
from console.fleet.decisions.risk.places import secret
from watchfloor.text import Clean, secret_spans

_TOLD: Final = 5
"""Findings of one rule in one text that are told; more of them say nothing new."""

# The tokens into which `watchfloor.text` turns what cannot be seen.
TOKEN: Final = re.compile(r"<U\+[0-9A-F]{4,6}>|[\u2400-\u241f\u2421]")
# Cyrillic, Greek and full-width letters that are drawn as Latin ones.
_ALIKE: Final = (
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u04bb\u04cf\u0410\u0412\u0415\u041a\u041c"
    "\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u03bf\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d"
    "\u039f\u03a1\u03a4\u03a5\u03a7\uff21-\uff3a\uff41-\uff5a"
)
_LOOK_ALIKE = re.compile(f"[A-Za-z0-9_./-][{_ALIKE}]|[{_ALIKE}][A-Za-z0-9_]")
_FAR_RIGHT = re.compile(r"(?<![ \t])[ \t]{80,}+(?=\S)")
_FAR_DOWN = re.compile(r"(?<!\s)\s{31,}+(?=\S)")
_EMPTY_LINES: Final = 31

_DROPS = re.compile(
    r"\b(?:DROP\s{1,9}(?:TABLE|DATABASE|SCHEMA|VIEW|COLUMN|USER|ROLE|INDEX|TABLESPACE)\b"
    r"|TRUNCATE\s{1,9}(?:TABLE\s{1,9})?[\w.\"`]+|dropDatabase\(|\.drop\(\)|deleteMany\(\{\s{0,9}\}\))",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"\b(?:DELETE\s{1,9}FROM|UPDATE)\s{1,9}[\w.\"`]{1,200}", re.IGNORECASE)
_WHERE = re.compile(r"\b(?:WHERE|LIMIT|USING)\b", re.IGNORECASE)

_DELETES = re.compile(
    r"\b(?:shutil\.rmtree|os\.(?:remove|unlink|rmdir|removedirs)|send2trash|fs\.(?:promises\.)?(?:rm|rmdir|unlink)"
    r"(?:Sync)?|rimraf|FileUtils\.rm\w*|File\.(?:delete|unlink)|Remove-Item)\b"
    r"|\.(?:rm|rmdir|unlink)(?:Sync)?\(|\bunlink\b(?=[ (])"
)
_RUNS = re.compile(r"\b(?:exec|eval|Function|Invoke-Expression|iex)\b")
_FOUND = re.compile(
    r"(?P<net>urlopen|requests\.get|httpx\.get|fetch\(|DownloadString|Invoke-WebRequest|\biwr\b|\birm\b|Net::HTTP)"
    r"|b64decode|fromhex|atob\(|base64|unhexlify|decode\(|chr\("
)
_NEAR: Final = 200
"""Characters behind a word that are looked at for what it is given."""
_NET_RUNS = re.compile(
    r"(?:DownloadString|Invoke-WebRequest|\biwr\b|\birm\b)[^\n]{0,200}?\|\s{0,9}(?:iex|Invoke-Expression)\b"
)
_ENVIRONMENT = re.compile(
    r"\bprint\w*\(?[^\n]{0,80}?(?:os\.environ\b(?!\.get|\[)|process\.env\b(?![.\[])|%ENV|\bENV\.to_h)"
)
_STARTS = re.compile(
    r"\b(?:os\.system|os\.popen|subprocess\.\w{1,20}|popen|execSync|exec|spawnSync|system|shell_exec|passthru)"
    r"\s{0,3}\(\s{0,3}\[?\s{0,3}f?(?P<q>[\"'`])(?P<code>[^\"'`\n]{1,4000})(?P=q)"
)
_QUOTED_PATH = re.compile(r"[\"']([^\"'\n ]{4,200})[\"']")


def disguises(text: str, hidden: int) -> Iterator[Risk]:
    """Characters and gaps that make a text look like another one. `hidden`: characters that were made visible."""
    if hidden:
        found = [match.span() for match in TOKEN.finditer(text)][:_TOLD] or [(0, 0)]
        for span in found:
            yield risk("hidden-characters", "holds characters that cannot be seen", span)
    for match in _few(_LOOK_ALIKE, text):
        yield risk("look-alikes", "a letter of another alphabet that looks like a Latin one", match.span())
    for match in _few(_FAR_RIGHT, text):
        yield risk(
            "pushed-out-of-sight", "a long gap pushes what follows out of sight", (match.end(), _word(text, match))
        )
    for match in _few(_FAR_DOWN, text):
        if match[0].count("\n") < _EMPTY_LINES:
            continue
        yield risk(
            "pushed-out-of-sight", "empty lines push what follows out of sight", (match.end(), _word(text, match))
        )


def secrets(text: str) -> Iterator[Risk]:
    """Known forms of secrets that stand in the text itself."""
    for span in secret_spans(Clean(text))[:_TOLD]:
        yield risk("secret-in-text", "holds what looks like a secret", span)


def statements(text: str, locate: Locate) -> Iterator[Risk]:
    """Statements for a data base that take data away."""
    for match in _few(_DROPS, text):
        yield risk("database-delete", "takes data out of the data base for good", locate(*match.span()))
    for match in _few(_CHANGES, text):
        end = text.find(";", match.end())
        if not _WHERE.search(text, match.end(), end if end >= 0 else len(text)):
            yield risk("database-delete", "changes every row: it has no WHERE", locate(*match.span()))


def programs(text: str, locate: Locate, shell: Callable[[str, Locate], None]) -> Iterator[Risk]:
    """What a piece of a program in Python, JavaScript, Perl or the like does; `shell` gets what it starts."""
    for match in _few(_DELETES, text):
        yield risk("delete-in-code", "deletes files", locate(*match.span()))
    for match in _few(_RUNS, text, 100):
        line_end = text.find("\n", match.end(), match.end() + _NEAR)
        given = _FOUND.search(text, match.end(), line_end if line_end >= 0 else match.end() + _NEAR)
        if given is None:
            continue
        span = locate(match.start(), given.end())
        if given["net"]:
            yield risk("runs-download", "runs what it fetches", span)
        else:
            yield risk("decoded-and-run", "runs what it decodes first", span)
    for match in _few(_NET_RUNS, text):
        yield risk("runs-download", "runs what it fetches", locate(*match.span()))
    for match in _few(_ENVIRONMENT, text):
        yield risk("secret-shown", "shows the whole environment, with the secrets in it", locate(*match.span()))
    for match in _few(_QUOTED_PATH, text, 400):
        if secret(match[1]):
            yield risk("secret-file", "names a file that usually holds secrets", locate(*match.span(1)))
    for match in _few(_STARTS, text, 50):
        at = match.start("code")
        shell(match["code"], _moved(locate, at))
    yield from statements(text, locate)


def _moved(locate: Locate, by: int) -> Locate:
    return lambda start, end: locate(by + start, by + end)


def _few(pattern: re.Pattern[str], text: str, most: int = _TOLD) -> Iterator[re.Match[str]]:
    for found, match in enumerate(pattern.finditer(text)):
        if found >= most:
            return
        yield match


def _word(text: str, gap: re.Match[str]) -> int:
    end = gap.end()
    while end < len(text) and end - gap.end() < 80 and not text[end].isspace():
        end += 1
    return end
