"""Policies hold the verbs as they hold the keys: what one denies is not approved, and a second key names the digest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sockets.cli_kit import Program, appears, asked, hosting, writes
from watchfloor.host.serving.server import Host

OTHER_DIGEST = "sha256:" + "0" * 64
LOOK_TWICE = '[[policy]]\nname = "look twice"\ndo = "second-key"\ntool = "write"\n'
NOTHING_HERE = '[[policy]]\nname = "nothing here"\ndo = "deny"\ntool = "write"\n'


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with hosting() as host:
        host.add(writes(tmp_path), name="writer", text="hello")
        await asked(host, "writer")
        yield host


@pytest.fixture
def ann(tmp_path: Path) -> Program:
    return Program(tmp_path)


def policies(home: Path, text: str) -> None:
    file = home / "config" / "watchfloor" / "policies.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


async def test_what_a_policy_denies_no_verb_approves_and_every_verb_denies(
    host: Host, ann: Program, tmp_path: Path
) -> None:
    policies(tmp_path, NOTHING_HERE)
    request = await asked(host, "writer")
    digest = (await ann("requests", host.url, "--json")).record["digest"]
    words = (host.url, "writer", request, "--digest", digest)
    refused = await ann("approve", *words, "--second-key", digest)
    assert refused.code == 6
    assert refused.err == "watchfloor: invalid: policy nothing here denies it\n"
    assert await asked(host, "writer") == request, "nothing is decided by itself either"
    assert (await ann("deny", *words)).code == 0
    assert not (tmp_path / "done").exists()


async def test_a_second_key_names_the_digest_and_is_written_down(host: Host, ann: Program, tmp_path: Path) -> None:
    policies(tmp_path, LOOK_TWICE)
    request = await asked(host, "writer")
    digest = (await ann("requests", host.url, "--json")).record["digest"]
    words = ("approve", host.url, "writer", request, "--current")
    without = await ann(*words)
    assert without.code == 6
    assert "policy look twice asks for a second key: that takes a second key; --second-key" in without.err
    assert digest in without.err
    other = await ann(*words, "--second-key", OTHER_DIGEST)
    assert other.code == 6
    assert "the second key is not its digest" in other.err
    assert ann.audit() == [], "nothing left this machine"
    assert await asked(host, "writer") == request
    done = await ann(*words, "--second-key", digest)
    assert done.code == 0, done.err
    assert await appears(tmp_path / "done") == "hello"
    assert ann.audit()[0]["second_key"] == "look twice"


async def test_a_denial_needs_no_second_key_and_no_policies_that_can_be_read(
    host: Host, ann: Program, tmp_path: Path
) -> None:
    policies(tmp_path, "[[policy]]\nname = 7\n")
    request = await asked(host, "writer")
    words = (host.url, "writer", request, "--current")
    broken = await ann("approve", *words)
    assert broken.code == 2
    assert "policies.toml:2" in broken.err
    assert await asked(host, "writer") == request
    assert (await ann("deny", *words)).code == 0


async def test_what_is_masked_is_approved_by_a_second_key_only(ann: Program, tmp_path: Path) -> None:
    async with hosting() as host:
        host.add(writes(tmp_path), name="writer", text="export TOKEN=ghp_" + "a1B2" * 9)
        request = await asked(host, "writer")
        listed = await ann("requests", host.url, "--json")
        assert "ghp_a1B2" not in listed.out
        digest = listed.record["digest"]
        words = ("approve", host.url, "writer", request, "--digest", digest)
        without = await ann(*words)
        assert without.code == 6
        assert "what looks like a secret in it is masked: that takes a second key" in without.err
        done = await ann(*words, "--second-key", digest)
        assert done.code == 0, done.err
