"""The process from which Spark forks its Python workers in local mode, with the modules of the kernels imported.

`python -m harness.reconcile.spark.daemon pyspark.worker`, started by Spark (`spark.python.daemon.module`). With pyspark's own
daemon every worker imports pandas, pyarrow and the kernels for itself, which costs more than screening a small run.

Only modules that start no thread that a worker would need are imported before the fork. polars is not: its import starts a
thread, which a fork does not copy, and workers need polars only when very many rows are in doubt. pyarrow's allocator
has a thread, too, but handles forks itself.

An import that fails is one line on stderr (in local mode Spark's log), not the end of the daemon: the task that needs
the module fails with Python's own words, as it would with pyspark's daemon.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

MODULES = (
    "numpy",
    "pandas",  # by pyspark, before it maps Arrow batches
    "pyarrow.parquet",
    "pyspark.worker",
    "harness.reconcile.screen.screen",
    "harness.reconcile.select.pick",
)


def import_early(names: Sequence[str] = MODULES) -> list[str]:
    """Import these modules; return a line for each that failed."""
    failed = []
    # Spark reads the daemon's address from its standard output: nothing else may be printed there.
    with redirect_stdout(sys.stderr):
        for name in names:
            try:
                importlib.import_module(name)
            except Exception as error:  # noqa: BLE001  the task that needs it reports it
                reason = " ".join(str(error).split())
                failed.append(f"{name} was not imported before the fork: {type(error).__name__}: {reason}")
    return failed


def main() -> None:
    for line in import_early():
        print(f"onceproof: {line}", file=sys.stderr, flush=True)
    # Workers collect garbage after every task; frozen modules are not traversed, so their pages are not copied.
    gc.collect()
    gc.freeze()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
