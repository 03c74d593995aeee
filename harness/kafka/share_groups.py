"""The progress of a share group (KIP-932), seen from outside: how many records of each partition are left to accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.contracts import Cluster
from harness.errors import ClusterError
from harness.kafka.protocol import admin_requests
from harness.kafka.protocol.messages import WireError
from harness.kafka.topics import ASK_S, leaders
from harness.waiting import wait_until

_NOT_BEGUN = -1


class ShareGroupWatch:
    """Waits until a share group has accepted, or given up, every record of a topic."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self._cluster, self._topic, self._group = cluster, topic, group

    def lag(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the number of records left to accept in partitions that have some, and the ends of all partitions.

        The start offset of the group is no measure: what the brokers store of it lags behind what is accepted.
        """
        view = self._cluster.view()
        places = view.broker_places()
        ends: dict[int, int] = {}
        states = view.partitions(self._topic)
        for leader, numbers in leaders(states).items():
            address = places[leader].control
            ends |= admin_requests.offsets(address, self._topic, numbers, admin_requests.LATEST, ASK_S)
        if not states or len(ends) < len(states):
            raise WireError(
                f"{len(states) - len(ends)} of {len(states)} partitions of {self._topic} have no leader"
            )
        coordinator = view.coordinator(self._group, transaction=False)
        if coordinator is None:
            raise WireError(f"share group {self._group} has no coordinator")
        # The ends first: everything below them is accepted if nothing is left afterwards.
        address = places[coordinator].control
        left = admin_requests.share_group_lag(address, self._group, self._topic, sorted(ends), ASK_S)
        known = {number: left.get(number, _NOT_BEGUN) for number in ends}
        behind = {number: ends[number] if lag == _NOT_BEGUN else lag for number, lag in known.items()}
        return {number: lag for number, lag in behind.items() if lag}, ends

    def wait_until_drained(
        self, timeout_s: float, watch: Callable[[], None] = lambda: None
    ) -> Mapping[int, int]:
        """Wait until no record is left to accept; return the ends, since records that are appended later were not drained."""
        last: dict[str, object] = {}
        ends: dict[int, int] = {}

        def drained() -> bool:
            watch()
            try:
                last["lag"], found = self.lag()
                ends.update(found)
            except ClusterError as problem:
                last["lag"] = str(problem)
            return not last["lag"]

        wait_until(drained, timeout_s, lambda: f"the share group is behind by {last.get('lag')}", every_s=0.2)
        return ends

    def close(self) -> None:
        """Nothing is open: each question is a connection of its own."""
