"""`watchfloor config` and `watchfloor schema`."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from console.cli import out
from console.cli.exits import OK, USAGE, Fail
from console.config import TEMPLATE
from console.places import config_path
from watchfloor.errors import ConfigError
from watchfloor.text import clean_line


def config(args: Namespace) -> int:
    """Say where the configuration is, write one that says nothing yet, or check it. Raises ConfigError."""
    path = config_path()
    match args.what:
        case "path":
            out.line(clean_line(str(path)))
        case "init":
            _write(path)
            out.line(clean_line(f"{path} is written; every line in it is an example"))
        case _:
            _check(path)
    return OK


def schema(args: Namespace) -> int:
    """The JSON Schema of watchfloor.v1."""
    from watchfloor.protocol.schema import schema as protocol_schema

    out.document(protocol_schema())
    return OK


def _write(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Fail(f"{path} exists already and is left as it is", USAGE) from None
    except OSError as error:
        raise Fail(f"{path} cannot be written: {error.strerror or error}", USAGE) from None
    with open(handle, "w", encoding="utf-8") as file:
        file.write(TEMPLATE)


def _check(path: Path) -> None:
    from console.cli.checking import checked

    found = checked()
    if found.config is None or found.faults:
        raise ConfigError("\n".join(found.faults))
    if not path.exists():
        out.line(clean_line(f"{path} does not exist: the defaults hold"))
        return
    count = len(found.config.sources)
    out.line(clean_line(f"{path} is in order: {count} {'source' if count == 1 else 'sources'}"))
