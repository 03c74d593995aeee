"""The neighbours of a finding: what its sender sent just before and after, and what lies beside it in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.contracts import Outcome
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.ledger.pictures import FATES
from harness.reconcile.coverage import seconds
from harness.reconcile.pictures import stored_rows
from harness.reconcile.pictures.messages import sent_of
from harness.reconcile.pictures.stored_rows import Row, Sent, Stretch
from harness.reconcile.seal.sealed import Sealed

EACH_SIDE = 2  # records
Finding = Mapping[str, Any]
Neighbours = dict[str, list[dict[str, Any]]]


def neighbours(tables: Path, sealed: Sealed, findings: Sequence[Finding]) -> list[Neighbours]:
    """Return for each finding {"sent": […], "log": […]}; empty lists if the tables are not on this machine.

    An entry has "message" and "own" (it belongs to the finding). In "sent" also "t_s", "fate", "ack_ms", "partition" and
    "offset"; in "log" also "offset", "uncommitted" and "committed": the final readings that found it.
    """
    numbers = {f"{one.producer}.{one.incarnation}": one.session for one in sealed.sessions}
    own = [
        [sent for message in f.get("messages") or () if (sent := sent_of(message, numbers))] for f in findings
    ]
    beside = [[(s, seq) for s, at in mine[:1] for seq in _around(at)] for mine in own]
    stretches = [_stretch(f, sealed.topic_names) for f in findings]
    attempts = stored_rows.attempts(tables, {one for mine in beside for one in mine})
    records = stored_rows.log(tables, [one for one in stretches if one is not None])
    senders = {number: sender for sender, number in numbers.items()}
    return [
        {
            "sent": [
                _attempt(attempts[one], senders, one in mine, sealed.zero_ns)
                for one in wanted
                if one in attempts
            ],
            "log": [_record(row, senders, mine) for row in records.get(stretch, ())] if stretch else [],
        }
        for mine, wanted, stretch in zip(own, beside, stretches, strict=True)
    ]


def _around(at: int) -> range:
    return range(max(0, at - EACH_SIDE), at + EACH_SIDE + 1)


def _stretch(finding: Finding, topics: Sequence[str]) -> Stretch | None:
    offsets, topic = finding.get("offsets"), finding.get("topic")
    if not offsets or finding.get("partition") is None or topic not in topics:
        return None
    near = _around(offsets[0])
    return Stretch(topics.index(topic), finding["partition"], near.start, near.stop - 1)


def _attempt(row: Row, senders: Mapping[int, str], own: bool, zero_ns: int) -> dict[str, Any]:
    waited = None if row["t_outcome"] is None else round((row["t_outcome"] - row["t"]) / 1e6, 1)
    partition = row["partition"] if row["told_partition"] is None else row["told_partition"]
    return {
        "message": f"{senders[row['session']]}-{row['seq']}", "own": own, "t_s": seconds(row["t"], zero_ns),
        "fate": FATES[Outcome(row["outcome"])], "ack_ms": waited, "partition": partition, "offset": row["offset"],
    }  # fmt: skip


def _record(row: Row, senders: Mapping[int, str], own: Sequence[Sent]) -> dict[str, Any]:
    intact = not row["flags"] & (BAD_PAYLOAD | FOREIGN_RUN) and row["session"] in senders
    message = f"{senders[row['session']]}-{row['seq']}" if intact else "not intact, or not of this run"
    named = intact and (row["session"], row["seq"]) in own
    same = {name: row[name] for name in ("offset", "uncommitted", "committed")}
    return {"message": message, "own": named, **same}
