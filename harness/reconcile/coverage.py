"""Coverage: the proof of what a run exercised. Without it a clean result would prove nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.observers import behind_by_name, merged_by_name
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.summaries import Count
from harness.reconcile.screen.transaction_fates import Fate
from harness.reconcile.seal.sealed import Sealed


def coverage(sealed: Sealed, facts: Facts, screened: Screened) -> dict[str, Any]:
    """Return the `coverage` of reconciled.json."""
    lines = sealed.events
    drains = [e for e in lines if e["event"] == "drain"]
    reads = {"read_uncommitted": False, "read_committed": False}
    reads |= {str(e.get("isolation")): bool(e.get("complete")) for e in lines if e["event"] == "read"}
    return {
        "windows": windows([e for e in lines if e["event"] == "window"], sealed.zero_ns),
        "progress_before": screened.count(Count.PROGRESS_BEFORE),
        "progress_after": screened.count(Count.PROGRESS_AFTER),
        "drained": bool(drains) and all(bool(d.get("complete")) for d in drains),
        "drain_detail": "; ".join(str(d["detail"]) for d in drains if d.get("detail")),
        "reads": reads,
        "topic_unchanged": sealed.topic_unchanged,
        "not_asked": sealed.not_asked,
        "gaps": sealed.gaps,
        "notes": [*sealed.torn, *(str(e.get("text")) for e in lines if e["event"] == "note")],
        "errors": [
            f"{e.get('where', e.get('writer'))}: {e.get('text')}" for e in lines if e["event"] == "error"
        ],
        "transactions": {
            name: int((facts.fates == fate).sum())
            for name, fate in (
                ("committed", Fate.COMMITTED),
                ("aborted", Fate.ABORTED),
                ("unknown", Fate.OPEN),
            )
        }
        | dict(sealed.transactions),
        "stalled": [str(e.get("text")) for e in lines if e["event"] == "stalled"],
        "rebalances": sealed.rebalances,
        "coordinator_moves": sum(1 for e in lines if e["event"] == "coordinator"),
        "commits": sealed.commits,
        "sessions": sealed.rows["sessions"],
        "readers": sealed.readers,
        "observed": merged_by_name(sealed.observers),
        "observers_behind": behind_by_name(sealed.observers, _started_observers(lines)),
        "in_flight": sealed.in_flight,
    }


def _started_observers(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    started = [e for e in lines if e["event"] == "worker" and e.get("state") == "started"]
    return sorted({str(e.get("name")) for e in started if e.get("role") == "observer"})


def windows(events: Iterable[Mapping[str, Any]], zero_ns: int) -> list[dict[str, Any]]:
    """Return one entry for each fault window, from the events of its life, in the order of opening."""
    lives: dict[Any, dict[str, Any]] = {}
    for event in events:
        life = lives.setdefault(event["window"], _new_window(event["window"]))
        life |= {name: event[name] for name in ("fault", "target", "nodes") if event.get(name) is not None}
        step = event.get("step")
        if step in ("open", "bite", "heal", "healed"):
            life[f"{step}_s"] = seconds(event["t"], zero_ns)
        if step == "bite":
            life |= {
                "bit": bool(event.get("bit")),
                "proof": event.get("proof", ""),
                "measured": event.get("measured", {}),
                "way": event.get("way", ""),
            }
        elif step == "healed":
            life |= {"healed": bool(event.get("healed")), "heal_proof": event.get("proof", "")}
        elif step == "error":
            life["error"] = str(event.get("text", "error"))
    return sorted(lives.values(), key=lambda life: math.inf if life["open_s"] is None else life["open_s"])


def _new_window(window: Any) -> dict[str, Any]:
    return {
        "window": window, "fault": None, "target": None, "nodes": [], "bit": False, "proof": "", "measured": {}, "way": "",
        "healed": False, "heal_proof": "", "open_s": None, "bite_s": None, "heal_s": None, "healed_s": None,
        "error": None,
    }  # fmt: skip


def seconds(t: int | None, zero_ns: int) -> float | None:
    return None if t is None else round((t - zero_ns) / 1e9, 6)
