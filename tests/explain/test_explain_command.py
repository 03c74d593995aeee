"""The command `explain`: findings, one record, and bad input in one line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.cli import main
from harness.explain.questions import account_of_message, accounts_of_position
from harness.ledger import journal
from harness.ledger.rows import DELIVERY
from tests.explain.plain_run import plain, reconciled

Capture = pytest.CaptureFixture[str]


def test_findings_that_name_the_record_are_listed(tmp_path: Path) -> None:
    folder = reconciled(plain(tmp_path).finish())
    expected = {3: ["lost: producer-1.0-3 is gone."], 6: ["lost: offset 6"], 7: ["none that names it"]}
    assert {n: account_of_message(folder, f"producer-1.0-{n}").findings for n in expected} == expected


def test_without_options_all_findings_are_listed_by_anomaly(tmp_path: Path, capsys: Capture) -> None:
    folder = reconciled(plain(tmp_path).finish(), inconclusive=["no proof"])
    assert main(["explain", str(folder.path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{folder.run_id}: VIOLATED, expected HELD, held to at_least_once",
        "  attempted 20, acked 20, in_log 18, delivered 18",
        "  inconclusive: no proof",
        "",
        "lost x 2, forbidden: acked is acked",
        "  producer-1.0-3 is gone.",
        "  … and 1 more in findings.parquet",
        "",
        "redelivered x 4, allowed: at least once",
        "  … and 4 more in findings.parquet",
    ]
    assert main(["explain", str(folder.path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [(a["anomaly"], a["count"], a["forbidden"]) for a in data["anomalies"]] == [
        ("lost", 2, True), ("redelivered", 4, False),
    ]  # fmt: skip


def test_the_command_explains_one_record(tmp_path: Path, capsys: Capture) -> None:
    folder = plain(tmp_path).finish()
    assert main(["explain", str(tmp_path), "--message", "producer-1.0-4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "producer-1.0-4 (topic orders)"
    words = [" ".join(line.split()) for line in lines]
    assert "0.0120 s outcome acked at partition 0 offset 4, 1.0 ms after the attempt" in words
    assert main(["explain", str(folder.path), "--position", "orders/1/2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [a["title"] for a in data["accounts"]] == ["producer-2.0-2"]
    delivery = next(m for m in data["accounts"][0]["moments"] if m["what"] == "delivery")
    assert (delivery["facts"]["reader"], delivery["facts"]["offset"]) == ("consumer-1.0", 2)


BAD = {
    "unknown number": (["--message", "producer-1.0-10"], "it was never attempted, and no reader got it"),
    "unknown sender": (["--message", "producer-9.0-1"], "no sender producer-9.0 in this run; there are: producer-1.0, "),
    "no number": (["--message", "producer-1.0"], "an id such as producer-1.0-42 is expected"),
    "no id": (["--message", "x"], "an id such as producer-1.0-42 is expected"),
    "negative": (["--message", "producer-1.0--1"], "no sender producer-1.0- in this run"),
    "empty id": (["--message", ""], "an id such as producer-1.0-42 is expected"),
    "two parts": (["--position", "orders/4"], "TOPIC/PARTITION/OFFSET is expected, such as orders/0/17"),
    "no offset": (["--position", "orders/0/x"], "TOPIC/PARTITION/OFFSET is expected"),
    "other topic": (["--position", "bills/0/1"], "no topic bills in this run; its topic is orders (or 0)"),
    "no partition": (["--position", "orders/7/1"], "no such partition was read; there are: partition 0, "),
    "beyond the end": (["--position", "orders/0/10"], "there is no record of it; the log of partition 0 goes from 0 to 10"),
    "not reconciled": ([], "reconciled.json: there is no such file (run ./onceproof reconcile first)"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "line"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line(tmp_path: Path, capsys: Capture, options: list[str], line: str) -> None:
    assert main(["explain", str(plain(tmp_path).finish().path), *options]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert line in said.err


def _empty(root: Path) -> Path:
    return root


def _two(root: Path) -> Path:
    plain(root).finish(), plain(root).finish()
    return root


def _not_json(root: Path) -> Path:
    (root / "ledger").mkdir()
    (root / "manifest.json").write_text("{")
    return root


def _not_ours(root: Path) -> Path:
    (root / "ledger").mkdir()
    (root / "manifest.json").write_text(json.dumps({"version": journal.VERSION, "name": "an app"}))
    return root


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (_empty, "no run folder is in it"),
        (_two, "contains 2 runs; name one, e.g. "),
        (_not_json, "not JSON"),
        (_not_ours, "not the manifest of a run"),
    ],
)
def test_a_folder_that_is_no_run_is_one_line(
    tmp_path: Path, capsys: Capture, make: Callable[[Path], Path], line: str
) -> None:
    assert main(["explain", str(make(tmp_path)), "--message", "producer-1.0-1"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert line in said.err


def test_both_options_are_bad_use(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(tmp_path), "--message", "a-1", "--position", "a/1/1"])
    assert ended.value.code == 2


def test_a_million_rows_are_quick(tmp_path: Path) -> None:
    count = 1_000_000
    folder = plain(tmp_path).finish()
    rows = np.zeros(count, dtype=DELIVERY)
    rows["seq"], rows["session"], rows["offset"], rows["partition"] = np.arange(count), 7, np.arange(count), 2
    for name in ("consumer-9.0.deliveries", "final-reader.1.read_uncommitted.log"):
        (folder.ledger / name).write_bytes(rows.tobytes())
    began = time.process_time()
    (account,) = accounts_of_position(folder, f"orders/2/{count - 1}")
    assert account.title == f"session 7-{count - 1}"
    assert time.process_time() - began < 5.0  # of the processor: half a second is usual
