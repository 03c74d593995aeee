"""Watch the coordinators of a run's group and transactional ids, and record each move as coverage of the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from harness.contracts import Cluster
from harness.errors import ClusterError
from harness.ledger.journal import EventLog

LOOK_EVERY_S = 1.0


class CoordinatorWatch:
    """`look` asks for all coordinators. While there is no coordinator, the last one is remembered."""

    def __init__(self, cluster: Cluster, group: str, ids: Sequence[str], events: EventLog) -> None:
        self._cluster, self._events = cluster, events
        self._asked = [(group, False), *((name, True) for name in ids)]
        self._last: dict[tuple[str, bool], str] = {}

    def look(self) -> None:
        for of, transaction in self._asked:
            with suppress(ClusterError, OSError):  # no answer now; a later answer shows the move
                self._look(of, transaction)

    def _look(self, of: str, transaction: bool) -> None:
        now = self._cluster.view().coordinator(of, transaction=transaction)
        before = self._last.get((of, transaction))
        if now is None:
            return
        self._last[of, transaction] = now
        if before not in (None, now):
            self._events.write("coordinator", of=of, transaction=transaction, before=before, now=now)
