"""The deliveries of a generated history to its group, with what is planted in them."""

from __future__ import annotations

import numpy as np

from benchmarks.generated.history import (
    CODE,
    EARLY_POLL_NS,
    MS,
    NEXT_POLL_NS,
    OWNED,
    PARTITIONS,
    POLL_NS,
    ROUND_NS,
    START,
    Given,
    History,
    Rows,
)


class Group(History):
    """The group: each record is given to the owner of its partition in the round after its own."""

    def _owner(self, partition: int, number: int) -> int:
        return int(partition in OWNED[number >= self.middle][1])

    def _given(self, rows: Rows, first: int, stop: int) -> Given:
        owner = np.array([[self._owner(p, r) for p in range(PARTITIONS)] for r in range(first, stop)])
        turn = np.array([
            [OWNED[r >= self.middle][self._owner(p, r)].index(p) for p in range(PARTITIONS)] for r in range(first, stop)
        ])  # fmt: skip
        row = np.flatnonzero(rows["readable"] | (rows["plant"] == CODE["aborted_read"]))
        cell = rows["round"][row] - first, rows["partition"][row]
        t = START + (rows["round"][row] + 1) * ROUND_NS + POLL_NS + turn[cell] * NEXT_POLL_NS
        given = Given(row, t.astype(np.int64), owner[cell].astype(np.int64))
        if not self.plants:
            return given
        self._give_early(rows, given)
        given = self._give_again(rows, given)
        given = self._give_elsewhere(rows, given)
        if first <= self.middle < stop:
            given = self._rebalance(rows, given)
        return given

    def _give_early(self, rows: Rows, given: Given) -> None:
        """A poll before the transactions ended: all records before one of theirs, and that record."""
        for mark in np.flatnonzero(rows["plant"] == CODE["premature_read"]).tolist():
            number, partition = rows["round"][mark], rows["partition"][mark]
            at = rows[given.row]
            early = (at["round"] == number) & (at["partition"] == partition) & (given.row <= mark)
            given.t[early] = START + number * ROUND_NS + EARLY_POLL_NS

    def _give_again(self, rows: Rows, given: Given) -> Given:
        """A reader goes back by three records: within a poll, or in a separate poll."""
        for mark in np.flatnonzero(rows["plant"] == CODE["rewound"]).tolist():
            at = int(np.flatnonzero(given.row == mark)[0])
            again = np.arange(at - 2, at + 1)
            later = MS * (int(rows["copy"][mark]) % 2)
            if later:
                rest = given.row > mark
                rest &= (rows["partition"][given.row] == rows["partition"][mark]) & (given.t == given.t[at])
                given.t[rest] += later
            t = np.full(3, given.t[at] + later)
            given = given.with_more(np.full(3, at), Given(given.row[again], t, given.reader[again]))
        return given

    def _give_elsewhere(self, rows: Rows, given: Given) -> Given:
        """Let readers pass over records; two of them are given to the other reader later."""
        passed_over = rows["plant"][given.row] == CODE["skipped"]
        other = passed_over & (rows["copy"][given.row] < 2)
        given.reader[other] = 1 - given.reader[other]
        given.t[other] = START + (rows["round"][given.row[other]] + 1) * ROUND_NS + 75 * MS
        return given.kept(~passed_over | other)

    def _rebalance(self, rows: Rows, given: Given) -> Given:
        """Partitions 0 and 1 go on too late, the new readers of 2 and 3 and the old ones of 4 and 5 too early."""
        keep = np.ones(len(given.row), dtype=bool)
        again: list[int] = []
        resumed: list[int] = []  # the first delivery after the rebalance, for each of `again`
        partition_of, round_of = rows["partition"][given.row], rows["round"][given.row]
        half = self.plants // 2
        for partition, count in enumerate((self.plants - half, half, self.plants - half, half, 2, 2)):
            mine = partition_of == partition
            before = np.flatnonzero(mine & (round_of == self.middle - 1))
            last = before[len(before) - count :].tolist()
            if partition < 2:
                keep[last] = False
                self.expected["undelivered"] += count
            else:
                again += last
                resumed += [int(np.flatnonzero(mine & (round_of == self.middle))[0])] * count
                self.expected["redelivered"] += count
                self.expected["rewound"] += partition >= 4  # with the excuse `rebalance`
        more = Given(given.row[again], given.t[resumed], given.reader[resumed])
        # Right before the first one after the rebalance: after all that came before it.
        kept = np.cumsum(keep) - 1
        return given.kept(keep).with_more(kept[resumed] - 1, more)
