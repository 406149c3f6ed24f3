"""What a server has, read from its lists: the namespaces, the workflows that run, those that changed last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from console.connectors.aion import offers
from console.connectors.aion.feed import Feed
from console.connectors.aion.history import Workflow
from console.connectors.aion.reading import Json, text
from console.connectors.aion.server import Refused, Server
from watchfloor.foreign import Mirror
from watchfloor.protocol.model import Capabilities, SessionKind
from watchfloor.words import Lifecycle

LATEST: Final = 200
"""Workflows that ended and are shown when we come, of each namespace."""
KEPT: Final = 1000
"""Workflows that ended and are still shown, of each namespace, however many end while we are there."""


class Listing:
    """`dirty`: workflows whose history has to be read. `drop` is told of those that are shown no more."""

    def __init__(
        self, feed: Feed, mirror: Mirror, drop: Callable[[Workflow], None], latest: int = LATEST, kept: int = KEPT
    ) -> None:
        self._feed, self._mirror, self._drop = feed, mirror, drop
        self._latest, self._kept = latest, kept
        self.dirty: set[str] = set()
        self._changed: dict[str, str] = {}
        """When a workflow whose history is to be read was changed, in the server's words."""

    def changed(self, workflow: Workflow) -> str:
        """Its history is read now: how new the news of it are."""
        return self._changed.pop(workflow.key, workflow.updated)

    async def read(self, server: Server, names: list[str]) -> None:
        """Raises Refused where no namespace at all can be listed; of one among others that is said in its own row."""
        refused: list[Refused] = []
        for name in names:
            try:
                older = await self._read_namespace(server, name)
                self._say(name, older=older)
            except Refused as fault:
                refused.append(fault)
                self._say(name, refused=str(fault))
        if refused and len(refused) == len(names) and all(fault.status != 403 for fault in refused):
            raise refused[0]

    async def _read_namespace(self, server: Server, name: str) -> int:
        """Returns how many of its workflows are not shown."""
        live = await server.live(name)
        latest, count = await server.latest(name)
        mine = [workflow for workflow in self._feed.workflows.values() if workflow.namespace == name]
        if any(not workflow.over for workflow in mine):
            self._feed.unserved_now(name, await server.unserved(name))
        listed = [summary for summary in [*live, *latest[: self._latest]] if text(summary.get("workflow_id"))]
        for summary in listed:
            self._listed(name, summary)
        self._let_go(name)
        return count - sum(workflow.namespace == name for workflow in self._feed.workflows.values())

    def _listed(self, name: str, summary: Json) -> None:
        id, changed = text(summary.get("workflow_id")), text(summary.get("updated_at"))
        workflow = self._feed.workflow(name, id)
        renamed = text(summary.get("display_name")) not in ("", workflow.name)
        workflow.summarised(summary)
        # An old server does not say when it changed: then its history is asked for while it runs.
        if not workflow.head or (changed != workflow.updated if changed else not workflow.over):
            self._changed[workflow.key] = changed
            self.dirty.add(workflow.key)
        if renamed:
            self._feed.show(workflow)

    def _let_go(self, name: str) -> None:
        """Show no more of those that ended than so many, the newest."""
        over = [
            workflow
            for workflow in self._feed.workflows.values()
            if workflow.namespace == name and workflow.over and not self._feed.live.get(workflow.key)
        ]
        if len(over) > self._kept:
            for workflow in sorted(over, key=lambda workflow: workflow.since)[: len(over) - self._kept]:
                self._drop(workflow)

    def _say(self, name: str, *, refused: str = "", older: int = 0) -> None:
        """A row for what of a namespace is not shown; none where all is."""
        id = f"{name}/"
        if refused:
            self._put(id, f"namespace {name}", Lifecycle.UNKNOWN, "not read", f"it cannot be listed: {refused}")
        elif older > 0:
            title = f"{older} older workflow{'s' if older > 1 else ''} of {name}"
            why = f"ended, and not shown: of each namespace the {self._latest} that changed last are read"
            self._put(id, title, Lifecycle.COMPLETED, "not shown", why)
        else:
            self._mirror.gone(id)

    def _put(self, id: str, name: str, lifecycle: Lifecycle, native: str, why: str) -> None:
        self._mirror.put(
            id,
            capabilities=Capabilities(),
            traits=offers.WORKFLOW_TRAITS,
            name=name,
            kind=SessionKind.GROUP,
            lifecycle=lifecycle,
            native_state=native,
            why=why,
        )
