"""The Spark session: gone with its process, however that ends; with or without its archive, here or on a cluster."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.cli import main
from harness.ledger.literal_run import LiteralRun
from harness.reconcile.spark import jvm as spark_jvm
from harness.reconcile.spark import session
from harness.reconcile.spark.masters import place
from harness.waiting import wait_until

PROGRAM = """
from harness.reconcile.spark import session
spark = session.spark()
assert spark is session.spark()
print(spark.sparkContext._gateway.proc.pid, spark.range(3).count(), flush=True)
input()
"""


@pytest.mark.spark
def test_the_jvm_ends_with_a_killed_process_and_leaves_nothing_in_the_current_folder(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(tmp_path)}
    folder = tmp_path / "here"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        jvm, count = process.stdout.readline().split()
        assert count == "3"
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert process.stderr is not None
        wait_until(lambda: not _runs(int(jvm)), timeout_s=20, describe=lambda: f"the JVM {jvm} still runs")
        assert process.stderr.read() == ""
    assert list(folder.iterdir()) == []


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


# The archive of the set-up.

ARCHIVED = """
import logging, sys
from pathlib import Path
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(name)s %(message)s")
logging.getLogger("py4j").setLevel(logging.ERROR)
from harness.provision import spark_archive
from harness.reconcile.spark import session
classes, java, *options = sys.argv[1:]
options = tuple(options) or spark_archive.launcher_options(Path(java))
archive = spark_archive.SparkArchive(Path(classes), spark_archive.classpath(), options)
spark_archive.find_spark_archive = lambda: archive
spark = session.spark()
command = open(f"/proc/{spark.sparkContext._gateway.proc.pid}/cmdline").read()
print("SharedArchiveFile" in command, spark.range(3).count())
jvm = spark.sparkContext._gateway.proc
session.stop()
print(jvm.poll())
print(session.spark().range(4).count())
"""


@pytest.mark.spark
@pytest.mark.parametrize("unusable", ["an archive of nothing", "options that Java refuses"])
def test_a_session_starts_all_the_same_when_its_archive_is_unusable(unusable: str, tmp_path: Path) -> None:
    from harness.provision import java

    classes = tmp_path / "classes.jsa"
    classes.write_bytes(b"not an archive")
    refused = unusable != "an archive of nothing"
    words = [str(classes), str(java()), *(["-Xno-such-option"] if refused else [])]
    ended = subprocess.run(
        [sys.executable, "-c", ARCHIVED, *words], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    # Nothing but what the program printed: a JVM complains of a bad archive on stdout.
    assert ended.stdout.split() == [str(not refused), "3", "0", "4"], ended.stderr
    notes = [line for line in ended.stderr.splitlines() if "class archive" in line]
    assert len(notes) == (2 if refused else 0)


def test_a_session_of_this_machine_without_an_archive_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.provision import spark_archive

    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: None)
    monkeypatch.setattr(spark_archive, "obstacle", lambda: "/cache cannot be written")
    spark_jvm.report_missing_archive("spark://127.0.0.1:7077")
    assert capsys.readouterr().err == ""
    spark_jvm.report_missing_archive("local[*]")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "/cache cannot be written" in printed.err
    assert "./onceproof setup" in printed.err
    monkeypatch.setattr(spark_archive, "find_spark_archive", lambda: object())
    spark_jvm.report_missing_archive("local[*]")
    assert capsys.readouterr().err == ""


# Masters.


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("spark://127.0.0.1:{port}", "no Spark master answers there: 127.0.0.1:{port} Connection refused"),
        ("spark://127.0.0.1", "expected spark://HOST:PORT"),
        ("mesos://127.0.0.1:5050", "choose one of local[N], spark://HOST:PORT, yarn, k8s://URL"),
    ],
)
def test_a_bad_master_is_one_line_and_bad_use(
    master: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    run = LiteralRun(tmp_path)
    run.session(1)
    folder = run.finish()
    began = time.monotonic()
    assert main(["reconcile", str(folder.path), "--master", master.format(port=port)]) == 2
    assert time.monotonic() - began < 20
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message.format(port=port) in err
    assert not session.started()


def test_where_the_driver_listens_follows_the_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_LOCAL_IP", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS"):
        monkeypatch.setenv(name, "theirs")  # so that it is put back, whatever happens to it here
    on_loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    local = place("local[2]", "1g", tmp_path)
    assert local.items() >= on_loopback.items()
    assert local["spark.python.daemon.module"] == "harness.reconcile.spark.daemon"
    assert place("spark://127.0.0.1:7077", "1g", tmp_path) == {**on_loopback, "spark.executor.memory": "1g"}
    assert place("spark://127.0.0.1:7077,10.1.2.3:7077", "1g", tmp_path) == {"spark.executor.memory": "1g"}
    assert place("yarn", "2g", tmp_path) == {"spark.executor.memory": "2g"}


def test_a_setting_without_a_value_and_no_run_are_bad_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reconcile", "x", "--conf", "spark.cores.max"]) == 2
    assert "--conf spark.cores.max: write NAME=VALUE" in capsys.readouterr().err
    assert main(["reconcile"]) == 2
    assert "no RUN given" in capsys.readouterr().err


def test_the_package_contains_the_job_and_imports_from_the_zip_alone(tmp_path: Path) -> None:
    assert main(["reconcile", "--package", str(tmp_path / "onceproof.zip")]) == 0
    program = "import harness.assessment, harness.reconcile.run_locations, reports.summary; from harness import registry; print(harness.assessment.__file__, registry.names('finder'))"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "onceproof.zip")},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert str(tmp_path / "onceproof.zip") in ended.stdout
    assert "'lost'" in ended.stdout


def test_sealing_only_makes_tables_and_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = LiteralRun(tmp_path)
    run.session(1)
    run.write(1, 3)
    folder = run.finish()
    assert main(["reconcile", "--seal-only", str(folder.path)]) == 0
    assert capsys.readouterr().out == f"{folder.tables}\n"
    assert (folder.tables / "sealed.json").is_file()
    assert not folder.verdict.exists()
    assert main(["reconcile", "--seal-only", folder.path.as_uri()]) == 2
    assert not session.started()
