"""Observers: readers beside the group that read every topic while it breaks, each in one isolation. Pure numpy.

Between the first and the last record that an observer got from a partition, it must have got every record of the log of its
isolation once. Both sides are hashed by block (harness.reconcile.screen.summaries). They differ if a record that the observer
got is gone, if it never got one, or if another record is at the same offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.reconcile.arrays import Bools, Columns, Ints, mixed
from harness.reconcile.seal.sealed import Observed

if TYPE_CHECKING:
    from harness.reconcile.screen.facts import Facts


@dataclass(frozen=True)
class Observer:
    """An observer as the kernels need it: arrays instead of the lists of `Observed`."""

    reads_committed: bool
    places: Ints  # in order, and of each:
    first: Ints
    reach: Ints

    @classmethod
    def of(cls, observed: Observed) -> Observer:
        spans = np.array(observed.spans, dtype=np.int64).reshape(-1, 4)
        places = spans[:, 0] << 32 | spans[:, 1]
        order = np.argsort(places)
        return cls(
            observed.isolation == "read_committed",
            places[order],
            spans[:, 2][order].copy(),
            spans[:, 3][order].copy(),
        )

    def passed(self, place: Ints, offset: Ints) -> Bools:
        """Mark the positions between the first and the last record that the observer got."""
        if not len(self.places):
            return np.zeros(len(place), dtype=np.bool_)
        at = np.minimum(np.searchsorted(self.places, place), len(self.places) - 1)
        inside: Bools = (self.places[at] == place) & (offset >= self.first[at]) & (offset < self.reach[at])
        return inside


def of_group(reader: Ints, facts: Facts) -> Bools:
    """Mark the rows of readers of the group."""
    return ~np.isin(reader, list(facts.observers))


def promised_committed(reader: Ints, facts: Facts) -> Bools:
    """Mark the rows that count for aborted and premature reads.

    An observer of read_uncommitted gets such records by design. If its rows counted, every block with an aborted transaction
    would be in doubt.
    """
    anything = [number for number, observer in facts.observers.items() if not observer.reads_committed]
    return ~np.isin(reader, anything)


def reads_committed(reader: Ints, facts: Facts) -> Bools:
    """Mark the rows of readers that read only committed records."""
    observed = {number: one.reads_committed for number, one in facts.observers.items()}
    committed: Bools = np.full(len(reader), facts.group_reads_committed)
    for number, reads in observed.items():
        committed[reader == number] = reads
    return committed


def to_be_seen(c: Columns, place: Ints, content: Ints, facts: Facts) -> dict[str, Any]:
    """Return the columns observed_content and observed_rows of log rows: what observers must have got."""
    if not facts.observers:
        return {}
    hashes, rows = np.zeros_like(content), np.zeros_like(content)
    for number, observer in facts.observers.items():
        shown = c["committed"] if observer.reads_committed else c["uncommitted"]
        shown = shown & observer.passed(place, c["offset"])
        hashes ^= np.where(shown, mixed(np.full_like(content, number), content), 0)
        rows += shown
    return {"observed_content": hashes, "observed_rows": rows}


def seen(c: Columns, content: Ints, group: Bools, facts: Facts) -> dict[str, Any]:
    """Return the same columns of deliveries, what observers got, so that both sides cancel out."""
    if not facts.observers:
        return {}
    return {
        "observed_content": np.where(group, 0, mixed(c["reader"], content)),
        "observed_rows": np.where(group, np.int64(0), np.int64(-1)),
    }


def merged_by_name(observers: Iterable[Observed]) -> dict[str, int]:
    """Return the number of records that each observer got in all its lives."""
    found: dict[str, int] = {}
    for one in observers:
        name = _worker(one.name)
        found[name] = found.get(name, 0) + one.records
    return found


def _worker(writer: str) -> str:
    return writer.rpartition(".")[0] or writer


def behind_by_name(observers: Iterable[Observed], started: Iterable[str]) -> dict[str, str]:
    """Return the observers that did not read to the end in any of their lives, with what they had not read.

    The end is requested when all producers have stopped, so it is behind everything that a fault could have touched.
    """
    found: dict[str, str | None] = dict.fromkeys(started)
    for one in observers:
        name = _worker(one.name)
        if found.get(name) != "":
            found[name] = one.behind if one.behind is not None else found.get(name)
    return {
        name: "it ended before it said so" if behind is None else behind
        for name, behind in found.items()
        if behind != ""
    }
