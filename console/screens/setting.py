"""What every screen on which sessions are looked at and steered is made with."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.hub import Hub
    from console.keymap import Keymap
    from console.screens.collector import Collector
    from themes.data import GlyphSet
    from watchfloor.connector import Clock


@dataclass(frozen=True, slots=True)
class Setting:
    """One for the whole console.

    Args:
        hub: What the screens show and send through.
        keys: Which key does what.
        glyphs: The characters they are drawn with.
        clock: Milliseconds since 1970 UTC.
        collector: Told of keys, and asked to collect in between.
        ours: Names of the sources that end with this console.
        debug_keys: Show how many keys were handled.
        tz: The zone that times are shown in; that of the machine if None.
        drafts: What was begun to be written, by what it belongs to: begun on one screen, gone on with on the next.
    """

    hub: Hub
    keys: Keymap
    glyphs: GlyphSet
    clock: Clock
    collector: Collector
    ours: frozenset[str] = frozenset()
    debug_keys: bool = False
    tz: tzinfo | None = None
    drafts: dict[Hashable, str] = field(default_factory=dict)
