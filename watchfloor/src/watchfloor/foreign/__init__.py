"""What every connector of a foreign system has in common: the foreign system's sessions as a host inside the connector.

A connector writes a `ForeignSource`: it reads the foreign system and tells a `Mirror` what it finds there, and it
carries out commands. Everything else is done here, by the same core as in our own host: numbering, history, watches,
resuming, profiles, digests, who decided first, commands that are never carried out twice, recall.

    class AcmeSource:
        def __init__(self, target: Target, mirror: Mirror) -> None: ...
        async def open(self) -> None: ...        # connect; tell the mirror everything that there is
        async def run(self) -> None: ...         # read on, until the connection ends
        async def execute(self, command: Command, by: str) -> Handled: ...
        async def watch(self, session: str) -> None: ...
        async def close(self) -> None: ...

    class AcmeFactory:
        schemes = frozenset({"acme+http"})
        def __call__(self, target: Target) -> Connector:
            return ForeignConnector(target, AcmeSource, name="acme")
"""

from watchfloor.foreign.connector import ForeignConnector, ForeignLink
from watchfloor.foreign.mirror import Mirror
from watchfloor.foreign.source import ForeignSource
from watchfloor.host.effects import Handled

__all__ = ["ForeignConnector", "ForeignLink", "ForeignSource", "Handled", "Mirror"]
