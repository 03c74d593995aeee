"""A ledger is whole or refused: cut, missing and foreign parts, and sessions with one number. TRUST T2, T11."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Mode
from harness.errors import LedgerError
from harness.ledger import reading
from harness.ledger.literal_run import LiteralRun
from harness.ledger.rows import ATTEMPT, DELIVERY, EFFECT
from harness.ledger.rundir import RunDir
from harness.ledger.transform import Transform
from harness.reconcile.seal.seal import seal


def literal(root: Path, *, lives: bool = False) -> LiteralRun:
    """Fifty messages, all in the log and delivered. `lives`: the harness records the consumer's process."""
    run = LiteralRun(root, mode=Mode.IDEMPOTENT)
    run.session(1)
    run.write(1, 50)
    if lives:
        run.event(
            "worker", name="consumer-1", state="started", pid=1, writes_as="consumer-1.0", role="consumer"
        )
        run.event("worker", name="consumer-1", state="ended", exit=0, writes_as="consumer-1.0")
    return run


def refused(run: RunDir, message: str) -> None:
    with pytest.raises(LedgerError, match=message) as caught:
        seal(run)
    assert "\n" not in str(caught.value)
    assert not run.tables.exists()


def without_rows(path: Path, count: int) -> None:
    size = EFFECT.itemsize if path.suffix == ".effects" else DELIVERY.itemsize
    path.write_bytes(path.read_bytes()[: -count * size])


def test_a_whole_ledger_is_sealed(tmp_path: Path) -> None:
    assert seal(literal(tmp_path, lives=True).finish()).gaps == []


# --- sessions ---


def test_two_sessions_with_one_number_are_refused(tmp_path: Path) -> None:
    """TRUST T2: the messages of both would be taken for each other's. A real loss was HELD, a clean log VIOLATED."""
    run = literal(tmp_path)
    run.event("session", "producer-1.1", session=1, producer="producer-1", incarnation=1, mode=run.mode, acks="all",
              in_flight=None, idempotent=True, retries=True, transactional_id="")  # fmt: skip
    refused(
        run.finish(), r"producer-1\.1\.events:1: session 1 has begun before, at .*producer-1\.0\.events:1"
    )


def test_two_sessions_with_one_name_are_refused(tmp_path: Path) -> None:
    """TRUST T2: messages would have the same ids."""
    run = literal(tmp_path)
    run.session(2, "producer-1", 0)
    refused(run.finish(), r"producer-1\.0 has begun before")


# --- rows ---


@pytest.mark.parametrize("count", [1, 30, 50])
@pytest.mark.parametrize(
    "name",
    ["final-reader.read_uncommitted.log", "final-reader.read_committed.log", "consumer-1.0.deliveries"],
)
def test_a_journal_that_was_cut_between_two_rows_is_refused(name: str, count: int, tmp_path: Path) -> None:
    """TRUST T11: a log without 30 rows was 30 lost messages."""
    run = literal(tmp_path).finish()
    without_rows(run.ledger / name, count)
    refused(run, rf"{name}: {50 - count} rows found, 50 promised by .*events:\d+: not a whole ledger")


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_truncated_effects_are_refused(isolation: str, tmp_path: Path) -> None:
    run = LiteralRun(tmp_path, mode=Mode.EXACTLY_ONCE, transform=Transform(2, 0.0))
    run.session(1)
    run.session(2, "copier-1")
    for record in run.write(1, 8):
        run.copy(2, record)
    folder = run.finish()
    without_rows(folder.ledger / f"final-reader.{isolation}.effects", 1)
    refused(folder, rf"final-reader\.{isolation}\.effects: \d+ rows found")


def test_a_row_too_many_is_refused(tmp_path: Path) -> None:
    run = literal(tmp_path).finish()
    path = run.ledger / "consumer-1.0.deliveries"
    path.write_bytes(path.read_bytes() + path.read_bytes()[-DELIVERY.itemsize :])
    refused(run, r"consumer-1\.0\.deliveries: 51 rows found, 50 promised")


def test_attempts_that_were_wiped_out_at_the_end_are_refused(tmp_path: Path) -> None:
    run = literal(tmp_path).finish()
    path = run.ledger / "producer-1.0.1.attempts"
    data = bytearray(path.read_bytes())
    data[40 * ATTEMPT.itemsize :] = bytes(len(data) - 40 * ATTEMPT.itemsize)
    path.write_bytes(data)
    refused(run, r"producer-1\.0\.1\.attempts: 40 rows found, 50 promised")


@pytest.mark.parametrize("name", ["harness", "consumer-1.0", "final-reader"])
def test_an_event_line_that_is_gone_is_refused(name: str, tmp_path: Path) -> None:
    run = literal(tmp_path).finish()
    path = run.ledger / f"{name}.events"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[1:]))
    refused(run, rf"{name}\.events: {len(lines) - 1} events found, {len(lines)} promised")


