"""Damaged ledgers: an error that names the damage, a gap that makes the run inconclusive, or the same verdict.

Never a wrong one. What a cut at any place does to each journal is in test_seal.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from harness.contracts import Mode, Verdict
from harness.errors import LedgerError
from harness.ledger import reading
from harness.ledger.literal_run import LiteralRun, killed_now
from harness.ledger.rows import ATTEMPT, DELIVERY
from harness.ledger.rundir import RunDir
from harness.reconcile.job import reconcile_many
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.seal import seal
from harness.reconcile.seal.sealed import Sealed
from harness.verdict import Settings, judge
from tests.reconcile.oracle import oracle, oracle_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READER, OTHER = "consumer-1.0", "consumer-2.0"
JOURNALS = (
    "producer-1.0.1.attempts", "consumer-1.0.deliveries", "consumer-2.0.deliveries",
    "final-reader.read_uncommitted.log", "final-reader.read_committed.log",
)  # fmt: skip
EVENTS = ("producer-1.0.events", "consumer-1.0.events", "consumer-2.0.events", "final-reader.events")


def literal(root: Path, *, killed: str = "", name: str = "damaged") -> RunDir:
    """Transactions, a rebalance, commits, and some of nearly everything that depends on events."""
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, name=name, scheduled=1)
    run.session(1)
    made = [run.append(run.send(1, 0, txn=1)) for _ in range(4)]
    run.assign(READER, 0)
    run.give(READER, made[0])
    run.end(1, 1)
    run.window()
    made += [run.append(run.send(1, 0, txn=2), gap=1) for _ in range(4)]
    run.end(1, 2)
    aborted = run.append(run.send(1, 0, txn=3))
    run.end(1, 3, "abort")
    run.give(READER, made[1], made[2])
    run.commit(READER, {0: 12})
    run.give(READER, aborted)
    run.assign(READER, 0, how="revoked")
    run.assign(OTHER, 0)
    run.give(OTHER, *made[2:])
    run.commit(OTHER, {0: made[-1].offset + 1})
    run.log.remove(made[5])
    if killed:
        run.killed(killed)
    return run.finish()


def rows(run: RunDir, table: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = pq.read_table(run.tables / table).to_pylist()
    return made


def sealed_and_asked(run: RunDir) -> tuple[Sealed, dict[Any, int]]:
    return seal(run), dict(oracle_rows([run])[run])


# --- events ---


@pytest.mark.parametrize("killed", [False, True], ids=["not killed", "killed"])
@pytest.mark.parametrize("name", EVENTS)
def test_a_torn_last_line_is_a_gap_unless_its_writer_was_killed(
    name: str, killed: bool, tmp_path: Path
) -> None:
    run = literal(tmp_path, killed=name.removesuffix(".events") if killed else "")
    path = run.ledger / name
    path.write_bytes(path.read_bytes() + b'{"t": 12, "event": "com')
    killed_now(run)
    sealed = seal(run)
    assert [name in text for text in sealed.torn] == [True] * killed
    assert [name in text for text in sealed.gaps] == [True] * (not killed)


@pytest.mark.parametrize("name", EVENTS)
def test_a_broken_line_in_the_middle_is_named(name: str, tmp_path: Path) -> None:
    run = literal(tmp_path)
    lines = (run.ledger / name).read_bytes().splitlines(keepends=True)
    (run.ledger / name).write_bytes(b"".join([lines[0][: len(lines[0]) // 2] + b"\n", *lines]))
    with pytest.raises(LedgerError, match=rf"{name}:1: not a ledger line"):
        seal(run)


@pytest.mark.parametrize("name", [*JOURNALS, *EVENTS])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    run = literal(tmp_path)
    (run.ledger / name).unlink()
    missing = name.replace("final-reader.", "").removesuffix(".log") if name.endswith(".log") else name
    with pytest.raises(LedgerError, match=missing.replace(".", r"\.")):
        seal(run)


def test_without_the_events_of_the_harness_a_complete_run_is_refused(tmp_path: Path) -> None:
    """No line says that the group was drained, or that anything was broken at all."""
    run = literal(tmp_path)
    (run.ledger / "harness.events").unlink()
    with pytest.raises(LedgerError, match=r"harness\.events: no closing event"):
        seal(run)


def _each_line_twice(path: Path) -> None:
    path.write_bytes(b"".join(line + line for line in path.read_bytes().splitlines(keepends=True)))


def _all_lines_again(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


@pytest.mark.parametrize("double", [_each_line_twice, _all_lines_again])
def test_doubled_events_change_nothing(double: Callable[[Path], None], tmp_path: Path) -> None:
    run = literal(tmp_path)
    before, found = sealed_and_asked(run)
    tables = {table: rows(run, table) for table in SCHEMAS}
    for path in run.ledger.glob("*.events"):
        double(path)
    again, found_again = sealed_and_asked(run)
    assert {table: rows(run, table) for table in SCHEMAS} == tables
    assert (again, found_again) == (before, found)
    anomalies = {anomaly for anomaly, _, _ in found}
    assert anomalies >= {"lost", "torn", "premature_read", "aborted_read", "overcommitted", "redelivered"}


def test_doubled_events_change_no_verdict(spark: SparkSession, tmp_path: Path) -> None:
    runs = [literal(tmp_path, name=name) for name in ("once", "twice")]
    for path in runs[1].ledger.glob("*.events"):
        _each_line_twice(path)
    once, twice = reconcile_many(runs, spark)
    assert twice["counts"] == once["counts"]
    verdicts = [
        judge(result, Mode.EXACTLY_ONCE, Settings.of(run.read_manifest(), result))
        for run, result in zip(runs, (once, twice), strict=True)
    ]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0].verdict is Verdict.VIOLATED


# --- deliveries ---


def test_doubled_deliveries_are_redeliveries(tmp_path: Path) -> None:
    """Unlike an event, a row says what a reader was given: twice is twice. (A reader that closed its journal has counted.)"""
    run = literal(tmp_path, killed=OTHER)
    seal(run)
    before = oracle(run)
    path = run.ledger / f"{OTHER}.deliveries"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-DELIVERY.itemsize :])
    killed_now(run)
    seal(run)
    last = reading.read_deliveries(path)[0][-1]
    name, offset = f"producer-1.0-{last['seq']}", int(last["offset"])
    assert oracle(run) - before == {
        ("redelivered", (name,), (offset,)),
        ("rewound", (name, name), (offset, offset)),
    }


# --- clocks ---


def _change(path: Path, dtype: np.dtype[np.void], change: Callable[[Any], None]) -> None:
    table = np.fromfile(path, dtype=dtype)
    change(table)
    table.tofile(path)


def _read_before_it_was_sent(run: RunDir) -> None:
    def a_minute_early(table: Any) -> None:
        table["t"] -= 60_000_000_000

    _change(run.ledger / f"{OTHER}.deliveries", DELIVERY, a_minute_early)


def _a_reader_that_goes_back(run: RunDir) -> None:
    def last_one_early(table: Any) -> None:
        table["t"][-1] = table["t"][0] - 1

    _change(run.ledger / f"{OTHER}.deliveries", DELIVERY, last_one_early)


def _negative_delivery(run: RunDir) -> None:
    def first_one_negative(table: Any) -> None:
        table["t"][0] = -5

    _change(run.ledger / f"{READER}.deliveries", DELIVERY, first_one_negative)


def _answered_before_it_was_sent(run: RunDir) -> None:
    def acked_early(table: Any) -> None:
        table["t_outcome"][3] = table["t_attempt"][3] - 1

    _change(run.ledger / "producer-1.0.1.attempts", ATTEMPT, acked_early)


def _negative_attempt(run: RunDir) -> None:
    def sent_early(table: Any) -> None:
        table["t_attempt"][2] = -5

    _change(run.ledger / "producer-1.0.1.attempts", ATTEMPT, sent_early)


def _negative_event(run: RunDir) -> None:
    path = run.ledger / f"{READER}.events"
    path.write_bytes(b'{"t": -5, "event": "step", "writer": "consumer-1.0"}\n' + path.read_bytes())


CLOCKS: dict[str, tuple[Callable[[RunDir], None], str]] = {
    "read before it was sent": (
        _read_before_it_was_sent,
        r"consumer-2\.0\.deliveries: message 2 of session 1 was read",
    ),
    "a reader that goes back": (
        _a_reader_that_goes_back,
        r"consumer-2\.0\.deliveries: row 5 goes back in time",
    ),
    "negative delivery": (_negative_delivery, r"consumer-1\.0\.deliveries: row 0 goes back in time"),
    "answered before it was sent": (
        _answered_before_it_was_sent,
        r"1\.attempts: message 3 was sent at \d+ and answered",
    ),
    "negative attempt": (_negative_attempt, r"1\.attempts: message 2 was sent at -5 and answered"),
    "negative event": (_negative_event, r"consumer-1\.0\.events:1: not a ledger line"),
}


@pytest.mark.parametrize(("damage", "message"), CLOCKS.values(), ids=list(CLOCKS))
def test_clocks_that_disagree_are_refused(
    damage: Callable[[RunDir], None], message: str, tmp_path: Path
) -> None:
    """Times decide what is premature, overcommitted or excused, so a verdict on wrong ones could be wrong itself."""
    run = literal(tmp_path)
    damage(run)
    with pytest.raises(LedgerError, match=message):
        seal(run)
    assert not run.tables.exists()


# --- tables ---


def test_sealing_again_repairs_damaged_tables(tmp_path: Path) -> None:
    run = literal(tmp_path)
    seal(run)
    before = {table: rows(run, table) for table in SCHEMAS}
    for path in run.tables.rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (run.tables / "log" / "final.parquet").unlink()
    seal(run)
    assert {table: rows(run, table) for table in SCHEMAS} == before
