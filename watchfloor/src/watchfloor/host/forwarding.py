"""Commands that are on their way to a foreign system: each goes once, however often it is asked about."""

from __future__ import annotations

from dataclasses import dataclass

from watchfloor.protocol.frames import Command


@dataclass(slots=True)
class UnderWay:
    """A forwarded command without an outcome, who gave it, and the connections that wait to hear of it."""

    command: Command
    by: str
    conns: list[str]

    def tell(self, conn: str) -> None:
        """This connection wants to hear the outcome, too."""
        if conn not in self.conns:
            self.conns.append(conn)
