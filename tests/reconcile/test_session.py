"""The Spark session: gone with its process, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.waiting import wait_until

PROGRAM = """
from harness.reconcile import session
spark = session.spark()
assert spark is session.spark()
print(spark.sparkContext._gateway.proc.pid, spark.range(3).count(), flush=True)
input()
"""


@pytest.mark.spark
def test_the_jvm_ends_with_a_killed_process_and_leaves_nothing_in_the_current_folder(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
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
