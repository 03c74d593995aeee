"""Format data folders without a JVM for each node.

The output of `kafka.tools.StorageTool format` is the same for all nodes of a version (the first records of the
metadata log), apart from four lines of ids. So the tool runs once per version and its result is kept in the cache.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.clusters.base.broker_properties import render
from harness.errors import ClusterError
from harness.runtime import plain_paths
from harness.runtime.cache import provide, silent

_CHECKPOINT = "bootstrap.checkpoint"
_LIMIT_S = 120.0
Run = Callable[[Sequence[str | Path], Path], tuple[int, str]]


def new_id() -> str:
    """Return a random id in Kafka's format, 22 characters; it never starts with a dash, like an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def run_here(words: Sequence[str | Path], folder: Path) -> tuple[int, str]:
    """Run a tool to its end; return its exit code and its output."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    return done.returncode, done.stderr + done.stdout


def template(java: Path, classpath: str, version: str, run: Run = run_here) -> Path:
    """Return the checkpoint that every node of this version starts from; Kafka's tool makes it if it is missing.

    `run` runs the tool where that Java is, with the folder it writes to.
    """
    folder = provide(
        "storage",
        f"kafka-{version}",
        lambda into: _format(java, classpath, into, run),
        whole=lambda folder: (folder / _CHECKPOINT).is_file(),
        progress=silent,
    )
    return folder / _CHECKPOINT


def fill(data: Path, node_id: int, cluster_id: str, checkpoint: Path) -> None:
    data.mkdir(parents=True)
    shutil.copyfile(checkpoint, data / _CHECKPOINT)
    meta = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id), "directory.id": new_id()}
    (data / "meta.properties").write_text(render(meta), encoding="ascii")


def _format(java: Path, classpath: str, into: Path, run: Run) -> None:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@localhost:21093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://localhost:21092,CONTROLLER://localhost:21093",
        "log.dirs": str(plain_paths.seen_from(into, into / "data")),
    }
    config = into / "format.properties"
    config.write_text(render(settings), encoding="utf-8")
    words: Sequence[str | Path] = [
        java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", classpath,
        "kafka.tools.StorageTool", "format", "-t", new_id(), "-c", config,
    ]  # fmt: skip
    try:
        code, said = run(words, into)
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"Kafka's StorageTool did not end within {_LIMIT_S:g} s") from error
    made = into / "data" / _CHECKPOINT
    if code != 0 or not made.is_file():
        lines = said.strip().splitlines() or ["nothing"]
        raise ClusterError(f"Kafka's StorageTool failed with code {code}: {lines[-1][:300]}")
    made.rename(into / _CHECKPOINT)
    shutil.rmtree(into / "data")
    config.unlink()
