"""The version of the console. Not read from the installed metadata: that takes longer than the rest of `--version`."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
