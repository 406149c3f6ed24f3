"""`make` sets the environment up: once, with clear words where it cannot, and again when something moved or changed.

The interpreter is a stand-in on PATH. What it is asked with `-c` is answered by the real one, dressed as an older
Python or robbed of its venv module; `-m venv` and `-m pip` are written down instead of done.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ["cat", "cksum", "date", "dirname", "ln", "make", "mv", "readlink", "rm", "sh", "sleep"]

STAND_IN = """\
#!/bin/sh
case "$1 $2" in
'-m venv')
    {mkdir} -p "$3/bin" && {cp} "$0" "$3/bin/python" ;;
'-m pip')
    echo "$@" >>'{log}'
    test ! -e '{log}.refuse' ;;
*)
    exec '{real}' -I -c 'import sys
{dress}
exec(sys.argv[2])' "$@" ;;
esac
"""
OLD = "sys.version_info = (3, 9, 2)"
NO_VENV = 'sys.modules["ensurepip"] = None'


class Project:
    """A copy of the files that the set-up reads, in a folder with a space in its name, and a PATH of its own."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "the project"
        self.bin = folder / "bin"
        self.log = folder / "pip.log"
        for name in ("Makefile", "constraints.txt", "pyproject.toml", "watchfloor/pyproject.toml", ".ci/setup"):
            (self.place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.place / name)
        self.bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, f"{tool} is needed to set Watchfloor up"
            (self.bin / tool).symlink_to(found)

    def stand_in(self, name: str, dress: str = "") -> Path:
        """Put an interpreter called `name` on the PATH; `dress` is Python that runs before what it is asked."""
        path = self.bin / name
        path.write_text(
            STAND_IN.format(
                mkdir=shutil.which("mkdir"), cp=shutil.which("cp"), log=self.log, real=sys.executable, dress=dress
            ),
            encoding="utf-8",
        )
        path.chmod(0o755)
        return path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
        environment.pop("PYTHON", None)
        environment["PATH"] = str(self.bin)
        return subprocess.Popen(
            ["make", *arguments],
            cwd=self.place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with self.start(*arguments) as running:
            stdout, stderr = running.communicate()
        return subprocess.CompletedProcess(running.args, running.returncode, stdout, stderr)

    def installs(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def our_lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of the set-up itself, without make's own remark about a failed recipe."""
    return [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("make: ***")]


def refused_in_one_line(project: Project, *arguments: str) -> str:
    done = project.make(*arguments)
    assert done.returncode != 0
    [line] = our_lines(done)
    assert not (project.place / ".venv").exists()
    assert project.installs() == []
    return line


@pytest.mark.parametrize("target", ["console", "test"])
def test_an_older_python_is_refused_in_one_line(project: Project, target: str) -> None:
    project.stand_in("python3", OLD)
    line = refused_in_one_line(project, target)
    assert "needs Python 3.11 or newer, found python3 3.9.2" in line


def test_no_python_at_all_is_said_in_one_line(project: Project) -> None:
    assert "needs Python 3.11 or newer, found none" in refused_in_one_line(project, "console")


def test_a_missing_venv_module_is_said_in_one_line_with_its_remedy(project: Project) -> None:
    project.stand_in("python3", NO_VENV)
    line = refused_in_one_line(project, "console")
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert "venv module of python3" in line
    assert f"python{minor}-venv" in line


def test_the_interpreter_can_be_named(project: Project) -> None:
    project.stand_in("python3")
    old = project.stand_in("an-old-one", OLD)
    assert f"found {old} 3.9.2" in refused_in_one_line(project, "console", f"PYTHON={old}")


def test_a_newer_python_is_taken_where_python3_is_too_old(project: Project) -> None:
    project.stand_in("python3", OLD)
    project.stand_in("python3.12")
    done = project.make("run-env")
    assert done.returncode == 0, done.stderr
    assert "making .venv with python3.12" in done.stderr


def test_the_second_start_installs_nothing_and_says_nothing(project: Project) -> None:
    project.stand_in("python3")
    first = project.make("run-env")
    assert first.returncode == 0, first.stderr
    assert "installing the packages with pip" in first.stderr
    [install] = project.installs()
    assert install.endswith("--constraint constraints.txt --editable ./watchfloor --editable .")

    second = project.make("run-env")
    assert (second.returncode, our_lines(second)) == (0, [])
    assert len(project.installs()) == 1


def test_the_tools_for_tests_are_a_second_group_that_holds_the_first(project: Project) -> None:
    project.stand_in("python3")
    assert project.make("run-env").returncode == 0
    assert project.make("dev-env").returncode == 0
    assert [line.rsplit(" ", 1)[1] for line in project.installs()] == [".", ".[dev]"]
    assert our_lines(project.make("run-env")) == []


def change_a_pin(project: Project) -> None:
    with (project.place / "constraints.txt").open("a", encoding="utf-8") as constraints:
        constraints.write("another==1.0\n")


def move_the_folder(project: Project) -> None:
    moved = project.place.with_name("somewhere else")
    project.place.rename(moved)
    project.place = moved


def lose_the_interpreter(project: Project) -> None:
    (project.place / ".venv/bin/python").unlink()


@pytest.mark.parametrize(
    ("happening", "rebuilds"), [(change_a_pin, False), (move_the_folder, True), (lose_the_interpreter, True)]
)
def test_what_changed_is_noticed(project: Project, happening: Callable[[Project], None], rebuilds: bool) -> None:
    project.stand_in("python3")
    assert project.make("run-env").returncode == 0
    happening(project)
    done = project.make("run-env")
    assert done.returncode == 0, done.stderr
    assert ("making .venv" in done.stderr) is rebuilds
    assert len(project.installs()) == 2


def test_a_failed_installation_is_said_and_tried_again(project: Project) -> None:
    project.stand_in("python3")
    refuse = Path(f"{project.log}.refuse")
    refuse.touch()
    failed = project.make("run-env")
    assert failed.returncode != 0
    assert "could not be installed" in our_lines(failed)[-1]
    refuse.unlink()
    assert project.make("run-env").returncode == 0
    assert len(project.installs()) == 2


def test_two_set_ups_at_once_make_one_environment(project: Project) -> None:
    project.stand_in("python3")
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(lambda _: project.make("run-env"), range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert (first.stderr + second.stderr).count("making .venv") == 1
    assert len(project.installs()) == 1
    assert not list(project.place.glob(".setup-lock*"))


def test_a_set_up_waits_for_another_one_and_says_so(project: Project) -> None:
    project.stand_in("python3")
    lock = project.place / ".setup-lock"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as holder:
        lock.symlink_to(str(holder.pid))
        with project.start("run-env") as waiting:
            assert waiting.stderr is not None
            line = waiting.stderr.readline()
            assert f"waiting for the set-up that process {holder.pid} does" in line
            assert project.installs() == []
            lock.unlink()
            rest = waiting.stderr.read()
    assert "ready after" in rest
    assert waiting.returncode == 0


def test_the_lock_of_a_killed_set_up_is_taken_over(project: Project) -> None:
    project.stand_in("python3")
    with subprocess.Popen(["true"]) as ended:
        pass
    (project.place / ".setup-lock").symlink_to(str(ended.pid))
    done = project.make("run-env")
    assert done.returncode == 0, done.stderr
    assert len(project.installs()) == 1
    assert not list(project.place.glob(".setup-lock*"))


def test_a_folder_where_nothing_can_be_made_is_said_in_one_line(project: Project) -> None:
    project.stand_in("python3")
    false = shutil.which("false")
    assert false is not None
    (project.bin / "ln").unlink()
    (project.bin / "ln").symlink_to(false)
    assert "cannot write into" in refused_in_one_line(project, "console")
