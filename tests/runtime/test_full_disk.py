"""A disk that fills up during a run: one line with the folder and the remedy; written records stay. TRUST R3."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import main
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Mode, TopicSettings
from harness.errors import NoRoom, OnceproofError
from harness.execute import execute
from harness.ledger import journal, reading, rundir
from harness.ledger.rundir import RunDir
from harness.scenario import ConsumerSettings, ProducerSettings, Scenario, Timings
from harness.testing.small_disk import fill, mounted_small_disk
from harness.waiting import wait_until

SIZE_MB = 24
SCENARIO = Scenario(
    name="full-disk",
    mode=Mode.AT_LEAST_ONCE,
    topic=TopicSettings(partitions=PARTITIONS),
    producers=ProducerSettings(records_per_s=500),
    consumers=ConsumerSettings(members=1),
    timings=Timings(
        warm_up_s=0.5,
        cool_down_s=0.1,
        recovery_limit_s=3,
        flush_limit_s=3,
        drain_limit_s=2,
        final_read_limit_s=5,
    ),
    produce_s=4.0,
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_small_disk(tmp_path / "disk", SIZE_MB) as place:
        yield place


def filled_at_the_first_delivery(runs: Path) -> threading.Thread:
    def wait_and_fill() -> None:
        wait_until(
            lambda: any(f.stat().st_size for f in runs.glob("*/*/ledger/*.deliveries")), 60, "no delivery"
        )
        fill(runs)

    thread = threading.Thread(target=wait_and_fill)
    thread.start()
    return thread


def run_until_full(tmp_path: Path, runs: Path) -> tuple[RunDir, list[str]]:
    said: list[str] = []
    with MemoryCluster(tmp_path / "cluster") as cluster:
        filling = filled_at_the_first_delivery(runs)
        run = execute(SCENARIO, cluster, runs, say=said.append)
        filling.join()
    return run, said


@pytest.mark.spark
def test_a_run_on_a_full_disk_ends_with_one_line_and_keeps_its_records(
    small_disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, said = run_until_full(tmp_path, small_disk)
    events = [e for path in sorted(run.ledger.glob("*.events")) for e in reading.read_events(path)]
    errors = [e["text"] for e in events if e["event"] == "error" and e["writer"] == "harness"]
    assert errors, "the error is in the ledger although the disk was full"
    assert any("space" in line for line in said), said
    assert not list(run.path.glob(".manifest*")), "no half file is left"
    assert sum(f.stat().st_size for f in run.ledger.glob("*.deliveries")) > 0
    before = {path: path.read_bytes() for path in run.ledger.iterdir()}

    fill(small_disk)
    assert main(["reconcile", str(run.path)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    line = output.err.splitlines()[-1]
    assert line.startswith(f"onceproof: {small_disk}")
    assert "no space left on device (0.0 MiB free); free some disk space" in line
    assert "Traceback" not in output.err
    assert {path: path.read_bytes() for path in run.ledger.iterdir()} == before
    assert not run.verdict.exists()

    assert main(["report", str(run.path), "--out", str(small_disk / "report.html")]) == 2
    assert "no space left on device" in capsys.readouterr().err.lower()
    assert not list(small_disk.glob("*report*"))


def test_a_run_that_cannot_begin_is_a_one_line_error(small_disk: Path, tmp_path: Path) -> None:
    fill(small_disk)
    with MemoryCluster(tmp_path / "cluster") as cluster, pytest.raises((NoRoom, OSError)) as raised:
        execute(replace(SCENARIO, name="never"), cluster, small_disk)
    assert isinstance(raised.value, NoRoom), repr(raised.value)
    assert str(small_disk) in str(raised.value)


def write_many(book: journal.Ledger) -> None:
    for number in range(1000):
        book.events.write("step", step=f"number {number}")


def test_events_find_room_on_a_full_disk(small_disk: Path) -> None:
    """Healing is recorded before it is done: without room for that, a fault would stay."""
    other = journal.Ledger(small_disk, "other")
    with journal.Ledger(small_disk, "harness", reserve_bytes=1 << 20) as kept:
        fill(small_disk)
        write_many(kept)
        with pytest.raises(OnceproofError, match=r"(?i)no space left on device"):
            write_many(other)
    other.events.close()
    (small_disk / "filler").unlink()
    assert (
        sum(1 for _ in reading.read_events(small_disk / "harness.events")) == 1001
    )  # the last one closes it
    assert all(e["event"] == "step" for e in reading.read_events(small_disk / "other.events")), "no half line"
    assert (small_disk / "harness.events").stat().st_blocks * 512 < 1 << 18, "the unused part is freed"


def test_a_manifest_that_cannot_be_replaced_stays(small_disk: Path) -> None:
    rundir.write_json(small_disk / "manifest.json", {"complete": False})
    fill(small_disk)
    with pytest.raises(OSError, match="No space left"):
        rundir.write_json(small_disk / "manifest.json", {"complete": True, "much": "x" * 100_000})
    assert rundir.read_json(small_disk / "manifest.json", "") == {"complete": False}
    assert sorted(path.name for path in small_disk.iterdir()) == ["filler", "manifest.json"]
