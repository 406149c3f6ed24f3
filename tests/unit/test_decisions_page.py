"""The page on decisions: its policies are in order, its numbers are right, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from console.cli.parser import parse as parse_words
from console.fleet.decisions.risk.model import RiskKind
from console.fleet.decisions.risk.shell import STEPS
from console.policies.file import parse
from console.policies.rules import Does
from tests.unit.fleet.risk.commands import HARMFUL, HARMLESS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/decisions.md").read_text(encoding="utf-8")


def test_its_policies_are_in_order() -> None:
    (toml,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    assert {policy.does for policy in parse(toml, ROOT / "policies.toml")} == set(Does)


def test_its_numbers_are_those_of_the_tables() -> None:
    assert f"{len(HARMFUL)} harmful and {len(HARMLESS)} harmless" in PAGE
    assert f"{STEPS:,} pieces" in PAGE


def test_every_kind_of_risk_is_explained() -> None:
    for kind in RiskKind:
        assert f"| `{kind.value}` |" in PAGE


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w/.]+)`", PAGE))))
def test_the_tests_that_it_names_are_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("words", ["policy check", "policy test LOG", "audit --figures", "audit --verify --against F"])
def test_its_command_lines_are_understood(words: str) -> None:
    assert parse_words(words.split()).handler
