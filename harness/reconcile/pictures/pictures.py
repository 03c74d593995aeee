"""pictures.json of a run: everything that its pictures in the report need, at most some hundred kilobytes.

It is made after the results are written, and no verdict depends on it: an error here becomes its only content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harness.ledger.rundir import RunDir, write_json
from harness.reconcile.coverage import seconds
from harness.reconcile.pictures import broker_log, messages, stored_rows
from harness.reconcile.pictures.broker_log import WallClock
from harness.reconcile.pictures.lag import lag
from harness.reconcile.pictures.leaders import Lane, leader_at, leader_lanes
from harness.reconcile.pictures.members import member_lanes
from harness.reconcile.pictures.neighbours import neighbours
from harness.reconcile.seal import sample
from harness.reconcile.seal.sealed import Sealed

VERSION = 1
MOST_FINDINGS = 12  # with neighbours and log lines
Rows = list[dict[str, Any]]


def write_pictures(
    run: RunDir, sealed: Sealed, small: Mapping[str, pa.Table], result: Mapping[str, Any]
) -> None:
    """Write pictures.json. `small`: the small tables of all runs, `result`: the content of reconciled.json."""
    try:
        made = _pictures(run, sealed, small, result)
    except Exception as error:  # noqa: BLE001  a picture never costs a verdict; the report shows why there is none
        made = {"error": f"{type(error).__name__}: {error}"[:1000]}
    write_json(run.pictures, {"version": VERSION, **made}, indent=None)


def _pictures(
    run: RunDir, sealed: Sealed, small: Mapping[str, pa.Table], result: Mapping[str, Any]
) -> dict[str, Any]:
    mine = {name: _of_run(small[name], sealed.run) for name in ("assignments", "commits")}
    attempts = sample.read(run.tables)
    lanes, more = leader_lanes(sealed.events, sealed.zero_ns)
    observers = {one.name for one in sealed.observers}
    marked, counts = messages.anomalies(run.findings, sealed.sessions, sealed.topic_names)
    sent = stored_rows.attempts(run.tables, {one.sent for one in marked if one.sent is not None})
    return {
        "topics": sealed.topic_names,
        "leaders": lanes,
        "more_partitions": more,
        "members": member_lanes(
            mine["assignments"], sealed.reader_names, observers, sealed.events, sealed.zero_ns
        ),
        "lag": lag(attempts, mine["commits"], sealed.zero_ns),
        "attempted": sum(one.attempted for one in sealed.sessions),
        "anomalies": counts,
        "messages": messages.dots(attempts, marked, sent, sealed.zero_ns),
        "logs": "there" if run.logs.is_dir() else "packed" if run.packed_logs.exists() else "absent",
        "findings": _around(run, sealed, result, lanes),
    }


def _of_run(table: pa.Table, run: int) -> Rows:
    rows: Rows = table.filter(pc.equal(table["run"], run)).to_pylist()
    return rows


# --- around findings ------------------------------------------------------------------------------


def _around(run: RunDir, sealed: Sealed, result: Mapping[str, Any], lanes: Sequence[Lane]) -> Rows:
    """Return neighbours and log lines of some findings, each with its "number" among those of reconciled.json."""
    found = result["findings"]
    kept = [n for n, f in enumerate(found) if f.get("excuse") is None]
    numbers = [kept[place] for place in chosen([found[n]["anomaly"] for n in kept])]
    beside = neighbours(run.tables, sealed, [found[n] for n in numbers])
    clock = WallClock.of(run.read_manifest()["clock"])
    begun = next((e["t"] for e in sealed.events if e["event"] == "step"), sealed.zero_ns)
    made = []
    for number, near in zip(numbers, beside, strict=True):
        f = found[number]
        lines: Rows = []
        if clock is not None and f["t_s"] is not None:
            nodes = _concerned(f, sealed, result["coverage"]["windows"], lanes)
            folder, began_s = run.logs / "cluster", seconds(begun, sealed.zero_ns) or 0.0
            lines = broker_log.lines_around(folder, clock, f["t_s"], nodes, began_s)
        made.append({"number": number, **near, "log_lines": lines})
    return made


def chosen(kinds: Sequence[str], most: int = MOST_FINDINGS) -> list[int]:
    """Return the places of the first finding of each kind, then of the second of each, and so on, at most `most`."""
    places = [[n for n, one in enumerate(kinds) if one == kind] for kind in dict.fromkeys(kinds)]
    in_turn = [n for each in zip_longest(*places) for n in each if n is not None]
    return sorted(in_turn[:most])


def _concerned(
    finding: Mapping[str, Any], sealed: Sealed, windows: Sequence[Mapping[str, Any]], lanes: Sequence[Lane]
) -> list[str]:
    """Return the nodes of the fault window that the finding falls into, and the leader of its partition."""
    nodes = [node for w in windows if w["window"] == finding["window"] for node in w["nodes"]]
    if finding["topic"] in sealed.topic_names:
        topic = sealed.topic_names.index(finding["topic"])
        leader = leader_at(lanes, topic, finding["partition"], finding["t_s"])
        nodes += [leader] if leader else []
    return nodes
