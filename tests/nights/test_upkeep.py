"""Between runs of a night: run folders stay within their budget without touching evidence, and resources are recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cli import main
from harness.contracts import Mode
from harness.ledger.literal_run import LiteralRun
from harness.ledger.packing import pack
from harness.ledger.rundir import RunDir, write_json
from harness.nights.disk_budget import kept_within, run_folders, size_of
from harness.nights.journal import NightJournal, read
from harness.nights.minimising import smaller_name
from harness.nights.plan import Plan
from harness.nights.resources import UNITS, descendants, development, lines, memory_bytes
from harness.nights.upkeep import Upkeep
from harness.scenario import Scenario

NAMES = ("one", "two", "three")
PLAN = Plan(7, 5.0, tuple(Scenario(name=name, mode=Mode.AT_LEAST_ONCE) for name in NAMES), "two")


def run_at(runs: Path, scenario: str, verdict: str = "HELD", at: str = "20260101-120000") -> Path:
    literal = LiteralRun(runs.parent / f"literal-{scenario}-{at}", mode=Mode.AT_LEAST_ONCE)
    literal.session(1)
    literal.write(1, 500, 0)
    made = literal.finish()
    (made.logs / "broker-1.log").write_bytes(os.urandom(200_000))
    judged = {"verdict": verdict, "expected": "HELD", "as_expected": verdict == "HELD", "violations": []}
    write_json(made.verdict, judged)
    folder = runs / scenario / at
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(made.path, folder)
    return folder


def test_the_oldest_runs_as_promised_are_reduced_first(tmp_path: Path) -> None:
    folders = [run_at(tmp_path / "runs", name) for name in NAMES]
    for folder in folders:
        pack(RunDir(folder), "evidence")
    whole = size_of(folders[0])
    kept = kept_within(whole * 5 // 2, folders)
    assert kept.smaller == (folders[0],)
    assert kept.total <= whole * 5 // 2
    assert RunDir(folders[0]).keeps_results_only()
    assert not RunDir(folders[0]).packed_ledger.exists()
    assert RunDir(folders[1]).packed_ledger.exists()


def test_runs_are_packed_before_any_is_reduced(tmp_path: Path) -> None:
    folders = [run_at(tmp_path / "runs", name) for name in NAMES]
    packed = kept_within(sum(map(size_of, folders)) - 1, folders)
    assert packed.smaller == (folders[0],)
    assert RunDir(folders[0]).packed_ledger.exists()
    assert RunDir(folders[1]).ledger.is_dir()


def test_evidence_is_never_reduced(tmp_path: Path) -> None:
    finding, unclear = (
        run_at(tmp_path / "runs", "one", "VIOLATED"),
        run_at(tmp_path / "runs", "two", "INCONCLUSIVE"),
    )
    before = size_of(finding), size_of(unclear)
    kept = kept_within(1, [finding, unclear])
    assert (kept.smaller, kept.total) == ((), sum(before))
    assert RunDir(finding).ledger.is_dir()
    assert RunDir(unclear).ledger.is_dir()


def test_a_night_within_its_budget_is_left_alone(tmp_path: Path) -> None:
    folder = run_at(tmp_path / "runs", "one")
    assert kept_within(size_of(folder), [folder]).smaller == ()
    assert RunDir(folder).ledger.is_dir()


def test_only_folders_of_the_night_count_and_the_oldest_is_first(tmp_path: Path) -> None:
    made = [
        tmp_path / "one" / "20260101-120005",
        tmp_path / "two" / "20260101-120001",
        tmp_path / smaller_name("one") / "20260101-120009",
    ]
    for folder in (*made, tmp_path / "other" / "20260101-120000"):
        folder.mkdir(parents=True)
    (tmp_path / "two" / "latest").symlink_to(made[1])
    names = [*NAMES, *map(smaller_name, NAMES)]
    assert run_folders(tmp_path, names) == [made[1], made[0], made[2]]


def upkeep(tmp_path: Path, notes: list[str], **more: Any) -> Upkeep:
    return Upkeep(NightJournal.begin(tmp_path / "runs", PLAN), tmp_path / "runs", note=notes.append, **more)


def test_reductions_are_in_the_journal_and_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    run_at(tmp_path / "runs", "one", "VIOLATED")
    held = run_at(tmp_path / "runs", "three")
    between = upkeep(tmp_path, notes, disk_gb=1e-6)
    between()
    between()
    assert read(between.journal.file).reduced == [str(held.resolve())]
    assert [note.partition(":")[0] for note in notes] == ["--disk-gb 1e-06", notes[1].partition(":")[0]]
    assert "what is left is evidence" in notes[1]


def test_without_a_budget_nothing_is_reduced(tmp_path: Path) -> None:
    notes: list[str] = []
    held = run_at(tmp_path / "runs", "three")
    between = upkeep(tmp_path, notes, disk_gb=None)
    between()
    assert RunDir(held).ledger.is_dir()
    assert (notes, between.journal.state.reduced) == ([], [])
    assert between.journal.state.resources[0]["runs_mb"] == size_of(held) >> 20


def test_without_a_budget_run_folders_are_measured_only_for_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measuring all of them after each run would cost more with each run of a night."""
    measured: list[Path] = []
    run_at(tmp_path / "runs", "three")

    def noted(folder: Path) -> int:
        measured.append(folder)
        return 0

    monkeypatch.setattr("harness.nights.upkeep.size_of", noted)
    between = upkeep(tmp_path, [], disk_gb=None)
    for _ in range(3):
        between()
    assert len(measured) == 1


