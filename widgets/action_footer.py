"""The action footer: the keys that work here, and why one does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from watchfloor.text import Clean


class FooterItem(Protocol):
    """One key. A blocked one (`enabled` False) is drawn grey with its reason."""

    @property
    def key(self) -> Clean: ...
    @property
    def label(self) -> Clean: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def reason(self) -> Clean: ...


FooterItems: TypeAlias = Sequence[FooterItem]
