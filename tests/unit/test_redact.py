"""Masking of secrets: the known forms go, ordinary text stays, and hostile text cannot make it slow."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchfloor.text import Clean, clean, clean_line, redact

BODY = "Ab1" * 12  # looks random enough, is no secret of anybody
PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\nMIIE+/=\nabcd\n"
PEM_END = "-----END RSA PRIVATE KEY-----"
JWT = f"eyJhbGciOiJIUzI1NiJ9.{BODY}.{BODY}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"use sk-{BODY} now", "use sk-…[masked 36] now"),
        (f"sk-ant-api03-{BODY}", "sk-ant-…[masked 42]"),
        (f"sk-proj-{BODY}", "sk-proj-…[masked 36]"),
        (f"␛[31msk-{BODY}␛[0m", "␛[31msk-…[masked 36]␛[0m"),
        (f"ghp_{BODY}, gho_{BODY}", "ghp_…[masked 36], gho_…[masked 36]"),
        (f"github_pat_{BODY}", "github_pat_…[masked 36]"),
        (f"glpat-{BODY} hf_{BODY} npm_{BODY}", "glpat-…[masked 36] hf_…[masked 36] npm_…[masked 36]"),
        (f"xoxb-1234-{BODY}.", "xoxb-…[masked 41]."),
        (f"AIza{BODY} sk_live_{BODY}", "AIza…[masked 36] sk_live_…[masked 36]"),
        ("id AKIA" + "ABCD1234" * 2 + ".", "id AKIA…[masked 16]."),
        ("aws_secret_access_key = abc/def+ghi", "aws_secret_access_key = …[masked]"),
        ('"SecretAccessKey": "abc/def+ghi",', '"SecretAccessKey": "…[masked]",'),
        (f"hooks.slack.com/services/T00/B00/{BODY}", "hooks.slack.com/services/…[masked 44]"),
        (f"cookie {JWT}; path", f"cookie eyJ…[masked {len(JWT) - 3}]; path"),
        (f"x-{JWT}", f"x-eyJ…[masked {len(JWT) - 3}]"),
        (f"-H 'Authorization: Bearer {BODY}'", "-H 'Authorization: Bearer …[masked 36]'"),
        ("authorization: basic dXNlcjpw", "authorization: basic …[masked 8]"),
        (f"Bearer {BODY}", "Bearer …[masked 36]"),
        (f"Bearer sk-{BODY}", "Bearer sk-…[masked 36]"),
        ("postgres://app:hunter2@db/x", "postgres://app:…[masked]@db/x"),
        ("amqp://:p@ss:w0rd@mq:5672/", "amqp://:…[masked]@mq:5672/"),
        (f"https://x-access-token:ghp_{BODY}@example.test/r", "https://x-access-token:ghp_…[masked 36]@example.test/r"),
        (f"https://{BODY}@example.test/", "https://…[masked]@example.test/"),
        ("PASSWORD=hunter2 make", "PASSWORD=…[masked] make"),
        ("DB_PASSWORD='hun ter\"2' make", "DB_PASSWORD='…[masked]' make"),
        ('{"password": "hun\\"ter2", "x": 1}', '{"password": "…[masked]", "x": 1}'),
        ('{\\"api_key\\": \\"hunter2\\", \\"x\\": 1}', '{\\"api_key\\": \\"…[masked]\\", \\"x\\": 1}'),
        ("password: hunter2␊user: me", "password: …[masked]␊user: me"),
        ("a=1 client_secret:=x;b", "a=1 client_secret:=…[masked];b"),
        ("?access_token=abc&x=1", "?access_token=…[masked]&x=1"),
        ("X-Api-Key: abc", "X-Api-Key: …[masked]"),
        (f"GITHUB_TOKEN={BODY}", "GITHUB_TOKEN=…[masked]"),
        (f"OPENAI_API_KEY=sk-{BODY}", "OPENAI_API_KEY=sk-…[masked 36]"),
        ("KEY=abcd1234efgh", "KEY=…[masked]"),
        ("mysql --password hunter2 --token abc", "mysql --password …[masked] --token …[masked]"),
        ("---token abc", "---token …[masked]"),
        (f"{PEM}{PEM_END}\nafter", f"{PEM[:31]}…[masked {len(PEM) - 31 + len(PEM_END)}]\nafter"),
        (PEM, f"{PEM[:31]}…[masked {len(PEM) - 31}]"),
        (clean_line(PEM + PEM_END), f"{PEM[:31]}…[masked {len(PEM) - 31 + len(PEM_END)}]"),
    ],
)
def test_secrets_are_masked(text: str, shown: str) -> None:
    masked, count = redact(Clean(text))
    assert masked == shown
    assert count == shown.count("…[masked")
    assert redact(masked) == (masked, 0)


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf build && make migrate",
        "task-runner-with-a-very-long-name sk-estimator-doc-link-something",
        "max_tokens=4096, tokens: 1,204, token_count=12345678",
        "password: str, token: str | None = None",
        "self.password = password; token = get_token(12345678)",
        "token=$TOKEN PASSWORD=${PASSWORD} password=<password> password=***",
        "Authorization: Bearer $TOKEN",
        "bearer responsibilities are many",
        "PWD=/srv/app OLDPWD=/tmp",
        "docker build --secret id=npmrc,src=/x --token-env NAME --token-file F --max-tokens 500",
        "permissions:\n  id-token: write\npassword:\n  unset",
        "ALL=(ALL) NOPASSWD: ALL",
        "the key: enter; MONKEY=banana12345 primary_key=user_id_12",
        "http://host:8080/a@b ssh://git@host:22/x user@host",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "one sk-short ghp_short AKIA123 eyJ.a.b",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(Clean(text)) == (text, 0)


def test_own_credentials_are_masked_wherever_they_stand() -> None:
    text = Clean("xmy-own-token-9x my-own-token-9 abc")
    assert redact(text, ["my-own-token-9", "", "abc"]) == ("x…[masked 14]x …[masked 14] abc", 2)
    assert redact(text) == (text, 0)


def test_an_own_credential_inside_another_secret_gives_one_mask() -> None:
    assert redact(Clean(f"sk-{BODY}"), [f"k-{BODY}"[:20]]) == ("s…[masked 38]", 1)
    assert redact(Clean(f"sk-{BODY}"), [f"sk-{BODY}"]) == ("sk-…[masked 36]", 1)
    assert redact(Clean("hunter2hunter2"), ["hunter2", "2hunter"]) == ("…[masked 14]", 1)


def test_an_own_credential_is_found_in_its_visible_form() -> None:
    assert redact(clean("a pass\u200bword-1 b"), ["pass\u200bword-1"]) == ("a …[masked 18] b", 1)


secrets = st.sampled_from(
    (
        *(f"sk-{BODY}", f"ghp_{BODY}", JWT, PEM, PEM + PEM_END, "://u:p@h", "password=x", f"key={BODY}"),
        *('"token": "abcd1234x"', "Bearer ", "Authorization: ", "PASSWORD=", "--token ", "…[masked 3]"),
        *("://", "@", '"', "'", "\\", "…", "-----", " "),
    )
)


@given(st.lists(secrets | st.text(max_size=6), max_size=8).map("".join))
def test_masking_only_takes_away_and_is_idempotent(text: str) -> None:
    source = clean(text)
    masked, count = redact(source)
    assert redact(masked) == (masked, 0)
    assert clean(masked) == masked
    assert (count == 0) == (masked == source)
    # What is left stands in the source in the same order.
    at = 0
    for piece in re.split(r"…\[masked(?: \d+)?\]", masked):
        at = source.index(piece, at) + len(piece)


@given(st.lists(secrets | st.text(max_size=6), max_size=6).map("".join), st.text(min_size=4, max_size=6))
def test_an_own_credential_never_stays(text: str, own: str) -> None:
    masked, count = redact(clean(f"{text} {own} {text}"), [own])
    assert count > 0
    assert clean(own) not in re.split(r"…\[masked(?: \d+)?\]", masked)
    assert f" {clean(own)} " not in masked


@given(st.lists(secrets, min_size=1, max_size=6).map(" ".join))
def test_the_body_of_a_secret_never_stays(text: str) -> None:
    assert BODY not in redact(Clean(text))[0]


@pytest.mark.parametrize(
    "piece",
    [
        *("-eyJ", "1meyJ", "sk-", "hf_", "hf_.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----- -"),
        *("://a:", "a:", "-", "--", "--token ", "password=", 'password="', "password=\\", "secret", "key=key:"),
        *("bearer ", "authorization:"),
    ],
)
def test_no_text_makes_masking_slow(piece: str) -> None:
    def seconds(size: int) -> float:
        """Of this thread on a processor: what else the machine does hardly counts."""
        text = Clean(piece * (size // len(piece)))
        best = float("inf")
        for _ in range(3):
            began = time.thread_time()
            redact(text)
            best = min(best, time.thread_time() - began)
        return best

    redact(Clean("password=x"))  # compiles the patterns
    # For 32 times the text linear work takes 32 times as long, quadratic work 1024 times: far from the bound, both.
    assert seconds(128_000) < 180 * seconds(4_000)
