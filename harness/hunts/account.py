"""The results of hunts in words, and their exit code."""

from __future__ import annotations

from collections.abc import Sequence

from harness.hunts.hunt import HuntResult
from harness.runtime import exits


def exit_code(results: Sequence[HuntResult]) -> int:
    """Return 1 if something was found, 3 if a hunt has no run that proves anything, else 0."""
    if any(each.findings for each in results):
        return exits.VIOLATED
    return exits.AS_PROMISED if all(each.rate.runs for each in results) else exits.INCONCLUSIVE


def text_of(result: HuntResult) -> str:
    """Return the result of a hunt in a few lines."""
    hunt, rate = result.hunt, result.rate
    if result.not_run:
        return f"{result.name}: {hunt.title}\n    not run: {result.not_run}"
    found = ", ".join(f"{name} in {count} run(s)" for name, count in result.anomalies.items())
    besides = sorted(set(result.anomalies) - set(hunt.shows))
    looked = f"{result.total('attempted'):,} messages, {result.total('acked'):,} acked"
    faults = f"{result.total('faults'):,} faults took effect"
    lines = [
        f"{result.name}: {hunt.title}",
        f"    {'FOUND' if result.findings else 'found nothing'}: {rate}" + (f": {found}" if found else ""),
        f"    {looked}, {faults}; {len(result.runs) - rate.runs} run(s) prove nothing and are not counted",
    ]
    if besides:
        lines.append(f"    not what was suspected: {', '.join(besides)}")
    if result.evidence is not None:
        lines.append(f"    evidence: {result.evidence}")
    return "\n".join(lines)
