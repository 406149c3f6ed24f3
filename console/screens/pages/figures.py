"""How requests were decided, as a page to be read: the figures of the audit files of this machine."""

from __future__ import annotations

from pathlib import Path

from console.auditing import Figures
from console.screens.flows.asking import Ask
from watchfloor.text import Clean, clean_line, numeral, since
from widgets.tones import Segment

NAME = "figures"


def figures_ask(found: Figures, folder: Path, fault: str | None) -> Ask:
    """The page. `fault`: why interventions are not written down now; None: they are."""
    return Ask(
        title=((Clean("how requests were decided"), "attention"), (clean_line(str(folder)), "quiet")),
        about=tuple(_lines(found, fault)),
        then=lambda _: None,
        name=NAME,
        anywhere=True,
    )


def _lines(found: Figures, fault: str | None) -> list[Segment]:
    lines: list[Segment] = []
    if fault is not None:
        lines.append((clean_line(f"interventions are not written down: {fault}"), "failed"))
    by = f", {numeral(found.automatic)} of them by policies" if found.automatic else ""
    lines.append((Clean(f"decisions         {numeral(found.decisions)}{by}"), "plain"))
    for name, count in sorted(found.kinds.items()):
        lines.append((clean_line(f"  {name:<16}{count:,} ({count / found.decisions:.0%})"), "plain"))
    if found.median_ms is not None and found.slowest_ms is not None:
        times = f"time to answer    median {since(found.median_ms)}, longest {since(found.slowest_ms)}"
        lines.append((Clean(times), "plain"))
    if found.outcomes:
        lines.append((Clean("what became of them"), "plain"))
    for name, count in sorted(found.outcomes.items()):
        lines.append((clean_line(f"  {name:<16}{count:,}"), "plain"))
    lines.append((Clean(f"keys too early    {numeral(found.early)}"), "plain"))
    return lines
