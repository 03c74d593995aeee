"""The start of Spark's JVM: with the class archive of the set-up if there is one, otherwise as pyspark does it.

In both cases the JVM's standard input is a pipe from this process, and the JVM ends when the pipe closes.
"""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import ClusterError, OnceproofError, SetupError
from harness.processes import child_process
from harness.provision import background_archive, spark_archive
from harness.provision.external_tool import last_words
from harness.provision.spark_archive import SparkArchive
from harness.reconcile.spark.masters import first_line, on_cluster
from harness.runtime.cache import to_stderr
from harness.runtime.disk_space import room_error

if TYPE_CHECKING:
    from collections.abc import Iterator

START_LIMIT_S = 60.0
TRAINING_START_LIMIT_S = 600.0  # with the lowest priority, beside a cluster that starts
MAIN = "org.apache.spark.deploy.SparkSubmit"
# Environment variables with which Spark's launcher adds more to the command line than the archive was made with.
_LEFT_TO_SPARK = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_log = logging.getLogger(__name__)


def launch(settings: Mapping[str, str], scratch: Path, train: Path | None = None) -> Any:
    """Return pyspark's gateway to a new JVM with these settings. With `train` the JVM writes a class archive there at its end."""
    _ignore_another_spark()
    if train is not None:
        found = spark_archive.launcher_options(Path(os.environ["JAVA_HOME"], "bin", "java"))
        dump = [f"-XX:ArchiveClassesAtExit={train}"]
        return _direct(settings, scratch, spark_archive.classpath(), found, dump, TRAINING_START_LIMIT_S)
    archive = _usable(settings)
    if archive is not None:
        shared = [f"-XX:SharedArchiveFile={archive.classes}", "-Xshare:auto"]
        try:
            return _direct(settings, scratch, archive.classpath, archive.options, shared)
        except SetupError as error:
            _log.debug("Spark starts without its class archive: %s", error)
    return _by_submit(settings, scratch)


def not_started(error: Exception, master: str, scratch: Path) -> OnceproofError:
    """Return a one-line error for a session that could not be started; Spark's log is deleted with its scratch folder."""
    if full := room_error(error, scratch):
        return full
    if isinstance(error, ClusterError):
        return error
    reason = first_line(error)
    with suppress(OSError):
        if (log := scratch / "stderr").stat().st_size:
            reason = f"{reason}: {last_words(log)}"
    if on_cluster(master):
        return ClusterError(f"{master}: no session there: {reason}")
    return SetupError(f"Spark did not start: {reason}; see ./onceproof doctor and docs/spark.md")


def report_missing_archive(master: str) -> None:
    """Print one line for a session of this machine that could have started sooner with a class archive."""
    if on_cluster(master) or any(os.environ.get(name) for name in _LEFT_TO_SPARK):
        return
    if spark_archive.find_spark_archive() is None:
        to_stderr(background_archive.without(spark_archive.obstacle() or "none was made yet"))


def _ignore_another_spark() -> None:
    """Remove settings of another Spark on this machine from the environment: only the Spark of pyspark is used."""
    if os.environ.pop("PYSPARK_SUBMIT_ARGS", ""):
        print("onceproof: PYSPARK_SUBMIT_ARGS is ignored; `reconcile` has --conf NAME=VALUE", file=sys.stderr)
    for name in ("SPARK_HOME", "SPARK_DIST_CLASSPATH", "SPARK_SUBMIT_OPTS"):
        os.environ.pop(name, None)


def _usable(settings: Mapping[str, str]) -> SparkArchive | None:
    unlike = [name for name in _LEFT_TO_SPARK if os.environ.get(name)]
    unlike += [
        name
        for name in settings
        if name.startswith(
            ("spark.driver.extraClassPath", "spark.driver.extraLibrary", "spark.driver.default")
        )
    ]
    if not settings["spark.master"].startswith("local"):
        unlike.append(settings["spark.master"])
    found = None if unlike else spark_archive.find_spark_archive()
    if found is None:
        why = f"not with {', '.join(unlike)}" if unlike else "there is none; ./onceproof setup makes it"
        _log.debug("Spark starts without its class archive: %s", why)
    return found


def _by_submit(settings: Mapping[str, str], scratch: Path) -> Any:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    # The JVM prints on stderr, before it reads any setting, that it uses an incubator module. That goes to a file, together
    # with Spark's errors; callers get theirs as exceptions anyway.
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with (scratch / "stderr").open("wb") as stderr:
        # A JVM that cannot start prints that on stdout, which is reserved for results.
        return launch_gateway(conf, {"stdout": stderr, "stderr": stderr})  # type: ignore[no-untyped-call]


def _direct(
    settings: Mapping[str, str],
    scratch: Path,
    classpath: str,
    options: tuple[str, ...],
    shared: list[str],
    limit_s: float = START_LIMIT_S,
) -> Any:
    """Run the command that Spark's launcher would run, without its shell scripts and its extra JVM."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    command: list[str | Path] = [java, "-cp", classpath, f"-Xmx{settings['spark.driver.memory']}"]
    # The JVM reports an unusable archive on stdout, which is reserved for results: send all such messages to stderr.
    command += [*options, *shared, "-Xlog:disable", "-Xlog:all=error:stderr"]
    command += shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    command += [f"-Dlog4j2.configurationFile={scratch / 'log4j2.properties'}", MAIN]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    with tempfile.TemporaryDirectory(prefix="gateway-", dir=scratch) as folder:
        connection = Path(folder, "connection")
        environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection), "SPARK_CONNECT_MODE": "0",
                       "SPARK_HOME": str(Path(classpath.partition(os.pathsep)[0]).parent.parent)}  # fmt: skip
        # It ends with this process even while it starts and does not read its standard input yet.
        process = child_process.spawn(
            [*command, "pyspark-shell"], log=scratch / "stderr", env=environment, stdin=subprocess.PIPE
        )
        try:
            _import_meanwhile()
            port, secret = _read_connection(process, connection, limit_s)
            return _connected(process, port, secret)
        except BaseException:
            process.kill()
            process.wait()
            raise


def _import_meanwhile() -> None:
    """Import pandas, which takes half a second, while the JVM starts; pyspark would import it at its first call."""
    import pyspark.sql
    import pyspark.testing.utils  # noqa: F401


def _read_connection(process: subprocess.Popen[bytes], connection: Path, limit_s: float) -> tuple[int, str]:
    """Wait for the connection file and return port and secret. The JVM writes it under another name first, so it is whole."""
    deadline = time.monotonic() + limit_s
    while not connection.is_file():
        if process.poll() is not None:
            raise SetupError(f"Spark's JVM ended with {process.returncode} before it was ready")
        if time.monotonic() > deadline:
            raise SetupError(f"timed out after {limit_s:.0f} s waiting for Spark's JVM")
        time.sleep(0.01)
    content = connection.read_bytes()
    port, length = int.from_bytes(content[:4], "big"), int.from_bytes(content[4:8], "big")
    return port, content[8 : 8 + length].decode()


def _connected(process: subprocess.Popen[bytes], port: int, secret: str) -> Any:
    from pyspark.java_gateway import launch_gateway

    # spark-submit passes a running JVM to its Python child in the same way.
    with _environment(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    gateway.proc = process
    return gateway


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
