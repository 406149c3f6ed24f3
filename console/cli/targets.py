"""From what an operator names to where a source is, and with which token it is greeted."""

from __future__ import annotations

import getpass
import os
from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from console.cli.exits import Usage
from console.config import Config, env_token, read_token, url_fault
from console.version import VERSION
from watchfloor import runtime
from watchfloor.connector import Record, Target
from watchfloor.runtime import LocalHost

TOKEN_VARIABLE: Final = "WATCHFLOOR_TOKEN"  # noqa: S105 - the name of a variable


def operator() -> str:
    """The name that this console's operator goes by: the login name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def named(args: Namespace, config: Config, words: Iterable[str]) -> list[Target]:
    """The sources that were named by URL, by a name in the configuration, or by that of a local host.

    A token comes from the options, else from `WATCHFLOOR_TOKEN`, else from the configuration, else from the runtime
    file with that URL. Raises Usage, and ConfigError where a token cannot be had.
    """
    local = runtime.hosts()
    given = _given_token(args)
    return _distinct(_named(word, config, local, given) for word in words)


def known(config: Config) -> list[Target]:
    """The configured sources, then the hosts of this machine that are not among them. Raises ConfigError."""
    local = runtime.hosts()
    targets = [_named(source.name, config, local, None) for source in config.sources]
    urls = {_plain(target.url) for target in targets}
    targets += [_target(host.name, host.url, host.token) for host in local if _plain(host.url) not in urls]
    return _distinct(targets)


def _given_token(args: Namespace) -> str | None:
    """The token of the command line or the environment; None: look further."""
    if args.token_env is not None:
        return env_token(args.token_env, "--token-env")
    if args.token_file is not None:
        return read_token(Path(args.token_file))
    return env_token(TOKEN_VARIABLE, "the environment") if os.environ.get(TOKEN_VARIABLE) else None


def _named(word: str, config: Config, local: list[LocalHost], given: str | None) -> Target:
    by_name = "://" not in word
    source = next((s for s in config.sources if (s.name == word if by_name else _plain(s.url) == _plain(word))), None)
    host = next((h for h in local if (h.name == word if by_name else _plain(h.url) == _plain(word))), None)
    if source is not None:
        here = host or next((h for h in local if _plain(h.url) == _plain(source.url)), None)
        token = given or source.token() or (here.token if here else None)
        return _target(source.name, source.url, token, Record(source.record))
    if host is not None:
        return _target(host.name, host.url, given or host.token)
    if by_name:
        raise Usage(f"{word!r} is neither a URL (ws://HOST:PORT) nor the name of a configured source or local host")
    if reason := url_fault(word):
        raise Usage(reason)
    return _target(word.partition("://")[2].rstrip("/"), word, given)


def _target(name: str, url: str, token: str | None, record: Record = Record.ALL) -> Target:
    return Target(name=name, url=url, token=token, version=VERSION, user=operator(), record=record)


def _plain(url: str) -> str:
    return url.rstrip("/").replace("://localhost:", "://127.0.0.1:")


def _distinct(targets: Iterable[Target]) -> list[Target]:
    """The same, with a number after a name that was taken; the same URL only once."""
    found: dict[str, Target] = {}
    urls: set[str] = set()
    for target in targets:
        if _plain(target.url) in urls:
            continue
        urls.add(_plain(target.url))
        name, number = target.name, 1
        while name in found:
            number += 1
            name = f"{target.name}-{number}"
        found[name] = replace(target, name=name)
    return list(found.values())
