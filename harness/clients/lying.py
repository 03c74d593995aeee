"""A client whose readers lie on purpose, for testing the harness itself only.

It wraps the confluent client and changes the records that it returns. The environment variable ONCEPROOF_LIE chooses how, for
example `lose,swap`. If the verdict is still HELD, the harness is blind. With `die` the reader returns true records and is
killed half way, as if from outside: if the verdict is then VIOLATED, the harness blames Kafka for its own failure.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.clients.confluent import Confluent, ConfluentProducer
from harness.clients.librdkafka.consumer import ConfluentConsumer
from harness.contracts import Batch, Consumer, ConsumerSpec, OnAssignment, Outcome, ProducerSpec
from harness.errors import UsageError
from harness.ledger.message import BAD_PAYLOAD, EFFECT

# The sequence number of each session that a lie changes: different ones, so that lies can be combined.
LIES = {"lose": 10, "lose_effect": 15, "repeat": 20, "swap": 30, "corrupt": 40, "die": 50}
_A_FEW = 20  # records per poll, so that a reader that dies has written some


class LyingConsumer:
    def __init__(self, inner: ConfluentConsumer, lies: list[str]) -> None:
        self._inner, self._lies = inner, lies

    def poll(self, timeout_s: float, at_most: int = 1000) -> Batch:
        batch = self._inner.poll(timeout_s, min(at_most, _A_FEW) if "die" in self._lies else at_most)
        rows = batch.rows
        for lie in self._lies:
            rows = _apply(lie, rows)
        effects = batch.effects
        for lie in ("lose", "lose_effect"):
            if effects is not None and lie in self._lies:
                effects = effects[effects["seq"] != LIES[lie]]
        return replace(batch, rows=rows, effects=effects)

    def commit(self, positions: Mapping[int, int]) -> tuple[Outcome, str]:
        return self._inner.commit(positions)

    def store(self, positions: Mapping[int, int]) -> None:
        self._inner.store(positions)

    def offsets_for_transaction(self, positions: Mapping[int, int]) -> Any:
        return self._inner.offsets_for_transaction(positions)

    def rewind(self, timeout_s: float) -> list[int] | None:
        return self._inner.rewind(timeout_s)

    def bounds(self, partition: int, timeout_s: float) -> tuple[int, int]:
        return self._inner.bounds(partition, timeout_s)

    def close(self) -> None:
        self._inner.close()


def _apply(lie: str, rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    chosen = rows["seq"] == LIES[lie]
    if lie == "lose_effect":  # and no input: of an input that is lost itself no effect is owed
        chosen &= rows["intent"] & EFFECT > 0
    victims = np.flatnonzero(chosen)
    if not len(victims):
        return rows
    if lie == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    changed = rows.copy()
    if lie in ("lose", "lose_effect"):
        return np.delete(changed, victims)
    if lie == "repeat":
        again = changed[victims].copy()
        again["offset"] += 1 << 40  # one message at two offsets
        return np.concatenate([changed, again])
    if lie == "corrupt":
        changed["flags"][victims] |= BAD_PAYLOAD
        return changed
    # swap: the victim and the next record of its session in that partition exchange their offsets
    for victim in victims.tolist():
        same = (changed["session"] == changed["session"][victim]) & (
            changed["partition"] == changed["partition"][victim]
        )
        later = np.flatnonzero(same & (changed["seq"] > LIES[lie]))
        if len(later):
            other = int(later[0])
            offsets = changed["offset"][[victim, other]].copy()
            changed["offset"][[other, victim]] = offsets
    return changed


class Lying:
    check_options = Confluent.check_options

    def __init__(self) -> None:
        self._lies = os.environ.get("ONCEPROOF_LIE", "").split(",")
        if not set(self._lies) <= LIES.keys():
            raise UsageError(
                f"ONCEPROOF_LIE={','.join(self._lies)}: unknown lie; choose from {', '.join(LIES)}"
            )
        self._honest = Confluent()

    def open_producer(self, settings: ProducerSpec) -> ConfluentProducer:
        return self._honest.open_producer(settings)

    def open_consumer(self, settings: ConsumerSpec, on_assignment: OnAssignment) -> Consumer:
        honest = self._honest.open_consumer(settings, on_assignment)
        # Only the final reader lies: the deliveries of the group stay true.
        return honest if settings.group else LyingConsumer(honest, self._lies)


client_class = Lying
