"""The manifest of a run: the scenario, the cluster, versions and the machine, written when the run begins."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import __version__
from harness.contracts import Cluster
from harness.ledger import journal
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import Scenario


def begun_manifest(
    run: RunDir,
    scenario: Scenario,
    cluster: Cluster,
    topic: str,
    group: str,
    command: str,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    return {
        "version": journal.VERSION,
        "run_id": run.run_id,
        "run_number": run_number(run.run_id),
        "scenario": scenario.describe(),
        "expected": scenario.expected,
        "control": scenario.control,
        "seed": scenario.seed,
        "topic": topic,
        "group": group,
        "clock": {
            "monotonic_ns": journal.now_ns(),
            "wall": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "unix": time.time(),
        },
        "cluster": cluster.describe().as_data(),
        "versions": {
            "onceproof": __version__,
            "python": platform.python_version(),
            **versions,
            **kafka_version(cluster),
        },
        "machine": {"system": platform.platform(), "cores": _cores(), "memory_gib": _memory_gib()},
        "command": command or " ".join(sys.argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "complete": False,
    }


def kafka_version(cluster: Cluster, before: str | None = None) -> dict[str, str]:
    """Return the version of the brokers, `3.9.2 -> 4.3.1` after an upgrade; empty if the cluster does not report it."""
    now = cluster.describe().kafka_version
    return {"kafka": " -> ".join(dict.fromkeys(filter(None, [before, now])))} if now else {}


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _memory_gib() -> float:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) / 1024**2, 1)
    return 0.0
