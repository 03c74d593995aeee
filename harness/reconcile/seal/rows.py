"""Columns of the sealed tables, made from journals and events: pure, one function for each table."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harness.contracts import Outcome
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import message_id
from harness.ledger.transform import INPUT
from harness.reconcile.seal.merge import joined, taken
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.sealed import FENCED, Event

FOREVER = (1 << 63) - 1
BEFORE, DURING, AFTER = 0, 1, 2
_MOST_TOPICS, _MOST_PARTITIONS = 1 << 8, 1 << 15  # journals have a byte and 16 signed bits for their numbers

Columns = dict[str, Any]
Reach = dict[tuple[int, int], int]  # topic, partition -> offset
Touched = dict[tuple[int, int], npt.NDArray[np.int64]]  # topic, partition -> times


def attempts(
    rows: npt.NDArray[np.void], first: int, session: int, acks: str, span: tuple[int, int] | None
) -> Columns:
    """Return attempts of one session from number `first` on. `span` is from the first fault window to the end of the last."""
    acked = rows["outcome"] == Outcome.ACKED
    # With acks=0 the broker does not answer: the client makes up the offset that it reports.
    placed = acked & (rows["offset"] >= 0) & (rows["told_partition"] >= 0) & (acks != "0")
    return {
        "session": np.full(len(rows), session, dtype=np.int64),
        "seq": np.arange(first, first + len(rows), dtype=np.int64),
        "t": rows["t_attempt"],
        **{
            name: _column("attempts", rows, name)
            for name in ("topic", "partition", "key", "txn", "outcome", "error")
        },
        "t_outcome": pa.array(rows["t_outcome"], mask=rows["t_outcome"] < 0),
        "told_partition": pa.array(
            _column("attempts", rows, "told_partition"), mask=rows["told_partition"] < 0
        ),
        "offset": pa.array(rows["offset"], mask=~placed),
        "phase": _phase(rows["t_outcome"], span),
    }


def _phase(t: npt.NDArray[np.int64], span: tuple[int, int] | None) -> Any:
    """Return BEFORE the first fault window, DURING, or AFTER the last one; null if there was none."""
    if span is None:
        return pa.nulls(len(t), pa.int32())
    return np.where(t < span[0], BEFORE, np.where(t > span[1], AFTER, DURING)).astype(np.int32)


def records(rows: npt.NDArray[np.void]) -> Columns:
    """The columns that a record of the log and a delivery share."""
    shared = [name for name in SCHEMAS["log"].names if name in (rows.dtype.names or ())]
    return {name: _column("log", rows, name) for name in shared}


def deliveries(rows: npt.NDArray[np.void], reader: int, touched: Touched) -> Columns:
    """Return the deliveries to one reader; `touched` are the times of the assignments that it recorded."""
    generation = np.zeros(len(rows), dtype=np.int32)
    for (topic, partition), times in touched.items():
        mine = (rows["topic"] == topic) & (rows["partition"] == partition)
        generation[mine] = np.searchsorted(times, rows["t"][mine], side="right")
    return {**records(rows), "reader": np.full(len(rows), reader, dtype=np.int32), "generation": generation}


def touched(assignments: list[Columns], reader: int) -> Touched:
    """Return the times at which each partition was given to this reader or taken from it, in order."""
    times: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in assignments:
        if row["reader"] == reader:
            for partition in row["partitions"]:
                times[row["topic"], partition].append(row["t"])
    return {place: np.sort(np.array(found, dtype=np.int64)) for place, found in times.items()}


def effects(rows: npt.NDArray[np.void], *, late: bool = False) -> Columns:
    columns = {
        name: _column("effects", rows, name)
        for name in SCHEMAS["effects"].names
        if name not in ("run", "late")
    }
    return {**columns, "late": np.full(len(rows), int(late), dtype=np.int64)}


def behind(rows: npt.NDArray[np.void], stable: Reach) -> npt.NDArray[np.void]:
    """Return the rows at or above the last stable offset of their partition."""
    late = np.zeros(len(rows), dtype=np.bool_)
    for (topic, partition), offset in stable.items():
        mine = (rows["topic"] == topic) & (rows["partition"] == partition)
        late |= mine & (rows["offset"] >= offset)
    return rows[late]


_SAME = ("offset", "session", "seq", "txn", "key", "flags")


def log(
    readings: Mapping[str, npt.NDArray[np.void]], owed: str, group: str, passed: Reach
) -> tuple[npt.NDArray[np.void], Columns]:
    """Merge both final readings of one partition: a record that both found is one row. Return records and columns.

    `readings` are by isolation; `owed` is the isolation whose log is promised, `group` the one that the group reads.
    """
    uncommitted, committed = readings["read_uncommitted"], readings["read_committed"]
    both = joined([uncommitted, committed])
    order = _by_offset(both, len(uncommitted))
    again = np.zeros(len(both), dtype=bool)
    again[1:] = np.logical_and.reduce([_next_is_same(both[name][order]) for name in _SAME])
    first, strict = np.flatnonzero(~again), order >= len(uncommitted)
    rows = taken(both, order[first])
    # Copies of one record are neighbours, so a sum over each stretch says which readings found it.
    found = {
        "read_uncommitted": np.add.reduceat(~strict, first, dtype=np.int64) > 0 if len(first) else strict,
        "read_committed": np.add.reduceat(strict, first, dtype=np.int64) > 0 if len(first) else strict,
    }
    limit = passed.get((int(rows["topic"][0]), int(rows["partition"][0])), 0) if len(rows) else 0
    return rows, {
        "uncommitted": found["read_uncommitted"],
        "committed": found["read_committed"],
        "promised": found[owed],
        "passed": found[group] & (rows["offset"] < limit),
    }


def _next_is_same(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = values[1:] == values[:-1]
    return same


def _by_offset(rows: npt.NDArray[np.void], strict_from: int) -> npt.NDArray[np.int64]:
    """Return the order by offset, session and sequence number; of equal rows those from `strict_from` on come last.

    Readings are sorted by offset already, so putting them together is a merge and far quicker than sorting by all keys.
    Only offsets that more than one record claims need the other keys.
    """
    order = np.argsort(rows["offset"], kind="stable")
    offset, session, seq = (rows[name][order] for name in ("offset", "session", "seq"))
    other = _next_is_same(offset) & ~(_next_is_same(session) & _next_is_same(seq))
    if other.any():
        unsure = np.flatnonzero(np.isin(offset, offset[1:][other]))
        some = order[unsure]
        order[unsure] = some[np.lexsort((some >= strict_from, seq[unsure], session[unsure], offset[unsure]))]
    return order


def reach(commits: list[Columns], drained: list[Columns], whole: Callable[[tuple[int, int]], bool]) -> Reach:
    """Return the offset of each partition below which the group answers for every record: certainly committed, or drained.

    Partitions that are not `whole` are left out: nothing is asked of them (E11).
    """
    passed: Reach = {}
    for row in [*(c for c in commits if c["outcome"] == Outcome.ACKED), *drained]:
        place = row["topic"], row["partition"]
        if whole(place):
            passed[place] = max(passed.get(place, 0), row["offset"])
    return passed


def drain(e: Event) -> list[Columns]:
    """Return the ends up to which the group was drained; an incomplete drain proves none."""
    if not e.get("complete"):
        return []
    topic = int(e.get("topic", INPUT))
    return [{"topic": topic, "partition": int(p), "offset": int(end)} for p, end in e.get("ends", {}).items()]


def _column(table: str, rows: npt.NDArray[np.void], name: str) -> npt.NDArray[Any]:
    """Return a field of all rows, contiguous and in the type of the table's column, so that Arrow takes it as it is."""
    return np.ascontiguousarray(rows[name], dtype=SCHEMAS[table].field(name).type.to_pandas_dtype())


