"""`why_not_applicable`: scenarios that a cluster cannot run, of every kind, with the reason and the remedy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from faults.at_moment import AtMoment
from faults.broken_disk import BrokenDisk
from faults.delete_records import DeleteRecords
from faults.flip_bits import FlipBits
from faults.hold_requests import HoldRequests
from faults.kill import Kill
from faults.power_loss import PowerLoss
from faults.sever import Sever
from faults.skew_clock import SkewClock
from faults.slow_disk import SlowDisk
from faults.starve import Starve
from harness.clusters.base.options import PLAIN, Options
from harness.clusters.disk import mount
from harness.clusters.memory import MemoryCluster
from harness.clusters.powers import memory
from harness.contracts import ClusterDescription, Fault, Mode
from harness.injector import why_not_applicable
from harness.provision import faketime
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import Target, leader_of, producer
from suites.hazards import power_loss_everywhere, unclean_election
from suites.scenarios import fault_cases, matrix
from tests.clusters.drafted import drafted, make_able
from tests.fake_arena import FakeCluster, FakeNode, make_arena

EVERYTHING = {
    "local": Options(fuse=True, clocks=True, memory=True, byteman=True, log_folders=2),
    "zookeeper": Options(fuse=True, clocks=True, memory=True, byteman=True, log_folders=2),
    "docker": Options(fuse=True, byteman=True),
}
NEVER_IN_CONTAINERS = {"skew_clock", "skew_clock-back", "broken_disk-one_folder"}


@pytest.fixture(autouse=True)
def _able_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    make_able(monkeypatch)


def one(fault: Fault, on: Target | None = None) -> Scenario:
    return Scenario(name="s", mode=Mode.AT_LEAST_ONCE, schedule=once(fault, on=on or leader_of(0)))


@pytest.mark.parametrize("kind", list(EVERYTHING))
def test_a_cluster_with_every_option_runs_every_fault_that_its_kind_can(tmp_path: Path, kind: str) -> None:
    cluster = drafted(tmp_path, kind, EVERYTHING[kind])
    losses = [*power_loss_everywhere.hazard.scenarios, *unclean_election.hazard.scenarios]
    every = [*fault_cases.scenarios(), *losses, *matrix.FULL]
    skipped = {s.name for s in every if why_not_applicable(s, cluster)}
    never = {f"{mode}-{name}" for mode in fault_cases.ACKED for name in NEVER_IN_CONTAINERS}
    never.add("at_least_once-lower_feature")  # only where nodes can be upgraded; it has a case in one mode
    assert skipped == (never if kind == "docker" else set())


@pytest.mark.parametrize("kind", ["local", "zookeeper"])
@pytest.mark.parametrize(
    ("fault", "options", "remedy"),
    [
        (SkewClock(), PLAIN, "Options(clocks=True)"),
        (PowerLoss(), Options(byteman=True), "Options(fuse=True)"),
        (SlowDisk(), PLAIN, "Options(byteman=True)"),
        (SlowDisk(harm="read"), Options(fuse=True), "Options(byteman=True)"),
        (Starve(memory_mb=8), PLAIN, "Options(memory=True)"),
        (BrokenDisk(folder=2), Options(byteman=True), "Options(log_folders=2)"),
        (SlowDisk(harm="fsync", rate_kb_s=256), EVERYTHING["local"], "use --cluster docker"),
        (AtMoment({"fault": "power_loss"}), PLAIN, "Options(fuse=True)"),
    ],
    ids=lambda value: str(value) if not isinstance(value, Options) else "",
)
def test_the_reason_names_the_option_or_the_kind_of_cluster(
    tmp_path: Path, kind: str, fault: Fault, options: Options, remedy: str
) -> None:
    reason = why_not_applicable(one(fault), drafted(tmp_path, kind, options))
    assert reason is not None
    assert reason.startswith(f"s: {fault} on leader needs a power that no node of this cluster has (")
    assert remedy in reason
    assert "\n" not in reason


def test_the_reason_of_the_machine_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount, "trouble", lambda: "no libfuse3")
    assert "no libfuse3" in (why_not_applicable(one(PowerLoss()), drafted(tmp_path)) or "")
    monkeypatch.setattr(memory, "trouble", lambda: "no memory control group here")
    starved = drafted(tmp_path, options=Options(memory=True))
    assert "no memory control group here" in (why_not_applicable(one(Starve(memory_mb=8)), starved) or "")
    assert why_not_applicable(one(Starve()), starved) is None, "CPU time needs no control group"


def test_links_between_containers_need_root_and_lanes_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    cluster = drafted(tmp_path, "docker")
    assert "only root" in (why_not_applicable(one(Sever()), cluster) or "")
    assert why_not_applicable(one(Sever("clients")), cluster) is None


def test_encrypted_requests_cannot_be_held(tmp_path: Path) -> None:
    held = one(HoldRequests())
    assert why_not_applicable(held, drafted(tmp_path)) is None
    assert "--security plaintext" in (why_not_applicable(held, drafted(tmp_path, security="ssl")) or "")


def test_the_clocks_of_workers_depend_on_the_machine_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skewed = one(SkewClock(), producer(1))
    clusters: list[Any] = [drafted(tmp_path), drafted(tmp_path, "docker"), MemoryCluster(tmp_path)]
    assert [why_not_applicable(skewed, cluster) for cluster in clusters] == [None] * 3
    monkeypatch.setattr(faketime, "trouble", lambda: "libfaketime cannot be fetched")
    assert all("libfaketime" in (why_not_applicable(skewed, cluster) or "") for cluster in clusters)


def test_a_cluster_without_nodes_runs_faults_on_workers_only(tmp_path: Path) -> None:
    cluster = MemoryCluster(tmp_path)
    assert "(Killable)" in (why_not_applicable(one(Kill()), cluster) or "")
    assert why_not_applicable(one(Kill(), producer(1)), cluster) is None


class Foreign(FakeCluster):
    def describe(self) -> ClusterDescription:
        return ClusterDescription("existing", lacking=["DeleteRecords"])


def test_log_files_out_of_reach_and_requests_that_brokers_lack() -> None:
    there = make_arena().cluster
    cluster = Foreign([FakeNode("broker-1")], there.replicas)
    assert "log files" in (why_not_applicable(one(FlipBits()), cluster) or "")
    inner = AtMoment({"fault": "delete_records"})
    for fault in (DeleteRecords(), inner):
        assert why_not_applicable(one(fault), cluster) == (
            f"s: {fault} needs DeleteRecords, which the brokers do not offer"
        )
