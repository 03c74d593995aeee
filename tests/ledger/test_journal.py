"""The ledger survives the death of its writer at any moment."""

from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from harness.contracts import Outcome
from harness.errors import LedgerError
from harness.ledger import journal as ledger_journal
from harness.ledger import reading
from harness.ledger.rows import DELIVERY, EFFECT


def test_attempts_and_outcomes_come_back(tmp_path: Path) -> None:
    with ledger_journal.Ledger(tmp_path, "producer-1.0") as book:
        journal = book.attempts(1000)
        for seq in range(3):
            journal.attempt(seq, key=seq, partition=-1, txn=5)
        journal.outcome(0, Outcome.ACKED, 2, 77, 0)
        journal.outcome(1, Outcome.REJECTED, -1, -1, 10)
    rows = reading.read_attempts(tmp_path / "producer-1.0.1000.attempts")
    assert rows["outcome"].tolist() == [Outcome.ACKED, Outcome.REJECTED, Outcome.UNKNOWN]
    assert rows["offset"].tolist() == [77, -1, -1]
    assert rows["told_partition"].tolist() == [2, -1, -1]
    assert rows["error"].tolist() == [0, 10, 0]
    assert rows["key"].tolist() == [0, 1, 2]
    assert rows["txn"].tolist() == [5, 5, 5]
    assert (rows["t_attempt"] > 0).all()


def test_a_journal_grows_over_its_regions(tmp_path: Path) -> None:
    count = ledger_journal.REGION_ROWS + 10
    with ledger_journal.Ledger(tmp_path, "p") as book:
        journal = book.attempts(1)
        for seq in range(count):
            journal.attempt(seq, -1, 0)
    assert len(reading.read_attempts(tmp_path / "p.1.attempts")) == count


def test_a_hole_is_an_error_with_its_place(tmp_path: Path) -> None:
    with ledger_journal.Ledger(tmp_path, "p") as book:
        journal = book.attempts(1)
        journal.attempt(0, -1, 0)
        journal.attempt(2, -1, 0)
    with pytest.raises(LedgerError, match=r"p\.1\.attempts: attempt 1 is missing"):
        reading.read_attempts(tmp_path / "p.1.attempts")


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    full = Path("/dev/full")
    journal = ledger_journal.RowJournal(full)
    with pytest.raises(
        LedgerError, match=r"/dev/full: cannot append to the ledger \(No space left on device\)"
    ):
        journal.append(np.zeros(1, dtype=DELIVERY))


