"""The manifest of a run: every value that is used is checked here, once, for all commands."""

from __future__ import annotations

from typing import Any

from harness.contracts import Mode, Verdict
from harness.errors import LedgerError
from harness.ledger import journal
from harness.ledger.rundir import RunDir, read_json
from harness.ledger.value_checks import (
    Check,
    Wrong,
    anything,
    boolean,
    either,
    integer,
    list_of,
    mapping,
    number,
    one_of,
    optional,
    shape,
    shown,
    text,
)

ISOLATIONS = ("read_uncommitted", "read_committed")
MOST_NS = 1 << 62  # of times: differences of two of them fit into 64 bits
NAME = text(249, r"[A-Za-z0-9._-]+", "a name of letters, digits, '.', '_' and '-'")  # as Kafka names topics
LABEL = text(1000)

_ONE_MODE, _ONE_VERDICT = one_of(Mode), one_of(Verdict)
_TOPIC = shape({}, {"extra": optional(mapping(anything)), "partitions": integer(1, 1 << 15)})
# Options of clients as scenarios set them. Runs of earlier versions have none of them.
_OPTIONS = {
    "acks": one_of(("0", "1", "all")),
    **{name: integer(0) for name in ("retries", "in_flight", "linger_ms", "batch_bytes")},
    **{name: integer(0) for name in ("delivery_timeout_ms", "request_timeout_ms", "transaction_timeout_ms")},
    **{name: integer(0) for name in ("session_timeout_ms", "poll_interval_ms")},
    **dict.fromkeys(("idempotent", "store_when_given"), boolean),
    **dict.fromkeys(("compression", "partitioner", "assignor", "group_protocol", "reset"), LABEL),
}
_CLIENT = shape({}, _OPTIONS)
_SCENARIO = shape(
    {"mode": _ONE_MODE, "guarantee": _ONE_MODE},
    {
        "name": LABEL,
        "expected": _ONE_VERDICT,
        "judged_as": optional(_ONE_MODE),
        "control": boolean,
        "hazard": optional(LABEL),
        "about": mapping(LABEL, LABEL),
        "fault": optional(LABEL),
        "seed": integer(),
        "schedule": optional(list_of(mapping(anything), 10_000)),
        "producers": optional(_CLIENT),
        "consumers": shape({}, {"isolation": one_of(ISOLATIONS), **_OPTIONS}),
        "topic": _TOPIC,
        "pipeline": optional(
            shape(
                {}, {"output": optional(_TOPIC), "producer": optional(_CLIENT), "consumer": optional(_CLIENT)}
            )
        ),
        "requires": mapping(integer(1, 1 << 62), LABEL),
        "tolerates": list_of(LABEL),
        "forbids": list_of(LABEL),
    },
)
# The effects of a pipeline are computed from these two, so an unknown third one must not be ignored.
TRANSFORM: Check = optional(shape({"most": integer(0, 100), "poison_share": number(0, 1)}, only=True))
_MANIFEST = shape(
    {
        "version": integer(),
        "clock": shape({"monotonic_ns": integer(0, MOST_NS)}, {"wall": LABEL, "unix": number(0, 1 << 35)}),
        "scenario": _SCENARIO,
    },
    {
        "run_id": LABEL,
        "topic": LABEL,
        "topics": list_of(LABEL, 256, least=1),
        "transform": TRANSFORM,
        "topic_unchanged": boolean,
        "complete": boolean,
        "expected": _ONE_VERDICT,
        "control": boolean,
        "cluster": mapping(anything),
        "machine": mapping(anything),
        "versions": mapping(anything),
        "command": either(text(), list_of(text())),
    },
)


def read_manifest(run: RunDir) -> dict[str, Any]:
    """Return the checked manifest; raise a LedgerError that names a wrong field."""
    manifest = read_json(run.manifest, "is this a run folder?")
    version = manifest.get("version")
    if version != journal.VERSION or isinstance(version, bool):
        raise LedgerError(
            f"{run.manifest}: ledger version {shown(version)}, this onceproof reads version {journal.VERSION}; "
            "use the onceproof that made the run, or repeat the run with this one"
        )
    try:
        _MANIFEST(manifest)
    except Wrong as wrong:
        raise LedgerError(f"{run.manifest}: not the manifest of a run: {wrong}") from wrong
    return manifest
