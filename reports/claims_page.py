"""The page of checked claims, made to be printed and hung up: statement, answer, reason, setting, date and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from reports.build import hash_of, templates, write_whole
from reports.curve_drawing import drawn

TITLES = {
    "ORD": "Order", "OFF": "Offsets", "GRP": "Groups", "DUR": "Durability", "DEL": "Delivery", "BAT": "Batches",
    "RET": "Retention", "REC": "Records", "CTL": "Control", "DLQ": "Dead letters",
}  # fmt: skip


def write(out: Path, data: Mapping[str, Any], versions: Mapping[str, Any], date: str) -> Path:
    """Write the page; return its path."""
    out = out.resolve()
    write_whole(out, page(data, versions, date))
    return out


def page(data: Mapping[str, Any], versions: Mapping[str, Any], date: str) -> str:
    template = templates().get_template("claims.html")
    style = (Path(__file__).parent / "assets" / "claims.css").read_text(encoding="utf-8")
    return template.render(
        groups=_groups(data["claims"]),
        as_expected=data["as_expected"],
        total=data["claims_total"],
        versions=versions,
        date=date,
        style=Markup(style),  # our own file
        style_hash=hash_of(style),
    )


def _groups(claims: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the claims by group, in their order, with the curves as paths."""
    found = []
    for letters, members in groupby(claims, key=lambda claim: str(claim["id"]).partition("-")[0]):
        rows = [
            {**claim, "tone": _tone(claim), "drawn": [drawn(c) for c in claim["curves"]]} for claim in members
        ]
        found.append((TITLES.get(letters, letters), rows))
    return found


def _tone(claim: Mapping[str, Any]) -> str:
    if not claim["as_expected"]:
        return "differs"
    return str(claim["result"]).split(" ", 1)[0] if "only" not in str(claim["result"]) else "partly"
