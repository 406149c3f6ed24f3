"""`watchfloor audit` and `watchfloor policy` on what a real host and a real console have written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sockets.cli_kit import Program, asked, hosting, writes
from watchfloor.host.serving.server import Host


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


async def _decided(host: Host, program: Program, tmp_path: Path, *how: str) -> None:
    host.add(writes(tmp_path), name="writer", id="writer", text="hello")
    request = await asked(host, "writer")
    done = await program(*how, host.url, "writer", request, "--current", "--wait", "20")
    assert done.code == 0


async def test_the_audit_of_the_command_line_is_printed_and_whole(host: Host, program: Program, tmp_path: Path) -> None:
    assert (await program("audit")).out.endswith("nothing is written down yet\n")
    await _decided(host, program, tmp_path, "approve")
    printed = await program("audit")
    assert printed.code == 0
    first, outcome, effect = printed.out.splitlines()
    assert "requested" in first
    assert "approve" in first
    assert "writer" in first
    assert "applied" in outcome
    assert "seen" in effect
    assert [line["what"] for line in (await program("audit", "--json")).records] == ["requested", "outcome", "effect"]
    verified = await program("audit", "--verify")
    assert (verified.code, "1 files, 3 lines: nothing is missing" in verified.out) == (0, True)


async def test_what_was_touched_or_cut_off_is_told_with_status_2(host: Host, program: Program, tmp_path: Path) -> None:
    await _decided(host, program, tmp_path, "deny")
    kept = await program("audit", "--head", "--json")
    heads = tmp_path / "heads"
    heads.write_text(kept.out)
    assert (await program("audit", "--verify", "--against", str(heads))).code == 0
    (file,) = (tmp_path / "state" / "watchfloor" / "audit").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))
    assert (await program("audit", "--verify")).code == 0
    cut = await program("audit", "--verify", "--against", str(heads))
    assert cut.code == 2
    assert "its end is missing: it has 2 lines, and had 3" in cut.err
    file.write_bytes(lines[0].replace(b'"deny"', b'"okay"') + lines[1])
    changed = await program("audit", "--verify", "--json")
    assert changed.code == 2
    assert changed.record["fault"] == "line 1: it was changed"


async def test_the_figures_of_decisions(host: Host, program: Program, tmp_path: Path) -> None:
    await _decided(host, program, tmp_path, "deny")
    found = (await program("audit", "--figures", "--json")).record
    assert (found["decisions"], found["kinds"], found["outcomes"]) == (1, {"deny": 1}, {"applied": 1})
    assert found["median_ms"] == found["slowest_ms"] >= 0
    told = await program("audit", "--figures")
    assert "decisions        1, 0 of them by policies" in told.out
    assert "deny           1 (100%)" in told.out


async def test_usage_of_the_audit(program: Program, tmp_path: Path) -> None:
    assert (await program("audit", "--against", "x")).code == 2
    other = tmp_path / "other"
    other.write_text("{}")
    assert "it is not what" in (await program("audit", "--verify", "--against", str(other))).err
    assert (await program("audit", "--verify", "--head")).code == 2


POLICIES = """
[[policy]]
name = "writing"
do = "approve"
tool = "write"

[[policy]]
name = "prod"
do = "second-key"
source = "prod"
"""


async def test_policies_are_checked_with_file_line_and_key(program: Program, tmp_path: Path) -> None:
    none = await program("policy", "check")
    assert (none.code, "no policies: nothing is decided automatically" in none.out) == (0, True)
    where = tmp_path / "config" / "watchfloor" / "policies.toml"
    where.parent.mkdir(parents=True)
    where.write_text(POLICIES)
    good = await program("policy", "check")
    assert good.code == 0
    assert good.out.splitlines()[0] == "1  approve: writing: tool write"
    assert [record["do"] for record in (await program("policy", "check", "--json")).records] == [
        "approve",
        "second-key",
    ]
    where.write_text(POLICIES.replace('"approve"', '"allow"'))
    bad = await program("policy", "check")
    assert bad.code == 2
    assert f"{where}:4: policy 1: do: 'allow' is not known" in bad.err


async def test_policies_are_tried_on_the_log_of_a_host(host: Host, program: Program, tmp_path: Path) -> None:
    await _decided(host, program, tmp_path, "deny")
    log = await program("events", host.url, "--json")
    policies = tmp_path / "p.toml"
    policies.write_text(POLICIES)
    file = tmp_path / "log.jsonl"
    file.write_text(log.out)
    tried = await program("policy", "test", str(file), "--file", str(policies))
    assert tried.code == 0
    assert "approved automatically, by policy writing; really: deny by " in tried.out
    assert tried.out.endswith("1 approvals, 1 of them decided automatically, 0 of those risky\n")
    from_stdin = await program("policy", "test", "-", "--file", str(policies), "--json", stdin=log.out)
    record = from_stdin.record
    assert (record["policy"], record["decided"], record["risk"], record["whole"]) == (
        "writing",
        "approve",
        "none",
        True,
    )


async def test_a_log_that_cannot_be_read_is_told(program: Program, tmp_path: Path) -> None:
    assert (await program("policy", "test")).code == 2
    assert "cannot be read" in (await program("policy", "test", str(tmp_path / "none"))).err
    assert (await program("policy", "check", "x")).code == 2
    odd = await program("policy", "test", "-", stdin='no json\n[1]\n{"event": {}}\n')
    assert odd.code == 0
    assert "2 lines are no events" in odd.err
    hostile = {"source": "s", "session": "\x1b]0;x\x07", "event": {"kind": "request_opened", "request_kind": "approval",
               "request": "r", "text": "shell  \x1b[2Jrm -rf x", "at": 1}}  # fmt: skip
    shown = await program("policy", "test", "-", stdin=json.dumps(hostile))
    assert "\x1b" not in shown.out
    assert "high" in shown.out
