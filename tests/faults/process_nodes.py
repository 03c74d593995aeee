"""Nodes in memory that can be stopped, paused and starved."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import WaitTimeout
from tests.fake_arena import FakeArena, FakeCluster, FakeNode, make_arena


@dataclass
class ProcessNode(FakeNode):
    """A node that can be stopped cleanly, paused and starved; with `hangs` it does not end on SIGTERM."""

    hangs: bool = False
    stopped: bool = False
    share: float = 1.0

    def shut_down(self, limit_s: float = 60.0) -> int:
        self.calls.append("shut_down")
        if self.hangs:
            raise WaitTimeout(f"{self.name} did not end after SIGTERM")
        self.alive = self.stubborn
        return 143

    def pause(self) -> None:
        self.calls.append("pause")
        self.stopped = not self.stubborn

    def resume(self) -> None:
        self.calls.append("resume")
        self.stopped = False

    def paused(self) -> bool:
        return self.stopped

    def starve(self, cpu_share: float) -> str:
        self.calls.append("starve")
        self.share = 1.0 if self.stubborn else cpu_share
        return "signals"

    def feed(self) -> None:
        self.calls.append("feed")
        self.share = 1.0

    def cpu_under_load(self, for_s: float) -> float:
        return self.share

    def reachable(self) -> bool:
        return super().reachable() and not self.stopped


def arena_of_processes(patience: float = 1.0) -> tuple[FakeArena, list[ProcessNode]]:
    plain = make_arena()
    nodes = [ProcessNode(node.name, node.peers) for node in plain.cluster.brokers]
    cluster = FakeCluster(list(nodes), plain.cluster.replicas)
    return FakeArena(cluster, plain.workers, patience=patience), nodes
