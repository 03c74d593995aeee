"""Watching who coordinates a run's group and its transactional ids: each move is written down, as coverage of the run."""

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
    """Looks every second, in a thread of its own. While nobody coordinates, the last one that did is remembered."""

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
            return  # nobody answers now; what matters is who does later
        before = self._last.get((of, transaction))
        if now is None:
            return
        self._last[of, transaction] = now
        if before not in (None, now):
            self._events.write("coordinator", of=of, transaction=transaction, before=before, now=now)
