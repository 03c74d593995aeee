"""How many partitions a topic has, for producers that name the partition themselves: operators may add some."""

from __future__ import annotations

import threading
import time
import weakref

from harness.contracts import Counting

ASK_EVERY_S = 1.0
ASK_LIMIT_S = 5.0


class PartitionCount:
    """Asked for beside the sending, since an answer may take its time while things break."""

    def __init__(self, at_first: int) -> None:
        self.count = at_first

    def follow(self, producer: Counting) -> None:
        """Ask again and again, for as long as the producer is in use."""
        asking = threading.Thread(target=self._ask, args=(weakref.ref(producer),), daemon=True)
        asking.start()

    def _ask(self, found: weakref.ref[Counting]) -> None:
        while (producer := found()) is not None:
            self.count = max(self.count, producer.partitions(ASK_LIMIT_S))
            del producer  # or it would be in use for ever
            time.sleep(ASK_EVERY_S)
