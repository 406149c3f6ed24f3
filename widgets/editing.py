"""Keys that edit a text, done in their order among its letters."""

from __future__ import annotations

from textual import events
from textual.widget import Widget


async def edit(field: Widget, event: events.Key) -> None:
    """Do what the field itself binds to the key, such as deleting or moving the cursor, and let the key go no further.

    The toolkit would do so only once the key has gone up to the application. Letters that were typed behind it, in the
    same breath, would be written before that, and the text would be another one than was typed.
    """
    active = field.screen.active_bindings.get(event.key)
    if active is not None and active.enabled and active.node is field:
        event.stop()
        event.prevent_default()
        await field.app.run_action(active.binding.action, field)
