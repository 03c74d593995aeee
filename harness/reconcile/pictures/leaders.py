"""The leader and the in-sync set of each partition over time, from `leader` events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.reconcile.coverage import seconds

MOST_LANES, MOST_STATES = 24, 3_000  # partitions, and states of all of them
Lane = dict[str, Any]


def leader_lanes(events: Iterable[Mapping[str, Any]], zero_ns: int) -> tuple[list[Lane], int]:
    """Return the lanes of partitions, and the number of partitions that are left out because others changed more often.

    A lane is {"topic", "partition", "replicas", "states": [[t_s, leader or null, in-sync replicas], …]}.
    """
    lanes: dict[tuple[int, int], Lane] = {}
    for event in sorted((e for e in events if e["event"] == "leader"), key=lambda e: e["t"]):
        place = event["topic"], event["partition"]
        lane = lanes.setdefault(
            place, {"topic": place[0], "partition": place[1], "replicas": [], "states": []}
        )
        lane["replicas"] = event.get("replicas") or lane["replicas"]
        lane["states"].append([seconds(event["t"], zero_ns), event["leader"], event["in_sync"]])
    chosen = sorted(lanes, key=lambda place: (-len(lanes[place]["states"]), place))[:MOST_LANES]
    kept = [lanes[place] for place in sorted(chosen)]
    for lane in kept:
        del lane["states"][MOST_STATES // len(kept) :]
    return kept, len(lanes) - len(kept)


def leader_at(lanes: Iterable[Lane], topic: int, partition: int | None, t_s: float | None) -> str | None:
    """Return the last leader of a partition that was seen up to this time; None if none is known."""
    for lane in lanes:
        if (lane["topic"], lane["partition"]) == (topic, partition) and t_s is not None:
            before = [leader for since_s, leader, _ in lane["states"] if since_s <= t_s]
            return next((leader for leader in reversed(before) if leader), None)
    return None
