"""The effects that a pipeline makes of its input: pure, so the expected output follows from the input alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

INPUT, OUTPUT, DEAD_LETTERS = 0, 1, 2  # numbers of the topics of a pipeline
_PARTS = 1 << 20


def output_of(topic: str) -> str:
    """Return the name of the topic that a pipeline makes of this one."""
    return f"{topic}-output"


def dead_letters_of(topic: str) -> str:
    return f"{topic}-dead-letters"


@dataclass(frozen=True)
class Transform:
    """Each input has 0 to `most` effects in the output, or is poison and has one among the dead letters."""

    most: int = 2
    poison_share: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.most <= 100:
            raise ValueError(f"Transform.most: {self.most} effects of one input; choose 0 to 100")
        if not 0 <= self.poison_share <= 1:
            raise ValueError(f"Transform.poison_share: {self.poison_share}; choose a share from 0 to 1")

    def poison(self, session: npt.NDArray[Any], seq: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Mark the inputs that are poison."""
        parts = (_mixed(session, seq) >> np.uint64(20)) % np.uint64(_PARTS)
        return parts < np.uint64(round(self.poison_share * _PARTS))

    def effects(self, session: npt.NDArray[Any], seq: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the number of effects that each input must have, always the same for one message."""
        healthy = (_mixed(session, seq) >> np.uint64(44)) % np.uint64(self.most + 1)
        return np.where(self.poison(session, seq), 1, healthy.astype(np.int64))


def _mixed(session: npt.NDArray[Any], seq: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a hash of each message over 64 bits; wraps on purpose."""
    state = session.astype(np.uint64) * np.uint64(0xD6E8_FEB8_6659_FD93) + seq.astype(np.uint64)
    state *= np.uint64(0x9E37_79B9_7F4A_7C15)
    state ^= state >> np.uint64(29)
    state *= np.uint64(0xBF58_476D_1CE4_E5B9)
    mixed: npt.NDArray[np.uint64] = state ^ (state >> np.uint64(32))
    return mixed
