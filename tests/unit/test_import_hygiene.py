"""What an import costs: agents' programs and the first paint pay only for what they use."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import watchfloor

ROOT = Path(__file__).resolve().parents[2]
NETWORK_AND_MODELS = {"httpx", "pydantic", "pydantic_core", "websockets"}
TOOLKIT = {"rich", "textual"}


BEHIND_THE_FIRST_FRAME = (
    "console.cli.parser",
    "console.fleet.decisions.risk",
    "console.fleet.views.card",
    "console.screens.flows.asking",
    "console.screens.flows.drawer",
    "console.screens.flows.steering",
    "console.screens.inbox.screen",
    "console.screens.pages.help",
    "console.screens.pages.leaving",
    "console.screens.session.screen",
)


def loaded_by(module: str, cwd: Path) -> set[str]:
    """Import `module` in a fresh interpreter; return the top-level names of everything that is loaded after it."""
    return {name.partition(".")[0] for name in modules_of(module, cwd)}


def modules_of(module: str, cwd: Path) -> set[str]:
    """Import `module` in a fresh interpreter; return what is loaded after it."""
    code = f"import {module}, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("watchfloor", NETWORK_AND_MODELS | TOOLKIT | {"asyncio"}),
        ("watchfloor.words", NETWORK_AND_MODELS | TOOLKIT | {"asyncio"}),
        ("watchfloor.text", NETWORK_AND_MODELS | TOOLKIT | {"asyncio"}),
        ("watchfloor.errors", NETWORK_AND_MODELS | TOOLKIT | {"asyncio"}),
        ("console.fleet.state", NETWORK_AND_MODELS | TOOLKIT | {"asyncio", "sqlite3"}),
        ("console.journal.writer", NETWORK_AND_MODELS | TOOLKIT | {"asyncio"}),
        ("console.cli.main", NETWORK_AND_MODELS | TOOLKIT | {"sqlite3"}),
        ("console.opening", NETWORK_AND_MODELS | {"argparse", "hashlib", "json", "sqlite3"}),
    ],
)
def test_an_import_loads_nothing_it_does_not_need(module: str, unwanted: set[str], tmp_path: Path) -> None:
    assert loaded_by(module, tmp_path) & unwanted == set()


def test_the_first_frame_waits_for_nothing_that_it_does_not_draw(tmp_path: Path) -> None:
    loaded = modules_of("console.cli.main, console.cli.start, console.opening", tmp_path)
    assert loaded.isdisjoint(BEHIND_THE_FIRST_FRAME)
    assert {"console.screens.fleet.screen", "textual.app"} <= loaded, "it is that of the console"


@pytest.mark.parametrize(("module", "wanted"), [("watchfloor.protocol.model", "pydantic"), ("console.app", "textual")])
def test_the_probe_sees_what_is_loaded(module: str, wanted: str, tmp_path: Path) -> None:
    assert wanted in loaded_by(module, tmp_path)


def test_the_library_is_found_from_the_folder_that_holds_one_of_the_same_name() -> None:
    code = "import watchfloor; print(watchfloor.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == ROOT / "watchfloor/src/watchfloor/__init__.py"


def names_for_the_type_checker() -> dict[str, str]:
    """The names that `watchfloor/__init__.py` imports for mypy alone, each with its module."""
    tree = ast.parse(Path(watchfloor.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {
        alias.name: node.module or ""
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_mypy_and_python_see_the_same_names_of_the_library() -> None:
    for_mypy = names_for_the_type_checker()
    assert sorted(for_mypy) == watchfloor.__all__
    for name, module in for_mypy.items():
        assert getattr(watchfloor, name) is getattr(import_module(module), name)


def test_a_name_that_the_library_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(watchfloor, "no_such_name")  # noqa: B009  (mypy would refuse the plain spelling)
