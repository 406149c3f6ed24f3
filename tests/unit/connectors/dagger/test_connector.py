"""Where a Dagger session is, and with which token it is greeted."""

from __future__ import annotations

import base64

import pytest

from console.connectors.dagger.connector import DaggerFactory, place_of
from console.connectors.dagger.graph import authorization
from console.connectors.dagger.verbs import refused
from watchfloor.connector import Target
from watchfloor.errors import ConfigError
from watchfloor.words import OutcomeKind

CHILD = {"DAGGER_SESSION_PORT": "4242", "DAGGER_SESSION_TOKEN": "s3cret"}


def place(url: str, env: dict[str, str], token: str | None = None) -> tuple[str, str | None]:
    address, found = place_of(Target("d", url, token=token), env)
    return address.base, found


@pytest.mark.parametrize(
    ("url", "env", "token", "found"),
    [
        ("dagger+http://127.0.0.1:8080", {}, "mine", ("http://127.0.0.1:8080", "mine")),
        ("dagger+https://farm/dagger/", {}, None, ("https://farm/dagger", None)),
        ("dagger+http://127.0.0.1:4242", CHILD, None, ("http://127.0.0.1:4242", "s3cret")),
        ("dagger+http://localhost:4242", CHILD, "mine", ("http://localhost:4242", "mine")),
        ("dagger+session://here", CHILD, None, ("http://127.0.0.1:4242", "s3cret")),
        ("dagger+session://here", CHILD, "of another source", ("http://127.0.0.1:4242", "s3cret")),
    ],
)
def test_addresses(url: str, env: dict[str, str], token: str | None, found: tuple[str, str | None]) -> None:
    assert place(url, env, token) == found


@pytest.mark.parametrize(
    "url", ["dagger+http://farm:4242", "dagger+http://127.0.0.1:4243", "dagger+http://10.0.0.1:4242"]
)
def test_the_token_of_the_environment_goes_nowhere_else(url: str) -> None:
    assert place(url, CHILD)[1] is None


@pytest.mark.parametrize("env", [{}, {"DAGGER_SESSION_PORT": "4242"}, {**CHILD, "DAGGER_SESSION_PORT": "99999"}])
def test_no_session_around_this_process(env: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="dagger run"):
        place("dagger+session://here", env)


def test_an_address_that_cannot_be_used_is_told_when_it_is_named() -> None:
    with pytest.raises(ConfigError):
        DaggerFactory()(Target("d", "dagger+http://user:pw@farm"))


def test_a_token_is_a_user_without_a_password() -> None:
    header = authorization("tok")["authorization"]
    assert base64.b64decode(header.removeprefix("Basic ")) == b"tok:"
    assert authorization(None) == {}


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ('agent "x" is stopped; a released runtime cannot be paused', OutcomeKind.INVALID),
        ('agent "x" is mid-turn; wait', OutcomeKind.INVALID),
        ('agent "x" cannot subscribe to its own lifecycle', OutcomeKind.INVALID),
        ('agent "x" has no runtime in this session', OutcomeKind.STALE_TARGET),
        ("failed to persist: disk full", OutcomeKind.UNKNOWN),
    ],
)
def test_what_an_error_of_the_engine_means(words: str, outcome: OutcomeKind) -> None:
    assert refused(words).outcome is outcome
