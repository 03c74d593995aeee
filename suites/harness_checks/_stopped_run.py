"""A harness that is killed at a chosen step of a run: `python -m suites.harness_checks._stopped_run BOOTSTRAP RUNS STEP`.

It runs one scenario on a running cluster, and kills itself with SIGKILL right after the event of that step, so that the
moment does not depend on the load of the machine.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.clusters.existing import ExistingCluster
from harness.execute import execute
from harness.ledger.journal import EventLog
from harness.processes import ownership
from suites.harness_checks.harness_failures import CLEAN


def main(bootstrap: str, runs: Path, step: str) -> None:
    write = EventLog.write

    def write_and_die(log: EventLog, kind: str, **fields: Any) -> None:
        write(log, kind, **fields)
        if kind == "step" and fields["step"] == step:
            os.kill(os.getpid(), signal.SIGKILL)

    with (
        patch.object(EventLog, "write", write_and_die),
        ExistingCluster(ownership.new_cluster_folder(runs), bootstrap=bootstrap) as cluster,
    ):
        execute(CLEAN, cluster, runs)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
