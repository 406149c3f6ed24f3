"""policies.toml: what it may say, and that each fault is told with its line, its key and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.policies.file import load, parse
from console.policies.rules import Does, Policy
from watchfloor.errors import ConfigError

WHERE = Path("/x/policies.toml")

GOOD = '''
[[policy]]
name = "tests"
do = "approve"
command = "make test"
until = 2030-12-31

[[policy]]
name = "build folder"
do = "approve"
command = """
rm -rf build
make"""
agent = "builder"
risks = ["destructive"]

[[policy]]
name = "etc"
do = "deny"
path = "/etc/"

[[policy]]
name = "prod"
do = "second-key"
source = "prod"
'''


def test_a_file_gives_its_policies_in_their_order() -> None:
    tests, build, etc, prod = parse(GOOD, WHERE)
    assert tests == Policy("tests", Does.APPROVE, command="make test", until=1_924_991_999_999, line=2)
    assert (build.command, build.agent, build.risks) == ("rm -rf build\nmake", "builder", frozenset({"destructive"}))
    assert (etc.does, etc.path, etc.line) == (Does.DENY, "/etc/", 17)
    assert (prod.does, prod.source) == (Does.SECOND_KEY, "prod")


def test_there_are_none_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFLOOR_CONFIG", str(tmp_path / "config.toml"))
    assert load() == ()
    (tmp_path / "policies.toml").write_text(GOOD)
    assert len(load()) == 4
    with pytest.raises(ConfigError, match="there is no such file"):
        load(tmp_path / "other.toml")


def faults(body: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(body, WHERE)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('[[policy]]\ndo = "deny"\ntool = "x"', "/x/policies.toml:1: policy 1: name is missing"),
        ('[[policy]]\nname = "a"\ntool = "x"', "do is missing; add do = 'deny' or 'second-key' or 'approve'"),
        (
            '[[policy]]\nname = "a"\ndo = "aprove"\ntool = "x"',
            ":3: policy 1: do: 'aprove' is not known; did you mean 'approve'?",
        ),
        ('[[policy]]\nname = "a"\ndo = "deny"', "it would match everything; add one of: command, path"),
        (
            '[[policy]]\nname = "a"\ndo = "approve"\nsource = "x"',
            "what is approved has to be named: add command, or tool",
        ),
        ('[[policy]]\nname = "a"\ndo = "approve"\npath = "x"', "what is approved has to be named"),
        ('[[policy]]\nname = "a"\ndo = "deny"\ntool = "x"\nrisks = ["secrets"]', "only what approves names risks"),
        (
            '[[policy]]\nname = "a"\ndo = "approve"\ntool = "x"\nrisks = ["secret"]',
            "'secret' is not known; did you mean 'secrets'?",
        ),
        ('[[policy]]\nname = "a"\ndo = "approve"\ntool = "x"\nrisks = "secrets"', "it must be a list of risks"),
        (
            '[[policy]]\nname = "a"\ndo = "deny"\ntool = "x"\nuntil = "tomorrow"',
            "it must be a date or a time without quotes",
        ),
        ('[[policy]]\nname = "a"\ndo = "deny"\ncommand = 3', "it must be the whole command, a text in quotes"),
        (
            '[[policy]]\nname = "a"\ndo = "deny"\ncomand = "x"',
            ":4: policy 1: comand: there is no such key; did you mean command?",
        ),
        ('[policy]\nname = "a"', "write each policy as a table of its own, under the line [[policy]]"),
        ("polic = 1", "there is no such key; did you mean policy?"),
        ("x = ", "it is not TOML"),
    ],
)
def test_a_fault_is_told_with_its_line_its_key_and_what_to_do(body: str, told: str) -> None:
    assert told in faults(body)


def test_two_policies_of_one_name_are_refused() -> None:
    one = '[[policy]]\nname = "a"\ndo = "deny"\ntool = "x"\n'
    assert ":6: policy 2: name: 'a' is the name of another policy already" in faults(one + one)


def test_all_faults_are_told_at_once() -> None:
    assert len(faults('[[policy]]\nname = ""\n[[policy]]\ndo = "x"\n').splitlines()) >= 3
