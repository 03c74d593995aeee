"""Observers in sealing and screening, without Spark: sound blocks are dropped, others wake their finder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.contracts import Mode
from harness.errors import LedgerError
from harness.ledger.rundir import RunDir
from harness.reconcile.coverage import coverage
from harness.reconcile.job import all_finders, woken
from harness.reconcile.screen import reader_steps, summaries
from harness.reconcile.screen.facts import Facts, facts
from harness.reconcile.screen.screen import READ, READ_EFFECTS, Kernel, Screened, by_runs
from harness.reconcile.screen.spaces import Space, Summary, Why
from harness.reconcile.screen.summaries import Count
from harness.reconcile.seal.schema import EFFECTS
from harness.reconcile.seal.seal import seal
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.select.doubts import Doubts, doubts
from harness.reconcile.spark.stored_tables import read_small
from harness.verdict import Settings, judge
from tests.reconcile.cases import CASES
from tests.reconcile.cases.base import LAX, READER, STRICT, observe, plain

OBSERVED = [name for name in CASES if "observe" in name or name == "skipped_in_the_output"]
SOUND = ("observed", "observed_pipeline", "observed_in_part")
BATCH = 3  # rows at a time, so that every reader's trail goes over several batches


def screened(run: RunDir) -> tuple[Sealed, Screened, Doubts]:
    """Screen a run as harness.reconcile.screen.screen does, without Spark."""
    sealed = seal(run)
    known = facts(read_small({run.tables: sealed}), [sealed])
    parts: list[Summary] = []
    asked: Mapping[str, tuple[Kernel, Sequence[str]]] = {**READ, EFFECTS: READ_EFFECTS}
    for name, (kernel, columns) in asked.items():
        trail = reader_steps.Trail()
        batches = pq.read_table(run.tables / name).to_batches(BATCH)
        args = (trail,) if name == "deliveries" else ()
        parts += [kernel(c, known[0], *args) for _, c in by_runs(batches, columns)]
        if args:
            parts.append(reader_steps.edges(known[0].run, trail))
    rows = summaries.merged(summaries.joined(parts))
    rows = summaries.joined([rows, summaries.counted(rows)])
    found = Screened(rows, summaries.weigh(rows))
    return sealed, found, doubts(found, known, [sealed])


@pytest.mark.parametrize("name", OBSERVED)
def test_observed_differences_wake_their_finder_and_sound_runs_wake_none(name: str, tmp_path: Path) -> None:
    run, planted = CASES[name](tmp_path)
    _, _, doubtful = screened(run.finish())
    awake = {finder.anomaly for finder in woken(all_finders(), doubtful)}
    assert awake >= {anomaly for anomaly, _, _ in planted}
    if name in SOUND:
        assert not doubtful.any, doubtful.reasons()


@pytest.mark.parametrize("reader", [STRICT, LAX])
@pytest.mark.parametrize("change", ["gone", "never given", "twice", "another"])
def test_one_different_record_puts_its_block_in_doubt(reader: str, change: str, tmp_path: Path) -> None:
    run = plain(tmp_path)
    log = run.log[:10]
    seen = {
        "gone": [*log[:5], run.send(1, 0).at(0, 100), *log[5:]],
        "never given": [*log[:5], *log[6:]],
        "twice": [*log[:5], *log[4:]],
        "another": [*log[:5], run.send(1, 0).at(0, 5), *log[6:]],
    }[change]
    observe(run, reader, *seen)
    _, found, _ = screened(run.finish())
    assert found.reasons(Space.POSITION) & Why.OBSERVED


def test_the_group_is_counted_without_its_observers(tmp_path: Path) -> None:
    run = plain(tmp_path)
    observe(run, STRICT, *run.log)
    observe(run, LAX, *run.log[:7])
    sealed, found, doubtful = screened(run.finish())
    assert not doubtful.any
    assert found.count(Count.DELIVERED) == found.count(Count.DELIVERIES) == 20
    given = found.space(Space.BUCKET)
    assert int(given["rows"][given["bin"] == summaries.DELIVERED_BIN].sum()) == 20
    assert found.count(Count.STEPS) == 18 + 18 + 6
    seen = coverage(sealed, Facts(sealed.run, 0, True), found)
    assert seen["readers"] == 1
    assert seen["observed"] == {"observer-committed": 20, "observer-uncommitted": 7}


def test_sealing_lists_observers_and_the_spans_that_they_read(tmp_path: Path) -> None:
    run = plain(tmp_path)
    observe(run, STRICT, *run.log[3:10], *run.log[12:16])
    run.observe("observer-committed.1", "read_committed")
    folder = run.finish()
    sealed = seal(folder)
    assert [(one.name, one.isolation, one.records, one.spans) for one in sealed.observers] == [
        (STRICT, "read_committed", 11, [[0, 0, 3, 10], [0, 1, 2, 6]]),
        ("observer-committed.1", "read_committed", 0, []),
    ]
    stored = json.loads(json.dumps(sealed.to_json()))
    assert Sealed.from_json(stored).observers == sealed.observers
    readers = {row["name"]: row for row in pq.read_table(folder.tables / "readers").to_pylist()}
    assert {name: (row["isolation"], row["observer"]) for name, row in readers.items()} == {
        READER: ("read_committed", False),
        STRICT: ("read_committed", True),
        "observer-committed.1": ("read_committed", True),
    }
    deliveries = pq.read_table(folder.tables / "deliveries").to_pylist()
    assert {row["generation"] for row in deliveries if row["reader"] == readers[STRICT]["reader"]} == {0}


@pytest.mark.parametrize(
    ("behind", "words"),
    [("", None), ("orders-0 at 3 of 9", "orders-0 at 3 of 9"), (None, "it ended before it said so")],
)
def test_an_observer_that_did_not_read_to_the_end_is_a_doubt(
    behind: str | None, words: str | None, tmp_path: Path
) -> None:
    """TRUST T10: observers that died after a fifth of the records once left a run HELD."""
    run = plain(tmp_path)
    observe(run, STRICT, *run.log[:4])
    run.behind[STRICT] = behind
    sealed, found, _ = screened(run.finish())
    seen = coverage(sealed, Facts(sealed.run, 0, True), found)
    assert seen["observers_behind"] == ({} if words is None else {"observer-committed": words})
    reconciled = {"counts": {}, "compared": {}, "crashed": {}, "coverage": seen}
    doubts = [
        text for text in judge(reconciled, Mode.AT_LEAST_ONCE, Settings()).inconclusive if "observer" in text
    ]
    assert doubts == (
        [] if words is None else [f"observer-committed did not read to the end of what it observes: {words}"]
    )


def test_an_observer_that_wrote_nothing_is_a_doubt(tmp_path: Path) -> None:
    """TRUST T10: the harness has started it, and it died before it opened its ledger."""
    run = plain(tmp_path)
    run.event("worker", name="observer-committed", state="started", pid=1, role="observer")
    sealed, found, _ = screened(run.finish())
    seen = coverage(sealed, Facts(sealed.run, 0, True), found)
    assert seen["observers_behind"] == {"observer-committed": "it ended before it said so"}


def test_an_observer_that_was_restarted_counts_by_its_last_life(tmp_path: Path) -> None:
    run = plain(tmp_path)
    observe(run, STRICT, *run.log[:4])
    run.behind[STRICT] = None
    run.observe("observer-committed.1", "read_committed", *run.log)
    sealed, found, _ = screened(run.finish())
    assert coverage(sealed, Facts(sealed.run, 0, True), found)["observers_behind"] == {}


def test_an_observer_that_does_not_say_what_it_reads_is_an_error(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.observe(STRICT, "read_something", *run.log)
    with pytest.raises(
        LedgerError, match=r"observer-committed\.0\.events:1: observer event: isolation is 'read_something'"
    ):
        seal(run.finish())
