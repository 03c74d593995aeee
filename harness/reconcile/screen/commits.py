"""Commits of readers: by place, with what was readable below each and what the group had got by then. Pure numpy."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from harness.contracts import Outcome
from harness.reconcile.arrays import Bools, Columns, Ints, place_of
from harness.reconcile.screen.spaces import Space, Summary
from harness.reconcile.screen.summaries import folded

if TYPE_CHECKING:
    from harness.reconcile.screen.facts import Facts


@dataclass(frozen=True)
class Commits:
    """Acked commits of one place in order of time, and their offsets in order."""

    t: Ints
    offset: Ints
    reader: Ints
    offsets_sorted: Ints


def commits_by_place(commits: pa.Table) -> dict[int, dict[int, Commits]]:
    """Return the acked commits of each run, by place."""
    names = ("run", "topic", "partition", "t", "offset", "reader", "outcome")
    c = {name: commits.column(name).to_numpy(zero_copy_only=False) for name in names}
    acked = c["outcome"] == Outcome.ACKED
    c = {name: values[acked].astype(np.int64) for name, values in c.items()}
    place = place_of(c["topic"], c["partition"])
    order = np.lexsort((c["t"], place, c["run"]))
    keys = np.stack([c["run"][order], place[order]])
    starts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)]) if len(order) else order
    found: dict[int, dict[int, Commits]] = defaultdict(dict)
    for mine in np.split(order, starts[1:]) if len(order) else []:
        offsets = c["offset"][mine]
        found[int(c["run"][mine[0]])][int(place[mine[0]])] = Commits(
            c["t"][mine], offsets, c["reader"][mine], np.sort(offsets)
        )
    return found


def below_commits(place: Ints, offset: Ints, readable: Bools, facts: Facts) -> list[Summary]:
    """Summarise the highest readable offset below each committed one, as far as this batch knows.

    Readable offsets 3 4 8, commits at 2 4 6 9: below them are - 3 4 8; the first commit has no row.
    """
    parts = []
    for at, of_place in facts.commits.items():
        commits, mine = of_place.offsets_sorted, np.sort(offset[readable & (place == at)])
        if not len(mine):
            continue
        # Commits from the first that has a record of this batch below it to the first that has all of them.
        first, last = (int(np.searchsorted(commits, mine[end], side="right")) for end in (0, -1))
        number = np.arange(first, min(last + 1, len(commits)))
        highest = mine[np.searchsorted(mine, commits[number], side="left") - 1]
        parts.append(
            folded(facts.run, Space.BELOW, np.full_like(number, at), number, next_offset=highest + 1)
        )
    return parts


def given_by_commits(c: Columns, facts: Facts) -> list[Summary]:
    """Summarise the highest offset that the group had been given when each commit was made, as far as this batch knows.

    Deliveries at times 1 2 5 of offsets 7 8 9, commits at times 0 2 3 6: given by then are - 8 8 9.
    """
    parts = []
    place = place_of(c["topic"], c["partition"])
    for at, of_place in facts.commits.items():
        commits, mine = of_place.t, place == at
        if not mine.any():
            continue
        t, offset = c["t"][mine], c["offset"][mine]
        if np.any(t[1:] < t[:-1]):
            order = np.argsort(t, kind="stable")
            t, offset = t[order], offset[order]
        highest = np.maximum.accumulate(offset)
        # Commits from the first that is after a row of this batch to the first that is after all of them.
        first, last = (int(np.searchsorted(commits, t[end], side="left")) for end in (0, -1))
        number = np.arange(first, min(last + 1, len(commits)))
        given = highest[np.searchsorted(t, commits[number], side="right") - 1] + 1
        parts.append(folded(facts.run, Space.GIVEN, np.full_like(number, at), number, next_offset=given))
    return parts
