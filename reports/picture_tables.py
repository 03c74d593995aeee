"""The pictures of a run as rows of tables: the same content for readers who do not see a picture. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from reports import words

MOST_MOVES = 6  # that are written out, of each partition and each member
Stored = Mapping[str, Any]
Row = dict[str, Any]


def leader_rows(stored: Stored) -> list[Row]:
    """Return {"partition", "moves", "leaders", "least", "of"} of each partition; `least`: its smallest in-sync set."""
    rows = []
    for lane in stored.get("leaders", ()):
        states = [(t, leader) for t, leader, _ in lane["states"]]
        moves = [after for before, after in pairwise([(None, None), *states]) if before[1] != after[1]]
        led = [f"{leader or 'no leader'} from {words.seconds(t)}" for t, leader in moves]
        rows.append(
            {
                "partition": partition_name(lane, stored),
                "moves": max(0, len(moves) - 1),
                "leaders": _some(led),
                "least": min((len(in_sync) for _, _, in_sync in lane["states"]), default=0),
                "of": len(lane.get("replicas", ())),
            }
        )
    return rows


def member_rows(stored: Stored) -> list[Row]:
    """Return {"member", "changes", "held"} of each member of the group."""
    rows = []
    for lane in stored.get("members", ()):
        held = [f"{', '.join(p) or 'nothing'} from {words.seconds(t)}" for t, p in lane["states"]]
        rows.append({"member": lane["member"], "changes": max(0, len(held) - 1), "held": _some(held)})
    return rows


def lag_rows(stored: Stored) -> list[Row]:
    """Return {"partition", "most", "at_s", "last"} of each partition: its greatest lag, when that was, and its last."""
    lag = stored.get("lag") or {"partitions": []}
    rows = []
    for one in lag["partitions"]:
        if behind := one["behind"]:
            most = max(behind)
            at_s = lag["start_s"] + behind.index(most) * lag["step_s"]
            rows.append(
                {"partition": partition_name(one, stored), "most": most, "at_s": at_s, "last": behind[-1]}
            )
    return rows


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_MOVES
    return "; ".join(texts[:MOST_MOVES]) + (f"; and {more} more" if more > 0 else "")


def partition_name(place: Mapping[str, Any], stored: Stored) -> str:
    """Return the name of a partition: its number, with the number of its topic where there are several topics."""
    several = len(stored.get("topics", ())) > 1
    return f"{place['topic']}/{place['partition']}" if several else str(place["partition"])