def session(e: Event) -> Columns:
    in_flight = e.get("in_flight")
    return {
        "session": int(e["session"]),
        "sender": message_id(str(e["producer"]), int(e["incarnation"]), 0).rpartition("-")[0],
        "producer": str(e["producer"]),
        "incarnation": int(e["incarnation"]),
        "acks": str(e["acks"]),
        "in_flight": None if in_flight is None else int(in_flight),
        "idempotent": bool(e.get("idempotent")),
        "t": e["t"],
    }


def transaction(e: Event) -> Columns:
    did = e.get("did") or (e.get("intent") if e["step"] == "end" else None)
    outcome = e.get("outcome")
    return {
        "t": e["t"], "session": int(e["session"]), "txn": int(e["txn"]), "step": e["step"], "did": did,
        "outcome": None if outcome is None else int(outcome),
    }  # fmt: skip


def fenced(sessions: list[Event], ready: list[Event], transactions: list[Columns]) -> list[Columns]:
    """Return the transactions whose commit was requested when a later producer of the same transactional id was ready.

    The coordinator then refuses every request of the earlier producer: they are certainly not committed.
    """
    ready_at = {int(e["session"]): int(e["t"]) for e in ready}
    lives: dict[str, list[tuple[int, int]]] = defaultdict(list)  # by id: when ready, and which session
    ids = {int(e["session"]): str(e.get("transactional_id") or "") for e in sessions}
    for session, name in ids.items():
        if name and session in ready_at:
            lives[name].append((ready_at[session], session))
    late: dict[tuple[int, int], Columns] = {}
    for row in transactions:
        session = row["session"]
        if row["step"] != "end" or row["did"] != "commit" or session not in ready_at:
            continue
        if any(ready_at[session] < t < row["t"] for t, _ in lives[ids.get(session, "")]):
            late.setdefault((session, row["txn"]), {**row, "step": FENCED, "outcome": None})
    return list(late.values())