def test_a_sample_is_taken_after_the_first_run_and_then_from_time_to_time(tmp_path: Path) -> None:
    between = upkeep(tmp_path, [], disk_gb=None)
    between()
    between()
    assert len(between.journal.state.resources) == 1
    between.every_s = 0.0
    between()
    stored = read(between.journal.file).resources
    assert len(stored) == 2
    assert stored == between.journal.state.resources
    assert set(stored[0]) == {"used_s", *UNITS}
    assert stored[0]["memory_mb"] > 10
    assert stored[0]["free_mb"] > 0


def test_a_folder_that_vanishes_while_it_is_measured_counts_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last run of a night is reconciled meanwhile: its tables are renamed, its journals packed."""
    (tmp_path / "run" / "gone").mkdir(parents=True)
    (tmp_path / "run" / "stays").write_bytes(b"x" * 100_000)
    whole, listed = size_of(tmp_path), os.scandir

    def vanished(place: str) -> Any:
        if Path(place).name == "gone":
            raise FileNotFoundError(place)
        return listed(place)

    monkeypatch.setattr(os, "scandir", vanished)
    assert size_of(tmp_path) == whole > 100_000


def test_processes_that_a_process_started_are_its_descendants() -> None:
    command = (
        f"import subprocess, sys; subprocess.run([{sys.executable!r}, '-c', 'import time; time.sleep(60)'])"
    )
    with subprocess.Popen([sys.executable, "-c", command]) as child:
        until = time.monotonic() + 30
        while not (grandchildren := descendants(child.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        assert len(grandchildren) == 1
        assert descendants(os.getpid()) >= {child.pid, *grandchildren}
        assert memory_bytes(child.pid) > 1 << 20
        for pid in (child.pid, *grandchildren):
            os.kill(pid, 9)
    assert memory_bytes(child.pid) == 0


def samples(*memory: float, every_s: float = 900.0) -> list[dict[str, float]]:
    return [
        {**dict.fromkeys(UNITS, 5.0), "used_s": every_s * n, "memory_mb": value}
        for n, value in enumerate(memory)
    ]


def test_a_growing_value_has_a_trend_and_a_steady_one_none() -> None:
    found = development(samples(100, 101, 102, 103))
    assert found["memory_mb"] == {"min": 100, "median": 101.5, "max": 103, "per_hour": 4.0}
    assert found["open_files"] == {"min": 5, "median": 5, "max": 5, "per_hour": 0}
    assert "100 to 103 MB of memory in onceproof itself, median 102, +4 per hour" in lines(found)


def test_two_samples_or_some_minutes_have_no_trend_and_none_no_development() -> None:
    assert development(samples(100, 200, every_s=3600.0))["memory_mb"]["per_hour"] is None
    assert development(samples(100, 101, 102, 103, every_s=60.0))["memory_mb"]["per_hour"] is None
    assert development([]) == {}


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        ("0", "--disk-gb 0: give a number greater than 0"),
        ("nan", "--disk-gb nan: give a number greater than 0"),
        ("50", "--disk-gb 50: only 1.0 GiB are free in "),
        ("1", "only 1.0 GiB are free, a night needs 2; "),
        (None, "only 1.0 GiB are free, a night needs 2; "),
    ],
)
def test_too_little_room_is_one_line_before_anything_starts(
    budget: str | None,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=1 << 30))
    # If it did not refuse, this test would run a night on a real cluster.
    monkeypatch.setattr("harness.commands._preparation.prepare", lambda args, note: pytest.fail("it begins"))
    runs = tmp_path / "not" / "yet"
    words = [] if budget is None else ["--disk-gb", budget]
    assert main(["nightly", *words, "--runs", str(runs)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not runs.exists()
