"""What the verbs about decisions that were taken, and about those that policies take, understand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def arguments(verb: Callable[..., Any]) -> None:
    """Add them. `verb` makes one from its name, its handler and what it does."""
    _audit(verb("audit", "audits:audit", "print what operators did through the consoles of this machine"))
    _policy(verb("policy", "policy:policy", "check the policies, or try them on what a host has logged"))


def _audit(audit: Any) -> None:
    what = audit.add_mutually_exclusive_group()
    what.add_argument(
        "--verify",
        action="store_true",
        help="check that no line was changed, removed, moved or cut off (exit status 2)",
    )
    what.add_argument(
        "--head", action="store_true", help="print the last line's number and hash of each file, to be kept"
    )
    what.add_argument("--figures", action="store_true", help="how requests were decided, and how fast")
    audit.add_argument("--against", metavar="F", help="with --verify: what --head --json printed before")
    audit.add_argument("--json", action="store_true", help="one JSON object a line, or a file")


def _policy(policy: Any) -> None:
    policy.add_argument(
        "what",
        metavar="WHAT",
        choices=("check", "test"),
        help="check: tell everything that is wrong with the policies (exit status 2); test: tell what they would have "
        "decided of a log",
    )
    policy.add_argument(
        "log", metavar="LOG", nargs="?", help="for test: what `watchfloor events URL --json` printed; - reads it here"
    )
    policy.add_argument("--file", metavar="F", help="the policies (policies.toml beside the configuration)")
    policy.add_argument("--json", action="store_true", help="one JSON object a policy, or a request")
