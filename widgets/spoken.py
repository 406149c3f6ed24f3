"""What widgets say to the screen that they are on."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.message import Message
from textual.widget import Widget

W = TypeVar("W", bound=Widget)


class Spoken(Message, Generic[W]):
    """A message that knows its widget, so that `@on` can tell those of several by a selector."""

    def __init__(self, control: W) -> None:
        super().__init__()
        self._control = control

    @property
    def control(self) -> W:
        """Whose message it is."""
        return self._control
