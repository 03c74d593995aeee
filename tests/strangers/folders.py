"""Literal runs that a stranger might hand over, with results as reconciling writes them, made without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.contracts import Mode
from harness.ledger.literal_run import LiteralRun
from harness.ledger.rundir import RunDir, write_json
from harness.verdict import Settings, judge
from tests.reports.sample_pictures import give_pictures

ANOMALIES = ("lost", "duplicated", "reordered", "phantom", "undelivered", "redelivered")


def history(root: Path, name: str = "clean", *, mode: Mode = Mode.AT_LEAST_ONCE) -> LiteralRun:
    """Two producers, one of them with keys, a fault that bites, a group of two readers that share three partitions, an observer.

    The second consumer was killed in the end, so its files are measured by the harness; all others are counted by their writers.
    """
    run = LiteralRun(root, mode=mode, name=name, scheduled=1)
    run.session(1)
    run.session(2)
    txn = 1 if mode is Mode.EXACTLY_ONCE else 0
    before = [*run.write(1, 8, 0, txn=txn), *run.write(2, 6, 1, key=2, chosen=True, txn=txn)]
    if txn:
        run.end(1, 1)
        run.end(2, 1)
    run.window()
    after = [*run.write(1, 8, 2, txn=2 * txn), *run.write(2, 4, 1, key=2, chosen=True, txn=2 * txn)]
    if txn:
        run.end(1, 2)
        run.end(2, 2)
    run.event(
        "leader",
        topic=0,
        partition=0,
        leader="broker-1",
        epoch=1,
        in_sync=["broker-1"],
        replicas=["broker-1"],
    )
    run.assign("consumer-1.0", 0, 2)
    run.assign("consumer-2.0", 1)
    for record in (*before, *after):
        run.give("consumer-2.0" if record.partition == 1 else "consumer-1.0", record)
    run.observe("observer-committed.0", "read_committed", *before, *after)
    for worker in ("producer-1", "producer-2", "consumer-1", "observer-committed"):
        run.event(
            "worker",
            name=worker,
            state="started",
            pid=1,
            writes_as=f"{worker}.0",
            role=worker.partition("-")[0],
        )
        run.event("worker", name=worker, state="ended", exit=0, writes_as=f"{worker}.0")
    run.killed("consumer-2.0")
    return run


def clean(root: Path, name: str = "clean") -> RunDir:
    """Two of one name that begin in one second would have one run id, and count as two copies of one run."""
    return history(root, name).finish()


def broken(root: Path, mode: Mode = Mode.AT_LEAST_ONCE) -> RunDir:
    """An acked record is nowhere in the log, and no reader ever got it: lost."""
    run = history(root, "broken", mode=mode)
    gone = run.log.pop(3)
    assert run.deliveries is not None
    run.deliveries = [
        (reader, r) for reader, r in run.deliveries if (r.session, r.seq) != (gone.session, gone.seq)
    ]
    for name, seen in run.observed.items():
        run.observed[name] = [r for r in seen if (r.session, r.seq) != (gone.session, gone.seq)]
    return run.finish()


def judged(run: RunDir, lost: int = 0) -> RunDir:
    """Write the results of reconciliation, as far as reports and explanations need them."""
    window = {
        "window": 0, "fault": "kill", "target": "leader", "nodes": ["broker-1"], "bit": True, "proof": "moved",
        "measured": {"ms": 12.5}, "way": "", "healed": True, "heal_proof": "in sync", "open_s": 0.1, "bite_s": 0.2,
        "heal_s": 2.0, "healed_s": 2.1, "error": None, "recovered_s": 0.5,
    }  # fmt: skip
    found = [
        {"anomaly": "lost", "topic": "orders", "partition": 0, "messages": ["producer-1.0-3"], "offsets": [3],
         "sender": "producer-1.0", "reader": None, "t_s": 0.5, "window": None, "evidence": {"acked": "yes"},
         "text": "producer-1.0-3 is gone."}
    ] * lost  # fmt: skip
    reconciled = {
        "version": 1, "run_id": run.run_id, "scenario": "clean",
        "counts": {"attempted": 26, "acked": 26, "in_log": 26, "delivered": 26} | dict.fromkeys(ANOMALIES, 0)
        | {"lost": lost},
        "excused": {}, "losses": {}, "compared": dict.fromkeys(ANOMALIES, 26), "crashed": {}, "unavailable_s_max": 0.3,
        "latency_ms": {"p50": 1.0, "p99": 2.0, "max": 3.0}, "throughput_per_s": 10.0, "findings": found,
        "coverage": {
            "windows": [window], "progress_before": 14, "progress_after": 12, "drained": True, "drain_detail": "",
            "reads": {"read_uncommitted": True, "read_committed": True}, "gaps": [], "notes": [], "errors": [],
            "transactions": {"committed": 0}, "stalled": [], "rebalances": 2, "commits": 2, "sessions": 2, "readers": 2,
            "observed": {"observer-committed": 26}, "in_flight": None,
        },
        "timeline": {"bucket_s": 0.25, "t_s": [0.0, 0.25], "attempted": [20, 6], "acked": [20, 6], "delivered": [0, 26],
                     "latency_p50_ms": [1.0, None], "latency_p99_ms": [2.0, None]},
        "seconds": 1.0,
    }  # fmt: skip
    write_json(run.reconciled, reconciled)
    give_pictures(run, dots=20)
    manifest = run.read_manifest()
    write_json(
        run.verdict,
        judge(
            reconciled, Mode(manifest["scenario"]["guarantee"]), Settings.of(manifest, reconciled)
        ).to_json(),
    )
    run.findings.mkdir()
    kinds = pa.schema([
        ("anomaly", pa.string()), ("messages", pa.list_(pa.string())), ("evidence", pa.map_(pa.string(), pa.string())),
    ])  # fmt: skip
    rows = [{"anomaly": "lost", "messages": ["producer-1.0-3"], "evidence": [("acked", "yes")]}] * lost
    pq.write_table(pa.Table.from_pylist(rows, schema=kinds), run.findings / "findings.parquet")
    return run
