"""The line of the fleet screen that is written in: a filter, a search, a time. While it is open it has all keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from console.screens.fleet.lookout import Lookout
from watchfloor.text import Clean
from widgets.tones import Segment

if TYPE_CHECKING:
    from widgets.line_box import LineBox


class Written(NamedTuple):
    """What becomes of a line. `changed` is told of every change and says something about it; `taken` says why it cannot
    be taken, or nothing; `left`: it is not wanted any more."""

    label: Clean
    changed: Callable[[str], Segment]
    taken: Callable[[str], Clean]
    left: Callable[[], None]


class Writing(Lookout):
    """A screen with one line to write in, in the place of the counts."""

    _written: Written | None = None

    @property
    def line_open(self) -> bool:
        """Is a line being written? Then all keys belong to it."""
        return self._written is not None

    @property
    def _box(self) -> LineBox:
        # Its code is brought in behind the first frame.
        return cast("LineBox", self.query_one("#line"))

    def write(self, written: Written, initial: str = "") -> None:
        """Ask for a line, with this text in it."""
        if not self.furnished:
            self.say("the console is still starting", holds=lambda: not self.furnished)
            return
        self._written = written
        self.add_class("-writing")
        self._board.soil()
        self.deafen(True)
        box = self._box
        box.ask(written.label, initial)
        if initial:
            box.say(*written.changed(initial))

    def leave_line(self) -> None:
        """Close the line as if it was not wanted any more."""
        self._box.close()
        self._end_line()

    def _end_line(self, *, taken: bool = False) -> None:
        written, self._written = self._written, None
        self.remove_class("-writing")
        self._board.soil()
        self.deafen(False)
        if taken or self._box.typed:
            # What is typed on behind it is no key.
            self.text_closed()
        if written is not None and not taken:
            written.left()

    def on_line_box_changed(self, event: LineBox.Changed) -> None:
        """Say something about what is written so far."""
        event.stop()
        if self._written is not None:
            event.control.say(*self._written.changed(event.text))

    def on_line_box_submitted(self, event: LineBox.Submitted) -> None:
        """Take the line, or say why not."""
        event.stop()
        if self._written is None:
            return
        if problem := self._written.taken(event.text):
            event.control.say(problem, "attention")
            if not event.control.note_fits:
                self.say(problem, "attention", holds=lambda: self.line_open and self._box.text == event.text)
            return
        event.control.close()
        self._end_line(taken=True)

    def on_line_box_cancelled(self, event: LineBox.Cancelled) -> None:
        """The line is not wanted any more."""
        event.stop()
        self._end_line()
