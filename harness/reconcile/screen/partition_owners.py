"""Owners of partitions over time: partitions that two members of a group owned at once.

A member owns a partition from its assignment until it gives it back (revoked) or learns that it had lost it already (lost).
Only members that learnt of their assignment in time and gave the partition back normally count, both the first owner and the
second. A first owner that lost the partition, or died, could not know, and the coordinator was right to assign it to another
member. A second owner that lost it, or learnt of it late, may have been removed from the group before it learnt of
an assignment that no longer counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class SharedPartition:
    """`second` was given the partition at `t`, and `first` gave it back only at `until`."""

    run: int
    place: int
    first: int
    second: int
    t: int
    until: int


@dataclass(frozen=True)
class Ownership:
    """The assignments of one run, counted, and its partitions with two owners."""

    assigned: int = 0  # how often a partition was given to a member
    shared: tuple[SharedPartition, ...] = ()


NO_OWNERS = Ownership()


def ownership(assignments: pa.Table) -> dict[int, Ownership]:
    """Return the ownership of partitions by run."""
    assigned: dict[int, int] = defaultdict(int)
    shared: dict[int, list[SharedPartition]] = defaultdict(list)
    owners: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)  # run, place -> reader -> since when
    doubtful: dict[tuple[int, int, int], list[SharedPartition]] = defaultdict(
        list
    )  # run, place, second owner
    rows = sorted(assignments.to_pylist(), key=lambda row: (row["run"], row["t"]))
    for row in rows:
        run, reader, t = row["run"], row["reader"], row["t"]
        for partition in row["partitions"]:
            place = row["topic"] << 32 | partition
            held = owners[run, place]
            if row["how"] == "assigned":
                assigned[run] += 1
                held.setdefault(reader, t)
            elif row["how"] in ("revoked", "lost"):
                since, waiting = held.pop(reader, None), doubtful.pop((run, place, reader), [])
                if since is None or row["how"] == "lost":
                    continue
                shared[run] += waiting
                for other, given in held.items():
                    if since <= given < t:
                        doubtful[run, place, other].append(
                            SharedPartition(run, place, reader, other, given, t)
                        )
    return {run: Ownership(count, tuple(shared[run])) for run, count in assigned.items()}
