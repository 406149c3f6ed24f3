"""A host that scripts may fill."""

from __future__ import annotations

import pytest

from tests.unit.fleet.scripted import ScriptedHost


@pytest.fixture
def host() -> ScriptedHost:
    """A connected host without sessions; this console may operate it."""
    return ScriptedHost()
