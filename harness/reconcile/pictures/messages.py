"""Messages as dots: a sample of all attempts, and every anomaly up to a limit, each with its fate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.contracts import Outcome
from harness.ledger.pictures import FATES
from harness.reconcile.pictures.stored_rows import Row, Sent
from harness.reconcile.seal.sealed import SealedSession

MOST_DOTS, MOST_ANOMALIES = 4_000, 2_000
_COLUMNS = ["anomaly", "excuse", "messages", "t", "topic", "partition"]


@dataclass(frozen=True)
class Anomaly:
    """A finding as a dot: its first message, if it names one, and its own time and place."""

    kind: str
    sent: Sent | None
    t: int | None
    topic: int
    partition: int


# --- anomalies ------------------------------------------------------------------------------------


def anomalies(
    findings: Path, sessions: Sequence[SealedSession], topics: Sequence[str], most: int = MOST_ANOMALIES
) -> tuple[list[Anomaly], dict[str, int]]:
    """Return the findings of findings.parquet, and how many there are of each kind, without excused ones.

    If there are more than `most`, the rarer kinds are whole and of the others every k-th is returned.
    """
    numbers = {f"{one.producer}.{one.incarnation}": one.session for one in sessions}
    counts: dict[str, int] = {}
    for found in _pieces(findings, ["anomaly", "excuse"]):
        for row in found.group_by("anomaly").aggregate([([], "count_all")]).to_pylist():
            counts[row["anomaly"]] = counts.get(row["anomaly"], 0) + row["count_all"]
    every = _distances(counts, most)
    passed = dict.fromkeys(counts, 0)
    chosen: list[Anomaly] = []
    for found in _pieces(findings, _COLUMNS):
        kinds = found["anomaly"].to_numpy()
        for kind in dict.fromkeys(kinds.tolist()):
            places = np.flatnonzero(kinds == kind)
            picked = places[-passed[kind] % every[kind] :: every[kind]]
            passed[kind] += len(places)
            chosen += [_anomaly(row, numbers, topics) for row in found.take(picked).to_pylist()]
    return chosen, counts


def _pieces(findings: Path, columns: list[str]) -> Iterator[pa.Table]:
    for path in sorted(findings.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            for group in range(file.metadata.num_row_groups):
                rows = file.read_row_group(group, columns=columns, use_threads=False)
                yield rows.filter(pc.is_null(rows["excuse"]))


def _distances(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Return k for each kind, so that every k-th finding of each makes at most `most`, and rare kinds are whole."""
    every, left = {}, most
    for done, (kind, count) in enumerate(sorted(counts.items(), key=lambda item: item[1])):
        share = max(1, left // (len(counts) - done))
        every[kind] = ceil(count / share)
        left -= ceil(count / every[kind])
    return every


def sent_of(message: str, numbers: Mapping[str, int]) -> Sent | None:
    """Return session and sequence number of a message by its id; None if it is no message of this run."""
    sender, _, seq = message.rpartition("-")
    return (numbers[sender], int(seq)) if sender in numbers and seq.isdecimal() else None


def _anomaly(row: Row, numbers: Mapping[str, int], topics: Sequence[str]) -> Anomaly:
    message = next(iter(row["messages"] or ()), "")
    topic = topics.index(row["topic"]) if row["topic"] in topics else 0
    partition = -1 if row["partition"] is None else row["partition"]
    return Anomaly(row["anomaly"], sent_of(message, numbers), row["t"], topic, partition)


# --- dots -----------------------------------------------------------------------------------------


def dots(
    sample: Sequence[Row],
    marked: Collection[Anomaly],
    sent: Mapping[Sent, Row],
    zero_ns: int,
    most: int = MOST_DOTS,
) -> dict[str, Any]:
    """Return the dots as columns, in order of time; every anomaly in `marked` is a dot, and the sample fills the rest.

    `sent` are the attempts of anomalies. {"t_ms", "ack_ms" (null: no outcome), "place", "fate"} have a value for each dot;
    "place" and "fate" are numbers in "places" (topic and partition) and "fates".
    """
    named = {one.sent for one in marked}
    others = [row for row in sample if (row["session"], row["seq"]) not in named]
    others = others[:: max(1, ceil(len(others) / max(1, most - len(marked))))]
    rows = [_dot(row, FATES[Outcome(row["outcome"])]) for row in others]
    rows += [dot for one in marked if (dot := _marked(one, sent)) is not None]
    rows.sort(key=lambda row: row[0])
    places = {place: number for number, place in enumerate(sorted({row[2] for row in rows}))}
    fates = {fate: number for number, fate in enumerate(dict.fromkeys([*FATES.values(), *_kinds(marked)]))}
    return {
        "t_ms": [round((t - zero_ns) / 1e6) for t, _, _, _ in rows],
        "ack_ms": [None if ns is None else round(ns / 1e6, 1) for _, ns, _, _ in rows],
        "place": [places[place] for _, _, place, _ in rows],
        "fate": [fates[fate] for _, _, _, fate in rows],
        "places": [list(place) for place in places],
        "fates": list(fates),
    }


Dot = tuple[int, int | None, tuple[int, int], str]  # time, time until its outcome, place, fate


def _dot(row: Row, fate: str) -> Dot:
    partition = row["partition"] if row["told_partition"] is None else row["told_partition"]
    waited = None if row["t_outcome"] is None else row["t_outcome"] - row["t"]
    return row["t"], waited, (row["topic"], partition), fate


def _marked(one: Anomaly, sent: Mapping[Sent, Row]) -> Dot | None:
    """Return the dot at the time when its message was sent; without a known attempt at the finding's own time."""
    row = sent.get(one.sent) if one.sent is not None else None
    if row is not None:
        return _dot(row, one.kind)
    return None if one.t is None else (one.t, None, (one.topic, one.partition), one.kind)


def _kinds(marked: Iterable[Anomaly]) -> list[str]:
    return sorted({one.kind for one in marked})
