"""The first pass of the closer look: it reports many positions of one block as the block."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from harness.ledger.message import BAD_PAYLOAD
from harness.reconcile.select.related_rows import DENSE, NEEDED, Hunt
from harness.reconcile.select.row_keys import Kind, Wanted

RUN = 7


def hunted(count: int, step: int, flags: int = 0) -> Counter[tuple[int, int, int]]:
    """Kind, x and y of what is found when the first `count` messages of session 1 are not where their acks say."""
    moved = Wanted()
    seq = np.arange(count)
    moved.add(Kind.MESSAGES, np.full(count, RUN), np.ones(count, dtype=np.int64), seq >> 6)
    c = {name: np.zeros(count, dtype=np.int64) for name in ("run", *NEEDED["deliveries"])}
    c |= {"session": c["session"] + 1, "seq": seq, "offset": seq * step, "run": c["run"] + RUN}
    c["flags"] += flags
    hunt = Hunt(moved, Wanted(), {}, {}, {}, [])
    found: Counter[tuple[int, int, int]] = Counter()
    for batch in hunt.work("deliveries")([pa.RecordBatch.from_pydict(c)]):
        for row in batch.to_pylist():
            assert row["run"] == RUN
            found[row["kind"], row["x"], row["y"]] += 1
    return found


def test_dense_positions_are_reported_as_their_blocks() -> None:
    assert hunted(200, 1) == {
        **{(Kind.POSITIONS, 0, block): 1 for block in range(3)},
        **{(Kind.POSITION, 0, offset): 1 for offset in range(192, 200)},
    }


def test_few_positions_of_a_block_are_reported_one_by_one() -> None:
    sparse = 64 // (DENSE - 1) + 1
    assert set(hunted(100, sparse)) == {(Kind.POSITION, 0, number * sparse) for number in range(100)}


def test_nothing_is_reported_of_no_rows() -> None:
    assert hunted(0, 1) == {}


def test_records_that_cannot_be_read_have_positions_all_the_same() -> None:
    assert set(hunted(64, 1, BAD_PAYLOAD)) == {(Kind.POSITIONS, 0, 0)}
