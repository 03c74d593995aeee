"""The current number of partitions of a topic, for producers that name the partition themselves: operators may add some."""

from __future__ import annotations

import threading
import time
import weakref

from harness.contracts import Counting

ASK_EVERY_S = 1.0
ASK_LIMIT_S = 5.0


class PartitionCount:
    """The number of partitions, asked for in a separate thread, since an answer may be slow during a fault."""

    def __init__(self, at_first: int, *, ask_every_s: float = ASK_EVERY_S) -> None:
        self.count = at_first
        self._ask_every_s = ask_every_s

    def follow(self, producer: Counting) -> None:
        """Ask repeatedly, as long as the producer is in use."""
        asking = threading.Thread(target=self._ask, args=(weakref.ref(producer),), daemon=True)
        asking.start()

    def _ask(self, found: weakref.ref[Counting]) -> None:
        while (producer := found()) is not None:
            self.count = max(self.count, producer.partitions(ASK_LIMIT_S))
            del producer  # this reference would keep it in use forever
            time.sleep(self._ask_every_s)
