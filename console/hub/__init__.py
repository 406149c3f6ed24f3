"""What stands between the sources and whoever looks at them: one fleet, a connection for each source, one audit.

In: a connector's arrivals -> intake -> fleet -> `on_changes`. Out: an intent -> gate -> audit -> connector; what
comes back goes into fleet and audit. The application and every verb of the command line work through a hub.

Importing this package, and making a hub, loads no network library and no models; `start` does.
"""

from console.hub.hub import Hub
from console.hub.jumps import steady_ms

__all__ = ["Hub", "steady_ms"]
