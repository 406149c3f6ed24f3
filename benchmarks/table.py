"""The table of all figures: written for people into the README, and for `make bench-check` as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Figure, short

RESULTS: Final = Path("benchmarks/results/latest.json")
README: Final = Path("README.md")
BEGIN: Final = "<!-- figures: made by `make bench` -->"
END: Final = "<!-- end of the figures -->"
WORSE: Final = 0.3
"""By how much a figure may be worse than the stored one."""


def record(figure: Figure) -> dict[str, Any]:
    """A figure as it is stored."""
    return {
        "name": figure.name,
        "value": round(figure.value.median, 4),
        "least": round(figure.value.least, 4),
        "most": round(figure.value.most, 4),
        "unit": figure.unit,
        "baseline": round(figure.baseline.median, 4) if figure.baseline is not None else None,
        "ratio": round(figure.ratio, 4) if figure.ratio is not None else None,
        "must": round(figure.must, 4),
        "aim": round(figure.aim, 4),
        "more": figure.more,
        "reached": figure.reached,
        "note": figure.note,
    }


def store(figures: Sequence[Figure], about: Mapping[str, str], path: Path = RESULTS) -> None:
    """Write the figures; those of a run that measured only some of them take the places of the stored ones."""
    known = {one["name"]: one for one in stored(path)}
    known.update((figure.name, record(figure)) for figure in figures)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"about": dict(about), "figures": list(known.values())}, indent=2) + "\n")


def stored(path: Path = RESULTS) -> list[dict[str, Any]]:
    """The figures of the last run; none where there was none."""
    if not path.exists():
        return []
    figures: list[dict[str, Any]] = json.loads(path.read_text())["figures"]
    return figures


def markdown(figures: Sequence[Mapping[str, Any]], about: Mapping[str, str]) -> str:
    """The table for the README."""
    lines = ["| figure | measured | baseline | ratio | must | aim |", "| --- | --- | --- | --- | --- | --- |"]
    for one in figures:
        base = _with_unit(one["baseline"], one["unit"]) if one["baseline"] is not None else ""
        ratio = _times(one["ratio"]) if one["ratio"] is not None else ""
        sign = "≥ " if one["more"] else "≤ "
        limit = [_times(one[name]) if one["ratio"] is not None else _with_unit(one[name], one["unit"])
                 for name in ("must", "aim")]  # fmt: skip
        mark = " (missed)" if one["reached"] == "missed" else ""
        measured = _with_unit(one["value"], one["unit"])
        lines.append(f"| {one['name']} | {measured} | {base} | {ratio} | {sign}{limit[0]}{mark} | {sign}{limit[1]} |")
    said = ", ".join(f"{name} {value}" for name, value in about.items())
    return "\n".join([*lines, "", f"Made by `make bench`: {said}. [How, and what limits it](docs/performance.md)."])


def _with_unit(value: float, unit: str) -> str:
    return f"{short(value)} {unit}"


def _times(ratio: float) -> str:
    """A ratio with as many places as tell something; small ones the other way round."""
    return f"1/{1 / ratio:.1f}".removesuffix(".0") if 0 < ratio < 0.1 or ratio == 0.2 else f"{ratio:.2f}"


def put(text: str, path: Path = README) -> bool:
    """Put the table between its two marks; False where the file has none."""
    whole = path.read_text()
    before, begins, rest = whole.partition(BEGIN)
    _, ends, behind = rest.partition(END)
    if not begins or not ends:
        return False
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{behind}")
    return True


def worse(figures: Sequence[Figure], known: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is clearly worse than what is stored, one line each."""
    before = {one["name"]: one for one in known}
    said: list[str] = []
    for figure in figures:
        if (one := before.get(figure.name)) is None:
            continue
        was = one["ratio"] if one["ratio"] is not None else one["value"]
        if figure.held < was * (1 - WORSE) if figure.more else figure.held > was * (1 + WORSE):
            said.append(f"{figure.name}: {short(figure.held)}, it was {short(was)}")
    return said
