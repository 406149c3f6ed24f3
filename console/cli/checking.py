"""Everything that is wrong with the configuration, its sources and the operator's own themes, before anybody dials."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from console.config import Config, SourceConfig, read_into, url_fault
from console.looks import themes_folder
from console.places import config_path, text_of
from console.toml_reader import TomlReader
from watchfloor.errors import ConfigError

_MOST: Final = 200
"""Faults of one file that are told: each has its line looked up, which takes a while."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What the configuration says as far as it can be read, None for what is no TOML; and what is wrong, a line each:
    with the file itself, with its sources, with themes. `unfit`: the places of the sources that cannot be dialled."""

    config: Config | None
    file: tuple[str, ...]
    sources: tuple[str, ...]
    themes: tuple[str, ...]
    unfit: frozenset[int] = frozenset()

    @property
    def faults(self) -> tuple[str, ...]:
        return (*self.file, *self.sources, *self.themes)


def checked() -> Checked:
    """Look at all of it, whatever is wrong with a part. Nothing is dialled. Raises ConfigError where it is not known
    where the configuration is."""
    from themes.loader import own_faults

    where = config_path()
    themes = tuple(own_faults(themes_folder(where)))
    try:
        text = text_of(where, must_exist=bool(os.environ.get("WATCHFLOOR_CONFIG")))
        reader = TomlReader(text, where, _MOST)
        config = read_into(reader)
    except ConfigError as fault:
        return Checked(None, (str(fault),), (), themes)
    # Those of the sources have a reader of their own: who has many faults in the file wants to see these as well.
    sources = TomlReader(text, where, _MOST)
    unfit = frozenset(source.nth for source in config.sources if not _fits(source, sources))
    return Checked(config, tuple(reader.told), tuple(sources.told), themes, unfit)


def _fits(source: SourceConfig, reader: TomlReader) -> bool:
    """Can its token be had, and does a connector take its address? Else the reader is told why."""
    from console.connectors.registry import connector_for
    from watchfloor.connector import Target

    at = ("source", source.nth)
    token, fits = None, True
    try:
        token = source.token()
    except ConfigError as fault:
        fits = False
        key = "token_env" if source.token_env is not None else "token_file"
        reader.fault((*at, key), str(fault).removeprefix(f"source {source.name!r}: "))
    if url_fault(source.url):
        return False  # told by whoever read the file
    try:
        # As when it is dialled: by its connector, which tells what is wrong with an address by itself.
        connector_for(Target(name=source.name or source.url, url=source.url, token=token))
    except ConfigError as fault:
        fits = False
        reader.fault((*at, "url"), str(fault))
    return fits
