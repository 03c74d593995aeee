"""The register of cases, and the runs that many of them begin with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.contracts import Mode
from harness.ledger.literal_history import Record
from harness.ledger.literal_run import LiteralRun
from harness.ledger.transform import DEAD_LETTERS, OUTPUT, Transform
from tests.reconcile.together import Finding

READER, OTHER = "consumer-1.0", "consumer-2.0"
STRICT, LAX = "observer-committed.0", "observer-uncommitted.0"
Case = tuple[LiteralRun, set[Finding]]
CASES: dict[str, Callable[[Path], Case]] = {}


def case(make: Callable[[Path], Case]) -> Callable[[Path], Case]:
    CASES[make.__name__] = make
    return make


def plain(root: Path, mode: Mode = Mode.AT_LEAST_ONCE, isolation: str = "read_committed") -> LiteralRun:
    """Two sessions, ten messages each, to partitions 0 and 1: consistent."""
    run = LiteralRun(root, mode=mode, isolation=isolation)
    run.session(1)
    run.session(2)
    run.write(1, 10, 0)
    run.write(2, 10, 1)
    return run


def transactions(root: Path, isolation: str = "read_committed") -> LiteralRun:
    """One session: transaction 1 committed (offsets 0-2), 2 aborted (4-6), 3 committed (8-10); markers between."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, isolation=isolation)
    run.session(1)
    for txn, did in ((1, "commit"), (2, "abort"), (3, "commit")):
        made = [run.send(1, 0, txn=txn) for _ in range(3)]
        for number, one in enumerate(made):
            run.append(one, gap=1 if txn > 1 and number == 0 else 0)
        run.end(1, txn, did)
    return run


def message(session: int, seq: int) -> str:
    return f"producer-{session}.0-{seq}"


def pipeline(root: Path, aborted_first: bool = False) -> tuple[LiteralRun, list[list[Record]]]:
    """Twelve inputs of which session 7 makes effects in one transaction; with what it made of each."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, transform=Transform(most=2, poison_share=0.2))
    run.session(1)
    run.session(7, "copier-1", idempotent=True, transactional_id="copier")
    inputs = run.write(1, 12, 0)
    if aborted_first:
        for record in inputs:
            run.copy(7, record, txn=1)
        run.end(7, 1, "abort")
    made = [run.copy(7, record, txn=2) for record in inputs]
    run.end(7, 2)
    counts = {len(effects) for effects in made}
    assert counts == {0, 1, 2}, "the case needs inputs of every kind"
    assert {one.topic for effects in made for one in effects} == {OUTPUT, DEAD_LETTERS}
    return run, made


# --- observers ------------------------------------------------------------------------------------


def observe(run: LiteralRun, reader: str, *records: Record) -> None:
    run.observe(reader, "read_committed" if reader == STRICT else "read_uncommitted", *records)


def in_partition(run: LiteralRun, partition: int) -> list[Record]:
    return [r for r in run.log if r.partition == partition]
