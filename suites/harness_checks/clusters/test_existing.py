"""A real existing cluster, started by another process, with TLS, SASL and powers by commands."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from faults.kill import Kill
from harness.campaign import Campaign
from harness.clusters.existing import ExistingCluster
from harness.contracts import Killable, Mode, Pausable, Stoppable, TopicSettings, Verdict
from harness.errors import UsageError
from harness.kafka import connection
from harness.kafka.admin import Administrator
from harness.running.arena import RunArena
from harness.testing.check_cluster import check_cluster
from harness.waiting import wait_until
from suites.scenarios.fault_cases import scenarios
from suites.support.standing import ROOT, Standing, standing

LIMIT_S = 500.0


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("standing")) as started:
        yield started


def used(there: Standing, folder: Path, powers: bool = True) -> ExistingCluster:
    return ExistingCluster(
        folder,
        bootstrap=there.bootstrap,
        client_config=there.client_config,
        powers=there.powers if powers else None,
    )


def onceproof(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, **(env or {})},
    )


def names_there(there: Standing, folder: Path) -> set[str]:
    """Return all topics and groups on the cluster, except Kafka's own."""
    admin = AdminClient(connection.settings(used(there, folder)))
    groups = admin.list_consumer_groups(request_timeout=10).result(20).valid
    names = {*admin.list_topics(timeout=10).topics, *(group.group_id for group in groups)}
    return {name for name in names if not name.startswith("__")}


def files_with(secret: str, *folders: Path) -> list[Path]:
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 10, "there are files to search"
    return [file for file in files if secret.encode() in file.read_bytes()]


@pytest.mark.smoke
@pytest.mark.timeout(900)
def test_prove_holds_cleans_up_and_keeps_secrets(there: Standing, tmp_path: Path) -> None:
    before = names_there(there, tmp_path)
    runs = tmp_path / "runs"
    done = onceproof("prove", "--quick", *there.words(), "--powers", there.powers, "--runs", runs, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [run["verdict"] for run in summary["runs"]] == ["HELD"] * 3, done.stderr
    assert names_there(there, tmp_path) == before
    assert files_with(there.password, runs) == []
    assert there.password not in done.stdout + done.stderr
    assert (runs / "report.html").is_file()


@pytest.mark.smoke
def test_without_powers_faults_on_nodes_are_refused_by_name(there: Standing, tmp_path: Path) -> None:
    before = names_there(there, tmp_path)
    done = onceproof("prove", "--quick", *there.words(), "--runs", tmp_path / "runs")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "onceproof: all scenarios are skipped: at_most_once-kill-leader: kill on leader needs a power that no node"
    )
    assert "--powers FILE.toml" in done.stderr
    assert names_there(there, tmp_path) == before


@pytest.mark.smoke
def test_without_powers_suites_skip_loudly(there: Standing, tmp_path: Path) -> None:
    words = [
        f"suites/test_exactly_once.py::test_transactions_survive_whole[{Mode.EXACTLY_ONCE}-kill-leader]",
        "--runs",
        str(tmp_path / "runs"),
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *there.words()],
        cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert re.search(r"= 1 skipped in ", done.stdout), done.stdout + done.stderr
    assert "needs a power that no node of this cluster has (Killable)" in " ".join(done.stdout.split())


@pytest.mark.conformance
@pytest.mark.parametrize("case", ["transfer_leadership", "kill_worker-producer", "rebalance"])
def test_faults_of_operators_and_clients_need_no_powers(there: Standing, tmp_path: Path, case: str) -> None:
    scenario = next(s for s in scenarios() if s.name == f"{Mode.EXACTLY_ONCE}-{case}")
    with (
        used(there, tmp_path / "cluster", powers=False) as cluster,
        Campaign(cluster, tmp_path / "runs") as campaign,
    ):
        result = campaign.run(scenario).result()
    assert result.verdict is Verdict.HELD, result.explain()


