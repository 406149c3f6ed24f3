"""What a session is called that `run` makes of a program."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.cli.naming import session_name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("make nightly", "make"),
        ("./build/agent --fast", "agent"),
        ("sh job.sh", "job.sh"),
        ("bash -eu -o pipefail scripts/job.sh --all", "job.sh"),
        ("sh -c 'echo hello'", "sh"),
        ("bash -lc 'echo hello'", "bash"),
        ("sh", "sh"),
        ("sh -s", "sh"),
        ("python train.py", "train.py"),
        ("/usr/bin/python3.11 -u -X dev train.py", "train.py"),
        ("python3 -m nightly.report --all", "nightly.report"),
        ("python3 -mnightly", "nightly"),
        ("python -um nightly", "nightly"),
        ("python -c 'print(1)'", "python"),
        ("python -", "python"),
        ("python -m", "python"),
        ("node --import tsx agent.ts", "agent.ts"),
        ("node -e 'x'", "node"),
        ("perl -Ilib job.pl", "job.pl"),
        ("deno run -A agent.ts", "agent.ts"),
        ("env A=1 B=2 python -m nightly", "nightly"),
        ("env -i -u HOME PATH=/bin sh job.sh", "job.sh"),
        ("env", "env"),
        ("env A=1", "env"),
        ("nice -n 5 timeout -k 3 60 sh job.sh", "job.sh"),
        ("timeout 60 make nightly", "make"),
        ("nohup ./agent", "agent"),
        ("stdbuf -oL ./agent", "agent"),
        ("sudo -u ci make nightly", "make"),
        ("uv run --python 3.12 train.py", "train.py"),
        ("uv run python -m nightly", "nightly"),
        ("poetry run pytest", "pytest"),
        ("uv sync", "uv"),
        ("sh -- -odd.sh", "-odd.sh"),
        ("sh './a b.sh'", "a b.sh"),
        ("/", "/"),
        ("env ''", "env"),
    ],
)
def test_it_is_called_by_what_it_is_about(line: str, name: str) -> None:
    assert session_name(shlex.split(line)) == name


_WORDS = ["sh", "python", "env", "timeout", "nice", "uv", "run", "-m", "-c", "--", "-", "-n", "A=1", "x.sh", "", "/"]


@given(st.lists(st.sampled_from(_WORDS) | st.text(max_size=4), min_size=1, max_size=8))
def test_every_program_has_a_name(argv: list[str]) -> None:
    name = session_name(argv)
    assert name or not argv[0]
