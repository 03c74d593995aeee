"""The checks of powers: each passes on a node in memory that has the power, and fails on one whose power has no effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from harness.contracts import (
    POWERS,
    DiskFault,
    DiskHarm,
    Ending,
    HeldRequests,
    Link,
    Memory,
    Questions,
    Talk,
    Toxic,
)
from harness.errors import ClusterError, WaitTimeout
from harness.testing.check_cluster import checks_of_powers
from tests.fake_arena import FakeCluster, FakeNode

LIMIT_S = 0.3


@dataclass
class AbleNode(FakeNode):
    """A node in memory with every power; the powers of a `stubborn` node have no effect."""

    asleep: bool = False
    held: int = 0
    skew_s: float = 0.0
    share: float = 1.0
    limit_mb: float | None = None
    toxics: Sequence[Toxic] = ()
    rate_kb_s: float = 10_000.0
    broken: list[str] = field(default_factory=list)
    runs: str = "4.3.1"

    def shut_down(self, limit_s: float = 60.0) -> int:
        self.alive = self.stubborn
        return 0

    def lose_power(self) -> Mapping[str, float]:
        self.alive = self.stubborn
        return {"bytes_lost": 1.0}

    def upgrade(self, version: str, limit_s: float = 60.0) -> int:
        self.runs = "unknown" if self.stubborn else version
        return 0

    def version(self) -> str:
        return self.runs

    def features(self) -> Mapping[str, tuple[int, int]]:
        return {"metadata.version": (1, 2)}

    def pause(self) -> None:
        self.asleep = not self.stubborn

    def resume(self) -> None:
        self.asleep = False

    def paused(self) -> bool:
        return self.asleep

    def passes(self, link: Link) -> Mapping[str, bool]:  # type: ignore[override]
        return {way: passing and not self.asleep for way, passing in super().passes(link).items()}

    def shapeable_links(self) -> Sequence[Link]:
        return self.links()

    def shape(self, links: Sequence[Link], toxics: Sequence[Toxic], by: str = "") -> None:
        self.toxics = () if self.stubborn else toxics

    def unshape(self, by: str | None = None) -> None:
        self.toxics = ()

    def talk(self, link: Link, questions: Questions) -> Talk:
        took_s = sum(toxic.attributes["latency"] for toxic in self.toxics) / 1000
        return Talk(Ending.ANSWERED, 1, 1, 1, took_s)

    @contextmanager
    def long_question(
        self, link: Link, topic: str, partition: int, wait_s: float
    ) -> Iterator[Callable[[float], bool]]:
        yield lambda _limit_s: True

    def hold_requests(self, how: HeldRequests) -> None:
        self.held = 0 if self.stubborn else 1

    def release_requests(self) -> None:
        self.held = 0

    def held_requests(self) -> Mapping[str, int]:
        return {"inserted": self.held}

    def skew_clock(self, offset_s: float, rate: float = 1.0) -> None:
        self.skew_s = 0.0 if self.stubborn else offset_s

    def right_clock(self) -> None:
        self.skew_s = 0.0

    def clock_offset_s(self) -> float:
        return self.skew_s

    def starve(self, cpu_share: float) -> str:
        self.share = 1.0 if self.stubborn else cpu_share
        return "cgroup"

    def feed(self) -> None:
        self.share = 1.0

    def cpu_under_load(self, for_s: float) -> float:
        return self.share

    def take_memory(self, left_mb: float) -> str:
        self.limit_mb = None if self.stubborn else left_mb
        return "cgroup"

    def give_memory(self) -> None:
        self.limit_mb = None

    def memory_under_load(self, for_s: float) -> Memory:
        return Memory(10.0, 1.0, self.limit_mb, 0)

    def throttle_disk(self, harm: DiskHarm, rate_kb_s: int) -> str:
        self.rate_kb_s = 10_000.0 if self.stubborn else rate_kb_s
        return "blkio"

    def release_disk(self, harm: DiskHarm) -> None:
        self.rate_kb_s = 10_000.0

    def disk_rate_kb_s(self, harm: DiskHarm, size_kb: int) -> float:
        return self.rate_kb_s

    def folders(self) -> Sequence[str]:
        return ["1", "2"]

    def partitions_in(self, folder: str) -> Collection[str]:
        return []

    def break_disk(self, how: DiskFault) -> str:
        if how.folder and not self.stubborn:
            self.broken.append(how.folder)
        return super().break_disk(how)

    def mend_disk(self, harm: DiskHarm | None = None) -> None:
        self.broken.clear()
        super().mend_disk(harm)

    def append_to(self, folder: str) -> None:
        if folder in self.broken:
            raise ClusterError(f"{folder} is broken")


def cluster_of(*, stubborn: bool) -> FakeCluster:
    names = ["broker-1", "broker-2"]
    nodes: list[FakeNode] = [AbleNode(name, [n for n in names if n != name], stubborn) for name in names]
    return FakeCluster(nodes, {0: names})


def test_every_power_has_a_check() -> None:
    assert set(checks_of_powers()) == set(POWERS)


@pytest.mark.parametrize("power", POWERS, ids=lambda power: power.__name__)
def test_a_power_with_its_effect_passes_and_one_without_fails(power: type) -> None:
    check = checks_of_powers()[power]
    able, stubborn = cluster_of(stubborn=False), cluster_of(stubborn=True)
    assert isinstance(able.brokers[0], power)
    check(able, able.brokers[0], LIMIT_S)
    with pytest.raises((AssertionError, WaitTimeout)):
        check(stubborn, stubborn.brokers[0], LIMIT_S)
