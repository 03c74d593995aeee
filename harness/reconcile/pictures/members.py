"""The partitions of each member of the group over time. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from harness.reconcile.coverage import seconds

MOST_STATES = 3_000  # of all members
_GONE = ("ended", "killed", "failed")  # states of a worker that owns nothing any more
Row = Mapping[str, Any]


def member_lanes(
    assignments: Iterable[Row],
    names: Sequence[str],
    observers: Collection[str],
    events: Iterable[Row],
    zero_ns: int,
) -> list[dict[str, Any]]:
    """Return a lane for each worker of the group: {"member", "states": [[t_s, partitions], …]}.

    `assignments` are rows of that table, `names` the readers by their numbers. All incarnations of a worker are one lane.
    A partition of another topic than the first is written `topic/partition`.
    """
    lives = {str(e["writes_as"]): e for e in events if e["event"] == "worker" and e.get("writes_as")}
    changes = [
        (row["t"], names[row["reader"]], row["how"], row)
        for row in assignments
        if names[row["reader"]] not in observers
    ]
    readers = {reader for _, reader, _, _ in changes}
    changes += [
        (life["t"], reader, "gone", {})
        for reader, life in lives.items()
        if reader in readers and life.get("state") in _GONE
    ]
    lanes: dict[str, list[list[Any]]] = defaultdict(list)
    held: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for t, reader, how, row in sorted(changes, key=lambda change: change[0]):
        before = set(held[reader])
        places = {(row["topic"], p) for p in row["partitions"]} if row else set()
        if how == "gone":
            held[reader] = set()
        elif how.startswith("assigned"):
            held[reader] |= places
        elif how in ("revoked", "lost"):
            held[reader] -= places
        name = str(lives[reader]["name"]) if reader in lives else reader
        if held[reader] != before or not lanes[name]:
            lanes[name].append([seconds(t, zero_ns), [_named(place) for place in sorted(held[reader])]])
    most = MOST_STATES // max(1, len(lanes))
    return [{"member": name, "states": states[:most]} for name, states in sorted(lanes.items())]


def _named(place: tuple[int, int]) -> str:
    topic, partition = place
    return f"{topic}/{partition}" if topic else str(partition)