FENCING = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")  # names of errors


def ends(events: Mapping[str, list[Event]]) -> Counter[str]:
    """Count transactions aborted on purpose, aborted for other reasons and timed out, and producers fenced."""
    found: Counter[str] = Counter(aborted_by_intent=0, aborted_by_fault=0, timed_out=0, fencings=0)
    acked = set()
    for e in events.get("txn", ()):
        if e.get("step") == "ended" and int(e.get("outcome", Outcome.UNKNOWN)) == Outcome.ACKED:
            if e.get("did") == "abort":
                found["aborted_by_intent" if e.get("intent") == "abort" else "aborted_by_fault"] += 1
            else:
                acked.add((e["session"], e["txn"]))
    found["timed_out"] = sum((e["session"], e["txn"]) not in acked for e in events.get("outslept", ()))
    lost = [str(e.get("text")) for e in events.get("lost_producer", ())]
    found["fencings"] = sum(any(name in text for name in FENCING) for text in lost)
    return found


def commit(e: Event, reader: int) -> list[Columns]:
    base = {"t": e["t"], "reader": reader, "topic": int(e.get("topic", 0)), "outcome": int(e["outcome"])}
    return [{**base, "partition": int(p), "offset": int(o)} for p, o in e["offsets"].items()]


def assignment(e: Event, reader: int) -> Columns:
    # A member that has not polled for long may have lost a partition before it gives it back or learns that it has it.
    late = {"revoked": "lost", "assigned": "assigned_late"} if e.get("late") else {}
    return {
        "how": late.get(e["how"], e["how"]), "t": e["t"], "reader": reader, "topic": int(e.get("topic", 0)),
        "partitions": [int(p) for p in e["partitions"]],
    }  # fmt: skip


def bounds(e: Event) -> Columns:
    return {**_place(e), **{name: int(e[name]) for name in ("start", "end", "stable")}}


def _place(e: Event) -> Columns:
    topic, partition = int(e.get("topic", INPUT)), int(e["partition"])
    if not 0 <= topic < _MOST_TOPICS or not 0 <= partition < _MOST_PARTITIONS:
        raise ValueError("topic and partition")
    return {"topic": topic, "partition": partition}


def reading_begins(e: Event) -> Columns:
    counts = [int(count) for count in e["partitions"]]
    if len(counts) > _MOST_TOPICS or not all(0 <= count <= _MOST_PARTITIONS for count in counts):
        raise ValueError("partitions")
    return {"partitions": counts}


def reading(e: Event) -> Columns:
    isolation = str(e["isolation"])
    if isolation not in ISOLATIONS:
        raise ValueError(f"isolation: {isolation!r}")
    return {"isolation": isolation, **_place(e), **{name: int(e[name]) for name in ("reached", "until")}}


def windows(events: list[Columns]) -> list[Columns]:
    times: dict[int, dict[str, int]] = defaultdict(dict)
    for e in events:
        times[int(e["window"])].setdefault(e["step"], e["t"])
    return [
        {"window": w, "opened": at["open"], "closed": at.get("healed", at.get("heal", FOREVER))}
        for w, at in sorted(times.items())
        if "open" in at
    ]


def event(e: Event) -> Columns:
    fields = {name: value for name, value in e.items() if name != "_at"}
    return {"t": e["t"], "event": e["event"], "writer": e["writer"], "fields": json.dumps(fields)}
