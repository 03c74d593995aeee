"""The requirements of a run in verdict.json: anomalies that it had to raise, the counts found, and what is lacking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import Verdict
from harness.expectation import Lack, Shortfall, requirement_text
from reports.files import counts, items, text

_OLD = "verdict.json does not say what the control had to raise: an older version judged it; reconcile the run again"


@dataclass(frozen=True)
class Required:
    required: Mapping[str, int] = field(default_factory=dict)  # anomaly and the least number of findings
    found: Mapping[str, int] = field(default_factory=dict)
    shortfalls: tuple[Shortfall, ...] = ()

    @classmethod
    def read(cls, judged: Mapping[str, Any], troubles: Sequence[str]) -> Required:
        """Read verdict.json. A control that requires nothing, or whose files are damaged, proves nothing."""
        lacking = [
            Shortfall(Lack(each["kind"]), text(each, "text"))
            for each in items(judged, "shortfalls")
            if isinstance(each, dict) and each.get("kind") in list(Lack)
        ]
        required = counts(judged, "required")
        if judged.get("expected") == Verdict.VIOLATED:
            lacking += [Shortfall(Lack.UNPROVEN, trouble) for trouble in troubles]
            lacking += [] if required else [Shortfall(Lack.UNPROVEN, _OLD)]
        return cls(required, counts(judged, "found"), tuple(lacking))

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(shortfall.kind for shortfall in self.shortfalls)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the run does not satisfy its scenario, each once."""
        return tuple(dict.fromkeys(shortfall.text for shortfall in self.shortfalls))

    def text(self, violations: Mapping[str, int]) -> str:
        """Return `required: lost >= 1; found: lost 48; also: …` with other violations; empty if nothing was required."""
        also = {anomaly: count for anomaly, count in violations.items() if anomaly not in self.required}
        return requirement_text(self.required, self.found, also) if self.required else ""
