"""The promises: what each delivery mode forbids, what it allows and counts, and why.

At-most-once is acks=0, no retries, offsets committed before processing. At-least-once is acks=all, retries
without idempotence, offsets committed after processing. Idempotent adds enable.idempotence. Exactly-once is a
transactional producer, read_committed, offsets sent in the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from harness.contracts import Mode


class Rule(StrEnum):
    FORBIDDEN = "forbidden"
    COUNTED = "counted"  # allowed, and worth a number
    NOT_ASKED = "not asked"  # it cannot happen in this mode


SHARE_GROUP = "share_group"  # the workload with a share group


@dataclass(frozen=True)
class Conditions:
    """Conditions of a run that some cells of the table depend on."""

    in_flight: int | None = None  # requests in flight of every session; None: left to the client, so several
    topic_unchanged: bool = True  # the number of partitions stayed the same
    share_group: bool = False  # the group is a share group (KIP-932)
    forbids: frozenset[str] = (
        frozenset()
    )  # what the application cannot tolerate, although its mode may allow it


@dataclass(frozen=True)
class Cell:
    """One cell of the table. `excuses` name findings of this kind that are only counted, with the reason."""

    rule: Rule
    reason: str
    excuses: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Unless:
    """A cell that is another one under a condition."""

    normally: Cell
    condition: str
    then: Cell


def forbidden(reason: str, **excuses: str) -> Cell:
    return Cell(Rule.FORBIDDEN, reason, MappingProxyType(excuses))


def counted(reason: str) -> Cell:
    return Cell(Rule.COUNTED, reason)


CONDITIONS: Mapping[str, Callable[[Conditions], bool]] = {
    "one request in flight": lambda c: c.in_flight == 1,
    "the number of partitions changed": lambda c: not c.topic_unchanged,
}

_MODES = (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.IDEMPOTENT, Mode.EXACTLY_ONCE)
_NO_TXN = Cell(Rule.NOT_ASKED, "this mode has no transactions")


def _row(
    amo: Cell, alo: Cell | Unless, idempotent: Cell | Unless, eos: Cell | Unless
) -> dict[Mode, Cell | Unless]:
    return dict(zip(_MODES, (amo, alo, idempotent, eos), strict=True))


def _in_every_mode(cell: Cell) -> dict[Mode, Cell | Unless]:
    return _row(cell, cell, cell, cell)


def _transactional(cell: Cell) -> dict[Mode, Cell | Unless]:
    return _row(_NO_TXN, _NO_TXN, _NO_TXN, cell)


_ACKED_STAYS = "an ack of all in-sync replicas promises that the record stays while one of them lives"
_COMMITTED_STAYS = "a committed transaction is in the log as a whole and for good"
_WORK_FIRST = "offsets are committed after processing, so nothing below them may be unread"
_KEY_ORDER = "one partition for a key and one order in it give the key's order"
_KEY_MOVES = "with another number of partitions a key may move, and order is kept within a partition only"
_BY_CHOICE = "the reader chose read_uncommitted, which shows all records"

_LOST_BY_ACKS_0 = counted(
    "with acks=0 no broker confirms that a record was written, and the client does not retry"
)
_UNREAD = counted("offsets are committed before processing, so a reader that dies loses what it had fetched")
_REWOUND = forbidden("a reader goes back only when a rebalance hands it another reader's committed position",
                     rebalance="after a rebalance reading resumes from the last committed offset")  # fmt: skip
_SKIPPED = forbidden("a reader that jumps over records known to exist will never process them")

TABLE: Mapping[str, Mapping[Mode, Cell | Unless]] = MappingProxyType({
    "lost": _row(_LOST_BY_ACKS_0, forbidden(_ACKED_STAYS), forbidden(_ACKED_STAYS), forbidden(_COMMITTED_STAYS)),
    "undelivered": _row(_UNREAD, forbidden(_WORK_FIRST), forbidden(_WORK_FIRST), forbidden(_WORK_FIRST)),
    "missing_effect": _row(
        _UNREAD, forbidden(_WORK_FIRST), forbidden(_WORK_FIRST),
        forbidden("the effect and the offset of its input are committed in one transaction"),
    ),
    "duplicated": _row(
        forbidden("without retries nothing is written twice"),
        counted("a retry after a lost answer writes again, and without idempotence the broker does not notice"),
        forbidden("the broker recognises a retry by producer id and sequence number"),
        forbidden("the broker recognises a retry by producer id and sequence number"),
    ),
    "redelivered": _row(
        forbidden("offsets are committed before processing, so nothing is processed a second time"),
        counted("a reader that dies between processing and committing makes another one process again"),
        counted("idempotence is the producer's; a reader that dies before its commit makes another one process again"),
        counted("forbidden as double_effect only: a delivery repeated after an abort has no effect the first time"),
    ),
    "reordered": _row(
        counted("the client gives up a failed record and goes on with later ones, over another connection"),
        Unless(
            counted("with several requests in flight a retried one is written behind those that followed it"),
            "one request in flight",
            forbidden("with one request in flight the next one leaves only when this one is settled"),
        ),
        forbidden("the broker takes a session's batches in sequence only"),
        forbidden("the broker takes a session's batches in sequence only"),
    ),
    "skipped": _row(counted("what was committed before processing is not read again by the next owner"),
                    _SKIPPED, _SKIPPED, _SKIPPED),
    "rewound": _row(forbidden("offsets are committed before processing, so no reader goes back behind them"),
                    _REWOUND, _REWOUND, _REWOUND),
    "two_owners": _in_every_mode(
        forbidden("a partition is given to another member only when the one that has it gave it back, or is taken for dead")
    ),
    "overcommitted": _row(
        counted("committing before processing is what the mode is"),
        forbidden(_WORK_FIRST), forbidden(_WORK_FIRST), forbidden(_WORK_FIRST),
    ),
    "aborted_read": _transactional(
        forbidden("read_committed hides what was aborted", read_uncommitted=_BY_CHOICE)
    ),
    "premature_read": _transactional(
        forbidden("read_committed shows nothing beyond the last stable offset", read_uncommitted=_BY_CHOICE)
    ),
    "torn": _transactional(forbidden("the records of a transaction become visible together")),
    "read_cycle": _transactional(forbidden("a transaction that has read another's writes comes after it")),
    "double_effect": _transactional(
        forbidden("the effect and the offset of its input are committed in one transaction, so it cannot come twice")
    ),
    "phantom": _in_every_mode(forbidden("no producer sent it")),
    "corrupted": _in_every_mode(forbidden("every mode promises the bytes that were sent")),
    "misplaced": _in_every_mode(forbidden("a record goes where it was sent, and one key to one partition")),
    "offset_conflict": _in_every_mode(forbidden("a position belongs to one record for ever")),
    "key_reordered": _row(
        counted("the order of one session may break already"), counted("the order of one session may break already"),
        Unless(forbidden(_KEY_ORDER), "the number of partitions changed", counted(_KEY_MOVES)),
        Unless(forbidden(_KEY_ORDER), "the number of partitions changed", counted(_KEY_MOVES)),
    ),
    "expired": _in_every_mode(counted("it was deleted by retention or on request, as the topic allows (E8)")),
    "late": _in_every_mode(counted("it is behind a transaction that is still open (E8)")),
    "interleaved": _in_every_mode(counted("a transaction reserves no part of the log")),
    "write_cycle": _in_every_mode(counted("transactions do not order each other's writes (G0)")),
    # Availability is reported separately and never part of the verdict.
    "stalled": _in_every_mode(Cell(Rule.NOT_ASKED, "availability is judged apart from safety")),
    "unseen": _in_every_mode(counted("without a final read it may be lost or late")),
})  # fmt: skip


# A share group gives out records one by one: it has no positions, owners or order.
_NOT_OF_SHARE_GROUPS = frozenset({"skipped", "rewound", "overcommitted", "two_owners", "key_reordered"})
_SHARED = counted("a share group gives records to any member, in any order, and has no positions")
_GIVEN_AGAIN = counted("a record that was given out and not accepted in time is given out again")


def promise(anomaly: str, mode: Mode, conditions: Conditions) -> Cell:
    """Return the cell for an anomaly in a mode under these conditions."""
    cell = TABLE[anomaly][mode]
    if conditions.share_group and anomaly in _NOT_OF_SHARE_GROUPS:
        cell = _SHARED
    elif conditions.share_group and anomaly == "redelivered":
        cell = _GIVEN_AGAIN
    if isinstance(cell, Unless):
        cell = cell.then if CONDITIONS[cell.condition](conditions) else cell.normally
    if anomaly in conditions.forbids and cell.rule is Rule.COUNTED:
        return forbidden(f"this application cannot tolerate it, although {mode} allows it: {cell.reason}")
    return cell
