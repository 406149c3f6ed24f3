"""The configuration: what it means, and what is said about what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from console import config, places
from console.config import Config, SourceConfig, load, parse, read_token
from console.places import text_of
from watchfloor.errors import ConfigError

WHERE = Path("/etc/config.toml")


def _faults(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, WHERE)
    return str(caught.value).splitlines()


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    text = """\
theme = "watchfloor-dark"
read_only = true
audit = "required"
mouse = false
ascii = true
reduced_motion = true
journal_days = 0
journal_mb = 100
keys = { approve = "f2", next = "h, ?", help = ["f1", ","], reseed = "" }

[[source]]
name = "farm"
url = "ws://127.0.0.1:7340"
token_env = "FARM_TOKEN"
record = "watched"

[[source]]
name = "lab"
url = "wss://lab.example"
token_file = "lab.token"
"""
    assert parse(text, tmp_path / "config.toml") == Config(
        path=tmp_path / "config.toml",
        sources=(
            SourceConfig("farm", "ws://127.0.0.1:7340", token_env="FARM_TOKEN", record="watched"),
            SourceConfig("lab", "wss://lab.example", token_file=tmp_path / "lab.token"),
        ),
        theme="watchfloor-dark",
        read_only=True,
        audit="required",
        mouse=False,
        ascii=True,
        reduced_motion=True,
        journal_days=0,
        journal_mb=100,
        keys={"approve": ("f2",), "next": ("h", "question_mark"), "help": ("f1", "comma"), "reseed": ()},
    )


def test_an_empty_file_is_the_defaults() -> None:
    assert parse("", WHERE) == Config(WHERE)


def test_the_template_is_the_defaults_and_so_it_is_without_its_comment_signs() -> None:
    assert parse(config.TEMPLATE, WHERE) == Config(WHERE)
    lines = config.TEMPLATE.splitlines()
    live = [line.removeprefix("# ") for line in lines if "=" in line or line.startswith("# [")]
    assert parse("\n".join(live), WHERE).sources[0].name == "build-farm"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("thme = 1", "/etc/config.toml:1: thme: there is no such key; did you mean theme?"),
        ("\n\nzzz = 1", "/etc/config.toml:3: zzz: there is no such key; there are: source, theme, read_only"),
        ('read_only = "yes"', "/etc/config.toml:1: read_only: it must be true or false, without quotes"),
        ("theme = 3", "/etc/config.toml:1: theme: it must be a text in quotes"),
        ('theme = "watchfloor-drak"', "1: theme: 'watchfloor-drak' is not known; did you mean 'watchfloor-dark'?"),
        ('audit = "never"', "/etc/config.toml:1: audit: 'never' is not known; it must be one of: on, required"),
        (
            "source = 3",
            "/etc/config.toml:1: source: write each source as a table of its own, under the line [[source]]",
        ),
        ("[source]\nname = 'x'", "/etc/config.toml:1: source: write each source as a table of its own"),
        ("keys = 3", "/etc/config.toml:1: keys: write the keys below a line [keys], each as ACTION = KEY"),
        ("[keys]\n\nstop = 3", '/etc/config.toml:3: keys.stop: it must be a text such as "f2" or "n,i"'),
        ("[keys]\naprove = 'f2'", "/etc/config.toml:2: keys.aprove: there is no such action; did you mean approve?"),
        ("[keys]\nsend = 'f2'\nstop = 'f2'", "/etc/config.toml:3: keys.stop: the key f2 is taken by send"),
        ("[keys]\nstop = 'ctrl+m'", "/etc/config.toml:2: keys.stop: a terminal sends ctrl+m as enter"),
        ("a = [\n", "/etc/config.toml:1: it is not TOML: "),
        ("\na = 1\n a b", "/etc/config.toml:3: it is not TOML: Expected '=' after a key in a key/value pair"),
        (f"a = {'[' * 5000}{']' * 5000}", "/etc/config.toml: its values are nested too deeply"),
        (f"a = {'9' * 6000}", "/etc/config.toml: it is not TOML: a number has too many digits"),
        (f"theme = '{'x' * 5000}'", f"1: theme: '{'x' * 80}…' is not known"),
    ],
)
def test_a_fault_names_line_and_key_and_what_to_do(text: str, says: str) -> None:
    (fault,) = _faults(text)
    assert says in fault


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("name = 'a'", '4: source 2: url is missing; add url = "ws://HOST:PORT"'),
        ("url = 'ws://h:1'", '4: source 2: name is missing; add name = "..."'),
        ("name = 'a'\nurl = 'h:1'", "6: source 2: url: 'h:1' is not a URL; write it as ws://HOST:PORT"),
        ("name = 'a'\nurl = 'ws:///x'", "6: source 2: url: 'ws:///x' names no host"),
        ("name = 'a'\nurl = 'ws://me:pw@h'", "6: source 2: url: a URL must not hold a user or a password"),
        ("name = 'one'\nurl = 'ws://h:1'", "5: source 2: name: 'one' is the name of another source already (line 2)"),
        ("name = ''\nurl = 'ws://h:1'", "5: source 2: name: it must not be empty"),
        ("name = 'a'\nurl = 'ws://h:1'\ntoken = 'x'", "7: source 2: token: a token does not belong into this file"),
        (
            "name = 'a'\nurl = 'ws://h:1'\ntoken_env = 'A'\ntoken_file = 'b'",
            "8: source 2: token_file: token_env is set",
        ),
        (
            "name = 'a'\nurl = 'ws://h:1'\nrecord = 'some'",
            "7: source 2: record: 'some' is not known; it must be one of",
        ),
        ("name = 'a'\nurl = 'ws://h:1'\ntokenfile = 'b'", "7: source 2: tokenfile: there is no such key; did you mean"),
    ],
)
def test_a_fault_in_a_source_names_which(body: str, says: str) -> None:
    (fault,) = _faults(f"[[source]]\nname = 'one'\nurl = 'ws://h:1'\n[[source]]\n{body}\n")
    assert fault.startswith("/etc/config.toml:")
    assert says in fault


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    text = "mouse = 1\nasci = true\n[[source]]\nname = 'a'\nurl = 'x'\n[[source]]\nrecord = 'al'\n"
    assert [fault.split(": ")[0] for fault in _faults(text)] == [
        f"/etc/config.toml:{line}" for line in (1, 2, 5, 6, 6, 7)
    ]


def test_a_file_that_is_something_else_is_told_in_time_and_in_bounds() -> None:
    text = "".join(f"key_{number} = {number}\n" for number in range(1000))
    faults = _faults(text)
    assert len(faults) == 21
    assert faults[19].startswith("/etc/config.toml:20: key_19: there is no such key")
    assert faults[20] == "/etc/config.toml: and 980 more"


def test_a_value_of_several_lines_is_named_by_its_first() -> None:
    sources = '{ name = "a", url = "ws://h:1" },\n  { name = "b", ulr = "ws://h:1" },\n'
    text = f'theme = """\n\nx"""\n\nsource = [\n  {sources}]\n'
    faults = _faults(text)
    assert [fault.split(": ")[0] for fault in faults] == ["/etc/config.toml:1", *["/etc/config.toml:5"] * 2]


def test_the_environment_may_ask_for_reduced_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFLOOR_REDUCED_MOTION", "1")
    assert parse("reduced_motion = false", WHERE).reduced_motion
    monkeypatch.setenv("WATCHFLOOR_REDUCED_MOTION", "")
    assert not parse("", WHERE).reduced_motion


def test_a_theme_of_ones_own_is_known_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "mine.toml").touch()
    assert parse('theme = "mine"', tmp_path / "config.toml").theme == "mine"


def test_the_file_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHFLOOR_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "watchfloor" / "config.toml"
    assert load() == Config(path), "a missing file is no fault"

    path.parent.mkdir()
    path.write_text("mouse = false")
    assert not load().mouse

    other = tmp_path / "other.toml"
    monkeypatch.setenv("WATCHFLOOR_CONFIG", str(other))
    with pytest.raises(ConfigError, match=r"other.toml: there is no such file; `watchfloor config init` writes one"):
        load()
    other.write_text("ascii = true")
    assert load().ascii


def test_relative_folders_of_the_environment_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHFLOOR_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", "here")
    monkeypatch.setenv("XDG_STATE_HOME", "there")
    assert places.config_path() == tmp_path / ".config" / "watchfloor" / "config.toml"
    assert places.state_folder() == tmp_path / ".local" / "state" / "watchfloor"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert places.state_folder() == tmp_path / "state" / "watchfloor"


@pytest.mark.parametrize(
    ("raw", "says"),
    [(b"a = 1\n\xff", r"2: it is not UTF-8 \(byte 6\)"), (b"mouse = false\nmouse = true\n", "2: it is not TOML")],
)
def test_a_file_that_cannot_be_read_at_all(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=rf"config\.toml:{says}"):
        load(path)


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is a folder"):
        load(tmp_path)


def test_a_token_file(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("s3cret\nmore\n")
    path.chmod(0o640)
    with pytest.raises(ConfigError, match=rf"others may read this token file; run: chmod 600 {path}"):
        read_token(path)
    path.chmod(0o600)
    assert read_token(path) == "s3cret"
    assert SourceConfig("a", "ws://h:1", token_file=path).token() == "s3cret"


@pytest.mark.parametrize("raw", [b"", b"\n", b"two words\n", b"caf\xc3\xa9\n", b"\x1b[31m\n", b"x" * 5000])
def test_a_token_file_without_a_token(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(raw)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="printable ASCII") as caught:
        read_token(path)
    assert "two words" not in str(caught.value)


def test_a_missing_token_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such token file"):
        read_token(tmp_path / "none")


def test_a_token_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SourceConfig("farm", "ws://h:1", token_env="FARM_TOKEN")
    monkeypatch.delenv("FARM_TOKEN", raising=False)
    with pytest.raises(
        ConfigError, match="source 'farm': the environment variable FARM_TOKEN with its token is not set"
    ):
        source.token()
    monkeypatch.setenv("FARM_TOKEN", "s3cret")
    assert source.token() == "s3cret"
    monkeypatch.setenv("FARM_TOKEN", "two words")
    with pytest.raises(ConfigError, match="FARM_TOKEN does not hold a token") as caught:
        source.token()
    assert "two words" not in str(caught.value)


def test_the_template_is_toml() -> None:
    assert tomllib.loads(config.TEMPLATE) == {}


@pytest.mark.parametrize("value", ["-1", "true", '"30"', "1.5"])
def test_how_long_is_a_whole_number(value: str) -> None:
    with pytest.raises(ConfigError, match=r":2: journal_days: it must be a whole number, 0 or more"):
        parse(f"mouse = true\njournal_days = {value}", WHERE)


def test_a_folder_that_cannot_be_there_holds_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    where = tmp_path / "home" / ".config" / "config.toml"
    assert text_of(where, must_exist=False) == ""
    with pytest.raises(ConfigError, match="there is no such file"):
        text_of(where, must_exist=True)
