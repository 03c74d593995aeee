"""The steps that benchmarks.reconcile measures, each in a separate process: `python -m benchmarks._engine WHAT FOLDER…`.

The last line of the output is a JSON object with the results. The time of the process until then counts; its end does not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.ledger.rundir import RunDir, read_json


def seal_alone(run: RunDir) -> dict[str, Any]:
    from harness.reconcile.seal.seal import seal

    return {"rows": dict(seal(run).rows)}


def reconcile_sealed(run: RunDir) -> dict[str, Any]:
    """The whole product from a sealed folder on: session, screening, closer look, findings, verdict."""
    from harness.assessment import assess
    from harness.reconcile.spark.session import spark

    with _sealed_before():
        reconciled, judgement = assess(run, spark())
    return {
        "counts": reconciled["counts"],
        "crashed": reconciled["crashed"],
        "verdict": judgement.verdict,
        "seconds": {"reconcile": reconciled["seconds"]},
    }


@contextmanager
def _sealed_before() -> Iterator[None]:
    """Skip sealing, which reconciling would do again: these runs are sealed, and sealing was measured separately."""
    import harness.reconcile.job  # noqa: F401  and with it every module that seals
    from harness.reconcile.seal.seal import seal
    from harness.reconcile.seal.sealed import Sealed

    def stored(run: RunDir) -> Sealed:
        return Sealed.from_json(read_json(run.tables / "sealed.json", "is it sealed?"))

    with ExitStack() as patched:
        users = [m for m in list(sys.modules.values()) if getattr(m, "seal", None) is seal]
        for module in users:
            patched.enter_context(patch.object(module, "seal", stored))
        yield


def query_duckdb(run: RunDir) -> dict[str, Any]:
    from benchmarks._duckdb import reference

    found, seconds = reference(run.tables)
    return {"counts": found, "seconds": seconds}


def many_runs(folders: Sequence[Path], sample: int) -> dict[str, Any]:
    """Whole runs, sealing included, in a warm session: some one by one, then all in one job."""
    from harness.assessment import assess, assess_many
    from harness.reconcile.spark.session import spark

    session = spark()
    runs = [RunDir(folder) for folder in folders]
    for run in (runs[0], runs[-1]):  # with findings and without
        assess(run, session)
    counts = {}
    began = time.perf_counter()
    for run in runs[:sample]:
        counts[str(run.path)] = assess(run, session)[0]["counts"]
    alone = time.perf_counter() - began
    began = time.perf_counter()
    together = assess_many(runs, session)
    seconds = time.perf_counter() - began
    found = {str(run.path): reconciled["counts"] for run, (reconciled, _) in zip(runs, together, strict=True)}
    same = all(found[path] == one for path, one in counts.items())
    return {"one_by_one_s": alone, "sample": sample, "together_s": seconds, "counts": found, "same": same}


def same_run_again(run: RunDir, times: int) -> dict[str, Any]:
    """The whole product on one run, several times in one session: seconds and CPU seconds of each."""
    from benchmarks._process import family_cpu_s
    from harness.assessment import assess
    from harness.reconcile.spark.session import spark

    counts, seconds, cpu_s = [], [], []
    for _ in range(times):
        began, used = time.perf_counter(), family_cpu_s()
        counts.append(assess(run, spark())[0]["counts"])
        seconds.append(round(time.perf_counter() - began, 3))
        cpu_s.append(round(family_cpu_s() - used, 2))
    return {"counts": counts, "seconds": seconds, "cpu_s": cpu_s, "crashed": {}}


def reconcile_tables(run: RunDir) -> dict[str, Any]:
    """A run that has only its sealed tables."""
    from harness.reconcile.job import reconcile_many
    from harness.reconcile.seal.sealed import Sealed
    from harness.reconcile.spark.session import spark

    sealed = Sealed.from_json(read_json(run.tables / "sealed.json", "is it sealed?"))
    (found,) = reconcile_many([run], spark(), sealed=[sealed])
    return {name: found[name] for name in ("counts", "crashed")} | {
        "seconds": {"reconcile": found["seconds"]}
    }


def main(argv: list[str]) -> int:
    what, folders = argv[0], [Path(folder) for folder in argv[1:]]
    if what == "many":
        result = many_runs([Path(line) for line in folders[0].read_text().splitlines()], int(argv[2]))
    elif what == "again":
        result = same_run_again(RunDir(folders[0]), int(argv[2]))
    else:
        asked = {
            "seal": seal_alone,
            "reconcile": reconcile_sealed,
            "duckdb": query_duckdb,
            "tables": reconcile_tables,
        }
        result = asked[what](RunDir(folders[0]))
    print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
