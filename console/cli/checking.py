"""What is wrong with a configured source before anybody dials it."""

from __future__ import annotations

from console.config import SourceConfig
from watchfloor.errors import ConfigError


def source_faults(source: SourceConfig) -> list[str]:
    """Why its token cannot be had, and why no connector takes its address; nothing is dialled."""
    from console.connectors.registry import connector_for
    from watchfloor.connector import Target

    faults: list[str] = []
    token = None
    try:
        token = source.token()
    except ConfigError as fault:
        faults.append(str(fault))
    try:
        # As when it is dialled: by its connector, which tells what is wrong with an address by itself.
        connector_for(Target(name=source.name, url=source.url, token=token))
    except ConfigError as fault:
        faults.append(f"source {source.name!r}: {fault}")
    return faults
