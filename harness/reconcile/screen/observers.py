"""Observers: readers beside the group that read every topic while it breaks, each in one isolation. Pure numpy.

From the first to the last record that an observer was given of a partition, it has to have been given what the log of its
isolation holds there, once. Both sides are hashed by block, as everything is (harness.reconcile.screen.summaries): a record that it
saw and that is gone, one that it was never given, and another one at its offset leave a difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.reconcile.arrays import Bools, Columns, Ints, mixed
from harness.reconcile.screen.summaries import Facts
from harness.reconcile.seal.sealed import Observed

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Observer:
    """The same for kernels."""

    reads_committed: bool
    places: Ints  # in order, and of each:
    first: Ints
    reach: Ints

    @classmethod
    def of(cls, told: Observed) -> Observer:
        spans = np.array(told.spans, dtype=np.int64).reshape(-1, 4)
        places = spans[:, 0] << 32 | spans[:, 1]
        order = np.argsort(places)
        return cls(
            told.isolation == "read_committed",
            places[order],
            spans[:, 2][order].copy(),
            spans[:, 3][order].copy(),
        )

    def passed(self, place: Ints, offset: Ints) -> Bools:
        """Where it was: between the first and the last that it was given."""
        if not len(self.places):
            return np.zeros(len(place), dtype=np.bool_)
        at = np.minimum(np.searchsorted(self.places, place), len(self.places) - 1)
        inside: Bools = (self.places[at] == place) & (offset >= self.first[at]) & (offset < self.reach[at])
        return inside


def of_group(reader: Ints, facts: Facts) -> Bools:
    """Whose rows are the group's."""
    return ~np.isin(reader, list(facts.observers))


def promised_committed(reader: Ints, facts: Facts) -> Bools:
    """Whose rows are asked about aborted and premature reads. An observer of read_uncommitted sees them by design, all of
    them: asked as well, it would put every block with an aborted transaction in doubt."""
    anything = [number for number, observer in facts.observers.items() if not observer.reads_committed]
    return ~np.isin(reader, anything)


def to_be_seen(c: Columns, place: Ints, content: Ints, facts: Facts) -> dict[str, Any]:
    """Of rows of the log: h1 and n2, what observers have to have been given."""
    if not facts.observers:
        return {}
    h1, n2 = np.zeros_like(content), np.zeros_like(content)
    for number, observer in facts.observers.items():
        shown = c["committed"] if observer.reads_committed else c["uncommitted"]
        shown = shown & observer.passed(place, c["offset"])
        h1 ^= np.where(shown, mixed(np.full_like(content, number), content), 0)
        n2 += shown
    return {"h1": h1, "n2": n2}


def seen(c: Columns, content: Ints, group: Bools, facts: Facts) -> dict[str, Any]:
    """Of deliveries: h1 and n2, what observers were given, so that both sides cancel out."""
    if not facts.observers:
        return {}
    return {
        "h1": np.where(group, 0, mixed(c["reader"], content)),
        "n2": np.where(group, np.int64(0), np.int64(-1)),
    }


def merged_by_name(observers: Iterable[Observed]) -> dict[str, int]:
    """How many records each observer got, all its lives together."""
    found: dict[str, int] = {}
    for one in observers:
        name = _worker(one.name)
        found[name] = found.get(name, 0) + one.records
    return found


def _worker(writer: str) -> str:
    return writer.rpartition(".")[0] or writer


def behind_by_name(observers: Iterable[Observed], started: Iterable[str]) -> dict[str, str]:
    """Which observers did not read to the end in any of their lives, and what is known about that.

    An end that is asked for when all producers have stopped is behind everything that a fault could have touched.
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
