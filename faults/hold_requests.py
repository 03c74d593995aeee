"""Hold everything that a client's connection sends, from a request of a chosen kind on, and deliver it later in order.

The request arrives long after its sender gave up: the sender timed out, retried on a new connection, or has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from faults._cases import NOT_TRANSACTIONAL, TRANSACTIONAL, Case
from faults._measure import able, probe_links, wait_whole
from harness.contracts import (
    Arena,
    Bite,
    Healing,
    HeldRequests,
    Lane,
    Link,
    Node,
    RequestHolding,
    Severable,
)
from harness.errors import UsageError, WaitTimeout
from harness.targets import leader_of, transaction_coordinator
from harness.waiting import in_parallel, wait_until

# API keys of the Kafka protocol. Users can give a kind that has no name here by its number.
API_KEYS: Mapping[str, int] = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetCommit": 8,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "JoinGroup": 11,
    "Heartbeat": 12,
    "LeaveGroup": 13,
    "SyncGroup": 14,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "EndTxn": 26,
    "TxnOffsetCommit": 28,
    "ConsumerGroupHeartbeat": 68,
}
_NAMES = {number: name for name, number in API_KEYS.items()}


@dataclass(frozen=True)
class HoldRequests:
    """Bites when at least one request was held at one of the targets within `within_s` seconds.

    The load decides when such a request comes. At each target `connections` connections are held; others pass.
    """

    api_keys: tuple[int | str, ...] = ("EndTxn",)
    lane: Lane = Lane.PRODUCE
    connections: int = 1
    within_s: float = 15.0
    needs: ClassVar[type] = RequestHolding
    ways: ClassVar[Mapping[str, str]] = {"proxy": "nothing"}
    bites_when: ClassVar[str] = "a proxy in the client lane holds at least one request of a chosen kind"

    def __post_init__(self) -> None:
        if not self.api_keys:
            raise UsageError("hold_requests: api_keys is empty; name at least one kind, such as EndTxn")
        for key in self.api_keys:
            if isinstance(key, str) and key not in API_KEYS:
                raise UsageError(f"hold_requests: unknown kind {key!r}; choose from {', '.join(API_KEYS)}")
            if isinstance(key, int) and not 0 <= key < 2**15:
                raise UsageError(f"hold_requests: api key {key} does not exist; choose 0 to 32767")
        if self.lane not in (Lane.PRODUCE, Lane.CONSUME):
            raise UsageError(f"hold_requests: lane {self.lane!s} has no proxies; choose produce or consume")
        if self.connections < 1 or self.within_s <= 0:
            raise UsageError("hold_requests: connections must be at least 1 and within_s greater than 0")

    @property
    def how(self) -> HeldRequests:
        keys = tuple(API_KEYS[key] if isinstance(key, str) else key for key in self.api_keys)
        return HeldRequests(keys, Lane(self.lane), self.connections)

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        targets = holding(nodes)
        with ExitStack() as undo:
            for node in targets:
                undo.callback(node.release_requests)
            in_parallel(lambda node: node.hold_requests(self.how), targets)
            yield self.bite(targets)

    def bite(self, targets: Sequence[RequestHolding]) -> Bite:
        if not targets:
            return Bite(False, "there was no broker whose requests could be held")
        try:
            wait_until(lambda: _sum(targets, "requests_so_far"), self.within_s, "", every_s=0.02)
        except WaitTimeout:
            passed = _sum(targets, "passed")
            return Bite(
                False,
                f"no {self.kinds} within {self.within_s:g} s; {passed} other requests passed",
                way="proxy",
            )
        held = {node.name: node.held_requests() for node in targets}
        proof = ", ".join(
            f"{counts['requests_so_far']} to {name} on {counts['connections_so_far']} connection(s)"
            for name, counts in held.items()
            if counts["requests_so_far"]
        )
        measured = {
            "requests_held": float(sum(counts["requests_so_far"] for counts in held.values())),
            "connections_held": float(sum(counts["connections_so_far"] for counts in held.values())),
        }
        return Bite(True, f"requests held from {self.kinds} on: {proof}", measured, way="proxy")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        targets = holding(nodes)

        def left() -> str | None:
            if still := _sum(targets, "requests"):
                return f"{still} requests are still held"
            if _sum(targets, "inserted"):
                return "a lane still leads through the proxy"
            held, delivered = _sum(targets, "requests_so_far"), _sum(targets, "delivered")
            if delivered + _sum(targets, "undeliverable") != held:
                return f"{held} requests were held, {delivered} delivered"
            return next(filter(None, (self._in_the_way(node) for node in targets)), None)

        # All numbers are final: the release returned only when no more answers could come.
        counted = ("requests_so_far", "delivered", "answered", "undeliverable", "senders_gone")
        counts = {name: _sum(targets, name) for name in counted}
        proof = f"{counts['delivered']} of {counts['requests_so_far']} held requests delivered"
        proof += f" and {counts['answered']} answered, its lane passes"
        healing = wait_whole(arena, [node.name for node in nodes], left, proof)
        measured = {name: float(count) for name, count in counts.items()}
        return replace(healing, measured={**healing.measured, **measured})

    def _in_the_way(self, node: RequestHolding) -> str | None:
        if not isinstance(node, Severable):
            return None
        link = Link(Lane(self.lane).value, node.name)
        return None if all(probe_links(node, [link])[link].values()) else f"no answer through {link}"

    @property
    def kinds(self) -> str:
        return "/".join(str(_NAMES.get(key, key)) for key in self.how.api_keys)

    def describe(self) -> Mapping[str, Any]:
        return {
            "fault": "hold_requests",
            "api_keys": list(self.api_keys),
            "lane": Lane(self.lane).value,
            "connections": self.connections,
            "within_s": self.within_s,
        }

    def __str__(self) -> str:
        return f"hold_requests-{self.kinds.replace('/', '-')}"


def _sum(targets: Sequence[RequestHolding], name: str) -> int:
    return sum(node.held_requests().get(name, 0) for node in targets)


def holding(nodes: Sequence[Node]) -> list[RequestHolding]:
    return able(nodes, RequestHolding, "requests to {} cannot be held")


cases = (
    Case(HoldRequests(("Produce",)), leader_of(0), modes=NOT_TRANSACTIONAL),
    Case(HoldRequests(("EndTxn",)), transaction_coordinator(1), modes=TRANSACTIONAL),
)
fault_class = HoldRequests
