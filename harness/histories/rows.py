"""The operations of a history as rows of the tables of a ledger; its messages get numbers, as those of a ledger have.

Times are line numbers, an operation is a transaction (its number is its line + 1), a process is a session and a reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from harness.contracts import Outcome
from harness.histories.parse import ASSIGN, SUBSCRIBE, History, Label, Operation
from harness.reconcile.seal.schema import SCHEMAS

# Columns of a read that only histories have: its operation and place in it, if it moves the reader's position (E5), how often
# that was forgotten (E6), and the rebalances that had touched the partition before the operation and by its end (E7).
READS = pa.schema([
    *SCHEMAS["deliveries"], ("op", pa.int64()), ("place_in_op", pa.int64()), ("ok", pa.bool_()),
    ("forgotten", pa.int64()), ("touched_before", pa.int64()), ("touched_after", pa.int64()),
])  # fmt: skip


def number_of(operation: Operation) -> int:
    return operation.line + 1


@dataclass(frozen=True)
class Numbered:
    """A history whose messages have numbers: session and sequence number, as in a ledger."""

    history: History
    ids: Mapping[tuple[int, Label], tuple[int, int]]  # partition, message -> session, seq

    @property
    def messages(self) -> dict[str, tuple[int, Label]]:
        """Partition and name of each message, by its id in findings."""
        return {f"{session}-{seq}": key for key, (session, seq) in self.ids.items()}


def number(history: History) -> Numbered:
    ids: dict[tuple[int, Label], tuple[int, int]] = {}
    sent: dict[int, int] = defaultdict(int)
    no_sender = len(history.processes)  # the session of messages without a send
    for operation in history.operations:
        for one in operation.sends:
            ids[one.partition, one.message] = operation.process, sent[operation.process]
            sent[operation.process] += 1
    for operation in history.operations:
        for read in operation.reads:
            if (read.partition, read.message) not in ids:
                ids[read.partition, read.message] = no_sender, sent[no_sender]
                sent[no_sender] += 1
    return Numbered(history, ids)


class HistoryRows:
    """The rows of one history, table by table."""

    def __init__(self, run: int, numbered: Numbered, rows: dict[str, list[dict[str, Any]]]) -> None:
        self._run, self._numbered, self._history, self._rows = run, numbered, numbered.history, rows
        self._forgotten: dict[tuple[int, int], int] = defaultdict(int)  # process, partition
        self._touched: dict[tuple[int, int], int] = defaultdict(int)

    def _add(self, table: str, **row: Any) -> None:
        self._rows[table].append({"run": self._run, **row})

    def add(self) -> None:
        # There is no final reading that could be incomplete: `lost` compares with what ok polls have passed.
        for partition in range(len(self._history.partitions)):
            self._add("bounds", topic=0, partition=partition, whole=True, whole_for_group=True)
        for operation in self._history.operations:
            self._add_transaction(operation)
            self._add_sends(operation)
            self._add_reads(operation)

    def _add_transaction(self, operation: Operation) -> None:
        about = {"session": operation.process, "txn": number_of(operation), "did": "commit"}
        self._add("transactions", step="end", t=operation.invoked or 0, **about)
        if operation.outcome is not Outcome.UNKNOWN:
            self._add("transactions", step="ended", t=operation.line, outcome=int(operation.outcome), **about)

    def _add_sends(self, operation: Operation) -> None:
        for sent in operation.sends:
            session, seq = self._numbered.ids[sent.partition, sent.message]
            self._add(
                "attempts", session=session, seq=seq, t=operation.line, topic=0, partition=sent.partition, key=-1,
                txn=number_of(operation), outcome=int(operation.outcome), t_outcome=operation.line,
                told_partition=sent.partition, offset=sent.offset, error=0,
            )  # fmt: skip

    def _add_reads(self, operation: Operation) -> None:
        process = operation.process
        before = {p: self._touched[process, p] for p in range(len(self._history.partitions))}
        for partition in operation.rebalanced:
            self._touched[process, partition] += 1
        if operation.kind in (ASSIGN, SUBSCRIBE) and operation.outcome is not Outcome.REJECTED:
            for partition in set(range(len(self._history.partitions))) - set(operation.partitions):
                self._forgotten[process, partition] += 1
        for place, read in enumerate(operation.reads):
            session, seq = self._numbered.ids[read.partition, read.message]
            writer = self._history.writers.get((read.partition, read.message))
            self._add(
                "deliveries", t=operation.line, topic=0, partition=read.partition, offset=read.offset, session=session,
                seq=seq, txn=number_of(writer) if writer else 0, key=-1, intended_partition=read.partition, flags=0,
                leader_epoch=-1, reader=process, generation=0, op=number_of(operation), place_in_op=place,
                ok=operation.outcome is Outcome.ACKED, forgotten=self._forgotten[process, read.partition],
                touched_before=before[read.partition], touched_after=self._touched[process, read.partition],
            )  # fmt: skip
