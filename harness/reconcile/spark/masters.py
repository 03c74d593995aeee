"""Masters of Spark: the settings that each kind needs, and the check that it answers."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ClusterError, UsageError, WaitTimeout
from harness.waiting import wait_until

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MASTER_ANSWERS_S = 5.0
EXECUTORS_COME_S = 120.0  # a cluster that has to start machines or pods for them needs a while
LEAST_PARTS = 4
_PARTS = "spark.sql.shuffle.partitions"
_LONGEST_SOCKET = 107  # bytes of a path, by the kernel
_SOCKET_NAME = len("/.") + 36 + len(".sock")
_ON_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
# Python workers of this machine are forked from our own daemon, which finds this project whatever the current folder
# contains. Executors of a cluster get the project only with their first task.
_FORKED_READY = {
    "spark.python.daemon.module": "harness.reconcile.spark.daemon",
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[3]),
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}


def on_cluster(master: str) -> bool:
    return not master.startswith("local")


def place(master: str, memory: str, scratch: Path) -> dict[str, str]:
    """Return the settings that depend on the master: on this machine everything stays on loopback and in our folder."""
    if not on_cluster(master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["SPARK_CONF_DIR"] = str(scratch)
        return {
            **_ON_LOOPBACK,
            **_closed(scratch),
            **_FORKED_READY,
            "spark.local.dir": str(scratch / "local"),
            _PARTS: str(LEAST_PARTS),
        }
    os.environ.setdefault("SPARK_CONF_DIR", str(scratch))  # a cluster's own defaults are heeded
    os.environ["SPARK_LOCAL_DIRS"] = str(scratch / "local")  # the driver's; executors have their own
    loopback = all(_is_loopback(host) for host, _ in _hosts(master)) if _hosts(master) else False
    return {**(_ON_LOOPBACK if loopback else {}), "spark.executor.memory": memory}


def _closed(scratch: Path) -> dict[str, str]:
    """Return settings that keep other users of this machine out. Spark makes the secret, and it never leaves its JVM.

    Python and the JVM talk over Unix sockets in our folder, which only this user can enter; if its name is too long
    for them, over loopback, where each side has to know a token.
    """
    settings = {"spark.authenticate": "true"}
    if len(str(scratch).encode()) + _SOCKET_NAME <= _LONGEST_SOCKET:
        settings |= {
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(scratch),
        }
    return settings


def _hosts(master: str) -> list[tuple[str, int]]:
    """Return hosts and ports of a standalone master; it may have several."""
    if not master.startswith("spark://"):
        return []
    found = re.findall(r"(?:^|,)\[?([^,\[\]]+?)\]?:(\d+)(?=,|$)", master.removeprefix("spark://"))
    if not found:
        raise UsageError(f"--master {master}: expected spark://HOST:PORT")
    return [(host, int(port)) for host, port in found]


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def need_answer(master: str) -> None:
    """Raise if a standalone master does not answer: Spark would try for a minute and print a page."""
    if not re.match(r"local(\[|$)|spark://|yarn$|k8s://", master):
        raise UsageError(
            f"--master {master}: unknown master; choose one of local[N], spark://HOST:PORT, yarn, k8s://URL"
        )
    reasons = []
    for host, port in _hosts(master):
        try:
            socket.create_connection((host, port), MASTER_ANSWERS_S).close()
        except OSError as error:
            reasons.append(f"{host}:{port} {error.strerror or error}")
        else:
            return
    if reasons:
        raise ClusterError(f"{master}: no Spark master answers there: {', '.join(reasons)}")


def need_executors(context: SparkContext, master: str, settings: Mapping[str, str]) -> None:
    """Raise if no executor comes: a job would wait for ever and say so only in a log."""
    if settings.get("spark.dynamicAllocation.enabled") == "true":
        return  # they come when there is work
    state = context._jsc.sc()
    try:
        wait_until(
            lambda: state.isStopped() or state.getExecutorMemoryStatus().size() > 1,
            EXECUTORS_COME_S,
            "an executor; are there workers with enough memory and free cores?",
            every_s=0.2,
        )
    except WaitTimeout as error:
        raise ClusterError(f"{master}: {error}") from error
    if state.isStopped():
        raise ClusterError(f"{master}: the Spark master did not accept this application")


def spread(spark: SparkSession) -> None:
    """Set the number of shuffle partitions to keep the granted cores busy, unless the user has set it."""
    if spark.sparkContext.getConf().get(_PARTS) is None:
        spark.conf.set(_PARTS, str(max(LEAST_PARTS, 2 * spark.sparkContext.defaultParallelism)))


def executors_work(context: SparkContext) -> list[str]:
    """Describe what each executor of a cluster has done so far, a line each. The driver of local mode is not an executor."""
    seen = context._jsc.sc().statusStore().executorList(False)
    return sorted(
        f"executor {one.id()} at {one.hostPort()}: {one.totalTasks()} tasks, {one.totalDuration() / 1000:.1f} s"
        for one in (seen.apply(number) for number in range(seen.size()))
        if one.id() != "driver"
    )


def first_line(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    text = str(error if cause is None else cause.toString()).strip()
    return text.splitlines()[0] if text else type(error).__name__
