"""Fault windows in the coverage: one entry each, in the order of opening."""

from __future__ import annotations

from harness.reconcile.coverage import windows


def test_windows_are_in_the_order_of_opening() -> None:
    events = [
        {"event": "window", "window": number, "step": step, "t": 1000 * number + at, "fault": "kill"}
        for number in range(12)
        for at, step in enumerate(("open", "bite", "heal", "healed"))
    ]
    never = {"event": "window", "window": 99, "step": "error", "t": 5, "text": "no node has this role"}
    entries = windows([never, *reversed(events)], zero_ns=0)
    assert [one["window"] for one in entries] == [*range(12), 99]
    assert entries[-1]["error"] == "no node has this role"