def _nearly_full(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """A disk that takes `room` more bytes, a part of a write if need be, and then nothing."""
    write, left = os.write, room

    def limited(file: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(file, bytes(data)[:left])
        left -= done
        return done

    monkeypatch.setattr(os, "write", limited)


@pytest.mark.parametrize("room", [0, 1, 47, 48, 100, 143])
def test_a_batch_that_does_not_fit_leaves_whole_rows_and_one_line(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUST T11, R3: rows that were written in part would look like a cut journal."""
    journal = ledger_journal.RowJournal(tmp_path / "c.deliveries")
    journal.append(np.zeros(2, dtype=DELIVERY))
    _nearly_full(monkeypatch, room)
    with pytest.raises(
        LedgerError, match=r"c\.deliveries: cannot append to the ledger \(No space left"
    ) as caught:
        journal.append(np.zeros(3, dtype=DELIVERY))
    assert "\n" not in str(caught.value)
    assert journal.rows == 2
    assert (tmp_path / "c.deliveries").stat().st_size == 2 * DELIVERY.itemsize


@pytest.mark.parametrize("room", [0, 1, 30])
def test_an_event_that_does_not_fit_leaves_whole_lines_and_one_line(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRUST T11, R3."""
    log = ledger_journal.EventLog(tmp_path / "w.events", "w")
    log.write("step", step="warm")
    _nearly_full(monkeypatch, room)
    with pytest.raises(LedgerError, match=r"w\.events: cannot append to the ledger \(No space left"):
        log.write("step", step="faults")
    assert log.lines == 1
    assert [e["event"] for e in reading.read_events(tmp_path / "w.events")] == ["step"]


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"w\.events: cannot open this file of the ledger \(No such file"):
        ledger_journal.Ledger(tmp_path / "missing", "w")


def test_the_last_event_of_an_orderly_end_counts_everything(tmp_path: Path) -> None:
    """TRUST T11."""
    with ledger_journal.Ledger(tmp_path, "copier-1.0") as book:
        attempts = book.attempts(1_000_000)
        for seq in range(3):
            attempts.attempt(seq, -1, 0)
        deliveries = book.deliveries()
        for _ in range(2):
            deliveries.append(np.zeros(5, dtype=DELIVERY))
        book.log("read_committed")
        book.effects("read_committed").append(np.zeros(7, dtype=EFFECT))
    events = list(reading.read_events(tmp_path / "copier-1.0.events"))
    assert [e["file"] for e in events if e["event"] == "opened"] == [
        "copier-1.0.deliveries", "copier-1.0.read_committed.log", "copier-1.0.read_committed.effects",
    ]  # fmt: skip
    assert events[-1]["event"] == "closed"
    assert events[-1]["lines"] == len(events) == 4
    assert events[-1]["rows"] == {
        "copier-1.0.1000000.attempts": 3, "copier-1.0.deliveries": 10,
        "copier-1.0.read_committed.log": 0, "copier-1.0.read_committed.effects": 7,
    }  # fmt: skip


def test_a_writer_that_fails_closes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ledger_journal.Ledger(tmp_path, "w") as book:
        book.events.write("step", step=1 // (book.events.lines - book.events.lines))
    assert list(reading.read_events(tmp_path / "w.events")) == []


@pytest.mark.parametrize("cut", range(DELIVERY.itemsize))
def test_a_torn_last_delivery_is_cut_off(tmp_path: Path, cut: int) -> None:
    rows = np.zeros(3, dtype=DELIVERY)
    rows["offset"] = [5, 6, 7]
    path = tmp_path / "c.deliveries"
    path.write_bytes(rows.tobytes()[: 2 * DELIVERY.itemsize + cut])
    whole, torn = reading.read_deliveries(path)
    assert whole["offset"].tolist() == [5, 6]
    assert torn == cut


def test_a_torn_last_line_is_recognised_and_a_broken_one_before_is_an_error(tmp_path: Path) -> None:
    with ledger_journal.Ledger(tmp_path, "h") as book:
        book.events.write("step", step="warm")
        book.events.write("step", step="faults")
    path = tmp_path / "h.events"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert [e["event"] for e in reading.read_events(path)] == ["step", "step", "torn"]
    path.write_bytes(whole.replace(b'"step"', b"step", 1))
    with pytest.raises(LedgerError, match=r"h\.events:1: not a ledger line"):
        list(reading.read_events(path))


def _write_until_killed(folder: Path, out: int, late: bool) -> None:
    """Write sends to the pipe after the attempt was recorded, and acks after the outcome was recorded.

    Everything that the pipe got must be in the ledger of a killed writer. `late` is the mistake: send first.
    """
    journal = ledger_journal.Ledger(folder, "p").attempts(1)
    for seq in itertools.count():
        if not late:
            journal.attempt(seq, -1, 0)
        os.write(out, b"s%d\n" % seq)
        if late:
            time.sleep(0.005)
            journal.attempt(seq, -1, 0)
        if seq % 2:
            journal.outcome(seq, Outcome.ACKED, 0, seq, 0)
            os.write(out, b"a%d\n" % seq)


def _kill_a_writer(folder: Path, after_s: float, *, late: bool = False) -> tuple[list[int], list[int]]:
    """Numbers that were sent and acked before the writer was killed."""
    source, out = os.pipe()
    # A fork: starting an interpreter for each kill would cost more than all kills together.
    writer = multiprocessing.get_context("fork").Process(target=_write_until_killed, args=(folder, out, late))
    writer.start()
    os.close(out)
    with os.fdopen(source, "rb") as pipe:
        lines = [pipe.readline()]
        while not lines[-1].startswith(b"a"):  # it has begun, and there is an ack to lose
            lines.append(pipe.readline())
        deadline = time.monotonic() + after_s
        while time.monotonic() < deadline:
            lines.append(pipe.readline())
        writer.kill()
        lines += pipe.readlines()
    writer.join()
    whole = [line for line in lines if line.endswith(b"\n")]
    return ([int(x[1:]) for x in whole if x[:1] == b"s"], [int(x[1:]) for x in whole if x[:1] == b"a"])


def test_killed_writers_lose_no_attempt_and_no_ack(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Twenty kills; `--times 1000` makes it a thousand."""
    moments = random.Random(7)
    for number in range(request.config.getoption("--times") or 20):
        folder = tmp_path / str(number)
        folder.mkdir()
        sent, acked = _kill_a_writer(folder, moments.uniform(0.0, 0.1))
        rows = reading.read_attempts(folder / "p.1.attempts")
        assert sent
        assert acked
        assert len(rows) >= sent[-1] + 1, f"kill {number}: sent but not in the ledger"
        assert (rows["outcome"][acked] == Outcome.ACKED).all(), f"kill {number}: acked but not in the ledger"
        shutil.rmtree(folder)


def test_the_kills_would_catch_a_writer_that_records_too_late(tmp_path: Path) -> None:
    """The control of the test above: attempts written after the send do get lost, and that is seen."""
    missing = 0
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        sent, _ = _kill_a_writer(folder, 0.05, late=True)
        missing += len(reading.read_attempts(folder / "p.1.attempts")) < sent[-1] + 1
    assert missing > 0
