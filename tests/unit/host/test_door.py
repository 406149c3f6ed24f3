"""Who gets past the door."""

from __future__ import annotations

import pytest

from watchfloor.host.principals import Principal, Principals
from watchfloor.host.serving.handshake import Door, Refusal, host_name, is_loopback
from watchfloor.words import Role

OPERATOR = Principal("ada", Role.OPERATOR)
OBSERVER = Principal("olga", Role.OBSERVER)
TOKENS = Principals({"s3cret": OPERATOR, "other": OBSERVER})
GOOD = {"Host": "127.0.0.1:8765", "Sec-WebSocket-Protocol": "watchfloor.v1", "Authorization": "Bearer s3cret"}


def admit(door: Door, **changes: str | None) -> Principal | Refusal:
    headers = {**GOOD, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return door.admit([(name, value) for name, value in headers.items() if value is not None])


def status(found: Principal | Refusal) -> int:
    assert isinstance(found, Refusal)
    assert found.text.endswith("\n")
    return found.status


def test_a_token_names_its_principal() -> None:
    door = Door(TOKENS)
    assert admit(door) is OPERATOR
    assert admit(door, Authorization="bearer  other ") is OBSERVER


@pytest.mark.parametrize("value", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic s3cret", "s3cret", "Bearer é"])
def test_without_a_good_token_nobody_enters(value: str | None) -> None:
    assert status(admit(Door(TOKENS), Authorization=value)) == 401


def test_without_tokens_everybody_is_an_operator_of_no_certain_name() -> None:
    door = Door(Principals())
    for value in (None, "Bearer anything"):
        assert admit(door, Authorization=value) == Principal("", Role.OPERATOR)


def test_an_empty_token_would_let_everybody_in() -> None:
    with pytest.raises(ValueError, match="empty"):
        Principals({"": OPERATOR})


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:8765", ""])
def test_browsers_are_refused(origin: str) -> None:
    assert status(admit(Door(TOKENS), Origin=origin)) == 403


def test_a_listed_origin_is_welcome_if_it_has_a_token() -> None:
    door = Door(TOKENS, origins=("https://console.example",))
    assert admit(door, Origin="https://console.example") is OPERATOR
    assert status(admit(door, Origin="https://console.example", Authorization=None)) == 401
    assert status(admit(door, Origin="https://console.example.evil")) == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "127.9.9.9:80", "localhost", "LocalHost:9", "[::1]:9", "[::1]", "::1"]
)
def test_loopback_names(host: str) -> None:
    assert admit(Door(TOKENS), Host=host) is OPERATOR


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "10.0.0.1", "[::2]:9", "0.0.0.0", "0"],  # noqa: S104
)
def test_foreign_names_are_refused(host: str | None) -> None:
    assert status(admit(Door(TOKENS), Host=host)) == 403


def test_two_host_headers_are_one_too_many() -> None:
    headers = [*GOOD.items(), ("host", "evil.example")]
    assert status(Door(TOKENS).admit(headers)) == 403


def test_a_configured_name_is_ours() -> None:
    assert admit(Door(TOKENS, hosts=("ops.example",)), Host="Ops.Example:443") is OPERATOR


@pytest.mark.parametrize("offered", [None, "", "chat", "watchfloor.v2", "WATCHFLOOR.V1"])
def test_another_subprotocol_is_refused(offered: str | None) -> None:
    assert status(admit(Door(TOKENS), Sec_WebSocket_Protocol=offered)) == 400


def test_ours_may_be_one_of_several() -> None:
    assert admit(Door(TOKENS), Sec_WebSocket_Protocol="chat, watchfloor.v1") is OPERATOR


def test_strangers_learn_nothing_about_tokens_before_the_rest_is_right() -> None:
    found = admit(Door(TOKENS), Host="evil.example", Authorization=None)
    assert status(found) == 403


@pytest.mark.parametrize(
    ("host", "name"), [("a:1", "a"), ("A", "a"), ("[::1]:2", "::1"), ("::1", "::1"), ("1.2.3.4:5", "1.2.3.4")]
)
def test_names_without_ports(host: str, name: str) -> None:
    assert host_name(host) == name


def test_loopback() -> None:
    assert [is_loopback(name) for name in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example")] == [  # noqa: S104
        True,
        True,
        True,
        False,
        False,
    ]
