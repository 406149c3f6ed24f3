"""The command line where something around it is odd: ids, the state folder, the terminal, the language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sockets.cli_kit import Program, asked, hosting, observed, writes

ODD = ["-rf", "two\nlines", "\N{FIRE} works", "\x1b[2J", " ", "--json", "a" * 1000, "\u202egpj"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.mark.parametrize("id", ODD, ids=range(len(ODD)))
async def test_a_session_of_any_id_is_reached_and_named_harmlessly(program: Program, id: str, tmp_path: Path) -> None:
    async with hosting() as host:
        host.add(writes(tmp_path), name=id, id=id, text="x")
        request = await asked(host, id)
        listed = await program("sessions", host.url)
        assert not any(char in listed.out for char in "\x1b\u202e")
        assert listed.out.count("\n") == 2
        record = (await program("sessions", host.url, "--json")).record
        assert (record["session"], record["requests"][0]["id"]) == (id, request)
        done = await program("deny", host.url, "--current", "--wait", "30", "--json", "--", id, request)
        assert (done.code, done.record["session"], done.record["outcome"]) == (0, id, "applied")
        plain = await program("pause", host.url, "--", id)
        assert plain.code in (0, 6)
        assert not any(char in plain.out + plain.err for char in "\x1b\u202e")
        assert (plain.out + plain.err).count("\n") == 1


@pytest.mark.parametrize("verb", ["sessions", "requests"])
async def test_a_session_that_cannot_be_taken_is_not_left_out_in_silence(program: Program, verb: str) -> None:
    async with hosting() as host:
        host.add(observed(), name="long", id="a" * 5000)
        done = await program(verb, host.url)
        assert (done.code, done.out) == (0, "")
        assert "could not be read: " in done.err
        assert "no sessions" not in done.err
        host.add(observed(), name="other", id="other")
        both = await program("sessions", host.url, "--json")
        assert both.record["session"] == "other"
        assert "could not be read: " in both.err


@pytest.mark.parametrize("required", [False, True])
async def test_where_nothing_can_be_written_down_that_is_told(program: Program, required: bool) -> None:
    (program.home / "file").touch()
    elsewhere = program.but(XDG_STATE_HOME=str(program.home / "file"))
    if required:
        folder = program.home / "config" / "watchfloor"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text('audit = "required"\n')
    async with hosting() as host:
        host.add(writes(program.home), name="writer", text="x")
        await asked(host, "writer")
        assert (await elsewhere("sessions", host.url)).err == ""
        done = await elsewhere("pause", host.url, "writer", "--json")
    assert "the audit cannot be written: " in done.err
    assert (done.code, done.record["outcome"]) == ((8, "undelivered") if required else (0, "applied"))


@pytest.mark.parametrize(
    "around",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "no_such.language"},
        {"TERM": "no-such-terminal"},
        {"TERM": "", "COLUMNS": "1"},
        {"PYTHONIOENCODING": "ascii:strict"},
    ],
    ids=str,
)
async def test_language_and_terminal_change_nothing_for_scripts(program: Program, around: dict[str, str]) -> None:
    async with hosting() as host:
        host.add(observed(), name="\N{FIRE} caf\u00e9", id="fire")
        other = program.but(**around)
        listed = await other.process("sessions", host.url, "--json")
        assert (listed.code, json.loads(listed.out)["name"]) == (0, "\N{FIRE} caf\u00e9")
        plain = await other.process("sessions", host.url)
        assert (plain.code, plain.err) == (0, "")
        assert "fire" in plain.out
