"""The same runs on a real Spark cluster, by spark-submit and through Hadoop's file systems: the same verdicts.

A standalone master and two workers from the pyspark package, each on its own loopback address. Opt-in
(`./onceproof tox -e cluster`): eight JVMs take their time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.processes import child_process
from harness.provision import java
from harness.reconcile.spark.package import ROOT, make_package
from harness.waiting import wait_until
from tests.reconcile.cases import CASES

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

CHOSEN = (
    "consistent",
    "consistent_transactions",
    "lost",
    "duplicated",
    "reordered",
    "undelivered",
    "aborted_read",
)
HELPED_S = 900.0  # on a busy machine; half a minute on an idle one
Results = Mapping[str, Mapping[str, Any]]


def test_planted_anomalies_are_found_in_local_mode(local: Results) -> None:
    """The other modes are compared with these results, so they must not be empty."""
    anomalies = {name: {row["anomaly"] for row in result["findings"]} for name, result in local.items()}
    assert anomalies["consistent"] == anomalies["consistent_transactions"] == set()
    for name in ("lost", "duplicated", "reordered", "undelivered", "aborted_read"):
        assert name in anomalies[name]
    assert {result["verdict"]["verdict"] for result in local.values()} >= {"HELD", "VIOLATED"}


def test_a_standalone_master_finds_the_same(
    local: Results, ledgers: Path, tmp_path: Path, master: str
) -> None:
    runs = copied(ledgers, tmp_path)
    ended = onceproof("reconcile", str(runs), "--master", master, "--memory", "1g", cwd=tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "VIOLATED" in ended.stdout
    assert read(runs) == local
    work = re.findall(r"^spark: executor (\d+) at \S+: (\d+) tasks", ended.stderr, re.MULTILINE)
    print(ended.stderr)
    assert len(work) == 2, ended.stderr
    assert all(int(tasks) > 0 for _, tasks in work), "one of the workers did nothing"


def test_spark_submit_with_only_the_zip_finds_the_same(
    local: Results, ledgers: Path, tmp_path: Path, master: str
) -> None:
    runs = copied(ledgers, tmp_path)
    entry = shutil.copy(ROOT / "harness/spark_submit.py", tmp_path / "entry.py")
    zipped = make_package(tmp_path / "onceproof.zip")
    settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                "spark.executor.memory": "1g", "spark.ui.enabled": "false"}  # fmt: skip
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    environment = {name: value for name, value in spark_environment().items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        [spark_program("spark-submit"), "--master", master, *words, "--py-files", zipped, entry, runs, "--json"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HELPED_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    rows = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert {Path(one["run"]).parent.name: one["verdict"] for one in rows} == {
        name: result["verdict"]["verdict"] for name, result in local.items()
    }
    assert read(runs) == local


def test_runs_on_a_hadoop_file_system_give_the_same_results(
    local: Results, ledgers: Path, tmp_path: Path, master: str
) -> None:
    """Half of the folders have only tables, as uploaded after sealing; the other half only ledgers."""
    runs = copied(ledgers, tmp_path)
    sealed = [next((runs / name).iterdir()) for name in CHOSEN[::2]]
    ended = onceproof("reconcile", "--seal-only", *map(str, sealed), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    for folder in sealed:
        assert not (folder / "verdict.json").exists()
        shutil.rmtree(folder / "ledger")
    ended = onceproof(
        "reconcile", runs.as_uri(), "--master", master, "--memory", "1g", "--json", cwd=tmp_path
    )
    assert ended.returncode == 1, ended.stderr
    assert {json.loads(line)["run"].rsplit("/", 2)[-2] for line in ended.stdout.splitlines()} == set(CHOSEN)
    assert read(runs) == local
    for folder in sealed:
        assert not (folder / "ledger").exists()
    # Beside the findings Spark itself keeps checksums, as in local mode; they move along with them.
    left = [path.name for path in runs.rglob(".*") if path.parent.name != "findings.parquet"]
    assert left == [], "drafts or checksums were left"


def test_a_hadoop_file_system_needs_no_cluster(local: Results, ledgers: Path, tmp_path: Path) -> None:
    runs = copied(ledgers, tmp_path)
    ended = onceproof("reconcile", runs.as_uri(), cwd=tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert read(runs) == local
    again = onceproof("reconcile", f"{runs.as_uri()}/nowhere", "no-such-kind://x/y", cwd=tmp_path)
    assert again.returncode == 2
    assert "nowhere: no run folder found" in again.stderr


def test_a_listener_that_is_no_master_is_one_line_and_no_hang(ledgers: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        url = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        ended = onceproof("reconcile", str(ledgers), "--master", url, cwd=tmp_path)
    assert ended.returncode == 2
    lines = ended.stderr.splitlines()
    assert len(lines) == 1, ended.stderr
    assert url in lines[0]
    assert time.monotonic() - began < 200


# --- the cluster ---


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A standalone master with two workers of one core; they end with this process, however it ends."""
    folder = tmp_path_factory.mktemp("spark")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    with daemon(folder / "master.log", "master.Master", "--host", "127.0.0.1", "--port", str(port)) as log:
        wait_for(log, "I have been elected leader")
        workers = [
            ("worker.Worker", "--host", f"127.0.0.{number}", "--cores", "1", "--memory", "2g",
             "--work-dir", str(folder / f"work-{number}"), url)
            for number in (2, 3)
        ]  # fmt: skip
        with daemon(folder / "2.log", *workers[0]) as first, daemon(folder / "3.log", *workers[1]) as second:
            wait_for(first, "Successfully registered with master")
            wait_for(second, "Successfully registered with master")
            yield url


