"""The least that an application of the toolkit can be: one line of text, and one that counts keys."""

from __future__ import annotations

from textual import events
from textual.app import App, ComposeResult
from textual.widgets import Static

READY = "plain application"


class Plain(App[None]):
    """Shows `keys=N` after N keys."""

    def compose(self) -> ComposeResult:
        self.pressed = 0
        yield Static(READY)
        yield Static("keys=0", id="count")

    def on_key(self, event: events.Key) -> None:
        """Count a key."""
        self.pressed += 1
        self.query_one("#count", Static).update(f"keys={self.pressed}", layout=False)


if __name__ == "__main__":
    Plain().run()
