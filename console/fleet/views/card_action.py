"""One action of a card: word for word, what is masked as a secret in it, and the places that a risk points at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from console.fleet.facts import ActionFact
from console.fleet.views.wording import Tone
from watchfloor.text import NOTHING, Clean, redact, secret_spans

if TYPE_CHECKING:
    from console.fleet.decisions.risk.model import Risk

_MASKED: Final = "…[masked"
_TONES: Final[tuple[Tone, ...]] = ("plain", "attention", "failed")


class Flagged(NamedTuple):
    """A place in a line that a risk points at, in code points, and why. An empty `reason`: it is only marked."""

    line: int
    start: int
    end: int
    reason: Clean
    tone: Tone


class CardAction(NamedTuple):
    """One action, word for word; `does` says in a word what comes. `flagged`: the places that risks point at, by
    lines. `masked`: how many secrets in it are not shown."""

    does: Clean
    tool: Clean
    lines: tuple[Clean, ...]
    cwd: Clean
    size: Clean
    complete: bool
    flagged: tuple[Flagged, ...] = ()
    masked: int = 0


@lru_cache(maxsize=16)
def card_action(action: ActionFact, risks: tuple[Risk, ...] = (), *, revealed: bool = False) -> CardAction:
    """An action as it is drawn. `revealed`: with the secrets in it."""
    # A card is made at every key, and an action may have ten thousand lines.
    whole = Clean(f"{action.text}\n{action.diff}" if action.diff else action.text)
    secrets = [] if revealed else secret_spans(whole)
    text, places = (redact(whole)[0], _places(whole, secrets)) if secrets else (whole, [])
    lines = tuple(Clean(line) for line in text.split("\n")) if text else ()
    size = f"{len(lines)} line{'s' if len(lines) != 1 else ''}, {len(whole):,} chars" if lines else ""
    return CardAction(
        does=Clean("changes" if action.diff else "runs"),
        tool=action.tool,
        lines=lines,
        cwd=action.cwd or NOTHING,
        size=Clean(size),
        complete=action.complete,
        flagged=_flagged(lines, [(_moved(places, one.start), _moved(places, one.end), one) for one in risks]),
        masked=len(secrets),
    )


def _places(whole: str, secrets: Sequence[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Where each secret stood, and where what stands for it is."""
    masked = redact(Clean(whole))[0]
    found: list[tuple[int, int, int, int]] = []
    shift = 0
    for start, end in secrets:
        at = start + shift
        behind = masked.index("]", at + len(_MASKED)) + 1
        found.append((start, end, at, behind))
        shift = behind - end
    return found


def _moved(places: Sequence[tuple[int, int, int, int]], at: int) -> int:
    """Where a place of the whole text is in the one that is shown."""
    shift = 0
    for start, end, shown, behind in places:
        if at <= start:
            break
        if at < end:
            return shown if at - start < end - at else behind
        shift = behind - end
    return at + shift


def _flagged(lines: Sequence[str], risks: Sequence[tuple[int, int, Risk]]) -> tuple[Flagged, ...]:
    """The places by lines, each reason at the first line of its place; one place with several reasons is one."""
    by_place: dict[tuple[int, int], list[Risk]] = {}
    for start, end, one in risks:
        if end > start:
            by_place.setdefault((start, end), []).append(one)
    found: list[Flagged] = []
    begin = 0
    starts: list[int] = []
    for line in lines:
        starts.append(begin)
        begin += len(line) + 1
    for (start, end), members in sorted(by_place.items()):
        reason = Clean("; ".join(dict.fromkeys(str(one.reason) for one in members)))
        tone = _TONES[max(one.level for one in members)]
        for at, (begin, line) in enumerate(zip(starts, lines, strict=True)):
            first, last = max(start - begin, 0), min(end - begin, len(line))
            if first < last:
                found.append(Flagged(at, first, last, reason, tone))
                reason = NOTHING
    return tuple(sorted(found, key=lambda one: one[:3]))
