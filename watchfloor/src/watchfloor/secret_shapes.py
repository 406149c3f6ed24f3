"""The known forms of secrets, as patterns. `watchfloor.text` masks by them; standard library only."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Shape(NamedTuple):
    """One known form of a secret. The last group that matched is masked; a group `hint` right before it stays."""

    needles: tuple[str, ...]  # the pattern cannot match unless the lower-cased text holds one of them
    pattern: re.Pattern[str]
    sized: bool = True  # whether to say how long it was; for passwords that would help to guess


# Hostile text must not make these slow: every repeat that something may still fail after is bounded, or possessive and
# over characters in which the pattern cannot begin again.

# A token begins a word, or follows a colour sequence, whose last letter only looks like part of the word.
_BEGIN = r"(?:(?<![A-Za-z0-9])|(?<=[\[;]m)|(?<=[\[;]\dm)|(?<=[\[;]\d\dm)|(?<=[\[;]\d{3}m))"
# A reference, a piece of a program or a remark in place of a value: nothing to mask.
_REAL = (
    r"(?!\$|%[A-Za-z]|\{\{|<|\*{3})(?![A-Za-z_][\w.]{0,80}[(\[])"
    r"(?!(?:none|null|nil|true|false|str|string|int|bytes|bool|any|undefined|optional|required|missing|invalid|incorrect"
    r"|expired|os|process|self|args|config|settings|env|input|getpass|password|passwd|passphrase|secret|token|key)"
    r"(?![A-Za-z0-9_-]))"
)
_RANDOM = r"(?=[^\s\"'`;&|<>…]{0,200}\d|[^\s\"'`;&|<>…]{20})"
# Names that mean a secret whatever the value, and names that mean one if the value looks random. Neither counts as the
# user in a URL: what stands there ends at the @.
_NOT_A_USER = r"(?<!://)(?<!://x-)(?<!://x-access-)"
_STRONG_NAMES = (
    _NOT_A_USER + r"(?:(?<!no)passw(?:or)?d|passphrase|secret"
    r"|pwd(?!\\?[\"']?[ \t]{0,3}[=:][ \t]{0,3}\\?[\"']?[/~.])"
    r"|(?:secret|private|access|api|account|signing|encryption)[_-]?(?:access[_-]?)?key"
    r"|(?:access|auth|refresh|api|bearer|session)[_-]?token)"
)
_WEAK_NAMES = (
    _NOT_A_USER
    + "(?:token|credentials?|"
    + "".join(f"(?<!{word}[_-])" for word in ("public", "primary", "foreign", "sort", "cache", "partition"))
    + "(?<![A-Za-z])key)"
)
_IS = r"(?:_?(?:base|value|text|b64|base64|\d{1,3}))?\\{0,3}[\"']?[ \t]{0,3}(?:=>|:=|[=:](?!=))[ \t]{0,3}"
_FLAG = (
    r"--(?=[a-z0-9])[a-z0-9-]{0,40}"
    r"(?:passw(?:or)?d|passphrase|token|secret|api-?key|access-key|secret-key)[ \t]{1,3}"
)


def _value(least: int, check: str = _REAL) -> str:
    """A value of at least so many characters: in quotes, in quotes that are escaped themselves, or bare."""
    return (
        rf"(?:([\"']){check}((?:(?!\1)[^\\\n]|\\.){{{least},}}+)"
        rf"|\\{{1,3}}[\"']{check}([^\\\n\"']{{{least},}}+)"
        rf"|{check}((?:[^\s\"'`;&|<>…␊␍␉\\]|\\[^nrt\"'\s␊␍␉…]){{{least},}}+))"
    )


@cache
def shapes() -> tuple[Shape, ...]:
    """The known forms, compiled at the first use: compiling takes longer than importing all of this."""
    compile_, fold = re.compile, re.IGNORECASE
    return (
        Shape(
            ("sk-",),
            compile_(
                _BEGIN + r"(?P<hint>sk-(?:ant-|proj-|svcacct-|admin-|or-v1-)?)"
                r"(?=[\w-]{0,200}[0-9A-Z]|[a-z]{20})([A-Za-z0-9_-]{16,}+)"
            ),
        ),
        Shape(
            (
                *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "hf_", "npm_"),
                *("pypi-", "aiza", "gsk_", "xai-", "k_live_", "k_test_", "whsec_", "ya29.", "dop_v1_"),
            ),
            compile_(
                _BEGIN + r"(?P<hint>gh[pousr]_|github_pat_|glpat-|xox[a-z][.-]|xapp-|hf_|npm_|pypi-|AIza|gsk_|xai-"
                r"|[sr]k_(?:live|test)_|whsec_|ya29\.|dop_v1_)([A-Za-z0-9_-](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){14,}+)"
            ),
        ),
        Shape(
            ("akia", "asia", "abia", "acca"),
            compile_(_BEGIN + r"(?P<hint>AKIA|ASIA|ABIA|ACCA)([A-Z0-9]{16})(?![A-Za-z0-9])"),
        ),
        Shape(
            ("eyj",),
            # The head is short, and bounding it is what keeps a long run without a dot cheap.
            compile_(_BEGIN + r"(?P<hint>eyJ)([A-Za-z0-9_-]{8,512}+\.[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?)"),
        ),
        Shape(("hooks.slack.com/",), compile_(r"hooks\.slack\.com/\w{1,20}/([A-Za-z0-9/_-]{16,}+)")),
        Shape(
            ("private key",),
            # To the end line where there is one (the body holds single dashes), else what looks like header and body.
            compile_(
                r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
                r"([^-]*+(?:-(?!----)[^-]*+)*+-----END [A-Z0-9 ]{1,50}-----"
                r"|(?:[\s␊␍]|\\[nr])*+(?:[A-Z][A-Za-z-]{2,30}: [^\n␊\\]{0,200}+(?:[\s␊␍]|\\[nr])++)*+"
                r"[A-Za-z0-9+/=\s␊␍␉\\]++)"
            ),
        ),
        Shape(("bearer",), compile_(rf"\bbearer[ \t]{{1,3}}{_REAL}{_RANDOM}([A-Za-z0-9._~+/=-]{{8,}}+)", fold)),
        Shape(
            ("authorization",),
            compile_(
                r"authorization\\{0,3}[\"']?[ \t]{0,3}[:=][ \t]{0,3}\\{0,3}[\"']?"
                r"(?:(?:bearer|basic|token|digest|negotiate|apikey)[ \t]{1,3}"
                rf"{_REAL}([^\s\"',;␊␍\\]{{4,}}+)|{_REAL}{_RANDOM}([^\s\"',;␊␍\\]{{8,}}+))",
                fold,
            ),
        ),
        Shape(
            ("://",),
            compile_(
                r"://(?:[^\s/?#:@\"'<>]{0,256}:(?!\$|\{|<|\*{3}|%[A-Za-z]+%)"
                r"([^\s/?#\"'<>`]{1,512})|([^\s/?#:@\"'<>…]{20,256}))@"
            ),
            sized=False,
        ),
        Shape(
            ("passw", "passphrase", "pwd", "secret", "key", "token"),
            compile_(_STRONG_NAMES + _IS + _value(1), fold),
            sized=False,
        ),
        Shape(
            ("token", "credential", "key"),
            compile_(_WEAK_NAMES + _IS + _value(8, _REAL + _RANDOM), fold),
            sized=False,
        ),
        Shape(("--",), compile_(_FLAG + "(?!-|id=|type=|env=)" + _value(1), fold), sized=False),
    )
