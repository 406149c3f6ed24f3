"""No test leaves a process behind."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from tests.unit.harness.programs import MARK, marked


@pytest.fixture(autouse=True)
def no_orphans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    yield
    # What was killed may need a moment until the process table shows it; an orphan outlives this by far.
    deadline = time.monotonic() + 10
    while left := marked(mark):
        assert time.monotonic() < deadline, f"processes outlive their test: {left}"
        time.sleep(0.005)
