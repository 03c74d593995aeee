"""Rows of the sealed tables that are made from events, one function for each kind of event. Pure.

A function raises KeyError, TypeError or ValueError for an event without a field that its row needs.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from harness.contracts import Outcome
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import message_id
from harness.ledger.transform import INPUT
from harness.reconcile.seal.rows import Columns, Reach
from harness.reconcile.seal.sealed import FENCED, Event

FOREVER = (1 << 63) - 1
FENCING = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")  # names of errors
_MOST_TOPICS, _MOST_PARTITIONS = 1 << 8, 1 << 15  # journals have a byte and 16 signed bits for their numbers


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
    return {
        # A member that gives a partition back late may have lost it long before; the ledger cannot show that.
        "how": "lost" if e["how"] == "revoked" and e.get("late") else e["how"],
        "t": e["t"], "reader": reader, "topic": int(e.get("topic", 0)),
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
