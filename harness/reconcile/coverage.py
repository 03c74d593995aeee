"""Coverage: the proof of what a run exercised. Without it a clean result would prove nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.contracts import Outcome
from harness.reconcile.rows import AFTER, BEFORE
from harness.reconcile.seal import Sealed
from harness.reconcile.tables import ABORTED, COMMITTED, UNKNOWN

# What is counted of each table, in the same pass as the finders' questions.
COUNTED: Mapping[str, Mapping[str, str]] = {
    "messages": {
        "attempted": "attempted",
        "acked": f"outcome = {int(Outcome.ACKED)}",
        "rejected": f"outcome = {int(Outcome.REJECTED)}",
        "unknown": f"outcome = {int(Outcome.UNKNOWN)}",
        # Acks before the first window was opened and after the last one was closed; without windows, all.
        "progress_before": f"outcome = {int(Outcome.ACKED)} AND coalesce(phase, {BEFORE}) = {BEFORE}",
        "progress_after": f"outcome = {int(Outcome.ACKED)} AND coalesce(phase, {AFTER}) = {AFTER}",
    },
    "fates": {f"transactions_{fate}": f"fate = '{fate}'" for fate in (COMMITTED, ABORTED, UNKNOWN)},
}


def coverage(sealed: Sealed, value: Mapping[str, int]) -> dict[str, Any]:
    """The `coverage` of reconciled.json; `value` has what was counted."""
    lines = sealed.events
    drains = [e for e in lines if e["event"] == "drain"]
    reads = {"read_uncommitted": False, "read_committed": False}
    reads |= {str(e.get("isolation")): bool(e.get("complete")) for e in lines if e["event"] == "read"}
    return {
        "windows": windows([e for e in lines if e["event"] == "window"], sealed.zero_ns),
        "progress_before": value.get("progress_before", 0),
        "progress_after": value.get("progress_after", 0),
        "drained": bool(drains) and all(bool(d.get("complete")) for d in drains),
        "drain_detail": "; ".join(str(d["detail"]) for d in drains if d.get("detail")),
        "reads": reads,
        "gaps": sealed.gaps,
        "notes": sealed.torn,
        "errors": [f"{e.get('where', e.get('writer'))}: {e.get('text')}" for e in lines if e["event"] == "error"],
        "transactions": {fate: value.get(f"transactions_{fate}", 0) for fate in (COMMITTED, ABORTED, UNKNOWN)},
        "rebalances": sealed.rebalances,
        "commits": sealed.commits,
        "sessions": sealed.rows["sessions"],
        "readers": sealed.readers,
        "in_flight": sealed.in_flight,
    }


def windows(events: Iterable[Mapping[str, Any]], zero_ns: int) -> list[dict[str, Any]]:
    """One entry a fault window, from the events of its life."""
    lives: dict[Any, dict[str, Any]] = {}
    for event in events:
        life = lives.setdefault(event["window"], _new_window(event["window"]))
        life |= {name: event[name] for name in ("fault", "target", "nodes") if event.get(name) is not None}
        step = event.get("step")
        if step in ("open", "bite", "heal", "healed"):
            life[f"{step}_s"] = seconds(event["t"], zero_ns)
        if step == "bite":
            life |= {"bit": bool(event.get("bit")), "proof": event.get("proof", ""), "measured": event.get("measured", {})}
        elif step == "healed":
            life |= {"healed": bool(event.get("healed")), "heal_proof": event.get("proof", "")}
        elif step == "error":
            life["error"] = str(event.get("text", "error"))
    return [lives[window] for window in sorted(lives, key=str)]


def _new_window(window: Any) -> dict[str, Any]:
    return {
        "window": window, "fault": None, "target": None, "nodes": [], "bit": False, "proof": "", "measured": {},
        "healed": False, "heal_proof": "", "open_s": None, "bite_s": None, "heal_s": None, "healed_s": None,
        "error": None,
    }  # fmt: skip


def seconds(t: int | None, zero_ns: int) -> float | None:
    return None if t is None else round((t - zero_ns) / 1e9, 6)
