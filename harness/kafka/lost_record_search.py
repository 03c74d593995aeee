"""Search the replicas' logs for records that were acked and are lost, before their topic is deleted.

The final reading shows that a record is gone. Only the brokers' own files show whether it was never written, was truncated
everywhere, or is still in a log that no broker serves. A run without suspects costs one pass over its journals.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.contracts import Cluster, Outcome, ReplicaLogs
from harness.errors import OnceproofError, WaitTimeout
from harness.kafka.segments import ReplicaHolding, SoughtMessage, search
from harness.ledger import journal, reading
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN, run_number
from harness.ledger.rundir import RunDir
from harness.ledger.transform import INPUT

MOST_SUSPECTS = 20
LIMIT_S = 20.0


@dataclass(frozen=True)
class Suspect:
    """An acked message that the final read_uncommitted reading did not find."""

    session: int
    seq: int
    txn: int
    partition: int  # -1: not reported
    offset: int  # -1: no reliable offset was reported


def examine(
    run: RunDir, cluster: Cluster, topic: str, events: journal.EventLog, *, limit_s: float = LIMIT_S
) -> int:
    """Write a `replicas` event for each suspect and return their number. Never fails a run.

    Call it after the final reading and before the topic is deleted. Clusters without the power are skipped.
    """
    if not isinstance(cluster, ReplicaLogs):
        return 0
    try:
        check = _deadline(limit_s)
        chosen = spread(list(suspects(run)), MOST_SUSPECTS)
        for partition in sorted({s.partition for s in chosen}):
            here = [s for s in chosen if s.partition == partition]
            _examine_partition(here, cluster, topic, run_number(run.run_id), check, events)
    except Exception as error:  # noqa: BLE001  an error in this search does not make the run wrong
        events.write("note", where="autopsy", text=f"the replicas' logs could not be searched: {error!r}")
        return 0
    return len(chosen)


# --- suspects -------------------------------------------------------------------------------------


def suspects(run: RunDir) -> Iterator[Suspect]:
    """Yield acked attempts that are not in the final read_uncommitted log, if that was read to its end.

    At most MOST_SUSPECTS of each session and partition, so that a run that lost millions is not slower.
    """
    events = [e for path in sorted(run.ledger.glob("*.events")) for e in _rare_events(path.read_bytes())]
    whole = [
        e for e in events if e["event"] == "read" and e["isolation"] == "read_uncommitted" and e["complete"]
    ]
    if not whole:
        return  # records that were not read are not missing
    starts: dict[int, int] = {}
    for e in events:
        if e["event"] == "bounds" and int(e.get("topic", INPUT)) == INPUT:
            starts[int(e["partition"])] = max(int(e["start"]), starts.get(int(e["partition"]), 0))
    senders, seqs = _in_log(run)
    acks = {int(e["session"]): str(e["acks"]) for e in events if e["event"] == "session"}
    for path in sorted(run.ledger.glob("*.attempts")):
        session = int(path.stem.rpartition(".")[2])
        yield from _missing(
            reading.read_attempts(path), seqs[senders == session], session, acks.get(session) != "0", starts
        )


def _in_log(run: RunDir) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return session and seq of every intact record of the final read_uncommitted log."""
    columns: list[tuple[Any, Any]] = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]
    for path in sorted(run.ledger.glob("*.read_uncommitted.log")):
        rows, _ = reading.read_deliveries(path)
        intact = (rows["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
        columns.append((rows["session"][intact], rows["seq"][intact]))
    return np.concatenate([c[0] for c in columns]), np.concatenate([c[1] for c in columns])


def _rare_events(blob: bytes) -> Iterator[dict[str, Any]]:
    """Yield the few events that matter here, without parsing the many commits."""
    for line in blob.splitlines():
        if any(kind in line for kind in (b'"event": "read"', b'"event": "bounds"', b'"event": "session"')):
            try:
                yield json.loads(line)
            except ValueError:
                continue  # the torn last line of a writer that was killed


def _missing(
    rows: npt.NDArray[np.void],
    found: npt.NDArray[np.int64],
    session: int,
    answered: bool,
    starts: Mapping[int, int],
) -> Iterator[Suspect]:
    missing = rows["outcome"] == Outcome.ACKED
    missing[found[(found >= 0) & (found < len(rows))]] = False
    seqs = np.flatnonzero(missing)
    reported, intended = rows["told_partition"][seqs], rows["partition"][seqs]
    partitions = np.where(reported >= 0, reported, intended)
    # With acks=0 the broker does not answer: the client invents the offset.
    offsets = np.where((reported >= 0) & answered, rows["offset"][seqs], -1)
    for partition in np.unique(partitions).tolist():
        # Records that retention deleted are no suspects.
        here = (partitions == partition) & ((offsets < 0) | (offsets >= starts.get(partition, 0)))
        for i in _evenly(np.flatnonzero(here), MOST_SUSPECTS):
            seq = int(seqs[i])
            yield Suspect(session, seq, int(rows["txn"][seq]), partition, int(offsets[i]))


def _evenly(items: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Return at most `most` items, spread evenly from the first to the last."""
    if len(items) <= most:
        return items
    chosen: npt.NDArray[np.int64] = items[np.linspace(0, len(items) - 1, most).astype(int)]
    return chosen


def spread(found: Sequence[Suspect], most: int) -> list[Suspect]:
    """Return at most `most` suspects, spread evenly over partitions and, within a partition, from first to last."""
    places: dict[int, list[Suspect]] = {}
    for suspect in found:
        places.setdefault(suspect.partition, []).append(suspect)
    shares = dict.fromkeys(places, 0)
    for _ in range(min(most, len(found))):
        open_places = [p for p in sorted(places) if shares[p] < len(places[p])]
        shares[min(open_places, key=lambda p: shares[p])] += 1
    return [
        places[partition][i]
        for partition, share in sorted(shares.items())
        for i in _evenly(np.arange(len(places[partition])), share)
    ]


# --- replicas -------------------------------------------------------------------------------------


def _deadline(limit_s: float) -> Callable[[], None]:
    """Return a check that raises WaitTimeout from `limit_s` seconds after this call on."""
    deadline = time.monotonic() + limit_s

    def check() -> None:
        if time.monotonic() > deadline:
            raise WaitTimeout(f"the limit of {limit_s:g} s for all replicas has passed")

    return check


def _examine_partition(
    here: Sequence[Suspect],
    cluster: ReplicaLogs,
    topic: str,
    run: int,
    check: Callable[[], None],
    events: journal.EventLog,
) -> None:
    """Search every replica of one partition and write the events of its suspects."""
    wanted = {s: SoughtMessage(run, s.session, s.txn, s.seq) for s in here}
    partition = here[0].partition
    held: dict[str, ReplicaHolding] = {}
    notes: dict[str, str] = {}
    for name, folder in _folders(cluster, topic, partition, notes).items():
        try:
            check()
            held[name] = search(folder, list(wanted.values()), check)
        except (OnceproofError, OSError, ValueError) as error:
            notes[name] = str(error)
    for suspect, identity in wanted.items():
        found = {name: one.found[identity] for name, one in held.items() if identity in one.found}
        events.write(
            "replicas",
            session=suspect.session,
            seq=suspect.seq,
            partition=partition,
            offset=suspect.offset,
            holders=sorted(found),
            looked=sorted(held),
            missed=sorted(notes),
            ends={name: one.end for name, one in sorted(held.items())},
            detail=_detail(found, held, notes),
        )


def _folders(cluster: ReplicaLogs, topic: str, partition: int, notes: dict[str, str]) -> Mapping[str, Any]:
    try:
        return cluster.replica_folders(topic, partition) if partition >= 0 else {}
    except (OnceproofError, OSError) as error:
        notes["all"] = str(error)
        return {}


def _detail(
    found: Mapping[str, list[int]], held: Mapping[str, ReplicaHolding], notes: Mapping[str, str]
) -> str:
    """Return the details that the lists do not have, in one line."""
    words = [f"{name} has it at offset {', '.join(map(str, at))}" for name, at in sorted(found.items())]
    words += [f"the log of {name} goes to {held[name].end}" for name in sorted(set(held) - set(found))]
    words += [f"note: {name} could not be searched: {why}" for name, why in sorted(notes.items())]
    return "; ".join(words) or "note: its partition has no replica folder"