@pytest.mark.conformance
def test_passes_the_check_of_its_contract(there: Standing, tmp_path: Path) -> None:
    cluster = used(there, tmp_path / "cluster")
    cluster.start()
    try:
        names = [node.name for node in cluster.nodes()]
        assert names == ["broker-1", "broker-2", "broker-3"]
        for node in cluster.nodes():
            assert isinstance(node, Killable)
            assert isinstance(node, Stoppable)
            assert isinstance(node, Pausable)
        print(f"\nready after {cluster.describe().steps_s}")
        check_cluster(cluster, tmp_path / "logs")
    finally:
        cluster.stop()


@pytest.mark.conformance
def test_a_kill_command_that_does_nothing_gives_no_bite(there: Standing, tmp_path: Path) -> None:
    powers = tmp_path / "powers.toml"
    powers.write_text("[powers]\nkill = 'true'\nrestart = 'true'\n", encoding="ascii")
    topic = "onceproof-nothing"
    with ExistingCluster(
        tmp_path / "cluster", bootstrap=there.bootstrap, client_config=there.client_config, powers=powers
    ) as cluster:
        cluster.create_topic(topic, TopicSettings())
        arena = RunArena(cluster, topic, f"{topic}-group", workers=None)  # type: ignore[arg-type]
        with Kill().hold(arena, cluster.nodes()[:1]) as bite:
            assert not bite.bit
            assert "broker-1 still runs" in bite.proof


@pytest.mark.conformance
def test_only_the_prefix_is_touched_and_a_crash_is_swept(there: Standing, tmp_path: Path) -> None:
    cluster = used(there, tmp_path / "cluster")
    admin = AdminClient(connection.settings(cluster))
    admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(20)
    before = names_there(there, tmp_path)
    runs = tmp_path / "runs"
    prove = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "prove", "--quick", *there.words(), "--powers", str(there.powers),
         "--runs", str(runs)],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: list(runs.glob("*/*/ledger/*.attempts")), 200.0, "no producer started")
    finally:
        prove.send_signal(signal.SIGKILL)
        prove.wait()
    left = names_there(there, tmp_path) - before
    assert len(left) >= 2, "a topic under test and one for probes"
    with cluster:  # the next start sweeps
        now = names_there(there, tmp_path)
        assert not left & now
        assert "orders" in now
        for act in (
            lambda: cluster.create_topic("mine", TopicSettings()),
            lambda: cluster.delete_topic("orders"),
            lambda: Administrator(cluster, "orders"),
        ):
            with pytest.raises(UsageError, match="onceproof only touches names"):
                act()
    assert names_there(there, tmp_path) == before
    admin.delete_topics(["orders"])["orders"].result(20)


@pytest.mark.conformance
def test_sweep_deletes_topics_and_groups_with_the_prefix(there: Standing, tmp_path: Path) -> None:
    admin = AdminClient(connection.settings(used(there, tmp_path / "cluster")))
    for name in ("sweepme-one", "keepme"):
        admin.create_topics([NewTopic(name, 1, 3)])[name].result(20)
    words = [
        "--bootstrap",
        there.bootstrap,
        "--client-config",
        str(there.client_config),
        "--prefix",
        "sweepme-",
    ]
    shown = onceproof("sweep", "--runs", tmp_path, *words)  # no terminal for the question
    assert shown.returncode == 2
    assert "sweepme-one" in shown.stdout
    assert "--yes" in shown.stderr
    assert "sweepme-one" in names_there(there, tmp_path)
    done = onceproof("sweep", "--runs", tmp_path, "--yes", *words)
    assert done.returncode == 0, done.stderr
    assert "deleted topic sweepme-one" in done.stdout
    wait_until(lambda: "sweepme-one" not in names_there(there, tmp_path), 10.0, "still there")
    assert "keepme" in names_there(there, tmp_path)
    admin.delete_topics(["keepme"])["keepme"].result(20)