# --- files ---


@pytest.mark.parametrize(
    "names", [["consumer-1.0.deliveries"], ["consumer-1.0.events", "consumer-1.0.deliveries"]]
)
def test_a_consumer_without_its_files_is_refused(names: list[str], tmp_path: Path) -> None:
    """TRUST T11: it was 50 undelivered messages."""
    run = literal(tmp_path, lives=True).finish()
    for name in names:
        (run.ledger / name).unlink()
    refused(run, rf"{names[0]}: missing")


def test_a_killed_consumer_without_the_file_that_it_opened_is_refused(tmp_path: Path) -> None:
    run = literal(tmp_path)
    run.event("opened", "consumer-1.0", file="consumer-1.0.deliveries")
    run.killed("consumer-1.0")
    run.commits = False
    folder = run.finish()
    (folder.ledger / "consumer-1.0.deliveries").unlink()
    refused(folder, r"consumer-1\.0\.deliveries: missing, but .*consumer-1\.0\.events:1 has it")


def test_a_killed_consumer_whose_file_is_shorter_than_at_its_end_is_refused(tmp_path: Path) -> None:
    run = literal(tmp_path)
    size = 50 * DELIVERY.itemsize
    run.killed("consumer-1.0")
    folder = run.finish()
    assert seal(folder).gaps == []
    without_rows(folder.ledger / "consumer-1.0.deliveries", 10)
    with pytest.raises(
        LedgerError, match=rf"consumer-1\.0\.deliveries: {size - 480} bytes found, {size} promised"
    ):
        seal(folder)


def test_a_worker_that_ended_in_an_orderly_way_has_closed_its_ledger(tmp_path: Path) -> None:
    run = literal(tmp_path, lives=True)
    run.unclosed.add("consumer-1.0")
    refused(
        run.finish(),
        r"consumer-1\.0\.events: no closing event, but .*harness\.events:\d+ ended in an orderly way",
    )


def test_events_that_are_neither_counted_nor_measured_are_refused(tmp_path: Path) -> None:
    """A cut between two lines shows nowhere else: a commit without its line was 24 aborted_read in a clean log."""
    run = literal(tmp_path)
    run.unclosed.add("producer-1.0")
    refused(run.finish(), r"producer-1\.0\.events: no closing event, and harness\.events has no size of it")


def test_a_killed_worker_whose_events_are_shorter_than_at_its_end_is_refused(tmp_path: Path) -> None:
    run = literal(tmp_path)
    run.killed("consumer-1.0")
    folder = run.finish()
    path = folder.ledger / "consumer-1.0.events"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    refused(folder, r"consumer-1\.0\.events: \d+ bytes found, \d+ promised")


def test_a_killed_worker_has_not_closed_its_ledger(tmp_path: Path) -> None:
    run = literal(tmp_path)
    run.event("worker", name="consumer-1", state="started", pid=1, writes_as="consumer-1.0", role="consumer")
    run.killed("consumer-1.0")
    folder = run.finish()
    kinds = [e["event"] for e in reading.read_events(folder.ledger / "consumer-1.0.events")]
    assert "closed" not in kinds
    assert seal(folder).gaps == []


def test_a_journal_that_its_writer_did_not_have_is_refused(tmp_path: Path) -> None:
    run = literal(tmp_path).finish()
    (run.ledger / "harness.deliveries").write_bytes(b"")
    refused(run, r"harness\.deliveries: not among the journals that .*harness\.events:\d+ closed")


# --- malformed closing events ---


def _changed(run: RunDir, change: Callable[[dict[str, Any]], None]) -> None:
    path = run.ledger / "consumer-1.0.events"
    lines = path.read_text(encoding="utf-8").splitlines()
    event = json.loads(lines[-1])
    assert event["event"] == "closed"
    change(event)
    path.write_text("\n".join([*lines[:-1], json.dumps(event)]) + "\n", encoding="utf-8")


BAD: dict[str, Callable[[dict[str, Any]], None]] = {
    "no rows": lambda e: e.pop("rows"),
    "rows are a list": lambda e: e.update(rows=[]),
    "a file of another writer": lambda e: e.update(rows={"producer-1.0.1.attempts": 50}),
    "a file elsewhere": lambda e: e.update(rows={"consumer-1.0./../../manifest.json": 50}),
    "a negative count": lambda e: e.update(rows={"consumer-1.0.deliveries": -1}),
    "a count in words": lambda e: e.update(rows={"consumer-1.0.deliveries": "50"}),
    "lines are null": lambda e: e.update(lines=None),
}


@pytest.mark.parametrize("change", BAD.values(), ids=list(BAD))
def test_a_malformed_closing_event_is_named(change: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    run = literal(tmp_path).finish()
    _changed(run, change)
    refused(run, r"consumer-1\.0\.events:\d+: closed event(: | with a missing or wrong field: )")
