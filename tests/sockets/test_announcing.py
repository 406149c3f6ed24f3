"""A host tells the consoles of its user where it is, for as long as it serves."""

from __future__ import annotations

import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.sockets.cli_kit import EYE, Program, hosting, observed
from watchfloor import runtime
from watchfloor.host.principals import Principal
from watchfloor.host.serving.server import Host
from watchfloor.words import Role


def _left(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.exists() else []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "run"
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", str(where))
    return where


async def test_it_is_announced_from_serving_to_closing(place: Path) -> None:
    async with Host(name="build") as host:
        assert runtime.hosts() == []
        url = await host.serve()
        (found,) = runtime.hosts()
        assert (found.name, found.url, found.token) == ("build", url, None)
        assert stat.S_IMODE(found.path.stat().st_mode) == 0o600
        assert host.announce_fault is None
    assert _left(place) == []


async def test_a_host_that_keeps_quiet_leaves_no_trace(place: Path) -> None:
    async with Host() as host:
        await host.serve(announce=False)
        assert _left(place) == []
        assert host.announce_fault is None


@pytest.mark.parametrize(
    ("tokens", "published"),
    [
        ({"ours": Principal("ann")}, "ours"),
        ({"ours": Principal()}, "ours"),
        ({"ours": Principal("eye", Role.OBSERVER)}, None),
        ({"ours": Principal("ann"), "theirs": Principal("bob")}, None),
        ({"ours": Principal("ann"), "theirs": Principal("eye", Role.OBSERVER)}, None),
    ],
)
async def test_only_the_one_token_of_an_operator_is_handed_on(
    place: Path, tokens: dict[str, Principal], published: str | None
) -> None:
    async with hosting(tokens):
        (found,) = runtime.hosts()
        assert found.token == published
        text = found.path.read_text()
        assert [token for token in tokens if token in text] == ([] if published is None else [published])


async def test_where_it_cannot_be_announced_it_serves_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(__file__)
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", str(place))
    async with Host() as host:
        url = await host.serve()
        assert url.startswith("ws://127.0.0.1:")
        assert host.announce_fault is not None
        assert host.announce_fault.startswith(f"{place}: ")


def test_what_ends_by_an_exception_is_withdrawn_too(place: Path) -> None:
    script = """
        import asyncio
        from watchfloor import Host, runtime

        async def main():
            async with Host(name="brief") as host:
                await host.serve()
                assert [found.name for found in runtime.hosts()] == ["brief"]
                raise SystemExit(3)

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, check=False)
    assert done.returncode == 3
    assert _left(place) == []


async def test_the_verbs_know_it_by_its_name(place: Path) -> None:
    program = Program(place.parent)
    async with hosting({"ours": Principal("ann")}) as host:
        host.add(observed(), name="watched")
        done = await program("sessions", "test", "--json")
        assert (done.code, done.err) == (0, "")
        assert (done.record["source"], done.record["session"]) == ("test", "watched")


async def test_the_name_of_a_host_with_several_tokens_still_wants_one(place: Path) -> None:
    program = Program(place.parent)
    tokens = {"ours": Principal("ann"), EYE: Principal("eye", Role.OBSERVER)}
    async with hosting(tokens) as host:
        host.add(observed(), name="watched")
        refused = await program("sessions", "test")
        assert refused.code == 7
        assert "wants a token (401)" in refused.err
        assert (await program.but(WATCHFLOOR_TOKEN=EYE)("sessions", "test", "--json")).record["session"] == "watched"
