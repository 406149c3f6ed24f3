"""The lines of the roster as a tree: who stands below whom, in which order, and which branches are closed.

A change of one line costs what its own place costs, however many lines there are.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import Final

from console.fleet.roster.order import Order, RowKey
from console.fleet.roster.places import Places

MOST_LEVELS: Final = 24
"""Levels whose lines are drawn before a name; children below that stand under each other."""


class _Node:
    __slots__ = ("closed", "key", "kids", "order", "own", "parent", "rows", "size")

    def __init__(self, key: RowKey, own: Order) -> None:
        self.key = key
        self.own = own
        """Where it would stand by itself."""
        self.order = own
        """Where it stands, lifted by what is below it."""
        self.parent: _Node | None = None
        self.kids: list[Order] = []
        self.rows = 1
        """Lines that it takes with everything that shows below it."""
        self.size = 0
        """Everything below it, shown or not."""
        self.closed = False


class Tree:
    """Lines below each other. `moved` is set by whatever changes the lines; whoever reads it sets it back."""

    def __init__(self) -> None:
        self._nodes: dict[RowKey, _Node] = {}
        self._roots: list[Order] = []
        self._places: Places[RowKey] = Places()
        self._lifts = True
        self.moved = False

    # --- reading ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def key(self, at: int) -> RowKey:
        """The key of a line. Raises IndexError."""
        return self._places[at]

    def keys(self) -> list[RowKey]:
        """The key of each line, in order."""
        return list(self._places)

    def index(self, key: RowKey) -> int | None:
        """The line of a key; None where it has none."""
        return self._places.index(key)

    def parent(self, key: RowKey) -> RowKey | None:
        """What a key of the tree stands below."""
        parent = self._nodes[key].parent
        return parent.key if parent is not None else None

    def kids(self, key: RowKey) -> list[RowKey]:
        """What stands directly below a key of the tree, in order."""
        return [order[2] for order in self._nodes[key].kids]

    def size(self, key: RowKey) -> int:
        """How many are below a key, at any depth; 0 for one that is not in the tree."""
        node = self._nodes.get(key)
        return node.size if node is not None else 0

    def closed(self, key: RowKey) -> bool:
        """Is what is below it put away?"""
        node = self._nodes.get(key)
        return node is not None and node.closed

    def levels(self, key: RowKey) -> tuple[bool, ...]:
        """For the key and what is above it, outermost first: is it the last at its place? The top level is left out."""
        found: list[bool] = []
        node = self._nodes.get(key)
        while node is not None and node.parent is not None and len(found) < MOST_LEVELS:
            found.append(node.parent.kids[-1] == node.order)
            node = node.parent
        return tuple(reversed(found))

    def above(self, key: RowKey) -> list[RowKey]:
        """Everything that a key stands below, nearest first."""
        line: list[RowKey] = []
        node = self._nodes[key].parent
        while node is not None:
            line.append(node.key)
            node = node.parent
        return line

    # --- starting over ---------------------------------------------------------------------

    def build(
        self, orders: Mapping[RowKey, Order], parents: Mapping[RowKey, RowKey], closed: Iterable[RowKey], *, lifts: bool
    ) -> None:
        """Lay everything out anew. `parents` names keys of `orders` only, and nobody below itself."""
        before = list(self._places)
        self._lifts = lifts
        nodes = self._nodes = {key: _Node(key, own) for key, own in orders.items()}
        for key in closed:
            if key in nodes:
                nodes[key].closed = True
        waiting = dict.fromkeys(nodes, 0)
        for key, above in parents.items():
            nodes[key].parent = nodes[above]
            waiting[above] += 1
        self._roots = []
        # From the leaves up: what stands below decides where a line stands.
        ready = [node for node in nodes.values() if not waiting[node.key]]
        while ready:
            node = ready.pop()
            node.kids.sort()
            node.order = self._lifted(node)
            parent = node.parent
            if parent is None:
                self._roots.append(node.order)
                continue
            parent.kids.append(node.order)
            parent.size += 1 + node.size
            if not parent.closed:
                parent.rows += node.rows
            waiting[parent.key] -= 1
            if not waiting[parent.key]:
                ready.append(parent)
        self._roots.sort()
        rows = self._laid(self._roots)
        self._places = Places(rows)
        self.moved = self.moved or rows != before

    def _laid(self, orders: list[Order]) -> list[RowKey]:
        rows: list[RowKey] = []
        stack = orders[::-1]
        while stack:
            node = self._nodes[stack.pop()[2]]
            rows.append(node.key)
            if not node.closed:
                stack.extend(node.kids[::-1])
        return rows

    def _lifted(self, node: _Node) -> Order:
        own = node.own
        if self._lifts and node.kids and node.kids[0][0] < own[0]:
            return node.kids[0][0], own[1], own[2]
        return own

    # --- one line --------------------------------------------------------------------------

    def circles(self, key: RowKey, above: RowKey | None) -> bool:
        """Would the key stand below itself?"""
        at = self._nodes.get(above) if above is not None else None
        if at is None or (key != above and not (key in self._nodes and self._nodes[key].kids)):
            return False
        while at is not None:
            if at.key == key:
                return True
            at = at.parent
        return False

    def put(self, key: RowKey, own: Order, above: RowKey | None, *, closed: bool = False) -> None:
        """Add a line, or take up where it stands now. `above` is in the tree, and not below the key."""
        node = self._nodes.get(key)
        parent = self._nodes[above] if above is not None else None
        if node is None:
            node = self._nodes[key] = _Node(key, own)
            node.closed = closed
            self._attach(node, parent)
        elif node.parent is not parent:
            self._detach(node)
            node.own = own
            node.order = self._lifted(node)
            self._attach(node, parent)
        elif own != node.own:
            node.own = own
            self._settle(node)

    def drop(self, key: RowKey) -> None:
        """Take a line away that has nothing below it."""
        node = self._nodes.pop(key)
        assert not node.kids  # noqa: S101 - what is below has to be put elsewhere first
        self._detach(node)

    def close(self, key: RowKey, closed: bool) -> None:
        """Put away what is below a key of the tree, or show it again."""
        node = self._nodes[key]
        if node.closed == closed:
            return
        shown = self._places.index(key)
        if closed:
            below = node.rows - 1
            if shown is not None and below:
                self._places.cut(shown + 1, below)
            node.closed = True
        else:
            node.closed = False
            rows = self._laid(node.kids)
            below = -len(rows)
            if shown is not None:
                self._places.insert(shown + 1, rows)
        node.rows -= below
        self._count(node.parent, -below, 0)
        self.moved = True

    def _siblings(self, node: _Node) -> list[Order]:
        return node.parent.kids if node.parent is not None else self._roots

    def _attach(self, node: _Node, parent: _Node | None) -> None:
        node.parent = parent
        at = self._shown_at(node)
        siblings = self._siblings(node)
        insort(siblings, node.order)
        if at is not None:
            place = self._place(node, siblings, at)
            self._places.insert(place, self._laid([node.order]))
        self._count(parent, node.rows, 1 + node.size)
        self.moved = True
        if parent is not None:
            self._settle(parent)

    def _detach(self, node: _Node) -> None:
        siblings = self._siblings(node)
        del siblings[bisect_left(siblings, node.order)]
        at = self._places.index(node.key)
        if at is not None:
            self._places.cut(at, node.rows)
        parent, node.parent = node.parent, None
        self._count(parent, -node.rows, -1 - node.size)
        self.moved = True
        if parent is not None:
            self._settle(parent)

    def _settle(self, node: _Node | None) -> None:
        """Let a line stand where it belongs now, and what is above it as well."""
        while node is not None:
            order = self._lifted(node)
            if order == node.order:
                return
            siblings = self._siblings(node)
            before = bisect_left(siblings, node.order)
            del siblings[before]
            node.order = order
            after = bisect_left(siblings, order)
            siblings.insert(after, order)
            at = self._places.index(node.key)
            if at is not None and after != before:
                rows = self._places.cut(at, node.rows)
                shown = self._shown_at(node)
                assert shown is not None  # noqa: S101 - it had a line
                self._places.insert(self._place(node, siblings, shown), rows)
                self.moved = True
            node = node.parent

    def _shown_at(self, node: _Node) -> int | None:
        """The line behind which what stands beside it begins; None where its parent shows nothing of it."""
        parent = node.parent
        if parent is None:
            return -1
        return None if parent.closed else self._places.index(parent.key)

    def _place(self, node: _Node, siblings: list[Order], above: int) -> int:
        at = bisect_left(siblings, node.order)
        if not at:
            return above + 1
        before = self._nodes[siblings[at - 1][2]]
        place = self._places.index(before.key)
        assert place is not None  # noqa: S101 - it is shown where its sibling is
        return place + before.rows

    def _count(self, node: _Node | None, rows: int, size: int) -> None:
        while node is not None and (rows or size):
            node.size += size
            if node.closed:
                rows = 0
            node.rows += rows
            node = node.parent
