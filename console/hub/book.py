"""What the audit file has been told of the commands that are not settled, so that each turn is written once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from console.hub.records import asked, became
from watchfloor.words import EffectState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.audit import Audit
    from console.fleet.facts import Intent, RequestKey
    from console.fleet.gate import Gated
    from console.fleet.state import Trail
    from watchfloor.words import OutcomeKind


class Book:
    """Writes the audit of one operator, who is named `by`."""

    def __init__(self, audit: Audit, by: str) -> None:
        self._audit: Final = audit
        self._by: Final = by
        self._told: dict[str, tuple[OutcomeKind | None, EffectState | None]] = {}

    @property
    def open(self) -> tuple[str, ...]:
        """The ids of the commands of which more may have to be written."""
        return tuple(self._told)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The ids of the commands that have no outcome in the file."""
        return tuple(id for id, (outcome, _) in self._told.items() if outcome is None)

    def requested(self, gated: Gated, more: Mapping[str, object]) -> str | None:
        """Write down what is asked for, before it leaves, and `more` about it. Returns why it must not leave; None: it
        may."""
        if not self._audit.write("requested", gated.id, {**asked(gated, self._by), **more}) and self._audit.required:
            return f'it cannot be written down, and audit = "required" is set: {self._audit.fault}'
        self._told[gated.id] = (None, None)
        return None

    def refused(self, intent: Intent, reason: str) -> None:
        """Write down a key that was refused because it came too early."""
        fields: dict[str, object] = {
            "by": self._by,
            "source": intent.target.source,
            "session": intent.target.session,
            "primitive": intent.primitive,
            "request": intent.request,
            "option": intent.option,
            "reason": reason,
        }
        self._audit.write("refused", intent.id, fields)

    def revealed(self, key: RequestKey) -> None:
        """Write down that the masked text of a request was shown to the operator."""
        fields = {"by": self._by, "source": key.source, "session": key.session, "request": key.request}
        self._audit.write("revealed", key.request, fields)

    def write(self, trail: Trail) -> None:
        """Write down what has newly become of a command."""
        outcome, effect = self._told.get(trail.id, (trail.outcome, trail.effect))
        if trail.outcome is not outcome and trail.outcome is not None:
            self._audit.write("outcome", trail.id, became(trail))
        if trail.effect is not effect and trail.effect not in (None, EffectState.PENDING):
            self._audit.write("effect", trail.id, {"effect": trail.effect, "reason": trail.effect_text or None})
        if trail.active:
            self._told[trail.id] = (trail.outcome, trail.effect)
        else:
            self._told.pop(trail.id, None)
