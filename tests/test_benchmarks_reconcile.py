"""The ledgers that benchmarks.reconcile generates: DuckDB finds in them exactly what was planted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks._generate import ANOMALIES, PARTITIONS, generate
from benchmarks.reconcile import differences, main
from harness.ledger import read_attempts, read_deliveries
from harness.reconcile.seal import seal

pytest.importorskip("duckdb")


@pytest.mark.parametrize(("records", "seed", "base_offset"), [(10_000, 1, 0), (10_000, 2, 1 << 40), (200_000, 3, 0)])  # fmt: skip
def test_the_reference_finds_what_was_planted(
    tmp_path: Path, records: int, seed: int, base_offset: int
) -> None:
    from benchmarks._duckdb import reference

    made = generate(tmp_path, records, seed=seed, base_offset=base_offset)
    sealed = seal(made.run)
    assert sealed.rows["attempts"] == made.records == records
    assert not sealed.gaps
    assert all(made.expected[anomaly] for anomaly in ANOMALIES)
    found, _ = reference(made.run.tables)
    assert differences(made.expected, found) == {}


def test_nothing_is_found_in_a_clean_ledger(tmp_path: Path) -> None:
    from benchmarks._duckdb import reference

    made = generate(tmp_path, 10_000, plants=0)
    seal(made.run)
    found, _ = reference(made.run.tables)
    assert found == dict.fromkeys(ANOMALIES, 0)


def test_a_clean_ledger_is_one_that_a_run_could_have_written(tmp_path: Path) -> None:
    made = generate(tmp_path, 150_000, plants=0)  # of several pieces
    acked: dict[tuple[int, int], tuple[int, int]] = {}
    for session in (1, 2, 3, 4):
        rows = read_attempts(made.run.ledger / f"producer-{session}.0.{session}.attempts")
        assert np.all(np.diff(rows["t_attempt"]) > 0)
        assert np.all(rows["t_outcome"] > rows["t_attempt"])
        for seq, (partition, offset) in enumerate(zip(rows["told_partition"], rows["offset"], strict=True)):
            acked[int(partition), int(offset)] = session, seq
    assert len(acked) == made.records
    log, _ = read_deliveries(made.run.ledger / "final-reader.read_uncommitted.log")
    assert {(int(r["partition"]), int(r["offset"])): (int(r["session"]), int(r["seq"])) for r in log} == acked
    for partition in range(PARTITIONS):
        assert np.all(np.diff(log["offset"][log["partition"] == partition]) > 0)
    committed, _ = read_deliveries(made.run.ledger / "final-reader.read_committed.log")
    given = [read_deliveries(path)[0] for path in sorted(made.run.ledger.glob("*.deliveries"))]
    assert all(np.all(np.diff(rows["t"]) >= 0) for rows in given)
    places = [sorted(zip(rows["partition"], rows["offset"], strict=True)) for rows in (committed, np.concatenate(given))]  # fmt: skip
    assert places[0] == places[1]
    assert len(places[0]) < made.records  # some transactions were aborted


def test_too_few_records_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--sizes", "9k"])
    assert "at least 10000" in capsys.readouterr().err
