"""Sealing: whole tables or a clear error, wherever a journal was cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.contracts import Mode
from harness.errors import LedgerError
from harness.ledger.literal_run import LiteralRun, killed_now
from harness.ledger.rows import DELIVERY
from harness.ledger.rundir import RunDir, read_json, write_json
from harness.reconcile.seal.schema import SCHEMAS
from harness.reconcile.seal.seal import seal


def literal(root: Path, *, killed: bool = False) -> RunDir:
    run = LiteralRun(root, mode=Mode.EXACTLY_ONCE, scheduled=1)
    run.session(1)
    run.write(1, 6, 0, txn=1)
    run.end(1, 1)
    run.window()
    run.write(1, 6, 1, txn=2)
    run.end(1, 2)
    if killed:
        run.killed("consumer-1.0")
        run.killed("producer-1.0")
    return run.finish()


def rows(run: RunDir, table: str) -> list[dict[str, object]]:
    made: list[dict[str, object]] = pq.read_table(run.tables / table).to_pylist()
    return made


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def points(size: int, seed: int) -> list[int]:
    """Twenty places to cut a file of this size, its edges among them."""
    inside = random.Random(seed).sample(range(size), min(18, size))
    return sorted({0, size - 1, *inside})[:20]


def test_every_table_is_there_and_sealing_again_gives_the_same(tmp_path: Path) -> None:
    run = literal(tmp_path)
    seal(run)
    first = {table: rows(run, table) for table in SCHEMAS}
    seal(run)
    assert {table: rows(run, table) for table in SCHEMAS} == first
    assert len(first["attempts"]) == len(first["deliveries"]) == len(first["log"]) == 12
    assert [p.name for p in run.path.iterdir() if p.name.startswith(".")] == []


def test_both_readings_become_one_log(tmp_path: Path) -> None:
    literal_run = LiteralRun(tmp_path, mode=Mode.EXACTLY_ONCE)
    literal_run.session(1)
    literal_run.write(1, 2, 0, txn=1)
    literal_run.end(1, 1, "abort")
    literal_run.write(1, 2, 0, txn=2)
    literal_run.end(1, 2)
    run = literal_run.finish()
    sealed = seal(run)
    found = [
        (r["offset"], r["uncommitted"], r["committed"], r["promised"], r["passed"]) for r in rows(run, "log")
    ]
    assert found == [(n, True, n > 1, n > 1, n > 1) for n in range(4)]
    assert (sealed.in_log, sealed.in_log_uncommitted) == (2, 4)


def test_phases_of_acks(tmp_path: Path) -> None:
    run = literal(tmp_path)
    seal(run)
    assert [row["phase"] for row in rows(run, "attempts")] == [0] * 6 + [2] * 6


@pytest.mark.parametrize("seed", [1])
def test_a_cut_journal_of_a_killed_reader_loses_its_torn_row_only(seed: int, tmp_path: Path) -> None:
    run = literal(tmp_path, killed=True)
    path = run.ledger / "consumer-1.0.deliveries"
    whole = path.read_bytes()
    for size in points(len(whole), seed):
        path.write_bytes(whole[:size])
        killed_now(run)
        sealed = seal(run)
        assert len(rows(run, "deliveries")) == size // DELIVERY.itemsize
        assert bool(sealed.torn) == (size % DELIVERY.itemsize != 0)
        assert sealed.gaps == []


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("name", ["consumer-1.0.deliveries", "final-reader.read_committed.log"])
def test_a_truncated_journal_of_a_reader_that_was_not_killed_is_refused(
    name: str, seed: int, tmp_path: Path
) -> None:
    """TRUST T11: at any place, between two rows too."""
    run = literal(tmp_path)
    path = run.ledger / name
    whole = path.read_bytes()
    for size in {*points(len(whole), seed), len(whole) - DELIVERY.itemsize}:
        path.write_bytes(whole[:size])
        with pytest.raises(LedgerError, match=rf"{name}: {size // DELIVERY.itemsize} rows .*12 promised"):
            seal(run)


@pytest.mark.parametrize("seed", [2])
def test_cut_events_are_torn_at_most_at_their_last_line(seed: int, tmp_path: Path) -> None:
    run = literal(tmp_path, killed=True)
    path = run.ledger / "producer-1.0.events"
    whole = path.read_bytes()
    first_line = whole.index(b"\n") + 1
    for size in points(len(whole), seed):
        path.write_bytes(whole[:size])
        killed_now(run)
        if size < first_line - 1:
            # Without its session event the attempts cannot be interpreted: refused, never guessed.
            with pytest.raises(LedgerError, match=r"session 1|missing"):
                seal(run)
            continue
        sealed = seal(run)
        end_of_a_line = whole[size - 1 : size] == b"\n" or whole[size : size + 1] == b"\n"
        assert bool(sealed.torn) != end_of_a_line
        assert sealed.gaps == []


@pytest.mark.parametrize("seed", [3])
def test_truncated_attempts_are_refused(seed: int, tmp_path: Path) -> None:
    run = literal(tmp_path)
    path = run.ledger / "producer-1.0.1.attempts"
    whole = path.read_bytes()
    for size in points(len(whole), seed)[1:]:
        path.write_bytes(whole[:size])
        with pytest.raises(LedgerError, match=r"producer-1\.0\.1\.attempts: truncated"):
            seal(run)


def test_a_torn_line_of_a_writer_that_was_not_killed_is_a_gap(tmp_path: Path) -> None:
    literal_run = LiteralRun(tmp_path)
    literal_run.manifest["complete"] = False
    literal_run.session(1)
    run = literal_run.finish()
    path = run.ledger / "harness.events"
    cut(path, path.stat().st_size - 5)
    assert [gap for gap in seal(run).gaps if "harness.events" in gap]


def test_a_torn_line_of_a_harness_that_came_to_its_end_is_refused(tmp_path: Path) -> None:
    run = literal(tmp_path)
    path = run.ledger / "harness.events"
    cut(path, path.stat().st_size - 5)
    with pytest.raises(LedgerError, match=r"harness\.events: no closing event"):
        seal(run)


def test_an_outcome_that_was_not_finished_is_unknown(tmp_path: Path) -> None:
    literal_run = LiteralRun(tmp_path)
    literal_run.session(1)
    literal_run.append(literal_run.send(1), ack=False)
    run = literal_run.finish()
    seal(run)
    row = rows(run, "attempts")[0]
    assert (row["outcome"], row["t_outcome"], row["offset"], row["told_partition"]) == (0, None, None, None)


def test_an_offset_reported_with_acks_0_is_no_position(tmp_path: Path) -> None:
    literal_run = LiteralRun(tmp_path)
    literal_run.session(1, acks="0")
    literal_run.write(1, 1)
    run = literal_run.finish()
    seal(run)
    assert rows(run, "attempts")[0]["offset"] is None


def test_a_run_that_was_stopped_has_a_gap(tmp_path: Path) -> None:
    literal_run = LiteralRun(tmp_path)
    literal_run.session(1)
    literal_run.manifest["complete"] = False
    assert any("did not come to its end" in gap for gap in seal(literal_run.finish()).gaps)


def _other_version(run: RunDir) -> None:
    write_json(run.manifest, {**read_json(run.manifest, ""), "version": 99})


def _broken_line(run: RunDir) -> None:
    path = run.ledger / "harness.events"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{broken\n", *lines[1:]]))


def _line_without_time(run: RunDir) -> None:
    path = run.ledger / "harness.events"
    path.write_bytes(b'{"event": "step", "step": "warm"}\n' + path.read_bytes())


def _bounds_without_offsets(run: RunDir) -> None:
    path = run.ledger / "harness.events"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[0] = b'{"t": 1, "event": "bounds", "writer": "harness", "partition": 0}\n'
    path.write_bytes(b"".join(lines))


def _compacted(which: str) -> Callable[[RunDir], None]:
    def damage(run: RunDir) -> None:
        manifest = read_json(run.manifest, "")
        compacted = {"extra": {"cleanup.policy": "delete,compact"}}
        manifest["scenario"] |= (
            {"topic": compacted} if which == "topic" else {"pipeline": {"output": compacted}}
        )
        write_json(run.manifest, manifest)

    return damage


def _reading_without_end(run: RunDir) -> None:
    path = run.ledger / "final-reader.events"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[0] = b'{"t": 1, "event": "reading", "isolation": "read_committed", "partition": 0, "reached": 3}\n'
    path.write_bytes(b"".join(lines))


def _far_partition(run: RunDir) -> None:
    with (run.ledger / "final-reader.events").open("a", encoding="utf-8") as file:
        file.write(
            '{"t": 1, "event": "bounds", "partition": 1099511627776, "start": 0, "end": 0, "stable": 0}\n'
        )


def _missing(name: str) -> Callable[[RunDir], None]:
    return lambda run: (run.ledger / name).unlink()


def _no_manifest(run: RunDir) -> None:
    run.manifest.unlink()


def _no_events(run: RunDir) -> None:
    for path in run.ledger.glob("*.events"):
        path.unlink()


DAMAGES: dict[str, tuple[Callable[[RunDir], None], str]] = {
    "another version": (
        _other_version,
        r"manifest\.json: ledger version 99, this onceproof reads version 2; use the onceproof that made",
    ),
    "no manifest": (_no_manifest, r"manifest\.json: there is no such file"),
    "broken line": (_broken_line, r"harness\.events:2: not a ledger line"),
    "line without time": (_line_without_time, r"harness\.events:1: not a ledger line"),
    "bounds without offsets": (
        _bounds_without_offsets,
        r"harness\.events:\d+: bounds event: start is missing",
    ),
    "no events": (_no_events, r"no \*\.events file"),
    "no attempts": (_missing("producer-1.0.1.attempts"), r"producer-1\.0\.1\.attempts: missing"),
    "no events of a writer": (_missing("producer-1.0.events"), r"producer-1\.0\.events: missing"),
    "no deliveries": (_missing("consumer-1.0.deliveries"), r"consumer-1\.0\.deliveries: missing"),
    "a compacted topic": (
        _compacted("topic"),
        r"scenario\.topic has cleanup\.policy with compact",
    ),  # TRUST T8
    "a compacted output": (
        _compacted("output"),
        r"scenario\.pipeline\.output has cleanup\.policy with compact",
    ),
    "a partition that cannot be": (
        _far_partition,
        r"final-reader\.events:\d+: bounds event: partition is 1099511627776",
    ),
    "a reading of an unknown partition": (
        _reading_without_end,
        r"final-reader\.events:\d+: reading event: until is missing",
    ),
    "no final reading": (
        _missing("final-reader.read_committed.log"),
        r"final-reader\.read_committed\.log: missing",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=list(DAMAGES))
def test_untrusted_ledgers_raise_with_file_and_line(
    damage: Callable[[RunDir], None], message: str, tmp_path: Path
) -> None:
    run = literal(tmp_path)
    damage(run)
    with pytest.raises(LedgerError, match=message):
        seal(run)
    assert not run.tables.exists()


def test_a_failed_sealing_keeps_the_earlier_tables(tmp_path: Path) -> None:
    run = literal(tmp_path)
    seal(run)
    before = rows(run, "attempts")
    _broken_line(run)
    with pytest.raises(LedgerError):
        seal(run)
    assert rows(run, "attempts") == before
