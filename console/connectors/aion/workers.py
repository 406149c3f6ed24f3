"""What is known of a server's workers: which of them answer nobody, and which queues nobody serves. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from console.connectors.aion.reading import Json, number, text

Worker = tuple[str, str]
"""Namespace and name."""


class Workers:
    """`managed`: the workers that the server runs, and can restart."""

    def __init__(self) -> None:
        self.managed: frozenset[str] = frozenset()
        self._wedged: dict[Worker, tuple[str, int]] = {}
        self._leased: dict[Worker, int] = {}
        """When each worker last took an attempt, as far as was read."""
        self._unserved: dict[Worker, str] = {}
        """Queues that nobody serves, by namespace and name, and since when."""
        self._asked: set[str] = set()
        """Namespaces whose queues were asked for: a queue that is not among those is served."""

    def wedged(self, worker: Worker) -> str:
        """Why the worker answers nobody; empty where nothing is known of that."""
        return self._wedged.get(worker, ("", 0))[0]

    def wedge(self, worker: Worker, why: str) -> None:
        """The worker has not answered an intervention, and will answer none."""
        self._wedged[worker] = (why, self._leased.get(worker, 0))

    def leased(self, worker: Worker, at: int) -> bool:
        """The worker took an attempt, by the server's clock. True where it answered nobody before, and does again.

        What it took before it fell silent may be read later, and proves nothing.
        """
        self._leased[worker] = max(at, self._leased.get(worker, 0))
        recovered = worker in self._wedged and at > self._wedged[worker][1]
        if recovered:
            del self._wedged[worker]
        return recovered

    def unserved(self, namespace: str, queue: str) -> str:
        """Why nobody serves the queue, and since when; empty where somebody does, or where it is not known."""
        return self._unserved.get((namespace, queue), "")

    def served(self, namespace: str, queue: str) -> bool:
        """Is it known that somebody serves the queue?"""
        return namespace in self._asked and (namespace, queue) not in self._unserved

    def unserved_now(self, namespace: str, rows: Iterable[Json]) -> bool:
        """What the server says of a namespace's queues. True where that is news."""
        first = namespace not in self._asked
        self._asked.add(namespace)
        found = {}
        for row in rows:
            since = number(row.get("unserved_for_ms"))
            waited = f", for {since // 1000} s" if since is not None else ""
            found[(namespace, text(row.get("task_queue")))] = (
                f"{text(row.get('reason'))}: {text(row.get('detail'))}{waited}"
            )
        before = {queue for queue in self._unserved if queue[0] == namespace}
        if before == found.keys() and not first:
            return False
        for queue in before:
            del self._unserved[queue]
        self._unserved |= found
        return True
