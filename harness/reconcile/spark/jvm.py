"""Starts Spark's JVM: with the class archive of the set-up where there is one, else as pyspark does it.

Both ways the JVM's standard input is a pipe from this process, and it ends when that closes.
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
# What makes Spark's launcher put more into the command line than the archive's options tell.
_LEFT_TO_SPARK = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_log = logging.getLogger(__name__)


def launch(settings: Mapping[str, str], scratch: Path, train: Path | None = None) -> Any:
    """pyspark's gateway to a new JVM with these settings; `train` has it leave a class archive there when it ends."""
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
    """The one line about a session that could not be started; Spark's own words go away with its scratch folder."""
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
    """Spark is the one that pyspark brings: another one on this machine, or options meant for it, would not fit."""
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

    # The JVM says on stderr, before any setting is read, that it uses an incubator module. That goes to a file,
    # together with Spark's errors; those that concern a caller come back to it as exceptions anyway.
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with (scratch / "stderr").open("wb") as stderr:
        # A JVM that cannot start says so on stdout, which belongs to results.
        return launch_gateway(conf, {"stdout": stderr, "stderr": stderr})  # type: ignore[no-untyped-call]


def _direct(
    settings: Mapping[str, str],
    scratch: Path,
    classpath: str,
    options: tuple[str, ...],
    shared: list[str],
    limit_s: float = START_LIMIT_S,
) -> Any:
    """The command that Spark's launcher would come to, without shell scripts and a JVM to find it."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    command: list[str | Path] = [java, "-cp", classpath, f"-Xmx{settings['spark.driver.memory']}"]
    # An archive that does not fit is said on stdout, which belongs to results: all such words go to stderr.
    command += [*options, *shared, "-Xlog:disable", "-Xlog:all=error:stderr"]
    command += shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    command += [f"-Dlog4j2.configurationFile={scratch / 'log4j2.properties'}", MAIN]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    with tempfile.TemporaryDirectory(prefix="gateway-", dir=scratch) as folder:
        told = Path(folder, "told")
        environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told), "SPARK_CONNECT_MODE": "0",
                       "SPARK_HOME": str(Path(classpath.partition(os.pathsep)[0]).parent.parent)}  # fmt: skip
        # It dies with us also while it starts, when it does not look at its standard input yet.
        process = child_process.spawn(
            [*command, "pyspark-shell"], log=scratch / "stderr", env=environment, stdin=subprocess.PIPE
        )
        try:
            _import_meanwhile()
            port, secret = _told(process, told, limit_s)
            return _connected(process, port, secret)
        except BaseException:
            process.kill()
            process.wait()
            raise


def _import_meanwhile() -> None:
    """pyspark imports pandas at its first call to the JVM, half a second; now the JVM is busy starting anyway."""
    import pyspark.sql
    import pyspark.testing.utils  # noqa: F401


def _told(process: subprocess.Popen[bytes], told: Path, limit_s: float) -> tuple[int, str]:
    """The JVM writes the file whole: under another name first."""
    deadline = time.monotonic() + limit_s
    while not told.is_file():
        if process.poll() is not None:
            raise SetupError(f"Spark's JVM ended with {process.returncode} before it was ready")
        if time.monotonic() > deadline:
            raise SetupError(f"Spark's JVM was not ready within {limit_s:.0f} s")
        time.sleep(0.01)
    content = told.read_bytes()
    port, length = int.from_bytes(content[:4], "big"), int.from_bytes(content[4:8], "big")
    return port, content[8 : 8 + length].decode()


def _connected(process: subprocess.Popen[bytes], port: int, secret: str) -> Any:
    from pyspark.java_gateway import launch_gateway

    # The way in which spark-submit itself tells its Python child of a JVM that runs already.
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
