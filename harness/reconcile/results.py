"""The results of the reconciliation: findings.parquet and reconciled.json of each run."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.contracts import Finder
from harness.ledger.message import message_id
from harness.ledger.replica_events import IN_NO_LOG, NOT_LOOKED_AT, classify
from harness.ledger.rundir import RunDir
from harness.reconcile.closer_look import Looked
from harness.reconcile.coverage import coverage, seconds
from harness.reconcile.find.findings import ARROW
from harness.reconcile.find.missing import EXPIRED, LATE, LOST
from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.summaries import Count
from harness.reconcile.seal.event_rows import windows
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.timeline import latency_and_throughput, recovery, timeline, unavailable_s_max

VERSION = 1
OUTCOMES = (Count.ATTEMPTED, Count.ACKED, Count.REJECTED, Count.UNKNOWN)
WORST = 5  # findings of each kind that reconciled.json has in full
MOST = 1_000_000  # findings of each anomaly that are kept; all of them are counted
# Classes of losses, besides those of harness.ledger.replica_events and the anomalies expired and late.
IN_A_REPLICA, NEVER_ACKED = "in a replica's log, not read", "never acked"

Rows = list[dict[str, Any]]

_KIND = ["run", "anomaly", "excuse"]
_ORDER = [(name, "ascending") for name in (*_KIND, "t", "partition", "at")]
_DRESSED = pa.schema([
    ("run_id", pa.string()), *(field for field in ARROW if field.name != "topic"), ("topic", pa.string()),
    ("window", pa.int32()),
])  # fmt: skip


def write_findings(runs: Mapping[int, RunDir], sealed: Sequence[Sealed], pieces: Iterable[pa.Table]) -> Rows:
    """Write findings.parquet of each run; return the first few findings of each kind, with the number `n` of that kind.

    Findings come in pieces, one from the driver or many from Spark tasks. Memory depends on the largest piece.
    """
    counts: Counter[tuple[Any, ...]] = Counter()  # by run, anomaly and excuse
    kept: Counter[str] = Counter()  # by anomaly
    worst: pa.Table | None = None
    with ExitStack() as files:
        writers = {number: files.enter_context(_new_file(run)) for number, run in runs.items()}
        for piece in pieces:
            if not piece.num_rows:
                continue
            for row in piece.group_by(_KIND).aggregate([([], "count_all")]).to_pylist():
                counts[tuple(row[name] for name in _KIND)] += row["count_all"]
            found = _dressed(piece.append_column("at", _first(piece["offsets"])).sort_by(_ORDER), sealed)
            together = found if worst is None else pa.concat_tables([worst, found]).sort_by(_ORDER)
            worst = together.filter(pa.array(_rank_in_kind(together) < WORST))
            listed = _within_limit(found, kept).select(_DRESSED.names).cast(_DRESSED)
            for number in pc.unique(listed["run"]).to_pylist():
                writers[number].write_table(listed.filter(pc.equal(listed["run"], number)))
    rows = [] if worst is None else worst.drop_columns(["at"]).to_pylist()
    for row in rows:
        row |= {"evidence": dict(row["evidence"] or ()), "n": counts[tuple(row[name] for name in _KIND)]}
    # Those of one kind are in order already.
    return sorted(rows, key=lambda row: (row["anomaly"], row["excuse"] or ""))


def _new_file(run: RunDir) -> pq.ParquetWriter:
    if run.findings.exists():  # a folder of the run itself: sealing has refused anything else
        shutil.rmtree(run.findings)
    run.findings.mkdir()
    return pq.ParquetWriter(run.findings / "findings.parquet", _DRESSED)


def _within_limit(found: pa.Table, kept: Counter[str]) -> pa.Table:
    chosen = np.ones(found.num_rows, dtype=np.bool_)
    anomalies = found["anomaly"].to_numpy(zero_copy_only=False)
    for anomaly in set(anomalies.tolist()):
        mine = np.flatnonzero(anomalies == anomaly)
        chosen[mine[max(0, MOST - kept[anomaly]) :]] = False
        kept[anomaly] += len(mine)
    return found if chosen.all() else found.filter(pa.array(chosen))


def _first(lists: pa.ChunkedArray) -> Any:
    """Return the first element of each list; null if it is empty."""
    together = lists.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(together), 0).to_numpy(zero_copy_only=False)
    first = pa.array(np.asarray(together.offsets)[:-1], mask=lengths == 0)
    return together.values.take(first)


def _rank_in_kind(table: pa.Table) -> Any:
    """Return the rank of each row among the rows of its kind; the table is sorted."""
    count = table.num_rows
    new = np.zeros(count, dtype=np.bool_)
    new[:1] = True
    for name in _KIND:
        values = table[name].to_numpy(zero_copy_only=False)
        new[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(new)
    return np.arange(count) - np.repeat(starts, np.diff(np.r_[starts, count]))


def _dressed(table: pa.Table, sealed: Sequence[Sealed]) -> pa.Table:
    """Add the names of run and topic, and the fault window that the time of the finding falls into."""
    run = table["run"].to_numpy()
    t = table["t"].fill_null(-1).to_numpy()
    topic = table["topic"].fill_null(0).to_numpy()
    window = np.full(len(run), -1, dtype=np.int32)
    run_id, topic_name = np.full(len(run), None, dtype=object), np.full(len(run), None, dtype=object)
    for one in sealed:
        mine = run == one.run
        if not mine.any():
            continue
        run_id[mine] = one.run_id
        for number, name in enumerate(one.topic_names):
            topic_name[mine & (topic == number)] = name
        # If several windows contain the time, the one that opened first counts.
        for life in reversed(windows([e for e in one.events if e["event"] == "window"])):
            window[mine & (life["opened"] <= t) & (t <= life["closed"])] = life["window"]
    unknown = topic_name == None  # noqa: E711  # of each
    topic_name[unknown] = [f"topic {number}" for number in topic[unknown]]
    return (
        table.drop_columns(["topic"])
        .add_column(0, "run_id", pa.array(run_id, pa.string()))
        .append_column("topic", pa.array(topic_name, pa.string()))
        .append_column("window", pa.array(window, mask=window < 0))
    )


# --- reconciled.json ------------------------------------------------------------------------------


def result_of(
    sealed: Sealed, finders: Sequence[Finder], facts: Facts, screened: Screened, rows: Rows, looked: Looked
) -> dict[str, Any]:
    """Return the content of reconciled.json of one run, without its `seconds`. `rows`: as `write_findings` returns them."""
    found = {(row["anomaly"], row["excuse"]): int(row["n"]) for row in rows}
    excused: dict[str, dict[str, int]] = {}
    for (anomaly, excuse), n in found.items():
        if excuse is not None:
            excused.setdefault(anomaly, {})[excuse] = n
    names = [finder.anomaly for finder in finders]
    counts = {name: sum(n for (anomaly, _), n in found.items() if anomaly == name) for name in names}
    seen = coverage(sealed, facts, screened)
    for window, recovered_s in zip(seen["windows"], recovery(screened, seen["windows"]), strict=True):
        window["recovered_s"] = recovered_s
    seen["unjudged"] = {
        entry["kind"]: {"messages": entry["n"], "first": entry["first"]}
        for entry in looked.unjudged
        if entry["run"] == sealed.run
    }
    by_name, events = {finder.anomaly: finder for finder in finders}, _replicas(sealed)
    return {
        "version": VERSION,
        "run_id": sealed.run_id,
        "scenario": sealed.scenario,
        "counts": {count.name.lower(): screened.count(count) for count in OUTCOMES}
        | {"in_log": sealed.in_log, "in_log_uncommitted": sealed.in_log_uncommitted}
        | {"delivered": screened.count(Count.DELIVERIES)}
        | counts,
        "excused": excused,
        "losses": _losses(events, screened, counts),
        "compared": {
            finder.anomaly: sum(screened.count(Count[c]) for c in finder.compared) for finder in finders
        },
        "crashed": dict(looked.crashed),
        "unavailable_s_max": unavailable_s_max(screened),
        **latency_and_throughput(screened),
        "findings": [_in_full(row, by_name[row["anomaly"]], sealed.zero_ns, events) for row in rows],
        "coverage": seen,
        "timeline": timeline(screened, facts.bucket_ns),
    }


def _in_full(
    row: Mapping[str, Any], finder: Finder, zero_ns: int, replicas: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a finding in full, as reconciled.json has it."""
    finding = {
        name: row[name]
        for name in ("anomaly", "topic", "partition", "messages", "offsets", "sender", "reader")
    }
    evidence = {k: v for k, v in (row["evidence"] or {}).items() if v is not None}
    finding |= {"t_s": seconds(row["t"], zero_ns), "window": row["window"], "evidence": evidence}
    if row["excuse"] is not None:
        finding["excuse"] = row["excuse"]
    if row["anomaly"] == LOST and (event := replicas.get(row["messages"][0])) is not None:
        evidence |= {"replicas": classify(event), "replicas_detail": str(event.get("detail", ""))}
    return finding | {"text": finder.explain(finding)}


