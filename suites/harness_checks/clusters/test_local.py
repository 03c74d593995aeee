"""The local cluster on real brokers: start, powers, parallel clusters, and the leftovers of a killed harness."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.clusters.base import abandoned_clusters
from harness.clusters.base.options import Options
from harness.clusters.disk import mount
from harness.clusters.local import LocalCluster
from harness.clusters.powers.local_nodes import LocalNode
from harness.contracts import DiskBreakable, Killable, Pausable, Severable
from harness.errors import ClusterError
from harness.processes import child_process
from harness.testing.check_cluster import check_cluster, check_started, check_stop
from harness.testing.powers.links import check_severable
from harness.waiting import wait_until

HARNESS = """
import json, sys
from pathlib import Path
from harness.clusters.local import LocalCluster
cluster = LocalCluster(Path(sys.argv[1]), brokers=1, combined=True)
cluster.start()
print(json.dumps([node.pid for node in cluster._nodes] + [cluster._toxiproxy.pid]), flush=True)
sys.stdin.read()
"""


@pytest.mark.smoke
def test_three_combined_nodes_start_and_leave_only_logs(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cluster = LocalCluster(tmp_path / "cluster", combined=True)
    cluster.start()
    try:
        described = cluster.describe()
        record_property("steps_s", described.steps_s)
        record_property("rss_mb", described.more["rss_mb"])
        print(f"\nready after {described.steps_s['ready']} s, {described.more['rss_mb']} MB")
        assert described.more["rss_mb"] < 1000
        check_started(cluster)
        first = cluster.nodes()[0]
        assert all(isinstance(first, power) for power in (Killable, Pausable, Severable))
        assert not isinstance(first, DiskBreakable), "it was started without Byteman and FUSE"
        assert isinstance(first, Severable)
        check_severable(cluster, first)
    finally:
        check_stop(cluster, tmp_path / "logs")
    assert {log.name for log in (tmp_path / "logs").iterdir()} >= {"broker-3.log", "toxiproxy.log"}
    assert not list((tmp_path / "cluster").glob("*/data")), "data goes, logs stay"


@pytest.mark.conformance
@pytest.mark.parametrize("combined", [True, False], ids=["combined", "isolated"])
def test_passes_the_check_of_its_contract(tmp_path: Path, combined: bool) -> None:
    every_power = Options(fuse=mount.possible(), clocks=True, memory=True, byteman=True, log_folders=2)
    cluster = LocalCluster(tmp_path / "cluster", combined=combined, options=every_power)
    cluster.start()
    try:
        described = cluster.describe()
        print(f"\nready after {described.steps_s['ready']} s, {described.more['rss_mb']} MB")
        names = [node.name for node in cluster.nodes()]
        assert names == [
            *(f"broker-{n}" for n in (1, 2, 3)),
            *([] if combined else [f"controller-{n}" for n in (1, 2, 3)]),
        ]
        check_cluster(cluster, tmp_path / "logs")
    finally:
        cluster.stop()


@pytest.mark.conformance
def test_clusters_run_in_parallel(tmp_path: Path) -> None:
    clusters = [LocalCluster(tmp_path / name, brokers=1, combined=True) for name in ("one", "two")]
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(LocalCluster.start, clusters))
        blocks = {cluster.describe().more["loopback_block"] for cluster in clusters}
        assert len(blocks) == 2
        clusters[0].stop()
        check_started(clusters[1])
        assert clusters[1].view().produce_round_trip_ms("broker-1") > 0
    finally:
        for cluster in clusters:
            cluster.stop()


@pytest.mark.conformance
def test_a_killed_harness_leaves_no_process_and_the_next_start_clears_its_data(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with subprocess.Popen(
        [sys.executable, "-c", HARNESS, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    ) as harness:
        assert harness.stdout is not None
        started = [child_process.identify(pid) for pid in json.loads(harness.stdout.readline())]
        assert len(started) == 2
        assert all(started)
        harness.send_signal(signal.SIGKILL)
    wait_until(
        lambda: not any(process is not None and process.alive() for process in started),
        5.0,
        f"processes outlived their harness: {started}",
    )
    assert list(folder.glob("*/data"))
    assert folder in abandoned_clusters.sweep_stale()
    assert not list(folder.glob("*/data"))
    assert list(folder.glob("*/server.log"))


@pytest.mark.conformance
def test_a_node_that_does_not_start_is_an_immediate_error(tmp_path: Path) -> None:
    cluster = LocalCluster(
        tmp_path, brokers=1, combined=True, broker_settings={"log.retention.bytes": "not-a-number"}
    )
    begun = time.monotonic()
    with pytest.raises(
        ClusterError, match=r"broker-1 ended with code 1: .*not-a-number.*server\.log"
    ) as raised:
        cluster.start()
    assert time.monotonic() - begun < 60
    assert "\n" not in str(raised.value)
    assert not any(node.running() for node in cluster.nodes() if isinstance(node, LocalNode))
