"""Precision and recall of one: random histories with planted anomalies, reconciled in one Spark job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from .histories import Built, History
from .together import Outcome


def test_exactly_what_was_planted_is_found(
    histories: Mapping[str, History], outcomes: Mapping[str, Outcome], tmp_path: Path
) -> None:
    planted: Counter[str] = Counter()
    for name, history in histories.items():
        expected = Built(history, tmp_path, name).expected
        planted.update(anomaly for anomaly, _, _ in expected)
        assert outcomes[name].found == expected, f"{name}: {history}"
    # The test tests something: nearly every kind was planted.
    assert len(planted) >= 7, planted
    assert planted.total() >= len(histories) / 2
