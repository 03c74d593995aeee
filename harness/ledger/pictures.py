"""pictures.json, which the reconciliation writes for the report: every used value is checked, because a stranger may have sent it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import Outcome
from harness.errors import LedgerError
from harness.ledger.manifest import LABEL
from harness.ledger.rundir import RunDir, need_file, read_json
from harness.ledger.value_checks import (
    Check,
    Wrong,
    boolean,
    integer,
    list_of,
    mapping,
    number,
    optional,
    shape,
    text,
)

MOST_BYTES = 1 << 23
MOST_DOTS, MOST_LANES, MOST_STATES, MOST_POINTS = 10_000, 1_000, 10_000, 2_000
FATES = {
    Outcome.ACKED: "acked",
    Outcome.REJECTED: "rejected",
    Outcome.UNKNOWN: "unknown",
}  # besides anomalies
_AGAIN = "run ./onceproof reconcile"
_PLACE = integer(-1, 1 << 15)
_COUNT = integer(0, 1 << 62)
_TIME_S = number(-1e6, 1e7)
_MS = number(-1e10, 1e10)
_LABELS = list_of(LABEL, 1_000)


def _state(value: Any) -> Any:
    """A time, and one or two values: those of a leader's or of a member's lane."""
    if not isinstance(value, list) or len(value) not in (2, 3):
        raise Wrong("a time and what begins then", value)
    _TIME_S(value[0])
    for check, one in zip((optional(LABEL), _LABELS)[3 - len(value) :], value[1:], strict=True):
        check(one)
    return value


_STATES = list_of(_state, MOST_STATES)
_PARTITION: Mapping[str, Check] = {"topic": _PLACE, "partition": _PLACE}
_NEAR = shape(
    {"message": LABEL, "own": boolean},
    {
        "t_s": optional(_TIME_S), "fate": LABEL, "ack_ms": optional(_MS), "partition": optional(_PLACE),
        "offset": optional(integer()), "uncommitted": boolean, "committed": boolean,
    },
)  # fmt: skip
_LOG_LINE = shape({"t_s": _TIME_S, "node": LABEL, "level": LABEL, "text": text(2_000)})
_PICTURES = shape(
    {"version": integer(1, 1)},
    {
        "error": text(),
        "topics": list_of(LABEL, 256),
        "leaders": list_of(shape({**_PARTITION, "states": _STATES}, {"replicas": _LABELS}), MOST_LANES),
        "more_partitions": _COUNT,
        "members": list_of(shape({"member": LABEL, "states": _STATES}), MOST_LANES),
        "lag": optional(
            shape(
                {
                    "start_s": _TIME_S,
                    "step_s": number(0.001, 1e6),
                    "partitions": list_of(
                        shape({**_PARTITION, "behind": list_of(_COUNT, MOST_POINTS)}), MOST_LANES
                    ),
                }
            )
        ),
        "attempted": _COUNT,
        "anomalies": mapping(_COUNT, LABEL),
        "messages": shape(
            {
                "t_ms": list_of(_MS, MOST_DOTS),
                "ack_ms": list_of(optional(_MS), MOST_DOTS),
                "place": list_of(_COUNT, MOST_DOTS),
                "fate": list_of(_COUNT, MOST_DOTS),
                "places": list_of(list_of(_PLACE, 2, least=2), MOST_DOTS),
                "fates": _LABELS,
            }
        ),
        "logs": LABEL,
        "findings": list_of(
            shape({"number": _COUNT, "sent": list_of(_NEAR, 100), "log": list_of(_NEAR, 100),
                   "log_lines": list_of(_LOG_LINE, 100)}), 1_000,
        ),
    },
)  # fmt: skip


def read_pictures(run: RunDir) -> dict[str, Any]:
    """Return the checked pictures of a run, which has them; raise a LedgerError that names a wrong field."""
    need_file(run.pictures, _AGAIN)
    if (size := run.pictures.stat().st_size) > MOST_BYTES:
        raise LedgerError(f"{run.pictures}: {size} bytes, at most {MOST_BYTES} are read; {_AGAIN}")
    pictures = read_json(run.pictures, _AGAIN)
    try:
        _PICTURES(pictures)
        dots = pictures.get("messages", {})
        columns = [dots[name] for name in ("t_ms", "ack_ms", "place", "fate") if dots]
        if len({*map(len, columns)}) > 1:
            raise Wrong("as many values in each column", [len(c) for c in columns], "messages")
        for name in ("place", "fate") if dots else ():
            if dots[name] and max(dots[name]) >= len(dots[f"{name}s"]):
                raise Wrong(f"a number of {name}s", max(dots[name]), f"messages.{name}")
    except Wrong as wrong:
        raise LedgerError(f"{run.pictures}: not what reconciling writes: {wrong}; {_AGAIN}") from wrong
    return pictures
