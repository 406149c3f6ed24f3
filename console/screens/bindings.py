"""The keys of a screen, as the toolkit binds them."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from console.actions import ACTIONS, Where


def bindings(where: Where) -> list[BindingType]:
    """The keys of every action that belongs to the screen.

    All of them have priority: a binding without it acts after its key went through the queue of the focused widget, and
    keys that are typed fast would act out of order.
    """
    return [
        Binding(action.bound, f"perform('{action.id}')", action.label, show=False, priority=True, id=action.id)
        for action in ACTIONS
        if where in action.where and not action.everywhere
    ]
