"""The figures of one module, by its name: what a process of its own is given to do."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.figures import Figure


def measured(name: str, options: Mapping[str, Any]) -> list[Figure]:
    """What `measure` of the module finds with these options."""
    measure: Callable[..., list[Figure]] = importlib.import_module(f"benchmarks.{name}").measure
    return measure(**options)
