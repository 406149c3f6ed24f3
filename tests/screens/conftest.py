"""Fixtures of the tests of screens."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from console.screens import collector
from tests.screens.settling import settling


@pytest.fixture(scope="session", autouse=True)
def quick() -> Iterator[None]:
    """No test waits longer than it has to."""
    # What a console collects at its start is all that the tests have loaded, which takes longer than most of them.
    names = ("collect", "freeze", "disable", "enable", "unfreeze")
    left_alone = SimpleNamespace(**dict.fromkeys(names, lambda: 0))
    with settling(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(collector, "gc", left_alone)
        yield
