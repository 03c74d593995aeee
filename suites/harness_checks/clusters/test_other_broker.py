"""A cluster of brokers that are not Apache's but speak the protocol. TRUST T13"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from faults.reassign import Reassign
from harness.clusters.existing import ExistingCluster
from harness.contracts import Mode, TopicSettings
from harness.injector import why_not_applicable
from harness.kafka.admin import Administrator
from harness.kafka.group_watch import GroupWatch
from harness.kafka.protocol import raw_client
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios import matrix
from suites.support import foreign
from suites.support.standing import ROOT

pytestmark = [
    pytest.mark.smoke,
    pytest.mark.skipif(
        foreign.trouble() is not None, reason=f"another broker cannot be built: {foreign.trouble()}"
    ),
]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def names_on(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics)


def test_modes_hold_and_missing_checks_are_reported(tmp_path: Path) -> None:
    with foreign.running() as bootstrap:
        words = [
            "--cluster",
            "existing",
            "--bootstrap",
            bootstrap,
            "--runs",
            str(tmp_path / "runs"),
            "--json",
        ]
        words += ["--only", "at_least_once-none", "--only", "exactly_once-none"]
        done = subprocess.run(
            [sys.executable, "-m", "harness.cli", "prove", *words],
            cwd=ROOT, capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        left = names_on(bootstrap)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [run["verdict"] for run in summary["runs"]] == ["HELD"] * 2, done.stderr
    missing = "the brokers do not offer DescribeQuorum: controllers that are not brokers are unknown"
    assert missing in done.stderr
    manifests = sorted((tmp_path / "runs").glob("*/*/manifest.json"))
    assert len(manifests) == 2
    for manifest in manifests:
        assert json.loads(manifest.read_text())["cluster"]["lacking"] == ["DescribeQuorum"]
        reconciled = json.loads((manifest.parent / "reconciled.json").read_text())
        assert any(missing in note for note in reconciled["coverage"]["notes"])
        assert reconciled["counts"]["in_log"] > 1000
    assert missing in (tmp_path / "runs" / "report.html").read_text()
    assert left == set(), "nothing stays on the cluster"


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 on loopback")
def test_an_old_broker_at_an_ipv6_address_can_be_used(tmp_path: Path) -> None:
    with foreign.running("-brokers", "1", "-host", "::1", "-as-version", "2.3") as bootstrap:
        assert bootstrap.startswith("[::1]:")
        with ExistingCluster(tmp_path / "cluster", bootstrap=bootstrap) as cluster:
            described = cluster.describe()
            assert described.more["bootstrap"] == bootstrap
            assert described.lacking == [
                "AlterPartitionReassignments", "DescribeProducers", "DescribeQuorum", "DescribeShareGroupOffsets", "ElectLeaders",
            ]  # fmt: skip
            assert any("1 replica(s) instead of 3" in line for line in described.not_checked)
            cluster.create_topic("onceproof-orders", TopicSettings())
            (first, *_others) = cluster.view().partitions("onceproof-orders")
            assert first.leader == first.replicas[0] == cluster.nodes()[0].name
            assert cluster.view().produce_round_trip_ms(first.leader) > 0
            admin = Administrator(cluster, "onceproof-orders")
            assert admin.offsets()[0] == (0, 0)
            assert admin.committed("onceproof-no-such-group") == {}, (
                "GROUP_ID_NOT_FOUND means no committed offsets"
            )
            watch = GroupWatch(cluster, "onceproof-orders", 3, "onceproof-none", "read_committed")
            try:
                assert watch.lag() == {}
            finally:
                watch.close()
            with pytest.raises(raw_client.UnsupportedError, match="DescribeProducers"):
                admin.open_transactions()
            moved = Scenario(
                name="moved", mode=Mode.AT_LEAST_ONCE, schedule=once(Reassign(), on=leader_of(0), hold_s=1.0)
            )
            assert why_not_applicable(moved, cluster) == (
                "moved: reassign needs AlterPartitionReassignments, which the brokers do not offer"
            )
            assert all(why_not_applicable(matrix.fault_free(mode), cluster) is None for mode in Mode)
