"""Dots of messages: no anomaly is lost by sampling, and their number is bounded."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts import Outcome
from harness.reconcile.pictures import messages
from harness.reconcile.pictures.messages import Anomaly, anomalies, dots
from harness.reconcile.seal.sealed import SealedSession

SESSIONS = [SealedSession(1_000_000, "producer-1", 0, 50_000)]
SCHEMA = pa.schema([
    ("anomaly", pa.string()), ("excuse", pa.string()), ("messages", pa.list_(pa.string())), ("t", pa.int64()),
    ("topic", pa.string()), ("partition", pa.int32()),
])  # fmt: skip


def sent(seq: int, outcome: Outcome = Outcome.ACKED, waited_ms: int | None = 3) -> dict[str, Any]:
    t = seq * 1_000_000
    return {
        "session": 1_000_000, "seq": seq, "t": t, "topic": 0, "partition": -1, "told_partition": seq % 3,
        "offset": seq, "outcome": outcome, "t_outcome": None if waited_ms is None else t + waited_ms * 1_000_000,
    }  # fmt: skip


def findings(folder: Path, *kinds: tuple[str, int], excuse: str | None = None) -> Path:
    """Write so many findings of each kind, in several groups of rows."""
    folder.mkdir(exist_ok=True)
    rows = [
        {"anomaly": kind, "excuse": excuse, "messages": [f"producer-1.0-{n}"], "t": n, "topic": "orders", "partition": 1}
        for kind, count in kinds
        for n in range(count)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / "findings.parquet", row_group_size=701)
    return folder


@given(counts=st.lists(st.integers(0, 5000), max_size=6), most=st.integers(1, 3000))
def test_any_number_of_findings_is_thinned_to_the_limit_and_rare_kinds_are_whole(
    counts: list[int], most: int
) -> None:
    kinds = {f"kind-{n}": count for n, count in enumerate(counts) if count}
    every = messages._distances(kinds, most)
    kept = {kind: -(-count // every[kind]) for kind, count in kinds.items()}
    assert sum(kept.values()) <= max(most, len(kinds))
    assert all(kept.values())
    if sum(counts) <= most:
        assert kept == kinds


def test_up_to_the_limit_every_finding_is_there(tmp_path: Path) -> None:
    found, counts = anomalies(findings(tmp_path / "f", ("lost", 1200), ("torn", 800)), SESSIONS, ["orders"])
    assert counts == {"lost": 1200, "torn": 800}
    assert {(one.kind, one.sent) for one in found} == {
        (kind, (1_000_000, n)) for kind, count in counts.items() for n in range(count)
    }


def test_beyond_the_limit_a_frequent_kind_does_not_displace_a_rare_one(tmp_path: Path) -> None:
    found, counts = anomalies(findings(tmp_path / "f", ("lost", 9000), ("torn", 3)), SESSIONS, ["orders"])
    kinds = [one.kind for one in found]
    assert counts["lost"] == 9000
    assert kinds.count("torn") == 3
    assert 1500 <= kinds.count("lost") <= messages.MOST_ANOMALIES - 3
    seqs = [one.sent[1] for one in found if one.kind == "lost" and one.sent]
    assert len({after - before for before, after in pairwise(seqs)}) == 1, (
        "every k-th, over all groups of rows"
    )
    assert max(seqs) > 8900


def test_excused_findings_are_no_anomalies(tmp_path: Path) -> None:
    folder = findings(tmp_path / "f", ("aborted_read", 5), excuse="read_uncommitted")
    assert anomalies(folder, SESSIONS, ["orders"]) == ([], {})


@given(
    sampled=st.integers(0, 300),
    marked=st.sets(st.integers(0, 600), max_size=120),
    most=st.integers(1, 200),
)
def test_every_anomaly_is_a_dot_and_the_sample_fills_the_rest(
    sampled: int, marked: set[int], most: int
) -> None:
    sample = [sent(seq * 2) for seq in range(sampled)]
    found = [Anomaly("lost", (1_000_000, seq), seq, 0, 0) for seq in sorted(marked)]
    attempts = {one.sent: sent(one.sent[1]) for one in found if one.sent}
    drawn = dots(sample, found, attempts, 0, most)
    assert drawn["fates"] == ["acked", "rejected", "unknown", *(["lost"] if marked else [])]
    lost = [t for t, fate in zip(drawn["t_ms"], drawn["fate"], strict=True) if fate == 3]
    assert sorted(lost) == sorted(marked)
    assert len(drawn["t_ms"]) <= max(most, len(marked) + 1)
    assert drawn["t_ms"] == sorted(drawn["t_ms"])


def test_a_message_of_the_sample_that_is_an_anomaly_is_one_dot() -> None:
    drawn = dots([sent(1), sent(2)], [Anomaly("lost", (1_000_000, 2), 9, 0, 0)], {(1_000_000, 2): sent(2)}, 0)
    assert drawn["t_ms"] == [1, 2]
    assert drawn["fate"] == [0, 3]


def test_fates_places_and_waits_are_those_of_the_attempts() -> None:
    drawn = dots([sent(1), sent(2, Outcome.REJECTED, 7), sent(3, Outcome.UNKNOWN, None)], [], {}, 0)
    assert [drawn["fates"][fate] for fate in drawn["fate"]] == ["acked", "rejected", "unknown"]
    assert drawn["ack_ms"] == [3.0, 7.0, None]
    assert [drawn["places"][place] for place in drawn["place"]] == [[0, 1], [0, 2], [0, 0]]


@pytest.mark.parametrize("message", [None, (1_000_000, 77)])
def test_without_its_attempt_an_anomaly_is_at_its_own_time(message: tuple[int, int] | None) -> None:
    drawn = dots([], [Anomaly("phantom", message, 5_000_000, 0, 2)], {}, 0)
    assert (drawn["t_ms"], drawn["ack_ms"], drawn["places"]) == ([5], [None], [[0, 2]])
    assert dots([], [Anomaly("two_owners", None, None, 0, 2)], {}, 0)["t_ms"] == []
