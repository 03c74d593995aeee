"""SAMPLE pictures.json, for tests of the report only: the numbers are made up, nothing here was measured."""

from __future__ import annotations

import random
from typing import Any

from harness.ledger.rundir import RunDir, read_json, write_json

MESSAGES = 1_500


def give_pictures(run: RunDir, text: str = "", *, dots: int = MESSAGES) -> None:
    """Write pictures.json into a sample run whose leader of partition 0 moves in its fault window. `text`: in every name."""
    luck = random.Random(3)
    reconciled = read_json(run.reconciled, "a sample run")
    line = reconciled["timeline"]
    first_s, last_s = line["t_s"][0], line["t_s"][-1]
    opened_s = next((w["open_s"] for w in reconciled["coverage"]["windows"]), 6.0)
    kinds = list(dict.fromkeys(f["anomaly"] for f in reconciled["findings"]))
    nodes = [f"broker-{n}{text}" for n in (1, 2, 3)]
    write_json(run.pictures, {
        "version": 1, "topics": ["sample_orders"],
        "leaders": [_lane(n, nodes, first_s, opened_s) for n in range(3)], "more_partitions": 0,
        "members": [
            {"member": f"consumer-1{text}", "states": [[first_s + 0.3, ["0", "1"]], [opened_s + 2, []], [opened_s + 4, ["0"]]]},
            {"member": "consumer-2", "states": [[first_s + 0.4, ["2"]], [opened_s + 3, ["1", "2"]]]},
        ],
        "lag": {"start_s": first_s, "step_s": 0.5, "partitions": [
            {"topic": 0, "partition": p, "behind": [luck.randrange(40) + (900 if 10 < i < 20 else 0) for i in range(32)]}
            for p in range(3)
        ]},
        "attempted": 10 * dots, "anomalies": dict.fromkeys(kinds, 5), "logs": "there",
        "messages": _dots(luck, dots, first_s, last_s, opened_s, kinds),
        "findings": [_around(number, text) for number in range(min(3, len(reconciled["findings"])))],
    })  # fmt: skip


def _lane(partition: int, nodes: list[str], first_s: float, opened_s: float) -> dict[str, Any]:
    states: list[list[Any]] = [[first_s - 0.4, nodes[partition], nodes]]
    if partition == 0:
        states += [[opened_s + 1, None, nodes[1:]], [opened_s + 3, nodes[1], nodes[1:]]]
        states += [[opened_s + 6, nodes[1], nodes]]
    return {"topic": 0, "partition": partition, "replicas": nodes, "states": states}


def _dots(
    luck: random.Random, count: int, first_s: float, last_s: float, opened_s: float, kinds: list[str]
) -> dict[str, Any]:
    fates = ["acked", "rejected", "unknown", *kinds]
    columns: dict[str, list[Any]] = {"t_ms": [], "ack_ms": [], "place": [], "fate": []}
    for n in range(count):
        t_s = first_s + (last_s - first_s) * n / count
        held = opened_s <= t_s <= opened_s + 3
        fate = luck.choice([0, 0, 2]) if held else 0
        if kinds and n % (count // 5) == 1:
            fate = 3 + n % len(kinds)
        waited = (opened_s + 3.2 - t_s) * 1000 if held else luck.lognormvariate(1, 0.4)
        for name, value in zip(
            columns, (round(t_s * 1000), None if fate == 2 else round(waited, 1), n % 3, fate), strict=True
        ):
            columns[name].append(value)
    return {**columns, "places": [[0, 0], [0, 1], [0, 2]], "fates": fates}


def _around(number: int, text: str) -> dict[str, Any]:
    sent = [
        {"message": f"producer-0.1-{9000 + n}", "own": n == 2, "t_s": 4.5 + n / 1000, "fate": "acked",
         "ack_ms": 3.1 if n != 3 else None, "partition": 0, "offset": 9031 + n if n != 3 else None}
        for n in range(5)
    ]  # fmt: skip
    log = [
        {"message": f"producer-0.1-{9000 + n}{text}", "own": n == 2, "offset": 9031 + n, "uncommitted": True,
         "committed": n != 1}
        for n in range(5)
    ]  # fmt: skip
    lines = [
        {"t_s": 4.2 + n / 3, "node": f"broker-{n}{text}", "level": "WARN",
         "text": f"[ReplicaManager broker={n}] Shrinking ISR {text}"}
        for n in (1, 2)
    ]  # fmt: skip
    return {"number": number, "sent": sent, "log": log, "log_lines": lines}
