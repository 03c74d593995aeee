"""A client whose readers lie on purpose, for testing the harness itself only.

It wraps the confluent client and changes what the log seems to hold, as the environment variable
ONCEPROOF_LIE says, for example `lose,swap`. A harness that still says HELD is blind. With `die` the reader tells the
truth and is killed half way, as if from outside: a harness that then says VIOLATED accuses Kafka of its own failure.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from harness.clients.confluent import Confluent, ConfluentConsumer, ConfluentProducer
from harness.contracts import Batch, Consumer, ConsumerSpec, OnAssignment, Outcome, ProducerSpec
from harness.errors import UsageError
from harness.ledger.message import BAD_PAYLOAD

# Which lie is told about which sequence number of each session: apart, so that several can be told at once.
LIES = {"lose": 10, "repeat": 20, "swap": 30, "corrupt": 40, "die": 50}
_A_FEW = 20  # records at once, so that one that dies has written some


class LyingConsumer:
    def __init__(self, inner: ConfluentConsumer, lies: list[str]) -> None:
        self._inner, self._lies = inner, lies

    def poll(self, timeout_s: float, at_most: int = 1000) -> Batch:
        batch = self._inner.poll(timeout_s, min(at_most, _A_FEW) if "die" in self._lies else at_most)
        rows = batch.rows
        for lie in self._lies:
            rows = _told(rows, lie)
        effects = batch.effects
        if effects is not None and "lose" in self._lies:
            effects = effects[effects["seq"] != LIES["lose"]]
        return replace(batch, rows=rows, effects=effects)

    def commit(self, positions: Mapping[int, int]) -> tuple[Outcome, str]:
        return self._inner.commit(positions)

    def store(self, positions: Mapping[int, int]) -> None:
        self._inner.store(positions)

    def rewind(self, timeout_s: float) -> list[int] | None:
        return self._inner.rewind(timeout_s)

    def bounds(self, partition: int, timeout_s: float) -> tuple[int, int]:
        return self._inner.bounds(partition, timeout_s)

    def close(self) -> None:
        self._inner.close()


def _told(rows: npt.NDArray[np.void], lie: str) -> npt.NDArray[np.void]:
    victims = np.flatnonzero(rows["seq"] == LIES[lie])
    if not len(victims):
        return rows
    if lie == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    told = rows.copy()
    if lie == "lose":
        return np.delete(told, victims)
    if lie == "repeat":
        again = told[victims].copy()
        again["offset"] += 1 << 40  # one message at two offsets
        return np.concatenate([told, again])
    if lie == "corrupt":
        told["flags"][victims] |= BAD_PAYLOAD
        return told
    # swap: the victim stands where the next record of its session in that partition stands, and the reverse
    for victim in victims.tolist():
        same = (told["session"] == told["session"][victim]) & (told["partition"] == told["partition"][victim])
        later = np.flatnonzero(same & (told["seq"] > LIES[lie]))
        if len(later):
            other = int(later[0])
            offsets = told["offset"][[victim, other]].copy()
            told["offset"][[other, victim]] = offsets
    return told


class Lying:
    def __init__(self) -> None:
        self._lies = os.environ.get("ONCEPROOF_LIE", "").split(",")
        if not set(self._lies) <= LIES.keys():
            raise UsageError(f"ONCEPROOF_LIE is {','.join(self._lies)!r}; `lying` knows: {', '.join(LIES)}")
        self._honest = Confluent()

    def open_producer(self, settings: ProducerSpec) -> ConfluentProducer:
        return self._honest.open_producer(settings)

    def open_consumer(self, settings: ConsumerSpec, on_assignment: OnAssignment) -> Consumer:
        honest = self._honest.open_consumer(settings, on_assignment)
        # Only the final reader lies: what the group saw stays true.
        return honest if settings.group else LyingConsumer(honest, self._lies)


client_class = Lying
