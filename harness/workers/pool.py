"""The worker processes of a run, together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.contracts import Counters, SenderSpec
from harness.errors import UsageError
from harness.waiting import wait_until
from harness.workers.worker import Worker


class Workers:
    """All workers of a run; leaving the context kills those that still run."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.all = list(workers)
        for what, used in (
            ("name", [w.name for w in self.all]),
            ("number", [w.spec.number for w in self.all if isinstance(w.spec, SenderSpec)]),
        ):
            if twice := [one for one, count in Counter(used).items() if count > 1]:
                raise UsageError(
                    f"two workers of this workload have the {what} {twice[0]}; give each worker its own"
                )

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.all:
            worker.kill()

    @property
    def producers(self) -> list[Worker]:
        """The workers that make the load."""
        return [w for w in self.all if w.spec.sends and not w.spec.reads]

    @property
    def copiers(self) -> list[Worker]:
        return [w for w in self.all if w.spec.sends and w.spec.reads]

    @property
    def consumers(self) -> list[Worker]:
        """All members of the group, copiers included."""
        return [w for w in self.all if w.spec.reads]

    @property
    def observers(self) -> list[Worker]:
        return [w for w in self.all if w.spec.observes]

    def start(self) -> None:
        for worker in self.all:
            worker.start()

    def counters(self) -> Counters:
        """The sum of the counters of all workers except observers."""
        each = [w.counters() for w in self.all if not w.spec.observes]
        return Counters(*(sum(getattr(c, name) for c in each) for name in Counters.__dataclass_fields__))

    def check(self) -> None:
        for worker in self.all:
            worker.check()

    def wait_for_progress(self, beyond: Counters, timeout_s: float, what: str) -> Counters:
        """Wait until every producer has new acks and the group new deliveries, compared with `beyond`."""
        acked = {w.name: w.counters().acked for w in self.producers}

        def progressed() -> Counters | None:
            self.check()
            now = self.counters()
            each = all(w.counters().acked > acked[w.name] for w in self.producers)
            return now if each and now.delivered > beyond.delivered else None

        return wait_until(
            progressed,
            timeout_s,
            lambda: (
                f"{what}: acked {beyond.acked} -> {self.counters().acked}, "
                f"delivered {beyond.delivered} -> {self.counters().delivered}"
            ),
        )

    def stop(self, workers: Sequence[Worker], timeout_s: float) -> None:
        for worker in workers:
            worker.ask_to_stop()
        for worker in workers:
            worker.wait(timeout_s)
