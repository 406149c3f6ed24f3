"""What a benchmark finds, and how it is measured in turns with what it is compared to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final, NamedTuple

ROUNDS: Final = 5


class Spread(NamedTuple):
    """The middle, the least and the most of some measurements."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{short(self.median)} ({short(self.least)} to {short(self.most)})"


class Figure(NamedTuple):
    """One line of the table.

    `value` and `baseline` are in `unit`; without a baseline (None) the value itself is held to the limits, else the
    ratio of the two. `must` and `aim`: what the ratio, or the value, is to reach; with `more` it is to be at least that
    large, else at most. `note`: what else is worth knowing.
    """

    name: str
    value: Spread
    unit: str
    must: float
    aim: float
    baseline: Spread | None = None
    more: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times the baseline; the other way round where fewer is better and "x cheaper" is asked for."""
        return self.value.median / self.baseline.median if self.baseline is not None else None

    @property
    def held(self) -> float:
        """What is held to the limits."""
        return self.value.median if self.ratio is None else self.ratio

    @property
    def reached(self) -> str:
        """Which of the limits is kept."""
        if self._keeps(self.aim):
            return "aim"
        return "must" if self._keeps(self.must) else "missed"

    def _keeps(self, limit: float) -> bool:
        return self.held >= limit if self.more else self.held <= limit


def spread(taken: Sequence[float]) -> Spread:
    """Of at least one measurement."""
    return Spread(median(taken), min(taken), max(taken))


def in_turns(first: Callable[[], float], second: Callable[[], float], rounds: int = ROUNDS) -> tuple[Spread, Spread]:
    """Measure both, one after the other, so that whatever else the machine does falls on both."""
    a: list[float] = []
    b: list[float] = []
    for _ in range(rounds):
        a.append(first())
        b.append(second())
    return spread(a), spread(b)


def short(value: float) -> str:
    """A number in few characters."""
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def told(figures: Sequence[Figure]) -> str:
    """The figures as lines for a terminal."""
    lines: list[str] = []
    for one in figures:
        against = f" against {one.baseline} {one.unit}: {one.ratio:.2f}" if one.baseline is not None else ""
        sign = ">=" if one.more else "<="
        lines.append(
            f"{one.name}: {one.value} {one.unit}{against} (must {sign} {one.must:g}, aim {sign} {one.aim:g}):"
            f" {one.reached}"
        )
        if one.note:
            lines.append(f"  {one.note}")
    return "\n".join(lines)
