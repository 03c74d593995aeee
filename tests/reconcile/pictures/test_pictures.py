"""pictures.json as a whole: what it has of a literal run, and that no error in it costs a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.contracts import Mode
from harness.errors import LedgerError
from harness.ledger import reading
from harness.ledger.literal_run import LiteralRun
from harness.ledger.pictures import MOST_BYTES, read_pictures
from harness.ledger.rundir import RunDir, read_json, write_json
from harness.reconcile.find.findings import ARROW
from harness.reconcile.pictures import pictures
from harness.reconcile.pictures.pictures import chosen, write_pictures
from harness.reconcile.results import write_findings
from harness.reconcile.seal import sample
from harness.reconcile.seal.seal import seal
from harness.reconcile.seal.sealed import Sealed
from harness.reconcile.spark.stored_tables import read_small

LOST = "producer-1.0-3"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """An acked message of ten is not in the log; leaders were watched."""
    made = LiteralRun(tmp_path, mode=Mode.AT_LEAST_ONCE)
    made.session(1)
    made.write(1, 10, 0)
    made.event("leader", topic=0, partition=0, leader="broker-1", epoch=0, in_sync=["broker-1"], replicas=["broker-1", "broker-2"])  # fmt: skip
    del made.log[3]
    return made.finish()


def drawn(run: RunDir, findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Write pictures.json as the reconciliation does, with these findings, and return it."""
    sealed = seal(run)
    rows = write_findings({sealed.run: run}, [sealed], [table(sealed, findings)])
    names = ("anomaly", "topic", "partition", "messages", "offsets", "sender", "window")
    in_full = [{**{name: row[name] for name in names}, "t_s": 0.1, "excuse": row["excuse"]} for row in rows]
    result: Mapping[str, Any] = {"findings": in_full, "coverage": {"windows": []}}
    write_pictures(run, sealed, read_small({run.tables: sealed}), result)
    return read_pictures(run)


def table(sealed: Sealed, findings: list[dict[str, Any]]) -> pa.Table:
    common: dict[str, Any] = {
        "run": sealed.run, "excuse": None, "topic": 0, "partition": 0, "sender": "producer-1.0", "reader": None,
        "t": sealed.zero_ns, "evidence": [],
    }  # fmt: skip
    return pa.Table.from_pylist([{**common, **f} for f in findings], schema=ARROW)


def test_a_lost_message_is_a_dot_at_its_send_time_with_its_neighbours(run: RunDir) -> None:
    made = drawn(run, [{"anomaly": "lost", "messages": [LOST], "offsets": [3]}])
    dots = made["messages"]
    assert made["attempted"] == len(dots["t_ms"]) == 10
    assert made["anomalies"] == {"lost": 1}
    assert [n for n, fate in enumerate(dots["fate"]) if dots["fates"][fate] == "lost"] == [3]
    (near,) = made["findings"]
    assert [one["message"].rpartition("-")[2] for one in near["sent"]] == ["1", "2", "3", "4", "5"]
    assert [one["own"] for one in near["sent"]] == [False, False, True, False, False]
    assert {one["fate"] for one in near["sent"]} == {"acked"}
    assert [one["offset"] for one in near["log"]] == [1, 2, 4, 5], "there is a hole where it was acked"
    assert not any(one["own"] for one in near["log"])
    assert all(one["uncommitted"] for one in near["log"])


def test_leaders_members_and_lag_are_there(run: RunDir) -> None:
    made = drawn(run, [])
    assert made["leaders"][0]["states"][0][1:] == ["broker-1", ["broker-1"]]
    assert made["members"][0]["member"] == "consumer-1.0"
    behind = made["lag"]["partitions"][0]["behind"]
    assert behind[0] > 0
    assert behind[-1] == 0
    assert made["findings"] == []


def test_findings_without_a_message_or_a_place_have_no_neighbours(run: RunDir) -> None:
    made = drawn(run, [
        {"anomaly": "two_owners", "messages": [], "offsets": [], "partition": None, "sender": None},
        {"anomaly": "phantom", "messages": ["stranger-1.0-7"], "offsets": [5]},
        {"anomaly": "aborted_read", "messages": [LOST], "offsets": [3], "excuse": "read_uncommitted"},
    ])  # fmt: skip
    assert sorted(made["anomalies"]) == ["phantom", "two_owners"]
    assert sorted((len(f["sent"]), len(f["log"])) for f in made["findings"]) == [(0, 0), (0, 4)]


