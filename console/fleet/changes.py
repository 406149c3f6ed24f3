"""What a batch of facts has changed: the dirty set that one tick of the screen repaints."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.fleet.facts import RequestKey, SessionKey


@dataclass(slots=True)
class Changes:
    """`appended` counts the log lines that came at the end and those that the ring dropped; sessions in `rewritten`
    have log lines that changed otherwise. `structure`: sessions came, went, or have another parent.
    """

    sessions: set[SessionKey] = field(default_factory=set)
    structure: bool = False
    appended: dict[SessionKey, tuple[int, int]] = field(default_factory=dict)
    rewritten: set[SessionKey] = field(default_factory=set)
    requests: set[RequestKey] = field(default_factory=set)
    trails: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(
            self.structure
            or self.sessions
            or self.appended
            or self.rewritten
            or self.requests
            or self.trails
            or self.sources
        )

    def merge(self, later: Changes) -> None:
        """Take up what changed after this."""
        self.sessions |= later.sessions
        self.structure = self.structure or later.structure
        self.rewritten |= later.rewritten
        self.requests |= later.requests
        self.trails |= later.trails
        self.sources |= later.sources
        for key, (added, dropped) in later.appended.items():
            before = self.appended.get(key, (0, 0))
            self.appended[key] = (before[0] + added, before[1] + dropped)
