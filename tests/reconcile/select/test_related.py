"""The first pass of the closer look: it reports many positions of one block as the block."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from harness.ledger.message import BAD_PAYLOAD
from harness.reconcile.select.related import DENSE, NEEDED, Search
from harness.reconcile.select.wanted import Kind, Ranges, Wanted

RUN = 7


def related_to(count: int, step: int, flags: int = 0) -> Counter[tuple[int, int, int]]:
    """Kind, x and y of what is found when the first `count` messages of session 1 are not where their acks say."""
    moved = Wanted()
    seq = np.arange(count)
    moved.add(Kind.MESSAGES, np.full(count, RUN), np.ones(count, dtype=np.int64), seq >> 6)
    c = {name: np.zeros(count, dtype=np.int64) for name in ("run", *NEEDED["deliveries"])}
    c |= {"session": c["session"] + 1, "seq": seq, "offset": seq * step, "run": c["run"] + RUN}
    c["flags"] += flags
    search = Search(moved, Wanted(), Ranges({}), Ranges({}), {}, [])
    found: Counter[tuple[int, int, int]] = Counter()
    for batch in search.work("deliveries")([pa.RecordBatch.from_pydict(c)]):
        for row in batch.to_pylist():
            assert row["run"] == RUN
            found[row["kind"], row["x"], row["y"]] += 1
    return found


def test_dense_positions_are_reported_as_their_blocks() -> None:
    assert related_to(200, 1) == {
        **{(Kind.POSITIONS, 0, block): 1 for block in range(3)},
        **{(Kind.POSITION, 0, offset): 1 for offset in range(192, 200)},
    }


def test_few_positions_of_a_block_are_reported_one_by_one() -> None:
    sparse = 64 // (DENSE - 1) + 1
    assert set(related_to(100, sparse)) == {(Kind.POSITION, 0, number * sparse) for number in range(100)}


def test_nothing_is_reported_of_no_rows() -> None:
    assert related_to(0, 1) == {}


def test_records_that_cannot_be_read_have_positions_all_the_same() -> None:
    assert set(related_to(64, 1, BAD_PAYLOAD)) == {(Kind.POSITIONS, 0, 0)}
