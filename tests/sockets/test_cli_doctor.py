"""`watchfloor doctor`: what it looks at, what it says is wrong, and what it ends with."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from console.audit import Audit
from console.journal.store import Store
from tests.sockets.cli_kit import Program, hosting, observed
from tests.unit.journal.kit import events, heard
from watchfloor.host.principals import Principal
from watchfloor.words import Role


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def config(program: Program, text: str) -> None:
    path = Path(program.env["XDG_CONFIG_HOME"]) / "watchfloor" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def findings(program: Program, *words: str) -> tuple[int, list[dict[str, Any]]]:
    done = await program("doctor", "--json", *words)
    return done.code, [json.loads(line) for line in done.out.splitlines()]


def of(found: list[dict[str, Any]], area: str, level: str = "") -> list[str]:
    return [one["text"] for one in found if one["area"] == area and level in ("", one["level"])]


async def test_a_bare_machine_is_in_order(program: Program) -> None:
    code, found = await findings(program)
    assert code == 0
    assert [one for one in found if one["level"] == "fault"] == []
    assert any("textual" in text and "pydantic" in text for text in of(found, "packages"))
    assert any(text.startswith("config: ") for text in of(found, "paths"))
    assert of(found, "sources") == ["none: the console opens on its demo; `watchfloor connect URL` opens yours"]
    assert "no console can be drawn here" in of(found, "terminal", "note")[0]
    done = await program("doctor")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "nothing has to be mended"


async def test_what_is_wrong_with_the_configuration_is_told_by_line(program: Program) -> None:
    config(program, 'mouse = "no"\n[keys]\nstop = "ctrl+i"\n')
    code, found = await findings(program)
    assert code == 2
    faults = of(found, "config", "fault")
    assert "config.toml:1: mouse" in faults[0]
    assert "config.toml:3: keys.stop" in faults[1]
    assert of(found, "sources") == ["not looked at: the configuration has to be mended first"]


async def test_sources_are_checked_and_not_dialled(program: Program) -> None:
    config(
        program,
        '[[source]]\nname = "a"\nurl = "ws://127.0.0.1:9"\ntoken_file = "none"\n'
        '[[source]]\nname = "b"\nurl = "weird://h"\n[[source]]\nname = "c"\nurl = "ws://127.0.0.1:9"\n',
    )
    code, found = await findings(program)
    assert code == 2
    first, second = of(found, "sources", "fault")
    assert "there is no such token file" in first
    assert "no connector speaks weird://" in second
    assert of(found, "sources", "ok") == ["c: ws://127.0.0.1:9, without a token"]
    assert of(found, "dialled") == []


async def test_hosts_are_listed_by_the_names_that_the_verbs_take(program: Program) -> None:
    with patch.dict(os.environ, program.env):
        async with hosting() as first, hosting() as second:
            first.add(observed(), name="one")
            second.add(observed(), name="two")
            _, found = await findings(program)
            here = dict(
                text.removesuffix(", a host on this machine").split(": ") for text in of(found, "sources", "ok")
            )
            assert here == {"test": first.url, "test-2": second.url}
            assert (await program("sessions", "test-2", "--json")).record["session"] == "two"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("mouse = 3\n", "the configuration"),
        ('[[source]]\nname = "a"\nurl = "ws://127.0.0.1:9"\ntoken_file = "none"\n', "a source"),
    ],
)
async def test_where_nothing_could_be_dialled_that_is_said(program: Program, text: str, first: str) -> None:
    config(program, text)
    code, found = await findings(program, "--dial")
    assert code == 2
    assert of(found, "dialled") == [f"nothing was dialled: {first} has to be mended first"]


async def test_dialling_says_who_answers_and_sends_nothing(program: Program) -> None:
    async with hosting() as host:
        host.add(observed(), name="writer")
        config(program, f'[[source]]\nname = "farm"\nurl = "{host.url}"\n')
        code, found = await findings(program, "--dial")
    assert code == 0
    (said,) = of(found, "dialled", "ok")
    assert said.startswith("farm: ")
    assert said.endswith("1 session, we are operator")


@pytest.mark.parametrize(("answers", "status"), [(True, 7), (False, 8)])
async def test_dialling_ends_with_what_it_came_to(program: Program, answers: bool, status: int) -> None:
    async with hosting({"secret": Principal("ann", Role.OPERATOR)}) as host:
        with socket.create_server(("127.0.0.1", 0)) as free:
            nobody = f"ws://127.0.0.1:{free.getsockname()[1]}"
        config(program, f'[[source]]\nname = "farm"\nurl = "{host.url if answers else nobody}"\n')
        code, found = await findings(program, "--dial")
    assert code == status
    assert of(found, "dialled", "fault")


async def test_an_audit_file_that_was_changed_is_found(program: Program) -> None:
    folder = Path(program.env["XDG_STATE_HOME"]) / "watchfloor" / "audit"
    audit = Audit(folder, clock=lambda: 1_000)
    audit.write("requested", "1", {"primitive": "stop"})
    audit.write("outcome", "1", {"outcome": "applied"})
    audit.close()
    code, found = await findings(program)
    assert code == 0
    assert of(found, "audit", "ok")[0].endswith("1 file, 2 lines, all of which hang together")
    audit.path.write_text(audit.path.read_text().replace("stop", "send"))
    code, found = await findings(program)
    assert code == 2
    assert "line 1: it was changed" in of(found, "audit", "fault")[0]


async def test_a_pale_theme_of_ones_own_is_noted_before_it_is_worn(program: Program) -> None:
    config(program, "mouse = true\n")
    folder = Path(program.env["XDG_CONFIG_HOME"]) / "watchfloor" / "themes"
    folder.mkdir()
    (folder / "pale.toml").write_text('name = "pale"\nbase = "harbour"\n[tones]\nquiet = "#304050"\n')
    code, found = await findings(program)
    assert code == 0
    assert "tones.quiet on grounds.cursor has a contrast of" in of(found, "themes", "note")[0]


async def test_no_colour_and_reduced_motion_are_told(program: Program) -> None:
    asked = {"NO_COLOR": "1", "WATCHFLOOR_REDUCED_MOTION": "1", "TMUX": "/tmp/x", "TERM": "xterm-256color"}
    _, found = await findings(program.but(**asked))
    notes = "\n".join(of(found, "terminal", "note"))
    for said in ("NO_COLOR is set", "WATCHFLOOR_REDUCED_MOTION is set", "inside tmux"):
        assert said in notes
    assert any("256 colours" in text or "16 million" in text for text in of(found, "terminal", "ok"))


async def test_the_journal_has_a_line_of_its_own(program: Program) -> None:
    path = Path(program.env["XDG_STATE_HOME"]) / "watchfloor" / "journal.db"
    _, found = await findings(program)
    assert of(found, "journal", "ok") == [f"{path}: nothing is kept yet"]
    path.parent.mkdir(parents=True, exist_ok=True)
    store = Store(path)
    store.write([heard(events([1, 2, 3]))])
    store.close()
    _, found = await findings(program)
    assert of(found, "journal", "ok")[0].startswith(f"{path}: 3 events of 1 source in ")
    path.write_bytes(b"no journal at all" * 1_000)
    code, found = await findings(program)
    assert (code, len(of(found, "journal", "fault"))) == (2, 1)
