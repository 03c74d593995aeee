"""The search of replicas' logs: suspects, the replicas that have them, and that it never fails a run."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.clusters.local import LocalCluster
from harness.contracts import Outcome, ReplicaLogs
from harness.errors import ClusterError, UsageError
from harness.kafka import lost_record_search
from harness.kafka.lost_record_search import Suspect, spread, suspects
from harness.kafka.segments import SoughtMessage, search
from harness.ledger import journal, reading
from harness.ledger.literal_run import LiteralRun
from harness.ledger.message import BAD_PAYLOAD, HEADER_NAME, Builder, Message, run_number
from harness.ledger.replica_events import IN_NO_LOG, NOT_LOOKED_AT, classify
from harness.ledger.rundir import RunDir

RUN = 4711


def messages(count: int, *, run: int = RUN, session: int = 1, txn: int = 0) -> list[Message]:
    return Builder(run, session, 128).build(0, [i % 3 - 1 for i in range(count)], [0] * count, 1000, txn)


# --- a writer of segments, by the description of the format ---


def varint(number: int) -> bytes:
    number, out = (number << 1) ^ (number >> 63), bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def lengthy(blob: bytes | None) -> bytes:
    return varint(-1) if blob is None else varint(len(blob)) + blob


def batch(
    base: int,
    values: Sequence[bytes | None],
    *,
    codec: int = 0,
    magic: int = 2,
    keys: Sequence[bytes | None] = (),
    header: bytes = b"",
) -> bytes:
    body = b""
    for i, value in enumerate(values):
        head = varint(1) + lengthy(HEADER_NAME.encode()) + lengthy(header) if header else varint(0)
        record = (
            b"\0" + varint(i * 3) + varint(i) + lengthy(keys[i] if keys else None) + lengthy(value) + head
        )
        body += varint(len(record)) + record
    body = gzip.compress(body) if codec == 1 else body
    rest = (
        struct.pack(">ibIhiqqqhii", 5, magic, 0, codec, len(values) - 1, 0, 0, -1, -1, -1, len(values)) + body
    )
    return struct.pack(">qi", base, len(rest)) + rest


def segment(folder: Path, base: int, *batches: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def want(one: Message, run: int = RUN) -> SoughtMessage:
    return SoughtMessage(run, one.session, one.txn, one.seq)


# --- segments ---


@pytest.mark.parametrize("piece_bytes", [64, 1000, 8 << 20])
def test_messages_are_found_at_their_offsets_in_all_segments(tmp_path: Path, piece_bytes: int) -> None:
    made = messages(9)
    values = [m.payload for m in made]
    segment(
        tmp_path, 10, batch(10, values[:3], keys=[m.key for m in made[:3]]), batch(15, [None, *values[3:5]])
    )
    segment(tmp_path, 18, batch(18, values[5:8]), batch(30, values[:1]))
    held = search(tmp_path, [want(m) for m in made], piece_bytes=piece_bytes)
    assert {w.seq: at for w, at in held.found.items()} == {
        0: [10, 30], 1: [11], 2: [12], 3: [16], 4: [17], 5: [18], 6: [19], 7: [20],
    }  # fmt: skip
    assert (held.start, held.end) == (10, 31)


def test_only_an_intact_message_with_the_whole_identity_is_found(tmp_path: Path) -> None:
    one = messages(1)[0]
    damaged = bytearray(one.payload)
    damaged[100] ^= 1
    elsewhere = messages(2)[1].payload
    # Damaged; in a header only; as a part of a foreign value: none of them is the message.
    foreign = b"x" * 8 + one.payload
    segment(
        tmp_path,
        0,
        batch(0, [bytes(damaged)]),
        batch(1, [elsewhere], header=one.payload),
        batch(2, [foreign]),
    )
    assert search(tmp_path, [want(one)]).found == {}
    segment(tmp_path, 3, batch(3, [one.payload]))
    strangers = [want(one, run=RUN + 1), replace(want(one), txn=1), replace(want(one), session=2)]
    assert search(tmp_path, [want(one), *strangers]).found == {want(one): [3]}


def test_the_end_is_behind_the_last_whole_batch(tmp_path: Path) -> None:
    made = [m.payload for m in messages(4)]
    whole, last = batch(0, made[:2]), batch(2, made[2:])
    for cut in (1, 30, len(last) - 1):
        segment(tmp_path, 0, whole, last[:cut])
        assert search(tmp_path, []).end == 2
    segment(tmp_path, 0, whole, last, b"\0" * 5000)  # preallocated by the broker
    assert search(tmp_path, []).end == 4
    segment(tmp_path, 4)  # a new segment without records
    assert search(tmp_path, []).end == 4


def test_compressed_batches_are_decompressed_or_raise(tmp_path: Path) -> None:
    one, other = messages(2)
    segment(tmp_path, 0, batch(0, [other.payload, one.payload], codec=1))
    assert search(tmp_path, [want(one)]).found == {want(one): [1]}
    segment(tmp_path, 0, batch(0, [one.payload], codec=4))  # marked as zstd but not compressed
    with pytest.raises(ClusterError, match="compressed with zstd, which cannot be read here"):
        search(tmp_path, [want(one)])


def test_unreadable_segments_raise(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="contains no segment"):
        search(tmp_path, [])
    segment(tmp_path, 0, batch(0, [b"old"], magic=1))
    with pytest.raises(ClusterError, match="a batch of format 1 for offset 0"):
        search(tmp_path, [])
    cut = bytearray(batch(0, [messages(1)[0].payload]))
    cut[57:61] = struct.pack(">i", 2)  # promises a second record
    segment(tmp_path, 0, bytes(cut))
    with pytest.raises(ClusterError, match="the batch of offset 0 ends before its records"):
        search(tmp_path, [want(messages(1)[0])])


# --- suspects ---


def lossy(root: Path, *gone: int, **session: Any) -> LiteralRun:
    """A run with ten messages to partition 0 and ten to 1 by session 1; messages `gone` are not in the log."""
    run = LiteralRun(root)
    run.session(1, **session)
    run.write(1, 10, 0)
    run.write(1, 10, 1)
    run.log = [r for r in run.log if r.seq not in gone]
    return run


def test_a_clean_run_has_no_suspects(tmp_path: Path) -> None:
    assert list(suspects(lossy(tmp_path).finish())) == []


def test_acked_and_not_in_the_log_is_suspect(tmp_path: Path) -> None:
    run = lossy(tmp_path, 3, 12)
    run.send(1, 0)  # without an outcome
    run.send(1, 0).outcome = Outcome.REJECTED
    assert list(suspects(run.finish())) == [Suspect(1, 3, 0, 0, 3), Suspect(1, 12, 0, 1, 2)]


def test_a_damaged_copy_is_no_copy(tmp_path: Path) -> None:
    run = lossy(tmp_path)
    run.log[4] = replace(run.log[4], flags=BAD_PAYLOAD)
    assert [s.seq for s in suspects(run.finish())] == [4]


def test_with_acks_0_offsets_are_ignored(tmp_path: Path) -> None:
    assert list(suspects(lossy(tmp_path, 3, acks="0").finish())) == [Suspect(1, 3, 0, 0, -1)]


def test_a_record_deleted_by_retention_is_no_suspect(tmp_path: Path) -> None:
    run = lossy(tmp_path, 0, 1, 5)
    run.bounds[0] = (2, 10, 10)
    assert [s.seq for s in suspects(run.finish())] == [5]


def test_a_log_that_was_not_read_to_its_end_has_no_suspects(tmp_path: Path) -> None:
    run = lossy(tmp_path, 3)
    run.reads["read_uncommitted"] = False
    assert list(suspects(run.finish())) == []


def test_suspects_are_spread_over_partitions_and_within_them() -> None:
    found = [Suspect(1, seq, 0, 0, seq) for seq in range(100)] + [
        Suspect(1, 200, 0, 1, 0),
        Suspect(1, 201, 0, 2, 0),
    ]
    chosen = spread(found, 5)
    assert [(s.partition, s.seq) for s in chosen] == [(0, 0), (0, 49), (0, 99), (1, 200), (2, 201)]
    assert spread(found[:3], 20) == found[:3]
    assert spread([], 20) == []


# --- the search itself ---


class Brokers:
    """A cluster with only the power that the search needs."""

    def __init__(self, root: Path, error: Exception | None = None) -> None:
        self.root, self.error = root, error

    def replica_folders(self, topic: str, partition: int) -> Mapping[str, Path]:
        if self.error is not None:
            raise self.error
        return {p.parent.name: p for p in sorted(self.root.glob(f"*/{topic}-{partition}"))}


def examine(run: RunDir, cluster: Any, **limit: float) -> tuple[int, list[dict[str, Any]]]:
    with journal.Ledger(run.ledger, "look") as book:
        count = lost_record_search.examine(run, cluster, "orders", book.events, **limit)
    return count, [e for e in reading.read_events(run.ledger / "look.events") if e["event"] != "closed"]


def replicas(run: RunDir, root: Path, **held: Sequence[int]) -> Brokers:
    """Make logs of partition 0 with these messages of session 1, in order of their numbers."""
    made = Builder(run_number(run.run_id), 1, 128).build(0, [-1] * 10, [0] * 10, 1000)
    for name, numbers in held.items():
        segment(root / name / "orders-0", 0, *(batch(n, [made[n].payload]) for n in numbers))
    return Brokers(root)


def test_the_replica_that_has_the_record_is_named(tmp_path: Path) -> None:
    run = lossy(tmp_path, 3).finish()
    cluster = replicas(run, tmp_path / "disks", old=range(5), new=[0, 1, 2, 4, 5])
    assert isinstance(cluster, ReplicaLogs)
    count, events = examine(run, cluster)
    assert count == 1
    assert {name: v for name, v in events[0].items() if name not in ("t", "writer", "detail")} == {
        "event": "replicas", "session": 1, "seq": 3, "partition": 0, "offset": 3,
        "holders": ["old"], "looked": ["new", "old"], "missed": [], "ends": {"new": 6, "old": 5},
    }  # fmt: skip
    assert events[0]["detail"] == "old has it at offset 3; the log of new goes to 6"
    assert classify(events[0]) == "in the log of old, not read"


def test_a_record_in_no_replica_is_reported(tmp_path: Path) -> None:
    run = lossy(tmp_path, 3, 7).finish()
    count, events = examine(run, replicas(run, tmp_path / "disks", one=[0, 1, 2], two=[0]))
    assert count == 2
    assert [classify(e) for e in events] == [IN_NO_LOG, IN_NO_LOG]
    assert events[1]["ends"] == {"one": 3, "two": 1}


def test_one_log_that_cannot_be_read_leaves_the_question_open(tmp_path: Path) -> None:
    run = lossy(tmp_path, 3).finish()
    cluster = replicas(run, tmp_path / "disks", one=[0, 1, 2], two=[0])
    segment(tmp_path / "disks" / "two" / "orders-0", 0, batch(0, [b"?"], codec=4))
    _, events = examine(run, cluster)
    assert (events[0]["looked"], events[0]["missed"]) == (["one"], ["two"])
    assert "note: two could not be searched: compressed with zstd" in events[0]["detail"]
    assert classify(events[0]) == NOT_LOOKED_AT


def test_the_search_stops_at_its_time_limit(tmp_path: Path) -> None:
    run = lossy(tmp_path, 3).finish()
    _, events = examine(run, replicas(run, tmp_path / "disks", one=range(5)), limit_s=-1.0)
    assert (events[0]["holders"], events[0]["missed"]) == ([], ["one"])
    assert "the limit of -1 s for all replicas has passed" in events[0]["detail"]


def test_without_a_folder_nothing_is_searched(tmp_path: Path) -> None:
    _, events = examine(lossy(tmp_path, 3).finish(), Brokers(tmp_path / "empty"))
    assert classify(events[0]) == NOT_LOOKED_AT
    assert events[0]["detail"] == "note: its partition has no replica folder"


@pytest.mark.parametrize("error", [UsageError("no such topic"), RuntimeError("a bug")], ids=type)
def test_an_error_of_the_cluster_becomes_a_note(tmp_path: Path, error: Exception) -> None:
    count, events = examine(lossy(tmp_path, 3).finish(), Brokers(tmp_path, error))
    assert len(events) == 1
    assert str(error) in events[0].get("detail", "") + events[0].get("text", "")
    assert events[0]["event"] == ("note" if isinstance(error, RuntimeError) else "replicas")
    assert count == (0 if isinstance(error, RuntimeError) else 1)


def test_a_run_without_suspects_asks_no_broker(tmp_path: Path) -> None:
    assert examine(lossy(tmp_path).finish(), Brokers(tmp_path, RuntimeError("asked"))) == (0, [])


def test_a_cluster_without_the_power_is_skipped(tmp_path: Path) -> None:
    assert examine(lossy(tmp_path, 3).finish(), object()) == (0, [])


def test_a_local_cluster_has_the_power(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path)
    assert isinstance(cluster, ReplicaLogs)
    assert cluster.replica_folders("orders", 0) == {}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (None, NOT_LOOKED_AT),
        ({"holders": [], "looked": []}, NOT_LOOKED_AT),
        ({"holders": [], "looked": ["a"], "missed": ["b"]}, NOT_LOOKED_AT),
        ({"holders": [], "looked": ["a", "b"]}, "in no replica's log"),
        ({"holders": ["a", "b"], "looked": ["a", "b"], "missed": ["c"]}, "in the log of a, b, not read"),
    ],
)
def test_a_loss_is_classified_by_its_replicas(event: Mapping[str, Any] | None, expected: str) -> None:
    assert classify(event) == expected
