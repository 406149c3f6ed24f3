"""The keys of a recording, as they stand on every screen that shows one."""

from typing import Final

from watchfloor.text import Clean

KEYS: Final = Clean(", pause  . step  ] request  < > speed  @ time")
