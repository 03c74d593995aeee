"""Anomalies planted in a generated history, at places far enough from each other that each one is found by itself.

`History.expected` counts how many of each kind docs/anomalies.md calls for, anomalies that follow from another one included.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.generated.history import (
    BATCHES,
    CODE,
    FIRST_PLANTED_KEY,
    KEYED,
    KEYLESS,
    MS,
    PARTITIONS,
    ROUND_NS,
    TRANSACTIONAL,
    TXN_KEYED,
    TXN_KEYLESS,
    History,
    Ints,
    Rows,
)
from harness.ledger.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP, FOREIGN_RUN
from harness.reconcile.screen.summaries import CONCURRENT_NS

APART = 8  # rows between two plants
FROM_EDGE = 12  # rows from a plant to the first or last row of its partition's round: these have other plants


class Plants(History):
    """The plants in the log; those of the group are in benchmarks.generated.group."""

    def _planted(self, rows: Rows, first: int, stop: int, copies: list[int]) -> Rows:
        """Choose and mark the places of all plants of a piece, and rearrange its rows for those that are about order."""
        if not copies:
            return rows
        sites = _Sites(rows, self.rng)
        moved = np.arange(len(rows)) * 2  # places; an odd one is right after the even one before it
        more: list[tuple[int, Rows]] = []
        session, batch, committed = rows["session"], rows["batch"], rows["owed"]
        plain = session == KEYLESS
        run_of_three = plain & np.roll(plain, 1) & np.roll(plain, 2) & np.roll(plain, -1)
        for copy in copies:
            self._choose_polls(rows, sites, copy)
        for copy in copies:
            self._plant_keys(rows, sites, moved, copy)
            for name in ("lost", "corrupted", "misplaced", "offset_conflict"):
                if name == "misplaced" and copy % 2:
                    continue  # a key in two partitions instead
                sites.take(plain, name, copy)
                self.expected[name] += 1
            twin = sites.take(plain, "duplicated", copy)
            more.append((2 * twin + 7, rows[[twin]]))
            more[-1][1]["first"], more[-1][1]["plant"] = False, 0
            self.expected["duplicated"] += 1
            near = sites.take(plain, "phantom", copy)
            stranger = rows[[near]]
            stranger["seq"], stranger["first"], stranger["plant"] = self.each + 1000 + copy, False, 0
            stranger["flags"] = FOREIGN_RUN if copy % 2 else 0
            more.append((2 * near + 1, stranger))
            self.expected["phantom"] += 1
            behind = sites.take(run_of_three & (batch == np.roll(batch, -1)), "reordered", copy)
            moved[behind], moved[behind + 1] = moved[behind + 1], moved[behind]
            self.expected["reordered"] += 1
            sites.take(run_of_three, "rewound", copy)
            self.expected["rewound"] += 1
            self.expected["redelivered"] += 3
            # Of the records that one reader passed over, another reader gets two later: no more than one of a partition,
            # or it would have passed over the records between them.
            elsewhere = {0: 0, 1: 4}.get(copy)
            sites.take(
                plain if elsewhere is None else plain & (rows["partition"] == elsewhere), "skipped", copy
            )
            self.expected["skipped"] += 1
            self.expected["undelivered"] += elsewhere is None
            sites.take(~committed, "aborted_read", copy)
            self.expected["aborted_read"] += 1
            gone = sites.take(committed & (session == TRANSACTIONAL[copy % 2]), "torn", copy)
            self.torn.add((int(session[gone]), int(rows["txn"][gone])))
            self.expected["lost"] += 1
        intended = rows["plant"] == CODE["misplaced"]
        rows["intended"][intended] = (rows["intended"][intended] + 1) % PARTITIONS
        absent = np.isin(rows["plant"], (CODE["lost"], CODE["torn"]))
        rows["in_log"][absent] = rows["in_committed"][absent] = False
        places = np.r_[moved, [place for place, _ in more]]
        return np.concatenate([rows, *(extra for _, extra in more)])[np.argsort(places, kind="stable")]

    def _choose_polls(self, rows: Rows, sites: _Sites, copy: int) -> None:
        """Choose whole polls: one before the end of one of its transactions, and one that is committed before it is given."""
        early = (rows["round"] != self.middle) & (rows["session"] == TXN_KEYLESS) & rows["owed"]
        sites.take_poll(early, "premature_read", copy)
        self.expected["premature_read"] += 1
        sites.take_poll((rows["round"] > 0) & (rows["session"] == KEYLESS), "overcommitted", copy)
        self.expected["overcommitted"] += 1

    def _plant_keys(self, rows: Rows, sites: _Sites, moved: Ints, copy: int) -> None:
        """Plant pairs of records with the same new key, in the opposite order or in two partitions."""
        session, batch, partition = rows["session"], rows["batch"], rows["partition"]
        key, where = FIRST_PLANTED_KEY + 2 * copy, rows["round"]
        whole = np.isin(
            where, np.unique(where[(batch == BATCHES - 1) & (session == TXN_KEYED) & rows["owed"]])
        )
        if copy % 2:
            # In two partitions of one reader; partition 0 is polled before partition 1, so the group gets the first
            # pair as it was sent (misplaced only), the second one the other way round.
            for first, second in ((0, 1), (1, 0)):
                sent = sites.take(whole & (session == KEYED) & (batch == 1) & (partition == first))
                later = (session == KEYED) & (batch == BATCHES - 1) & (partition == second)
                rows["key"][[sent, sites.take(later & (where == where[sent]))]] = key
                key += 1
                self.expected["misplaced"] += 1
            self.expected["key_reordered"] += 1
            return
        # The first one was acked long before the second was sent, and is right behind it: behind later ones
        # of its own session too.
        t, need = rows["t"], CONCURRENT_NS + MS
        last_sent = int(t[session == TXN_KEYED].max())
        early = (session == KEYED) & (batch == 0) & (rows["t_acked"] + need + 8 * MS < last_sent)
        sent = sites.take(early)
        after = int(rows["t_acked"][sent]) + need
        later = (
            (session == TXN_KEYED) & (partition == partition[sent]) & (t >= after) & (t < after + ROUND_NS)
        )
        before = sites.take(later)
        rows["key"][[sent, before]] = key
        moved[sent], rows["round"][sent] = 2 * before + 1, where[before]
        self.expected["key_reordered"] += 1
        self.expected["reordered"] += 1

    def _expire_and_delay(self, rows: Rows, first: int, stop: int) -> None:
        """The group gets each readable record; the log has lost its start in one partition, and its end is not stable."""
        rows["readable"] = rows["in_committed"]
        if self.plants and first == 0:
            start = np.flatnonzero(rows["partition"] == 5)[: self.plants]
            rows["in_log"][start] = rows["in_committed"][start] = False  # and readable when the group read it
            self.start[5] = rows["offset"][start[-1]] + 1
            self.expected["expired"] += int(np.count_nonzero(rows["owed"][start]))
        if self.plants and stop == self.rounds:
            end = np.flatnonzero(rows["partition"] == 4)[-self.plants :]
            self.expected["late"] += int(np.count_nonzero(rows["owed"][end]))
            rows["in_committed"][end] = rows["readable"][end] = False
            self.stable[4] = rows["offset"][end[0]]

    def _damage(self, rows: Rows) -> None:
        """Damage records after their attempts have been written."""
        harmed = np.flatnonzero(rows["plant"] == CODE["corrupted"])
        for row, copy in zip(harmed.tolist(), rows["copy"][harmed].tolist(), strict=True):
            flag = (BAD_PAYLOAD, BAD_KEY, BAD_HEADER, BAD_TIMESTAMP, 0)[copy % 5]
            rows["flags"][row] = flag
            if flag == BAD_PAYLOAD:
                for name in ("session", "seq", "txn", "key", "intended"):
                    rows[name][row] = 0
            elif flag == 0:
                rows["key"][row] = FIRST_PLANTED_KEY - 1


class _Sites:
    """Places for plants in the rows of a piece: chosen at random, none near another or near the edge of a poll."""

    def __init__(self, rows: Rows, rng: np.random.Generator) -> None:
        self._rows, self._rng = rows, rng
        group = rows["partition"] * (int(rows["round"].max()) + 1) + rows["round"]
        self._starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        self._free = np.ones(len(rows), dtype=bool)
        for edge in (*self._starts.tolist(), len(rows)):
            self._free[max(edge - FROM_EDGE, 0) : edge + FROM_EDGE] = False
        self._polls_free = np.ones(len(rows), dtype=bool)

    def take(self, fitting: npt.NDArray[np.bool_], name: str | None = None, copy: int = 0) -> int:
        """Return one of the fitting rows, marked as the plant of this name."""
        return self._take(np.flatnonzero(fitting & self._free), name, copy)

    def take_poll(self, fitting: npt.NDArray[np.bool_], name: str, copy: int) -> int:
        """Return the first fitting row of a poll that has no plant of this kind yet."""
        rows = np.flatnonzero(fitting)
        poll = np.searchsorted(self._starts, rows, side="right")
        firsts = rows[np.unique(poll, return_index=True)[1]]
        return self._take(firsts[self._polls_free[firsts]], name, copy)

    def _take(self, candidates: Ints, name: str | None, copy: int) -> int:
        if not len(candidates):
            raise ValueError(f"no place is left to plant {name or 'a key'}: more records are needed")
        row = int(self._rng.choice(candidates))
        self._free[max(row - APART, 0) : row + APART + 1] = False
        self._polls_free[row] = False
        if name is not None:
            self._rows["plant"][row], self._rows["copy"][row] = CODE[name], copy
        return row
