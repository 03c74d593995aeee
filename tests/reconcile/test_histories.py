"""Precision and recall of one: exactly what was planted in random histories is found, by the oracle and by Spark.

ONCEPROOF_HISTORIES is how many the oracle is asked about (thousands take minutes), ONCEPROOF_SPARK_HISTORIES how many
the Spark job gets, ONCEPROOF_HISTORIES_SEED other ones than those of every day.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness.reconcile.seal.seal import seal
from tests.reconcile.histories import Built, History, drawn
from tests.reconcile.oracle import oracle_rows
from tests.reconcile.oracle_questions import ANOMALIES
from tests.reconcile.together import Finding, Outcome

HISTORIES = int(os.environ.get("ONCEPROOF_HISTORIES", "200"))
SEED = int(os.environ.get("ONCEPROOF_HISTORIES_SEED", "1"))
AT_ONCE = 100
# Only literal cases have these: whatever claims a position twice also loses something; histories have no pipelines.
NEVER_PLANTED = {"offset_conflict", "double_effect", "missing_effect"}


def test_the_oracle_finds_exactly_what_was_planted(tmp_path: Path) -> None:
    planted: Counter[str] = Counter()
    every = drawn(HISTORIES, SEED)
    for first in range(0, len(every), AT_ONCE):
        batch = [Built(h, tmp_path, f"history-{n}") for n, h in enumerate(every[first : first + AT_ONCE])]
        runs = [built.run.finish() for built in batch]
        for run in runs:
            seal(run)
        found = oracle_rows(runs)
        for history, built, run in zip(every[first:], batch, runs, strict=False):
            if found[run] != built.rows:
                raise AssertionError(_smallest(history, tmp_path))
            planted.update(anomaly for anomaly, _, _ in built.rows.elements())
        shutil.rmtree(tmp_path)
    # The test tests something: every kind was planted.
    assert planted.keys() == ANOMALIES - NEVER_PLANTED
    assert min(planted.values()) >= HISTORIES / 50


def test_spark_finds_exactly_what_was_planted(
    histories: Mapping[str, History], outcomes: Mapping[str, Outcome], tmp_path: Path
) -> None:
    planted: Counter[str] = Counter()
    for name, history in histories.items():
        expected = Built(history, tmp_path, name).expected
        planted.update(anomaly for anomaly, _, _ in expected)
        found = outcomes[name].found
        assert found == expected, (
            f"{name}: missing {expected - found}, too many {found - expected}: {history}"
        )
    assert len(planted) >= len(ANOMALIES - NEVER_PLANTED) - 2, planted


def _smallest(history: History, root: Path) -> str:
    """Return the smallest part of a history on which the oracle still disagrees."""
    shrunk = True
    while shrunk:
        shrunk = False
        for part in ("sends", "plants", "actions"):
            for n in range(len(getattr(history, part))):
                items = getattr(history, part)
                smaller = replace(history, **{part: items[:n] + items[n + 1 :]})
                if _differs(smaller, root) != (Counter(), Counter()):
                    history, shrunk = smaller, True
                    break
    missing, too_many = _differs(history, root)
    return f"missing {dict(missing)}, too many {dict(too_many)}: {history}"


def _differs(history: History, root: Path) -> tuple[Counter[Finding], Counter[Finding]]:
    built = Built(history, root, "smaller")
    run = built.run.finish()
    seal(run)
    found = oracle_rows([run])[run]
    return built.rows - found, found - built.rows
