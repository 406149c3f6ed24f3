"""A folder of its own for a console that is measured: no configuration, no hosts, no state of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def place(sources: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """The environment of a console that knows these sources, by name, and no others."""
    with tempfile.TemporaryDirectory(prefix="watchfloor-bench-") as folder:
        config = Path(folder) / "watchfloor" / "config.toml"
        config.parent.mkdir()
        listed = (sources or {}).items()
        config.write_text("".join(f'[[source]]\nname = "{name}"\nurl = "{url}"\n' for name, url in listed))
        yield {"XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder, "WATCHFLOOR_RUNTIME_DIR": f"{folder}/run"}
