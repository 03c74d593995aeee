"""`replicas` events: the replicas that still have a record that was acked and is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

IN_NO_LOG = "in no replica's log"
NOT_LOOKED_AT = "not looked at"


def classify(event: Mapping[str, Any] | None) -> str:
    """Return in words where a lost record is, by its `replicas` event (None: there is none)."""
    if event is None:
        return NOT_LOOKED_AT
    if event["holders"]:
        return f"in the log of {', '.join(event['holders'])}, not read"
    # A replica that could not be read may have it.
    return NOT_LOOKED_AT if event.get("missed") or not event["looked"] else IN_NO_LOG
