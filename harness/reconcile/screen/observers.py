"""Observers: readers beside the group that read every topic while it breaks, each in one isolation. Pure numpy.

From the first to the last record that an observer was given of a partition, it has to have been given what the log of its
isolation holds there, once. Both sides are hashed by block, as everything is (harness.reconcile.screen.summaries): a record that it
saw and that is gone, one that it was never given, and another one at its offset leave a difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from harness.reconcile.screen.summaries import Bools, Columns, Facts, Ints, mixed

if TYPE_CHECKING:
    from harness.reconcile.seal.rows import Event

Span = list[int]  # topic, partition, first offset, 1 + highest offset; a list, as JSON gives it back


@dataclass
class Observed:
    """What sealing tells of one observer."""

    reader: int  # its number in the tables
    name: str
    isolation: str
    records: int = 0
    spans: list[Span] = field(default_factory=list)
    behind: str | None = None  # what it had not read when it was asked to stop; None: it never said

    def add(self, rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
        """The same rows, which it was given next."""
        self.records += len(rows)
        known = {(topic, partition): (first, reach) for topic, partition, first, reach in self.spans}
        for topic, partition in {*zip(rows["topic"].tolist(), rows["partition"].tolist(), strict=True)}:
            mine = rows["offset"][(rows["topic"] == topic) & (rows["partition"] == partition)]
            first, reach = int(mine.min()), int(mine.max()) + 1
            before = known.get((topic, partition), (first, reach))
            known[topic, partition] = min(first, before[0]), max(reach, before[1])
        self.spans = [[*place, *span] for place, span in sorted(known.items())]
        return rows


def isolation_of(event: Event) -> str:
    """What an `observer` event says; KeyError or ValueError where it does not."""
    isolation = str(event["isolation"])
    if isolation not in ("read_committed", "read_uncommitted"):
        raise ValueError(f"isolation: {isolation!r}")
    return isolation


def behind_of(event: Event) -> str:
    """What a `reached` event says that its observer had not read; empty: it had read everything."""
    detail = str(event.get("detail", ""))
    return "" if event.get("complete") is True else detail or "it does not say what"


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
