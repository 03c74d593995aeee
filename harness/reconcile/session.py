"""One Spark session for everything that reconciles in this process: started late, quiet, gone with the process.

The JVM's settings are fixed when it starts, so nobody else may start one: `spark()` is the only way to get
a session. It may be called from a background thread while brokers start; the second caller waits for it.
The JVM's standard input is a pipe from this process and pyspark's gateway ends when it closes, so the JVM
goes even when this process is ended by SIGKILL.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[*]"
MEMORY_MB = 1500  # six brokers and controllers run beside it on small machines
SHUFFLE_PARTITIONS = 4
_SCRATCH = "onceproof-spark-"

_lock = threading.Lock()
_session: SparkSession | None = None

# Errors only. Warnings of a healthy local session (no native Hadoop library, the host's name) help nobody.
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %p %c{1}: %m%n
"""


def spark(master: str = MASTER, memory_mb: int = MEMORY_MB) -> SparkSession:
    """The session of this process, started at the first call. Later calls get the same one."""
    global _session
    with _lock:
        if _session is None:
            _session = _start(master, memory_mb)
        return _session


def started() -> bool:
    """Whether a session is there already, without starting one."""
    return _session is not None


def stop() -> None:
    """End the session and its JVM. The next call of `spark` starts another one."""
    global _session
    with _lock:
        if _session is not None:
            _session.stop()
            _session = None


def start_in_background() -> threading.Thread:
    """Start the session beside other work. An error shows when `spark` is called, which tries again."""

    def quietly() -> None:
        try:
            spark()
        except Exception:  # noqa: BLE001  whatever it is, the caller of spark() meets it again
            return

    thread = threading.Thread(target=quietly, name="start-spark", daemon=True)
    thread.start()
    return thread


@contextmanager
def for_few_rows(spark: SparkSession) -> Iterator[None]:
    """For queries over few rows: one task a stage, planned once. Measured: 4.2 s instead of 5.8 s a closer look."""
    settings = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _start(master: str, memory_mb: int) -> SparkSession:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from harness.provision import java

    scratch = _scratch()
    (scratch / "log4j2.properties").write_text(_LOG4J, encoding="utf-8")
    os.environ["JAVA_HOME"] = str(java().parent.parent)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_CONF_DIR"] = str(scratch)
    # The interpreter that Python tasks, should there be any, run in; else Spark takes the path's `python3`.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.master": master,
        "spark.app.name": "onceproof",
        "spark.driver.memory": f"{memory_mb}m",
        # C1 alone: compiling hard does not pay for jobs of a second or two.
        "spark.driver.extraJavaOptions": f"-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Djava.io.tmpdir={scratch}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
        "spark.sql.session.timeZone": "UTC",
        # Kernels work on whole batches; the default of 10,000 rows costs more calls than work.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # List the folders of many runs here instead of by a job for each table.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
        # The default of 100 compiled classes is fewer than one run's questions need: each run would compile all again.
        "spark.sql.codegen.cache.maxEntries": "4000",
    }
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    # The JVM says on stderr, before any setting is read, that it uses an incubator module. That goes to a file,
    # together with Spark's errors; those that concern a caller come back to it as exceptions anyway.
    with (scratch / "stderr").open("wb") as stderr:
        gateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]
    context = SparkContext(conf=conf, gateway=gateway)
    return SparkSession(context)


def _scratch() -> Path:
    """A folder for all that Spark writes, removed at exit; those of processes that were killed go now."""
    root = Path(tempfile.gettempdir())
    for left in root.glob(f"{_SCRATCH}*"):
        owner = left.name.removeprefix(_SCRATCH).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{os.getpid()}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
