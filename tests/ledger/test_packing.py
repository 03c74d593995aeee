"""TRUST R6: packed runs take little room and can be sealed, reconciled and explained as if they were whole."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.cli import main
from harness.contracts import Mode
from harness.errors import LedgerError
from harness.ledger import packing as ledger_packing
from harness.ledger.literal_run import LiteralRun
from harness.ledger.rundir import RunDir, write_json
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.seal import seal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    literal = LiteralRun(tmp_path / "runs", mode=Mode.AT_LEAST_ONCE)
    literal.session(1)
    literal.write(1, 500, 0)
    made = literal.finish()
    (made.logs / "cluster").mkdir()
    (made.logs / "cluster" / "broker-1.log").write_text("INFO started\n" * 1000)
    seal(made)
    _judged(made)
    return made


def _judged(run: RunDir, verdict: str = "HELD", as_expected: bool = True) -> None:
    verdict_json = {
        "verdict": verdict,
        "expected": "HELD",
        "as_expected": as_expected,
        "violations": [],
        "counted": [],
        "inconclusive": [],
        "guarantee": "at_least_once",
    }
    write_json(run.verdict, verdict_json)
    found = {"run_id": run.run_id, "findings": [], "compared": {}, "counts": {}, "coverage": {"windows": []}}
    write_json(run.reconciled, {"version": 1, **found})


def _tables(run: RunDir) -> dict[str, list[dict[str, object]]]:
    return {name: pq.read_table(run.tables / name).to_pylist() for name in SCHEMAS}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _names(run: RunDir) -> set[str]:
    return {path.name for path in run.path.iterdir()}


def test_a_packed_run_is_small_and_gives_the_same_tables(run: RunDir) -> None:
    before, size = _tables(run), _size(run.path)
    assert ledger_packing.pack(run, "evidence") == ""
    assert _names(run) == {"manifest.json", "verdict.json", "reconciled.json", "ledger.tar.gz", "logs.tar.gz"}
    assert _size(run.path) < size / 20
    seal(run)
    assert _tables(run) == before
    assert ledger_packing.pack(run, "evidence") == "", "again: only the tables go"
    assert "tables" not in _names(run)
    with tarfile.open(run.packed_logs) as logs:
        assert logs.getnames() == ["cluster/broker-1.log"]


def test_explain_reads_a_packed_run(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explain", str(run.path), "--message", "producer-1.0-7"]
    assert main(words) == 0
    before = capsys.readouterr().out
    ledger_packing.pack(run, "evidence")
    assert main(words) == 0
    assert capsys.readouterr().out == before
    assert main(["explain", str(run.path)]) == 0


@pytest.mark.parametrize("keep", ["evidence", "least"])
@pytest.mark.parametrize(
    ("verdict", "as_expected"), [("VIOLATED", False), ("HELD", False), ("INCONCLUSIVE", True)]
)
def test_a_run_not_as_expected_stays_whole(run: RunDir, keep: str, verdict: str, as_expected: bool) -> None:
    _judged(run, verdict, as_expected)
    before = _names(run)
    assert ledger_packing.pack(run, keep) == ""
    assert _names(run) == before


def test_all_keeps_all(run: RunDir) -> None:
    before = _names(run)
    assert ledger_packing.pack(run, "all") == ""
    assert _names(run) == before


def test_the_least_is_the_results_and_it_says_that_it_cannot_be_read_again(
    run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ledger_packing.pack(run, "least") == ""
    assert _names(run) == {"manifest.json", "verdict.json", "reconciled.json"}
    with pytest.raises(LedgerError, match=r"--keep least.*--keep evidence") as raised:
        seal(run)
    assert "\n" not in str(raised.value)
    assert main(["explain", str(run.path), "--message", "producer-1.0-7"]) == 2
    assert "--keep least" in capsys.readouterr().err
    assert main(["explain", str(run.path)]) == 0, "the findings are there"


def test_a_run_that_is_read_is_not_packed(run: RunDir) -> None:
    before = _names(run)
    with ledger_packing.in_use(run):
        assert "another process reads it" in ledger_packing.pack(run, "evidence")
        assert _names(run) == before
    with ledger_packing.readable(run) as opened:
        assert opened.ledger == run.ledger
        assert "another process reads it" in ledger_packing.pack(run, "least")
    assert ledger_packing.pack(run, "evidence") == ""


def test_a_run_without_a_verdict_is_not_packed(run: RunDir) -> None:
    run.verdict.unlink()
    assert "left whole" in ledger_packing.pack(run, "evidence")
    assert run.ledger.is_dir()


def test_an_archive_that_is_not_what_was_written_leaves_the_run_whole(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _names(run)
    monkeypatch.setattr(ledger_packing, "_digests", lambda archive: {})
    assert "left whole" in ledger_packing.pack(run, "evidence")
    assert _names(run) == before


def test_a_full_disk_leaves_the_run_whole(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    before = _names(run)
    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in ledger_packing.pack(run, "evidence")
    assert _names(run) == before


PACKING = """
import sys, time
from pathlib import Path
from harness.ledger import packing
from harness.ledger.rundir import RunDir
real = packing.{slow}
def slow(*words):
    real(*words)
    print("here", flush=True)
    time.sleep(60)