def test_lines_of_the_leader_around_a_finding_are_found(run: RunDir) -> None:
    manifest = read_json(run.manifest, "")
    manifest["clock"] |= {"wall": "2026-01-02T03:04:05+0000", "unix": 1767323045.0}
    write_json(run.manifest, manifest)
    (run.logs / "cluster").mkdir(parents=True)
    (run.logs / "cluster" / "broker-2.log").write_text("[2026-01-02 03:04:05,100] INFO mine (x)\n")
    (run.logs / "cluster" / "broker-1.log").write_text("[2026-01-02 03:04:05,200] INFO led (x)\n")
    made = drawn(run, [{"anomaly": "lost", "messages": [LOST], "offsets": [3]}])
    assert made["logs"] == "there"
    assert {line["text"] for line in made["findings"][0]["log_lines"]} == {"led (x)"}


def test_an_error_here_is_in_the_file_and_nowhere_else(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(pictures, "neighbours", broken)
    assert drawn(run, []) == {"version": 1, "error": "ZeroDivisionError: by chance"}


def test_first_findings_of_each_kind_come_before_second_ones() -> None:
    assert chosen(["a"] * 5 + ["b"] * 5, 4) == [0, 1, 5, 6]
    assert chosen(["a"] * 5 + ["b"], 4) == [0, 1, 2, 5]
    assert chosen([]) == []


# --- the sample -----------------------------------------------------------------------------------


def test_the_sample_is_spread_over_each_session_and_bounded(tmp_path: Path) -> None:
    made = LiteralRun(tmp_path, mode=Mode.AT_LEAST_ONCE)
    made.session(1)
    made.session(2)
    made.write(1, 90, 0)
    made.write(2, 30, 1)
    run = made.finish()
    seal(run)
    assert len(sample.read(run.tables)) == 120, "few attempts are all in it"
    sessions = [
        sample.SessionRows(path, int(path.stem.rpartition(".")[2]), "all", len(reading.read_attempts(path)))
        for path in run.journals("*.attempts")
    ]
    sample.write(tmp_path, sessions, most=40)
    rows = sample.read(tmp_path)
    assert 30 <= len(rows) <= 40
    by_session = [[row["seq"] for row in rows if row["session"] == one.session] for one in sessions]
    assert {int(step) for seqs in by_session for step in np.diff(seqs)} == {4}
    every = {(row["session"], row["seq"]): row for row in pq.read_table(run.tables / "attempts").to_pylist()}
    assert all(
        row == {name: every[row["session"], row["seq"]][name] for name in sample.COLUMNS} for row in rows
    )
    sample.write(tmp_path, sessions, most=1)
    assert len(sample.read(tmp_path)) == 1
    assert sample.read(tmp_path / "absent") == []


# --- a file of a stranger -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"leaders": [{"topic": 0}]}, {"messages": {"t_ms": [1]}}, {"attempted": -1},
        {"leaders": [{"topic": 0, "partition": 0, "states": [[0, 3, []]]}]},
        {"leaders": [{"topic": 0, "partition": 0, "states": [[0]]}]},
        {"lag": {"start_s": 0, "step_s": 0, "partitions": []}},
        {"messages": {"t_ms": [1], "ack_ms": [], "place": [0], "fate": [0], "places": [[0, 0]], "fates": ["acked"]}},
        {"messages": {"t_ms": [1], "ack_ms": [1], "place": [0], "fate": [1], "places": [[0, 0]], "fates": ["acked"]}},
        {"messages": {"t_ms": [1], "ack_ms": [1], "place": [1], "fate": [0], "places": [[0, 0]], "fates": ["acked"]}},
    ],
)  # fmt: skip
def test_damaged_pictures_are_refused_in_one_line(run: RunDir, change: Mapping[str, Any]) -> None:
    write_json(run.pictures, {"version": 1, **change})
    with pytest.raises(
        LedgerError, match=r"pictures\.json: not what reconciling writes: .*; run \./onceproof reconcile"
    ):
        read_pictures(run)


def test_a_link_and_a_file_that_is_too_large_are_refused(run: RunDir, tmp_path: Path) -> None:
    run.pictures.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="a symbolic link"):
        read_pictures(run)
    run.pictures.unlink()
    run.pictures.write_bytes(b" " * (MOST_BYTES + 1))
    with pytest.raises(LedgerError, match="at most"):
        read_pictures(run)
