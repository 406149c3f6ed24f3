"""Which connector speaks which scheme, ours and those that others install."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from console.connectors import registry
from console.connectors.native import NativeConnector
from watchfloor.connector import ENTRY_POINTS, Connector, Link, Target
from watchfloor.errors import ConfigError, Unreachable


class Elsewhere:
    """A connector as a third party would write it."""

    def __init__(self, target: Target) -> None:
        self.target = target

    async def connect(self) -> Link:
        raise Unreachable("it exists in this test only")


class ElsewhereFactory:
    schemes = frozenset({"elsewhere", "elsewheres"})

    def __call__(self, target: Target) -> Connector:
        return Elsewhere(target)


READY_MADE = ElsewhereFactory()


class NoFactory:
    """Has no schemes."""


def install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    points = [EntryPoint(name, f"{__name__}:{name}", ENTRY_POINTS) for name in names]

    def entry_points(*, group: str) -> list[EntryPoint]:
        assert group == ENTRY_POINTS
        return points

    monkeypatch.setattr(registry, "entry_points", entry_points)


@pytest.mark.parametrize("url", ["ws://127.0.0.1:1", "wss://host/path", "WS://h:1"])
def test_native_hosts_are_built_in(url: str) -> None:
    connector = registry.connector_for(Target("local", url))
    assert isinstance(connector, NativeConnector)
    assert connector.target.url == url


def test_an_address_or_token_that_cannot_be_used_is_told_before_anything_is_dialled() -> None:
    with pytest.raises(ConfigError, match="name or password") as caught:
        registry.connector_for(Target("local", "ws://me:hunter2@host"))
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="token"):
        registry.connector_for(Target("local", "ws://host", token="two\nlines"))


@pytest.mark.parametrize("name", ["ElsewhereFactory", "READY_MADE"])
def test_connectors_of_others_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    install(monkeypatch, "NoFactory", name)
    assert isinstance(registry.connector_for(Target("other", "elsewhere://x")), Elsewhere)
    assert isinstance(registry.connector_for(Target("local", "ws://h:1")), NativeConnector)


def test_an_unknown_scheme_names_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "ElsewhereFactory")
    with pytest.raises(ConfigError) as caught:
        registry.factory_for("nowhere://x")
    schemes = sorted({*registry._BUILT_IN, "elsewhere", "elsewheres"} - {"replay"})
    assert {"ws", "wss"} < set(schemes)
    named = ", ".join(f"{scheme}://" for scheme in schemes)
    assert str(caught.value) == f"no connector speaks nowhere://: write one of {named}"


@pytest.mark.parametrize("url", ["", "host", "127.0.0.1:7340", "://x", "ws:host", "ws://[::1"])
def test_what_is_no_address_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    install(monkeypatch)
    with pytest.raises(ConfigError, match=r"write (one of|ws://)") as caught:
        registry.connector_for(Target("local", url))
    assert "\n" not in str(caught.value)


def test_a_connector_that_cannot_be_loaded_costs_itself_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(monkeypatch, "Missing", "NoFactory", "READY_MADE")
    assert isinstance(registry.connector_for(Target("other", "elsewheres://x")), Elsewhere)
    assert [record.args[0] for record in caplog.records if isinstance(record.args, tuple)] == ["Missing", "NoFactory"]


def test_looking_at_the_registry_loads_neither_models_nor_network() -> None:
    script = (
        "import sys, console.connectors.registry\n"
        "print(sorted({'websockets', 'pydantic', 'httpx', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_address_that_cannot_be_read_is_not_called_one_without_a_scheme() -> None:
    with pytest.raises(ConfigError, match="cannot be read") as raised:
        registry.factory_for("ws://[::1")
    assert "scheme" not in str(raised.value)
