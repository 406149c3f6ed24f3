"""Writes the main states of the screen as SVG and PNG into `screenshots/`: `python -m tests.screens.screenshots`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import resvg_py

from tests.screens.dialogs import DIALOGS
from tests.screens.inbox_states import INBOX
from tests.screens.session_states import SESSIONS
from tests.screens.stage import LARGE, SMALL, Clock, console
from tests.screens.states import STATES as FLEET_STATES

STATES = {**FLEET_STATES, **SESSIONS, **INBOX}
_DIALOGS: Final = ("reseed", "replace-sure", "budget", "act-choice", "form", "form-sum", "jump")
"""Of the dialogs only those that differ most; any other state is written where it is named."""
USUAL: Final = [state for state in STATES if state not in DIALOGS or state in _DIALOGS]
FOLDER = Path(__file__).resolve().parents[2] / "screenshots"
_FONT = "DejaVu Sans Mono"
_FAR_FONT = re.compile(r"@font-face\s*\{[^}]*\}")


async def picture(state: str, size: tuple[int, int]) -> str:
    """One state as SVG."""
    clock = Clock()
    # One of its own: what another picture has written down is no part of this one.
    with TemporaryDirectory() as folder:
        app = console(clock, folder=Path(folder))
        async with app.run_test(size=size) as pilot:
            await STATES[state](app, clock, pilot)
            return app.export_screenshot(title="watchfloor")


def near_fonts(svg: str) -> str:
    """The picture without fonts that would have to be fetched."""
    return _FAR_FONT.sub("", svg).replace("Fira Code", _FONT)


def main(names: list[str]) -> int:
    """Write the states that are named, or the usual ones."""
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    FOLDER.mkdir(exist_ok=True)
    unknown = [name for name in names if name not in STATES]
    if unknown:
        print(f"there is no state {unknown[0]!r}; there are: {', '.join(STATES)}", file=sys.stderr)
        return 2
    for state in names or USUAL:
        for size in (SMALL, LARGE):
            svg = near_fonts(asyncio.run(picture(state, size)))
            path = FOLDER / f"{state}-{size[0]}x{size[1]}"
            path.with_suffix(".svg").write_text(svg, encoding="utf-8")
            path.with_suffix(".png").write_bytes(bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=1)))
            print(path.relative_to(FOLDER.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