packing.{slow} = slow
packing.pack(RunDir(Path(sys.argv[1])), "evidence")
"""


@pytest.mark.parametrize("slow", ["_write", "_sync", "_remove"])
def test_a_packing_that_is_killed_loses_nothing(run: RunDir, slow: str) -> None:
    before = _tables(run)
    words = [sys.executable, "-c", PACKING.replace("{slow}", slow), str(run.path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as packing:
        assert packing.stdout is not None
        assert packing.stdout.readline() == b"here\n"
        packing.send_signal(signal.SIGKILL)
    seal(run)
    assert _tables(run) == before
    assert ledger_packing.pack(run, "evidence") == ""
    seal(run)
    assert _tables(run) == before


def test_half_a_ledger_beside_its_archive_does_not_count(run: RunDir) -> None:
    before = _tables(run)
    shutil.copytree(run.ledger, run.path / "copy")
    ledger_packing.pack(run, "evidence")
    (run.path / "copy").rename(run.ledger)
    for journal in run.ledger.glob("consumer*"):
        journal.unlink()
    seal(run)
    assert _tables(run) == before


# What a stranger may have put into an archive.


def _archive(run: RunDir, add: Callable[[tarfile.TarFile], None]) -> None:
    shutil.rmtree(run.ledger)
    with tarfile.open(run.packed_ledger, "w:gz") as file:
        add(file)


def _file(name: str, size: int = 1, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, link
    return info


@pytest.mark.parametrize(
    "info",
    [
        _file("../escaped"),
        _file("/tmp/escaped"),
        _file("folder/escaped"),
        _file(".hidden"),
        _file("a\nb"),
        _file("link.events", 0, tarfile.SYMTYPE, "/etc/passwd"),
        _file("hard-link.events", 0, tarfile.LNKTYPE, "/etc/passwd"),
        _file("pipe.events", 0, tarfile.FIFOTYPE),
        _file("folder", 0, tarfile.DIRTYPE),
    ],
    ids=lambda info: repr(info.name),
)
def test_a_strange_archive_is_refused_in_one_line(run: RunDir, info: tarfile.TarInfo) -> None:
    _archive(run, lambda file: file.addfile(info, io.BytesIO(b"x")))
    with pytest.raises(LedgerError, match="not a packed ledger") as raised:
        seal(run)
    assert "\n" not in str(raised.value)
    assert not (run.path.parent / "escaped").exists()


def test_an_archive_larger_than_the_disk_is_refused_before_it_fills_it(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_packing.pack(run, "evidence")
    usage = shutil.disk_usage(run.path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(LedgerError, match=r"no room to unpack.*TMPDIR"):
        seal(run)


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "folder", "flipped"])
def test_a_damaged_archive_is_refused_in_one_line(run: RunDir, damage: str) -> None:
    ledger_packing.pack(run, "evidence")
    whole = run.packed_ledger.read_bytes()
    run.packed_ledger.unlink()
    if damage == "folder":
        run.packed_ledger.mkdir()
    else:
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 0xFF
        contents = {
            "cut": whole[: len(whole) // 2],
            "text": b"not an archive",
            "empty": b"",
            "flipped": bytes(flipped),
        }
        run.packed_ledger.write_bytes(contents[damage])
    with pytest.raises(LedgerError, match=r"ledger\.tar\.gz: ") as raised:
        seal(run)
    assert "\n" not in str(raised.value)


def test_an_error_in_a_packed_ledger_names_the_archive(run: RunDir) -> None:
    (run.ledger / "harness.events").write_bytes(b"{}\n" + (run.ledger / "harness.events").read_bytes())
    ledger_packing.pack(run, "evidence")
    with pytest.raises(LedgerError, match=r"ledger\.tar\.gz/harness\.events:1: not a ledger line"):
        seal(run)


def test_a_reader_waits_for_a_packing_to_end(run: RunDir) -> None:
    fd = os.open(run.path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)  # as a packing holds it
    words = [
        sys.executable,
        "-m",
        "harness.cli",
        "explain",
        str(run.path),
        "--message",
        "producer-1.0-7",
        "--json",
    ]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as reader:
        time.sleep(1.0)
        assert reader.poll() is None
        os.close(fd)
        assert reader.stdout is not None
        assert json.loads(reader.stdout.read())["accounts"]
    assert reader.returncode == 0


def test_archives_are_plain_gzip(run: RunDir) -> None:
    ledger_packing.pack(run, "evidence")
    with gzip.open(run.packed_ledger) as file:
        assert len(file.read()) > 1_000_000
