"""Kafka releases: each by itself, several in one cluster, and upgrades while producers and consumers run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from faults.rolling_upgrade import RollingUpgrade, finalized
from harness.campaign import Result
from harness.clusters.base.options import Options
from harness.clusters.local import LocalCluster
from harness.contracts import Cluster, Mode, Upgradable, Verdict
from harness.errors import SetupError, UsageError
from harness.kafka.protocol.features import METADATA_VERSION
from harness.provision.client import installed
from harness.scenario import Scenario, Timings
from harness.schedule import once
from harness.targets import everyone
from harness.testing.check_cluster import check_cluster
from harness.workers.client_version import loaded
from suites.scenarios.matrix import crossed
from suites.support.sessions import started_campaign, started_cluster

NEWEST, OLDEST = "4.3.1", "3.9.2"
# One mode for each, so that all three modes and all four releases are tested.
RELEASES = {
    "3.9.2": Mode.EXACTLY_ONCE,
    "4.1.1": Mode.AT_LEAST_ONCE,
    "4.2.0": Mode.EXACTLY_ONCE,
    "4.3.1": Mode.AT_MOST_ONCE,
}
OLDER_CLIENT = "2.10.1"
UPGRADE = once(RollingUpgrade(to=NEWEST), on=everyone(), after_s=0.5, hold_s=2.0)


@contextmanager
def _cluster(config: pytest.Config, kafka: str, mixed: str = "", combined: bool = False) -> Iterator[Cluster]:
    with started_cluster(config, cluster="local", kafka=kafka, mixed=mixed, combined=combined) as started:
        yield started


def _run(config: pytest.Config, cluster: Cluster, scenario: Scenario) -> Result:
    command = "pytest suites/test_versions.py -k {name} --seed {seed}"
    with started_campaign(config, cluster, command) as campaign:
        return campaign.run(scenario.with_seed(config.getoption("--seed"))).result()


def _reported_versions(cluster: Cluster) -> dict[str, str]:
    """Return the version that each node reports."""
    return {node.name: node.version() for node in cluster.nodes() if isinstance(node, Upgradable)}


@pytest.mark.conformance
@pytest.mark.parametrize(("kafka", "mode"), RELEASES.items(), ids=RELEASES)
def test_promises_hold_on_each_release(pytestconfig: pytest.Config, kafka: str, mode: Mode) -> None:
    with _cluster(pytestconfig, kafka, combined=True) as cluster:
        assert set(_reported_versions(cluster).values()) == {kafka}
        result = _run(pytestconfig, cluster, crossed(mode, "kill-leader"))
        assert result.verdict is Verdict.HELD, result.explain()
        manifest = result.run.read_manifest()
        assert manifest["versions"]["kafka"] == manifest["cluster"]["kafka_version"] == kafka
        assert list(cluster.residue()) == []


@pytest.mark.conformance
@pytest.mark.parametrize("kafka", [version for version in RELEASES if version != NEWEST])
def test_a_release_passes_the_check_of_clusters(tmp_path: Path, kafka: str) -> None:
    cluster = LocalCluster(
        tmp_path / "cluster", combined=True, kafka_version=kafka, options=Options(byteman=True)
    )
    cluster.start()
    try:
        check_cluster(cluster, tmp_path / "logs")
    finally:
        cluster.stop()


@pytest.mark.conformance
@pytest.mark.parametrize("mode", [Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE])
def test_promises_hold_during_a_rolling_upgrade(pytestconfig: pytest.Config, mode: Mode) -> None:
    with _cluster(pytestconfig, OLDEST) as cluster:
        before = finalized(cluster.view())
        scenario = Scenario(
            name=f"{mode}-rolling_upgrade", mode=mode, schedule=UPGRADE, timings=Timings(drain_limit_s=120)
        )
        result = _run(pytestconfig, cluster, scenario)
        assert result.verdict is Verdict.HELD, result.explain()
        (window,) = result.reconciled["coverage"]["windows"]
        assert window["measured"]["upgraded"] == len(cluster.nodes()) == 6
        assert window["measured"]["elections"] >= 3, "every broker was stopped, and each led something"
        assert window["healed"], window["heal_proof"]
        assert set(_reported_versions(cluster).values()) == {NEWEST}
        after = finalized(cluster.view())
        assert after[METADATA_VERSION] > before[METADATA_VERSION]
        assert after.keys() > before.keys(), "features that the older release lacks are in use now"
        assert result.run.read_manifest()["versions"]["kafka"] == f"{OLDEST} -> {NEWEST}"
        assert list(cluster.residue()) == [], "an upgrade is nothing to undo"


@pytest.mark.conformance
@pytest.mark.parametrize(("kafka", "mode"), [("3.9.2", Mode.EXACTLY_ONCE), ("4.2.0", Mode.AT_LEAST_ONCE)])
def test_promises_hold_with_mixed_versions_and_a_killed_leader(
    pytestconfig: pytest.Config, kafka: str, mode: Mode
) -> None:
    with _cluster(pytestconfig, kafka, mixed=f"broker-1={NEWEST}") as cluster:
        reported = _reported_versions(cluster)
        assert reported.pop("broker-1") == NEWEST
        assert set(reported.values()) == {kafka}
        result = _run(
            pytestconfig, cluster, replace(crossed(mode, "kill-leader"), name=f"{mode}-mixed-{kafka}")
        )
        assert result.verdict is Verdict.HELD, result.explain()
        assert result.run.read_manifest()["versions"]["kafka"] == f"{kafka}, {NEWEST}"


@pytest.mark.conformance
def test_workers_run_the_client_that_was_asked_for(pytestconfig: pytest.Config) -> None:
    with _cluster(pytestconfig, NEWEST, combined=True) as cluster:
        scenario = crossed(Mode.EXACTLY_ONCE, "kill-leader")
        older = replace(scenario, name=f"{scenario.name}-client-{OLDER_CLIENT}", client_version=OLDER_CLIENT)
        results = [_run(pytestconfig, cluster, each) for each in (scenario, older)]
    for result, version in zip(results, (installed(), OLDER_CLIENT), strict=True):
        assert result.verdict is Verdict.HELD, result.explain()
        found = loaded(result.run, {"producer-1", "producer-2", "consumer-1", "consumer-2"})
        assert found["confluent-kafka"] == version
        assert result.run.read_manifest()["versions"]["confluent-kafka"] == version
        # The final reader keeps the installed version: its readings are compared between versions.
        assert loaded(result.run, {"final-reader"})["confluent-kafka"] == installed()


def test_an_unknown_release_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(
        SetupError, match=r"^Kafka 4\.99\.0 does not exist: .*kafka_2\.13:4\.99\.0$"
    ) as raised:
        LocalCluster(tmp_path, kafka_version="4.99.0").start()
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match=r"Kafka newest: a release is named by its numbers"):
        LocalCluster(tmp_path, kafka_version="newest").start()
