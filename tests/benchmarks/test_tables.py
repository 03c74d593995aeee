"""The ledgers that benchmarks.reconcile generates as sealed tables are those that sealing makes of the same journals."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import _tables
from benchmarks.generated.run_folders import generate
from harness.ledger.rundir import read_json
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.seal import seal
from harness.reconcile.seal.sealed import Sealed


@pytest.mark.parametrize("plants", [0, 7])
def test_the_tables_are_those_of_sealing(tmp_path: Path, plants: int) -> None:
    made = _tables.generate_tables(tmp_path, 300_000, plants=plants, file_rows=70_000)  # several files each
    other = generate(tmp_path, 300_000, plants=plants, scenario="journals")
    sealed = seal(other.run)
    assert made.expected == other.expected
    for name in SCHEMAS:
        if name == "events":
            continue  # the job does not read it
        rows, same = (_sorted(run.tables / name) for run in (made.run, other.run))
        assert rows == same, name
    generated = Sealed.from_json(read_json(made.run.tables / "sealed.json", ""))
    assert len(list((made.run.tables / "deliveries").iterdir())) > 2
    for field, value in vars(sealed).items():
        if field == "rows":
            assert generated.rows == {**value, "events": 0}
        elif field not in ("run", "run_id", "scenario"):
            assert vars(generated)[field] == value, field


def _sorted(folder: Path) -> object:
    table = pq.read_table(folder).drop_columns(["run"])
    names = [n for n in table.column_names if n not in ("partitions", "run_id", "scenario")]
    table = table.drop_columns([n for n in ("run_id", "scenario") if n in table.column_names])
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()