def _replicas(sealed: Sealed) -> dict[str, Mapping[str, Any]]:
    """Return the `replicas` events by the id of the message that was looked for."""
    senders = {one.session: (one.producer, one.incarnation) for one in sealed.sessions}
    return {
        message_id(*senders[int(e["session"])], int(e["seq"])): e
        for e in sealed.events
        if e["event"] == "replicas" and int(e["session"]) in senders
    }


def _losses(
    replicas: Mapping[str, Mapping[str, Any]], screened: Screened, counts: Mapping[str, int]
) -> dict[str, int]:
    """Count the messages that are not in the log by class; empty classes are left out.

    At most a few losses of a run are looked for in the replicas' logs; the others are `not looked at`.
    """
    looked = Counter(classify(event) for event in replicas.values())
    in_replica = sum(n for found, n in looked.items() if found not in (IN_NO_LOG, NOT_LOOKED_AT))
    found = {
        IN_NO_LOG: looked[IN_NO_LOG],
        IN_A_REPLICA: in_replica,
        NOT_LOOKED_AT: max(0, counts.get(LOST, 0) - looked[IN_NO_LOG] - in_replica),
        EXPIRED: counts.get(EXPIRED, 0),
        LATE: counts.get(LATE, 0),
        NEVER_ACKED: screened.count(Count.NEVER_ACKED),
    }
    return {name: n for name, n in found.items() if n}
