"""How the console looked when it was left, so that it looks the same when it is opened again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, NamedTuple

from console.files import read
from watchfloor.errors import ConfigError

NAME: Final = "view.json"
_LONGEST: Final = 4096


class View(NamedTuple):
    """Each as its own part of the console reads it; "" stands for the usual. `configured`: the theme that the
    configuration asked for when `theme` was chosen."""

    theme: str = ""
    configured: str = ""
    sort: str = ""
    reverse: bool = False
    group: str = ""
    label: str = ""
    filter: str = ""
    level: str = ""


def load(path: Path) -> View:
    """What was kept there. Nothing is worth not opening the console: what cannot be read is the usual."""
    try:
        text = read(path)
        import json  # where nothing was kept, nothing waits for it

        kept = json.loads(text)
    except (OSError, ConfigError, ValueError, RecursionError):
        return View()
    if not isinstance(kept, dict):
        return View()

    def word(name: str) -> str:
        value = kept.get(name)
        return value if isinstance(value, str) and _fit(value) else ""

    return View(
        theme=word("theme"),
        configured=word("configured"),
        sort=word("sort"),
        reverse=kept.get("reverse") is True,
        group=word("group"),
        label=word("label"),
        filter=word("filter"),
        level=word("level"),
    )


def _fit(text: str) -> bool:
    """Could an operator have typed it?"""
    return len(text) <= _LONGEST and text.isprintable()


def save(path: Path, view: View) -> None:
    """Keep it. Two consoles at once: the last one to be left counts. Where it cannot be written, it is not kept."""
    import json

    draft = path.with_name(f"{path.name}.{os.getpid()}")
    told = {name: value for name, value in view._asdict().items() if value}
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(told, file)
            draft.replace(path)
        except OSError:
            # Half of it, or what could not take its place, is of no use to anybody.
            draft.unlink()
