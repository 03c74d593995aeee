"""Compute the records that a pipeline sends for its inputs: pure functions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN, ORIGIN
from harness.ledger.transform import DEAD_LETTERS, OUTPUT, Transform


class Effects(NamedTuple):
    """One entry for each record to send."""

    keys: npt.NDArray[np.int32]
    partitions: npt.NDArray[np.int16]  # -1: the client chooses by the key
    topics: npt.NDArray[np.uint8]
    origins: npt.NDArray[np.void]  # rows of harness.ledger.message.ORIGIN


def effects_of(inputs: npt.NDArray[np.void], transform: Transform, partitions: int) -> Effects:
    """Return the effects of these deliveries in their order. A damaged record or one of another run has none."""
    ours = inputs[(inputs["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0]
    counts = transform.effects(ours["session"], ours["seq"])
    made: Any = np.repeat(ours, counts)
    numbers = np.arange(len(made)) - np.repeat(np.cumsum(counts) - counts, counts)
    origins = np.zeros(len(made), dtype=ORIGIN)
    for name in ("session", "seq", "topic", "partition", "offset"):
        origins[name] = made[name]
    origins["number"] = numbers
    poison = transform.poison(made["session"], made["seq"])
    # A key is kept. Records without a key are spread, so that one input has effects in several partitions.
    spread = (made["partition"] + numbers) % partitions
    return Effects(
        made["key"].astype(np.int32),
        np.where(made["key"] >= 0, -1, spread).astype(np.int16),
        np.where(poison, DEAD_LETTERS, OUTPUT).astype(np.uint8),
        origins,
    )
