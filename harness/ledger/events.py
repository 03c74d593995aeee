"""Checked events of a ledger: the fields that each kind must have, for sealing and explaining alike.

Kinds and fields that are not listed pass as they are: nothing is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import LedgerError
from harness.ledger import reading
from harness.ledger.manifest import ISOLATIONS, LABEL, MOST_NS, NAME
from harness.ledger.value_checks import (
    Check,
    Wrong,
    anything,
    boolean,
    either,
    integer,
    list_of,
    mapping,
    one_of,
    optional,
    shape,
    text,
)

Event = dict[str, Any]

MOST_OFFSET = (1 << 56) - 1  # 64 times this still fits into 64 bits, as numbers of blocks need
TIME = integer(0, MOST_NS)
SESSION, TXN = integer(0, (1 << 32) - 1), integer(0, (1 << 32) - 1)
TOPIC, PARTITION = integer(0, 255), integer(0, (1 << 15) - 1)
OFFSET = integer(0, MOST_OFFSET)
OUTCOME = integer(0, 2)
_SMALL = integer(0, (1 << 31) - 1)
_END = optional(one_of(("commit", "abort")))
_TEXT = optional(text())
_FLAG = optional(boolean)
_LABELS = list_of(LABEL, 100_000)
_ISOLATION = one_of(ISOLATIONS)
_ROWS = integer(0, 1 << 48)  # rows of a journal, lines or bytes
_OFFSETS = mapping(OFFSET, text(5, "[0-9]{1,5}", "the number of a partition"))

KINDS: Mapping[str, Check] = {
    "session": shape(
        {"session": SESSION, "producer": NAME, "incarnation": _SMALL, "acks": either(LABEL, integer())},
        {"in_flight": optional(_SMALL), "idempotent": _FLAG, "transactional_id": _TEXT},
    ),
    "ready": shape({"session": SESSION}),
    "lost_producer": shape({"session": SESSION}, {"text": _TEXT}),
    "outslept": shape({"session": SESSION, "txn": TXN}),
    "txn": shape(
        {"session": SESSION, "txn": TXN, "step": one_of(("begin", "end", "ended"))},
        {"intent": _END, "did": _END, "outcome": optional(OUTCOME)},
    ),
    "assignment": shape(
        {"how": one_of(("assigned", "revoked", "lost", "rewound")), "partitions": list_of(PARTITION)},
        {"topic": TOPIC, "late": _FLAG},
    ),
    "commit": shape(
        {"offsets": _OFFSETS, "outcome": OUTCOME},
        {"topic": TOPIC},
    ),
    "window": shape(
        {"window": _SMALL, "step": one_of(("open", "bite", "heal", "healed", "error"))},
        {
            "fault": LABEL, "target": LABEL, "nodes": _LABELS, "bit": _FLAG, "healed": _FLAG, "proof": _TEXT,
            "text": _TEXT, "way": _TEXT, "measured": optional(mapping(anything)),
        },
    ),
    "bounds": shape(
        {"partition": PARTITION, "start": OFFSET, "end": OFFSET, "stable": OFFSET}, {"topic": TOPIC}
    ),
    "replicas": shape(
        {"session": SESSION, "seq": integer(0, MOST_OFFSET), "holders": _LABELS, "looked": _LABELS, "detail": text()},
        {
            "partition": integer(-1, 1 << 15), "offset": integer(-1, MOST_OFFSET),
            "missed": _LABELS, "ends": mapping(integer()),
        },
    ),
    "observer": shape({"isolation": _ISOLATION}),
    "reached": shape({"complete": boolean}, {"detail": _TEXT}),
    "reading_begins": shape({"partitions": list_of(integer(0, 1 << 15), 256)}),
    "reading": shape({"isolation": _ISOLATION, "partition": PARTITION, "reached": OFFSET, "until": OFFSET}, {"topic": TOPIC}),
    "opened": shape({"file": NAME}),
    "closed": shape({"rows": mapping(_ROWS, NAME), "lines": _ROWS}),
    "read": shape({"isolation": _ISOLATION, "complete": boolean}, {"detail": _TEXT}),
    "drain": shape({"complete": boolean}, {"detail": _TEXT, "topic": TOPIC, "ends": _OFFSETS}),
    "worker": shape({"name": LABEL, "state": LABEL}, {"writes_as": LABEL, "files": mapping(_ROWS, NAME)}),
    "error": shape({}, {"where": _TEXT, "text": _TEXT}),
    "stalled": shape({}, {"text": _TEXT}),
    "coordinator": shape({}),
    "leader": shape(
        {"topic": TOPIC, "partition": PARTITION, "leader": optional(LABEL), "in_sync": _LABELS},
        {"epoch": integer(), "replicas": _LABELS},
    ),
    "library": shape({}, {"versions": mapping(anything)}),
}  # fmt: skip
_EVERY = shape({"t": TIME, "event": LABEL}, {"writer": LABEL})


def check_event(event: Mapping[str, Any], writer: str) -> None:
    """Raise `Wrong` unless this line of `<writer>.events` has the fields that its kind requires."""
    _EVERY(event)
    if event.get("writer", writer) != writer:
        # Journals are found by their writer's name: a line must not name another writer, or a path.
        raise Wrong(f"{writer!r}, as the file's name says,", event["writer"], "writer")
    if event["event"] == "torn":
        raise Wrong("a kind that is written to ledgers", "torn", "event")
    if check := KINDS.get(event["event"]):
        check(event)
    if event["event"] == "txn" and event["step"] != "begin" and not (event.get("did") or event.get("intent")):
        raise Wrong("commit or abort", event.get("did"), "did")


def read_events(path: Path) -> Iterator[tuple[int, Event]]:
    """Yield all events of a writer with the numbers of their lines, checked. A torn last line is an event `torn`."""
    writer = path.stem
    for number, event in enumerate(reading.read_events(path), start=1):
        if event["event"] == "torn" and event == reading.torn(path, number):
            yield number, event
            continue
        try:
            check_event(event, writer)
        except Wrong as wrong:
            known = isinstance(event["event"], str) and event["event"] in KINDS
            what = f"{event['event']} event" if known else "not a ledger line"
            raise LedgerError(f"{path}:{number}: {what}: {wrong}") from wrong
        yield number, {**event, "writer": writer}
