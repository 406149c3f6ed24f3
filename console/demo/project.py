"""The small project that the demo's agents work on: files in a folder of its own, the same for the same seed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Final

from console.demo import tools
from console.demo.texts import Order, book, page, ticket

ORDERS: Final = "data/orders.csv"
TICKETS: Final = "tickets"
LIBRARY: Final = "library"
INDEX_LOCK: Final = "index/lock"
GUIDES: Final = ("docs/guide.md", "docs/faq.md")
NOTES: Final = "notes.txt"

_ORDERS = 2_000
_TICKETS = 12
_PAGES = ("about", "changelog", "contact", "index", "prices")
_BOOKS = ("brick", "freight", "glass", "slate", "timber", "yard")
_README = """This folder belongs to the demo of Watchfloor.
Its agents read and change the files in here. All of it can be thrown away.
"""


def create(workspace: Path, rng: Random) -> Path:
    """Write the project into the folder, which is made where it does not exist; returns its absolute path."""
    workspace = workspace.resolve()
    for folder in ("build", "content", "data", "db", "docs", "index", LIBRARY, TICKETS, "tools"):
        (workspace / folder).mkdir(parents=True, exist_ok=True)
    _write(workspace / "README.txt", _README)
    _write(workspace / NOTES, "Notes for the next release.\n")
    for name in _PAGES:
        _write(workspace / "content" / f"{name}.md", page(rng, name.capitalize(), rng.randint(6, 12)))
    for guide in GUIDES:
        _write(workspace / guide, page(rng, Path(guide).stem.capitalize(), 5))
    for name in _BOOKS:
        _write(workspace / LIBRARY / f"{name}.txt", book(rng, name, rng.randint(20, 40)))
    for number in range(1, _TICKETS + 1):
        _write(workspace / TICKETS / f"ticket-{number:02}.txt", ticket(rng, number))
    orders = (Order.draw(rng, 1001 + row).line() for row in range(_ORDERS))
    _write(workspace / ORDERS, "order,goods,count,price,city\n" + "".join(orders))
    _write(workspace / INDEX_LOCK, "left by the run of last night\n")
    for tool in ("count.py", "pack.py"):
        shutil.copyfile(Path(str(tools.__file__)).with_name(tool), workspace / "tools" / tool)
    subprocess.run([sys.executable, "tools/pack.py"], cwd=workspace, check=True, stdout=subprocess.DEVNULL)
    return workspace


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
