"""From a word to a source, and which token greets it."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import pytest

from console.cli.exits import Usage
from console.cli.parser import parse
from console.cli.targets import known, local_places, named
from console.config import Config, SourceConfig
from watchfloor import runtime
from watchfloor.connector import Record, Target
from watchfloor.errors import ConfigError

URL = "ws://127.0.0.1:7340"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WATCHFLOOR_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("WATCHFLOOR_TOKEN", raising=False)
    return tmp_path


def _token_file(place: Path, text: str) -> Path:
    path = place / "token"
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _args(*words: str) -> Namespace:
    return parse(["sessions", URL, *words])


def _config(*sources: SourceConfig) -> Config:
    return Config(Path("/nowhere"), sources)


def _named(config: Config, *words: str, args: Namespace | None = None) -> list[Target]:
    return [place.target for place in named(args or _args(), config, words)]


def _token(args: Namespace, config: Config) -> str | None:
    (target,) = _named(config, URL, args=args)
    return target.token


def test_each_place_of_a_token_gives_way_to_a_nearer_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = _config()
    assert _token(_args(), empty) is None

    runtime.publish(URL, "from-runtime", "build")
    assert _token(_args(), empty) == "from-runtime"

    monkeypatch.setenv("FARM", "from-config")
    config = _config(SourceConfig("farm", URL, token_env="FARM"))
    assert _token(_args(), config) == "from-config"

    monkeypatch.setenv("WATCHFLOOR_TOKEN", "from-environment")
    assert _token(_args(), config) == "from-environment"

    assert _token(_args("--token-env", "FARM"), config) == "from-config"
    file = _token_file(place, "from-file")
    assert _token(_args("--token-file", str(file)), config) == "from-file"


def test_a_token_that_was_asked_for_must_be_there() -> None:
    with pytest.raises(ConfigError, match="--token-env: the environment variable MISSING"):
        _token(_args("--token-env", "MISSING"), _config())
    with pytest.raises(ConfigError, match="there is no such token file"):
        _token(_args("--token-file", "/nowhere/token"), _config())


def test_a_configured_source_without_a_token_takes_that_of_the_local_host() -> None:
    runtime.publish("ws://localhost:7340", "from-runtime", "build")
    assert _token(_args(), _config(SourceConfig("farm", URL))) == "from-runtime"


def test_sources_go_by_their_names() -> None:
    runtime.publish("ws://127.0.0.1:1", "t", "build")
    config = _config(SourceConfig("farm", URL, record="watched"))
    farm, build, other = _named(config, "farm", "build", "ws://h:9/")
    assert (farm.name, farm.url, farm.record) == ("farm", URL, Record.WATCHED)
    assert (build.name, build.url, build.token) == ("build", "ws://127.0.0.1:1", "t")
    assert (other.name, other.url) == ("h:9", "ws://h:9/")
    assert all(target.user for target in (farm, build, other))


@pytest.mark.parametrize(("word", "says"), [("elsewhere", "is neither a URL"), ("ws://", "is not a URL")])
def test_a_word_that_names_nothing(word: str, says: str) -> None:
    with pytest.raises(Usage, match=says):
        named(_args(), _config(), [word])


def test_the_same_url_is_one_source_and_a_name_that_is_taken_gets_its_port() -> None:
    runtime.publish("ws://127.0.0.1:1", None, "build")
    runtime.publish("ws://127.0.0.1:2", None, "build")
    config = _config(SourceConfig("build", URL))
    assert [(place.target.name, place.target.url) for place in known(config)] == [
        ("build", URL),
        ("build:1", "ws://127.0.0.1:1"),
        ("build-2", "ws://127.0.0.1:2"),
    ]
    assert len(_named(config, URL, URL + "/", "build")) == 1


def test_addresses_on_one_machine_are_told_apart_by_what_a_narrow_column_shows() -> None:
    urls = ("ws://127.0.0.1:7341", "ws://127.0.0.1:7342/", "ws://farm:1", "ws://lab.example:1", "ws://lab.example:2")
    names = [":7341", ":7342", "farm:1", ":1 lab.example", ":2 lab.example"]
    assert [target.name for target in _named(_config(), *urls)] == names
    assert [target.name for target in _named(_config(), "ws://127.0.0.1:7341")] == ["127.0.0.1:7341"]


@pytest.mark.parametrize("configured", [(), (SourceConfig("build", URL),), (SourceConfig("farm", URL),)])
def test_the_command_line_takes_every_name_that_the_console_shows(configured: tuple[SourceConfig, ...]) -> None:
    for port in range(1, 4):
        runtime.publish(f"ws://127.0.0.1:{port}", None, "build")
    config = _config(*configured)
    shown = {place.target.name: place.target.url for place in known(config)}
    assert len(shown) == 3 + len(configured)
    assert {name: target.url for name in shown for target in _named(config, name)} == shown
    own = {place.target.name: place.target.url for place in local_places(config)}
    assert own == {name: url for name, url in shown.items() if url != URL}


def test_the_port_may_always_stand_with_the_name_of_a_local_host() -> None:
    """A console that runs its own demo shows another one so."""
    runtime.publish("ws://127.0.0.1:7341/", None, "demo")
    assert [target.url for target in _named(_config(), "demo:7341")] == ["ws://127.0.0.1:7341/"]


def test_a_name_that_two_hosts_have_names_neither() -> None:
    for port in ("1", "2"):
        path = runtime.publish(f"ws://127.0.0.1:{port}", None, "build")
        path.write_text(path.read_text().replace("build-2", "build"))
    with pytest.raises(Usage, match="2 hosts are called 'build': name one with its port, build:1 or build:2"):
        named(_args(), _config(), ["build"])
    (configured,) = _named(_config(SourceConfig("build", URL)), "build")
    assert configured.url == URL, "what was configured is meant"


def test_a_token_goes_to_the_url_that_it_was_published_with_and_to_no_other() -> None:
    runtime.publish("ws://127.0.0.1:1", "t0ken", "farm")
    (target,) = _named(_config(SourceConfig("farm", "wss://elsewhere.example")), "farm")
    assert (target.url, target.token) == ("wss://elsewhere.example", None)


def test_what_a_runtime_file_may_change_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM", "from-config")
    path = runtime.publish("ws://127.0.0.1:1", "t0ken", "build")
    config = _config(SourceConfig("own", URL, token_env="FARM"), SourceConfig("bare", "ws://127.0.0.1:2"))
    found = {place.target.name: (place.host, place.borrows, place.path) for place in known(config)}
    assert found == {"own": (None, False, None), "bare": (None, True, None), "build": ("build", True, path)}
    monkeypatch.setenv("WATCHFLOOR_TOKEN", "from-environment")
    by_name, by_url = named(_args(), _config(), ["build", URL])
    assert (by_name.host, by_name.borrows, by_name.target.token) == ("build", False, "from-environment")
    assert (by_url.host, by_url.borrows) == (None, False)


def test_what_is_known_is_configured_or_runs_here() -> None:
    assert known(_config()) == []
    runtime.publish(URL, "t", "same")
    assert [place.target.name for place in known(_config(SourceConfig("farm", URL)))] == ["farm"]
    assert os.environ["WATCHFLOOR_RUNTIME_DIR"]


def test_a_token_is_not_in_a_repr() -> None:
    runtime.publish(URL, "s3cret", "build")
    assert "s3cret" not in repr(named(_args(), _config(), [URL]))
