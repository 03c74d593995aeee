"""One Spark session for everything that reconciles in this process: started late, quiet, gone with the process.

The JVM's settings are fixed when it starts, so no other code may start one: `spark()` is the only way to get
a session. It may be called from a background thread while brokers start; the second caller waits for it.
The JVM's standard input is a pipe from this process and pyspark's gateway ends when it closes, so the JVM
ends even if this process is ended by SIGKILL.

By default the session is this machine's alone (`local[*]`). With a cluster's master, kernels run on its executors: they
get this package as a zip, and no job starts before one of them has registered.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness.reconcile.spark.masters import need_answer, need_executors, on_cluster, place, spread
from harness.runtime import plain_paths
from harness.runtime.environment import need_open_files

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

MASTER = "local[*]"
MEMORY = "1200m"  # six brokers and controllers run beside it on small machines
JVM_ENDS_S = 20.0
_SCRATCH = "onceproof-spark-"

_lock = threading.Lock()
_session: SparkSession | None = None

# Settings that the job needs on every master.
FOR_THE_JOB = {
    "spark.sql.session.timeZone": "UTC",
    # Kernels work on whole batches; the default of 10,000 rows costs more calls than work.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # List the folders of many runs here instead of by a job for each table.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    # The default of 100 compiled classes is fewer than one run's questions need: each run would compile all again.
    "spark.sql.codegen.cache.maxEntries": "4000",
    # Threads of Python workers: there is one worker for each core already.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
}

# Errors only. Warnings of a healthy local session (no native Hadoop library, the host's name) do not help.
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n
"""


def spark(
    master: str = MASTER,
    memory: str = MEMORY,
    *,
    python: str | None = None,
    more: Mapping[str, str] | None = None,
    train: Path | None = None,
) -> SparkSession:
    """Return the session of this process, started at the first call.

    `python` is the interpreter of kernels, `more` are settings of Spark that override the defaults; `train` is for the set-up.
    """
    global _session
    with _lock:
        if _session is None:
            _session = _start(master, memory, python, more or {}, train)
        return _session


def started() -> bool:
    """Return True if a session exists already; do not start one."""
    return _session is not None


def stop(limit_s: float = JVM_ENDS_S) -> None:
    """End the session and its JVM. The next call of `spark` starts another one."""
    global _session
    with _lock:
        if _session is not None:
            _session.stop()
            _session = None
            _end_jvm(limit_s)


def adopt(session: SparkSession) -> None:
    """Take the session that spark-submit made as the one of this process."""
    global _session
    with _lock:
        _session = session


def start_in_background() -> threading.Thread:
    """Start the session beside other work. After an error the next call of `spark` tries again."""

    def quietly() -> None:
        try:
            spark()
        except Exception:  # noqa: BLE001  the caller of spark() gets the error again
            return

    thread = threading.Thread(target=quietly, name="start-spark", daemon=True)
    thread.start()
    return thread


def _start(
    master: str, memory: str, python: str | None, more: Mapping[str, str], train: Path | None
) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    from harness.provision import java
    from harness.reconcile.spark import jvm

    need_answer(master)
    need_open_files()
    scratch = _scratch()
    (scratch / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")
    os.environ["JAVA_HOME"] = str(java().parent.parent)
    # The interpreter that Python tasks run in; else Spark takes the path's `python3`.
    os.environ["PYSPARK_PYTHON"] = (
        python or (os.environ.get("PYSPARK_PYTHON") if on_cluster(master) else "") or sys.executable
    )
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {**_settings(master, memory, scratch), **place(master, memory, scratch), **more}
    try:
        started = jvm.launch(settings, scratch, train)
        context = SparkContext(
            conf=SparkConf(loadDefaults=False).setAll(list(settings.items())), gateway=started
        )
        if on_cluster(master):
            need_executors(context, master, settings)
            _ship(context, scratch)
    except Exception as error:
        _end_jvm()
        raise jvm.not_started(error, master, scratch) from error
    except BaseException:
        _end_jvm()
        raise
    session = SparkSession(context)
    if on_cluster(master):
        spread(session)
    return session


def _settings(master: str, memory: str, scratch: Path) -> dict[str, str]:
    return {
        "spark.master": master,
        "spark.app.name": "onceproof",
        "spark.driver.memory": memory,
        # C1 alone: compiling hard does not pay for jobs of a second or two. Without memory it ends, and with it what waits for it:
        # a thread of Spark's scheduler that dies of it would leave a job that never ends.
        "spark.driver.extraJavaOptions": f"-XX:+ExitOnOutOfMemoryError -XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Djava.io.tmpdir={shlex.quote(str(scratch))}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **FOR_THE_JOB,
    }


def _ship(context: SparkContext, scratch: Path) -> None:
    """Send this package to the executors, so that they import the same version of the kernels."""
    from harness.reconcile.spark.package import make_package

    context.addPyFile(str(make_package(scratch / "onceproof.zip")))


def _end_jvm(limit_s: float = JVM_ENDS_S) -> None:
    """End the JVM: pyspark would keep it, with its settings, for the next session."""
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _scratch() -> Path:
    """Return a folder for everything that Spark writes, removed at exit; remove those of killed processes now."""
    root = plain_paths.plain_temp_folder()
    for left in root.glob(f"{_SCRATCH}*"):
        owner = left.name.removeprefix(_SCRATCH).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-", dir=root))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
