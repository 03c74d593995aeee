"""The ledgers that benchmarks.reconcile generates: DuckDB finds in them exactly what was planted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import _billion, reconcile
from benchmarks._summary import summary
from benchmarks.generated.doubtful import generate_doubtful
from benchmarks.generated.history import ANOMALIES, PARTITIONS
from benchmarks.generated.run_folders import generate
from benchmarks.reconcile import differences, main
from harness.ledger.reading import read_attempts, read_deliveries
from harness.reconcile.seal.seal import seal

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


def test_the_reference_finds_what_is_lost_and_reordered_when_most_blocks_are_in_doubt(tmp_path: Path) -> None:
    from benchmarks._duckdb import reference

    made = generate_doubtful(tmp_path, 150_000)  # of several pieces
    assert seal(made.run).rows["attempts"] == made.records
    found, _ = reference(made.run.tables)
    assert differences(made.expected, found) == {}
    assert 0.45 < made.expected["lost"] / made.records < 0.5  # half, but for those of aborted transactions
    assert 0.09 < made.expected["reordered"] / (made.records / 2) < 0.11
    assert {name for name, count in made.expected.items() if count} == {"lost", "reordered", "torn"}


def test_parts_are_chosen_by_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def parts(args: object, sizes: list[int], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        ran.append(", ".join(name for name in ("warm", "many_in_doubt", "billion") if getattr(args, name)))
        yield from ()

    monkeypatch.setattr(reconcile, "_parts", parts)
    for options in (["--many-in-doubt", "10k"], ["--billion", "1m", "--warm"], []):
        assert main(options) == 0
    assert ran == ["many_in_doubt", "warm, billion", "warm, many_in_doubt"]


def test_the_summary_has_a_line_for_each_part_and_ratios_within_the_run() -> None:
    cost = {"seconds": 20.0, "cpu_s": 30.0, "together_mb": 2000, "records_per_s": 500, "differs": {}}
    half = {**cost, "seconds": 10.0, "cpu_s": 15.0}
    size = {"records": 10_000, "seal": half, "reconcile": cost, "duckdb": half, "as_planted": True}
    found = {
        "sizes": [size],
        "warm": {"records": 10_000, "first_s": 10.0, "later_s": [1.0, 2.0, 3.0], "first_cpu_s": 20.0,
                 "later_cpu_s": [2.0, 2.0, 2.0], "as_planted": False},
        "many_in_doubt": {**size, "duckdb": {"seconds": None}},
        "billion": {"records": 1_000_000, "disk_bytes": 36_000_000, "reconcile": cost, "as_planted": True},
    }  # fmt: skip
    lines = summary(found).splitlines()[2:]
    assert [line.split("|")[3].strip() for line in lines] == [
        "2.00 wall, 2.00 CPU",
        "0.50 wall, 0.50 CPU of reconcile",
        "0.20 wall, 0.10 CPU",
        "",
        "30.00 CPU us, 36.0 bytes of disk each",
    ]
    assert ["NOT found" in line for line in lines] == [False, False, True, False, False]


def test_a_ledger_that_does_not_fit_on_the_disk_is_refused_with_the_number_that_fits(
    tmp_path: Path,
) -> None:
    with pytest.raises(_billion.NoRoom, match=r"at most [0-9]+ attempts do"):
        _billion.billion(tmp_path / "ledger", 10**13, sample=10_000)
    assert list((tmp_path / "ledger").iterdir()) == []
    assert _billion.most_that_fit(_billion.LEFT_FREE + 1101, 1.0) == 1000
    assert _billion.most_that_fit(_billion.LEFT_FREE - 1, 1.0) == 0


def test_too_few_records_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--sizes", "9k"])
    assert "at least 10000" in capsys.readouterr().err
