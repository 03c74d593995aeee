"""What every finding looks like, whoever found it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = {
    "run": "bigint", "anomaly": "string", "excuse": "string", "topic": "int", "partition": "int",
    "messages": "array<string>", "offsets": "array<bigint>", "sender": "string", "reader": "string", "t": "bigint",
    "evidence": "map<string,string>",
}  # fmt: skip

LEDGER, HISTORY = "ledger", "history"  # what a finder can be asked of
PIPELINE = "pipeline"  # ledgers of runs whose workload makes an output of its input

READ_UNCOMMITTED = (
    "CASE WHEN isolation = 'read_uncommitted' THEN 'read_uncommitted' END"  # an excuse, by choice
)
STEP_ENDS = [f"{end}_{name}" for end in ("from", "to") for name in ("t", "offset", "session", "seq")]

ID = "sender || '-' || seq"  # the id that people read; as harness.message.message_id


def finding(
    anomaly: str,
    *,
    messages: str = f"array({ID})",
    offsets: str = "array(offset)",
    t: str = "t",
    topic: str = "topic",
    partition: str = "partition",
    sender: str = "sender",
    reader: str = "NULL",
    excuse: str = "NULL",
    evidence: Mapping[str, str],
) -> list[str]:
    """The columns that every finder selects last, each a Spark SQL text. `t` is in ns; what is unknown is null."""
    pairs = ", ".join(f"'{name}', CAST({value} AS string)" for name, value in evidence.items())
    values = {
        "run": "run", "anomaly": f"'{anomaly}'", "excuse": excuse, "topic": topic, "partition": partition,
        "messages": messages, "offsets": offsets, "sender": sender, "reader": reader, "t": t, "evidence": f"map({pairs})",
    }  # fmt: skip
    return [f"CAST({values[name]} AS {kind}) AS {name}" for name, kind in COLUMNS.items()]


def known(*values: str) -> str:
    """Those of the values that are not null, as an array."""
    return f"array_compact(array({', '.join(values)}))"


STEP_MESSAGES = known("from_sender || '-' || from_seq", "sender || '-' || to_seq")


# --- for explain ----------------------------------------------------------------------------------


def place(row: Mapping[str, Any]) -> str:
    """The position in words: `orders/2 at offset 17`, as far as it is known."""
    if row.get("partition") is None:
        return f"topic {row.get('topic')}"
    at = next(iter(row.get("offsets") or []), None)
    return f"{row['topic']}/{row['partition']}" + ("" if at is None else f" at offset {at}")


def when(row: Mapping[str, Any]) -> str:
    """The time in words, with the fault window it falls into."""
    if row.get("t_s") is None:
        return "at an unknown time"
    inside = "outside any fault window" if row.get("window") is None else f"in fault window {row['window']}"
    return f"{row['t_s']:.3f} s into the run ({inside})"


def first(row: Mapping[str, Any]) -> str:
    return next(iter(row.get("messages") or []), "an unknown message")
