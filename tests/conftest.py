"""What holds for every test: none touches what belongs to the user who runs them, or fails for a busy machine."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says nothing here, and on a busy machine any of them may take long.
settings.register_profile("untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

FOLDERS = {
    "WATCHFLOOR_RUNTIME_DIR": "run",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_STATE_HOME": "state",
}
OF_THE_USER = ("NO_COLOR", "WATCHFLOOR_CONFIG", "WATCHFLOOR_REDUCED_MOTION", "WATCHFLOOR_TOKEN", "XDG_RUNTIME_DIR")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Most of the time of these tests goes by in waiting for processes, so that a core bears more than one of them."""
    return max(4, 2 * (os.cpu_count() or 1))


def pytest_collection_finish() -> None:
    """Collect garbage among what the tests make, and seldom: by itself it goes through all that was loaded, and takes
    as long as a third of them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def apart_from_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders of the tests' own, which the programs that they start inherit: every host that serves announces itself,
    and a console of whoever runs the tests must not find it."""
    home = tmp_path_factory.mktemp("user")
    with pytest.MonkeyPatch.context() as patch:
        for variable, folder in FOLDERS.items():
            patch.setenv(variable, str(home / folder))
        for variable in OF_THE_USER:
            patch.delenv(variable, raising=False)
        yield
