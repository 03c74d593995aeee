"""SAMPLE run folders, for tests of the report only: the numbers are made up, nothing here was measured.

`python -m tests.reports.sample FOLDER` writes them for work on the look of the page.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.ledger import journal
from harness.ledger.rundir import RunDir, write_json

MODES = ("at_most_once", "at_least_once", "exactly_once")
FAULTS = ("kill-leader", "sever-leader", "slow_disk-leader")
FINDERS = ("lost", "duplicated", "reordered", "phantom", "corrupted", "misplaced", "offset_conflict",
           "undelivered", "redelivered")  # fmt: skip
BUCKET_S = 0.25
PROOFS = {
    "kill": (
        "leader of sample_orders-0 moved from broker 2 to broker 3 after 2.9 s",
        {"leader_change_s": 2.9},
    ),
    "sever": (
        "6 of 6 links of broker 2 pass no bytes either way; ISR shrank to 2",
        {"links_cut": 6, "isr": 2},
    ),
    "slow_disk": ("an append takes 52.4 ms instead of 0.3 ms", {"before_ms": 0.31, "during_ms": 52.4}),
}
HEALS = {
    "kill": "broker 2 is registered again and in sync for 3 of 3 partitions",
    "sever": "all 6 links pass bytes both ways; ISR is 3 again",
    "slow_disk": "an append takes 0.4 ms",
}
OUTAGES_S = {"kill": 3.42, "sever": 4.1, "slow_disk": 0.29}
VERSIONS = {"onceproof": "0.1.0", "kafka": "4.3.1", "confluent-kafka": "2.16.1", "librdkafka": "2.16.1",
            "pyspark": "4.3.0", "toxiproxy": "2.12.0", "python": "3.11.7", "java": "17.0.17"}  # fmt: skip
CLUSTER = {
    "kind": "local", "brokers": 3, "controllers": 3, "combined": False, "kafka": "4.3.1",
    "settings": {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500,
                 "unclean.leader.election.enable": False},
}  # fmt: skip
CONTROLS: Sequence[Mapping[str, Any]] = (
    {"name": "acks0_loss", "mode": "at_most_once", "judged_as": "at_least_once", "fault": "kill-leader",
     "expected": "VIOLATED", "anomalies": {"lost": 532}, "required": {"lost": 1}},
    {"name": "retry_duplicates", "mode": "at_least_once", "judged_as": "exactly_once",
     "fault": "sever-answers", "expected": "VIOLATED", "anomalies": {"duplicated": 2000, "reordered": 118},
     "required": {"duplicated": 1}},
    {"name": "aborted_uncommitted", "mode": "exactly_once", "judged_as": "exactly_once", "fault": "none",
     "expected": "VIOLATED", "anomalies": {"aborted_read": 500}, "required": {"aborted_read": 1}},
    {"name": "no_fault", "mode": "at_least_once", "judged_as": "at_least_once", "fault": "none",
     "expected": "HELD", "anomalies": {}, "required": {}},
)  # fmt: skip


def sample_runs(root: Path, *, copies: int = 1, broken: Sequence[str] = (), crashed: Sequence[str] = (),
                quiet: Sequence[str] = (), text: str = "") -> list[RunDir]:  # fmt: skip
    """3 modes x 3 faults and 4 controls, `copies` times.

    Scenarios named in `broken` lose acknowledged messages, in `crashed` have no reconciled.json, in `quiet`
    have a fault that did not bite. `text` is added to texts that come from outside: errors, proofs, evidence.
    """
    made: list[RunDir] = []
    for copy in range(copies):
        for mode in MODES:
            for fault in FAULTS:
                name = f"{mode}-{fault}"
                allowed = {
                    "at_most_once": {"lost": 214},
                    "at_least_once": {"duplicated": 37, "redelivered": 410},
                }
                anomalies = dict(allowed.get(mode, {})) if fault != "slow_disk-leader" else {}
                if name in broken:
                    anomalies["lost"] = 17
                made.append(sample_run(root, seed=copy * 100 + len(made), text=text, name=name, mode=mode,
                                        judged_as=mode, fault=fault, expected="HELD", control=False,
                                        required={"lost": 1} if name == "at_most_once-kill-leader" else {},
                                        anomalies=anomalies, forbidden=("lost",) if name in broken else (),
                                        crashed=name in crashed, bit=name not in quiet))  # fmt: skip
        for control in CONTROLS:
            made.append(sample_run(root, seed=copy * 100 + len(made), text=text, control=True,
                                    forbidden=tuple(control["anomalies"]), crashed=control["name"] in crashed,
                                    bit=control["name"] not in quiet, **control))  # fmt: skip
    return made


def sample_run(root: Path, *, seed: int, text: str, name: str, mode: str, judged_as: str, fault: str,
                expected: str, control: bool, anomalies: Mapping[str, int], forbidden: Sequence[str],
                required: Mapping[str, int], crashed: bool, bit: bool,
                whole: Mapping[str, Any] | None = None,
                blows: Sequence[tuple[str, str, bool]] = ()) -> RunDir:  # fmt: skip
    """Write one run. `whole` replaces the scenario of the manifest; `blows` are its faults, targets and whether they bit."""
    run = RunDir.create(root, name)
    luck = random.Random(seed)
    kind = fault.split("-")[0]
    planned = blows or ([] if fault == "none" else [(kind, fault.partition("-")[2], bit)])
    windows = [_window(luck, *blow, text, number) for number, blow in enumerate(planned)]
    write_json(run.manifest, {
        "version": journal.VERSION, "run_id": run.run_id,
        "scenario": whole or {
            "name": name, "mode": mode, "judged_as": judged_as, "guarantee": judged_as, "expected": expected,
            "requires": required, "control": control, "hazard": name if control else "", "fault": fault, "seed": 7,
            "client": "confluent", "workload": "produce_consume",
            "topic": {"partitions": 3, "replication_factor": 3, "min_insync_replicas": 2},
            "producers": {"keyed": 1, "keyless": 1, "records_per_s": 2000, "payload_bytes": 128, "keys": 64},
            "consumers": {"members": 2, "isolation": "read_committed"},
        },
        "clock": {"monotonic_ns": 1_000_000_000, "wall": "2025-10-09T08:53:20+0000",
                  "unix": 1.76e9 + 30 * seed},
        "cluster": CLUSTER,
        "machine": {"system": "Linux 6.1 x86_64", "cores": 2, "memory_gb": 15.6, "python": "3.11.7"},
        "versions": VERSIONS,
        "command": ["./onceproof", "prove", "--only", name, "--seed", "7"],
    })  # fmt: skip
    if crashed:
        return run
    timeline = _timeline(luck, kind, windows, mode)
    counts = _counts(timeline, anomalies)
    write_json(run.reconciled, {
        "version": 1, "run_id": run.run_id, "scenario": name, "counts": counts,
        "compared": dict.fromkeys({**dict.fromkeys(FINDERS), **anomalies}, counts["acked"]),
        "crashed": {},
        "unavailable_s_max": OUTAGES_S.get(kind, 0.08) + luck.random() / 3,
        "latency_ms": {"p50": 2.4, "p99": 611.0 if windows else 9.8, "max": 3811.0 if windows else 31.0},
        "throughput_per_s": 3900,
        "findings": [_finding(luck, anomaly, number, bool(windows), text)
                     for anomaly, count in anomalies.items() for number in range(min(count, 5))],
        "coverage": {
            "windows": windows, "progress_before": 6120, "progress_after": 8044, "drained": True,
            "drain_detail": "3 of 3 partitions", "reads": {"read_uncommitted": True, "read_committed": True},
            "gaps": [], "errors": [text] if text else [],
            "stalled": [f"a transaction of producer id 6 is open {text}"] if text else [],
            "transactions": {"committed": 441, "aborted": 52, "unknown": 2} if mode == "exactly_once" else
                            {"committed": 0, "aborted": 0, "unknown": 0},
            "rebalances": 2, "commits": 148, "sessions": 2, "readers": 2,
        },
        "timeline": timeline, "seconds": 2.1,
    })  # fmt: skip
    run.findings.mkdir()
    unproven = [] if bit or not windows else ["no fault window bit: nothing was tested"]
    violations = [
        {"anomaly": a, "count": anomalies[a], "reason": f"{judged_as} forbids it: an ack is a promise {text}"}
        for a in forbidden
    ]
    verdict = "VIOLATED" if violations else "INCONCLUSIVE" if unproven else "HELD"
    write_json(run.verdict, {
        "verdict": verdict, "expected": expected, "as_expected": verdict == expected, "guarantee": judged_as,
        "violations": violations,
        "counted": [{"anomaly": a, "count": c, "reason": f"{judged_as} allows it: it was never promised"}
                    for a, c in anomalies.items() if a not in forbidden],
        "inconclusive": unproven, "required": required, "found": {a: anomalies.get(a, 0) for a in required},
        "standing": "as promised" if verdict == expected else "proves nothing", "shortfalls": [],
    })  # fmt: skip
    return run


def _window(luck: random.Random, kind: str, target: str, bit: bool, text: str, number: int) -> dict[str, Any]:
    opened = 4.1 + number + luck.random()
    proof, measured = PROOFS.get(kind, (f"{kind} took effect on broker 2", {}))
    return {
        "window": number, "fault": kind, "target": target, "nodes": ["broker-2"], "bit": bit,
        "proof": f"{proof} {text}".strip() if bit else "no change was measured within 10 s",
        "measured": measured, "healed": True, "heal_proof": HEALS.get(kind, "undone"), "open_s": round(opened, 3),
        "bite_s": round(opened + 0.9, 3) if bit else None,
        "heal_s": round(opened + 4.9, 3), "healed_s": round(opened + 6.6, 3), "error": None,
        "recovered_s": round(OUTAGES_S.get(kind, 0.4) * luck.uniform(0.8, 1.6), 2),
    }  # fmt: skip


def _timeline(
    luck: random.Random, kind: str, windows: Sequence[Mapping[str, Any]], mode: str
) -> dict[str, Any]:
    times = [round(1.0 + i * BUCKET_S, 3) for i in range(round(16 / BUCKET_S))]
    rows: dict[str, list[Any]] = {
        n: [] for n in ("attempted", "acked", "delivered", "latency_p50_ms", "latency_p99_ms")
    }
    waiting = 0.0
    for t in times:
        ramp = min(1.0, max(0.05, t - 1.0), max(0.0, (16.2 - t) / 0.8))
        held = any(w["open_s"] <= t <= w["open_s"] + 3.4 for w in windows)
        sent = round(1000 * ramp * luck.uniform(0.94, 1.05))
        share = (
            {"kill": 0.06, "sever": 0.0, "slow_disk": 0.42}.get(kind, 1.0)
            if held and mode != "at_most_once"
            else 1.0
        )
        waiting += sent
        done = min(waiting, round(sent * share) if held else 1900 * ramp + 20)
        waiting -= done
        slow = {"kill": 900.0, "sever": 2600.0, "slow_disk": 58.0}.get(kind, 3.0) if held else 2.2
        rows["attempted"].append(sent)
        rows["acked"].append(round(done))
        rows["delivered"].append(round(done * luck.uniform(0.96, 1.02)) if not held else round(done * 0.9))
        rows["latency_p50_ms"].append(round(slow * luck.uniform(0.8, 1.3), 2) if done else None)
        rows["latency_p99_ms"].append(round(slow * luck.uniform(3, 5) + 4, 2) if done else None)
    return {"bucket_s": BUCKET_S, "t_s": times, **rows}


def _counts(timeline: Mapping[str, Any], anomalies: Mapping[str, int]) -> dict[str, int]:
    attempted, acked = sum(timeline["attempted"]), sum(timeline["acked"])
    in_log = acked - anomalies.get("lost", 0) + anomalies.get("duplicated", 0)
    return {
        "attempted": attempted, "acked": acked, "rejected": 0, "unknown": max(0, attempted - acked),
        "in_log": in_log, "delivered": in_log + anomalies.get("redelivered", 0),
        **dict.fromkeys(FINDERS, 0), **anomalies,
    }  # fmt: skip


def _finding(luck: random.Random, anomaly: str, number: int, window: bool, text: str) -> dict[str, Any]:
    partition, seq = luck.randrange(3), 9000 + luck.randrange(4000)
    return {
        "anomaly": anomaly, "topic": "sample_orders", "partition": partition, "messages": [f"0.1-{seq}"],
        "offsets": [seq + 31] if anomaly == "lost" else [seq + 31, seq + 44], "sender": "producer-0",
        "reader": None, "t_s": round(4.6 + number / 7, 3), "window": 0 if window else None,
        "evidence": {"leader_epoch": 4, "acked_by": "broker-2", "sent_s": 4.51, "acked_s": 4.6, "note": text},
        "text": f"message 0.1-{seq} of producer-0 was acknowledged at offset {seq + 31} "
                f"of sample_orders-{partition}: {anomaly} {text}",
    }  # fmt: skip


if __name__ == "__main__":
    for folder in sample_runs(Path(sys.argv[1])):
        print(folder.path)
