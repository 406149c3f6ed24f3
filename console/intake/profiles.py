"""Profiles through the door: what sessions offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from console.fleet.facts import ProfileFact
from console.intake.bounds import KEEP_LIST, KEEP_NAMES, line
from console.intake.requests import field_fact
from watchfloor.protocol import model as m
from watchfloor.text import Clean
from watchfloor.words import Primitive


def profile_fact(source: str, id: str, profile: m.Profile) -> ProfileFact:
    """What a profile advertises."""
    advertised = profile.capabilities.advertised()
    return ProfileFact(
        source,
        id,
        primitives=frozenset(advertised),
        options={p: _options(p, profile.capabilities) for p in advertised},
        unknown=_unknown_names(profile.capabilities.unknown()),
        traits=profile.traits.model_dump(mode="json"),
    )


def _unknown_names(names: Sequence[str]) -> tuple[Clean, ...]:
    more = len(names) - KEEP_NAMES
    kept = tuple(line(name) for name in names[:KEEP_NAMES])
    return (*kept, Clean(f"{more:,} more")) if more > 0 else kept


def _options(primitive: Primitive, capabilities: m.Capabilities) -> Mapping[str, Any]:
    options = getattr(capabilities, primitive.value)
    if not isinstance(options, m.ActOptions):
        # A word that is offered twice is offered.
        return {name: tuple(dict.fromkeys(value)) if isinstance(value, tuple) else value for name, value in options}
    acts = [
        {
            "id": act.id,
            "label": line(act.label),
            "effect": line(act.effect),
            "danger": act.danger,
            "fields": tuple(field_fact(field) for field in act.fields[:KEEP_LIST]),
        }
        for act in options.acts[:KEEP_LIST]
    ]
    return {"acts": tuple(acts)}