@contextmanager
def daemon(log: Path, name: str, *words: str) -> Iterator[Path]:
    host = words[words.index("--host") + 1]
    process = child_process.spawn(
        [spark_program("spark-class"), f"org.apache.spark.deploy.{name}", "--webui-port", "0", *words],
        log=log,
        env={**spark_environment(), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "512m"},
        cwd=log.parent,
    )
    try:
        yield log
    finally:
        process.terminate()  # a worker ends its executors on its way out
        try:
            process.wait(20)
        finally:
            child_process.end(process)


def wait_for(log: Path, words: str) -> None:
    def said() -> bool:
        return log.exists() and words in log.read_text(errors="replace")

    wait_until(said, 90, lambda: f"{words!r} in {log}: {log.read_text(errors='replace')[-500:]}")


def spark_program(name: str) -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / name


def spark_environment() -> dict[str, str]:
    return {**os.environ, "JAVA_HOME": str(java().parent.parent), "PYSPARK_PYTHON": sys.executable}


# --- the runs ---


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folders as a run leaves them: nothing is sealed or judged."""
    root = tmp_path_factory.mktemp("ledgers") / "runs"
    for name in CHOSEN:
        replace(CASES[name](root)[0], name=name).finish()
    return root


@pytest.fixture(scope="module")
def local(ledgers: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("local")
    runs = copied(ledgers, folder)
    ended = onceproof("reconcile", str(runs), cwd=folder)
    assert ended.returncode == 1, ended.stderr
    return read(runs)


def copied(ledgers: Path, folder: Path) -> Path:
    return Path(shutil.copytree(ledgers, folder / "runs"))


def onceproof(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *words],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=HELPED_S, check=False,
    )  # fmt: skip


def read(runs: Path) -> Results:
    """Return everything that reconciling wrote except durations; findings sorted."""
    results = {}
    for folder in sorted(runs.glob("*/*")):
        reconciled = json.loads((folder / "reconciled.json").read_text(encoding="utf-8"))
        del reconciled["seconds"]
        results[folder.parent.name] = {
            "verdict": json.loads((folder / "verdict.json").read_text(encoding="utf-8")),
            "reconciled": reconciled,
            "findings": in_order(pq.read_table(folder / "findings.parquet").to_pylist()),
        }
    return results


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))
