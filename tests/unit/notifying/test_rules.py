"""The section `[notify]`: what it means, and what is said about what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.config import parse
from console.notifying.rules import Channel, Quiet, Rules
from watchfloor.errors import ConfigError

WHERE = Path("/etc/wf/config.toml")


def test_everything_that_can_be_said() -> None:
    text = """\
[notify]
terminal = "osc777"
desktop = true
command = ["/bin/page", "--who", "ops team"]
webhook = "https://hooks.example/agents?x=1"
webhook_secret_file = "hook.secret"
details = true
quiet = "22:30-07:00"
quiet_for = ["bell", "desktop"]
escalate_after_s = 0
away_after_s = 0
"""
    assert parse(text, WHERE).notify == Rules(
        terminal="osc777",
        desktop=True,
        command=("/bin/page", "--who", "ops team"),
        webhook="https://hooks.example/agents?x=1",
        webhook_secret=Path("/etc/wf/hook.secret"),
        details=True,
        quiet=Quiet(22 * 60 + 30, 7 * 60),
        quiet_for=frozenset({Channel.BELL, Channel.DESKTOP}),
        escalate_after_s=0,
        away_after_s=0,
    )


def test_without_the_section_there_are_no_rules_and_an_empty_one_is_the_defaults() -> None:
    assert parse("", WHERE).notify is None
    assert parse("[notify]\n", WHERE).notify == Rules()
    assert Rules().channels == ()


@pytest.mark.parametrize("url", ["https://x.example/", "http://127.0.0.1:8080/a", "http://[::1]/", "http://localhost/"])
def test_urls_that_can_be_posted_to(url: str) -> None:
    rules = parse(f'[notify]\nwebhook = "{url}"', WHERE).notify
    assert rules is not None
    assert rules.channels == (Channel.WEBHOOK,)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("dektop = true", "notify.dektop: there is no such key; did you mean desktop?"),
        ('desktop = "yes"', "notify.desktop: it must be true or false, without quotes"),
        ('terminal = "osc8"', "notify.terminal: 'osc8' is not known; did you mean 'osc9'?"),
        ('command = "page me"', 'notify.command: write the program and its arguments as a list, ["/usr/local/bin/page'),
        ("command = []", "notify.command: write the program"),
        ('command = ["", "x"]', "notify.command: write the program"),
        ('command = ["a\\u0000"]', "notify.command: write the program"),
        ('webhook = "ws://x"', "notify.webhook: 'ws://x' is not a URL of the web; write it as https://HOST/PATH"),
        ('webhook = "https://"', "notify.webhook: 'https://' is not a URL of the web"),
        ('webhook = "https://a:b@x/"', "notify.webhook: a URL must not hold a user or a password"),
        ('webhook = "https://x:99999/"', "notify.webhook: 'https://x:99999/' is not a URL of the web"),
        ('webhook = "http://x.example/"', "notify.webhook: it would be sent in the clear: write https://"),
        ('webhook_secret_file = "x"', "notify.webhook_secret_file: there is no webhook whose messages it could sign"),
        ('quiet = "10pm-7am"', "notify.quiet: '10pm-7am' are no hours; write them as \"22:00-07:00\""),
        ('quiet = "24:00-07:00"', "notify.quiet: '24:00-07:00' are no hours"),
        ('quiet = "07:00-07:00"', "notify.quiet: it ends when it begins"),
        ('quiet_for = ["bells"]', "notify.quiet_for: it must be a list of these: bell, terminal, desktop, command"),
        ('quiet_for = "bell"', "notify.quiet_for: it must be a list of these"),
        ("escalate_after_s = -1", "notify.escalate_after_s: it must be a whole number, 0 or more"),
        ("away_after_s = true", "notify.away_after_s: it must be a whole number, 0 or more"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_key(line: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"# a comment\n[notify]\n{line}\n", WHERE)
    assert str(caught.value).startswith(f"/etc/wf/config.toml:3: {says}")


def test_a_section_that_is_none() -> None:
    with pytest.raises(ConfigError, match="1: notify: write what notifies you below a line"):
        parse("notify = true", WHERE)
