"""Watch the coordinators of a run's group and transactional ids, and record each move as coverage of the run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from harness.contracts import Cluster
from harness.errors import ClusterError
from harness.kafka.protocol.raw_client import WireError
from harness.ledger.journal import EventLog

_LOOK_EVERY_S = 1.0


class CoordinatorWatch:
    """Asks every second, in its own thread. While there is no coordinator, the last one is remembered."""

    def __init__(self, cluster: Cluster, group: str, ids: Sequence[str], events: EventLog) -> None:
        self._cluster, self._events = cluster, events
        self._asked = [(group, False), *((name, True) for name in ids)]
        self._last: dict[tuple[str, bool], str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="coordinators", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(30)

    def _watch(self) -> None:
        while not self._stop.is_set():
            for of, transaction in self._asked:
                self._look(of, transaction)
            self._stop.wait(_LOOK_EVERY_S)

    def _look(self, of: str, transaction: bool) -> None:
        try:
            now = self._cluster.view().coordinator(of, transaction=transaction)
        except (ClusterError, WireError, OSError):
            return  # no answer now; a later answer shows the move
        before = self._last.get((of, transaction))
        if now is None:
            return
        self._last[of, transaction] = now
        if before not in (None, now):
            self._events.write("coordinator", of=of, transaction=transaction, before=before, now=now)
