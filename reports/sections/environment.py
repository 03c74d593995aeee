"""The environment of the runs: machine, cluster, broker settings, versions, seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reports import words
from reports.model import Report

PLACE = 60  # sections are in the order of their places
# Different for each cluster, so every cluster would look different. The JSON has them.
_OF_THE_MOMENT = ("folder", "loopback_block", "steps_s", "rss_mb")


def section(report: Report) -> dict[str, Any]:
    """Return the tables of the section; runs on the same cluster share one."""
    return {
        "links": [("environment", "Environment")],
        "facts": [
            ("seed", words.NOTHING if report.seed is None else str(report.seed)),
            ("started", words.moment(report.started)),
            ("took", words.seconds(report.seconds)),
        ],
        "versions": list(words.flat(report.versions)),
        "machines": _distinct([run.machine for run in report.runs]),
        "clusters": _distinct([run.cluster for run in report.runs]),
    }


def _distinct(described: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each different description once, with the numbers of its runs."""
    groups: dict[str, dict[str, Any]] = {}
    for place, whole in enumerate(described, 1):
        values = {k: v for k, v in whole.items() if k not in _OF_THE_MOMENT}
        if not values:
            continue
        key = json.dumps(values, sort_keys=True, default=str)
        group = groups.setdefault(key, {"rows": list(words.flat(values)), "runs": []})
        group["runs"].append(place)
    for group in groups.values():
        places = group["runs"]
        group["label"] = "all runs" if len(places) == len(described) else f"runs {_ranges(places)}"
    return list(groups.values())


def _ranges(places: list[int]) -> str:
    """Return numbers as ranges: `1-9, 12`."""
    spans: list[list[int]] = []
    for place in places:
        if spans and spans[-1][1] == place - 1:
            spans[-1][1] = place
        else:
            spans.append([place, place])
    return ", ".join(str(a) if a == b else f"{a}\u2013{b}" for a, b in spans)
