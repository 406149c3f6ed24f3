"""The repository as a whole: pins that are true, and files that do not lean on one machine or one registry."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from console.cli.exits import BUG, USAGE
from console.cli.parser import EXITS, parse
from watchfloor.words import EXIT_CODE

ROOT = Path(__file__).resolve().parents[2]
OURS = {"watchfloor", "watchfloor-console"}


def pins() -> dict[str, dict[str, str]]:
    """The groups of constraints.txt: `{group: {package: version}}`."""
    groups: dict[str, dict[str, str]] = {}
    group: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"# (\w+): ", line):
            group = groups[heading[1]] = {}
        elif line and not line.startswith("#"):
            name, version = line.split("==")
            group[canonicalize_name(name)] = version
    return groups


def needed_by(distribution: str, extra: str) -> set[str]:
    """Every package that `distribution` with `extra` needs here, directly or through others, without our own."""
    needed: set[str] = set()
    open_ends = [(distribution, extra)]
    seen: set[tuple[str, str]] = set()
    while open_ends:
        name, of = open_ends.pop()
        if (name, of) in seen:
            continue
        seen.add((name, of))
        needed.add(name)
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": of}):
                child = canonicalize_name(requirement.name)
                open_ends += [(child, wanted) for wanted in ("", *requirement.extras)]
    return needed - OURS


def direct_dependencies() -> set[str]:
    texts = [text for name in sorted(OURS) for text in metadata.requires(name) or ()]
    names: set[str] = {canonicalize_name(Requirement(text).name) for text in texts}
    return names - OURS


def test_every_pin_is_what_is_installed() -> None:
    pinned = {name: version for group in pins().values() for name, version in group.items()}
    assert {name: metadata.version(name) for name in pinned} == pinned


def test_the_pins_are_exactly_what_is_needed() -> None:
    groups = pins()
    run = needed_by("watchfloor-console", "")
    dev = needed_by("watchfloor-console", "dev") - run
    assert {group: set(packages) for group, packages in groups.items()} == {"run": run, "dev": dev}


def test_every_direct_dependency_is_explained() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([\w-]+)` \| \S", page, flags=re.MULTILINE))
    assert explained == direct_dependencies() | {"hatchling"}


# Each name is put together here, so that this file does not hold it.
FOREIGN = [
    re.compile(re.escape(".".join(parts)))
    for parts in [
        ("pypi", "org"),
        ("python" + "hosted", "org"),
        ("npm" + "js", "org"),
        ("npm" + "js", "com"),
        ("yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
        ("rubygems", "org"),
    ]
] + [re.compile(r"(?<![\w.])/" + "work/(main|shared)"), re.compile(r"\.\./" + "shared/")]


def tracked_files() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()]


def test_tracked_files_name_no_registry_and_no_path_of_a_machine() -> None:
    files = tracked_files()
    assert ROOT / "pyproject.toml" in files
    found = [
        f"{path.relative_to(ROOT)}: {pattern.pattern}"
        for path in files
        for pattern in FOREIGN
        if pattern.search(path.read_bytes().decode("utf-8", "replace"))
    ]
    assert found == []


def drawings() -> tuple[str, str]:
    """The library and the console as `CONTRIBUTING.md` draws them."""
    drawing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```")[1]
    library, console = drawing.split("\nconsole/")
    return library, console


def test_the_drawing_of_the_house_shows_every_part_of_it() -> None:
    library, console = drawings()
    for place, drawn in ((ROOT / "watchfloor/src/watchfloor", library), (ROOT / "console", console)):
        shown = {part.removesuffix("/") for line in drawn.splitlines() for part in re.split(r"  +", line)}
        parts = {path.relative_to(place).parts[0] for path in tracked_files() if path.is_relative_to(place)}
        modules = {part.removesuffix(".py") for part in parts - {"__init__.py", "py.typed"}}
        assert modules - shown == set()


def test_the_house_is_drawn_from_its_upper_layers_to_its_lower_ones() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = {contract["id"]: contract["layers"] for contract in contracts if contract["type"] == "layers"}
    for id, drawn in zip(("library-layers", "console-layers"), drawings(), strict=True):
        place = {name: at for at, layer in enumerate(layers[id]) for name in re.findall(r"\w+", layer)}
        lines = [line for line in drawn.splitlines()[1:] if re.match(r"    \w", line)]
        names = [part.removesuffix("/") for line in lines for part in re.split(r"  +", line)]
        order = [place[name] for name in names if name in place]
        assert len(order) == len(place)
        assert order == sorted(order)


@pytest.mark.parametrize("text", ["https://" + "pypi" + ".org/simple", "see /" + "work/shared/x", "../" + "shared/x"])
def test_the_patterns_match_what_they_are_for(text: str) -> None:
    assert any(pattern.search(text) for pattern in FOREIGN)


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_in_the_readme_is_the_whole_code_of_the_example() -> None:
    block = re.search(r"```python\n(.*?)```", readme(), re.DOTALL)
    assert block is not None
    example = ast.parse((ROOT / "examples" / "approval.py").read_text(encoding="utf-8"))
    assert isinstance(example.body[0], ast.Expr), "it begins with what it is about"
    assert ast.dump(ast.parse(block[1])) == ast.dump(ast.Module(example.body[1:], example.type_ignores))
    assert "(examples/approval.py)" in readme()


@pytest.mark.parametrize("text", [readme(), EXITS], ids=["README", "help"])
def test_every_exit_status_is_told(text: str) -> None:
    told = re.search(r"0 applied[^.]*", text)
    assert told is not None
    assert {int(number) for number in re.findall(r"\b\d+\b", told[0])} == {BUG, USAGE, *EXIT_CODE.values()}


def test_every_command_in_the_readme_can_be_meant() -> None:
    digest = "sha256:" + 64 * "0"
    lines = re.findall(r"^    watchfloor\b *(.*?) *#|^    watchfloor\b *(.*)$", readme(), re.MULTILINE)
    commands = [(first or second).replace(" D", f" {digest}").split() for first, second in lines]
    assert ["requests", "URL", "--json"] in commands, "where a digest comes from"
    assert any("--exit" in command for command in commands)
    for command in commands:
        assert parse(command).handler
